"""Served processes that are killed, callers that write to them, and what must be stored in the end."""

import contextlib
import itertools
import random
import signal
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from uuid import uuid4

import httpx
from sqlalchemy import func, select

from service.audit.tables import AuditEventRow
from service.auth.tables import ApiKeyRow
from service.catalog.registry import RESOURCES
from service.catalog.sites.tables import SiteRow
from service.catalog.tables import CatalogState
from service.kit.http.idempotency import IdempotencyKeyRow, digest_json
from tests import forked
from tests.applications import bearing
from tests.faults.harness import rows
from tests.serving import environment, run

TENANT = "default"
SHARED = "shared"
"""The row that every caller changes."""
PATIENCE_SECONDS = 60.0
MOST_OWN = 4
BELOW_EPHEMERAL = range(20_000, 32_000)
SOURCES = [{"pointers": [""], "citation": "made up", "as_of": "2026"}]


def site(row_id, note):
    return {"id": row_id, "name": row_id, "pue": 1.2, "note": note, "sources": SOURCES}


def free_port():
    # A caller that tries a port of the ephemeral range again and again can end up connected to itself.
    while True:
        port = random.choice(BELOW_EPHEMERAL)  # noqa: S311
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class ServedAddress:
    """An address, and the process that serves it now."""

    def __init__(self, data_dir, variables):
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self.seconds_to_answer = []
        self._environment = environment(data_dir, IRONLAW_PORT=str(port), **variables)
        self._client = httpx.Client(base_url=self.address, trust_env=False)
        self.start()

    def start(self):
        self._started = time.monotonic()
        self._has_answered = False
        self.process = forked.Staying("serve", environment=self._environment)

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.communicate(timeout=60)

    def is_ready(self):
        with contextlib.suppress(httpx.TransportError):
            return self._client.get("/readyz").status_code == httpx.codes.OK
        return False

    def end(self):
        with contextlib.suppress(FileNotFoundError):  # it was killed before
            self.kill()
        self._client.close()

    def until_ready(self):
        while not self._has_answered:
            assert self.process.poll() is None, self.process.errors()[-2000:]
            assert time.monotonic() < self._started + PATIENCE_SECONDS
            self._has_answered = self.is_ready()
            if self._has_answered:
                self.seconds_to_answer.append(time.monotonic() - self._started)
            time.sleep(0.01)

    @property
    def is_starting(self):
        return not self._has_answered


class Fleet:
    """Processes in tenant mode that serve one database, and the key of its administrator."""

    def __init__(self, database, data_dir, processes):
        self.database = database
        self._data_dir = data_dir
        self._variables = {
            "IRONLAW_MODE": "tenant",
            "IRONLAW_REQUESTS_PER_MINUTE": "0",
            "IRONLAW_DATABASE_URL": database.url.render_as_string(hide_password=False),
        }
        self.credential = self.command("keys", "create", "--admin").strip()
        self.places = [ServedAddress(data_dir, self._variables) for _ in range(processes)]

    def command(self, *arguments):
        out, errors, status = run(*arguments, data_dir=self._data_dir, **self._variables)
        assert status == 0, errors
        return out

    def until_ready(self):
        for place in self.places:
            place.until_ready()

    def clients(self):
        """A client of each process."""
        return [
            httpx.Client(
                base_url=place.address, headers=bearing(self.credential), trust_env=False, timeout=20
            )
            for place in self.places
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for place in self.places:
            place.end()


class Write(NamedTuple):
    """An acknowledged write: what it did, and how often it was sent until it was answered."""

    key: str
    operation: str
    resource: str
    version: int
    note: str | None
    attempts: int
    was_replayed: bool


class Caller:
    """Writes one after the other, each with an Idempotency-Key, and sends again what was not answered."""

    def __init__(self, number, fleet, stop):
        self._name = f"caller-{number}"
        self._random = random.Random(number)  # noqa: S311
        self._addresses = [place.address for place in fleet.places]
        self._headers = bearing(fleet.credential)
        self._stop = stop
        self._count = itertools.count()
        self._sites = {}
        self.secrets = {}
        self.revoked = []
        self.acknowledged = []

    def work(self):
        with httpx.Client(trust_env=False, timeout=60) as self._client:
            while not self._stop.is_set():
                self._random.choice([self._change_shared, self._on_sites, self._on_sites, self._on_keys])()
                time.sleep(self._random.uniform(0, 0.02))

    def _on_sites(self):
        if not self._sites:
            self._create()
        elif len(self._sites) >= MOST_OWN:
            self._delete()
        else:
            self._random.choice([self._create, self._copy, self._patch, self._patch, self._delete])()

    def _on_keys(self):
        if not self.secrets:
            self._create_key()
        elif len(self.secrets) >= MOST_OWN:
            self._revoke()
        else:
            self._random.choice([self._create_key, self._rotate, self._rotate, self._revoke])()

    def _create(self):
        row_id = f"{self._name}-{next(self._count)}"
        note = uuid4().hex
        self._send("create_site", f"sites/{row_id}", "POST", "/v1/sites", body=site(row_id, note))

    def _copy(self):
        source = self._random.choice(list(self._sites))
        row_id = f"{self._name}-{next(self._count)}"
        self._send("copy_site", f"sites/{row_id}", "POST", f"/v1/sites/{source}:copy", body={"id": row_id})

    def _patch(self):
        row_id = self._random.choice(list(self._sites))
        etag, _ = self._sites[row_id]
        self._patch_row(row_id, etag)

    def _change_shared(self):
        self._patch_row(SHARED, "*")

    def _patch_row(self, row_id, etag):
        path, patch = f"/v1/sites/{row_id}", {"note": uuid4().hex}
        answer = self._send("update_site", f"sites/{row_id}", "PATCH", path, body=patch, if_match=etag)
        assert answer["note"] == patch["note"]

    def _delete(self):
        row_id = self._random.choice(list(self._sites))
        etag, _ = self._sites[row_id]
        self._send("delete_site", f"sites/{row_id}", "DELETE", f"/v1/sites/{row_id}", if_match=etag)

    def _create_key(self):
        body = {"name": self._name, "scopes": ["api-keys:read"]}
        self._send("create_api_key", "", "POST", "/v1/api-keys", body=body)

    def _rotate(self):
        path = f"api-keys/{self._random.choice(list(self.secrets))}"
        self._send("rotate_api_key", path, "POST", f"/v1/{path}:rotate", body={"overlap_seconds": 0})

    def _revoke(self):
        path = f"api-keys/{self._random.choice(list(self.secrets))}"
        self._send("revoke_api_key", path, "DELETE", f"/v1/{path}")

    def _send(self, operation, resource, method, path, *, body=None, if_match=""):
        key = uuid4().hex
        headers = {**self._headers, "Idempotency-Key": key, **({"If-Match": if_match} if if_match else {})}
        attempts, answer = self._until_answered(method, path, json=body, headers=headers)
        assert answer.is_success, (method, path, attempts, answer.text)
        document = answer.json() if answer.content else None
        resource, version, note = self._follow(resource, answer, document)
        was_replayed = "Idempotency-Replayed" in answer.headers
        self.acknowledged.append(Write(key, operation, resource, version, note, attempts, was_replayed))
        return document

    def _until_answered(self, method, path, **request):
        deadline = time.monotonic() + PATIENCE_SECONDS
        for attempts in itertools.count(1):
            assert time.monotonic() < deadline, (method, path)
            with contextlib.suppress(httpx.TransportError):
                address = self._random.choice(self._addresses)
                answer = self._client.request(method, address + path, **request)
                if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE and not is_in_use(answer):
                    return attempts, answer
            time.sleep(0.02)
        raise AssertionError

    def _follow(self, resource, answer, document):
        """What was written, and what it is from now on."""
        collection, _, row_id = resource.partition("/")
        if collection == "sites" and document is None:
            etag, note = self._sites.pop(row_id)
            return resource, int(etag.strip('"')) + 1, note
        if collection == "sites":
            if row_id != SHARED:
                self._sites[row_id] = (answer.headers["ETag"], document["note"])
            return resource, document["version"], document["note"]
        if document is None:
            self.revoked.append(self.secrets.pop(row_id))
            return resource, 0, None
        row_id = document["key"]["id"]
        self.secrets[row_id] = document.get("secret")
        return f"api-keys/{row_id}", document["key"]["version"], None


def is_in_use(answer):
    return answer.status_code == httpx.codes.CONFLICT and answer.json()["code"] == "IDEMPOTENCY_KEY_IN_USE"


class Load:
    """Callers at work until they are told to stop; those that wait for an answer then wait on."""

    def __init__(self, fleet, callers):
        self._database = fleet.database
        self._stop = threading.Event()
        self._events_before = events(fleet.database)
        (client, *_) = fleet.clients()
        key, note = uuid4().hex, uuid4().hex
        with client:
            answer = client.post("/v1/sites", json=site(SHARED, note), headers={"Idempotency-Key": key})
        assert answer.status_code == httpx.codes.CREATED, answer.text
        self._first = Write(key, "create_site", f"sites/{SHARED}", 1, note, 1, was_replayed=False)
        self.callers = [Caller(number, fleet, self._stop) for number in range(callers)]
        self._pool = ThreadPoolExecutor(callers)
        self._working = [self._pool.submit(caller.work) for caller in self.callers]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._pool.shutdown(wait=False)

    def stop(self):
        self._stop.set()
        for work in self._working:
            work.result()
        own = (write for caller in self.callers for write in caller.acknowledged)
        self.acknowledged = [self._first, *own]

    def unmatched(self):
        """Effects that were acknowledged and are not stored, and those stored that nobody asked for."""
        expected, stored = self._expected(), self._stored()
        return expected - stored, stored - expected

    def count_checks(self):
        """How many effects are looked for: versions, keys, events and answers."""
        return self._expected().total()

    def _expected(self):
        writes = self.acknowledged
        sites = [
            ("version", w.resource, w.version, w.note, w.operation == "delete_site")
            for w in writes
            if w.resource.startswith("sites/")
        ]
        keys = Counter(w.resource for w in writes if w.resource.startswith("api-keys/"))
        revoked = {w.resource for w in writes if w.operation == "revoke_api_key"}
        return Counter(
            [
                *sites,
                *(("key", resource, version, resource in revoked) for resource, version in keys.items()),
                *(("event", w.operation, w.resource) for w in writes),
                *(("answer", digest_json(w.key)) for w in writes),
            ]
        )

    def _stored(self):
        database, site_row, key_row, event = self._database, SiteRow, ApiKeyRow, AuditEventRow
        versions = select(site_row).where(site_row.tenant_id == TENANT)
        keys = select(key_row).where(key_row.name.startswith("caller-"))
        since = select(event).where(event.tenant_id == TENANT, event.sequence > self._events_before)
        answers = select(IdempotencyKeyRow.key_digest)
        with database.open_reader() as session:
            return Counter(
                [
                    *(
                        ("version", f"sites/{row.id}", row.version, row.note, row.deleted)
                        for row in session.scalars(versions)
                    ),
                    *(
                        ("key", f"api-keys/{row.id}", row.version, row.revoked_at is not None)
                        for row in session.scalars(keys)
                    ),
                    *(("event", row.operation, row.resource) for row in session.scalars(since)),
                    *(("answer", value) for value in session.scalars(answers)),
                ]
            )


def events(database):
    """How many events the chain of the tenant has."""
    ((count,),) = rows(database, select(func.count()).where(AuditEventRow.tenant_id == TENANT))
    return count


def revisions(database):
    """The revision of the tenant's catalog, and that of every change that is stored."""
    ((revision,),) = rows(database, select(CatalogState.revision).where(CatalogState.tenant_id == TENANT))
    changes = [
        value
        for table in (resource.table for resource in RESOURCES.values())
        for (value,) in rows(database, select(table.revision).where(table.tenant_id == TENANT))
    ]
    return revision, sorted(changes)
