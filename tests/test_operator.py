"""What an operator does at the command line: keys, the audit, and a secret that must stay the same."""

import json
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.app import application
from service.app.key_file import KeyFile, KeyFileRefused
from service.app.operator import NOTICED_SECONDS, KeyExists, Operator
from service.app.settings import Settings
from service.audit.service import Writes
from service.auth.repository import list_live_keys
from service.kit.security.credentials import API_KEY, generate_id, is_well_formed, mint_credential
from tests.applications import KEYRING
from tests.auth.test_keys import parse_id
from tests.prepared import fill_directory
from tests.serving import run, serving
from tests.waiting import until

PRICES = Path(__file__).parent / "data/offers/aws-vms-v8-excerpt.csv"
LOOPBACK = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture
def data_dir(tmp_path):
    path = tmp_path / "data"
    fill_directory(path)
    return path


def cut_short(*_):
    """The end of a process in the middle of what it does."""
    raise KeyboardInterrupt


def test_a_key_needs_a_database(tmp_path):
    _, errors, status = run("keys", "create", "--admin", data_dir=tmp_path)
    assert (status, errors.count("\n")) == (1, 1)
    assert "ironlaw migrate" in errors


@pytest.mark.enable_socket
@LOOPBACK
def test_the_first_key_opens_and_a_revoked_one_closes_at_the_next_look(data_dir):
    key, errors, status = run("keys", "create", "--admin", data_dir=data_dir)
    assert (errors, status) == ("", 0)
    key = key.strip()
    headers = {"Authorization": f"Bearer {key}"}
    with serving(data_dir, IRONLAW_MODE="tenant") as server:
        assert server.client.get("/v1/tenants").status_code == 401
        assert server.client.get("/v1/tenants", headers=headers).json()["items"][0]["id"] == "default"
        assert b"ironlaw_requests_total" in server.client.get("/metrics", headers=headers).content
        assert run("keys", "revoke", parse_id(key), data_dir=data_dir)[2] == 0
        until(lambda: server.client.get("/v1/tenants", headers=headers).status_code == 401)


def test_a_process_looks_twice_in_the_time_in_which_it_notices_a_revocation():
    assert 2 * application._POLL_SECONDS <= NOTICED_SECONDS


def test_one_key_is_enough_where_one_is_asked_for(data_dir):
    first = run("keys", "create", "--admin", "--if-none", data_dir=data_dir)
    again = run("keys", "create", "--admin", "--if-none", data_dir=data_dir)
    assert parse_id(first[0].strip())
    assert again == ("", "a key exists already\n", 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create"], "a key without scopes opens nothing"),
        (["create", "--scope", "everything"], "scopes.0: String should match"),
        (["create", "--admin", "--tenant", "nobody"], "there is no tenant of this id"),
        (["revoke", "aaaaaaaaaaaaaaaa"], "There is no live key of this id"),
    ],
)
def test_what_is_wrong_is_one_line(data_dir, arguments, said):
    out, errors, status = run("keys", *arguments, data_dir=data_dir)
    assert (out, status) == ("", 1)
    assert said in errors
    assert errors.count("\n") == 1


def test_the_audit_is_verified_and_what_was_changed_is_found(data_dir):
    for _ in range(2):
        run("keys", "create", "--scope", "models:read", data_dir=data_dir)
    out, errors, status = run("audit", "verify", data_dir=data_dir)
    assert (errors, status) == ("", 0)
    assert out.startswith("default: 3 events, valid, head ")
    with sqlite3.connect(data_dir / "ironlaw.db") as database:
        database.execute("UPDATE audit_events SET resource = 'other' WHERE sequence = 2")
    database.close()
    out, _, status = run("audit", "verify", data_dir=data_dir)
    assert status == 1
    assert out.startswith("default: 1 events, BROKEN at event 2: EVENT_CHANGED")


def test_a_key_with_other_scopes_and_a_tenant_that_is_gone_are_found(data_dir):
    run("keys", "create", "--scope", "models:read", data_dir=data_dir)
    run("tenants", "create", "gone", "--name", "Gone", data_dir=data_dir)
    assert run("audit", "verify", data_dir=data_dir)[2] == 0
    with sqlite3.connect(data_dir / "ironlaw.db") as database:
        database.execute("""UPDATE api_keys SET scopes = '["*:*"]'""")
        for table in ("tenants", "audit_events", "audit_heads"):
            database.execute(f"DELETE FROM {table} WHERE tenant_id = 'gone'")
    database.close()
    out, _, status = run("audit", "verify", data_dir=data_dir)
    assert status == 1
    assert "default: api-keys/" in out
    assert "system: registered-tenants/gone differs from its audit record: MISSING" in out


def test_exported_heads_show_a_database_that_was_put_back(data_dir, tmp_path):
    run("keys", "create", "--scope", "models:read", data_dir=data_dir)
    out, _, _ = run("audit", "verify", data_dir=data_dir)
    events, head = out.split(" events")[0].split()[-1], out.splitlines()[0].rpartition(" ")[2]
    file = tmp_path / "heads"
    exported = [{"tenant_id": "default", "sequence": int(events) + number, "hash": head} for number in (0, 1)]
    for heads, expected in ((exported[:1], 0), (exported, 1)):
        file.write_text(json.dumps({"heads": heads}) + "\n")
        out, errors, status = run("audit", "verify", "--expected-heads", str(file), data_dir=data_dir)
        assert (errors, status) == ("", expected)
        assert ("END_CUT_OFF" in out) == bool(expected)
    file.write_text("nothing\n")
    _, errors, status = run("audit", "verify", "--expected-heads", str(file), data_dir=data_dir)
    assert status != 0
    assert "line 1 is not an export of heads" in errors


class TestKeyFile:
    """The key in a file; an interrupted run neither loses one nor makes two."""

    @pytest.fixture
    def operating(self, database, monkeypatch):
        monkeypatch.setattr(Settings, "keyring", KEYRING)
        made = Operator(Settings(database_url=database.url.render_as_string(hide_password=False)))
        yield made
        made._database.dispose()

    @pytest.fixture
    def file(self, tmp_path):
        return KeyFile(tmp_path / "operator.key")

    def create(self, operating, file, **options):
        operating.create_key_file(file, "first", "default", [], admin=True, first_only=True, **options)

    def live(self, operating):
        with operating._database.open_reader() as session:
            return [row.id for row in list_live_keys(session, ["default"])]

    def test_only_its_owner_reads_it_and_the_log_does_not_show_it(self, data_dir, tmp_path):
        path = tmp_path / "operator.key"
        arguments = ("keys", "create", "--admin", "--if-none", "--to", path)
        assert run(*arguments, data_dir=data_dir) == (f"wrote the key to {path}\n", "", 0)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert is_well_formed(path.read_text().strip())
        assert [each.name for each in tmp_path.iterdir() if each.name != "data"] == ["operator.key"]
        written = path.read_text()
        assert run(*arguments, data_dir=data_dir) == ("", "a key exists already\n", 0)
        assert run(*arguments[:3], "--to", path, data_dir=data_dir) == (
            "",
            f"ironlaw: {path} exists already; name a new file\n",
            1,
        )
        assert path.read_text() == written

    def test_a_key_that_never_worked_gives_way(self, operating, file, monkeypatch):
        """Cut short after the draft and before the commit."""
        monkeypatch.setattr(Writes, "record", cut_short)
        with pytest.raises(KeyboardInterrupt):
            self.create(operating, file)
        monkeypatch.undo()
        monkeypatch.setattr(Settings, "keyring", KEYRING)
        assert file.read_draft()
        assert self.live(operating) == []
        self.create(operating, file)
        assert self.live(operating) == [parse_id(file.path.read_text().strip())]
        assert not file.read_draft()

    def test_a_key_that_works_is_not_lost(self, operating, file, monkeypatch):
        """Cut short after the commit and before the file has its name."""
        with monkeypatch.context() as broken:
            broken.setattr(KeyFile, "finish", cut_short)
            with pytest.raises(KeyboardInterrupt):
                self.create(operating, file)
        made = file.read_draft()
        assert self.live(operating) == [parse_id(made)]
        self.create(operating, file)
        assert file.path.read_text().strip() == made
        assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
        assert self.live(operating) == [parse_id(made)]
        with pytest.raises(KeyExists):
            self.create(operating, file)

    def test_a_draft_of_another_key_is_not_taken_for_it(self, operating, file, monkeypatch):
        with monkeypatch.context() as broken:
            broken.setattr(KeyFile, "finish", cut_short)
            with pytest.raises(KeyboardInterrupt):
                operating.create_key_file(file, "reads", "default", ["models:read"], admin=False)
        with pytest.raises(KeyFileRefused, match=parse_id(file.read_draft())):
            self.create(operating, file)
        assert not file.path.exists()
        assert len(self.live(operating)) == 1

    def test_what_others_left_as_a_draft_opens_nothing(self, operating, file):
        planted = mint_credential(API_KEY, generate_id())
        file.path.with_name(".operator.key.part").write_text(planted)
        self.create(operating, file)
        assert file.path.read_text().strip() != planted

    def test_of_two_that_start_at_once_one_makes_the_key(self, operating, file):
        with ThreadPoolExecutor(4) as pool:
            done = [pool.submit(self.create, operating, file) for _ in range(4)]
        outcomes = [each.exception() for each in done]
        assert all(outcome is None or isinstance(outcome, KeyExists) for outcome in outcomes)
        assert self.live(operating) == [parse_id(file.path.read_text().strip())]


class TestSecret:
    def test_it_is_made_once_for_its_owner_alone(self, data_dir):
        run("keys", "create", "--admin", data_dir=data_dir)
        path = data_dir / "secret.key"
        made = path.read_text()
        assert len(made) >= 32
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        run("keys", "create", "--admin", data_dir=data_dir)
        assert path.read_text() == made

    def test_another_one_is_refused(self, data_dir):
        run("keys", "create", "--admin", data_dir=data_dir)
        other = {"IRONLAW_SECRET_KEY": "another secret, long enough to be one"}
        for command in (("keys", "create", "--admin"), ("audit", "verify"), ("serve",)):
            _, errors, status = run(*command, data_dir=data_dir, IRONLAW_PORT="0", **other)
            assert status == 1
            assert errors.splitlines()[-1].startswith("ironlaw: the secret is not the one of this database")
            assert "another secret" not in errors

    def test_a_file_of_it_does_as_well(self, data_dir, tmp_path):
        run("keys", "create", "--admin", data_dir=data_dir)
        moved = tmp_path / "elsewhere"
        (data_dir / "secret.key").rename(moved)
        out, errors, status = run("audit", "verify", data_dir=data_dir, IRONLAW_SECRET_KEY_FILE=str(moved))
        assert (errors, status) == ("", 0)
        assert "valid" in out


def test_a_price_list_is_imported(data_dir):
    """The excerpt of AWS: thirteen offers, and a row that is none."""
    arguments = ("offers", "import", str(PRICES), "--format", "skypilot", "--provider", "aws")
    dated = ("--as-of", "2026-11-22", "--citation", "skypilot-catalog v8")
    out, errors, status = run(*arguments, *dated, data_dir=data_dir)
    assert (out, status) == ("9 rows: 13 created, 0 changed, 0 unchanged, 1 refused\n", 0)
    assert errors == "/2: the instance has no accelerator (NO_ACCELERATOR)\n"
    assert run(*arguments, *dated, data_dir=data_dir)[0].startswith(
        "9 rows: 0 created, 0 changed, 13 unchanged"
    )
    assert run("audit", "verify", data_dir=data_dir)[0].startswith("default: ")
    for wrong, said in ((("--tenant", "nobody"), "no tenant"), (("--format", "xml"), "format")):
        out, errors, status = run(*arguments, *dated, *wrong, data_dir=data_dir)
        assert (out, status, errors.count("\n")) == ("", 1, 1)
        assert said in errors
