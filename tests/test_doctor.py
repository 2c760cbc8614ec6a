"""What `ironlaw doctor` finds: each misconfiguration is named with what to do, and no secret is shown."""

import json
import os
import socket
from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace

import pytest

from service.app import doctor
from service.app.settings import Settings
from service.app.storage import upgrade_schema
from service.audit.service import Writes
from service.auth.service import initialize_installation
from service.kit.clock import now
from service.kit.database.engine import Database
from service.kit.security.keyring import Keyring
from service.worker.benchmark import Unsupported
from tests.serving import run

SECRET = "a secret of the tests, forty characters long"  # noqa: S105
TENANT = {"mode": "tenant", "allowed_hosts": "plan.example.com", "public_url": "https://plan.example.com"}
ISSUER = {"oidc_issuer": "https://login.example.com", "oidc_audience": "ironlaw"}


@pytest.fixture
def settings(tmp_path):
    """Settings over an empty folder, with the members that a test gives."""

    def of(**members):
        return Settings(**{"data_dir": tmp_path / "data", "port": 0, **members})

    return of


def states(checks):
    """The state of each check by its name."""
    return {check.name: check.state for check in checks}


def only(checks):
    (check,) = checks
    return check


@pytest.mark.enable_socket
def test_nothing_is_wrong_with_what_is_usual(settings):
    found = list(doctor.examine(settings(), {}, is_online=False))
    assert "error" not in states(found).values()
    told = {check.name for check in found if check.state == "warning"}
    assert told <= {"guide", "accelerators", "free space"}


def test_a_variable_that_is_no_setting_is_named():
    given = dict.fromkeys(("IRONLAW_PROT", "IRONLAW_PORT", "IRONLAW_WORKER_DIR", "IRONLAW_API_KEY"), "1")
    told = only(doctor.check_variables(given))
    assert (told.state, told.detail) == ("warning", "IRONLAW_PROT is no setting and is ignored")
    assert only(doctor.check_variables({"IRONLAW_PORT": "8000"})).state == "ok"


@pytest.mark.parametrize(
    ("members", "state", "advice"),
    [
        (TENANT, "ok", ""),
        ({**TENANT, "public_url": "https://other.example.com"}, "error", "add it to IRONLAW_ALLOWED_HOSTS"),
        ({**TENANT, "public_url": "https://plan.example.com:8443"}, "ok", ""),
        ({"mode": "tenant", "host": "0.0.0.0"}, "error", "set IRONLAW_ALLOWED_HOSTS"),  # noqa: S104
        ({**TENANT, "allowed_hosts": "*"}, "warning", "name the hosts"),
    ],
)
def test_the_public_address_is_one_that_is_answered(settings, members, state, advice):
    check = next(doctor.check_names(settings(**members)))
    assert (check.state, check.advice.startswith(advice)) == (state, True)


def test_links_need_a_public_address(settings):
    found = states(doctor.check_names(settings(mode="tenant", allowed_hosts="plan.example.com")))
    assert found == {"names": "ok", "public address": "warning"}


@pytest.mark.enable_socket
def test_a_port_of_another_program_is_named(settings):
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0)
        port = other.getsockname()[1]
        other.listen(0)
        assert doctor.check_port(settings(port=port)).advice == "set IRONLAW_PORT"
    assert doctor.check_port(settings(port=port)).state == "ok"


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert next(doctor.check_data_folder(tmp_path / "data")).state == "error"


def test_a_data_folder_that_is_a_file_or_open_to_others_is_named(tmp_path):
    file = tmp_path / "file"
    file.touch()
    assert next(doctor.check_data_folder(file)).state == "error"
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)
    assert next(doctor.check_data_folder(folder)).advice == f"chmod 700 {folder}"
    folder.chmod(0o700)
    assert next(doctor.check_data_folder(folder)).state == "ok"


def test_little_room_is_said():
    assert doctor.judge_free_space(doctor.LEAST_FREE_BYTES - 1).state == "warning"
    assert doctor.judge_free_space(doctor.LEAST_FREE_BYTES).state == "ok"


class TestSecrets:
    @pytest.fixture
    def file(self, tmp_path):
        tmp_path.chmod(0o755)
        path = tmp_path / "secret"
        path.write_text(SECRET)
        path.chmod(0o600)
        return path

    def test_a_file_is_there_long_enough_and_private(self, settings, file):
        def check():
            return only(doctor.check_secrets(settings(secret_key_file=file)))

        assert check().state == "ok"
        file.chmod(0o644)
        assert check().advice == f"chmod 600 {file}"
        file.parent.chmod(0o700)
        assert check().state == "ok"
        file.write_text("short")
        assert check()[1:3] == ("error", f"{file} holds 5 characters, fewer than 32")
        file.unlink()
        assert check()[1:3] == ("error", f"{file} cannot be read: No such file or directory")

    def test_processes_on_several_hosts_need_the_same(self, settings):
        found = only(doctor.check_secrets(settings(database_url="postgresql+psycopg://ironlaw@host/name")))
        assert (found.state, "IRONLAW_SECRET_KEY_FILE" in found.advice) == ("warning", True)

    def test_every_file_of_a_secret_is_looked_at(self, settings, file):
        url = {"database_url": "postgresql+psycopg://ironlaw@host/name", "database_password_file": file}
        client = {
            **ISSUER,
            **TENANT,
            "oidc_client_id": "plan",
            "oidc_client_secret_file": file.with_name("none"),
        }
        found = states(doctor.check_secrets(settings(secret_key=SECRET, **url, **client)))
        assert found == {"IRONLAW_DATABASE_PASSWORD_FILE": "ok", "IRONLAW_OIDC_CLIENT_SECRET_FILE": "error"}


class TestDatabase:
    def test_a_new_one_is_made_later(self, settings):
        found = only(doctor.check_database(settings()))
        assert (found.state, found.detail.endswith("is made at the first start")) == ("ok", True)
        assert not settings().data_dir.exists()

    def test_one_that_does_not_answer_is_an_error_without_its_password(self, settings):
        url = f"postgresql+psycopg://ironlaw:{'pass-word'}@/name?host=/nowhere"
        found = only(doctor.check_database(settings(database_url=url)))
        assert (found.state, "pass-word" in str(found)) == ("error", False)
        assert only(doctor.check_database(settings(database_url="nonsense"))).state == "error"

    @pytest.fixture
    def database(self, settings):
        settings().data_dir.mkdir()
        made = Database(settings().database)
        upgrade_schema(made)
        return made

    def test_the_schema_of_another_version_is_said(self, settings, database):
        def check():
            return only(doctor.check_database(settings()))

        assert check().state == "ok"
        with database.open_writer() as session:
            session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
        assert (check().state, "at the next start" in check().detail) == ("ok", True)
        with database.open_writer() as session:
            session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        assert (check().state, "of a later version" in check().detail) == ("error", True)

    def test_another_secret_is_an_error(self, settings, database):
        keyring = Keyring(SECRET.encode())
        initialize_installation(database, keyring, Writes(database, keyring))
        assert states(doctor.check_database(settings(secret_key=SECRET))) == {"database": "ok"}
        other = states(doctor.check_database(settings(secret_key=SECRET[::-1])))
        assert other == {"database": "ok", "secret of the database": "error"}

    def test_postgresql_is_asked_for_its_role_and_clock(self, settings, postgresql):
        """The server of the tests has no schema in this database, and its role is a superuser."""
        found = states(doctor.check_database(settings(database_url=postgresql)))
        assert found == {"database role": "warning", "clock": "ok", "database": "error"}

    def test_a_role_that_can_change_the_audit_is_told(self):
        assert doctor.judge_role("18", is_superuser=False, owned_tables=0).state == "ok"
        assert doctor.judge_role("18", is_superuser=True, owned_tables=0).state == "warning"
        assert doctor.judge_role("18", is_superuser=False, owned_tables=3).state == "warning"

    def test_a_clock_that_differs_is_an_error(self):
        assert doctor.judge_clock(now() + timedelta(minutes=1), now()).state == "error"
        assert doctor.judge_clock(now(), now()).state == "ok"


class TestIssuer:
    def test_keys_alone_are_well(self, settings):
        assert states(doctor.check_issuer(settings(**TENANT), is_online=False)) == {"sign-in": "ok"}
        assert states(doctor.check_issuer(settings(), is_online=True)) == {}

    def test_what_an_issuer_does_not_decide_is_said(self, settings):
        found = list(doctor.check_issuer(settings(**ISSUER), is_online=False))
        assert [check.advice for check in found] == [
            "set IRONLAW_MODE=tenant",
            "set IRONLAW_OIDC_CLIENT_ID",
            "--online asks it",
        ]

    @pytest.mark.parametrize(
        ("documents", "state"),
        [
            (
                [
                    {"issuer": ISSUER["oidc_issuer"], "jwks_uri": "https://login.example.com/keys"},
                    {"keys": [{}]},
                ],
                "ok",
            ),
            ([{"issuer": ISSUER["oidc_issuer"], "jwks_uri": "https://login.example.com/keys"}, {}], "error"),
            ([{"issuer": "https://elsewhere.example.com"}], "error"),
        ],
    )
    def test_online_it_is_asked_for_its_keys(self, settings, monkeypatch, documents, state):
        answers = iter(documents)
        monkeypatch.setattr(doctor, "_fetch", lambda _: json.dumps(next(answers)).encode())
        given = settings(**ISSUER, **TENANT, oidc_client_id="plan")
        assert only(doctor.check_issuer(given, is_online=True)).state == state


@pytest.mark.parametrize("network", ["127.0.0.0/8", "169.254.169.254/32", "0.0.0.0/0"])
def test_webhooks_to_near_networks_are_told(settings, network):
    assert doctor.check_webhooks(settings(webhook_networks=f"10.0.0.0/8,{network}")).state == "warning"
    assert doctor.check_webhooks(settings(webhook_networks="10.0.0.0/8")).state == "ok"


def test_jobs_without_threads_need_a_process(settings):
    assert only(doctor.check_background(settings(background_threads=0))).state == "warning"
    assert not list(doctor.check_background(settings()))


def test_heads_of_the_audit_have_a_place(settings, tmp_path):
    assert only(doctor.check_audit_heads(settings(**TENANT))).advice == "set IRONLAW_AUDIT_HEADS_FILE"
    assert only(doctor.check_audit_heads(settings(audit_heads_file=tmp_path / "heads"))).state == "ok"
    nowhere = tmp_path / "none" / "heads"
    assert only(doctor.check_audit_heads(settings(audit_heads_file=nowhere))).state == "error"


def test_the_guide_is_built(tmp_path):
    assert doctor.check_guide(tmp_path).state == "warning"
    (tmp_path / "index.html").touch()
    assert doctor.check_guide(tmp_path).state == "ok"


class TestAccelerators:
    @pytest.fixture
    def driver(self, monkeypatch):
        nvml = SimpleNamespace(nvmlSystemGetDriverVersion=lambda: b"580.65", nvmlDeviceGetCount=lambda: 2)
        monkeypatch.setattr(doctor, "open_nvml", lambda: nullcontext(nvml))

    def test_a_host_without_a_worker_is_not_asked(self):
        assert not list(doctor.check_accelerators(lambda _: None))

    @pytest.mark.usefixtures("driver")
    def test_the_driver_is_named(self):
        assert only(doctor.check_accelerators()).detail == "driver 580.65 reports 2"

    def test_one_without_a_driver_is_told(self, monkeypatch):
        def refuse():
            raise Unsupported("NVML: no driver")

        monkeypatch.setattr(doctor, "open_nvml", refuse)
        assert only(doctor.check_accelerators()).state == "warning"


class TestTheCommand:
    def test_prints_a_line_for_each_check(self, tmp_path):
        said, errors, status = run("doctor", data_dir=tmp_path / "data", IRONLAW_PORT="0")
        assert (status, errors) == (0, "")
        assert {line.split()[0] for line in said.splitlines()} <= {"ok", "warning"}

    def test_fails_and_shows_no_secret(self, tmp_path):
        secrets = {
            "IRONLAW_SECRET_KEY": SECRET,
            "IRONLAW_DATABASE_URL": "postgresql+psycopg://i:pass-word@/n?host=/no",
        }
        said, _, status = run("doctor", "--json", data_dir=tmp_path, IRONLAW_PORT="0", **secrets)
        assert status == 1
        assert "error" in {check["state"] for check in json.loads(said)["checks"]}
        assert SECRET not in said
        assert "pass-word" not in said

    def test_names_settings_that_cannot_be_read(self, tmp_path):
        said, _, status = run("doctor", data_dir=tmp_path, IRONLAW_PORT="many", IRONLAW_MODE="short")
        assert (status, said.startswith("error   settings: IRONLAW_PORT: ")) == (1, True)
        assert "short" not in said
