"""What an operator does at the command line: keys, the audit, and a secret that must stay the same."""

import sqlite3
import stat
import time
from pathlib import Path

import pytest

from tests.auth.test_keys import id_of
from tests.serving import run, serving

PRICES = Path(__file__).parent / "data/offers/aws-vms-v8-excerpt.csv"
LOOPBACK = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture
def data_dir(tmp_path):
    path = tmp_path / "data"
    assert run("migrate", data_dir=path)[2] == 0
    return path


def test_a_key_needs_a_database(tmp_path):
    _, errors, status = run("keys", "create", "--admin", data_dir=tmp_path)
    assert (status, errors.count("\n")) == (1, 1)
    assert "ironlaw migrate" in errors


@pytest.mark.enable_socket
@LOOPBACK
def test_the_first_key_opens_and_a_revoked_one_closes_within_two_seconds(data_dir):
    key, errors, status = run("keys", "create", "--admin", data_dir=data_dir)
    assert (errors, status) == ("", 0)
    key = key.strip()
    headers = {"Authorization": f"Bearer {key}"}
    with serving(data_dir, IRONLAW_MODE="tenant") as server:
        assert server.client.get("/v1/tenants").status_code == 401
        assert server.client.get("/v1/tenants", headers=headers).json()["items"][0]["id"] == "default"
        assert b"ironlaw_requests_total" in server.client.get("/metrics", headers=headers).content
        assert run("keys", "revoke", id_of(key), data_dir=data_dir)[2] == 0
        revoked = time.monotonic()
        asked = revoked
        while server.client.get("/v1/tenants", headers=headers).status_code == 200:
            assert asked < revoked + 2
            time.sleep(0.05)
            asked = time.monotonic()
        assert server.client.get("/v1/tenants", headers=headers).status_code == 401


def test_one_key_is_enough_where_one_is_asked_for(data_dir):
    first = run("keys", "create", "--admin", "--if-none", data_dir=data_dir)
    again = run("keys", "create", "--admin", "--if-none", data_dir=data_dir)
    assert id_of(first[0].strip())
    assert again == ("", "there is a key already\n", 0)


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
    assert out.startswith("default: 3 events, holds, head ")
    with sqlite3.connect(data_dir / "ironlaw.db") as database:
        database.execute("UPDATE audit_events SET resource = 'other' WHERE sequence = 2")
    database.close()
    out, _, status = run("audit", "verify", data_dir=data_dir)
    assert status == 1
    assert out.startswith("default: 1 events, BREAKS at event 2: EVENT_CHANGED")


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
        assert "holds" in out


def test_a_price_list_is_imported(data_dir):
    """The excerpt of AWS: thirteen offers, and a row that is none."""
    arguments = ("offers", "import", str(PRICES), "--format", "skypilot", "--provider", "aws")
    dated = ("--as-of", "2026-08-21", "--citation", "skypilot-catalog v8")
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
