"""Nodes, the network between and a service, all of which fail; and what must hold once all have ended."""

import contextlib
import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple
from uuid import uuid4

import httpx
from sqlalchemy import func, select

from service.app.backup import restore_backup, write_backup
from service.audit.service import Writes
from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.benchmarks.validation.tables import BenchmarkValidationRow
from service.kit.jobs.leases import RUNNING, WAITING
from service.kit.security.keyring import Keyring, read_or_create_secret
from service.nodes.tables import COMPLETED, LeaseGrantRow, LeaseRow, NodeRow
from service.protocol.suites import BenchmarkSuite
from tests import forked, waiting
from tests.faults import calibrations, node_service, node_worker
from tests.faults.disk import lose_power
from tests.faults.harness import ROOT, rows
from tests.faults.points import read_ledger
from tests.faults.proxy import Proxy
from tests.faults.served import free_port

SEED = int(os.environ.get("IRONLAW_FAULTS_SEED", "1"))
PATIENCE_SECONDS = 120.0
FINAL = ("completed", "failed", "cancelled", "dead")
LUCK = (0.0, 0.5, 1.0)
"""Share of what was not brought to the disk that is there after a kill; 1 is a kill without loss of power."""


class Violation(AssertionError):
    """Something that must hold does not."""


def until(condition, what, seconds=PATIENCE_SECONDS):
    """Wait for something; the message says what it was."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise Violation(f"in vain: {what}")
        time.sleep(0.02)
    return found


def until_done(left, what, seconds=PATIENCE_SECONDS):
    """Wait until nothing is left of some work; the message says what it was."""
    try:
        waiting.until_done(left, seconds)
    except AssertionError as in_vain:
        raise Violation(f"in vain: {what}") from in_vain


class Service:
    """A process that serves one database, at the same address each time."""

    def __init__(self, database, folder, mutation=""):
        self._folder = folder
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._client = httpx.Client(base_url=self.address, trust_env=False, timeout=5)
        self._hits = folder / "service-hits.jsonl"
        self._options = {
            "log": str(folder / "service.log"),
            "hits": str(self._hits),
            "mutation": mutation,
            "environment": {
                "IRONLAW_DATA_DIR": str(folder),
                "IRONLAW_PORT": str(self.port),
                "IRONLAW_REQUESTS_PER_MINUTE": "0",
            },
        }
        self.serve(database)
        self.keyring = Keyring(read_or_create_secret(folder / "secret.key"))

    def serve(self, database):
        """Serve a database from the next start on."""
        address = database.url.render_as_string(hide_password=False)
        self._options["environment"]["IRONLAW_DATABASE_URL"] = address

    def start(self, **armed):
        self.process = forked.Process(node_service.run, {**self._options, "armed": armed})

    def until_ready(self):
        until(self._is_ready, f"the service is ready; see {self._options['log']}")

    def _is_ready(self):
        with contextlib.suppress(httpx.TransportError):
            return self._client.get("/readyz").status_code == httpx.codes.OK
        return False

    def ask(self, method, path, body=None):
        """The answer to an operator's request, sent again under its key until there is one."""
        headers = {"Idempotency-Key": uuid4().hex}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                answer = self._client.request(method, path, json=body, headers=headers)
                if answer.is_success:
                    return answer.json()
                if answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR and not _is_in_use(answer):
                    raise Violation(f"{method} {path}: {answer.text}")
            time.sleep(0.05)
        raise Violation(f"in vain: {method} {path}")

    def hits(self):
        """How often each point was hit."""
        return Counter(line["point"] for line in read_ledger(self._hits))

    def end(self):
        self._client.close()
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.join()


def _is_in_use(answer):
    return answer.status_code == httpx.codes.CONFLICT and "KEY_IN_USE" in answer.text


class Host:
    """One host: its disk, its worker's process, and its way to the service."""

    def __init__(self, number, service, folder, seed, *, mutation="", spool_bytes=2**20):
        self.name = f"node-{number}"
        self._service = service
        self.proxy = Proxy(service.port, seed)
        self.chance = random.Random(seed)  # noqa: S311
        self.folder = folder / self.name
        self.disk, self._notes = self.folder / "disk", self.folder / "notes"
        self.disk.mkdir(parents=True)
        self.home = self.disk / "home"
        self.ledger = self.folder / "ledger.jsonl"
        self._hits = self.folder / "hits.jsonl"
        self.node_id = None
        self._token = None
        self._options = {
            "home": str(self.home),
            "disk": str(self.disk),
            "notes": str(self._notes),
            "hits": str(self._hits),
            "ledger": str(self.ledger),
            "log": str(self.folder / "worker.log"),
            "lock_file": str(self.folder / "worker.lock"),
            "address": self.proxy.address,
            "name": self.name,
            "python_path": str(ROOT),
            "mutation": mutation,
            "spool_bytes": spool_bytes,
        }

    def start(self, *, child_seconds=0.01, **armed):
        self._start(node_worker.run, child_seconds=child_seconds, armed=armed)

    def _start(self, target, **options):
        busy = (self._options["home"], self._options["lock_file"])
        until(lambda: not node_worker.is_busy(*busy), "the worker before has ended")
        self.process = forked.Process(target, {**self._options, **options})

    def enrol(self, **armed):
        """Run the command that enrols; whether it is done."""
        if self._is_enrolled():
            return True
        if self._token is None:
            self._token = self._service.ask("POST", "/v1/enrolment-tokens", {})["token"]
        self._start(node_worker.enrol, token=self._token, child_seconds=0, armed=armed)
        self.process.join(PATIENCE_SECONDS)
        return self.process.exitcode == 0 and self._is_enrolled()

    def _is_enrolled(self):
        node = self.home / "node.json"
        if node.exists():
            self.node_id, self._token = json.loads(node.read_text())["node_id"], None
        return node.exists()

    def until_enrolled(self):
        until(self.enrol, f"{self.name} is enrolled")

    def leave(self):
        """Be a host that never enrolled; nothing is left behind on it."""
        expect(not self.waiting(), f"{self.name} has handed everything over")
        until(self._is_removed, f"nothing of {self.name} is left")
        self.node_id = None

    def _is_removed(self):
        """Remove the worker's folder; a child that outlives a killed worker may still write there."""
        shutil.rmtree(self.home, ignore_errors=True)
        return not self.home.exists()

    def kill(self, number=signal.SIGKILL):
        if self.process.is_alive():
            os.kill(self.process.pid, number)
        self.until_dead(f"{self.name} ends")

    def until_dead(self, what):
        """Wait for the end of the process."""
        self.process.join(PATIENCE_SECONDS)
        expect(self.process.exitcode is not None, what)

    def lose_power(self, kept=None):
        """The host goes off; its disk holds what was brought there, and some of the rest."""
        kept = self.chance.choice(LUCK) if kept is None else kept
        lose_power(self.disk, self._notes, self.chance, kept)

    def resume(self):
        """Let a frozen process go on."""
        os.kill(self.process.pid, signal.SIGCONT)

    def hits(self):
        """How often each point was hit."""
        return Counter(line["point"] for line in read_ledger(self._hits))

    def waiting(self):
        return sorted((self.home / "spool" / "waiting").glob("[!.]*.json"))

    def end(self):
        if hasattr(self, "process"):
            self.kill()
        self.proxy.close()


class Forgotten(NamedTuple):
    """What a service no longer knows that was restored from a backup."""

    nonces: frozenset[str] = frozenset()
    """Of grants."""
    since: float = 0.0
    until: float = 0.0

    def is_line_forgotten(self, line):
        """Whether what a worker was told, by a line of its ledger, came after the backup."""
        return self.since <= line["at"] <= self.until


class Field:
    """A service and hosts that are nodes of it."""

    def __init__(self, database, folder, *, seed=SEED, hosts=1, service_mutation="", worker_mutation=""):
        print(f"seed {seed}")
        self.database, self.seed = database, seed
        self.service = Service(database, folder, service_mutation)
        self.service.start()
        self.service.until_ready()
        self._revision = calibrations.revision(database)
        self._withdrawn, self._imported = [], []
        self.forgotten = Forgotten()
        self.is_resting = threading.Event()
        self.hosts = [Host(n, self.service, folder, seed + n, mutation=worker_mutation) for n in range(hosts)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.end()
        self.service.end()

    def ask_run(self, host=None):
        """Ask for a run, on one host or any; its id."""
        body = {"suite_id": "tiny"} if host is None else {"suite_id": "tiny", "node_id": host.node_id}
        return self.service.ask("POST", "/v1/benchmark-runs", body)["id"]

    def withdraw(self):
        """Withdraw a set that counts, once all have been drawn: a storm asks for no more runs until then."""
        self.is_resting.set()
        try:
            until_done(lambda: calibrations.undrawn(self.database), "every set that was asked for is drawn")
            found = until(lambda: calibrations.withdrawable(self.database), "there is a set to withdraw")
        finally:
            self.is_resting.clear()
        self.service.ask("POST", f"/v1/calibrations/{found}:withdraw", {"reason": "the node was not alone"})
        self._withdrawn.append(found)

    def import_evidence(self):
        """Import a file, each time with another note."""
        body = {**calibrations.EVIDENCE, "note": f"import {len(self._imported)}"}
        self._imported.append(self.service.ask("POST", "/v1/evidence:import", body))

    def back_up(self, path):
        """Write a backup of this moment."""
        self._backed_up_at = time.time()
        write_backup(self.database, path)

    def restore(self, path, empty):
        """Go on with an empty database that the backup is restored into."""
        self.service.kill()
        known = self._nonces()
        restore_backup(empty, path)
        self.database = empty
        self.forgotten = Forgotten(known - self._nonces(), self._backed_up_at, time.time())
        self.service.serve(empty)
        self.service.start()
        self.service.until_ready()

    def _nonces(self):
        return frozenset(grant.nonce for grant in self.grants())

    def open_runs(self):
        """How many runs have not ended."""
        is_open = LeaseRow.state.in_([WAITING, RUNNING])
        ((count,),) = rows(self.database, select(func.count()).select_from(LeaseRow).where(is_open))
        return count

    def unjudged(self):
        """How many results of completed runs have no verdict."""
        verdict = select(BenchmarkValidationRow.result_id).where(
            BenchmarkValidationRow.result_id == BenchmarkResultRow.id
        )
        open_results = (
            select(func.count())
            .select_from(BenchmarkResultRow)
            .join(LeaseRow, LeaseRow.id == BenchmarkResultRow.run_id)
        )
        of_completed = (LeaseRow.state == COMPLETED, BenchmarkResultRow.status == "ok", ~verdict.exists())
        ((count,),) = rows(self.database, open_results.where(*of_completed))
        return count

    def lease(self, run):
        ((row,),) = rows(self.database, select(LeaseRow).where(LeaseRow.id == run))
        return row

    def grants(self):
        return [row for (row,) in rows(self.database, select(LeaseGrantRow))]

    def results(self):
        statement = select(BenchmarkResultRow, BenchmarkResultRow.content)
        return [(row, content) for row, content in rows(self.database, statement)]

    def settle(self, seconds=PATIENCE_SECONDS):
        """Let everything come to its end: no more faults, every run terminal, every spool handed over."""
        for host in self.hosts:
            host.proxy.calm()
            host.proxy.let_go()
            if not host.process.is_alive():
                host.start()
        # Validation may ask for suspects to be measured again, and asks for drawings.
        steps = (self.open_runs, self.unjudged, self.open_runs, lambda: calibrations.undrawn(self.database))
        until_done(
            lambda: tuple(step() for step in steps),
            "every run is terminal, every result of a completed one has its verdict and was drawn from",
            seconds,
        )
        for host in self.hosts:
            until_done(
                lambda host=host: len(host.waiting()), f"the spool of {host.name} is handed over", seconds
            )
            host.kill(signal.SIGTERM)
            assert host.process.exitcode == 0, f"{host.name} ended with {host.process.exitcode}"

    def check(self):
        """Everything that must hold of what is stored, whatever has gone wrong; raises :class:`Violation`."""
        found = _Stored(self)
        found.check_kept()
        found.check_results()
        found.check_leases()
        found.check_spools()
        for holds, what in found.calibrations.checks(self._withdrawn, self._imported, self._revision):
            expect(holds, what)
        with self.database.open_reader() as session:
            verdict = Writes(self.database, self.service.keyring).verify_chain(session, "default")
        expect(verdict.fault is None, "the audit chain holds")
        return found


def expect(holds, what):
    if not holds:
        raise Violation(f"not so: {what}")


class _Stored:
    """What is stored, beside what the workers saw."""

    def __init__(self, field):
        self._field, self._forgotten = field, field.forgotten
        self.rows = field.results()
        self.leases = {row.id: row for (row,) in rows(field.database, select(LeaseRow))}
        self.grants = {(row.lease_id, row.fencing_token): row for row in field.grants()}
        self.nodes = {row.id: row for (row,) in rows(field.database, select(NodeRow))}
        suites = select(BenchmarkRunRow.id, BenchmarkRunRow.suite)
        self.asked = {
            run: BenchmarkSuite.model_validate(suite) for run, suite in rows(field.database, suites)
        }
        self.calibrations = calibrations.Stored(field.database)
        self.seen = [line for host in field.hosts for line in read_ledger(host.ledger)]

    def counts(self):
        """What there is, for the report; a result that is lost or stored twice has not come this far."""
        return {
            "completed": sum(row.state == "completed" for row in self.leases.values()),
            "results": len(self.rows),
            "late": sum(row.lease == "late" for row, _ in self.rows),
            "conflicts": sum(row.conflicts_with is not None for row, _ in self.rows),
            "lost": len(self._lost()),
            "twice": self._twice(),
            **self.calibrations.counts(),
        }

    def _lost(self):
        stored = {row.id for row, _ in self.rows}
        return {line["result"] for line in self._lines("receipt", "kept")} - stored

    def _twice(self):
        return len(self.rows) - len({row.id for row, _ in self.rows})

    def check_kept(self):
        """Of what a worker brought to its disk nothing is lost, and nothing is stored twice."""
        expect(not self._twice(), "no result is stored twice")
        digests = {row.content_sha256 for row, _ in self.rows}
        expect(len(digests) == len(self.rows), "no two results are the same bytes")
        stored = {row.id: (row.content_sha256, content) for row, content in self.rows}
        for line in self._lines("receipt"):
            expect(line["result"] in stored, f"the acknowledged result {line['result']} is stored")
            expect(stored[line["result"]][0] == line["digest"], "under the digest that was acknowledged")
        for line in self._lines("kept"):
            expect(line["result"] in stored, f"the result {line['result']} that was on the disk is stored")
            digest, content = stored[line["result"]]
            expect((digest, content) == (line["digest"], line["content"]), "byte for byte")
            expect(sha256(content.encode()).hexdigest() == digest, "with its digest")

    def check_results(self):
        """What counts was taken while its lease held, once for each place of the run."""
        places = Counter()
        for row, content in self.rows:
            record = json.loads(content)
            if record["nonce"] in self._forgotten.nonces:
                expect(row.lease == "unknown", "none counts whose lease the service has forgotten")
                continue
            grant = self.grants.get((row.run_id, row.fencing_token))
            expect(row.lease in ("current", "late"), f"every result is of a lease, not {row.lease}")
            expect(grant is not None and grant.node_id == row.node_id, "which its node was granted")
            expect(grant.nonce == record["nonce"], "under its nonce")
            if row.lease == "current":
                # An attempt that lapsed and completes its run after all has handed everything in by then.
                is_completed = grant.outcome == "completed"
                ended = self.leases[row.run_id].finished_at if is_completed else grant.ended_at
                expect(ended is None or row.received_at <= ended, "none counts that came after its lease")
                places[row.run_id, row.fencing_token, row.benchmark, row.repeat] += row.conflicts_with is None
        expect(not places or max(places.values()) == 1, "one result counts for each repeat")
        attempts = Counter(run for run, _ in {place[:2] for place in places})
        expect(not attempts or max(attempts.values()) == 1, "one attempt counts for each run")

    def check_leases(self):
        """Every run is terminal, by the word of the one who held it; none was held twice at a time."""
        for row in self.leases.values():
            expect(row.state in FINAL and row.finished_at is not None, f"run {row.id} is terminal")
            grants = sorted(
                (grant for grant in self.grants.values() if grant.lease_id == row.id),
                key=lambda grant: grant.fencing_token,
            )
            expect(len(grants) == row.attempt, "each attempt was granted once")
            for grant in grants:
                expect(grant.ended_at is not None, f"every grant of run {row.id} has ended")
            for before, after in pairwise(grants):
                expect(before.ended_at <= after.granted_at, "no lease is granted before the last has ended")
            if row.state == "failed":
                expect(grants[-1].outcome == row.state, f"the last holder said how run {row.id} ended")
            if row.state == "completed":
                (completed,) = [grant for grant in grants if grant.outcome == row.state]
                self._check_whole(completed)
        for line in self._lines("completed"):
            if self._forgotten.is_line_forgotten(line):
                continue
            grant = self.grants[line["run"], line["token"]]
            said = (grant.outcome, grant.state_after)
            expect(said == (line["outcome"], line["state"]), "what a node was told of its lease is so")

    def _check_whole(self, grant):
        token = (grant.lease_id, grant.fencing_token)
        held = {
            (row.benchmark, row.repeat)
            for row, _ in self.rows
            if (row.run_id, row.fencing_token) == token and row.lease != "unknown"
        }
        suite = self.asked[grant.lease_id]
        asked = {(one.name, n + 1) for one in suite.benchmarks for n in range(one.repeats)}
        expect(held == asked, f"the record of the completed run {token[0]} is complete")

    def check_spools(self):
        """Nothing is left on a node that the service does not have."""
        stored = {row.content_sha256 for row, _ in self.rows}
        for host in self._field.hosts:
            spool = host.home / "spool"
            expect(not host.waiting(), f"{host.name} has handed everything over")
            expect(not list((spool / "rejected").iterdir()), f"nothing of {host.name} was rejected")
            for path in (spool / "acknowledged").iterdir():
                expect(path.name.split(".")[1] in stored, "what is acknowledged is stored")
            for path in (spool / "incomplete").iterdir():
                whole = sha256(path.read_bytes()).hexdigest() == path.name.strip(".").split(".")[1]
                expect(not whole or path.name.endswith(".part"), "what is set aside is a torn file")
            expect(self.nodes[host.node_id].state == "active", f"{host.name} is in good standing")

    def _lines(self, *kinds):
        return [line for line in self.seen if line["what"] in kinds]
