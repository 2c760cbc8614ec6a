"""Operations on nodes: those of operators, and those of the nodes themselves."""

from typing import Annotated

from fastapi import Path, Query, Request, Response

from service.audit.service import Caller, WriteCall
from service.kit.http.pages import PageQuery
from service.kit.http.problems import Unauthorized
from service.kit.http.web import LOCATED, PublicRoute, api_router, route_needing
from service.nodes import service
from service.nodes.face import Face, NodePath, Self, TokenPath
from service.nodes.schemas import (
    EnrolmentToken,
    EnrolmentTokenInput,
    EnrolmentTokenPage,
    IssuedEnrolmentToken,
    Node,
    NodePage,
    NodeQuery,
)
from service.nodes.service import CLAIM, AskingNode
from service.protocol.base import Name
from service.protocol.leases import Claim, Lease, Renewal, Renewed
from service.protocol.nodes import (
    Enrolled,
    Enrolment,
    Heartbeat,
    HeartbeatAnswer,
    Inventory,
    InventoryKept,
    NewCredential,
)

_OF_NODES = route_needing(CLAIM)

tokens = api_router("/v1/enrolment-tokens", tag="enrolment-tokens")
enrolment = api_router("/v1/nodes", tag="nodes", route_class=PublicRoute)
nodes = api_router("/v1/nodes", tag="nodes")
own = api_router("/v1/nodes", tag="nodes", route_class=_OF_NODES)
leases = api_router("/v1/leases", tag="leases", route_class=_OF_NODES)

LeasePath = Annotated[Name, Path(description="Id of the lease, which is that of its benchmark run.")]


@tokens.get("", response_model=EnrolmentTokenPage)
def list_enrolment_tokens(face: Face, caller: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenant's enrolment tokens, without their secrets."""
    return face.list_tokens(caller.tenant_id, query)


@tokens.post("", status_code=201, response_model=IssuedEnrolmentToken, responses=LOCATED)
def create_enrolment_token(face: Face, call: WriteCall, body: EnrolmentTokenInput) -> Response:
    """Create a token that lets one node in, once; its secret is shown this once."""
    return face.create_token(call, body)


@tokens.get("/{id:name}", response_model=EnrolmentToken)
def get_enrolment_token(face: Face, caller: Caller, id: TokenPath) -> Response:
    """An enrolment token, without its secret."""
    return face.get_token(caller.tenant_id, id)


@tokens.delete("/{id:name}", status_code=204)
def delete_enrolment_token(face: Face, call: WriteCall, id: TokenPath) -> Response:
    """Let nobody in by a token any more; the node that came in by it stays."""
    return face.delete_token(call, id)


@enrolment.post(":enrol", response_model=Enrolled)
def enrol_node(request: Request, face: Face, body: Enrolment) -> Response:
    """Join with an enrolment token; asked again before the credential was used, it is given a fresh one."""
    try:
        return face.enrol(body)
    except Unauthorized:
        request.app.state.admission.count_refusal(request.scope)
        raise


@nodes.get("", response_model=NodePage)
def list_nodes(face: Face, caller: Caller, query: Annotated[NodeQuery, Query()]) -> Response:
    """A page of the tenant's nodes."""
    return face.list_nodes(caller.tenant_id, query)


@nodes.get("/{id:name}", response_model=Node)
def get_node(face: Face, caller: Caller, id: NodePath) -> Response:
    """A node, with what it is made of and what it is running."""
    return face.get_node(caller.tenant_id, id)


@nodes.post("/{id:name}:drain", response_model=Node)
def drain_node(face: Face, call: WriteCall, id: NodePath) -> Response:
    """Let a node end its suite and give it no other."""
    return face.change(call, id, service.drain)


@nodes.post("/{id:name}:resume", response_model=Node)
def resume_node(face: Face, call: WriteCall, id: NodePath) -> Response:
    """Give a node something to run again; one whose credential is in two hands has to enrol again."""
    return face.change(call, id, service.resume)


@nodes.post("/{id:name}:readmit", response_model=Node)
def readmit_node(face: Face, call: WriteCall, id: NodePath) -> Response:
    """Let the host of a quarantined or revoked node enrol again; the node stays as it is until then."""
    return face.change(call, id, service.readmit)


@nodes.post("/{id:name}:quarantine", response_model=Node)
def quarantine_node(face: Face, call: WriteCall, id: NodePath) -> Response:
    """Take a node's lease, give it nothing and let nobody enrol as it; results that it still has are kept."""
    return face.change(call, id, service.set_aside)


@nodes.post("/{id:name}:revoke", response_model=Node)
def revoke_node(face: Face, call: WriteCall, id: NodePath) -> Response:
    """Take nothing from a node any more, for good, and keep its host out; its results stay."""
    return face.change(call, id, service.revoke)


@nodes.post("/{id:name}:request-rotation", response_model=Node)
def request_node_rotation(face: Face, call: WriteCall, id: NodePath) -> Response:
    """Have a node replace its credential at its next heartbeat."""
    return face.change(call, id, service.ask_rotation)


@own.post("/{id:name}:rotate", response_model=NewCredential)
def rotate_node_credential(request: Request, face: Face, node: Self, id: NodePath) -> Response:
    """The next credential of the node that asks; the one before works until this one has been used."""
    return face.rotate(node, request.scope["state"]["request_id"])


@own.put("/{id:name}/inventory", response_model=InventoryKept)
def put_node_inventory(face: Face, node: Self, id: NodePath, body: Inventory) -> Response:
    """Say what the node that asks is made of."""
    return face.keep_inventory(node, body)


@own.post("/{id:name}:heartbeat", response_model=HeartbeatAnswer)
def heartbeat_node(face: Face, node: Self, id: NodePath, body: Heartbeat) -> Response:
    """Say that the node that asks is alive, and hear what is wanted of it."""
    return face.heartbeat(node, body)


@leases.post(":claim", response_model=Lease, responses={204: {"description": "There is nothing to run."}})
async def claim_lease(request: Request, face: Face, node: AskingNode, body: Claim) -> Response:
    """Claim something to run, waiting for it if need be; asked again, the answer is the same lease."""
    return await face.claim(node, body, request.receive)


@leases.post("/{id:name}:renew", response_model=Renewed)
def renew_lease(face: Face, node: AskingNode, id: LeasePath, body: Renewal) -> Response:
    """Hold on to a lease; refused once it has ended or was granted anew."""
    return face.renew(node, id, body)
