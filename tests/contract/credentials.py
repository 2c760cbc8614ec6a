"""What the requests of the contract tests say about their caller, in one place."""

import json
from base64 import b64encode
from hashlib import sha256

from tests.applications import Callers, bearing
from tests.contract.test_document import OPERATIONS

SCOPES = {
    name: scope
    for name, (_, _, operation) in OPERATIONS.items()
    for (requirement,) in [operation["security"]]
    for (scope,) in [requirement["bearer"]]
}
BY_NODES = {name for name, scope in SCOPES.items() if not scope.endswith((":read", ":write"))}
"""Operations that a node calls, for itself alone."""


def credentials(app, name=""):
    """Headers of a caller who may call an operation of ``app``, by default any; its database is attached."""
    callers = Callers(app, app.state.database)
    if name in BY_NODES:
        return bearing(callers.node())
    return bearing(callers.key("*:*", "tenants:*", "metrics:*"))


def content_digest(content):
    """The digest of a body, as in RFC 9530."""
    return f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"


def sent(example):
    """An example as bytes."""
    return json.dumps(example).encode()
