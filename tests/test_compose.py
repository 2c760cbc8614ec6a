"""What the compose file runs, as real processes on a PostgreSQL with the roles that the file makes."""

import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError, ProgrammingError

from service.app.examples import EXAMPLES as BODIES
from service.kit.database.engine import Database
from tests import forked
from tests.composing import SERVICES, command_of, environment_of, make_secrets
from tests.forked import DIRECTORY
from tests.image import ROOT
from tests.postgresql import get_server
from tests.serving import environment, run, serving

LOOPBACK = pytest.mark.allow_hosts(["127.0.0.1"])
OWN, OWNERS = "database-password", "database-owner-password"
pytestmark = [pytest.mark.enable_socket, LOOPBACK]


class Deployed(NamedTuple):
    """Where the parts of a deployment are here."""

    server: object
    socket: str
    folder: Path
    secrets: Path

    def here(self, text, volume):
        """What stands in the file, with the places of this host."""
        text = re.sub(r"^/data\b", str(self.folder / volume), text.replace("/run/secrets", str(self.secrets)))
        return text.replace("@database:5432/ironlaw", f"@/ironlaw?host={self.socket}")

    def environment(self, service):
        given = environment_of(service, {})
        return {name: self.here(value, "unused") for name, value in given.items()}

    def runs(self, service, *words, volume="unused"):
        """Output, errors and status of what a service of the file runs, or of other words in its place."""
        given = words or [self.here(word, volume) for word in command_of(service, {})]
        return run(*given, data_dir=self.folder / "unused", **self.environment(service))

    def serves(self):
        return serving(self.folder / "unused", IRONLAW_PORT="0", **self.environment("api"))

    def url(self, role, database="ironlaw", secret=None):
        password = (self.secrets / secret).read_text().strip() if secret else "wrong"
        return sa.make_url(f"postgresql+psycopg://{role}@/{database}?host={self.socket}").set(
            password=password
        )

    def asks(self, statement, role="ironlaw", secret=OWN, database="ironlaw"):
        """What a role is answered."""
        asking = Database(self.url(role, database, secret))
        try:
            with asking.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                answered = connection.execute(sa.text(statement))
                return answered.all() if answered.returns_rows else []
        finally:
            asking.dispose()

    def administers(self, *statements):
        for statement in statements:
            self.asks(statement, "postgres", "database-superuser-password", "postgres")

    def makes_roles(self):
        """Run the script that the file mounts, as the image of PostgreSQL does on a new volume."""
        given = SERVICES["database"]["environment"]
        (script,) = (
            volume.split(":")[0]
            for volume in SERVICES["database"]["volumes"]
            if "docker-entrypoint-initdb.d" in volume
        )
        own = {
            "PATH": f"{self.server.bin_path}:{os.environ['PATH']}",
            "PGHOST": self.socket,
            "PGPASSWORD": (self.secrets / "database-superuser-password").read_text().strip(),
            "POSTGRES_USER": given["POSTGRES_USER"],
            "POSTGRES_DB": given["POSTGRES_DB"],
            "IRONLAW_SECRETS": str(self.secrets),
        }
        return subprocess.run([ROOT / script], env=own, capture_output=True, text=True, check=False)

    def makes_reader(self):
        """Run the statements that the guide sends to the database."""
        statements = (ROOT / "deploy" / "compose" / "reader.sql").read_text()
        own = {
            "PATH": f"{self.server.bin_path}:{os.environ['PATH']}",
            "PGHOST": self.socket,
            "PGPASSWORD": (self.secrets / "database-superuser-password").read_text().strip(),
            "IRONLAW_SECRETS": str(self.secrets),
        }
        asking = ["psql", "--quiet", "--no-psqlrc", "--username", "postgres", "--dbname", "ironlaw"]
        return subprocess.run(asking, env=own, input=statements, capture_output=True, text=True, check=False)

    def begins(self):
        """A new volume: the database that the image makes, and its roles."""
        self.administers("CREATE DATABASE ironlaw")
        done = self.makes_roles()
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def deployed(postgresql, tmp_path_factory):
    """A database with passwords for everybody, its roles, the schema and the first key."""
    assert postgresql  # its package is imported where that finds a runtime directory
    folder = tmp_path_factory.mktemp("compose")
    place = Path(os.environ[DIRECTORY]) / f"compose-{os.getpid()}"
    server = get_server(place, cleanup_mode="delete")
    try:
        made = Deployed(
            server,
            sa.make_url(server.get_uri("postgres")).query["host"],
            folder,
            make_secrets(folder / "secrets"),
        )
        password = (made.secrets / "database-superuser-password").read_text().strip()
        made.administers(f"ALTER ROLE postgres PASSWORD '{password}'")
        (place / "pg_hba.conf").write_text("local all all scram-sha-256\n")
        made.administers("SELECT pg_reload_conf()")
        for volume in ("operator", "backups"):
            (folder / volume).mkdir()
        made.begins()
        out, errors, status = made.runs("migrate")
        assert (errors, status, out[:18]) == ("", 0, "created the schema")
        assert made.runs("first-key", volume="operator")[1:] == ("", 0)
        yield made
    finally:
        server.cleanup()
        shutil.rmtree(place, ignore_errors=True)


def key_of(deployed):
    return {"Authorization": f"Bearer {(deployed.folder / 'operator' / 'operator.key').read_text().strip()}"}


class TestRoles:
    def test_the_service_runs_as_no_superuser(self, deployed):
        for service in ("api", "worker", "first-key", "backup", "migrate"):
            role = sa.make_url(environment_of(service, {})["IRONLAW_DATABASE_URL"]).username
            assert role == ("ironlaw_owner" if service == "migrate" else "ironlaw")
        rights = "rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
        roles = deployed.asks(f"SELECT rolname, {rights} FROM pg_roles WHERE rolname LIKE 'ironlaw%'")
        assert sorted(map(tuple, roles)) == [("ironlaw", False), ("ironlaw_owner", False)]
        assert deployed.asks("SELECT count(*) FROM pg_auth_members WHERE member = 'ironlaw'::regrole") == [
            (0,)
        ]

    @pytest.mark.parametrize(
        "statement",
        [
            "CREATE TABLE mine (id integer)",
            "CREATE TEMPORARY TABLE mine (id integer)",
            "CREATE SCHEMA mine",
            "DROP TABLE audit_events",
            "TRUNCATE audit_events",
            "ALTER TABLE audit_events DISABLE TRIGGER ALL",
            "ALTER TABLE api_keys ADD COLUMN mine text",
            "ALTER ROLE ironlaw SUPERUSER",
            "SET ROLE ironlaw_owner",
            "SELECT * FROM pg_authid",
            "COPY tenants TO PROGRAM 'cat'",
            "SELECT pg_read_file('/etc/passwd')",
        ],
    )
    def test_it_reads_and_writes_rows_and_nothing_else(self, deployed, statement):
        with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
            deployed.asks(statement)

    def test_each_has_a_password_and_one_database(self, deployed):
        with pytest.raises(OperationalError, match="password authentication failed"):
            deployed.asks("SELECT 1", secret=None)
        with pytest.raises(OperationalError, match="password authentication failed"):
            deployed.asks("SELECT 1", "ironlaw_owner", OWN)
        for role, secret in (("ironlaw", OWN), ("ironlaw_owner", OWNERS)):
            for database in ("postgres", "template1"):
                with pytest.raises(OperationalError, match="permission denied for database"):
                    deployed.asks("SELECT 1", role, secret, database)

    def test_grafana_reads_the_tables_of_its_panels_and_nothing_else(self, deployed):
        for _ in range(2):
            done = deployed.makes_reader()
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        reader = ("ironlaw_reader", "database-reader-password")
        boards = (ROOT / "deploy" / "observability" / "grafana" / "dashboards").glob("*.json")
        panels = [panel for path in boards for panel in json.loads(path.read_text())["panels"]]
        statements = [
            target["rawSql"] for panel in panels for target in panel["targets"] if "rawSql" in target
        ]
        assert statements
        for statement in statements:
            deployed.asks(statement.replace(":", "\\:"), *reader)
        for statement in (
            "SELECT * FROM api_keys",
            "SELECT * FROM webhooks",
            "SELECT * FROM background_jobs",
        ):
            with pytest.raises(ProgrammingError, match="permission denied"):
                deployed.asks(statement, *reader)

    def test_no_password_is_in_the_log_of_the_database(self, deployed):
        """Nor where the script fails, as it does the second time."""
        done = deployed.makes_roles()
        assert done.returncode != 0
        assert 'role "ironlaw_owner" already exists' in done.stderr
        log = deployed.server.log.read_text(errors="replace")
        assert 'role "ironlaw_owner" already exists' in log
        for path in deployed.secrets.iterdir():
            secret = path.read_text().strip()
            assert not secret or secret not in log + done.stderr


class TestService:
    def test_the_first_key_is_in_a_file_and_not_in_the_log(self, deployed):
        file = deployed.folder / "operator" / "operator.key"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert deployed.runs("first-key", volume="operator") == ("", "a key exists already\n", 0)

    def test_it_serves_and_writes(self, deployed):
        with deployed.serves() as server:
            assert server.client.get("/v1/tenants").status_code == 401
            made = server.client.post("/v1/offers", json=BODIES["create_offer"], headers=key_of(deployed))
            assert made.status_code == 201
            verified = server.client.get("/v1/audit-events:verify", headers=key_of(deployed))
            assert verified.json()["valid"] is True

    def test_background_work_starts_and_stops(self, deployed):
        own = environment(deployed.folder / "unused", **deployed.environment("worker"))
        process = forked.Staying(*command_of("worker", {}), environment=own)
        assert next(process.stderr) == "the schema is current\n"
        process.terminate()
        _, errors = process.communicate(timeout=60)
        assert "permission denied" not in errors


class TestBackups:
    def test_one_is_taken_and_restores_into_a_new_volume(self, deployed):
        folder = deployed.folder / "backups"
        words = [*(deployed.here(word, "backups") for word in command_of("backup", {})), "--once"]
        out, errors, status = deployed.runs("backup", *words)
        assert (errors, status) == ("", 0)
        (file,) = folder.iterdir()
        assert out == f"wrote and tried {file}, 1 kept\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert deployed.runs("backup", *words) == ("", "", 0)  # the next is not due
        deployed.administers(
            "DROP DATABASE ironlaw WITH (FORCE)", "DROP ROLE ironlaw", "DROP ROLE ironlaw_owner"
        )
        deployed.begins()
        out, errors, status = deployed.runs("migrate", "restore", file)
        assert (errors, status) == ("", 0)
        assert "valid" in out
        with deployed.serves() as server:
            assert server.client.get("/v1/tenants", headers=key_of(deployed)).status_code == 200
            made = server.client.post("/v1/sites", json=BODIES["create_site"], headers=key_of(deployed))
            assert made.status_code == 201

    def test_a_stop_ends_it_at_once(self, deployed, tmp_path):
        words = ["backups", str(tmp_path), "--every-hours", "24"]
        own = environment(deployed.folder / "unused", **deployed.environment("backup"))
        process = forked.Staying(*words, environment=own)
        assert next(process.stdout).startswith("wrote and tried ")
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert [re.sub(r"\d", "0", path.name) for path in tmp_path.iterdir()] == [
            "ironlaw-00000000T000000Z.backup"
        ]
