"""`ironlaw diff`: what changed questions cost, by which setting, as a comment nobody can write into."""

import json
from contextlib import nullcontext
from decimal import Decimal
from functools import partial

import httpx
import pytest
from typer.testing import CliRunner

from service.cli import plan as plan_cli
from service.cli.diff_figures import compute_difference
from service.cli.diff_markdown import MARKER, MOST_CHARACTERS, format_code, render_markdown
from service.cli.diff_questions import (
    FileQuestion,
    UnreadableFileError,
    apply_settings,
    detect_operation,
    list_changed_settings,
    list_pairs,
)
from service.cli.main import app
from tests.asking import shipped
from tests.test_plan_cli import QUESTION as PLAN

MODEL = {"source": "parameter_count", "parameter_count": 8_000_000_000}
CLUSTER = {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 64}
COST = {
    "model": MODEL,
    "workload": {"kind": "training", "sequence_length": 4096, "total_tokens": 1_000_000_000_000},
    "cluster": CLUSTER,
    "efficiency": {"source": "assumed", "utilization": 0.5},
    "rental": {"price_per_device_hour": {"amount": "3", "currency_code": "USD"}},
}
OWNED = {
    **{name: value for name, value in COST.items() if name != "rental"},
    "purchase": {
        "price_per_device": {"amount": "30000", "currency_code": "USD"},
        "ownership": {"years": 4.0},
    },
    "site": {"pue": 1.2, "electricity": {"price_per_kwh": {"amount": "0.1", "currency_code": "USD"}}},
}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Two directories of questions, and the command on them with the shipped catalog."""
    monkeypatch.setattr(plan_cli, "load_local_catalog", shipped)
    (tmp_path / "base").mkdir()
    (tmp_path / "head").mkdir()

    def asked(base, head, *options):
        for side, files in (("base", base), ("head", head)):
            for name, question in files.items():
                path = tmp_path / side / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(question if isinstance(question, str) else json.dumps(question))
        return CliRunner().invoke(app, ["diff", str(tmp_path / "base"), str(tmp_path / "head"), *options])

    return asked


@pytest.fixture
def answered(repository):
    def told(base, head, *options):
        done = repository(base, head, "--format", "json", *options)
        return json.loads(done.stdout), done.exit_code

    return told


def figure(file, name):
    return next(each for each in file["figures"] if each["name"] == name)


def moved(question, **members):
    """A question with members of its objects changed, by their path."""
    document = json.loads(json.dumps(question))
    for path, value in members.items():
        *way, last = path.split("__")
        place = document
        for step in way:
            place = place[step]
        place[last] = value
    return document


class TestTheFigures:
    def test_of_one_changed_setting(self, answered):
        """Twice the tokens take twice the time and the rent: 6 N D / (64 x 989e12 x 0.5) seconds."""
        found, status = answered(
            {"a.json": COST}, {"a.json": moved(COST, workload__total_tokens=2_000_000_000_000)}
        )
        (file,) = found["files"]
        seconds = 6 * 8e9 * 1e12 / (64 * 989e12 * 0.5)
        time, total = figure(file, "duration_seconds"), figure(file, "total")
        assert status == 0
        assert file["operation"] == "cost"
        assert time["before"]["value"] == pytest.approx(seconds, rel=1e-3)
        assert time["ratio"] == pytest.approx(2.0)
        assert Decimal(total["difference"]) == pytest.approx(
            Decimal(seconds * 64 / 3600 * 3), rel=Decimal("0.001")
        )
        assert total["is_beyond_intervals"] is True
        (setting,) = file["settings"]
        assert setting == {
            "pointer": "/workload/total_tokens",
            "before": 1_000_000_000_000,
            "after": 2_000_000_000_000,
        }
        assert "causes" not in file
        (sums,) = found["totals"]
        assert Decimal(sums["difference"]) == Decimal(total["difference"])

    def test_settings_that_change_together(self, answered):
        """Twice the tokens double the cost, half the price halves it: together nothing, by interplay."""
        after = moved(
            COST, workload__total_tokens=2_000_000_000_000, rental__price_per_device_hour__amount="1.5"
        )
        found, _ = answered({"a.json": COST}, {"a.json": after})
        (file,) = found["files"]
        before = Decimal(figure(file, "total")["before"]["amount"])
        alone = {
            cause["pointers"][0]: {each["name"]: each for each in cause["figures"]}
            for cause in file["causes"]
        }
        tokens, price = alone["/workload/total_tokens"], alone["/rental/price_per_device_hour/amount"]
        assert Decimal(tokens["total"]["difference"]) == pytest.approx(before, abs=Decimal("0.02"))
        assert Decimal(price["total"]["difference"]) == pytest.approx(-before / 2, abs=Decimal("0.02"))
        assert set(price) == {"total"}
        rest = {each["name"]: each["difference"] for each in file["interplay"]}
        assert Decimal(rest["total"]) == pytest.approx(-before / 2, abs=Decimal("0.02"))
        assert file["untried"] == []

    def test_settings_that_only_make_sense_together(self, answered):
        """An account of tokens that becomes one of steps: neither change alone is a question."""
        workload = {"kind": "training", "sequence_length": 4096, "global_batch_size": 256}
        before = {**COST, "workload": {**workload, "total_tokens": 1_048_576_000}}
        after = {**COST, "workload": {**workload, "total_steps": 2000}}
        (file,) = answered({"a.json": before}, {"a.json": after})[0]["files"]
        (cause,) = file["causes"]
        assert cause["pointers"] == ["/workload/total_tokens", "/workload/total_steps"]
        assert figure(cause, "duration_seconds")["ratio"] == pytest.approx(2.0)

    def test_electricity_of_own_devices_is_part_of_the_cost(self, answered):
        dearer = moved(OWNED, site__electricity__price_per_kwh__amount="0.2")
        (file,) = answered({"a.json": OWNED}, {"a.json": dearer})[0]["files"]
        energy = figure(file, "facility_kwh")["after"]["value"]
        more = Decimal(figure(file, "total")["difference"])
        assert more == pytest.approx(Decimal(energy) / 10, rel=Decimal("0.0001"))

    def test_files_that_come_and_go(self, answered):
        found, status = answered({"gone.json": COST}, {"deep/new.json": COST, "new.json": COST})
        changes = {file["file"]: file["change"] for file in found["files"]}
        assert changes == {"deep/new.json": "added", "gone.json": "removed", "new.json": "added"}
        (sums,) = found["totals"]
        assert Decimal(sums["after"]) == 2 * Decimal(sums["before"])
        assert (status, found["unknown"]) == (0, [])

    def test_of_a_plan(self, answered):
        faster = moved(PLAN, workload__total_tokens=2_000_000_000)
        (file,) = answered({"a.json": PLAN}, {"a.json": faster})[0]["files"]
        assert file["operation"] == "plan"
        assert figure(file, "duration_seconds")["ratio"] == pytest.approx(2.0, rel=0.01)
        assert figure(file, "supply")["after"] == "our nodes"
        assert figure(file, "accelerators")["after"] == "16 x h100-sxm"

    def test_a_plan_that_finds_nothing_is_refused(self, answered):
        nothing = {**PLAN, "constraints": {"duration_seconds": 1.0}}
        found, status = answered({"a.json": PLAN}, {"a.json": nothing})
        assert found["files"][0]["refused"] == {"after": ["no configuration satisfies the constraints"]}
        assert (found["unknown"], status) == (["a.json"], 1)

    def test_a_body_of_a_quote_says_which_question_it_is(self, answered):
        body = {"operation": "utility-bill", "name": "ours", "request": COST}
        found, _ = answered({}, {"a.json": body})
        assert found["files"][0]["operation"] == "utility-bill"

    def test_layout_of_the_file_is_no_change(self, answered):
        found, status = answered({"a.json": COST}, {"a.json": json.dumps(COST, indent=4)})
        assert (found["files"], status) == ([], 0)


class TestLimits:
    @pytest.mark.parametrize(
        ("limit", "status"), [("99%", 3), ("101%", 0), ("1 USD", 3), ("9000000 USD", 0), ("9000000 EUR", 3)]
    )
    def test_of_cost(self, answered, limit, status):
        """Twice the cost is 100% more; of another currency nothing is known but that it is more."""
        twice = moved(COST, workload__total_tokens=2_000_000_000_000)
        found, told = answered({"a.json": COST}, {"a.json": twice}, "--fail-above", limit)
        assert told == status
        assert found["exceeds"] == (status == 3)

    def test_a_cost_that_is_not_known_is_above_any(self, answered):
        unknown = {**COST, "starts_at": "2027-01-01T00:00:00Z"}
        del unknown["rental"]
        found, status = answered({"a.json": COST}, {"a.json": unknown}, "--fail-above", "1000%")
        assert (found["unknown"], status) == (["a.json"], 3)
        assert "after" not in figure(found["files"][0], "total")

    def test_no_limit(self, repository):
        told = repository({}, {}, "--fail-above", "lots")
        assert told.exit_code == 2
        assert "--fail-above" in told.stderr


class TestFiles:
    def test_one_that_is_refused(self, repository):
        told = repository({"a.json": COST}, {"a.json": {**COST, "wishes": 3}})
        assert told.exit_code == 1
        assert told.stdout.splitlines()[1] == "### Capacity: 1 unknown"
        assert "No answer after the change: " in told.stdout
        assert "/wishes" in told.stdout

    @pytest.mark.parametrize("text", ["{", "[]", "9" * 5000])
    def test_one_that_is_no_question(self, repository, text):
        told = repository({}, {"a.json": text})
        assert told.exit_code == 1
        assert "a.json: the file is not " in told.stderr

    def test_links_are_not_followed(self, tmp_path):
        secret = tmp_path / "secret.json"
        secret.write_text(json.dumps({"password": "s3cret"}))
        (tmp_path / "head").mkdir()
        (tmp_path / "head" / "a.json").symlink_to(secret)
        (tmp_path / "head" / "all").symlink_to(tmp_path)
        assert list(list_pairs(tmp_path / "base", tmp_path / "head")) == []

    def test_a_link_in_place_of_the_directory_is_refused(self, tmp_path):
        (tmp_path / "base").mkdir()
        (tmp_path / "head").symlink_to("/")
        with pytest.raises(UnreadableFileError, match="head: links are not"):
            list(list_pairs(tmp_path / "base", tmp_path / "head"))

    def test_two_that_are_not_there(self, tmp_path):
        with pytest.raises(UnreadableFileError, match="neither"):
            list(list_pairs(tmp_path / "base", tmp_path / "head"))

    def test_two_files(self, tmp_path):
        (tmp_path / "old.json").write_text(json.dumps(COST))
        (pair,) = list_pairs(tmp_path / "none.json", tmp_path / "old.json")
        assert pair == ("old.json", None, FileQuestion("cost", COST))

    @pytest.mark.parametrize(
        ("members", "operation"),
        [
            ({"model": 1, "workload": 1}, "memory"),
            ({"model": 1, "efficiency": 1}, "throughput"),
            ({"model": 1, "storage": 1}, "cost"),
            ({"model": 1, "site": 1, "rental": 1}, "utility-bill"),
            ({"model": 1, "goal": "cheapest", "site": 1}, "plan"),
        ],
    )
    def test_the_narrowest_question_is_asked(self, members, operation):
        assert detect_operation(members) == operation


class TestSettings:
    def test_all_together_are_the_whole_change(self):
        before = {"a": [1, {"b": 2}], "c": True, "d": {"kind": "x", "e": 1}, "g": [1]}
        after = {"a": [1, {"b": 3}], "c": 1, "d": {"kind": "y", "e": 1}, "f": {"h": 1}, "g": [1, 2]}
        changes = list_changed_settings(before, after)
        assert [change.pointer for change in changes] == ["/a/1/b", "/c", "/d", "/g", "/f"]
        assert apply_settings(before, changes) == after
        assert before["a"] == [1, {"b": 2}]

    def test_intervals_that_meet_are_no_sure_difference(self):
        old = {"value": 10.0, "low": 9.0, "high": 12.0}
        for new, beyond in (
            ({"value": 13.0, "low": 12.0, "high": 15.0}, False),
            (dict(old, low=12.1, high=13.0), True),
        ):
            assert compute_difference("step_seconds", old, new)["is_beyond_intervals"] is beyond


class TestARunningService:
    @pytest.fixture
    def service(self, client, monkeypatch):
        """The command asks the service that the test asks."""

        def connected(*, headers, **_):
            client.headers = headers
            return nullcontext(client)

        monkeypatch.setattr(httpx, "Client", connected)
        return client

    @pytest.mark.parametrize("base", [{}, {"plan.json": PLAN}], ids=["new", "changed"])
    def test_nothing_stays_there(self, repository, service, base):
        """Quotes are only checked, and plans are deleted once their answer is had."""
        before = service.get("/v1/audit-events").json()["items"]
        tokens = 2 * PLAN["workload"]["total_tokens"]
        head = {"plan.json": moved(PLAN, workload__total_tokens=tokens), "cost.json": COST}
        told = repository(base, head, "--url", "https://ironlaw.test", "--format", "json")
        assert told.exit_code == 0, told.stderr
        assert {file["change"] for file in json.loads(told.stdout)["files"]} == (
            {"added", "changed"} if base else {"added"}
        )
        for collection in ("plans", "quotes"):
            assert service.get(f"/v1/{collection}").json()["items"] == []
        events = service.get("/v1/audit-events?page_size=100").json()["items"][: -len(before)]
        operations = [event["operation"] for event in reversed(events)]
        assert operations == ["create_plan", "delete_plan"] * (len(operations) // 2)
        assert operations

    def test_a_plan_that_fails_does_not_stay_either(self, repository, monkeypatch):
        plan = {"id": "0" * 32, "state": "failed", "error_summary": "the catalog changed too often"}
        answers = [(202, plan), (204, None)]
        asked = []

        def respond(request):
            asked.append((request.method, request.url.path))
            status, body = answers.pop(0)
            return httpx.Response(status, json=body)

        transport = httpx.MockTransport(respond)
        monkeypatch.setattr(httpx, "Client", partial(httpx.Client, transport=transport))
        told = repository({}, {"plan.json": PLAN}, "--url", "https://ironlaw.test")
        assert told.exit_code == 1
        assert "the catalog changed too often" in told.stdout
        assert asked == [("POST", "/v1/plans"), ("DELETE", f"/v1/plans/{'0' * 32}")]


class TestTheComment:
    def test_is_found_again_and_says_what_matters(self, repository):
        after = moved(COST, workload__total_tokens=2_000_000_000_000)
        told = repository({"a.json": COST}, {"a.json": after}, "--fail-above", "10%").stdout
        assert told.startswith(f"{MARKER}\n### Capacity: +")
        assert "(+100.0%)" in told.splitlines()[1]
        assert "**Above the limit of 10 &#37; more.**" in told
        assert "| <code>/workload/total&#95;tokens</code> | <code>1000000000000</code> |" in told

    def test_of_no_change(self, repository):
        assert (
            repository({"a.json": COST}, {"a.json": COST}).stdout
            == f"{MARKER}\n### Capacity: no question changed\n"
        )

    def test_nobody_writes_into_it(self, repository):
        name = "a`|@octocat <img src=x> [x](http://x) _b_\n# c.json"
        hostile = {**COST, "currency_code": "</code> | @octocat | <script>"}
        told = repository({name: COST}, {name: hostile}).stdout
        for mark in ("@octocat", "<img", "](", "<script", "http:", "\n# c", "`"):
            assert mark not in told, mark
        rows = [line for line in told.splitlines() if line.startswith("| <code>a")]
        assert rows[0].count("|") == 6

    def test_is_cut_to_what_is_taken(self):
        figures = [{"name": "layout", "before": "a" * 90, "after": str(place)} for place in range(30)]
        files = [{"file": f"{place}.json", "change": "changed", "figures": figures} for place in range(100)]
        told = render_markdown({"files": files, "totals": [], "unknown": []})
        assert len(told) <= MOST_CHARACTERS + 1
        assert "more files are left out" in told
        assert told.count("<details>") == told.count("</details>")

    def test_long_texts_are_cut(self):
        assert format_code("x" * 300) == f"<code>{'x' * 97}...</code>"
