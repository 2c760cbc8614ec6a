"""Operations on nodes, for operators and for the nodes themselves."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from service.audit.service import Read, Transactions, Write, WriteContext, WriteRequest
from service.kit.database.engine import Writer
from service.kit.http.pages import BY_ID, PageQuery
from service.kit.http.problems import Unauthorized
from service.kit.http.web import (
    LOCATED,
    PublicRoute,
    api_router,
    build_route_class,
    from_state,
    json_response,
)
from service.kit.security.principals import Principal
from service.nodes import leases as lease_rules
from service.nodes import repository, service
from service.nodes.credentials import build_node_call
from service.nodes.errors import NodeNotFound
from service.nodes.heartbeats import HeartbeatRegistry
from service.nodes.schemas import (
    EnrolmentToken,
    EnrolmentTokenPage,
    EnrolmentTokenRequest,
    IssuedEnrolmentToken,
    Node,
    NodeId,
    NodePage,
    NodeQuery,
    TokenId,
)
from service.nodes.service import CLAIM, CallingNode, EnrolmentService, NodeHeartbeats, NodeQuota
from service.nodes.tables import NodeRow
from service.nodes.waiting import ClaimQueue
from service.protocol.base import Name
from service.protocol.leases import BenchmarkLease, LeaseClaimRequest, LeaseRenewal, LeaseRenewalRequest
from service.protocol.nodes import (
    IssuedNodeCredential,
    NodeEnrolment,
    NodeEnrolmentRequest,
    NodeHeartbeatRequest,
    NodeInstructions,
    NodeInventory,
    NodeInventoryReceipt,
)

_OF_NODES = build_route_class(CLAIM)

tokens = api_router("/v1/enrolment-tokens", tag="enrolment-tokens")
enrolment = api_router("/v1/nodes", tag="nodes", route_class=PublicRoute)
nodes = api_router("/v1/nodes", tag="nodes")
own = api_router("/v1/nodes", tag="nodes", route_class=_OF_NODES)
leases = api_router("/v1/leases", tag="leases", route_class=_OF_NODES)

LeasePath = Annotated[Name, Path(description="Id of the lease, which is that of its benchmark run.")]
NodePath = Annotated[NodeId, Path(description="Id of the node.")]
TokenPath = Annotated[TokenId, Path(description="Id of the enrolment token.")]
NodeEnrolments = Annotated[EnrolmentService, from_state("enrolments")]
WaitingClaims = Annotated[ClaimQueue, from_state("waiting")]
MissingResults = Annotated[service.MissingResults, from_state("missing_results")]
HasTenant = Annotated[Callable[[str], bool], from_state("has_tenant")]


async def _self(request: Request, node: CallingNode) -> Principal:
    """Returns the node that calls. Refuses the id of another node as not found."""
    if request.path_params["id"] != node.id:
        raise NodeNotFound
    return node


Self = Annotated[Principal, Depends(_self)]


@tokens.get("", summary="List enrolment tokens", response_model=EnrolmentTokenPage)
def list_enrolment_tokens(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists the tenant's enrolment tokens, without their secrets."""
    page = read.page(query, BY_ID, "enrolment-tokens")
    with read.session() as session:
        rows = repository.list_tokens(session, read.tenant_id, page.after, page.limit)
        return json_response(page.to_response([service.to_token_summary(row) for row in rows]))


@tokens.post(
    "",
    summary="Create an enrolment token",
    status_code=201,
    response_model=IssuedEnrolmentToken,
    responses=LOCATED,
)
def create_enrolment_token(write: Write, enrolments: NodeEnrolments, body: EnrolmentTokenRequest) -> Response:
    """Creates a token by which one node enrols, once. The secret is shown only in this answer."""
    return write.run(body, lambda session: enrolments.create_token(session, write.subject, body))


@tokens.get("/{id:name}", summary="Get an enrolment token", response_model=EnrolmentToken)
def get_enrolment_token(read: Read, id: TokenPath) -> Response:
    """Returns an enrolment token, without its secret."""
    with read.session() as session:
        return json_response(service.get_token(session, read.tenant_id, id))


@tokens.delete("/{id:name}", summary="Delete an enrolment token", status_code=204)
def delete_enrolment_token(write: Write, id: TokenPath) -> Response:
    """Deletes an enrolment token. A node that has enrolled by it stays."""
    return write.run(None, lambda session: service.delete_token(session, write.tenant_id, id))


@enrolment.post(":enrol", summary="Enrol a node by its token", response_model=NodeEnrolment)
def enrol_node(
    request: Request,
    transactions: Transactions,
    enrolments: NodeEnrolments,
    has_tenant: HasTenant,
    body: NodeEnrolmentRequest,
) -> Response:
    """Enrols a node by its token. Repeated before the credential was used, it returns a fresh one."""
    try:
        with transactions.open_writer() as session:
            node, secret, change = enrolments.enrol_node(session, body, has_tenant)
            transactions.writes.record(session, build_node_call(node, "enrol_node"), change)
            time = repository.get_time(session)
    except Unauthorized:
        request.app.state.admission.count_refusal(request.scope)
        raise
    return json_response({"node_id": node.id, "credential": secret, "server_time": time})


@nodes.get("", summary="List nodes", response_model=NodePage)
def list_nodes(read: Read, heartbeats: NodeHeartbeats, query: Annotated[NodeQuery, Query()]) -> Response:
    """Lists the tenant's nodes."""
    page = read.page(query, BY_ID, "nodes", query.state, query.device)
    with read.session() as session:
        found = service.list_nodes(session, read.tenant_id, query, page, heartbeats)
        return json_response(page.to_response(found))


@nodes.get("/{id:name}", summary="Get a node", response_model=Node)
def get_node(read: Read, heartbeats: NodeHeartbeats, id: NodePath) -> Response:
    """Returns a node with its inventory and the run that it is running."""
    with read.session() as session:
        return json_response(service.get_node(session, read.tenant_id, id, heartbeats))


def _change(
    write: WriteRequest, node_id: str, do: Callable[[Writer, NodeRow], None], heartbeats: HeartbeatRegistry
) -> Response:
    return write.run(None, lambda session: service.change(session, write.tenant_id, node_id, do, heartbeats))


@nodes.post("/{id:name}:drain", summary="Drain a node", response_model=Node)
def drain_node(write: Write, heartbeats: NodeHeartbeats, id: NodePath) -> Response:
    """Drains a node: it finishes its suite and gets no other."""
    return _change(write, id, service.drain_node, heartbeats)


@nodes.post("/{id:name}:resume", summary="Resume a node", response_model=Node)
def resume_node(write: Write, heartbeats: NodeHeartbeats, id: NodePath) -> Response:
    """Resumes a node, which gets runs again. A node whose credential was reused has to enrol again."""
    return _change(write, id, service.resume_node, heartbeats)


@nodes.post("/{id:name}:readmit", summary="Readmit a node that was put out", response_model=Node)
def readmit_node(write: Write, heartbeats: NodeHeartbeats, id: NodePath) -> Response:
    """Lets the host of a quarantined or revoked node enrol again. The node keeps its state until then."""
    return _change(write, id, service.readmit_node, heartbeats)


@nodes.post("/{id:name}:quarantine", summary="Quarantine a node", response_model=Node)
def quarantine_node(write: Write, heartbeats: NodeHeartbeats, id: NodePath) -> Response:
    """Quarantines a node: ends its lease and bars its host. Results that it still has are accepted."""
    return _change(write, id, service.quarantine_by_operator, heartbeats)


@nodes.post("/{id:name}:revoke", summary="Revoke a node permanently", response_model=Node)
def revoke_node(write: Write, heartbeats: NodeHeartbeats, id: NodePath) -> Response:
    """Revokes a node permanently: nothing is accepted from it, and its host is barred. Its results stay."""
    return _change(write, id, service.revoke_node, heartbeats)


@nodes.post(
    "/{id:name}:request-rotation", summary="Ask a node to replace its credential", response_model=Node
)
def request_node_rotation(write: Write, heartbeats: NodeHeartbeats, id: NodePath) -> Response:
    """Requests that a node replaces its credential at its next heartbeat."""
    return _change(write, id, service.request_rotation, heartbeats)


@own.post(
    "/{id:name}:rotate",
    summary="Replace the credential of the calling node",
    response_model=IssuedNodeCredential,
)
def rotate_node_credential(
    request: Request, transactions: Transactions, enrolments: NodeEnrolments, node: Self, id: NodePath
) -> Response:
    """Returns the next credential of the calling node. The previous one works until the new one is used."""
    call = WriteContext(node, "rotate_node_credential", "", request.scope["state"]["request_id"])
    with transactions.open_writer() as session:
        secret, generation, change = enrolments.rotate_credential(session, node)
        transactions.writes.record(session, call, change)
    return json_response({"credential": secret, "generation": generation})


@own.put(
    "/{id:name}/inventory",
    summary="Report the inventory of the calling node",
    response_model=NodeInventoryReceipt,
)
def put_node_inventory(
    transactions: Transactions, quota: NodeQuota, node: Self, id: NodePath, body: NodeInventory
) -> Response:
    """Stores the inventory of the calling node."""
    with transactions.open_writer() as session:
        digest = service.store_inventory(session, node, body, quota)
    return json_response({"inventory_sha256": digest})


@own.post(
    "/{id:name}:heartbeat", summary="Report that the calling node is alive", response_model=NodeInstructions
)
def heartbeat_node(
    *,
    transactions: Transactions,
    heartbeats: NodeHeartbeats,
    missing_results: MissingResults,
    node: Self,
    id: NodePath,
    body: NodeHeartbeatRequest,
) -> Response:
    """Records that the calling node is alive, and returns instructions to it."""
    with transactions.open_reader() as session:
        answer = service.answer_heartbeat(session, node, body, missing_results)
    row = answer.node
    if answer.is_news:
        with transactions.open_writer() as session:
            row, change = service.apply_heartbeat(session, node, body)
            if change is not None:
                transactions.writes.record(session, build_node_call(row, "quarantine_node"), change)
    heartbeats.record_heartbeat(row, answer.time, body, is_written=answer.is_news)
    return json_response({"state": row.state, **answer.wanted})


@leases.post(
    ":claim",
    summary="Claim a benchmark run",
    response_model=BenchmarkLease,
    responses={204: {"description": "No run is waiting."}},
)
async def claim_lease(
    request: Request, waiting: WaitingClaims, node: CallingNode, body: LeaseClaimRequest
) -> Response:
    """Claims a benchmark run, and waits for one if necessary. A repeated claim returns the same lease."""
    lease = await waiting.claim(node, body, request.receive)
    return Response(status_code=204) if lease is None else json_response(lease)


@leases.post("/{id:name}:renew", summary="Renew a lease", response_model=LeaseRenewal)
def renew_lease(
    transactions: Transactions, node: CallingNode, id: LeasePath, body: LeaseRenewalRequest
) -> Response:
    """Renews a lease. Refused if it has ended or was granted again."""
    with transactions.open_writer() as session:
        renewed = lease_rules.renew_lease(session, node, id, body)
    return json_response(renewed)
