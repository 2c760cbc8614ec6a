"""Every command of the README and the guides is run, every answer shown is compared with what comes back."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import yaml

from service.app.examples import EXAMPLES as BODIES
from service.app.operator import NOTICED_SECONDS
from service.app.settings import Settings
from service.protocol.suites import shipped_suites
from tests import forked
from tests.auth.issuing import Provider, on_loopback
from tests.serving import IRONLAW, environment, serving
from tests.worker.records import suite

ROOT = Path(__file__).resolve().parent.parent
GUIDES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md")))
}
LINKED = [
    "README.md",
    "CONTRIBUTING.md",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))),
]
PACKAGE = shlex.quote(str(ROOT / "clients" / "python" / "ironlaw-client" / "src"))
ADDRESS = "http://127.0.0.1:8000"
ISSUER = "https://login.example.com/realms/research"
DATABASE = "postgresql+psycopg://ironlaw:secret@localhost:5432/ironlaw"
KEY_ID = "k3v9x2m4c7b1n5q8"
SERVE = ".venv/bin/ironlaw serve\n"
WORK = ".venv/bin/ironlaw worker background\n"
NODE = ".venv/bin/ironlaw worker run\n"
RUN = "benchmark-runs -H 'content-type: application/json' -d '{\"suite_id\": \"cpu-quick\"}'"
MAKE_RUN = "make run\n"
MAKE = {MAKE_RUN, "make test\n"}


class Example(NamedTuple):
    command: str
    shown: str
    title: str
    guide: str
    language: str = "sh"


def examples(guide):
    """Every command of a guide, with the block that follows it unless that is a command too."""
    blocks = re.findall(r"^(?:#+ ([^\n]*)|```(\w+)\n(.*?)^```)$", GUIDES[guide], re.DOTALL | re.MULTILINE)
    assert {language for _, language, _ in blocks} <= {"", "sh", "json", "yaml", "mermaid", "python", "ts"}
    title = ""
    for position, (heading, language, text) in enumerate(blocks):
        title = heading or title
        if language == "sh":
            _, following, shown = blocks[position + 1] if position + 1 < len(blocks) else ("", "", "")
            yield Example(text, shown if following in ("json", "yaml") else "", title, guide)
        elif language == "python" and re.search(r"\bironlaw(_client|\.)", text):
            yield Example(text, "", title, guide, language)


EXAMPLES = [example for guide in GUIDES for example in examples(guide)]
TERMINAL = [example for example in EXAMPLES if "ironlaw estimate" in example.command]
DIFFS = [example for example in EXAMPLES if "ironlaw diff" in example.command]
# The tests of generated clients run it.
GENERATED = [example for example in EXAMPLES if "openapi-python-client generate" in example.command]
PLANS = [example for example in EXAMPLES if "ironlaw plan" in example.command]
# `make client-packages` runs it.
INSTALLED = [example for example in EXAMPLES if "pip install clients/" in example.command]
CONTAINERS = [example for example in EXAMPLES if "docker compose" in example.command]
BACKUPS = [example for example in EXAMPLES if "ironlaw restore" in example.command]
MEASURES = [example for example in EXAMPLES if "ironlaw worker measure" in example.command]
SCORES = [example for example in EXAMPLES if "python -m accuracy" in example.command]
ELSEWHERE = [*TERMINAL, *DIFFS, *GENERATED, *INSTALLED, *PLANS, *CONTAINERS, *BACKUPS, *MEASURES, *SCORES]


def chapters():
    """The commands that start a server, each with what follows in its guide up to the next of them."""
    chapter = [Example("", "", "", "")]
    for example in EXAMPLES:
        if example.command == MAKE_RUN or example.command.endswith(SERVE):
            chapter = [example]
            yield chapter
        elif example.command not in MAKE and example not in ELSEWHERE:
            if chapter[0].guide != example.guide:
                # The server that the README has started.
                chapter = [Example(MAKE_RUN, "", example.title, example.guide)]
                yield chapter
            chapter.append(example)


CHAPTERS = list(chapters())


def contains(answer, shown, at=""):
    """Every member and item shown is in the answer; numbers agree to the digits shown."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            assert name in answer, f"{at}/{name} is not answered"
            contains(answer[name], value, f"{at}/{name}")
    elif isinstance(shown, list):
        assert bool(answer) == bool(shown), at
        rest = iter(answer)
        for position, value in enumerate(shown):
            for item in rest:
                try:
                    contains(item, value, f"{at}/{position}")
                except AssertionError:
                    continue
                break
            else:
                raise AssertionError(f"{at}/{position}: {value} is not answered")
    elif isinstance(shown, str) and shown.endswith("..."):
        assert answer.startswith(shown.removesuffix("...")), f"{at}: {answer} is not {shown}"
    elif isinstance(shown, float) or (isinstance(shown, int) and isinstance(answer, float)):
        _, _, decimals = repr(shown).partition(".")
        digits = 0 if isinstance(shown, int) else len(decimals)
        same = answer == pytest.approx(shown, rel=1e-5) or round(answer, digits) == shown
        assert same, f"{at}: {answer} is not {shown}"
    else:
        assert answer == shown, f"{at}: {answer} is not {shown}"


def shell(command, directory, **variables):
    done = subprocess.run(
        ["/bin/sh", "-eu", "-c", command],
        cwd=directory,
        env=environment(directory / "data", **variables),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def directory(tmp_path):
    """A place that looks to the commands like the checkout, and is not."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    forked.stand_in(tmp_path / ".venv" / "bin" / "ironlaw")
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o700)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def own_worker(directory):
    """Where a worker of a test keeps its things."""
    return {
        "IRONLAW_WORKER_DIR": str(directory / "worker"),
        "IRONLAW_WORKER_LOCK_FILE": str(directory / "lock"),
    }


class Reader:
    """Types the commands of a chapter into one shell, with what is here in place of what is shown."""

    def __init__(self, directory, **replaced):
        self._directory = directory
        self._replaced = replaced
        self._node = None
        self._variables = {"no_proxy": "127.0.0.1", **own_worker(directory)}

    def types(self, command):
        """What a command prints; its variables stay."""
        for shown, real in self._replaced.items():
            command = command.replace(shown, real)
        after = self._directory / "environment"
        printed = shell(f"set -a\n{command}\nenv -0 >{after}", self._directory, **self._variables)
        self._variables = dict(pair.split("=", 1) for pair in after.read_text().split("\0") if pair)
        return printed

    @contextlib.contextmanager
    def serves(self, command):
        """The server that a command starts."""
        self.types(command.removesuffix(SERVE).removesuffix(MAKE_RUN))
        own = {name: value for name, value in self._variables.items() if name.startswith("IRONLAW_")}
        with serving(own.pop("IRONLAW_DATA_DIR"), **own) as server:
            self._replaced[ADDRESS] = server.address
            self._replaced[ADDRESS.removeprefix("http://")] = server.address.removeprefix("http://")
            try:
                yield
            finally:
                self._leaves()

    def follows(self, example):
        """A command after the server is up, held against what is shown."""
        if example.command == WORK:
            self._works()
            return
        if example.command == NODE:
            self._measures()
            return
        printed = self.types(example.command)
        if "calibrated_node" in example.shown:
            printed = self._measured_again(example, printed)
        if "keys create" in example.command:
            time.sleep(NOTICED_SECONDS)
        if "curl" not in example.command:
            if example.shown:
                self._scrapes(example.shown)
        elif not example.shown:
            assert printed == ""
        else:
            self._answered(json.loads(printed), example)

    def runs(self, blocks):
        """The Python blocks of a chapter as one program, whose comments say what it prints."""
        program = "".join(blocks)
        printed = self.types(f"PYTHONPATH={PACKAGE} .venv/bin/python - <<'END'\n{program}END\n")
        assert printed.splitlines() == re.findall(r"print\(.*\)  # (.+)$", program, re.MULTILINE)

    def _answered(self, answer, example):
        shown = json.loads(example.shown)
        if KEY_ID in example.shown:
            self._replaced[KEY_ID] = answer["key"]["id"]
            shown = json.loads(example.shown.replace(KEY_ID, answer["key"]["id"]))
        contains(answer, shown)
        if "idempotency-key" in example.command:
            again = self.types(example.command.replace("curl -s", "curl -si"))
            assert "idempotency-replayed: true" in again
            contains(json.loads(again.splitlines()[-1]), shown)

    def _scrapes(self, configuration):
        """Read the metrics as the configuration of Prometheus says."""
        (job,) = yaml.safe_load(configuration)["scrape_configs"]
        credentials = (self._directory / job["authorization"]["credentials_file"]).read_text().strip()
        ((target,),) = (static["targets"] for static in job["static_configs"])
        headers = {"Authorization": f"Bearer {credentials}"}
        url = f"http://{self._replaced[target]}/metrics"
        answer = httpx.get(url, headers=headers, trust_env=False)
        assert answer.status_code == 200
        assert 'ironlaw_requests_total{operation="create_site",status="2xx"}' in answer.text

    def _works(self):
        process = subprocess.Popen(
            [IRONLAW, *shlex.split(WORK)[1:]],
            cwd=self._directory,
            env=self._variables,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr.readline() == "the schema is current\n"
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode in (0, -signal.SIGTERM)

    def _measures(self):
        """Start the node, and go on once the service has heard of it."""
        with (self._directory / "node.log").open("w") as log:
            self._node = subprocess.Popen(
                [IRONLAW, *shlex.split(NODE)[1:]], cwd=self._directory, env=self._variables, stderr=log
            )
        deadline = time.monotonic() + 60
        while not self._is_reachable():
            assert self._node.poll() is None, (self._directory / "node.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def _leaves(self):
        """End the node that still waits for work."""
        if self._node is not None:
            self._node.terminate()
            assert self._node.wait(timeout=60) == 0, (self._directory / "node.log").read_text()

    def _measured_again(self, example, printed):
        """What is answered once enough is accepted: beside other tests some results are suspect.

        Products that are accepted without the memory answer too, as of a data sheet.
        """
        (run,) = (each.command for each in EXAMPLES if RUN in each.command)
        for times in range(60):
            if "calibrated_node" in printed:
                break
            if times % 15 == 14:
                self.types(run)
            time.sleep(2)
            printed = self.types(example.command)
        return printed

    def _is_reachable(self):
        nodes = httpx.get(f"{self._replaced[ADDRESS]}/v1/nodes", trust_env=False).json()["items"]
        return any(node["reachable"] for node in nodes)


def test_nothing_is_left_out():
    run = {example.command for chapter in CHAPTERS for example in chapter}
    assert {example.command for example in EXAMPLES} == run | MAKE | {e.command for e in ELSEWHERE}
    assert all("curl" in e.command or "ironlaw" in e.command for c in CHAPTERS for e in c[1:])
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{command.split()[1]}: " in makefile for command in MAKE)


@pytest.fixture
def here(request):
    """What stands here for the addresses of a chapter and the token of its caller."""
    command = request.getfixturevalue("chapter")[0].command
    with contextlib.ExitStack() as stack:
        replaced = {}
        if DATABASE in command:
            maker = request.getfixturevalue("databases_of")("postgresql")
            stack.callback(maker.dispose)
            replaced[DATABASE] = shlex.quote(maker.empty().url.render_as_string(hide_password=False))
        if ISSUER in command:
            provider = stack.enter_context(on_loopback(Provider(algorithm="RS256", now=int(time.time()))))
            replaced[ISSUER] = provider.issuer
            replaced["$TOKEN"] = provider.token(tenant="default", scope="openid models:read")
        yield replaced


@pytest.mark.skipif(
    not shutil.which("curl"), reason="left out: the curl commands of the guides (apt install curl)"
)
@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize(
    "chapter", CHAPTERS, ids=[f"{Path(chapter[0].guide).stem}: {chapter[0].title}" for chapter in CHAPTERS]
)
def test_commands(chapter, directory, here):
    start, *following = chapter
    reader = Reader(directory, **here)
    with reader.serves(start.command):
        for example in following:
            if example.language == "sh":
                reader.follows(example)
        reader.runs(example.command for example in following if example.language == "python")


def test_measuring(directory):
    """With a suite that takes a second in place of the one that takes ten."""
    (example,) = MEASURES
    (directory / "suite.json").write_text(suite(benchmarks=1, repeats=1).model_dump_json())
    assert "cpu-quick" in shipped_suites()
    shell(example.command.replace("cpu-quick", "suite.json"), directory, **own_worker(directory))
    summary = json.loads((directory / "measured" / "summary.json").read_text())
    assert summary["benchmarks"][0]["figure"] > 0


@pytest.mark.parametrize(
    ("example", "written"),
    list(
        zip(SCORES, [("scores.txt", "memory by metric"), ("bills.txt", "exact energy_charge")], strict=True)
    ),
)
def test_scores(directory, example, written):
    contains(json.loads(shell(example.command, directory)), json.loads(example.shown))
    file, title = written
    assert title in (directory / file).read_text()


def test_terminal(directory):
    (example,) = TERMINAL
    assert "Memory of a device" in shell(example.command, directory, COLUMNS="120")


def test_diff(directory):
    """Half as much again, by the one setting that changed."""
    (example,) = DIFFS
    told = shell(example.command, directory)
    assert "(+50.0%)" in told.splitlines()[1]
    assert "Within the limit" in told
    assert "/workload/total&#95;tokens" in told


def test_plans(directory):
    """The file is that of the question over HTTP."""
    (asked,) = (example.command for example in EXAMPLES if "cat > plan.json" in example.command)
    (example,) = PLANS
    shell(asked[: asked.index("curl")], directory)
    assert "two nodes in the cellar" in shell(example.command, directory, COLUMNS="120")


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_backups(databases, directory):
    """What was written before is there after a restore, and after the move to PostgreSQL; keys still open."""
    backup, move = (example.command for example in BACKUPS)
    with serving(directory / "data") as server:
        written = server.client.post("/v1/offers", json=BODIES["create_offer"])
        key = server.client.post("/v1/api-keys", json={"name": "kept", "scopes": ["offers:read"]}).json()
        restored = shell(backup, directory)
        assert "  offers\n" in restored
        assert "default: 3 events, valid" in restored
    assert DATABASE in move
    url = databases.empty().url.render_as_string(hide_password=False)
    moved = shell(move.replace(DATABASE, shlex.quote(url)), directory)
    assert "default: 3 events, valid" in moved
    secret = {"IRONLAW_SECRET_KEY_FILE": str(directory / "data" / "secret.key"), "IRONLAW_MODE": "tenant"}
    for place in ({"data_dir": directory / "restored"}, {"data_dir": "", "IRONLAW_DATABASE_URL": url}):
        with serving(**place, **secret) as server:
            headers = {"Authorization": f"Bearer {key['secret']}"}
            assert server.client.get(written.headers["location"], headers=headers).json() == written.json()


def test_containers(directory):
    """The commands for an engine, which is not here: a stand-in notes what it is told."""
    engine = directory / "docker"
    engine.write_text('#!/bin/sh\necho "$*" >>"$CALLS"\n')
    engine.chmod(0o700)
    (directory / "deploy").symlink_to(ROOT / "deploy")
    calls = directory / "calls"
    path = f"{directory}:{os.environ['PATH']}"
    shell("".join(example.command for example in CONTAINERS), directory, PATH=path, CALLS=str(calls))
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert {file.name for file in (directory / "secrets").iterdir()} == composed["secrets"].keys()
    told = [line.split() for line in calls.read_text().splitlines()]
    assert len(told) == 14
    for words in told:
        if words[0] == "volume":
            assert words[2].removeprefix(f"{composed['name']}_") in composed["volumes"]
        elif words != ["compose", "down"]:
            assert words[0] == "compose"
            assert composed["services"].keys() & {word.partition(":")[0] for word in words}
    set_here = {line.partition("=")[0] for line in (directory / ".env").read_text().splitlines()}
    assert set_here <= composed["services"]["api"]["environment"].keys()


def test_the_readme_is_read_in_one_sitting():
    assert len(GUIDES["README.md"].splitlines()) <= 200


def test_settings_are_listed():
    page = GUIDES["docs/guides/settings.md"]
    rows = dict(re.findall(r"^\| `(IRONLAW_(?!WORKER_)\w+)` \| (.*?) ?\| .+ \|$", page, re.MULTILINE))
    fields = {f"IRONLAW_{name.upper()}": field.default for name, field in Settings.model_fields.items()}
    shown = {name: "" if default is None else str(default) for name, default in fields.items()}
    assert rows == {name: f"`{default}`" if default else "" for name, default in shown.items()}


def anchors(page):
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", LINKED)
def test_links_lead_somewhere(name):
    page = ROOT / name
    for target in re.findall(r"\]\((?!http)([^)]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_index_is_complete():
    """A page that the index of the documentation does not name is not found."""
    index = (ROOT / "docs" / "README.md").read_text()
    folders = (ROOT / "docs" / name for name in (".", "guides", "operations"))
    pages = [page for folder in folders for page in folder.glob("*.*")]
    missing = {str(page.relative_to(ROOT / "docs")) for page in pages if page.name != "README.md"}
    assert missing <= set(re.findall(r"\]\(([^)#]+)\)", index))
