"""Two tenants worth breaking into: keys of every role, policies, approvals, nodes put out, webhooks.

The first tenant is the one whose credential is given away; the second is a stranger to it. What belongs to
the stranger carries :data:`FOREIGN` in its name, what belongs to the first :data:`OWNED`, so that an answer
that shows any of it gives itself away.
"""

import asyncio
import contextlib
import copy
import json
from copy import deepcopy
from typing import NamedTuple
from uuid import uuid4

from sqlalchemy import select

from service.app.background.webhooks import PUBLISHING
from service.app.examples import EXAMPLES
from service.approvals import repository as approvals
from service.audit.tables import AuditEventRow
from service.kit.jobs.events import emit_event
from service.kit.security.credentials import parse_id
from service.nodes.tables import NodeRow
from service.quotes import service as quotes
from service.quotes.errors import QuoteNotFound
from service.webhooks import attempts, repository
from service.webhooks.dispatching import send_message
from service.webhooks.fair_scheduling import FairScheduler
from service.webhooks.tables import DeliveryRow, WebhookRow
from tests.applications import TENANT, Callers, ask_job, attach, bearing
from tests.approvals.deciding import QUOTED
from tests.conftest import Client
from tests.contract.credentials import prepare_node
from tests.nodes.fleet import add_run
from tests.working import do_all

OWN, STRANGER = "default", "elsewhere"
OWNED, FOREIGN = "belongs-to-the-first", "belongs-to-the-stranger"
SITE = "https://plan.example"
SETTINGS = TENANT.model_copy(update={"public_url": SITE, "webhook_networks": "127.0.0.0/8"})
PEOPLE = ("person:carol@example.org", "person:erin@example.org")
TOKENS = ("token:alice@example.org", "token:dave@example.org")
MINE, OTHERS = "/mine", "/others"
"""Where the receiver of webhooks tells whose address a message came to."""


class Place(NamedTuple):
    """A tenant, and what is there to be taken."""

    tenant: str
    keys: dict[str, str]
    """Secrets by role."""
    rows: dict[str, list[str]]
    """Ids by collection."""


class World:
    """A service over one database, with both tenants, and the receiver of all webhooks."""

    def __init__(self, app, database, there):
        self._serve(app, database)
        self.there = there
        self.callers.tenant(STRANGER)
        self.own = self._place(OWN)
        self.stranger = self._place(STRANGER)
        self.secrets: set[str] = {*self.own.keys.values(), *self.stranger.keys.values(), *self._handed}
        self.names = {f"api_key:{parse_id(key)}" for key in self.own.keys.values()}
        self.names |= {f"node:{row}" for row in self.own.rows["nodes"]}
        self.approvers = {
            name
            for approval in self.own.rows["approvals"]
            for step in self.held(approval).steps
            for name in self.held(approval).list_approvers(step)
        }
        self.asker = self.callers.key("quotes:write")
        self.put_out = {row.id: row for row in self.nodes() if row.state != "active"}
        self.before = self._last_events()

    _handed: tuple[str, ...] = ()

    def _serve(self, app, database):
        attach(app, database, SETTINGS)
        self.database = database
        self.callers = Callers(app, database)
        self.client = self.callers.client = Client(app)
        app.state.waiting.close()

    def on(self, database):
        """The same over a copy of its database, where nothing has happened yet."""
        other = copy.copy(self)
        other._serve(self.client.app, database)
        self.there.received.clear()
        return other

    def close(self):
        self.client.close()

    def send(self, method, path, body=None, key=None, **headers):
        """One request, as JSON."""
        options = {} if body is None else {"json": body}
        return self.client.request(
            method, path, headers={**(bearing(key) if key else {}), "If-Match": "*", **headers}, **options
        )

    def _made(self, path, body, key, method="POST"):
        answer = self.send(method, path, body, key)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.content else {}

    def _place(self, tenant):
        """One tenant with a little of everything."""
        word = FOREIGN if tenant == STRANGER else OWNED
        keys = {role: self.callers.key(*scopes, tenant=tenant) for role, scopes in ROLES.items()}
        if tenant == STRANGER:
            # As the operator lets a tenant in.
            first = {"name": word, "scopes": ["*:*"], "tenant_id": tenant}
            keys["admin"] = self._made("/v1/api-keys", first, self.own.keys["operator"])["secret"]
        place = Place(
            tenant, keys, {"api-keys": [parse_id(key) for key in keys.values()], "tenants": [tenant]}
        )
        admin = keys["admin"]
        self._made("/v1/cost-centers", {"id": "research", "name": word}, admin)
        self._made("/v1/budgets", {**EXAMPLES["create_budget"], "name": word}, admin)
        place.rows.update({"cost-centers": ["research"], "budgets": [EXAMPLES["create_budget"]["id"]]})
        self._ask(place, word)
        self._tell(place, word)
        self._join(place, word)
        return place

    def _ask(self, place, word):
        """Policies, and a quote that waits for one, another for two, another for nobody yet."""
        head, second = (f"api_key:{parse_id(place.keys[role])}" for role in ("approver", "second approver"))
        first = {"name": word, "approvers": [head, TOKENS[0], PEOPLE[0]], "order": 10}
        both = {"name": word, "approvers": [head, second, TOKENS[1], *PEOPLE], "quorum": 2, "order": 0}
        asker = f"api_key:{parse_id(place.keys['second requester'])}"
        admin = place.keys["admin"]
        self._made("/v1/approval-policies", _policy("everything", word, first), admin)
        self._made("/v1/approval-policies", _policy("careful", word, both, requesters=[asker]), admin)
        place.rows["approval-policies"] = ["everything", "careful"]
        quotes = [self._made("/v1/quotes", _quote(word), place.keys["requester"]) for _ in range(2)]
        quotes.append(self._made("/v1/quotes", _quote(word), place.keys["second requester"]))
        place.rows["quotes"] = [quote["id"] for quote in quotes]
        asked = self.submit(quotes[0], place.keys["requester"])
        careful = self.submit(quotes[2], place.keys["second requester"])
        assert (len(asked["steps"]), len(careful["steps"])) == (1, 2), "a policy does not hold yet"
        place.rows["approvals"] = [asked["id"], careful["id"]]
        delegation = {"delegate": "token:frank@example.org", "ends_at": "2099-12-31T00:00:00Z", "note": word}
        delegation = self._made("/v1/approval-delegations", delegation, place.keys["approver"])
        place.rows["approval-delegations"] = [delegation["id"]]

    def submit(self, quote, key):
        """What asking for a quote to be approved answers."""
        body = {"content_digest": quote["content_digest"]}
        return self._made(f"/v1/quotes/{quote['id']}:submit", body, key)

    def _tell(self, place, word):
        """A webhook, a link, an enrolment token."""
        admin, approval = place.keys["admin"], place.rows["approvals"][1]
        webhook = self._made("/v1/webhooks", {"url": self.there.url(OTHERS), "description": word}, admin)
        place.rows["webhooks"] = [webhook["webhook"]["id"]]
        link = self._made(f"/v1/approvals/{approval}:link", {"approver": PEOPLE[1]}, admin)
        place.rows["approval-links"] = [link["link"]["id"]]
        token = self._made("/v1/enrolment-tokens", {"node_name": word}, admin)
        place.rows["enrolment-tokens"] = [token["enrolment_token"]["id"]]
        self._handed = (*self._handed, webhook["secret"], link["url"], token["token"])

    def _join(self, place, word):
        """Nodes: one that works, one that was put aside, one that was put out; and a run that waits."""
        del word
        credentials = [self.callers.node(tenant=place.tenant) for _ in range(3)]
        place.rows["nodes"] = [parse_id(credential) for credential in credentials]
        for credential in credentials:
            prepare_node(self.client, bearing(credential))
        for verb, node in zip(("quarantine", "revoke"), place.rows["nodes"][1:], strict=True):
            self._made(f"/v1/nodes/{node}:{verb}", None, place.keys["admin"])
        place.rows["leases"] = [add_run(self.database, uuid4().hex, tenant=place.tenant)]
        place.rows["benchmark-runs"] = place.rows["leases"]
        place.rows["background-jobs"] = [ask_job(self.database, tenant=place.tenant)]
        place.rows["benchmark-results"] = [EXAMPLES["report_benchmark_result"]["result_id"]]
        self._handed = (*self._handed, *credentials)

    def move(self, kinds):
        """Go on without the holder: something of these kinds happens in both tenants, and is told.

        Where no webhook leads to the holder nothing is told to them, and nothing has to be sent.
        """
        if not self.leads_to_holder():
            return
        with self.database.open_writer() as session:
            for tenant, word in ((OWN, OWNED), (STRANGER, FOREIGN)):
                for kind in kinds:
                    emit_event(session, tenant, kind, {"name": word})
        do_all(self.database, PUBLISHING)
        with asyncio.Runner() as runner:
            while message := self._message():
                result = runner.run(send_message(self.client.app.state.means.webhooks, message))
                with self.database.open_writer() as session:
                    attempts.record_attempt(session, self.client.app.state.means.writes, message, result)

    def leads_to_holder(self):
        """Whether a webhook is told at an address of the holder's."""
        with self.database.open_reader() as session:
            return self.there.url(MINE) in session.scalars(select(WebhookRow.url)).all()

    def _message(self):
        with self.database.open_reader() as session:
            found = repository.read_queue(session)
        for turn in FairScheduler().begin_sends(found.ready, 1):
            with self.database.open_writer() as session:
                return attempts.claim_delivery(
                    session, self.client.app.state.means.webhooks, turn.tenant_id, turn.webhook_id
                )
        return None

    def told(self):
        """The messages that came to an address of the holder's."""
        return [json.loads(body) for _, body in self.there.at(MINE)]

    def held(self, approval_id, tenant=OWN):
        """An approval with all that belongs to it, as it is kept."""
        with self.database.open_reader() as session:
            return approvals.get_approval(session, tenant, approval_id)

    def digest(self, row, tenant):
        """The digest of a quote, or of what an approval is about."""
        with self.database.open_reader() as session:
            held = approvals.get_approval(session, tenant, row)
            if held is not None:
                return held.row.content_digest
            with contextlib.suppress(QuoteNotFound):
                return quotes.get_quote(session, tenant, row)["content_digest"]
            return "0" * 64

    def deliveries(self, webhook_id, tenant):
        """Ids of deliveries to a webhook, or one that nobody has."""
        with self.database.open_reader() as session:
            found = select(DeliveryRow.id).where(
                DeliveryRow.webhook_id == webhook_id, DeliveryRow.tenant_id == tenant
            )
            return session.scalars(found.limit(5)).all() or ["0" * 32]

    def approvals(self, tenant=OWN):
        """Every approval of a tenant, as it is kept."""
        with self.database.open_reader() as session:
            found = list(approvals.list_ids(session, tenant))
            return [approvals.get_approval(session, tenant, each) for each in found]

    def nodes(self):
        """Every node, as it is kept."""
        with self.database.open_reader() as session:
            return list(session.scalars(select(NodeRow)))

    def ask_again(self):
        """Whether a quote of somebody else passes now without anybody being asked."""
        quote = self.send("POST", "/v1/quotes", _quote(OWNED), self.asker)
        if not quote.is_success:
            return False  # their tenant was disabled
        quote = quote.json()
        body = {"content_digest": quote["content_digest"]}
        answer = self.send("POST", f"/v1/quotes/{quote['id']}:submit", body, self.asker)
        return answer.is_success and answer.json()["state"] == "approved"

    def _last_events(self):
        with self.database.open_reader() as session:
            found = select(AuditEventRow.sequence).where(AuditEventRow.tenant_id == STRANGER)
            return max(session.scalars(found), default=0)

    def done_elsewhere(self):
        """What was written in the stranger's tenant since the beginning: operation and resource."""
        with self.database.open_reader() as session:
            found = select(AuditEventRow).where(
                AuditEventRow.tenant_id == STRANGER, AuditEventRow.sequence > self.before
            )
            return [(row.operation, row.resource) for row in session.scalars(found)]


ROLES = {
    "operator": ("*:*", "tenants:*", "metrics:*"),
    "admin": ("*:*",),
    "approver": ("approvals:read", "approvals:write", "approval-delegations:write"),
    "second approver": ("approvals:write",),
    "requester": ("quotes:read", "quotes:write"),
    "second requester": ("quotes:read", "quotes:write"),
}


def _policy(name, word, step, **conditions):
    return {"id": name, "name": word, "conditions": conditions, "steps": [step]}


def _quote(word):
    return {**deepcopy(QUOTED), "name": word}
