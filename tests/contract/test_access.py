"""Every operation of the document: without credentials, without the scope, for another tenant, as a node."""

import json
import re
from functools import cache
from uuid import uuid4

import pytest

from service.app.examples import EXAMPLES
from service.kit.security.credentials import parse_id
from tests.applications import (
    TENANT,
    Callers,
    ask_job,
    attach,
    bearing,
    content_digest,
    store_approval,
    store_calibration,
    store_link,
    store_plan,
    store_policy_change,
    store_quote,
    store_result,
    store_webhook,
)
from tests.conftest import Client
from tests.contract.credentials import OF_NODES, lease_of, sent
from tests.contract.test_document import CATALOG, OPERATIONS

SCOPES = {
    name: scope
    for name, (_, _, operation) in OPERATIONS.items()
    for requirement in operation["security"]
    for (scope,) in [requirement["bearer"]]
}
OF_THE_OPERATOR = {"tenants"}


def call(callers, name, credential=None, row=None):
    """Call an operation as its example does, on ``row`` where it has one."""
    method, path, operation = OPERATIONS[name]
    parameters = {p["name"]: p.get("example") for p in operation.get("parameters", [])}
    headers = bearing(credential) if credential else {}
    if "If-Match" in parameters:
        headers["If-Match"] = "*"
    url = path.replace("{id}", row or parameters["id"]) if "{id}" in path else path
    body = sent(EXAMPLES[name]) if "requestBody" in operation else b""
    if body:
        headers["Content-Type"] = "application/json"
    if "Content-Digest" in parameters:
        headers["Content-Digest"] = content_digest(body)
    return callers.client.request(method.upper(), url, content=body, headers=headers)


class KeyedCallers(Callers):
    """Callers that make each tenant and key once, and one node of a tenant."""

    def __init__(self, app, database):
        super().__init__(app, database)
        self.tenant = cache(super().tenant)
        self.key = cache(super().key)
        self.any_node = cache(self.node)


@pytest.fixture(scope="class")
def shared_callers(request, app, databases_of):
    """Callers of one application over a database of a kind, which the tests of a class share."""
    maker = databases_of(request.param)
    database = maker.loaded()
    attach(app, database, TENANT)
    callers = KeyedCallers(app, database)
    callers.client = Client(app)
    yield callers
    callers.client.close()
    maker.dispose()


@pytest.mark.parametrize("name", SCOPES)
@pytest.mark.parametrize("shared_callers", ["sqlite"], indirect=True)
class TestEveryOperation:
    @pytest.fixture
    def callers(self, shared_callers):
        return shared_callers

    def test_wants_credentials(self, callers, name):
        refused = call(callers, name)
        assert (refused.status_code, refused.json()["code"]) == (401, "CREDENTIALS_REQUIRED")
        assert refused.headers["www-authenticate"] == "Bearer"

    def test_wants_its_scope_and_says_which(self, callers, name):
        resource, _, action = SCOPES[name].partition(":")
        other = {"read": "write"}.get(action, "read")
        near = [f"{resource}:{other}", f"*:{other}"]
        refused = call(callers, name, callers.key(*near, "unknown-nouns:write"))
        assert (refused.status_code, refused.json()["code"]) == (403, "SCOPE_REQUIRED")
        assert f'scope="{SCOPES[name]}"' in refused.headers["www-authenticate"]

    def test_is_open_to_each_scope_that_grants_it(self, callers, name):
        for scope in granting(name):
            answer = call(callers, name, callers.key(scope))
            assert answer.status_code not in (401, 403) or answer.json()["code"] in WITH_THE_SCOPE
            assert name not in OF_NODES or answer.json()["code"] == "NOT_A_NODE"

    def test_is_closed_to_a_node_unless_it_is_for_nodes(self, callers, name):
        credential = callers.node() if name in OF_NODES else callers.any_node()
        answer = call(callers, name, credential, parse_id(credential))
        if name not in OF_NODES:
            assert (answer.status_code, answer.json()["code"]) == (403, "SCOPE_REQUIRED")
        else:
            assert answer.status_code in (200, 404, 409, 422), answer.text


def granting(name):
    """The scope of an operation; of the first that needs it, the wider ones that grant it, too."""
    scope = SCOPES[name]
    if next(each for each in SCOPES if SCOPES[each] == scope) != name:
        return [scope]
    resource, _, action = scope.partition(":")
    wide = [] if resource in OF_THE_OPERATOR else [f"*:{action}", "*:*"]
    return [scope, f"{resource}:*", *wide]


WITH_THE_SCOPE = {"SCOPE_NOT_HELD", "NOT_A_NODE"}


ON_A_ROW = [name for name, (_, path, _) in OPERATIONS.items() if "{id}" in path]


# Tenants are seen by the operator alone, suites by everybody; a node gives a result its id itself.
OF_A_TENANT = [
    name
    for name in ON_A_ROW
    if not name.endswith(("_tenant", "_benchmark_suite")) and name != "report_benchmark_result"
]


OF_CONTENT = {"submit_quote", "amend_quote", "cancel_quote", "approve_approval", "reject_approval"}
"""Operations that name the content of a quote; that of the example is another one's (409)."""


def singular_of(noun):
    """What operations call one of a collection."""
    return re.sub("ies$", "y", noun).removesuffix("s").replace("-", "_")


STORED = {
    "approval": lambda database: store_approval(database)["id"],
    "approval_link": store_link,
    "background_job": ask_job,
    "benchmark_result": store_result,
    "calibration": store_calibration,
    "plan": store_plan,
    "policy_change": store_policy_change,
    "quote": lambda database: store_quote(database)["id"],
    "webhook": store_webhook,
}
"""What has a row to act on that no example of an operation makes."""


def noun_of(name):
    """The noun of an operation, as in its path."""
    return OPERATIONS[name][1].split("/")[2]


def tenant_of_row(callers, name):
    """The tenant of the row of an operation: its own, because an example can be made once in a tenant."""
    return "default" if singular_of(noun_of(name)) in STORED else callers.tenant(name.replace("_", "-"))


def credential_of(callers, name, tenant):
    """The credential of one of a tenant who may call an operation."""
    return callers.any_node(tenant=tenant) if name in OF_NODES else callers.key("*:*", tenant=tenant)


def row_of(callers, name, owner, tenant):
    """The id of a row of ``owner``, who is of ``tenant``, that an operation acts on."""
    noun = noun_of(name)
    singular, database = singular_of(noun), callers.client.app.state.database
    if singular in STORED:
        return STORED[singular](database)
    if singular == "lease":
        return lease_of(callers.client, bearing(owner), database, run_id=uuid4().hex, tenant=tenant)
    if singular == "node":
        return parse_id(owner if name in OF_NODES else callers.node(tenant=tenant))
    if singular == "budget":
        call(callers, "create_cost_center", owner)
    makers = (f"create_{singular}", f"import_{singular}", f"import_{noun}")
    made = call(callers, next(each for each in makers if each in OPERATIONS), owner)
    assert made.status_code == 201
    return made.headers["location"].rpartition("/")[2]


class TestTheRowOfAnotherTenant:
    @pytest.mark.parametrize("name", OF_A_TENANT)
    @pytest.mark.parametrize("shared_callers", ["sqlite"], indirect=True)
    def test_is_not_found(self, shared_callers, name):
        check_row(shared_callers, name)

    # One operation of each noun shows that PostgreSQL answers the same.
    @pytest.mark.parametrize("name", [name for name in OF_A_TENANT if name.startswith("get_")])
    @pytest.mark.parametrize("shared_callers", ["postgresql"], indirect=True)
    def test_is_not_found_on_postgresql(self, shared_callers, name):
        check_row(shared_callers, name)


def check_row(callers, name):
    """An operation finds a row for its owner and not for another tenant."""
    # Another tenant has no row, but for the payer of a quote.
    other_tenant = callers.tenant("payer" if name == "amend_quote" else "other")
    tenant = tenant_of_row(callers, name)
    owner, other = (credential_of(callers, name, each) for each in (tenant, other_tenant))
    callers.client.app.state.waiting.close()
    row = row_of(callers, name, owner, tenant)
    if name == "amend_quote":
        # The payer of the quote is looked for before the quote.
        for key in (owner, other):
            call(callers, "create_cost_center", key)
    refused = call(callers, name, other, row)
    assert refused.status_code == 404, refused.text
    unknown = call(callers, name, other, re.sub(r"[^-]", "0", row))
    strip = {"instance", "request_id"}
    assert {k: v for k, v in refused.json().items() if k not in strip} == {
        k: v for k, v in unknown.json().items() if k not in strip
    }
    answer = call(callers, name, owner, row)
    assert (
        answer.status_code < 400
        or name.startswith(("close", "complete", "link", "retire", "retry"))
        or name in OF_CONTENT
        or (name == "approve_policy_change" and answer.json()["code"] == "NOT_AN_APPROVER_OF_CHANGE")
    )


LISTED = (
    *CATALOG,
    "actuals",
    "api-keys",
    "approval-delegations",
    "approval-policies",
    "approvals",
    "audit-events",
    "background-jobs",
    "benchmark-results",
    "benchmark-runs",
    "calibrations",
    "cost-centers",
    "enrolment-tokens",
    "nodes",
    "policy-changes",
    "quotes",
    "webhooks",
)


@pytest.fixture(scope="class")
def owner_and_other(shared_callers):
    """A client, a key of a tenant that has a row of every list, and a key of another tenant."""
    callers, database = shared_callers, shared_callers.client.app.state.database
    owner, other = callers.key("*:*"), callers.key("*:*", tenant=callers.tenant("other"))
    ask_job(database)
    store_result(database)
    store_calibration(database)
    store_policy_change(database)
    callers.node()
    made = {name for noun in LISTED for name in (f"create_{singular_of(noun)}", f"import_{noun}")}
    for name in sorted(made & set(OPERATIONS)):
        assert call(callers, name, owner).is_success, name
    return callers.client, owner, other


@pytest.mark.parametrize("shared_callers", ["sqlite", "postgresql"], indirect=True)
class TestLists:
    @pytest.mark.parametrize("noun", LISTED)
    def test_they_show_the_rows_of_the_tenant_alone(self, owner_and_other, noun):
        client, *keys = owner_and_other
        mine, theirs = (
            client.get(f"/v1/{noun}?page_size=500", headers=bearing(key)).json()["items"] for key in keys
        )
        written = [item for item in mine if item.get("origin") != "shipped"]
        assert written
        assert not [item for item in written if item in theirs]
        for item in written:
            assert json.dumps(item) not in json.dumps(theirs)


def test_a_page_token_of_another_tenant_is_refused(callers):
    owner, other = callers.key("*:*"), callers.key("*:*", tenant=callers.tenant("other"))
    token = callers.client.get("/v1/grids?page_size=1", headers=bearing(owner)).json()["next_page_token"]
    url = f"/v1/grids?page_size=1&page_token={token}"
    assert callers.client.get(url, headers=bearing(owner)).status_code == 200
    assert callers.client.get(url, headers=bearing(other)).status_code == 400


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_what_needs_no_credentials_is_a_short_list(callers):
    """Beside the operations of the document: landing page, probes, documentation, what a link says itself."""
    from fastapi.routing import APIRoute  # noqa: PLC0415

    app = callers.client.app
    free = {
        route.path_format
        for route in app.routes
        if isinstance(route, APIRoute)
        if callers.client.request(next(iter(route.methods)), route.path_format).status_code != 401
    }
    assert free == {
        "/",
        "/ask/live.js",
        "/livez",
        "/readyz",
        "/openapi.json",
        "/openapi/{audience}.json",
        "/docs",
        "/docs/guide",
        "/docs/operations/{name}",
        "/docs/reader.js",
        "/docs/shapes/{name}",
        "/redoc",
        "/docs/problems",
        "/decide/{token}",
        "/login/events",
        "/v1/nodes:enrol",
    }
