"""A node's credential: replaced in two steps, expired, stolen, revoked; and what it opens."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from service.kit.http.problems import Unauthorized
from service.kit.security.credentials import NODE, generate_id, mint_credential
from service.nodes.tables import NodeCredentialRow
from tests.applications import bearing
from tests.nodes.fleet import add_run, standing
from tests.nodes.hosts import Host, code, token
from tests.prepared import ON_SQLITE


def states(database):
    with database.open_reader() as session:
        found = select(NodeCredentialRow).order_by(NodeCredentialRow.generation)
        return [row.state for row in session.scalars(found)]


def operations(client):
    return [event["operation"] for event in client.get("/v1/audit-events").json()["items"]]


def works(host, credential):
    return host.heartbeat(credential).status_code == 200


class TestRotation:
    def test_the_first_use_of_the_next_ends_the_one_before(self, client, host, database):
        answer = host.rotate()
        assert answer.status_code == 200
        assert answer.json()["generation"] == 2
        assert states(database) == ["current", "pending"]
        assert works(host, host.credential)
        assert works(host, answer.json()["credential"])
        assert states(database) == ["retired", "current"]
        assert operations(client)[:2] == ["confirm_node_credential", "rotate_node_credential"]

    def test_a_lost_answer_costs_nothing(self, host, database):
        lost = host.rotate().json()["credential"]
        again = host.rotate().json()
        assert again["generation"] == 2
        assert host.heartbeat(lost).status_code == 401
        assert works(host, host.credential)
        assert works(host, again["credential"])
        assert states(database) == ["retired", "current"]

    def test_uses_of_the_next_at_once_confirm_it_once(self, host, client, database):
        credential = host.rotate().json()["credential"]
        check = client.app.state.authenticate_node.check_credential
        with ThreadPoolExecutor(4) as pool:
            found = {subject.id for subject in pool.map(check, [credential] * 4)}
        assert found == {host.id}
        assert states(database) == ["retired", "current"]
        assert operations(client).count("confirm_node_credential") == 2

    def test_it_is_wanted_after_two_thirds_of_its_life(self, clock, client):
        host = Host(client).enrol()
        assert host.heartbeat().json()["rotate"] is False
        clock.move(days=20, seconds=-1)
        assert host.heartbeat().json()["rotate"] is False
        clock.move(seconds=1)
        assert host.heartbeat().json()["rotate"] is True
        credential = host.rotate().json()["credential"]
        assert host.heartbeat(credential).json()["rotate"] is False

    def test_it_is_wanted_when_an_operator_asks(self, client, host):
        assert client.post(f"{host.url}:request-rotation").json()["rotation_requested"] is True
        assert host.heartbeat().json()["rotate"] is True
        credential = host.rotate().json()["credential"]
        assert host.heartbeat(credential).json()["rotate"] is False
        assert client.get(host.url).json()["rotation_requested"] is False

    def test_asked_for_before_the_first_use_it_is_still_wanted_after_it(self, client):
        host = Host(client).enrol()
        client.post(f"{host.url}:request-rotation")
        assert host.heartbeat().json()["rotate"] is True
        assert client.get(host.url).json()["rotation_requested"] is True

    def test_a_credential_expires(self, clock, client):
        host = Host(client).enrol()
        host.heartbeat()
        clock.move(days=30, seconds=-1)
        assert works(host, host.credential)
        clock.move(seconds=1)
        refused = host.heartbeat()
        assert refused.status_code == 401
        assert "expired" in refused.json()["detail"]
        assert works(host.enrol(), None)


class TestTheft:
    def test_the_use_of_a_retired_one_quarantines(self, client, host, database):
        add_run(database, "run-1")
        host.send_inventory()
        lease = host.claim().json()
        first, second = host.credential, host.rotate().json()["credential"]
        assert works(host, second)
        for _ in range(2):
            assert host.heartbeat(first).status_code == 401
        shown = client.get(host.url).json()
        assert (shown["state"], shown["reason"]) == ("quarantined", "CREDENTIAL_REUSED")
        assert "lease" not in shown
        assert operations(client).count("quarantine_node") == 1
        host.credential = second
        assert host.heartbeat().json()["state"] == "quarantined"
        assert code(host.claim()) == (409, "NODE_NOT_ACTIVE")
        assert code(host.renew(lease)) == (409, "STALE_LEASE")

    def test_only_a_new_enrolment_ends_it(self, client, host):
        first, second = host.credential, host.rotate().json()["credential"]
        works(host, second)
        host.heartbeat(first)
        assert code(client.post(f"{host.url}:resume")) == (409, "NODE_COMPROMISED")
        host.enrol()
        assert client.get(host.url).json()["state"] == "active"
        for stolen in (first, second):
            assert host.heartbeat(stolen).status_code == 401
        assert client.get(host.url).json()["state"] == "active"
        assert host.heartbeat().json()["state"] == "active"

    def test_two_hosts_with_one_credential(self, client, host):
        assert host.heartbeat(boot_id_sha256="1" * 64).json()["state"] == "active"
        assert host.heartbeat(boot_id_sha256="2" * 64).json()["state"] == "active"
        assert host.heartbeat(boot_id_sha256="1" * 64).json()["state"] == "quarantined"
        assert client.get(host.url).json()["reason"] == "TWO_HOSTS"
        assert operations(client)[0] == "quarantine_node"

    def test_a_host_may_start_again_as_often_as_it_likes(self, host):
        for boot in range(12):
            for _ in range(2):
                assert host.heartbeat(boot_id_sha256=f"{boot:064x}").json()["state"] == "active"


class TestRevocation:
    def test_every_process_refuses_at_once(self, client, host):
        elsewhere = client.app.state.authenticate_node
        assert elsewhere.check_credential(host.credential).id == host.id
        assert client.post(f"{host.url}:revoke").json()["state"] == "revoked"
        refused = host.heartbeat()
        assert refused.status_code == 401
        assert "revoked" in refused.json()["detail"]
        with pytest.raises(Unauthorized):
            elsewhere.check_credential(host.credential)

    def test_it_takes_the_lease_and_fails_what_waits_for_the_node(self, client, host, database):
        add_run(database, "run-1")
        host.send_inventory()
        host.claim()
        add_run(database, "run-2", target=host.id)
        client.post(f"{host.url}:revoke")
        other = Host(client).enrol()
        other.send_inventory()
        assert other.claim().json()["id"] == "run-1"
        assert standing(database, "run-2").reason == "NODE_REVOKED"

    def test_it_is_final(self, client, host):
        client.post(f"{host.url}:revoke")
        assert client.post(f"{host.url}:revoke").status_code == 200
        for verb in ("drain", "resume", "quarantine", "request-rotation"):
            assert code(client.post(f"{host.url}:{verb}")) == (409, "NODE_REVOKED")


class TestWhatIsNoCredential:
    @ON_SQLITE
    @pytest.mark.parametrize("how", ["unknown", "other secret", "cut", "enrolment token"])
    def test_it_is_refused_in_open_mode_too(self, client, host, how):
        wrong = {
            "unknown": mint_credential(NODE, generate_id()),
            "other secret": mint_credential(NODE, host.id),
            "cut": host.credential[:-1],
            "enrolment token": token(client).replace("ironlawenrol", NODE),
        }[how]
        refused = host.ask("GET", "/v1/models", credential=wrong)
        assert code(refused) == (401, "CREDENTIALS_REQUIRED")
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]
        assert wrong[12:40] not in refused.text

    def test_nothing_of_it_is_kept(self, host, database):
        with database.engine.connect() as connection:
            stored = connection.exec_driver_sql("SELECT * FROM node_credentials").all()
            stored += connection.exec_driver_sql("SELECT * FROM audit_events").all()
        assert host.credential.rpartition("_")[2][:20] not in str(stored)


class TestWhatItOpens:
    def test_a_node_does_nothing_but_its_own(self, host):
        for method, url in (("GET", "/v1/nodes"), ("GET", host.url), ("GET", "/v1/models")):
            assert code(host.ask(method, url)) == (403, "SCOPE_REQUIRED")
        assert code(host.ask("POST", f"{host.url}:drain")) == (403, "SCOPE_REQUIRED")

    def test_another_node_is_not_found(self, client, host):
        other = Host(client).enrol()
        host.id, own = other.id, host.id
        for answer in (host.heartbeat(), host.rotate(), host.send_inventory()):
            assert code(answer) == (404, "NODE_NOT_FOUND")
        host.id = own
        assert host.heartbeat().status_code == 200

    def test_who_is_no_node_may_do_nothing_of_a_node(self, callers):
        host = Host(callers.client).enrol(headers=bearing(callers.key("*:*")))
        host.credential = callers.key("*:*", "leases:claim")
        for answer in (host.heartbeat(), host.rotate(), host.send_inventory(), host.claim()):
            assert code(answer) == (403, "NOT_A_NODE")

    @ON_SQLITE
    def test_in_open_mode_too(self, client):
        answer = client.post("/v1/leases:claim", {"request_id": "0" * 32, "inventory_sha256": "0" * 64})
        assert code(answer) == (403, "NOT_A_NODE")
