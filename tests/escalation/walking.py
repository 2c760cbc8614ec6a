"""Somebody with one credential who tries everything, and goes on with whatever that hands out.

The walk knows no rule of the service: what is allowed it learns from the answers, and what a credential can
do it measures by trying. It ends when a round of everything has gained nothing.
"""

import re
from collections import Counter
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import uuid4

from service.app.examples import EXAMPLES
from service.kit.security.credentials import parse_id
from service.kit.security.principals import list_ungrantable_scopes
from service.schemas.events import WebhookEventType
from tests.applications import content_digest
from tests.approvals.deciding import QUOTED
from tests.contract.credentials import sent
from tests.contract.test_document import CATALOG, OPERATIONS
from tests.escalation.findings import findings
from tests.escalation.world import FOREIGN, MINE, OWN, PEOPLE, STRANGER

OUTSIDE = {*CATALOG, "estimates", "plans", "evidence", "calibrations", "actuals", "audit-events"}
"""Tags of operations that change no credential, policy, link, node, webhook, nor what is decided."""
OF_NODES = ["leases:claim", "benchmark-results:report"]
MOST_ROUNDS = 6
MOST_ROWS = 1
"""Of what the walk has made itself, of a kind: another one is not different."""
CREDENTIAL = re.compile(r"(?:ironlaw(?:node|enrol|link)?_[a-z0-9]{16}_[A-Za-z0-9]{49}|whsec_[A-Za-z0-9+/=]+)")
_ENDING = re.compile(
    "^(?:amend|cancel|close|complete|delete|disable|drain|end|quarantine|reject|retire|revoke|withdraw)_"
)
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_JSON = {"Content-Type": "application/json"}
_NOBODY = "0" * 16
_JUDGING = ("create_approval_policy", "update_approval_policy", "delete_approval_policy")
"""What is done with them is made use of at once: another attempt may undo it."""
_USING = ("approve_approval", "link_approval")


TRIED = [
    name
    for name, (method, _, operation) in OPERATIONS.items()
    if method != "get" and operation["tags"][0] not in OUTSIDE
]
"""What is tried: every other operation that writes something."""
ENDING = sorted(
    (name for name in TRIED if _ENDING.match(name)),
    key=lambda name: (name == "disable_tenant", OPERATIONS[name][0] == "delete", name.endswith("_quote")),
)
GAINING = sorted(
    (name for name in TRIED if name not in ENDING), key=lambda name: name == "rotate_node_credential"
)
SCOPE_OF = {
    name: scope
    for name, (_, _, operation) in OPERATIONS.items()
    for requirement in operation["security"]
    for (scope,) in [requirement["bearer"]]
}
SCOPES = sorted({*SCOPE_OF.values(), "metrics:read"})
"""Every scope that something asks for."""


def _probe(scope):
    """An operation that tells whether a scope is granted, and does nothing where it is."""
    if scope == "metrics:read":
        return "get", "/metrics"
    names = [name for name, needed in SCOPE_OF.items() if needed == scope]
    # A row that nobody has, or a body that is no JSON.
    cheap = min(names, key=lambda name: ("{id}" not in OPERATIONS[name][1], OPERATIONS[name][0] != "get"))
    method, path, _ = OPERATIONS[cheap]
    return method, re.sub(r"\{[a-z_]+\}", _NOBODY, path)


PROBES = {scope: _probe(scope) for scope in SCOPES}


class HeldCredential(NamedTuple):
    """Something to act by."""

    secret: str
    kind: str
    tenant: str
    name: str
    scopes: frozenset[str]
    """Of those that the holder was not given, what it turned out to be able to use."""
    is_taken: bool
    """Whether the name was somebody else's."""

    @property
    def sort(self):
        """What makes it different from others that the holder has."""
        return self.kind, self.tenant, self.scopes, self.name if self.is_taken else ""


class Holder:
    """Who begins with a key of some scopes."""

    def __init__(self, world, granted, kinds=tuple(WebhookEventType)):
        self.world, self.granted, self.kinds = world, granted, kinds
        self.lacking = list_ungrantable_scopes(frozenset(granted), SCOPES)
        """Scopes that were not granted: the ones that a credential gained must not have."""
        self.hands = {}
        """What differs among what is held, by its sort."""
        self.names, self.links, self.tokens = set(), {}, []
        self.rows = {noun: [] for noun in _nouns()}
        """What the walk has made, the newest first, by collection."""
        self.answers = {name: Counter() for name in TRIED}
        self.shown, self.leaked = set(), set()
        self.gained = Counter()
        self.requests, self.passes, self.has_read_by_link = 0, False, False
        self._known, self._dead = set(), set()
        self._refused, self._made = set(), set()
        self._enrolled = 0
        self._measures = {}
        """What was measured of credentials of which the service says the same."""

    def walk(self, names=frozenset(TRIED)):
        """Try everything with everything until nothing new is gained; then end all there is, and again."""
        self._take(self.world.callers.key(*self.granted), "")
        self.gained.clear()
        gaining = [name for name in GAINING if name in names]
        self._go_on(gaining)
        self._made.clear()
        self._round([name for name in ENDING if name in names])
        self._go_on(gaining)
        return self

    def _go_on(self, names):
        """Rounds until one of them has gained nothing: two at least, as the first may have opened a door."""
        self._round(names)
        for _ in range(MOST_ROUNDS):
            before = self._reached()
            self._round(names)
            if self._reached() == before:
                self.world.move(self.kinds)
                return
        raise AssertionError(f"{self.granted}: each of {MOST_ROUNDS} rounds has gained something")

    def _round(self, names):
        asked = set()
        while waiting := [held for sort, held in self.hands.items() if sort not in asked]:
            asked.update(held.sort for held in waiting)
            for name in names:
                for held in waiting:
                    self._try(held, name)
        self._join()
        self._decide()

    def _use(self):
        """Ask for something under the policies as they are now, and decide about it; others ask too."""
        self.passes |= self.world.ask_again()
        for held in list(self.hands.values()):
            if not self._try(held, "create_quote"):
                continue
            if self._try(held, "submit_quote", self.rows["quotes"][0]):
                for other in list(self.hands.values()):
                    for name in _USING:
                        self._try(other, name, self.rows["approvals"][0])
        self._decide()

    def _reached(self):
        return set(self.hands), findings(self)

    def _try(self, held, name, *rows):
        """Try an operation on every row, or on these, with everything that it may be sent; what was made."""
        made = []
        for row, tenant in [(row, OWN) for row in rows] or self._targets(held, name):
            bodies = self._bodies(held, name, row, tenant)
            # What is of another tenant is not there, whatever is sent to it.
            for number, body in enumerate(islice(bodies, 1 if tenant == STRANGER else None)):
                attempt = held.sort, name, row, number
                if held.secret in self._dead or (held.secret, name) in self._refused or attempt in self._made:
                    continue
                answer = self._call(held, name, row, body)
                if answer.is_success and name in _JUDGING:
                    self._made.add(attempt)
                    if row not in self.rows["approval-policies"]:
                        self._use()
                if answer.status_code == 201:
                    made.append(answer)
                    if name != "create_quote":
                        self._made.add(attempt)
                if answer.status_code == 401 and name in SCOPE_OF:
                    self._dead.add(held.secret)
                if answer.status_code == 403 and answer.json()["code"] in ("SCOPE_REQUIRED", "NOT_A_NODE"):
                    self._refused.add((held.secret, name))
        return made

    def _targets(self, held, name):
        """The rows that an operation may be tried on, each with its tenant; of a node, itself last."""
        _, path, _ = OPERATIONS[name]
        if "{id}" not in path:
            return [("", OWN)]
        noun = path.split("/")[2]
        found = [
            *((row, OWN) for row in self.world.own.rows.get(noun, ())),
            *((row, OWN) for row in self.rows.get(noun, ())),
            *((row, STRANGER) for row in self.world.stranger.rows.get(noun, ())),
        ]
        return sorted(found, key=lambda target: target[0] == parse_id(held.secret)) or [(_NOBODY, OWN)]

    def _call(self, held, name, row, body):
        method, path, operation = OPERATIONS[name]
        parameters = {parameter["name"] for parameter in operation.get("parameters", [])}
        url = path.replace("{id}", row)
        headers = {"Authorization": f"Bearer {held.secret}"}
        if "If-Match" in parameters:
            headers["If-Match"] = "*"
        content = b"" if body is None else sent(body)
        if content:
            headers.update(_JSON)
        if "Content-Digest" in parameters:
            headers["Content-Digest"] = content_digest(content)
        return self._sent(name, method, url, headers, content)

    def _sent(self, name, method, url, headers, content):
        self.requests += 1
        answer = self.world.client.request(method.upper(), url, content=content, headers=headers)
        assert answer.status_code < 500, (name, url, content, answer.text)
        assert answer.status_code not in (413, 415, 429), (name, url, answer.text)
        self.answers.setdefault(name, Counter())[answer.status_code] += 1
        self._read(name, answer)
        return answer

    def _read(self, name, answer):
        """Take everything out of an answer that can be acted by, and notice what should not be in it."""
        text = answer.text
        if FOREIGN in text:
            self.leaked.add(name)
        for secret in CREDENTIAL.findall(text):
            if any(secret in known for known in self.world.secrets):
                self.shown.add(name)
            elif secret not in self._known:
                self._known.add(secret)
                self._take(secret, text)
        if answer.is_success and (location := answer.headers.get("location", "")).startswith("/v1/"):
            noun, _, row = location.removeprefix("/v1/").partition("/")
            if row not in self.rows[noun]:
                self.rows[noun].insert(0, row)
            del self.rows[noun][MOST_ROWS:]

    def _take(self, secret, text):
        prefix = secret.partition("_")[0]
        self.gained[GAINED[prefix]] += 1
        if prefix == "ironlawenrol":
            self.tokens.append(secret)
        elif prefix == "ironlawlink":
            self.links[secret] = None
        elif prefix != "whsec":
            self._hold(secret, "node" if prefix == "ironlawnode" else "api_key", text)

    def _hold(self, secret, kind, text):
        name = f"{kind}:{parse_id(secret)}"
        tenant = STRANGER if f'"tenant_id":"{STRANGER}"' in text else OWN
        self.names.add(name)
        said = re.search(r'"scopes":\[[^\]]*\]', text)
        alike = kind, tenant, said and said[0]
        if alike not in self._measures:
            self._measures[alike] = self._measured(secret)
        held = HeldCredential(secret, kind, tenant, name, self._measures[alike], name in self.world.names)
        if kind == "node":
            self.hands[held.sort] = held  # the credential before it has ended with its first use
        else:
            self.hands.setdefault(held.sort, held)
        if kind == "node" and not held.is_taken:
            self.rows["nodes"].insert(0, parse_id(secret))

    def _measured(self, secret):
        """Which scopes a credential has that the holder was not given, by trying each."""
        headers = {"Authorization": f"Bearer {secret}"}
        found = set()
        for scope in self.lacking:
            method, path = PROBES[scope]
            answer = self.world.client.request(method.upper(), path, headers=headers)
            self.requests += 1
            if answer.status_code == 401:
                break
            if answer.status_code != 403 or answer.json()["code"] not in ("SCOPE_REQUIRED", "NOT_A_NODE"):
                found.add(scope)
        return frozenset(found)

    def _join(self):
        """Have hosts join by the tokens that were handed out: a new one, and each that the tenant knows."""
        known = {node.id: node.installation_id for node in self.world.nodes()}
        hosts = [uuid4().hex, *(known[row] for row in self.world.own.rows["nodes"])]
        for token in self.tokens:
            body = {"token": token, "device": "cpu", "worker_version": "1", "name": "mine"}
            body["installation_id"] = hosts[self._enrolled % len(hosts)]
            self._enrolled += 1
            self._sent("enrol_node", "post", "/v1/nodes:enrol", dict(_JSON), sent(body))
        self.tokens.clear()

    def _decide(self):
        """Decide by every link that was handed out."""
        for secret in [secret for secret, done in self.links.items() if done is None]:
            self.links[secret] = True
            url = f"/decide/{secret}"
            self.has_read_by_link |= self._sent("linked_page", "get", url, {}, b"").is_success
            for row in (*self.world.own.rows["approvals"], *self.rows["approvals"]):
                form = {"decision": "approve", "content_digest": self.world.digest(row, OWN)}
                self._sent("decide_by_link", "post", url, dict(_FORM), urlencode(form).encode())

    def _bodies(self, held, name, row, tenant):
        """What an operation is sent: what an intruder would, or what its example says."""
        if name in BODIES:
            return BODIES[name](self, held, row, tenant)
        if "requestBody" not in OPERATIONS[name][2]:
            return [None]
        return [EXAMPLES[name]]


GAINED = {
    "ironlaw": "API keys",
    "ironlawnode": "node credentials",
    "ironlawenrol": "enrolment tokens",
    "ironlawlink": "links",
    "whsec": "webhook secrets",
}


def _nouns():
    return {path.split("/")[2].split(":")[0] for _, path, _ in OPERATIONS.values()}


WANTED = [
    "*:*", "tenants:*", "metrics:*", "*:write", "*:read", "approvals:write", "approval-links:write",
    "webhooks:write", "api-keys:write", *OF_NODES,
]  # fmt: skip


def _keys(holder, held, row, tenant):
    del held, row, tenant
    wanted = [[scope] for scope in dict.fromkeys([*holder.granted, *WANTED])]
    elsewhere = [
        {"scopes": scopes, "tenant_id": place}
        for place in (STRANGER, "shipped", "system")
        for scopes in (list(holder.granted), ["*:*"])
    ]
    return [{"name": "mine", **body} for body in (*({"scopes": scopes} for scopes in wanted), *elsewhere)]


def _me(held):
    return {"name": "mine", "approvers": [held.name], "quorum": 1, "order": 0}


def _new_policies(holder, held, row, tenant):
    del holder, row, tenant
    steps = ({"steps": []}, {"steps": [], "automatic": True}, {"steps": [_me(held)]})
    return [{"id": f"p{uuid4().hex}", "name": "mine", "conditions": {}, **each} for each in steps]


def _policies(holder, held, row, tenant):
    del holder, row, tenant
    never = {"total_above": {"amount": "999999999", "currency_code": "USD"}}
    return [
        {"steps": []}, {"steps": [], "automatic": True}, {"steps": [_me(held)]}, {"conditions": never},
    ]  # fmt: skip


def _delegations(holder, held, row, tenant):
    del row, tenant
    ends = {"ends_at": "2099-12-31T00:00:00Z"}
    victims = sorted(holder.world.approvers)[:1]
    delegates = [held.name, *sorted(holder.names)[:3], PEOPLE[1]]
    return [
        *({"delegate": name, **ends} for name in delegates),
        *({"approver": name, "delegate": held.name, **ends} for name in victims),
    ]


def _seen(holder, held, row, tenant):
    del held
    return [{"content_digest": holder.world.digest(row, tenant)}]


def _amended(holder, held, row, tenant):
    del held
    return [{"content_digest": holder.world.digest(row, tenant), "quote": QUOTED}]


def _links(holder, held, row, tenant):
    del held, row, tenant
    return [{"approver": name} for name in sorted(holder.world.approvers)]


def _webhooks(holder, held, row, tenant):
    """One that is told everything, or else one for each topic."""
    del held, row, tenant
    url = holder.world.there.url(MINE)
    yield {"url": url}
    if not holder.world.leads_to_holder():
        topics = {kind.partition(".")[0]: kind for kind in [*WebhookEventType, WebhookEventType.WEBHOOK_TEST]}
        yield from ({"url": url, "event_types": [kind]} for kind in topics.values())


def _webhook(holder, held, row, tenant):
    del held, row, tenant
    url = holder.world.there.url(MINE)
    return [{"url": url}, {"url": url, "event_types": None, "enabled": True}, {"event_types": None}]


def _deliveries(holder, held, row, tenant):
    del held
    return [{"delivery_ids": holder.world.deliveries(row, tenant)}]


def _people(holder, held, row, tenant):
    del held, row, tenant
    return [{"subject_id": name} for name in ("erin@example.org", holder.world.own.rows["api-keys"][0])]


def _budgets(holder, held, row, tenant):
    del holder, held, row, tenant
    return [{**EXAMPLES["create_budget"], "id": f"b{uuid4().hex}"}]


def _claims(holder, held, row, tenant):
    del holder, held, row, tenant
    return [{**EXAMPLES["claim_lease"], "request_id": uuid4().hex, "wait_seconds": 0}]


BODIES = {
    "create_api_key": _keys,
    "rotate_api_key": lambda *_: [{"overlap_seconds": 3600}],
    "create_tenant": lambda *_: [{"id": f"t{uuid4().hex}", "name": "mine"}],
    "end_sessions": _people,
    "create_enrolment_token": lambda *_: [{}] * 4,
    "create_approval_policy": _new_policies,
    "create_budget": _budgets,
    "create_cost_center": lambda *_: [{"id": f"c{uuid4().hex}", "name": "mine"}],
    "update_approval_policy": _policies,
    "create_approval_delegation": _delegations,
    "approve_approval": _seen,
    "reject_approval": _seen,
    "link_approval": _links,
    "create_quote": lambda *_: [QUOTED],
    "submit_quote": _seen,
    "cancel_quote": _seen,
    "amend_quote": _amended,
    "create_webhook": _webhooks,
    "update_webhook": _webhook,
    "rotate_webhook": lambda *_: [{"overlap_seconds": 0}],
    "replay_webhook": _deliveries,
    "recover_webhook": lambda *_: [{"since": "2020-01-01T00:00:00Z"}],
    "claim_lease": _claims,
}
"""What operations are sent where their example is not what an intruder would send."""
