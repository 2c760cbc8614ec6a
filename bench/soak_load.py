"""The callers of `make soak`: a mix of requests of several tenants, at a rate of their own.

Requests are sent when they are due, whether or not earlier ones were answered. Connections are kept and are
plain sockets, so that the callers leave most of a small machine to the service.
"""

import asyncio
import contextlib
import json
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, NamedTuple

from service.app.examples import EXAMPLES

UNANSWERED = "no answer"
PATIENCE_SECONDS = 12.0
"""Time that a caller waits for an answer; the service gives long questions five seconds."""
MOST_OUTSTANDING = 2000
ESTIMATES = ("memory", "throughput", "cost", "utility-bill")
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "llama-2-70b")
ACCELERATORS = ("h100-sxm", "a100-80gb-sxm", "h200-sxm")
SOURCES = [{"pointers": [""], "citation": "Quotation of the provider", "as_of": "2026-11-20"}]
ROWS = {"sites": 300, "offers": 300}
"""Rows of each resource that a tenant has before the load."""
OF_A_SIZE = 0.8
"""Share of the estimates whose model is a number of parameters; others take a hundred times as long."""
OWN_SITES = 20
"""Rows that the load adds to them at most: then it deletes one for each."""


class SoakAnswer(NamedTuple):
    """Answer to one request. ``status`` is 0 if there was none."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def document(self) -> Any:  # noqa: ANN401
        return json.loads(self.body)

    @property
    def label(self) -> str:
        """The status, with the code of a problem."""
        if self.status == 0:
            return UNANSWERED
        is_problem = self.headers.get(b"content-type", b"").startswith(b"application/problem+json")
        return f"{self.status} {self.document['code']}" if is_problem else str(self.status)


class Connections:
    """Kept connections to one process."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = deque()

    async def send(self, request: bytes) -> SoakAnswer:
        """Sends one request; the answer has status 0 if none came in time."""
        pair = self._take_idle()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                if pair is None:
                    pair = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
                pair[1].write(request)
                answer = await _read_answer(pair[0])
        except (OSError, EOFError, TimeoutError, ValueError):
            if pair is not None:
                pair[1].close()
            return SoakAnswer(0, {}, b"")
        if answer.headers.get(b"connection") == b"close":
            pair[1].close()
        else:
            self._idle.append(pair)
        return answer

    def _take_idle(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Returns a connection that the service has not closed meanwhile."""
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return None


async def _read_answer(reader: asyncio.StreamReader) -> SoakAnswer:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head[:-4].split(b"\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    status = int(first.split(b" ", 2)[1])
    if b"content-length" in headers:
        body = await reader.readexactly(int(headers[b"content-length"]))
    elif headers.get(b"transfer-encoding") == b"chunked":
        body = await _read_chunks(reader)
    else:
        body = b""
    return SoakAnswer(status, headers, body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)


class Tally:
    """Answers and times since they were last taken, by kind and by tenant."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.milliseconds: defaultdict[str, list[float]] = defaultdict(list)
        self.labels: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.tenants: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, kind: str, tenant: str, answer: SoakAnswer, seconds: float) -> None:
        self.milliseconds[kind].append(round(1000 * seconds, 1))
        self.labels[kind][answer.label] += 1
        self.tenants[tenant][answer.label] += 1

    def take(self) -> dict[str, Any]:
        taken = {"milliseconds": self.milliseconds, "labels": self.labels, "tenants": self.tenants}
        self._reset()
        return taken


class SoakTenant:
    """A tenant, its key, and the rows of its own that the load works on."""

    def __init__(self, name: str, keys: list[str], connections: Connections, tally: Tally, seed: int) -> None:
        self.name, self._connections, self._tally = name, connections, tally
        self._key, self._keeper_key = keys
        self.chance = random.Random(seed)  # noqa: S311
        self.node = self.node_key = self.inventory = ""
        self.webhook = ""
        self.sites: deque[str] = deque()
        self.quotes: deque[str] = deque(maxlen=50)
        self.plans: deque[str] = deque(maxlen=20)
        self.numbers = count()

    async def ask(
        self,
        kind: str,
        method: str,
        path: str,
        body: Any = None,  # noqa: ANN401
        key: str = "",
        **headers: str,
    ) -> SoakAnswer:
        """Sends one request and counts its answer and time under ``kind``."""
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {key or self._key}"]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(raw)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        began = time.perf_counter()
        answer = await self._connections.send("\r\n".join([*lines, "", ""]).encode() + raw)
        self._tally.add(kind, self.name, answer, time.perf_counter() - began)
        return answer

    async def fill(self, receiver_port: int) -> None:
        """Makes the rows that a tenant has had before the load."""
        for number in range(ROWS["sites"]):
            await self._make("/v1/sites", _site(f"old-{number}"))
        for number in range(ROWS["offers"]):
            offer = {**EXAMPLES["create_offer"], "id": f"old-{number}", "region": f"region-{number}"}
            await self._make("/v1/offers", offer)
        await self._make("/v1/cost-centers", EXAMPLES["create_cost_center"])
        await self._make("/v1/budgets", EXAMPLES["create_budget"])
        # Who has made a policy may not submit under it.
        policy = EXAMPLES["create_approval_policy"]
        await self._make("/v1/approval-policies", policy, self._keeper_key)
        await self._make("/v1/evidence:import", EXAMPLES["import_evidence"])
        hook = {**EXAMPLES["create_webhook"], "url": f"http://127.0.0.1:{receiver_port}/"}
        self.webhook = (await self._make("/v1/webhooks", hook))["webhook"]["id"]
        await self._enrol()

    async def _make(self, path: str, body: Any, key: str = "", method: str = "POST") -> Any:  # noqa: ANN401
        answer = await self.ask("fill", method, path, body, key)
        if not 200 <= answer.status < 300:  # noqa: PLR2004
            raise RuntimeError(f"{path}: {answer.status} {answer.body.decode()}")
        return answer.document if answer.body else None

    async def _enrol(self) -> None:
        token = (await self._make("/v1/enrolment-tokens", EXAMPLES["create_enrolment_token"]))["token"]
        enrolled = await self._make("/v1/nodes:enrol", {**EXAMPLES["enrol_node"], "token": token})
        self.node, self.node_key = enrolled["node_id"], enrolled["credential"]
        inventory = f"/v1/nodes/{self.node}/inventory"
        stored = await self._make(inventory, EXAMPLES["put_node_inventory"], self.node_key, "PUT")
        self.inventory = stored["inventory_sha256"] if stored else ""


def _site(row_id: str) -> dict[str, Any]:
    return {"id": row_id, "name": row_id, "pue": 1.2, "note": "soak", "sources": SOURCES}


def _question(chance: random.Random, kind: str) -> dict[str, Any]:
    """Returns the body of an estimate: of a size, or of a model and a cluster of the catalog."""
    body = dict(EXAMPLES["estimate_utility_bill" if kind == "utility-bill" else "estimate_cost"])
    if chance.random() < OF_A_SIZE:
        body["model"] = {"source": "parameter_count", "parameter_count": chance.randrange(10**9, 10**11)}
    else:
        body["model"] = {"source": "catalog", "id": chance.choice(MODELS)}
        accelerator = {"source": "catalog", "id": chance.choice(ACCELERATORS)}
        body["cluster"] = {"accelerator": accelerator, "accelerator_count": 8 * chance.randrange(8, 64)}
        body["workload"] = {**body["workload"], "global_batch_size": 512}
        del body["efficiency"]
    if kind in ("memory", "throughput"):
        kept = ("model", "cluster", "workload", *(("efficiency",) if kind == "throughput" else ()))
        body = {name: body[name] for name in kept if name in body}
    return body


async def estimate(tenant: SoakTenant) -> None:
    kind = tenant.chance.choice(ESTIMATES)
    await tenant.ask("estimate", "POST", f"/v1/estimates/{kind}", _question(tenant.chance, kind))


async def batch(tenant: SoakTenant) -> None:
    kind = tenant.chance.choice(ESTIMATES)
    requests = [_question(tenant.chance, kind) for _ in range(tenant.chance.randrange(2, 20))]
    await tenant.ask("batch", "POST", f"/v1/estimates/{kind}:batch", {"requests": requests})


async def summary(tenant: SoakTenant) -> None:
    await tenant.ask("summary", "POST", "/v1/estimates/summary", EXAMPLES["estimate_summary"])


async def read_lists(tenant: SoakTenant) -> None:
    path = tenant.chance.choice(
        ["sites?page_size=100", "offers", "models", "quotes", "plans", "approvals", "audit-events", "nodes"]
    )
    await tenant.ask("list", "GET", f"/v1/{path}")


async def read_row(tenant: SoakTenant) -> None:
    await tenant.ask("row", "GET", f"/v1/sites/old-{tenant.chance.randrange(ROWS['sites'])}")


async def write_catalog(tenant: SoakTenant) -> None:
    if len(tenant.sites) >= OWN_SITES:
        await tenant.ask("write", "DELETE", f"/v1/sites/{tenant.sites.popleft()}", If_Match="*")
    if tenant.sites and tenant.chance.random() < 0.5:  # noqa: PLR2004
        patch = {"pue": 1 + tenant.chance.random()}
        await tenant.ask("write", "PATCH", f"/v1/sites/{tenant.sites[-1]}", patch, If_Match="*")
        return
    row_id = f"new-{next(tenant.numbers)}-{tenant.chance.randrange(10**9)}"
    if (await tenant.ask("write", "POST", "/v1/sites", _site(row_id))).status == 201:  # noqa: PLR2004
        tenant.sites.append(row_id)


async def quote(tenant: SoakTenant) -> None:
    body = {**EXAMPLES["create_quote"], "name": f"Quote {next(tenant.numbers)}"}
    made = await tenant.ask("quote", "POST", "/v1/quotes", body)
    if made.status != 201:  # noqa: PLR2004
        return
    row = made.document
    tenant.quotes.append(row["id"])
    if tenant.chance.random() < 0.3:  # noqa: PLR2004
        digest = {"content_digest": row["content_digest"]}
        await tenant.ask("submit", "POST", f"/v1/quotes/{row['id']}:submit", digest)
        await tenant.ask("submit", "POST", f"/v1/quotes/{row['id']}:cancel", digest)


async def read_quote(tenant: SoakTenant) -> None:
    if tenant.quotes:
        ending = tenant.chance.choice(["", "/report", "/versions"])
        await tenant.ask("quote, read", "GET", f"/v1/quotes/{tenant.chance.choice(tenant.quotes)}{ending}")


async def plan(tenant: SoakTenant) -> None:
    body = dict(EXAMPLES["create_plan"])
    if tenant.chance.random() < 0.3:  # noqa: PLR2004
        body["search"] = {"offers": False, "accelerator_counts": [32, 64, 128, 256, 512], "rows": 8}
    made = await tenant.ask("plan", "POST", "/v1/plans", body)
    if made.status in (200, 201, 202):
        tenant.plans.append(made.document["id"])


async def read_plan(tenant: SoakTenant) -> None:
    if tenant.plans:
        await tenant.ask("plan, read", "GET", f"/v1/plans/{tenant.chance.choice(tenant.plans)}")


async def export(tenant: SoakTenant) -> None:
    if tenant.quotes and tenant.chance.random() < 0.5:  # noqa: PLR2004
        await tenant.ask("export", "GET", f"/v1/quotes/{tenant.chance.choice(tenant.quotes)}/focus")
    else:
        await tenant.ask("export", "POST", "/v1/estimates/cost:export", EXAMPLES["estimate_cost_export"])


async def import_prices(tenant: SoakTenant) -> None:
    lines = [
        f"gpu-{number},eu-north-1,{1 + tenant.chance.random():.4f},128,1600,8,H200,141,False,"
        for number in range(200)
    ]
    head = EXAMPLES["import_offers"]["content"].partition("\n")[0]
    body = {**EXAMPLES["import_offers"], "content": "\n".join([head, *lines, ""])}
    await tenant.ask("import", "POST", "/v1/offers:import", body)


async def verify_audit(tenant: SoakTenant) -> None:
    await tenant.ask("verification", "GET", "/v1/audit-events:verify")


async def call_webhook(tenant: SoakTenant) -> None:
    await tenant.ask("webhook", "POST", f"/v1/webhooks/{tenant.webhook}:test")
    await tenant.ask("webhook", "GET", f"/v1/webhooks/{tenant.webhook}/deliveries")


async def work_as_node(tenant: SoakTenant) -> None:
    beat = {**EXAMPLES["heartbeat_node"], "inventory_sha256": tenant.inventory}
    await tenant.ask("heartbeat", "POST", f"/v1/nodes/{tenant.node}:heartbeat", beat, tenant.node_key)
    if tenant.chance.random() > 0.2:  # noqa: PLR2004
        return
    await tenant.ask("lease", "POST", "/v1/benchmark-runs", EXAMPLES["create_benchmark_run"])
    claim = {
        "request_id": f"{tenant.chance.getrandbits(128):032x}",
        "wait_seconds": 0,
        "inventory_sha256": tenant.inventory,
    }
    got = await tenant.ask("lease", "POST", "/v1/leases:claim", claim, tenant.node_key)
    if got.status == 200:  # noqa: PLR2004
        lease = got.document
        fence = {"fencing_token": lease["fencing_token"]}
        at = f"/v1/leases/{lease['id']}"
        await tenant.ask("lease", "POST", f"{at}:renew", fence, tenant.node_key)
        ended = {**fence, "outcome": "failed", "reason": "SOAK"}
        await tenant.ask("lease", "POST", f"{at}:complete", ended, tenant.node_key)


async def send_nonsense(tenant: SoakTenant) -> None:
    chance = tenant.chance
    estimates = "/v1/estimates/cost"
    method, path, body = chance.choice(
        [
            ("POST", estimates, b'{"model": '),
            ("POST", estimates, {"model": {"source": "catalog", "id": f"none-{chance.randrange(1000)}"}}),
            ("POST", estimates, {f"member-{chance.randrange(10**6)}": 1}),
            ("POST", "/v1/sites", {"id": "A B", "pue": -1}),
            ("GET", f"/v1/sites/none-{chance.randrange(10**6)}", None),
            ("GET", f"/nowhere/{chance.randrange(10**6)}", None),
            ("GET", f"/v1/offers?colour={chance.randrange(10**6)}", None),
        ]
    )
    await tenant.ask("wrong", method, path, body)


async def read_page(tenant: SoakTenant) -> None:
    path = tenant.chance.choice(
        ["/", "/docs", "/docs/operations/create_plan", "/openapi.json", "/docs/problems"]
    )
    await tenant.ask("page", "GET", path)


MIX: dict[Callable[[SoakTenant], Awaitable[None]], int] = {
    estimate: 400,
    batch: 15,
    summary: 30,
    read_lists: 110,
    read_row: 100,
    write_catalog: 60,
    quote: 25,
    read_quote: 40,
    plan: 8,
    read_plan: 20,
    export: 15,
    import_prices: 1,
    verify_audit: 2,
    call_webhook: 6,
    work_as_node: 40,
    send_nonsense: 100,
    read_page: 28,
}
"""Scenes by how often they come, in a thousand."""


class SoakLoad:
    """Sends the mix at a rate until it is stopped."""

    def __init__(self, tenants: list[SoakTenant], weights: list[float]) -> None:
        self._tenants, self._weights = tenants, weights
        self._chance = random.Random(7)  # noqa: S311
        self._working: set[asyncio.Task[None]] = set()
        self.unsent = 0
        """Scenes that were due while too many were at work."""

    async def run(self, per_second: float, seconds: float) -> None:
        """Begins scenes at random times, ``per_second`` of them on average, for ``seconds``."""
        loop = asyncio.get_running_loop()
        due, end = loop.time(), loop.time() + seconds
        scenes, often = list(MIX), list(MIX.values())
        while due < end:
            await asyncio.sleep(max(0.0, due - loop.time()))
            if len(self._working) < MOST_OUTSTANDING:
                (tenant,) = self._chance.choices(self._tenants, self._weights)
                (scene,) = self._chance.choices(scenes, often)
                work = asyncio.ensure_future(scene(tenant))
                self._working.add(work)
                work.add_done_callback(self._working.discard)
            else:
                self.unsent += 1
            due += self._chance.expovariate(per_second)

    async def finish(self) -> None:
        """Waits for the scenes that have begun."""
        while self._working:
            await asyncio.gather(*self._working)


class WebhookReceiver:
    """Answers every message with 204."""

    def __init__(self) -> None:
        self.received = 0

    async def start(self) -> int:
        """Begins to listen and returns the port."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
                self.received += 1
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()
