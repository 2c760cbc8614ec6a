"""Checks of an installation. They read what `ironlaw serve` would read, and write nothing."""

import errno
import importlib.util
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

import httpx
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from service.app.settings import LOOPBACK_NAMES, SHORTEST_SECRET, Settings
from service.app.storage import SchemaMismatch, check_schema, get_head_revision, get_schema_revision
from service.auth.oidc import fetch_discovery, get_endpoint, parse_json_object
from service.auth.tables import InstallationRow
from service.kit.addresses import is_loopback
from service.kit.clock import now
from service.kit.database.engine import Database
from service.kit.http.context import ANY_HOST
from service.kit.security.keyring import Keyring
from service.worker.benchmark import Unsupported
from service.worker.nvml import decode_text, open_nvml

LEAST_FREE_BYTES: Final = 2**30
MOST_CLOCK_DIFFERENCE: Final = timedelta(seconds=5)
_CALL_SECONDS: Final = 5.0
_OTHERS_READ: Final = stat.S_IRGRP | stat.S_IROTH
_OTHERS_ENTER: Final = stat.S_IXGRP | stat.S_IXOTH
_OF_OTHER_PROGRAMS: Final = ("API_KEY", "ENROLMENT_TOKEN", "FAULTS", "SECRETS")
_OF_THE_WORKER: Final = "WORKER_"


class Check(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "warning", "error"]
    detail: str
    advice: str = ""
    """Advice to the operator; empty if nothing is to be done."""


def examine(settings: Settings, environment: Mapping[str, str], *, is_online: bool) -> Iterator[Check]:
    """Yields every check of an installation, in the order in which `ironlaw serve` would meet the faults."""
    yield from check_variables(environment)
    yield from check_names(settings)
    yield check_port(settings)
    yield from check_data_folder(settings.data_dir)
    yield from check_secrets(settings)
    yield from check_database(settings)
    yield from check_issuer(settings, is_online=is_online)
    yield check_webhooks(settings)
    yield from check_background(settings)
    yield from check_audit_heads(settings)
    yield check_guide(settings.guide_dir)
    yield from check_accelerators()


def check_variables(environment: Mapping[str, str]) -> Iterator[Check]:
    """Names variables that look like settings and are none."""
    known = {name.upper() for name in Settings.model_fields} | set(_OF_OTHER_PROGRAMS)
    given = {name.removeprefix("IRONLAW_") for name in environment if name.startswith("IRONLAW_")}
    unknown = sorted(name for name in given - known if not name.startswith(_OF_THE_WORKER))
    for name in unknown:
        yield Check(
            "settings",
            "warning",
            f"IRONLAW_{name} is no setting and is ignored",
            "correct or remove it",
        )
    if not unknown:
        yield Check("settings", "ok", f"{len(given & known)} variables are set, and all are known")


def check_names(settings: Settings) -> Iterator[Check]:
    """Holds the addresses that the service is reached by against the names that it answers for."""
    public, is_any = urlsplit(settings.public_url).netloc.lower(), ANY_HOST in settings.hosts
    hosts = {host.lower() for host in settings.hosts}
    if public and not is_any and not hosts & {public, public.rpartition(":")[0] or public}:
        yield Check(
            "names",
            "error",
            f"the service does not answer for {public} of IRONLAW_PUBLIC_URL",
            "add it to IRONLAW_ALLOWED_HOSTS",
        )
    elif is_any:
        yield Check(
            "names",
            "warning",
            "IRONLAW_ALLOWED_HOSTS is *",
            "name the hosts, so that pages of others cannot reach the service by a name of theirs",
        )
    elif not is_loopback(settings.host) and hosts <= set(LOOPBACK_NAMES):
        yield Check(
            "names",
            "error",
            f"the service listens on {settings.host} and answers for loopback alone",
            "set IRONLAW_ALLOWED_HOSTS",
        )
    else:
        yield Check("names", "ok", f"answers for {', '.join(settings.hosts)}")
    if settings.mode == "tenant" and not settings.public_url:
        yield Check(
            "public address",
            "warning",
            "approvers get no links, and cookies are not for TLS alone",
            "set IRONLAW_PUBLIC_URL",
        )


def check_port(settings: Settings) -> Check:
    """Tries whether the port is free, or whose it is."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        socket.create_server((settings.host, settings.port), family=family).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return Check(
                "port", "error", f"cannot listen on {settings.host} port {settings.port}: {error.strerror}"
            )
        if _is_served(settings):
            return Check("port", "ok", f"a service answers on port {settings.port}")
        return Check(
            "port", "error", f"port {settings.port} is in use by another program", "set IRONLAW_PORT"
        )
    return Check("port", "ok", f"port {settings.port} of {settings.host} is free")


def _is_served(settings: Settings) -> bool:
    """Returns true if what listens on the port answers like this service."""
    host = settings.hosts[0] if settings.hosts[0] != ANY_HOST else "localhost"
    with closing(HTTPConnection(settings.host, settings.port, timeout=_CALL_SECONDS)) as connection:
        try:
            connection.request("GET", "/livez", headers={"Host": host})
            return connection.getresponse().status == httpx.codes.NO_CONTENT
        except (OSError, HTTPException):
            return False


def check_data_folder(folder: Path) -> Iterator[Check]:
    """Checks that the data folder can be written by this user alone, and has room."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Check(
            "data folder",
            "error",
            f"{existing} cannot be written by this user",
            "change its owner, or IRONLAW_DATA_DIR",
        )
    elif existing == folder and existing.stat().st_mode & _OTHERS_READ:
        yield Check("data folder", "warning", f"{folder} can be read by others", f"chmod 700 {folder}")
    else:
        yield Check("data folder", "ok", f"{folder} can be written")
    yield judge_free_space(shutil.disk_usage(existing).free)


def judge_free_space(free: int) -> Check:
    """Judges the room for the database, its copies and its backups."""
    detail = f"{free / 1e9:.1f} GB are free"
    if free < LEAST_FREE_BYTES:
        return Check("free space", "warning", detail, "make room: a migration and a backup copy the database")
    return Check("free space", "ok", detail)


def check_secrets(settings: Settings) -> Iterator[Check]:
    """Checks the files of secrets, and that processes of one database share their secret."""
    files = {
        "IRONLAW_SECRET_KEY_FILE": settings.secret_key_file,
        "IRONLAW_DATABASE_PASSWORD_FILE": settings.database_password_file,
        "IRONLAW_OIDC_CLIENT_SECRET_FILE": settings.oidc_client_secret_file,
    }
    for variable, file in files.items():
        if file:
            yield check_secret_file(
                variable, file, SHORTEST_SECRET if file == settings.secret_key_file else 1
            )
    own = settings.data_dir / "secret.key"
    if settings.secret_key or settings.secret_key_file:
        return
    if settings.database_url:
        yield Check(
            "secret",
            "warning",
            f"the secret is that of {own}",
            "give it to processes on other hosts by IRONLAW_SECRET_KEY_FILE",
        )
    elif own.exists():
        yield check_secret_file("secret", own, SHORTEST_SECRET)
    else:
        yield Check("secret", "ok", f"{own} is made at the first start")


def check_secret_file(name: str, file: Path, least: int) -> Check:
    """Checks that a secret is there, long enough and for its owner alone, unless it is mounted read-only."""
    try:
        length = len(file.read_bytes().strip())
    except OSError as error:
        return Check(name, "error", f"{file} cannot be read: {error.strerror}")
    if length < least:
        return Check(
            name,
            "error",
            f"{file} holds {length} characters, fewer than {least}",
            "write a longer secret to it",
        )
    is_mounted = bool(os.statvfs(file).f_flag & os.ST_RDONLY)
    folder = file.absolute().parent
    others_reach_it = file.stat().st_mode & _OTHERS_READ and folder.stat().st_mode & _OTHERS_ENTER
    if others_reach_it and not is_mounted:
        return Check(name, "warning", f"{file} can be read by others", f"chmod 600 {file}")
    return Check(name, "ok", f"{file} is there")


def check_database(settings: Settings) -> Iterator[Check]:
    """Checks that the database answers, has this version's schema and belongs to the secret."""
    try:
        url = settings.database
        if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
            yield Check("database", "ok", f"{url.database} is made at the first start")
            return
        yield from _check_answering_database(settings, Database(url))
    except SchemaMismatch:
        return  # of a later version, as `check_migrations` has said
    except ArgumentError:
        yield Check("database", "error", "IRONLAW_DATABASE_URL is not the address of a database")
    except (SQLAlchemyError, OSError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        yield Check("database", "error", f"the database does not answer: {reason}")


def _check_answering_database(settings: Settings, database: Database) -> Iterator[Check]:
    try:
        with database.engine.connect() as connection:
            if not database.is_sqlite:
                yield from check_server(connection)
        yield check_migrations(database)
        if get_schema_revision(database) == get_head_revision():
            yield from check_fingerprint(settings, database)
    finally:
        database.dispose()


def check_migrations(database: Database) -> Check:
    """Compares the schema of the database with that of this version."""
    try:
        known = get_schema_revision(database)
        if database.is_sqlite and known != get_head_revision():
            return Check("database", "ok", f"the schema {known} is migrated at the next start, after a copy")
        check_schema(database)
    except SchemaMismatch as error:
        return Check("database", "error", str(error))
    return Check("database", "ok", f"answers with the schema {known} and a catalog")


def check_server(connection: Connection) -> Iterator[Check]:
    """Checks the role and the clock of a PostgreSQL server."""
    version = connection.scalar(text("SHOW server_version"))
    is_superuser = connection.scalar(text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"))
    owned = connection.scalar(
        text(
            "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tableowner = current_user"
        )
    )
    yield judge_role(str(version), is_superuser=bool(is_superuser), owned_tables=int(owned or 0))
    yield judge_clock(connection.execute(text("SELECT clock_timestamp()")).scalar_one(), now())


def judge_role(version: str, *, is_superuser: bool, owned_tables: int) -> Check:
    """Judges what the role of the service may do beside reading and writing rows."""
    advice = (
        "let the service run as a role that only reads and writes rows, and `ironlaw migrate` as the owner"
    )
    if is_superuser:
        return Check("database role", "warning", f"the role is a superuser of PostgreSQL {version}", advice)
    if owned_tables:
        return Check(
            "database role",
            "warning",
            f"the role owns {owned_tables} tables, those of the audit too",
            advice,
        )
    return Check("database role", "ok", f"reads and writes rows of PostgreSQL {version}")


def judge_clock(theirs: datetime, ours: datetime) -> Check:
    """Judges how far this host's clock is from the database's, by which deadlines are decided."""
    difference = abs(theirs - ours)
    if difference > MOST_CLOCK_DIFFERENCE:
        return Check(
            "clock",
            "error",
            f"this host and the database differ by {difference.total_seconds():.0f} s",
            "synchronize both by NTP",
        )
    return Check("clock", "ok", "agrees with the database's")


def check_fingerprint(settings: Settings, database: Database) -> Iterator[Check]:
    """Compares the secret with the one that the database was begun with; a secret is not made for that."""
    given, file = settings.secret_key.get_secret_value().encode(), settings.secret_key_file
    path = file or settings.data_dir / "secret.key"
    if not given and not path.is_file():
        return
    own = Keyring(given or path.read_bytes().strip()).compute_fingerprint()
    with database.open_reader() as session:
        stored = session.scalar(select(InstallationRow.fingerprint))
    if stored not in (None, own):
        yield Check(
            "secret of the database",
            "error",
            "the database was begun with another secret",
            "give the service that secret",
        )


def check_issuer(settings: Settings, *, is_online: bool) -> Iterator[Check]:
    """Checks who may sign in, and online whether the issuer answers with its keys."""
    issuer = settings.issuer
    if issuer is None:
        if settings.mode == "tenant":
            yield Check("sign-in", "ok", "API keys only, because IRONLAW_OIDC_ISSUER is not set")
        return
    if settings.mode == "open":
        yield Check(
            "sign-in",
            "warning",
            "tokens of the issuer decide nothing, because every caller is accepted",
            "set IRONLAW_MODE=tenant",
        )
    if not settings.oidc_client_id:
        yield Check(
            "sign-in",
            "warning",
            "tokens are accepted, and people cannot sign in at the pages",
            "set IRONLAW_OIDC_CLIENT_ID",
        )
    if not is_online:
        yield Check("issuer", "ok", f"{issuer.issuer} is set and was not asked", "--online asks it")
        return
    try:
        address = issuer.jwks_url or get_endpoint(fetch_discovery(issuer, _fetch), "jwks_uri")
        count = len(parse_json_object(_fetch(address)).get("keys", ()))
    except (httpx.HTTPError, ValueError) as error:
        yield Check("issuer", "error", f"{issuer.issuer} does not give its keys: {error}")
        return
    yield Check("issuer", "ok" if count else "error", f"{issuer.issuer} answers with {count} keys")


def _fetch(address: str) -> bytes:
    """Returns a document of the issuer, which proxies of the environment do not change."""
    with httpx.Client(timeout=_CALL_SECONDS, trust_env=False) as client:
        return client.get(address).raise_for_status().content


def check_webhooks(settings: Settings) -> Check:
    """Checks that webhooks reach no network in which credentials are given to every caller."""
    near = [
        str(network)
        for network in settings.networks
        if network.is_loopback or network.is_link_local or network.prefixlen == 0
    ]
    if near:
        return Check(
            "webhooks",
            "warning",
            f"may call {', '.join(near)}, where hosts keep credentials of their own",
            "narrow IRONLAW_WEBHOOK_NETWORKS",
        )
    return Check(
        "webhooks",
        "ok",
        f"call public hosts{' and ' + settings.webhook_networks if settings.networks else ''}",
    )


def check_background(settings: Settings) -> Iterator[Check]:
    """Says what a server without threads for background jobs depends on."""
    if not settings.background_threads:
        yield Check(
            "background jobs",
            "warning",
            "this server runs none",
            "run `ironlaw worker background` beside it, or raise IRONLAW_BACKGROUND_THREADS",
        )


def check_audit_heads(settings: Settings) -> Iterator[Check]:
    """Checks that the heads of the audit can be exported."""
    file = settings.audit_heads_file
    if file is None:
        if settings.mode == "tenant":
            detail = "nothing outside of the database shows whether newest events were cut off"
            yield Check("audit heads", "warning", detail, "set IRONLAW_AUDIT_HEADS_FILE")
        return
    place = file if file.exists() else file.absolute().parent
    if os.access(place, os.W_OK):
        yield Check("audit heads", "ok", f"are appended to {file}")
    else:
        yield Check("audit heads", "error", f"{place} cannot be written by this user", "change its owner")


def check_guide(folder: Path) -> Check:
    """Says whether the documentation site is there."""
    if (folder / "index.html").is_file():
        return Check("guide", "ok", f"is served from {folder}")
    return Check(
        "guide",
        "warning",
        f"{folder} holds no site of the documentation",
        "build it by `make site`, and name it by IRONLAW_GUIDE_DIR",
    )


def check_accelerators(find: Callable[[str], object] = importlib.util.find_spec) -> Iterator[Check]:
    """Asks the driver of a GPU node, where the libraries of a worker are installed."""
    if not find("pynvml"):
        return
    try:
        with open_nvml() as nvml:
            driver, count = decode_text(nvml.nvmlSystemGetDriverVersion()), int(nvml.nvmlDeviceGetCount())
    except Unsupported as error:
        yield Check("accelerators", "warning", f"a worker would measure this machine as a processor: {error}")
        return
    state: Literal["ok", "warning"] = "ok" if count else "warning"
    yield Check("accelerators", state, f"driver {driver} reports {count}")
