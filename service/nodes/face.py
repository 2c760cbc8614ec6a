"""Nodes over HTTP: transactions, pages, and claims that wait."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import Depends, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.orm import Session
from starlette.types import Receive

from service.audit.service import Call, Change, Writes
from service.kit.database.engine import Database, Writer
from service.kit.http.pages import PageQuery, PageTokens
from service.kit.http.web import json_response
from service.kit.security.keyring import Keyring
from service.kit.security.subjects import Subject
from service.nodes import leases, repository, service
from service.nodes.credentials import Credentials, NodeAuthenticator, changed, own_call, state_of
from service.nodes.errors import EnrolmentTokenNotFound, NodeNotFound
from service.nodes.heard import HEARTBEAT_SECONDS, Heartbeats
from service.nodes.records import NODES
from service.nodes.schemas import EnrolmentTokenInput, NodeId, NodeQuery, TokenId
from service.nodes.service import AskingNode, Enrolments, Quota
from service.nodes.tables import LeaseRow, NodeRow
from service.nodes.waiting import Offer, Waiting, Want
from service.protocol.leases import Claim, Lease, Renewal
from service.protocol.nodes import Enrolment, Heartbeat, Inventory

MissingResults = Callable[[Session, Subject, Sequence[str]], list[str]]
"""Which of the results that a node says were acknowledged the service does not have, by digest."""


class NodesFace:
    """Nodes of one database, as responses."""

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        keyring: Keyring,
        tokens: PageTokens,
        has_tenant: Callable[[str], bool],
        missing_results: MissingResults,
        quota: Quota,
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._has_tenant = has_tenant
        self._missing_results = missing_results
        self._quota = quota
        self._enrolments = Enrolments(keyring)
        self._heartbeats = Heartbeats(database)
        self.waiting = Waiting(self._offers)
        self.authenticate = NodeAuthenticator(
            database, writes=writes, credentials=Credentials.of(keyring), has_tenant=has_tenant
        )

    def list_tokens(self, tenant_id: str, query: PageQuery) -> Response:
        """A page of the enrolment tokens of a tenant."""
        filters = json.dumps(["enrolment-tokens", tenant_id])
        with self._database.reading() as session:
            after = self._after(query, filters)
            rows = repository.tokens_after(session, tenant_id, after, query.limit + 1)
            shown = [service.shown_token(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "id"))

    def get_token(self, tenant_id: str, token_id: str) -> Response:
        """One enrolment token of a tenant."""
        with self._database.reading() as session:
            row = repository.token(session, tenant_id, token_id)
            if row is None:
                raise EnrolmentTokenNotFound
            return json_response(service.shown_token(row))

    def create_token(self, call: Call, body: EnrolmentTokenInput) -> Response:
        """A new enrolment token."""
        sent = body.model_dump(mode="json")
        return self._writes.run(
            call, sent, lambda session: self._enrolments.create_token(session, call.subject, body)
        )

    def delete_token(self, call: Call, token_id: str) -> Response:
        """No working enrolment token any more."""
        tenant_id = call.subject.tenant_id
        return self._writes.run(
            call, None, lambda session: service.delete_token(session, tenant_id, token_id)
        )

    def enrol(self, body: Enrolment) -> Response:
        """A node and its credential."""
        with self._database.writing() as session:
            node, secret, change = self._enrolments.enrol(session, body, self._has_tenant)
            self._writes.record(session, own_call(node, "enrol_node"), change)
            time = repository.time(session)
        return json_response({"node_id": node.id, "credential": secret, "server_time": time})

    def list_nodes(self, tenant_id: str, query: NodeQuery) -> Response:
        """A page of the nodes of a tenant."""
        filters = json.dumps(["nodes", tenant_id, query.state, query.device])
        with self._database.reading() as session:
            rows = repository.nodes_after(
                session,
                tenant_id,
                self._after(query, filters),
                states=query.state,
                devices=query.device,
                limit=query.limit + 1,
            )
            held = repository.running_leases(session, [row.id for row in rows])
            time = repository.time(session)
            shown = [self._shown(row, held.get(row.id), self._heartbeats.of(row, time)) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "id"))

    def get_node(self, tenant_id: str, node_id: str) -> Response:
        """One node of a tenant, with its inventory."""
        with self._database.reading() as session:
            row = repository.node(session, tenant_id, node_id)
            if row is None:
                raise NodeNotFound
            inventory = repository.inventory(session, row.id, row.inventory_sha256 or "")
            shown = self._one(session, row)
            return json_response(shown if inventory is None else {**shown, "inventory": inventory.inventory})

    def change(self, call: Call, node_id: str, do: Callable[[Writer, NodeRow], None]) -> Response:
        """A node that an operator does something with."""

        def change(session: Writer) -> Change:
            row = service.locked(session, call.subject.tenant_id, node_id)
            before = state_of(row)
            do(session, row)
            if state_of(row) != before:
                changed(session, row, before)
            return Change(
                resource=f"nodes/{node_id}",
                body=self._one(session, row),
                before=before,
                after=state_of(row),
                state=NODES.state(session, row),
            )

        return self._writes.run(call, None, change)

    def rotate(self, node: Subject, request_id: str) -> Response:
        """The next credential of a node."""
        with self._database.writing() as session:
            secret, generation, change = self._enrolments.rotate(session, node)
            self._writes.record(session, Call(node, "rotate_node_credential", "", request_id), change)
        return json_response({"credential": secret, "generation": generation})

    def keep_inventory(self, node: Subject, body: Inventory) -> Response:
        """The digest of what a node is made of."""
        with self._database.writing() as session:
            digest = service.keep_inventory(session, node, body, self._quota)
        return json_response({"inventory_sha256": digest})

    def heartbeat(self, node: Subject, beat: Heartbeat) -> Response:
        """What the service wants of a node. Nothing is written while it says nothing new."""
        with self._database.reading() as session:
            row = repository.node(session, node.tenant_id, node.id)
            if row is None:
                raise NodeNotFound
            has_inventory = repository.inventory(session, row.id, beat.inventory_sha256) is not None
            time = repository.time(session)
            answer = {
                "rotate": service.wants_rotation(session, row),
                "send_inventory": not has_inventory,
                "missing": self._missing_results(session, node, beat.acknowledged),
                "heartbeat_seconds": HEARTBEAT_SECONDS,
                "server_time": time,
            }
        is_news = service.is_news(row, beat, has_inventory=has_inventory)
        if is_news:
            row = self._take_news(node, beat)
        said = {"activity": beat.activity, "spool": beat.spool.model_dump(mode="json")}
        self._heartbeats.note(row, time, said)
        if is_news:
            self._heartbeats.written(row.id)
        return json_response({"state": row.state, **answer})

    def _take_news(self, node: Subject, beat: Heartbeat) -> NodeRow:
        with self._database.writing() as session:
            row, change = service.take_news(session, node, beat)
            if change is not None:
                self._writes.record(session, own_call(row, "quarantine_node"), change)
        return row

    def write_heartbeats(self, least: int | None = None) -> int:
        """Write down what is due of the nodes that this process has heard; how many."""
        return self._heartbeats.write() if least is None else self._heartbeats.write(least)

    async def claim(self, node: Subject, body: Claim, receive: Receive) -> Response:
        """A lease, or none after a wait that ends when there is something to run."""
        loop = asyncio.get_running_loop()
        until = loop.time() + body.wait_seconds
        lease, want = await run_in_threadpool(self._claim, node, body)
        if lease is None and body.wait_seconds > 0:
            gone = asyncio.ensure_future(receive())
            try:
                while lease is None and await self.waiting.wait(want, until, gone):
                    lease, want = await run_in_threadpool(self._claim, node, body)
            finally:
                gone.cancel()
        return Response(status_code=204) if lease is None else json_response(lease)

    def _claim(self, node: Subject, body: Claim) -> tuple[Lease | None, Want]:
        with self._database.writing() as session:
            lease = leases.claim(session, node, body)
            row = repository.node(session, node.tenant_id, node.id)
            assert row is not None  # noqa: S101  # it has just claimed
            return lease, Want(row.tenant_id, row.device, row.id)

    def _offers(self) -> Counter[Offer]:
        with self._database.reading() as session:
            found = repository.offers(session)
        return Counter({Offer(tenant, device, target): count for tenant, device, target, count in found})

    def renew(self, node: Subject, lease_id: str, body: Renewal) -> Response:
        """A lease that goes on."""
        with self._database.writing() as session:
            return json_response(leases.renew(session, node, lease_id, body))

    def _one(self, session: Session, row: NodeRow) -> dict[str, Any]:
        held = repository.running_leases(session, [row.id])
        return self._shown(row, held.get(row.id), self._heartbeats.of(row, repository.time(session)))

    @staticmethod
    def _shown(row: NodeRow, held: LeaseRow | None, heard: dict[str, Any]) -> dict[str, Any]:
        names = ("id", "name", "device", "state", "reason", "worker_version", "inventory_sha256")
        members = {
            name: getattr(row, name) for name in (*names, "version", "created_at", "revoked_at", "barred_at")
        }
        shown = {**members, **heard, "rotation_requested": row.rotate_requested}
        if held is not None:
            shown["lease"] = {
                "benchmark_run_id": held.id,
                "attempt": held.attempt,
                "begun_at": held.begun_at,
            }
        return {name: value for name, value in shown.items() if value is not None}

    def _after(self, query: PageQuery, filters: str) -> str:
        return self._tokens.decode(query.page_token, filters)[0] if query.page_token else ""


async def _face(request: Request) -> NodesFace:
    face: NodesFace = request.app.state.nodes
    return face


async def _self(request: Request, node: AskingNode) -> Subject:
    """The node that asks about itself; others it does not find."""
    if request.path_params["id"] != node.id:
        raise NodeNotFound
    return node


Face = Annotated[NodesFace, Depends(_face)]
Self = Annotated[Subject, Depends(_self)]
NodePath = Annotated[NodeId, Path(description="Id of the node.")]
TokenPath = Annotated[TokenId, Path(description="Id of the enrolment token.")]
