"""What operators do with nodes: once, checked, recorded."""

import pytest

from service.app.metrics import render_metrics
from tests.applications import bearing
from tests.nodes.fleet import add_run, standing
from tests.nodes.hosts import Host, code
from tests.prepared import ON_SQLITE


@pytest.fixture
def host(client):
    host = Host(client).enrol()
    host.send_inventory()
    return host


def state(client, host):
    return client.get(host.url).json()["state"]


class TestDraining:
    def test_the_suite_ends_and_no_other_begins(self, client, host, database):
        add_run(database, "run-1")
        add_run(database, "run-2")
        lease = host.claim().json()
        assert client.post(f"{host.url}:drain").json()["state"] == "draining"
        assert host.heartbeat().json()["state"] == "draining"
        assert host.renew(lease).json()["cancel"] is False
        assert client.get(host.url).json()["lease"]["benchmark_run_id"] == "run-1"
        refused = host.claim()
        assert code(refused) == (409, "NODE_BUSY")
        assert standing(database, "run-2").state == "waiting"

    def test_a_node_without_a_lease_is_given_none(self, client, host, database):
        client.post(f"{host.url}:drain")
        add_run(database, "run-1")
        refused = host.claim()
        assert code(refused) == (409, "NODE_NOT_ACTIVE")
        assert int(refused.headers["retry-after"]) > 0
        assert client.post(f"{host.url}:resume").json()["state"] == "active"
        assert host.claim().json()["id"] == "run-1"


class TestQuarantine:
    def test_the_lease_is_taken_and_the_run_given_to_another(self, client, host, database):
        add_run(database, "run-1")
        lease = host.claim().json()
        shown = client.post(f"{host.url}:quarantine").json()
        assert (shown["state"], shown["reason"]) == ("quarantined", "OPERATOR")
        assert "lease" not in shown
        assert code(host.renew(lease)) == (409, "STALE_LEASE")
        assert host.heartbeat().json()["state"] == "quarantined"
        other = Host(client).enrol()
        other.send_inventory()
        again = other.claim().json()
        assert (again["id"], again["attempt"]) == ("run-1", 2)
        assert again["fencing_token"] > lease["fencing_token"]

    def test_an_operator_ends_what_an_operator_began(self, client, host):
        client.post(f"{host.url}:quarantine")
        assert code(client.post(f"{host.url}:drain")) == (409, "NODE_QUARANTINED")
        shown = client.post(f"{host.url}:resume").json()
        assert shown["state"] == "active"
        assert "reason" not in shown


@pytest.mark.parametrize("verb", ["drain", "resume", "readmit", "quarantine", "revoke", "request-rotation"])
class TestEveryAction:
    @ON_SQLITE
    def test_done_twice_it_is_done_once(self, client, host, verb):
        first = client.post(f"{host.url}:{verb}").json()
        assert client.post(f"{host.url}:{verb}").json() == first

    @ON_SQLITE
    def test_repeated_under_a_key_the_answer_is_the_first(self, client, host, verb):
        key = {"Idempotency-Key": "once"}
        first = client.post(f"{host.url}:{verb}", headers=key)
        again = client.post(f"{host.url}:{verb}", headers=key)
        assert again.json() == first.json()
        assert again.headers["idempotency-replayed"] == "true"

    @ON_SQLITE
    def test_it_is_checked_without_being_done(self, client, host, verb):
        before = client.get(host.url).json()
        assert client.post(f"{host.url}:{verb}?validate_only=true").status_code == 200
        assert client.get(host.url).json() == before

    @ON_SQLITE
    def test_it_is_recorded(self, client, host, verb):
        client.post(f"{host.url}:{verb}")
        event = client.get("/v1/audit-events").json()["items"][0]
        name = {"request-rotation": "request_node_rotation"}.get(verb, f"{verb}_node")
        assert (event["operation"], event["resource"]) == (name, f"nodes/{host.id}")
        assert client.get("/v1/audit-events:verify").json()["valid"] is True

    @ON_SQLITE
    def test_an_unknown_node_is_not_found(self, client, verb):
        assert code(client.post(f"/v1/nodes/{'0' * 16}:{verb}")) == (404, "NODE_NOT_FOUND")


def test_another_tenants_nodes_are_not_there(callers):
    owner = bearing(callers.key("*:*"))
    other = bearing(callers.key("*:*", tenant=callers.tenant("other")))
    host = Host(callers.client).enrol(headers=owner)
    assert callers.client.get(host.url, headers=owner).status_code == 200
    assert callers.client.get("/v1/nodes", headers=other).json()["items"] == []
    for verb in ("", ":drain", ":revoke"):
        method = "POST" if verb else "GET"
        assert code(callers.client.request(method, host.url + verb, headers=other)) == (404, "NODE_NOT_FOUND")


def test_nodes_and_leases_are_counted(client, host, database):
    add_run(database, "run-1")
    add_run(database, "run-2")
    host.claim()
    client.post(f"{Host(client).enrol().url}:drain")
    metrics = render_metrics(client.app).decode()
    for line in (
        'ironlaw_nodes{device="cpu",state="active"} 1.0',
        'ironlaw_nodes{device="cpu",state="draining"} 1.0',
        'ironlaw_leases{device="cpu",state="running"} 1.0',
        'ironlaw_leases{device="cpu",state="waiting"} 1.0',
    ):
        assert line in metrics
