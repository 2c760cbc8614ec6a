"""Longest wait of another writer of SQLite for an import of token prices.

python -m bench.import_lock [prices]
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from service.app.examples import EXAMPLES
from service.app.storage import migrate_database
from service.audit.service import WriteContext, Writes
from service.catalog import repository
from service.catalog import service as catalog
from service.catalog.token_prices.importing import list_rows, read_list, to_response
from service.catalog.token_prices.schemas import TokenPriceImportRequest
from service.catalog.transactions import CatalogTransactions
from service.kit.database.engine import Database
from service.kit.http.pages import PageTokens
from service.kit.security.keyring import Keyring
from service.kit.security.principals import LOCAL

KEYRING = Keyring(b"a secret of a benchmark, 32 bytes")


def _write_until_stopped(url: str, stop: str) -> None:
    """Writes for another tenant until a file exists, and prints the longest wait in seconds."""
    database, longest = Database(url), 0.0
    while not Path(stop).exists():
        began = time.perf_counter()
        with database.open_writer() as session:
            repository.take_next_revision(session, "other")
        longest = max(longest, time.perf_counter() - began)
        time.sleep(0.02)
    print(longest)


def _build_import(count: int, price: float) -> TokenPriceImportRequest:
    entry = {
        "litellm_provider": "host",
        "mode": "chat",
        "input_cost_per_token": price,
        "output_cost_per_token": 1e-06,
    }
    body = TokenPriceImportRequest.model_validate_json(json.dumps(EXAMPLES["import_token_prices"]))
    content = json.dumps({f"host/m{number:05d}": entry for number in range(count)})
    return body.model_copy(update={"content": content})


def _measure(name: str, folder: Path, database: Database, do: Callable[[], object]) -> None:
    stop, url = folder / name, database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "bench.import_lock", url, str(stop)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        time.sleep(3.0)  # until it writes
        began = time.perf_counter()
        do()
        whole = time.perf_counter() - began
        stop.touch()
        waited = float(writer.communicate()[0])
    print(f"{name:8}  {whole:7.2f}  {waited:6.2f}", flush=True)


def main() -> None:
    """Prints the seconds of an import of new prices, of changed ones, and of the same ones again."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 70_000
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/prices.db")
        migrate_database(database)
        with database.open_writer() as session:
            catalog.load_shipped(session)
        tokens = PageTokens(b"a secret of a benchmark")
        transactions = CatalogTransactions(database, Writes(database, KEYRING), tokens, lambda: None)
        print("prices    whole s  wait s")
        for name, price in (("new", 1e-07), ("changed", 2e-07), ("the same", 2e-07)):
            body = _build_import(count, price)
            listed = read_list(body, {})
            rows, call = list_rows(LOCAL.tenant_id, body, listed), WriteContext(LOCAL, "bench", "/", "")
            answer = partial(to_response, listed)
            do = partial(transactions.import_rows, call, body, rows, answer)
            _measure(name, Path(folder), database, do)


if __name__ == "__main__":
    if len(sys.argv) > 2:  # noqa: PLR2004
        _write_until_stopped(*sys.argv[1:])
    else:
        main()
