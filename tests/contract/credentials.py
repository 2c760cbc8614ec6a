"""What the requests of the contract tests say about their caller, in one place."""

import json

from service.app.examples import EXAMPLE_IDS, EXAMPLES
from service.kit.security.credentials import parse_id
from tests.applications import Callers, bearing
from tests.contract.test_document import OPERATIONS
from tests.nodes.fleet import add_run

OF_NODES = {
    name
    for name, (_, _, operation) in OPERATIONS.items()
    if operation["security"] in ([{"bearer": ["leases:claim"]}], [{"bearer": ["benchmark-results:report"]}])
}
"""Operations that only an enrolled node may call, and only for itself."""


def credentials(app, name=""):
    """Headers of a caller who may call an operation of ``app``, whose database is attached."""
    callers = Callers(app, app.state.database)
    if name in OF_NODES:
        return bearing(callers.node())
    return bearing(callers.key("*:*", "tenants:*", "metrics:*"))


def sent(example):
    """An example as bytes."""
    return json.dumps(example).encode()


def node_of(headers):
    """The id of the node that headers are of."""
    return parse_id(headers["Authorization"].partition(" ")[2])


def prepare_node(client, headers, base=""):
    """Have a node send the inventory that the examples name; its id."""
    node_id = node_of(headers)
    url = f"{base}/v1/nodes/{node_id}/inventory"
    kept = client.request("PUT", url, json=EXAMPLES["put_node_inventory"], headers=headers)
    assert kept.status_code == 200, kept.text
    return node_id


def lease_of(client, headers, database, base="", *, run_id=EXAMPLE_IDS["leases"], tenant="default"):
    """Have a node of a tenant claim a run; the id, which the examples name."""
    prepare_node(client, headers, base)
    add_run(database, run_id, tenant=tenant)
    claimed = client.request("POST", f"{base}/v1/leases:claim", json=EXAMPLES["claim_lease"], headers=headers)
    assert claimed.status_code == 200, claimed.text
    return claimed.json()["id"]
