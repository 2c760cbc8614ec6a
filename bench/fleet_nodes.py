"""Simulated nodes and their operator: what a fleet does with a service, over HTTP and in real time.

A node lives as a worker does: it enrols, beats, claims, renews, reports and completes at the intervals that
the service tells. What it keeps on its disk survives its restarts. Nothing here measures anything.
"""

import asyncio
import contextlib
import random
import ssl
import time
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal
from uuid import uuid4

import httpx
from pydantic import BaseModel

from bench.fleet_records import WORKER_VERSION, inventory, measured, repeat_seconds
from service.protocol.canonical import compute_digest
from service.protocol.leases import (
    AcknowledgedBenchmarkResult,
    BenchmarkLease,
    BenchmarkProgress,
    LeaseClaimRequest,
    LeaseCompletion,
    LeaseCompletionRequest,
    LeaseProgress,
    LeaseRenewal,
    LeaseRenewalRequest,
)
from service.protocol.nodes import (
    IssuedNodeCredential,
    NodeEnrolment,
    NodeEnrolmentRequest,
    NodeHeartbeatRequest,
    NodeInstructions,
    NodeSpoolState,
)
from service.protocol.results import BenchmarkResultReceipt, content_sha256
from service.worker.client import ANSWER_SECONDS, IDLE_SECONDS, UPLOAD_SECONDS
from service.worker.credential import SETTLED_SECONDS
from service.worker.ids import generate_hex_128

CLAIM_SECONDS = 30.0
LOST_SHARE = 0.02
"""Share of answers that get lost; the same request is sent again."""
CUT_SHARE = 0.03
"""Share of claims whose connection breaks while they wait."""
PAUSE_SECONDS = 1.0
RUN_AGAIN_SECONDS = 2.0
MOST_OFFERED = 1000

MEANT = {
    (
        "claim_lease",
        "409 NODE_BUSY",
    ): "a node whose restart lost its lease claims anew before that has lapsed",
    ("renew_lease", "409 STALE_LEASE"): "a node that was away for longer than its lease holds on to it",
    ("complete_lease", "409 STALE_LEASE"): "the same, or a restarted one, gives back a lease that has lapsed",
    ("cancel_benchmark_run", "409 RUN_ENDED"): "the operator cancels a run that has just ended",
}
"""Expected refusals in this simulation, with their reasons. Every other one is an error."""

Restart = Literal["short", "reboot", "forgetful", "long"]
RESTARTS: tuple[Restart, ...] = ("short", "forgetful", "long", "reboot")
AWAY_SECONDS: Mapping[Restart, float] = {"short": 5.0, "reboot": 40.0, "forgetful": 5.0, "long": 150.0}
"""A forgetful restart loses the state of its lease; a long one outlasts the lease."""


@dataclass
class RequestTally:
    """Counts of requests and answers."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    lost: Counter[str] = field(default_factory=Counter)
    cut: int = 0
    restarts: Counter[str] = field(default_factory=Counter)
    rotations: int = 0
    wrong: list[str] = field(default_factory=list)
    """Unexpected answers."""

    @property
    def errors(self) -> dict[tuple[str, str], int]:
        """Answers that are neither a success nor an expected refusal."""
        return {
            key: count
            for key, count in self.answers.items()
            if not key[1].startswith("2") and key not in MEANT
        }


class SimulatedWorld:
    """State that nodes and operator share: the service, simulated time and the tally."""

    def __init__(self, address: str, *, speed: float, seconds: float) -> None:
        self.address = address
        self.speed = speed
        self.seconds = seconds
        """Lifetime of nodes in node time."""
        self.tally = RequestTally()
        self.sent: dict[str, str] = {}
        self.acknowledged: dict[str, str] = {}
        """Digests by id of the results that were sent, and of those with a receipt."""
        self._trust = ssl.create_default_context()

    def client(self) -> httpx.AsyncClient:
        """Returns a client with the connections of one host."""
        # Every request has its own time limit.
        return httpx.AsyncClient(
            base_url=self.address,
            verify=self._trust,
            trust_env=False,
            limits=httpx.Limits(keepalive_expiry=IDLE_SECONDS),
            timeout=CLAIM_SECONDS + UPLOAD_SECONDS,
        )

    async def sleep(self, seconds: float) -> None:
        """Sleeps for some seconds of node time."""
        await asyncio.sleep(seconds / self.speed)

    def now(self) -> float:
        """Returns the node time."""
        return time.monotonic() * self.speed


def named(answer: httpx.Response) -> str:
    """Returns the status of an answer, with the code of a problem."""
    if answer.is_success:
        return str(answer.status_code)
    with contextlib.suppress(ValueError):
        return f"{answer.status_code} {answer.json().get('code')}"
    return str(answer.status_code)


class RetryingCaller:
    """Client that repeats requests until they are answered, and counts the results."""

    def __init__(self, world: SimulatedWorld, chance: random.Random) -> None:
        self.world = world
        self.tally = world.tally
        self.chance = chance
        self.http = world.client()

    async def _once(
        self,
        operation: str,
        method: str,
        path: str,
        seconds: float,
        *,
        waits: float = 0.0,
        **request: Any,  # noqa: ANN401
    ) -> httpx.Response | None:
        """Sends one request. Returns None without an answer within ``seconds`` of real time."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                answer = await self.http.request(method, path, **request)
        except (TimeoutError, httpx.HTTPError) as error:
            self.tally.answers[operation, f"none: {type(error).__name__}"] += 1
            return None
        took = time.monotonic() - began
        self.tally.answers[operation, named(answer)] += 1
        if not waits:
            self.tally.seconds[operation].append(took)
        elif answer.status_code == httpx.codes.NO_CONTENT:
            self.tally.seconds[f"{operation}, nothing to run: beyond its wait"].append(took - waits)
        return answer

    async def _until_answered(
        self, operation: str, once: Callable[[], Coroutine[Any, Any, httpx.Response | None]]
    ) -> httpx.Response:
        """Returns the answer to a request that is repeated after a lost or inconclusive answer."""
        lost = None
        while True:
            answer = await once()
            if answer is None or answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
                await self.world.sleep(PAUSE_SECONDS)
            elif lost is None and self.chance.random() < LOST_SHARE:
                self.tally.lost[operation] += 1
                lost = answer
            else:
                if lost is not None and operation in _DONE_ONCE and not _says_the_same(lost, answer):
                    self.tally.wrong.append(f"{operation}, sent again: {named(lost)}, then {named(answer)}")
                return answer


_DONE_ONCE = (
    "enrol_node",
    "claim_lease",
    "report_benchmark_result",
    "complete_lease",
    "create_benchmark_run",
    "cancel_benchmark_run",
)
_SHOWN_ONCE = ("server_time", "credential")


def _says_the_same(first: httpx.Response, second: httpx.Response) -> bool:
    """Returns true if an answer equals the lost one, except for times and new secrets."""
    if {first.status_code, second.status_code} - {httpx.codes.OK, httpx.codes.CREATED}:
        return True
    one, other = (
        {name: value for name, value in answer.json().items() if name not in _SHOWN_ONCE}
        for answer in (first, second)
    )
    return one == other


class SimulatedNode(RetryingCaller):
    """A host and its worker."""

    def __init__(self, world: SimulatedWorld, number: int) -> None:
        super().__init__(world, random.Random(number))  # noqa: S311
        self.number = number
        self.device: Literal["cpu", "cuda"] = "cuda" if number % 4 == 3 else "cpu"  # noqa: PLR2004
        self.inventory = inventory(number, self.device)
        self.inventory_sha256 = compute_digest(self.inventory)
        self.boot = self._new_boot()
        self.id = self.credential = ""
        self.lease: BenchmarkLease | None = None
        self.request_id: str | None = None
        self.kept: list[AcknowledgedBenchmarkResult] = []
        """Returns the state on its disk besides the credential: lease, pending claim, acknowledged
        results.
        """
        self.activity: Literal["idle", "measuring"] = "idle"
        self._due = asyncio.Event()
        self._changed = asyncio.Condition()
        self._senders = 0
        self._is_rotating = False
        self._given_up_at = float("-inf")

    def _new_boot(self) -> str:
        return sha256(self.chance.randbytes(16)).hexdigest()

    async def enrol(self, token: str) -> None:
        """Enrols the node."""
        enrolment = NodeEnrolmentRequest(
            token=token,
            installation_id=generate_hex_128(),
            name=f"simulated-{self.number}",
            device=self.device,
            worker_version=WORKER_VERSION,
        )
        request: dict[str, Any] = {
            "content": enrolment.model_dump_json(),
            "headers": {"Content-Type": "application/json"},
        }
        answer = await self._until_answered(
            "enrol_node",
            lambda: self._once("enrol_node", "POST", "/v1/nodes:enrol", ANSWER_SECONDS, **request),
        )
        enrolled = NodeEnrolment.model_validate_json(answer.content)
        self.id, self.credential = enrolled.node_id, enrolled.credential

    async def live(self, until: float) -> None:
        """Sends heartbeats and works until ``until`` in node time, with the restart of this node."""
        if self.number % 5 == 2:  # noqa: PLR2004
            kind = RESTARTS[self.number // 5 % len(RESTARTS)]
            left = until - self.world.now()
            await self._work_for(self.chance.uniform(0.1, 0.4) * left)
            if kind in ("forgetful", "long"):
                await self._work_for(until - self.world.now(), until_it_measures=True)
            self.tally.restarts[kind] += 1
            await self.world.sleep(min(AWAY_SECONDS[kind], max(until - self.world.now(), 0.0)))
            if kind == "forgetful":
                self.lease = self.request_id = None
            if kind == "reboot":
                self.boot = self._new_boot()
        await self._work_for(until - self.world.now())

    async def _work_for(self, seconds: float, *, until_it_measures: bool = False) -> None:
        """Runs one process of the worker, killed after some seconds of node time or during a measurement."""
        tasks = [asyncio.create_task(self._process())]
        if until_it_measures:
            tasks.append(asyncio.create_task(self._has_begun()))
        done, left = await asyncio.wait(
            tasks, timeout=max(seconds, 0) / self.world.speed, return_when=asyncio.FIRST_COMPLETED
        )
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for task in done:
            task.result()

    async def _has_begun(self) -> None:
        while self.activity != "measuring":
            await self.world.sleep(1.0)
        await self.world.sleep(5.0)

    async def _process(self) -> None:
        self.activity = "idle"
        offered = [one.content_sha256 for one in self.kept[-MOST_OFFERED:]]
        await self._beat(offered)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._heart())
            group.create_task(self._work())

    @contextlib.asynccontextmanager
    async def _carrying(self) -> AsyncIterator[dict[str, str]]:
        """Returns the credential for one request, which stays valid until the request has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._is_rotating)
            self._senders += 1
        try:
            yield {"Authorization": f"Bearer {self.credential}"}
        except BaseException:
            self._given_up_at = self.world.now()
            raise
        finally:
            self._senders -= 1
            async with self._changed:
                self._changed.notify_all()

    async def ask(
        self,
        operation: str,
        method: str,
        path: str,
        content: BaseModel | bytes | None = None,
        *,
        seconds: float = ANSWER_SECONDS,
        waits: float = 0.0,
    ) -> httpx.Response:
        """Returns the answer to a request of this node."""
        body = content.model_dump_json().encode() if isinstance(content, BaseModel) else content
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if isinstance(content, bytes):
            headers["Content-Digest"] = f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"

        async def once() -> httpx.Response | None:
            async with self._carrying() as bearer:
                if waits and self.chance.random() < CUT_SHARE:
                    await self._cut(method, path, content=body, headers={**headers, **bearer})
                answer = await self._once(
                    operation, method, path, seconds, waits=waits, content=body, headers={**headers, **bearer}
                )
                if answer is None:
                    self._given_up_at = self.world.now()
                return answer

        return await self._until_answered(operation, once)

    async def _cut(self, method: str, path: str, **request: Any) -> None:  # noqa: ANN401
        """Sends a request whose connection breaks while it waits, or whose answer is lost."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.chance.uniform(0.0, CLAIM_SECONDS / self.world.speed)):
                await self.http.request(method, path, **request)
        self._given_up_at = self.world.now()
        self.tally.cut += 1

    async def _beat(self, acknowledged: list[str] | None = None) -> NodeInstructions | None:
        beat = NodeHeartbeatRequest(
            boot_id_sha256=self.boot,
            worker_version=WORKER_VERSION,
            inventory_sha256=self.inventory_sha256,
            activity=self.activity,
            spool=NodeSpoolState(waiting_count=0, waiting_bytes=0, free_bytes=10**11),
            acknowledged=acknowledged or [],
        )
        answered = await self.ask("heartbeat_node", "POST", f"/v1/nodes/{self.id}:heartbeat", beat)
        if not answered.is_success:
            return None
        answer = NodeInstructions.model_validate_json(answered.content)
        if answer.missing or answer.state != "active":
            self.tally.wrong.append(f"heartbeat: {answer.state}, {len(answer.missing)} results missing")
        if answer.send_inventory:
            path = f"/v1/nodes/{self.id}/inventory"
            await self.ask("put_node_inventory", "PUT", path, self.inventory)
        return answer

    async def _heart(self) -> None:
        while True:
            answer = await self._beat()
            seconds = PAUSE_SECONDS if answer is None else answer.heartbeat_seconds
            is_settled = self.world.now() - self._given_up_at >= SETTLED_SECONDS
            if answer is not None and answer.rotate and is_settled and await self._rotate():
                continue  # the next heartbeat is the first use of the new credential
            self._due.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds * self.chance.uniform(0.9, 1.0) / self.world.speed):
                    await self._due.wait()

    async def _rotate(self) -> bool:
        """Replaces the credential while no other request is pending. Returns true if it was replaced."""
        async with self._changed:
            self._is_rotating = True
            try:
                await self._changed.wait_for(lambda: not self._senders)
                if self.world.now() - self._given_up_at < SETTLED_SECONDS:
                    return False
                headers = {"Authorization": f"Bearer {self.credential}"}
                path, operation = f"/v1/nodes/{self.id}:rotate", "rotate_node_credential"
                answer = await self._until_answered(
                    operation,
                    lambda: self._once(operation, "POST", path, ANSWER_SECONDS, headers=headers),
                )
                if not answer.is_success:
                    return False
                self.credential = IssuedNodeCredential.model_validate_json(answer.content).credential
                self.tally.rotations += 1
                return True
            finally:
                self._is_rotating = False
                self._changed.notify_all()

    async def _work(self) -> None:
        if self.lease is not None:  # the process before this one held it
            await self._complete("released", reason="WORKER_RESTARTED")
        while True:
            self.activity = "idle"
            self.lease = await self._claim()
            if self.lease is not None:
                self.request_id, self.activity = None, "measuring"
                self._due.set()
                await self._run(self.lease)
                self._due.set()

    async def _claim(self) -> BenchmarkLease | None:
        """Returns a lease, or None after a wait. After a restart it repeats the claim under the same id."""
        self.request_id = self.request_id or generate_hex_128()
        waits = CLAIM_SECONDS / self.world.speed
        claim = LeaseClaimRequest(
            request_id=self.request_id, wait_seconds=waits, inventory_sha256=self.inventory_sha256
        )
        patience = waits + ANSWER_SECONDS
        answer = await self.ask(
            "claim_lease", "POST", "/v1/leases:claim", claim, seconds=patience, waits=waits
        )
        if answer.status_code == httpx.codes.OK:
            return BenchmarkLease.model_validate_json(answer.content)
        if answer.status_code != httpx.codes.NO_CONTENT:
            await self.world.sleep(float(answer.headers.get("Retry-After", PAUSE_SECONDS)))
        return None

    async def _run(self, lease: BenchmarkLease) -> None:
        """Measures the suite of a lease, and completes it."""
        done: list[AcknowledgedBenchmarkResult] = []
        measuring = asyncio.create_task(self._measure(lease, done))
        holding = asyncio.create_task(self._hold(lease, done))
        try:
            await asyncio.wait((measuring, holding), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (measuring, holding):
                task.cancel()
            ended = await asyncio.gather(measuring, holding, return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome
        if ended[1] == "lost":
            self.lease = None
        elif ended[1] == "cancelled":
            await self._complete("cancelled", done)
        else:
            await self._complete("completed", done)

    async def _measure(self, lease: BenchmarkLease, done: list[AcknowledgedBenchmarkResult]) -> None:
        for benchmark in lease.suite.benchmarks:
            for repeat in range(1, benchmark.repeats + 1):
                await self.world.sleep(repeat_seconds(benchmark))
                record = measured(
                    lease,
                    benchmark,
                    repeat,
                    chance=self.chance,
                    speed=self.world.speed,
                    node_id=self.id,
                    boot_id_sha256=self.boot,
                    inventory_sha256=self.inventory_sha256,
                )
                done.append(await self._report(record.result_id, record.to_json()))

    async def _report(self, result_id: str, content: bytes) -> AcknowledgedBenchmarkResult:
        content_digest = content_sha256(content)
        self.world.sent[result_id] = content_digest
        path = f"/v1/benchmark-results/{result_id}"
        answer = await self.ask("report_benchmark_result", "PUT", path, content, seconds=UPLOAD_SECONDS)
        stored = AcknowledgedBenchmarkResult(result_id=result_id, content_sha256=content_digest)
        if answer.is_success:
            receipt = BenchmarkResultReceipt.model_validate_json(answer.content)
            if (receipt.result_id, receipt.content_sha256) != (result_id, content_digest):
                self.tally.wrong.append("a receipt for another result")
            self.world.acknowledged[result_id] = content_digest
            self.kept.append(stored)
        return stored

    async def _hold(self, lease: BenchmarkLease, done: list[AcknowledgedBenchmarkResult]) -> str:
        """Renews a lease as long as it is needed. Returns "lost" or "cancelled" if it ends."""
        path = f"/v1/leases/{lease.id}:renew"
        while True:
            await self.world.sleep(lease.renew_seconds)
            first = lease.suite.benchmarks[0].name
            steps = [BenchmarkProgress(benchmark=first, state="running", repeat=len(done))]
            renewal = LeaseRenewalRequest(
                fencing_token=lease.fencing_token, progress=LeaseProgress(steps=steps)
            )
            answer = await self.ask("renew_lease", "POST", path, renewal)
            if answer.status_code == httpx.codes.CONFLICT:
                return "lost"
            if answer.is_success and LeaseRenewal.model_validate_json(answer.content).cancel:
                return "cancelled"

    async def _complete(
        self, outcome: str, done: list[AcknowledgedBenchmarkResult] | None = None, **why: str
    ) -> None:
        lease = self.lease
        if lease is None:
            return
        completion = LeaseCompletionRequest.model_validate(
            {"fencing_token": lease.fencing_token, "outcome": outcome, "results": done or [], **why}
        )
        answer = await self.ask("complete_lease", "POST", f"/v1/leases/{lease.id}:complete", completion)
        if answer.is_success:
            LeaseCompletion.model_validate_json(answer.content)
        self.lease = None


class SimulatedOperator(RetryingCaller):
    """Operator that makes tokens, requests and cancels runs, reads lists and rotates credentials."""

    def __init__(self, world: SimulatedWorld, key: str) -> None:
        super().__init__(world, random.Random(0))  # noqa: S311
        self.http.headers["Authorization"] = f"Bearer {key}"
        self.asked: set[str] = set()
        """Ids of the acknowledged runs."""

    async def ask(self, operation: str, method: str, path: str, body: object = None) -> httpx.Response:
        """Returns the answer to an operator's request, repeated under the same key after a lost answer."""
        headers = {} if method == "GET" else {"Idempotency-Key": uuid4().hex}
        request = {"headers": headers} if body is None else {"headers": headers, "json": body}
        return await self._until_answered(
            operation, lambda: self._once(operation, method, path, ANSWER_SECONDS, **request)
        )

    async def token(self) -> str:
        """Returns the secret of a new enrolment token. A lost secret is never shown again."""
        while True:
            answer = await self.ask("create_enrolment_token", "POST", "/v1/enrolment-tokens", {})
            if (secret := answer.json().get("token")) is not None:
                return str(secret)

    async def ask_for_runs(self, nodes: list[SimulatedNode], every_seconds: float) -> None:
        """Requests runs at intervals: one in ten of accelerators, one in five of a certain node."""
        async with asyncio.TaskGroup() as group:
            number = 0
            while True:
                number += 1
                group.create_task(self._ask_for_run(number, nodes))
                await self.world.sleep(every_seconds)

    async def _ask_for_run(self, number: int, nodes: list[SimulatedNode]) -> None:
        device = "cuda" if number % 10 == 1 else "cpu"
        body = {"suite_id": "gpu-quick" if device == "cuda" else "cpu-standard", "note": f"number {number}"}
        if number % 5 == 0:
            body["node_id"] = self.chance.choice([one for one in nodes if one.device == device]).id
        answer = await self.ask("create_benchmark_run", "POST", "/v1/benchmark-runs", body)
        if not answer.is_success:
            return
        run_id = answer.json()["id"]
        self.asked.add(run_id)
        if number % 15 == 7:  # noqa: PLR2004
            await self.world.sleep(self.chance.uniform(5.0, 60.0))
            await self.ask("cancel_benchmark_run", "POST", f"/v1/benchmark-runs/{run_id}:cancel")

    async def look(self, every_seconds: float) -> None:
        """Reads the lists that a person would read."""
        paths = {
            "list_nodes": "/v1/nodes?page_size=200",
            "list_benchmark_runs": "/v1/benchmark-runs?page_size=50&state=running",
            "list_benchmark_results": "/v1/benchmark-results?page_size=50",
        }
        while True:
            for operation, path in paths.items():
                await self.ask(operation, "GET", path)
            if self.asked:
                run_id = self.chance.choice(sorted(self.asked))
                await self.ask("get_benchmark_run", "GET", f"/v1/benchmark-runs/{run_id}")
            await self.world.sleep(every_seconds)

    async def replace_credentials(self, nodes: list[SimulatedNode], *, over_seconds: float) -> None:
        """Rotates the credential of every tenth node, one after the other."""
        chosen = nodes[5::10]
        for node in chosen:
            await self.world.sleep(over_seconds / len(chosen))
            await self.ask("request_node_rotation", "POST", f"/v1/nodes/{node.id}:request-rotation")
