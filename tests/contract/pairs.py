"""Requests that break one constraint of the document or two, in an order that is continued where it ended.

Questions take turns, first with every constraint broken alone, then with every pair. Three of four requests
come from callers who may ask them, in turn, the fourth from one who may not.
"""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import func, select

from service.app.examples import EXAMPLE_IDS, EXAMPLES
from service.kit.database.engine import Base
from service.kit.http.problems import CONTENT_TYPE
from service.kit.security.principals import NODE_SCOPES, can_grant
from tests.applications import bearing, content_digest
from tests.contract.constraints import Break, Question, list_questions
from tests.contract.corpus import MARK, Hostile
from tests.contract.credentials import OF_NODES, prepare_node
from tests.contract.test_document import OPERATIONS
from tests.contract.wire import Wire
from tests.escalation.world import FOREIGN, OWN, OWNED, ROLES, STRANGER, World

KINDS = ("sqlite", "postgresql")
READER, NODE, NOBODY = "reader", "node", "nobody"
GRANTED = {
    (tenant, role): frozenset(scopes)
    for tenant in (OWN, STRANGER)
    for role, scopes in {
        **{role: ROLES[role] for role in ("admin", "requester", "approver")},
        READER: ("*:read",),
        NODE: NODE_SCOPES,
    }.items()
} | {(OWN, "operator"): frozenset(ROLES["operator"]), ("", NOBODY): frozenset()}
"""Scopes of every caller, by tenant and role."""
_IN_A_ROW = 8
"""Requests of a question to one database before the next to the other one."""


class HostileRequest(NamedTuple):
    """One request of the order."""

    question: Question
    breaks: tuple[Break, ...]
    caller: tuple[str, str]
    is_permitted: bool
    kind: str
    """Of the database."""
    turn: int
    """How many requests the question had before."""


def list_requests(first: int, count: int) -> Iterator[HostileRequest]:
    """The requests from the ``first`` on."""
    return islice(_order(), first, first + count)


def _order() -> Iterator[HostileRequest]:
    turns: Counter[Question] = Counter()
    for ask in (Question.singles, Question.pairs):
        waiting = {question: ask(question) for question in list_questions()}
        while waiting:
            for question, asked in list(waiting.items()):
                breaks = next(asked, None)
                if breaks is None:
                    del waiting[question]
                    continue
                yield _assign(question, breaks, turns[question])
                turns[question] += 1


def _assign(question: Question, breaks: tuple[Break, ...], turn: int) -> HostileRequest:
    permitted, others = list_callers(question.operation)
    place = turn + question.number
    is_permitted = not others or place % 4 != 3
    group, place = (permitted, place - place // 4) if is_permitted else (others, place // 4)
    kind = KINDS[(turn // _IN_A_ROW + question.number) % 2]
    return HostileRequest(question, breaks, group[place % len(group)], is_permitted, kind, turn)


@cache
def list_callers(operation: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Who may call an operation, and who may not."""
    needed = [scope for way in OPERATIONS[operation][2]["security"] for scope in way["bearer"]]
    is_of_nodes = bool(needed) and needed[0] in NODE_SCOPES
    permitted = [
        (tenant, role)
        for (tenant, role), scopes in GRANTED.items()
        if not needed or (can_grant(scopes, needed[0]) and (role == NODE or not is_of_nodes))
    ]
    return permitted, [caller for caller in GRANTED if caller not in permitted]


class Nowhere:
    """A receiver of webhooks that nothing is sent to."""

    def url(self, path: str) -> str:
        """An address at which nobody listens."""
        return f"http://127.0.0.1:9{path}"


class Asked:
    """An application over one database with two tenants, whose answers are held against what was asked."""

    def __init__(self, app: Any, database: Any) -> None:
        self._world = World(app, database, Nowhere())
        self._rows, self._wires = {}, {("", NOBODY): Wire(app, {})}
        for place, word in ((self._world.own, OWNED), (self._world.stranger, FOREIGN)):
            self._fill(place, word)
        self.answers: dict[str, Counter[int]] = {}
        self.faults: list[str] = []
        self._before = self._count_rows()

    def _fill(self, place: Any, word: str) -> None:
        """A row of the catalog beside those that the world has, and credentials of every role."""
        world, tenant = self._world, place.tenant
        site = {**EXAMPLES["create_site"], "name": word}
        made = world.send("POST", "/v1/sites", site, place.keys["admin"])
        assert made.is_success, made.text
        node = world.callers.node(tenant=tenant)
        prepare_node(world.client, bearing(node))  # the first use of a credential is recorded
        keys = {**place.keys, READER: world.callers.key("*:read", tenant=tenant), NODE: node}
        for caller in GRANTED:
            if caller[0] == tenant:
                self._wires[caller] = Wire(world.client.app, bearing(keys[caller[1]]))
        self._rows[tenant] = {noun: rows[0] for noun, rows in place.rows.items()} | {"sites": site["id"]}

    def ask(self, request: HostileRequest) -> None:
        """Send a request, and keep what came back and what is wrong with it."""
        hostile = self._build(request)
        status, headers, content = self._wires[request.caller].send(hostile)
        name = " of ".join(filter(None, reversed(request.caller)))
        self.answers.setdefault(name, Counter())[status] += 1
        found = find_faults(request, status, headers, content)
        self.faults += [f"{hostile.name} by {name}: {fault}" for fault in found]

    def _build(self, request: HostileRequest) -> Hostile:
        question, breaks = request.question, request.breaks
        broken = {(each.place, each.path[0]): each.value for each in breaks if each.place != "body"}
        noun = question.path.split("/")[2]
        # Rows of either tenant: one's own, and one that must not be found.
        tenant = (OWN, STRANGER)[request.turn // 2 % 2]
        row = self._rows[tenant].get(noun) or EXAMPLE_IDS.get(noun, "a")
        path = question.path.encode().replace(b"{id}", broken.get(("path", "id"), row.encode()))
        query = b"&".join(
            [value for (place, _), value in broken.items() if place == "query" and value]
            + [name + b"=a" for name in question.needed if ("query", name.decode()) not in broken]
        )
        body = question.body(breaks)
        headers = {"Content-Type": b"application/json"} if body else {}
        if question.takes("If-Match"):
            headers["If-Match"] = b"*"
        if question.takes("Content-Digest"):
            headers["Content-Digest"] = content_digest(body).encode()
        headers |= {name: value for (place, name), value in broken.items() if place == "header"}
        return Hostile(
            name=f"{question.operation} {question.example}: "
            + " and ".join(f"{each.pointer} {each.rule}" for each in breaks),
            method=question.method,
            target=path + b"?" + query if query else path,
            headers=[(name.lower().encode(), value) for name, value in headers.items() if value is not None],
            body=body,
            # Callers without credentials are slowed down by their address.
            address=f"10.0.{request.turn // 256 % 256}.{request.turn % 256}",
        )

    def check_rows(self) -> None:
        """Whether rows are as they were, and each tenant still finds its own and none of the other."""
        if self._count_rows() != self._before:
            self.faults.append("rows were written or deleted")
        for tenant, own, other in ((OWN, OWNED, FOREIGN), (STRANGER, FOREIGN, OWNED)):
            wire = self._wires[tenant, "admin"]
            listed = b"".join(
                wire.send(Hostile(name=name, method="GET", target=path.encode()))[2]
                for name, (method, path, _) in OPERATIONS.items()
                if method == "get" and "{id}" not in path
            )
            if own.encode() not in listed or other.encode() in listed:
                self.faults.append(f"lists of {tenant} show other rows than its own")

    def _count_rows(self) -> dict[str, int]:
        with self._world.database.open_reader() as session:
            return {
                table.name: session.scalar(select(func.count()).select_from(table))
                for table in Base.metadata.sorted_tables
            }

    def close(self) -> None:
        """Stop asking."""
        for wire in self._wires.values():
            wire.close()
        self._world.close()


def find_faults(
    request: HostileRequest, status: int, headers: dict[bytes, bytes], content: bytes
) -> Iterator[str]:
    """What is wrong with an answer."""
    if status not in list_statuses(request):
        yield f"status {status} {content[:300]!r}"
        return
    if headers[b"content-type"].decode() != CONTENT_TYPE:
        yield "not a problem"
        return
    document = json.loads(content)
    if document["status"] != status or not document["code"]:
        yield "not this problem"
    if status == 422 and not any(
        names(error["pointer"], each) for error in document["errors"] for each in request.breaks
    ):
        yield f"points at {[error['pointer'] for error in document['errors']]}"
    if MARK[:13].encode() in content and not any(each.rule == "propertyNames" for each in request.breaks):
        yield "echoes what was sent"
    other = {OWN: (FOREIGN,), STRANGER: (OWNED,)}.get(request.caller[0], (OWNED, FOREIGN))
    if any(word.encode() in content for word in other):
        yield "shows a row of another tenant"


def list_statuses(request: HostileRequest) -> tuple[int, ...]:
    """Statuses that refuse a request."""
    by_shape = tuple(status for each in request.breaks for status in each.statuses)
    if request.is_permitted:
        return by_shape
    if request.caller[1] == NOBODY:
        return (401,)
    # That a key is no node's is found out after the shape.
    return (403, *by_shape) if request.question.operation in OF_NODES else (403,)


def names(pointer: str, each: Break) -> bool:
    """Whether a pointer is that of a constraint; of a tag or a missing member that of the object will do."""
    if pointer == each.pointer or pointer.startswith(each.pointer + "/"):
        return True
    return each.rule in ("const", "const type", "required") and pointer == each.pointer.rpartition("/")[0]
