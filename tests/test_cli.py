"""The command line, run as a process of its own."""

import json
import signal
import socket
from pathlib import Path

import pytest

from service.app.examples import EXAMPLES, REFERENCE_QUESTION, REFERENCE_SITE
from service.cli.terminal import format_figure, render_bar
from tests.asking import ask
from tests.serving import run, serving

LOOPBACK = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture
def data_dir(tmp_path):
    return tmp_path / "a data directory?"


@pytest.fixture
def asked(tmp_path):
    def write(question):
        path = tmp_path / "a question.json"
        path.write_text(json.dumps(question))
        return path

    return write


class TestEstimate:
    def test_reference_question(self, data_dir, asked):
        out, errors, status = run("estimate", asked(REFERENCE_QUESTION), data_dir=data_dir)
        assert (errors, status) == ("", 0)
        for printed in ("19.66 days", "1,415,571.28 USD", "30,000,000.00 USD", "21.19", "█", "80% interval"):
            assert printed in out
        assert "unknown /electricity/total" in out
        assert not data_dir.exists()

    def test_the_question_on_standard_input(self, data_dir):
        asked = json.dumps({**REFERENCE_QUESTION, "site": REFERENCE_SITE})
        out, _, status = run("estimate", "-", data_dir=data_dir, given=asked)
        assert status == 0
        assert "kg CO2e" in out

    @pytest.mark.parametrize(
        ("operation", "shown"),
        [("memory", "Memory of a device"), ("throughput", "Where the time goes"), ("cost", "total")],
    )
    def test_each_operation_shows_its_figures(self, data_dir, asked, operation, shown):
        example = EXAMPLES[f"estimate_{operation}"]
        out, errors, status = run("estimate", asked(example), "--operation", operation, data_dir=data_dir)
        assert (errors, status) == ("", 0)
        assert shown in out

    @pytest.mark.parametrize("operation", ["memory", "throughput"])
    def test_an_answer_that_does_not_fit_exits_with_3(self, data_dir, asked, operation):
        question = {
            "model": {"source": "catalog", "id": "llama-3.1-405b"},
            "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1},
            "workload": {"kind": "inference", "input_tokens": 128, "output_tokens": 128, "concurrency": 1},
        }
        out, errors, status = run("estimate", asked(question), "--operation", operation, data_dir=data_dir)
        assert (errors, status) == ("", 3)
        assert out

    def test_the_members_tell_the_operation(self, data_dir, asked):
        out, _, _ = run("estimate", asked(EXAMPLES["estimate_memory"]), data_dir=data_dir)
        assert "Memory of a device" in out

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("{", "not JSON"),
            ('{"model": 7}', "/model"),
            (json.dumps({**REFERENCE_QUESTION, "worklod": {}}), "/worklod"),
            (
                json.dumps({**REFERENCE_QUESTION, "model": {"source": "catalog", "id": "x"}}),
                "/model/id: ",
            ),
        ],
    )
    def test_what_is_wrong_is_said_without_a_traceback(self, data_dir, text, said):
        out, errors, status = run("estimate", "-", data_dir=data_dir, given=text)
        assert (out, status) == ("", 1)
        assert said in errors
        assert "Traceback" not in errors

    def test_a_file_that_is_not_there(self, data_dir, tmp_path):
        _, errors, status = run("estimate", tmp_path / "none.json", data_dir=data_dir)
        assert status == 2
        assert "none.json" in errors

    @pytest.mark.enable_socket
    @LOOPBACK
    def test_a_data_directory_is_asked_first(self, data_dir, asked):
        """A row that a user has changed counts at the terminal too."""
        with serving(data_dir) as server:
            copied = server.client.post("/v1/accelerators/h100-sxm:copy", json={})
            assert copied.status_code == 201
            patched = server.client.patch(
                "/v1/accelerators/h100-sxm",
                json={"power_limit_watts": 350.0},
                headers={"If-Match": '"1"'},
            )
            assert patched.status_code == 200
        out, _, status = run("estimate", asked(REFERENCE_QUESTION), data_dir=data_dir)
        assert status == 0
        assert "catalog revision 3" in out
        assert "165,150 kWh" in out


def test_openapi_is_the_committed_file(data_dir):
    out, errors, status = run("openapi", data_dir=data_dir)
    assert (errors, status) == ("", 0)
    assert out == (Path(__file__).parent.parent / "docs" / "openapi.json").read_text()


class TestMigrate:
    def test_embedded(self, data_dir):
        assert run("migrate", data_dir=data_dir)[0].startswith("created the schema; catalog revision 1, ")
        out, _, status = run("migrate", data_dir=data_dir)
        assert (out, status) == ("the schema is current; catalog revision 1, 0 rows changed\n", 0)

    @pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
    def test_postgresql(self, databases, data_dir):
        url = databases.empty().url.render_as_string(hide_password=False)
        _, errors, status = run("serve", data_dir=data_dir, IRONLAW_DATABASE_URL=url, IRONLAW_PORT="0")
        assert status == 1
        assert "run `ironlaw migrate`" in errors
        out, errors, status = run("migrate", data_dir=data_dir, IRONLAW_DATABASE_URL=url)
        assert (errors, status) == ("", 0)
        assert out.startswith("created the schema; catalog revision 1, ")
        assert not (data_dir / "ironlaw.db").exists()


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"IRONLAW_PORT": "70000"}, "IRONLAW_PORT: "),
        ({"IRONLAW_DATABASE_URL": "nonsense"}, "IRONLAW_DATABASE_URL"),
        ({"IRONLAW_DATABASE_URL": "postgresql+psycopg://127.0.0.1:1/none"}, "the database does not answer"),
        ({"IRONLAW_DATA_DIR": "/dev/null/data"}, "/dev/null"),
        ({"IRONLAW_HOST": "0.0.0.0"}, "IRONLAW_MODE=open serves only on loopback"),  # noqa: S104
        ({"IRONLAW_HOST": "::"}, "IRONLAW_MODE=open serves only on loopback"),
        ({"IRONLAW_HOST": "ironlaw.example"}, "IRONLAW_MODE=open serves only on loopback"),
        ({"IRONLAW_MODE": "closed"}, "IRONLAW_MODE"),
        ({"IRONLAW_SECRET_KEY": "short"}, "IRONLAW_SECRET_KEY must have at least 32"),
        ({"IRONLAW_SECRET_KEY_FILE": "/nowhere"}, "/nowhere"),
        ({"IRONLAW_OIDC_ISSUER": "https://issuer.example"}, "IRONLAW_OIDC_AUDIENCE"),
        (
            {
                "IRONLAW_OIDC_ISSUER": "https://issuer.example",
                "IRONLAW_OIDC_AUDIENCE": "ironlaw",
                "IRONLAW_OIDC_ALGORITHMS": "HS256",
            },
            "the algorithms must be among RS256",
        ),
    ],
)
def test_what_an_operator_can_mend_is_one_line(data_dir, variables, said):
    _, errors, status = run("serve", **{"data_dir": data_dir, **variables})
    assert status == 1
    assert errors.startswith("ironlaw: ")
    assert said in errors
    assert errors.count("\n") == 1


@pytest.mark.enable_socket
@LOOPBACK
class TestServe:
    def test_an_empty_directory_is_made_and_what_was_acknowledged_outlives_a_kill(self, data_dir):
        with serving(data_dir, is_prepared=False) as server:
            assert (data_dir / "ironlaw.db").exists()
            created = server.client.post("/v1/offers", json=EXAMPLES["create_offer"])
            assert created.status_code == 201
            server.kill()
        with serving(data_dir) as server:
            kept = server.client.get(created.headers["location"])
            assert kept.json() == created.json()

    def test_a_port_that_is_in_use_is_named_with_its_setting(self, data_dir):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            _, errors, status = run("serve", data_dir=data_dir, IRONLAW_PORT=str(port))
        assert status == 1
        assert f"port {port} of 127.0.0.1 is in use: set IRONLAW_PORT" in errors

    def test_documentation_needs_no_other_host(self, data_dir):
        with serving(data_dir) as server:
            for page in ("/", "/docs", "/docs/operations/estimate_memory"):
                html = server.client.get(page, headers={"accept": "text/html"}).text
                links = [part.split('"')[0] for part in html.split('src="')[1:] + html.split('href="')[1:]]
                assert links
                assert [link for link in links if "://" in link] == []
                for link in links:
                    if not link.startswith("/docs/operations/"):
                        assert server.client.get(link).status_code == 200
            assert server.client.get("/openapi.json").json()["openapi"].startswith("3.1")
            for path in ("/openapi.json", "/docs"):
                _assert_head_is_get_without_its_body(server, path)

    def test_the_reference_question_is_asked_and_answered(self, data_dir):
        with serving(data_dir, "--ask") as server:
            said = ""
            for line in server.process.stdout:
                said += line
                if line.startswith("    -d "):
                    break
            for printed in ("19.66 days", "1,415,571.28 USD", f"Documentation: {server.address}/docs"):
                assert printed in said
            assert server.client.get("/livez").status_code == 204
            command = said.split("Ask the next one:\n")[1].replace("\\\n", "")
            body = json.loads(command.split("-d '")[1].rstrip().rstrip("'"))
            assert server.client.post("/v1/estimates/utility-bill", json=body).status_code == 200

    def test_head_is_get_without_its_body(self, data_dir):
        with serving(data_dir) as server:
            for path in ("/v1/models?page_size=3", "/v1/models/gpt2"):
                _assert_head_is_get_without_its_body(server, path)
            assert server.client.head("/v1/models/nothing").status_code == 404
            refused = server.client.head("/v1/estimates/memory")
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
            assert server.client.delete("/v1/models").headers["allow"] == "GET, HEAD, POST"

    def test_a_port_that_is_taken(self, data_dir):
        with serving(data_dir) as server:
            port = server.address.rpartition(":")[2]
            _, errors, status = run("serve", data_dir=data_dir / "other", IRONLAW_PORT=port)
            assert status == 1
            assert port in errors
            assert "Traceback" not in errors

    def test_it_stops_when_asked(self, data_dir):
        with serving(data_dir) as server:
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(timeout=60) in (0, -signal.SIGTERM)


def _assert_head_is_get_without_its_body(server, path):
    got, headed = server.client.get(path), server.client.head(path)
    assert (headed.status_code, headed.content) == (200, b"")
    assert headed.headers["content-length"] == got.headers["content-length"]


def test_planning_answers_alike_at_the_terminal_and_in_process(snapshot, data_dir, asked):
    """The printed device-hours are those of the answer."""
    hours = ask(snapshot, "utility-bill", REFERENCE_QUESTION)["device_hours"]["value"]
    out, _, _ = run("estimate", asked(REFERENCE_QUESTION), data_dir=data_dir)
    assert format_figure(hours) in out


@pytest.mark.parametrize(
    ("share", "drawn"), [(0.0, ""), (1.0, "████"), (0.5, "██"), (0.53125, "██▏"), (2.0, "████"), (-1.0, "")]
)
def test_bars(share, drawn):
    assert render_bar(share, 4) == drawn


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567.8, "1,234,568"), (0.012345, "0.01235"), (8.4e23, "8.4e+23"), (999.9, "999.9")],
)
def test_figures(value, text):
    assert format_figure(value) == text
