"""Callers with a token of the configured issuer, through the whole application."""

import time

import pytest

from service.app.examples import EXAMPLES
from tests.applications import TENANT, Callers, attach, bearing
from tests.auth.issuing import Provider, on_loopback
from tests.conftest import Client
from tests.prepared import ON_SQLITE

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]


@pytest.fixture
def provider():
    issuing = Provider("", "RS256", now=int(time.time()))
    with on_loopback(issuing):
        yield issuing


@pytest.fixture
def people(app, database, provider):
    """Who calls with a token or a key."""
    issuer = {"oidc_issuer": provider.issuer, "oidc_audience": "ironlaw", "oidc_algorithms": "RS256"}
    attach(app, database, TENANT.model_copy(update=issuer))
    people = Callers(app, database)
    people.client = Client(app)
    yield people
    people.client.close()


def status(people, credential, url="/v1/models"):
    return people.client.get(url, headers=bearing(credential)).status_code


def test_a_token_opens_what_its_scopes_say(people, provider):
    admin = bearing(people.key("*:*"))
    token = provider.token(sub="ann", scope="models:read grids:write email", tenant="default")
    assert status(people, token) == 200
    assert status(people, token, "/v1/sites") == 403
    made = people.client.post("/v1/grids", EXAMPLES["create_grid"], headers=bearing(token))
    assert made.status_code == 201
    event = people.client.get("/v1/audit-events", headers=admin).json()["items"][0]
    assert (event["subject_kind"], event["subject_id"]) == ("token", "ann")


def test_a_token_sees_its_tenant_alone(people, provider):
    people.tenant("other")
    ours, theirs = (provider.token(scope="*:*", tenant=tenant) for tenant in ("default", "other"))
    people.client.post("/v1/grids", EXAMPLES["create_grid"], headers=bearing(ours))
    row = f"/v1/grids/{EXAMPLES['create_grid']['id']}"
    assert [status(people, token, row) for token in (ours, theirs)] == [200, 404]


@pytest.mark.parametrize("tenant", ["shipped", "nobody", "system"])
@ON_SQLITE
def test_a_tenant_that_is_not_here_is_refused(people, provider, tenant):
    assert status(people, provider.token(scope="*:*", tenant=tenant)) == 401


def test_a_disabled_tenant_is_refused(people, provider):
    operator = bearing(people.key("tenants:*"))
    token = provider.token(scope="*:*", tenant=people.tenant("other"))
    assert status(people, token) == 200
    people.client.post("/v1/tenants/other:disable", headers=operator)
    assert status(people, token) == 401


@ON_SQLITE
def test_no_token_is_the_operators(people, provider):
    token = provider.token(scope="*:* tenants:* tenants:read metrics:read", tenant="default")
    assert status(people, token, "/v1/tenants") == 403


def test_keys_go_on_beside_tokens(people):
    assert status(people, people.key("models:read")) == 200


def test_an_expired_token_says_so(people, provider):
    provider.now -= 7200
    refused = people.client.get("/v1/models", headers=bearing(provider.token(scope="*:*", tenant="default")))
    assert refused.status_code == 401
    assert "expired" in refused.json()["detail"]
    assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
