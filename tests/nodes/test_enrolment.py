"""How a node joins: a token that works once, and an answer that may be lost."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace
from uuid import uuid4

import pytest
from sqlalchemy import select

from service.app.background.retention import list_expiries
from service.kit.http import admission
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.schedules import NoArguments
from service.kit.security.credentials import ENROLMENT, generate_id, mint_credential
from service.nodes import repository
from service.nodes.errors import EnrolmentTokenUsed, NodeBarred
from service.nodes.schemas import EnrolmentTokenRequest
from service.nodes.service import (
    TOKENS_KEPT,
    EnrolmentService,
    expire_tokens,
    lock_node,
    quarantine_by_operator,
    revoke_node,
)
from service.nodes.tables import EnrolmentTokenRow, NodeCredentialRow, NodeRow
from service.protocol.nodes import NodeEnrolmentRequest
from tests.applications import KEYRING, MEANS, bearing
from tests.nodes.fleet import add_run, standing, subject
from tests.nodes.hosts import Host, code, token
from tests.prepared import ON_SQLITE
from tests.working import do_all


def rows(database, table):
    with database.open_reader() as session:
        return list(session.scalars(select(table)))


class TestTokens:
    def test_a_token_is_shown_once_and_kept_as_a_digest(self, client, database):
        made = client.post("/v1/enrolment-tokens", {"node_name": "rack-7"})
        secret = made.json()["token"]
        assert secret.startswith("ironlawenrol_")
        shown = client.get(made.headers["location"]).json()
        assert shown == made.json()["enrolment_token"]
        assert shown["node_name"] == "rack-7"
        assert client.get("/v1/enrolment-tokens").json()["items"] == [shown]
        assert secret.rpartition("_")[2] not in str([vars(row) for row in rows(database, EnrolmentTokenRow)])

    @pytest.mark.parametrize("sent", [{}, {"lifetime_seconds": 86_400}])
    def test_a_token_lasts_as_long_as_it_says(self, client, clock, sent):
        made = client.post("/v1/enrolment-tokens", sent).json()
        host = Host(client)
        clock.move(seconds=sent.get("lifetime_seconds", 900) - 1)
        assert host.try_to_enrol(made["token"]).status_code == 200
        clock.move(seconds=1)
        assert code(host.try_to_enrol(made["token"])) == (401, "ENROLMENT_TOKEN_EXPIRED")
        assert code(Host(client).try_to_enrol(made["token"])) == (401, "ENROLMENT_TOKEN_EXPIRED")

    def test_an_unused_token_that_has_expired_lets_nobody_in(self, client, clock, database):
        secret = token(client, lifetime_seconds=60)
        clock.move(seconds=60)
        assert code(Host(client).try_to_enrol(secret)) == (401, "ENROLMENT_TOKEN_EXPIRED")
        assert rows(database, NodeRow) == []

    @pytest.mark.parametrize("seconds", [0, 86_401, -1])
    @ON_SQLITE
    def test_a_lifetime_has_bounds(self, client, seconds):
        refused = client.post("/v1/enrolment-tokens", {"lifetime_seconds": seconds})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/lifetime_seconds")

    def test_a_deleted_token_lets_nobody_in(self, client):
        made = client.post("/v1/enrolment-tokens", {})
        assert client.delete(made.headers["location"]).status_code == 204
        assert code(Host(client).try_to_enrol(made.json()["token"])) == (401, "ENROLMENT_TOKEN_REFUSED")
        assert code(client.delete(made.headers["location"])) == (404, "ENROLMENT_TOKEN_NOT_FOUND")

    def test_a_token_goes_a_month_after_it_expired(self, client, clock, database):
        token(client, lifetime_seconds=60)
        clock.move(seconds=59 + TOKENS_KEPT.total_seconds())
        with database.open_writer() as session:
            assert len(expire_tokens(session)) == 0
        clock.move(seconds=2)
        with database.open_writer() as session:
            assert len(expire_tokens(session)) == 1


class TestEnrolment:
    def test_a_node_is_there_and_may_speak(self, client):
        secret = token(client)
        host = Host(client).enrol(secret)
        assert host.credential.startswith(f"ironlawnode_{host.id}_")
        assert host.heartbeat().status_code == 200
        shown = client.get(host.url).json()
        assert (shown["name"], shown["device"], shown["state"]) == ("rack-7", "cpu", "active")
        used = client.get("/v1/enrolment-tokens").json()["items"][0]
        assert used["node_id"] == host.id
        assert "used_at" in used

    def test_the_token_names_the_node_before_its_host_does(self, client):
        named = Host(client).enrol(token(client, node_name="chosen"))
        assert client.get(named.url).json()["name"] == "chosen"
        nameless = Host(client)
        del nameless.about["name"]
        nameless.enrol()
        assert client.get(nameless.url).json()["name"] == f"node-{nameless.id}"

    def test_an_answer_that_was_lost_is_asked_for_again(self, client, database):
        secret = token(client)
        host = Host(client).enrol(secret)
        lost, first = host.credential, host.id
        host.enrol(secret)
        assert host.id == first
        assert host.heartbeat(lost).status_code == 401
        assert host.heartbeat().status_code == 200
        assert [row.generation for row in rows(database, NodeCredentialRow)] == [1]
        assert code(host.try_to_enrol(secret)) == (409, "ENROLMENT_TOKEN_USED")
        assert host.heartbeat().status_code == 200

    def test_a_used_token_lets_no_other_host_in(self, client, database):
        secret = token(client)
        Host(client).enrol(secret)
        assert code(Host(client).try_to_enrol(secret)) == (409, "ENROLMENT_TOKEN_USED")
        assert len(rows(database, NodeRow)) == 1

    @pytest.mark.parametrize("how", ["unknown", "short", "mistyped", "cut"])
    @ON_SQLITE
    def test_what_is_no_token_is_refused_and_not_repeated(self, client, how):
        whole = mint_credential(ENROLMENT, generate_id())
        secret = {"unknown": whole, "short": "x", "mistyped": whole[:-1] + "!", "cut": whole[:40]}[how]
        refused = Host(client).try_to_enrol(secret)
        assert code(refused) == (401, "ENROLMENT_TOKEN_REFUSED")
        assert refused.headers["www-authenticate"] == "Bearer"
        assert whole[13:40] not in refused.text

    @ON_SQLITE
    def test_the_right_id_with_another_secret_is_refused(self, client):
        made = client.post("/v1/enrolment-tokens", {}).json()
        guess = mint_credential(ENROLMENT, made["enrolment_token"]["id"])
        assert code(Host(client).try_to_enrol(guess)) == (401, "ENROLMENT_TOKEN_REFUSED")
        assert Host(client).try_to_enrol(made["token"]).status_code == 200

    @ON_SQLITE
    def test_an_address_that_guesses_is_told_to_slow_down(self, client, monkeypatch):
        # No minute ends between two guesses.
        monkeypatch.setattr(admission, "time", SimpleNamespace(monotonic=lambda: 1_700_000_000.0))
        guesses = [Host(client).try_to_enrol("x").status_code for _ in range(301)]
        assert guesses.count(429) == 1
        assert Host(client).try_to_enrol(token(client)).status_code == 200

    def test_a_host_that_enrols_again_is_the_same_node(self, client):
        host = Host(client).enrol()
        host.heartbeat()
        earlier, node_id = host.credential, host.id
        host.about["name"] = "rack-8"
        host.enrol()
        assert host.id == node_id
        assert host.heartbeat(earlier).status_code == 401
        assert host.heartbeat().status_code == 200
        shown = client.get(host.url).json()
        assert (shown["name"], shown["state"]) == ("rack-8", "active")

    def test_a_disabled_tenant_lets_nobody_in(self, callers):
        operator = bearing(callers.key("*:*", "tenants:*"))
        other = bearing(callers.key("*:*", tenant=callers.tenant("other")))
        host = Host(callers.client).enrol(headers=other)
        secret = token(callers.client, other)
        callers.client.post("/v1/tenants/other:disable", headers=operator)
        assert code(Host(callers.client).try_to_enrol(secret)) == (401, "ENROLMENT_TOKEN_REFUSED")
        assert host.heartbeat().status_code == 401
        callers.client.post("/v1/tenants/other:enable", headers=operator)
        assert host.heartbeat().status_code == 200

    def test_it_is_recorded(self, client):
        Host(client).enrol()
        events = client.get("/v1/audit-events").json()["items"]
        told = [(event["operation"], event["resource"].split("/")[0]) for event in events[:3]]
        assert told == [
            ("enrol_node", "nodes"),
            ("enrol_node", "enrolment-tokens"),
            ("create_enrolment_token", "enrolment-tokens"),
        ]
        assert events[0]["subject_kind"] == "node"


BARRED = (409, "NODE_BARRED")
WAYS_ROUND = {
    "as before": {},
    "another name": {"name": "rack-8"},
    "another device": {"device": "cuda"},
    "another version of the worker": {"worker_version": "2.0"},
}


class TestKeptOut:
    """Whom an operator has quarantined or revoked comes back when an operator says so."""

    @pytest.fixture(params=["quarantine", "revoke"])
    def verb(self, request):
        return request.param

    @pytest.fixture
    def host(self, client, verb):
        host = Host(client).enrol()
        assert host.heartbeat().status_code == 200
        assert "barred_at" not in client.get(host.url).json()
        assert "barred_at" in client.post(f"{host.url}:{verb}").json()
        return host

    @ON_SQLITE
    @pytest.mark.parametrize("members", WAYS_ROUND.values(), ids=WAYS_ROUND)
    def test_its_host_does_not_enrol(self, client, database, host, members):
        before = client.get(host.url).json()
        assert code(host.try_to_enrol(token(client), **members)) == BARRED
        assert client.get(host.url).json() == before
        assert len(rows(database, NodeRow)) == 1

    @ON_SQLITE
    def test_nor_by_a_token_that_names_the_node(self, client, host):
        assert code(host.try_to_enrol(token(client, node_name="rack-7"))) == BARRED

    @ON_SQLITE
    def test_an_installation_has_one_spelling(self, client, host):
        host.installation_id = host.installation_id.upper()
        assert host.try_to_enrol(token(client)).status_code == 422

    @ON_SQLITE
    def test_nor_where_its_answer_was_lost(self, client, verb):
        secret = token(client)
        host = Host(client).enrol(secret)
        client.post(f"{host.url}:{verb}")
        assert code(host.try_to_enrol(secret)) == BARRED

    @ON_SQLITE
    def test_it_gets_nothing_to_run(self, host, verb, database):
        add_run(database, "run-1")
        assert host.heartbeat().status_code == {"quarantine": 200, "revoke": 401}[verb]
        host.send_inventory()
        refused = {"quarantine": (409, "NODE_NOT_ACTIVE"), "revoke": (401, "CREDENTIALS_REQUIRED")}[verb]
        assert code(host.claim()) == refused
        assert standing(database, "run-1").state == "waiting"

    def test_once_it_is_readmitted_the_same_token_lets_it_in(self, client, host, verb):
        secret, node_id = token(client), host.id
        assert code(host.try_to_enrol(secret)) == BARRED
        shown = client.post(f"{host.url}:readmit").json()
        assert shown["state"] == {"quarantine": "quarantined", "revoke": "revoked"}[verb]
        assert "barred_at" not in shown
        host.enrol(secret)
        assert (host.id == node_id) == (verb == "quarantine")
        assert client.get(host.url).json()["state"] == "active"
        assert host.heartbeat().json()["state"] == "active"

    @ON_SQLITE
    def test_readmitted_and_put_out_again_it_stays_out(self, client, host, verb):
        client.post(f"{host.url}:readmit")
        host.enrol()
        client.post(f"{host.url}:{verb}")
        assert code(host.try_to_enrol(token(client))) == BARRED

    @ON_SQLITE
    def test_a_readmitted_node_is_given_nothing_before_it_enrols(self, client, host, verb):
        client.post(f"{host.url}:readmit")
        assert code(host.claim())[0] == {"quarantine": 409, "revoke": 401}[verb]

    @ON_SQLITE
    def test_other_hosts_come_in(self, client, host):
        assert Host(client).enrol().id != host.id

    def test_a_clean_up_lets_nobody_in(self, client, clock, host, database):
        clock.move(days=4000)
        for schedule in list_expiries(MEANS.writes):
            with database.open_writer() as session:
                enqueue_job(session, schedule.job, NoArguments(), tenant_id="system", effect_key="test")
            assert do_all(database, schedule.job) > 0
        assert code(host.try_to_enrol(token(client))) == BARRED

    def test_a_revocation_that_comes_in_between_counts(self, client, monkeypatch):
        """The node was there when the host joined, and revoked before it was locked."""
        host = Host(client).enrol()
        monkeypatch.setattr(repository, "lock_installation", lambda *_: None)
        assert code(host.try_to_enrol(token(client))) == BARRED

    def test_enrolled_while_it_is_put_out_it_is_out(self, database, verb):
        """Whichever is first: the node is not active in the end."""
        enrolments, shared = EnrolmentService(KEYRING), uuid4().hex
        node = enrolled(database, enrolments, shared)
        start = Barrier(2)

        def put_out():
            start.wait()
            with database.open_writer() as session:
                {"quarantine": quarantine_by_operator, "revoke": revoke_node}[verb](
                    session, lock_node(session, "default", node)
                )

        def enrol():
            start.wait()
            try:
                enrolled(database, enrolments, shared)
            except NodeBarred:
                return

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(put_out), pool.submit(enrol)]:
                done.result()
        assert [row.state for row in rows(database, NodeRow)] == [
            {"quarantine": "quarantined", "revoke": "revoked"}[verb]
        ]

    @ON_SQLITE
    def test_an_operators_word_stands_beside_that_of_the_service(self, client):
        """A node in two hands enrols anew; one that an operator has set aside as well does not."""
        host = Host(client).enrol()
        for boot in ("1", "2", "1"):
            host.heartbeat(boot_id_sha256=boot * 64)
        client.post(f"{host.url}:quarantine")
        assert client.get(host.url).json()["reason"] == "TWO_HOSTS"
        assert code(client.post(f"{host.url}:resume")) == (409, "NODE_COMPROMISED")
        assert code(host.try_to_enrol(token(client))) == BARRED
        client.post(f"{host.url}:readmit")
        assert client.get(host.enrol().url).json()["state"] == "active"

    def test_a_theft_is_noticed_while_an_operator_keeps_the_node_out(self, client):
        host = Host(client).enrol()
        host.heartbeat()
        first, host.credential = host.credential, host.rotate().json()["credential"]
        host.heartbeat()
        client.post(f"{host.url}:quarantine")
        assert host.heartbeat(first).status_code == 401
        assert client.get(host.url).json()["reason"] == "CREDENTIAL_REUSED"
        assert code(client.post(f"{host.url}:resume")) == (409, "NODE_COMPROMISED")
        assert code(host.try_to_enrol(token(client))) == BARRED

    @ON_SQLITE
    def test_another_tenant_decides_for_itself(self, callers):
        """An installation is one tenant's: nobody is kept out, or let in, by another."""
        owner = bearing(callers.key("*:*"))
        other = bearing(callers.key("*:*", tenant=callers.tenant("other")))
        host = Host(callers.client).enrol(headers=owner)
        own = host.url
        callers.client.post(f"{own}:revoke", headers=owner)
        assert code(callers.client.post(f"{own}:readmit", headers=other)) == (404, "NODE_NOT_FOUND")
        host.enrol(headers=other)
        assert callers.client.get(host.url, headers=owner).status_code == 404
        assert code(host.try_to_enrol(token(callers.client, owner))) == BARRED


def enrolled(database, enrolments, installation_id):
    """The id of the node that an installation gets by a fresh token."""
    with database.open_writer() as session:
        made = enrolments.create_token(session, subject("operator"), EnrolmentTokenRequest())
    body = {
        "token": made.once["token"],
        "installation_id": installation_id,
        "device": "cpu",
        "worker_version": "1",
    }
    with database.open_writer() as session:
        return enrolments.enrol_node(session, NodeEnrolmentRequest.model_validate(body), lambda _: True)[0].id


class TestRaces:
    @pytest.mark.parametrize("is_one_host", [True, False])
    def test_a_token_used_by_many_at_once_lets_one_in(self, database, is_one_host):
        enrolments = EnrolmentService(KEYRING)
        with database.open_writer() as session:
            made = enrolments.create_token(session, subject("operator"), EnrolmentTokenRequest())
        shared = uuid4().hex

        def enrol(_):
            body = {
                "token": made.once["token"],
                "installation_id": shared if is_one_host else uuid4().hex,
                "device": "cpu",
                "worker_version": "1",
            }
            try:
                with database.open_writer() as session:
                    return enrolments.enrol_node(
                        session, NodeEnrolmentRequest.model_validate(body), lambda _: True
                    )[0].id
            except EnrolmentTokenUsed:
                return None

        with ThreadPoolExecutor(6) as pool:
            let_in = [node_id for node_id in pool.map(enrol, range(6)) if node_id]
        assert len(let_in) == (6 if is_one_host else 1)
        assert [row.id for row in rows(database, NodeRow)] == [let_in[0]]
        assert len(rows(database, NodeCredentialRow)) == 1

    def test_one_host_with_two_tokens_at_once_is_one_node(self, database):
        enrolments, shared = EnrolmentService(KEYRING), uuid4().hex
        with ThreadPoolExecutor(4) as pool:
            found = pool.map(lambda _: enrolled(database, enrolments, shared), range(4))
            assert len(set(found)) == 1
        assert len(rows(database, NodeRow)) == 1
