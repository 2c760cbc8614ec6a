"""The commands of a worker, as a user gives them, with and without the server."""

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import venv
from pathlib import Path

import httpx
import pytest
from typer.main import get_command

from service.worker.agent import REFUSED, WITHOUT_WORK
from service.worker.cli import app
from service.worker.state_directory import lock_host
from tests.serving import IRONLAW, environment, run
from tests.waiting import until
from tests.worker.base import BASE, ROOT, link_base, server_modules
from tests.worker.fake import API_KEY, NODE_ID, FakeService, secret
from tests.worker.loopback import serving
from tests.worker.records import suite

LOOPBACK = pytest.mark.allow_hosts(["127.0.0.1"])
TOKEN = "right"  # noqa: S105
SETTINGS = (ROOT / "docs" / "guides" / "settings.md").read_text()


@pytest.fixture
def own(tmp_path):
    """Settings of a worker of this test's own."""
    return {
        "data_dir": tmp_path / "data",
        "IRONLAW_WORKER_DIR": str(tmp_path / "worker"),
        "IRONLAW_WORKER_LOCK_FILE": str(tmp_path / "lock"),
        "PYTHONPATH": str(ROOT),
    }


BLOCKED = """
import contextlib, io, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from service.cli.main import main
for words in json.loads(sys.argv[1]):
    sys.argv, status = ["ironlaw", *words], 0
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as ended:
            status = ended.code
    print(json.dumps([status, out.getvalue(), errors.getvalue()]))
"""


def without_server(*commands, **variables):
    """Status, output and errors of each command, in one process without the modules of the server."""
    script = BLOCKED.format(modules=set(server_modules()))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "COLUMNS": "100", **variables}
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(commands)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


class TestWithoutServer:
    def test_what_is_blocked_is_what_only_the_server_needs(self):
        blocked = set(server_modules())
        assert {"fastapi", "sqlalchemy", "pydantic_settings", "uvicorn", "psycopg", "alembic"} <= blocked
        assert not blocked & {"httpx", "numpy", "pydantic", "rich", "typer"}

    def test_help(self):
        commands = [["--help"], ["worker", "--help"], ["worker", "run", "--help"]]
        for status, out, errors in without_server(*commands):
            assert (status, errors) == (0, "")
            assert "worker" in out

    def test_a_worker_that_is_not_enrolled_says_so(self, tmp_path):
        done = without_server(["worker", "run"], IRONLAW_WORKER_DIR=str(tmp_path / "worker"))
        assert done == [(1, "", "ironlaw: this host is not enrolled; run: ironlaw worker enrol\n")]

    def test_commands_of_the_server_say_how_to_install_it(self, tmp_path):
        commands = [
            "serve",
            "migrate",
            "openapi",
            "estimate /dev/null",
            "keys create --admin",
            "tenants create x --name x",
            "audit verify",
            "backup x",
            "restore x",
            "worker background",
        ]
        done = without_server(*map(str.split, commands), IRONLAW_DATA_DIR=str(tmp_path))
        for words, (status, out, errors) in zip(commands, done, strict=True):
            assert (status, out) == (2, ""), words
            assert errors.count("\n") == 1, words
            assert "ironlaw[server]" in errors, words


@pytest.mark.enable_socket
@LOOPBACK
def test_a_worker_works_where_only_the_package_is_installed(tmp_path):
    """In a new environment that holds the package and its own requirements, nothing of the extras."""
    folder = tmp_path / "a host"
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/*/site-packages")
    link_base(packages)
    assert len(BASE) < 30
    command = [folder / "bin" / "python", "-c", "from service.cli.main import main; main()"]
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "IRONLAW_WORKER_LOCK_FILE": str(tmp_path / "lock"),
    }

    def ironlaw(*words, **variables):
        return subprocess.run(
            [*command, *words],
            env={**own, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert "ironlaw[server]" in ironlaw("serve").stderr
    fake = FakeService(suite(benchmarks=1, repeats=1))
    fake.waiting = 1
    with serving(fake) as address:
        enrolled = ironlaw("worker", "enrol", "--service", address, IRONLAW_ENROLMENT_TOKEN=TOKEN)
        assert enrolled.returncode == 0, enrolled.stderr
        worker = subprocess.Popen([*command, "worker", "run"], env=own, stderr=subprocess.PIPE, text=True)
        try:
            until(lambda: fake.completions)
        finally:
            worker.terminate()
            _, said = worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert "Traceback" not in said
    (stored,) = fake.results.values()
    assert stored[1].node_id == NODE_ID


@pytest.mark.enable_socket
@LOOPBACK
class TestEnrol:
    @pytest.mark.parametrize("way", ["file", "standard input", "variable"])
    def test_the_token_comes_from_anywhere_but_the_command_line(self, own, tmp_path, way):
        fake = FakeService()
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        with serving(fake) as address:
            words = ["worker", "enrol", "--service", address, "--device", "cpu", "--name", "rack-1"]
            given = {
                "file": {"words": ["--token-file", str(tmp_path / "token")]},
                "standard input": {"words": ["--token-file", "-"], "given": f"{TOKEN}\n"},
                "variable": {"words": [], "IRONLAW_ENROLMENT_TOKEN": TOKEN},
            }[way]
            out, errors, status = run(*words, *given.pop("words"), **own, **given)
        assert (errors, status) == ("", 0)
        assert NODE_ID in out
        assert (fake.enrolment.name, fake.enrolment.device) == ("rack-1", "cpu")
        folder = tmp_path / "worker"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert secret(1) in (folder / "credential.json").read_text()
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
        assert TOKEN not in "".join(path.read_text() for path in folder.iterdir())

    def test_no_option_takes_a_secret(self):
        options = {
            name for command in get_command(app).commands.values() for p in command.params for name in p.opts
        }
        assert "--service" in options
        assert not [name for name in options if re.search("secret|credential|password|token$", name)]

    def test_after_a_lost_answer_it_is_the_same_node(self, own):
        fake = FakeService()
        ids = []

        def lost(request):
            ids.append(json.loads(request.content)["installation_id"])
            raise ConnectionResetError

        fake.faults["nodes:enrol"] = [lost]
        with serving(fake) as address:
            words = ["worker", "enrol", "--service", address, "--device", "cpu"]
            _, errors, status = run(*words, **own, IRONLAW_ENROLMENT_TOKEN=TOKEN)
            assert status == 1
            assert errors.startswith("ironlaw: http://127.0.0.1")
            assert "safe to repeat" in errors
            assert run(*words, **own, IRONLAW_ENROLMENT_TOKEN=TOKEN)[2] == 0
        assert fake.enrolment.installation_id == ids[0]

    def test_once_enrolled_only_again(self, own):
        fake = FakeService()
        with serving(fake) as address:
            words = ["worker", "enrol", "--service", address, "--device", "cpu"]
            assert run(*words, **own, IRONLAW_ENROLMENT_TOKEN=TOKEN)[2] == 0
            first = fake.enrolment.installation_id
            _, errors, status = run(*words, **own, IRONLAW_ENROLMENT_TOKEN=TOKEN)
            assert (status, "--again" in errors) == (1, True)
            assert run(*words, "--again", **own, IRONLAW_ENROLMENT_TOKEN=TOKEN)[2] == 0
        assert fake.enrolment.installation_id == first, "it is the node that it was"

    def test_many_hosts_share_an_api_key_and_enrol_as_often_as_they_start(self, own, tmp_path):
        fake = FakeService()
        (tmp_path / "key").write_text(f"{API_KEY}\n")
        with serving(fake) as address:
            words = [
                "worker",
                "enrol",
                "--service",
                address,
                "--if-none",
                "--key-file",
                str(tmp_path / "key"),
            ]
            out, errors, status = run(*words, **own)
            assert (errors, status) == ("", 0)
            assert NODE_ID in out
            assert run(*words, **own) == ("", "this host is already enrolled\n", 0)
        assert [path for _, path, _ in fake.log] == ["/v1/enrolment-tokens", "/v1/nodes:enrol"]
        folder = tmp_path / "worker"
        assert API_KEY not in "".join(path.read_text() for path in folder.iterdir())

    def test_a_key_that_may_not_is_said_without_it(self, own, tmp_path):
        (tmp_path / "key").write_text(API_KEY.replace("b", "c"))
        with serving(FakeService()) as address:
            words = ["worker", "enrol", "--service", address, "--key-file", str(tmp_path / "key")]
            _, errors, status = run(*words, **own)
        assert status == 1
        assert errors.startswith("ironlaw: no enrolment token was created: 403 FORBIDDEN")
        assert "cccc" not in errors

    @pytest.mark.parametrize(
        ("token", "said"),
        [
            ("wrong", "the enrolment token is not accepted"),
            ("a b", "the enrolment token is not valid"),
            ("", "an enrolment token is required"),
        ],
    )
    def test_what_is_wrong_is_said_without_the_token(self, own, token, said):
        with serving(FakeService()) as address:
            words = ["worker", "enrol", "--service", address, "--device", "cpu"]
            _, errors, status = run(*words, **own, IRONLAW_ENROLMENT_TOKEN=token)
        assert status in (1, 2)
        assert said in errors
        assert "Traceback" not in errors
        assert "wrong" not in errors

    @pytest.mark.parametrize(
        "address", ["http://ironlaw.example", "https://user:pass@ironlaw.example", "nonsense"]
    )
    def test_a_token_goes_by_https_or_nowhere(self, own, address):
        words = ["worker", "enrol", "--service", address, "--device", "cpu"]
        _, errors, status = run(*words, **own, IRONLAW_ENROLMENT_TOKEN=TOKEN)
        assert status == 1
        assert "https" in errors
        assert "pass@" not in errors


@pytest.mark.enable_socket
@LOOPBACK
class TestRun:
    @pytest.fixture(autouse=True)
    def enrolled(self, own):
        fake = FakeService(suite(benchmarks=1, repeats=1))
        with serving(fake) as address:
            words = ["worker", "enrol", "--service", address, "--device", "cpu"]
            assert run(*words, **own, IRONLAW_ENROLMENT_TOKEN=TOKEN)[2] == 0
            yield fake

    def test_two_workers_of_a_host_do_not_both_run(self, own):
        descriptor = lock_host(Path(own["IRONLAW_WORKER_LOCK_FILE"]))
        try:
            _, errors, status = run("worker", "run", **own)
            assert status == 1
            assert "another worker of this host" in errors
            out, _, _ = run("worker", "status", **own)
            assert "worker    runs" in out
        finally:
            os.close(descriptor)
        out, _, status = run("worker", "status", **own)
        assert status == 0
        assert f"node      {NODE_ID} of http://127.0.0.1" in out
        assert "worker    does not run" in out

    def test_a_credential_that_others_may_read_is_refused(self, own):
        (Path(own["IRONLAW_WORKER_DIR"]) / "credential.json").chmod(0o644)
        _, errors, status = run("worker", "run", **own)
        assert status == 1
        assert "open to others" in errors
        assert secret(1) not in errors

    def test_once_it_ends_after_one_suite(self, own, enrolled):
        enrolled.waiting = 2
        _, errors, status = run("worker", "run", "--once", **own)
        assert (status, "Traceback" in errors) == (0, False)
        assert [completion.outcome for completion in enrolled.completions] == ["completed"]
        assert len(enrolled.results) == 1
        assert enrolled.waiting == 1

    def test_once_it_ends_with_a_reason_where_the_credential_is_refused(self, own, enrolled):
        enrolled.is_revoked = True
        _, errors, status = run("worker", "run", "--once", **own)
        assert (status, "Traceback" in errors) == (1, False)
        assert errors.endswith(f"ironlaw: {REFUSED}\n")

    def test_once_it_ends_with_a_reason_where_the_node_is_quarantined(self, own, enrolled):
        enrolled.state, enrolled.waiting = "quarantined", 1
        enrolled.faults["leases:claim"] = [httpx.Response(204)] * 100
        _, errors, status = run("worker", "run", "--once", **own)
        assert (status, "Traceback" in errors) == (1, False)
        assert errors.endswith(f"ironlaw: {WITHOUT_WORK.format('quarantined')}\n")
        assert enrolled.waiting == 1

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_it_stops_when_asked_and_neither_log_nor_command_line_holds_a_secret(self, own, enrolled, number):
        with worker(own) as process:
            until(lambda: enrolled.heartbeats and enrolled.request_ids)
            arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 0
        assert secret(1).encode() not in arguments
        assert secret(1) not in said
        assert "Traceback" not in said


@contextlib.contextmanager
def worker(own):
    process = subprocess.Popen(
        [IRONLAW, "worker", "run"],
        env=environment(**own),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


class TestMeasure:
    @pytest.fixture
    def asked(self, tmp_path):
        path = tmp_path / "suite.json"
        path.write_text(suite(benchmarks=1, repeats=2).model_dump_json())
        return path

    def test_records_a_table_and_a_summary(self, own, asked, tmp_path):
        _, errors, status = run(
            "worker", "measure", "--suite", asked, "--out", tmp_path / "out", "--seed", 7, **own
        )
        assert status == 0, errors
        summary = json.loads((tmp_path / "out" / "summary.json").read_text())
        assert (summary["suite_id"], summary["seed"]) == ("tiny", 7)
        (benchmark,) = summary["benchmarks"]
        assert benchmark["lowest"] <= benchmark["figure"] <= benchmark["highest"]
        assert [repeat["status"] for repeat in benchmark["repeats"]] == ["ok", "ok"]
        records = sorted(path.name for path in (tmp_path / "out" / "records").iterdir())
        assert records == ["gemm.0-1.json", "gemm.0-2.json"]
        assert re.search(r"gemm\.0 +2/2 +done +[\d.]+ [MG]FLOP/s, repeats within", errors)
        again = run("worker", "measure", "--suite", asked, "--out", tmp_path / "out", **own)
        assert again[2] == 1
        assert "name another folder" in again[1]

    def test_a_suite_that_there_is_not(self, own, tmp_path):
        _, errors, status = run("worker", "measure", "--suite", "none", "--out", tmp_path / "out", **own)
        assert status == 2
        assert "cpu-quick" in errors
        (tmp_path / "suite.json").write_text('{"id": "x"}')
        _, errors, status = run(
            "worker", "measure", "--suite", tmp_path / "suite.json", "--out", tmp_path / "out", **own
        )
        assert status == 1
        assert "contains no suite" in errors


def test_settings_are_listed():
    rows = dict(re.findall(r"^\| `(IRONLAW_WORKER_\w+)` \| (.*?) ?\| .+ \|$", SETTINGS, re.MULTILINE))
    shown = {}
    for command in get_command(app).commands.values():
        for parameter in command.params:
            if parameter.envvar:
                shown[parameter.envvar] = "" if parameter.default is None else f"`{parameter.default}`"
    assert rows == shown
