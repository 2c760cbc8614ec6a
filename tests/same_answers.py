"""Holds the answers to stored requests against those of before; names every member that is another now.

Each line of ``tests/data/answers.jsonl.gz`` is a request and a digest of each member of its answer. Prose may
change: titles and details are left out.

``python -m tests.same_answers`` compares; with ``--keep FOLDER`` it also writes the answers there, to be
compared with those of another checkout. With ``--store FILE`` it stores the answers to the requests of FILE.
"""

import argparse
import gzip
import hashlib
import json
import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

from service.app.application import create_app
from service.app.storage import upgrade_schema
from service.kit.database.engine import Database
from tests.applications import OPEN, attach, quiet_logs
from tests.conftest import Client

STORED = Path(__file__).parent / "data" / "answers.jsonl.gz"
PROSE = {"title", "detail"}
OF_ITS_OWN = {"request_id", "instance"}
"""Members that no two answers share."""
DIGITS = 10
FIGURE_DIGITS = 10
"""Significant digits of a figure that are compared: the last ones depend on the processor's vector unit."""
PROCESSES = 2
CHUNK = 25
MOST_SECONDS = 1.5
"""A request that takes longer is not stored: the whole set is answered in some minutes."""

Line = dict[str, Any]
_clients: list[Client] = []


def _client() -> Client:
    """The client of this process, over a database of the shipped catalog."""
    if not _clients:
        quiet_logs()
        database = Database(f"sqlite:///{tempfile.mkdtemp(prefix='ironlaw-answers-')}/own.db")
        upgrade_schema(database)
        app = create_app(OPEN)
        attach(app, database)
        _clients.append(Client(app))
    return _clients[0]


def figures(value: Any) -> Any:
    """An answer without its prose and what names it."""
    if isinstance(value, dict):
        return {name: figures(inner) for name, inner in value.items() if name not in PROSE | OF_ITS_OWN}
    if isinstance(value, list):
        return [figures(inner) for inner in value]
    return float(f"{value:.{FIGURE_DIGITS}g}") if isinstance(value, float) else value


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:DIGITS]


def answered(line: Line) -> Line:
    """The line with status, answer and seconds."""
    began = time.perf_counter()
    response = _client().post(line["path"], json=line["body"])
    seconds = time.perf_counter() - began
    is_json = "json" in response.headers.get("content-type", "")
    answer = figures(response.json()) if is_json else {"text": response.text}
    return {**line, "status": response.status_code, "answer": answer, "seconds": seconds}


def digested(line: Line) -> Line:
    """The line as it is stored."""
    digests = {name: _digest(value) for name, value in line["answer"].items()}
    return {"path": line["path"], "body": line["body"], "status": line["status"], "digests": digests}


def differences(before: Line, now: Line) -> list[str]:
    """Members of an answer that are not as they were."""
    own = digested(now)
    if own["status"] != before["status"]:
        return [f"status {own['status']} in place of {before['status']}"]
    names = sorted(own["digests"].keys() | before["digests"].keys())
    return [name for name in names if own["digests"].get(name) != before["digests"].get(name)]


def _read(path: Path) -> list[Line]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in raw.splitlines()]


def _answer_all(lines: list[Line]) -> list[Line]:
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        return list(pool.imap(answered, lines, CHUNK))


def _store(lines: list[Line]) -> None:
    """Store what is the same twice and does not take long."""
    first = [line for line in _answer_all(lines) if line["seconds"] <= MOST_SECONDS and line["status"] < 500]
    kept = [
        one
        for one, other in zip(first, _answer_all(first), strict=True)
        if not differences(digested(one), other)
    ]
    with gzip.GzipFile(STORED, "wb", mtime=0) as file:
        for line in kept:
            file.write((json.dumps(digested(line), sort_keys=True) + "\n").encode())
    print(f"{len(kept)} of {len(lines)} stored")


def main() -> None:
    """Answer, compare and say what moved."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=Path)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if given.store:
        _store(_read(given.store))
        return
    before = _read(STORED)
    now = _answer_all(before)
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
        for number, line in enumerate(now):
            (given.keep / f"{number}.json").write_text(json.dumps(line["answer"], indent=1, sort_keys=True))
    moved = [(number, differences(*pair)) for number, pair in enumerate(zip(before, now, strict=True))]
    moved = [(number, names) for number, names in moved if names]
    for number, names in moved:
        print(f"{number}: POST {before[number]['path']}: {', '.join(names)}")
    print(f"{len(before) - len(moved)} of {len(before)} answers are the same")
    raise SystemExit(bool(moved))


if __name__ == "__main__":
    main()
