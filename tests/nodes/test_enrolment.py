"""How a node joins: a token that works once, and an answer that may be lost."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from uuid import uuid4

import pytest
from sqlalchemy import select

from service.kit import admission
from service.kit.credentials import ENROLMENT, mint, new_id
from service.nodes.errors import EnrolmentTokenUsed
from service.nodes.schemas import EnrolmentTokenInput
from service.nodes.service import TOKENS_KEPT, Enrolments, expire_tokens
from service.nodes.tables import EnrolmentTokenRow, NodeCredentialRow, NodeRow
from service.protocol.nodes import Enrolment
from tests.applications import KEYRING, bearing
from tests.nodes.fleet import subject
from tests.nodes.hosts import Host, code, token


def rows(database, table):
    with database.reading() as session:
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
        with database.writing() as session:
            assert expire_tokens(session) == 0
        clock.move(seconds=2)
        with database.writing() as session:
            assert expire_tokens(session) == 1


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
    def test_what_is_no_token_is_refused_and_not_repeated(self, client, how):
        whole = mint(ENROLMENT, new_id())
        secret = {"unknown": whole, "short": "x", "mistyped": whole[:-1] + "!", "cut": whole[:40]}[how]
        refused = Host(client).try_to_enrol(secret)
        assert code(refused) == (401, "ENROLMENT_TOKEN_REFUSED")
        assert refused.headers["www-authenticate"] == "Bearer"
        assert whole[13:40] not in refused.text

    def test_the_right_id_with_another_secret_is_refused(self, client):
        made = client.post("/v1/enrolment-tokens", {}).json()
        guess = mint(ENROLMENT, made["enrolment_token"]["id"])
        assert code(Host(client).try_to_enrol(guess)) == (401, "ENROLMENT_TOKEN_REFUSED")
        assert Host(client).try_to_enrol(made["token"]).status_code == 200

    def test_an_address_that_guesses_is_told_to_slow_down(self, client, monkeypatch):
        # No minute ends between two guesses.
        monkeypatch.setattr(admission, "time", SimpleNamespace(time=lambda: 1_700_000_000.0))
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

    def test_a_revoked_host_that_enrols_again_is_another_node(self, client):
        host = Host(client).enrol()
        node_id = host.id
        assert client.post(f"{host.url}:revoke").status_code == 200
        host.enrol()
        assert host.id != node_id

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
        assert [event["operation"] for event in events[:2]] == ["enrol_node", "create_enrolment_token"]
        assert events[0]["subject_kind"] == "node"


class TestRaces:
    @pytest.mark.parametrize("is_one_host", [True, False])
    def test_a_token_used_by_many_at_once_lets_one_in(self, database, is_one_host):
        enrolments = Enrolments(KEYRING)
        with database.writing() as session:
            made = enrolments.create_token(session, subject("operator"), EnrolmentTokenInput())
        shared = uuid4().hex

        def enrol(_):
            body = {
                "token": made.once["token"],
                "installation_id": shared if is_one_host else uuid4().hex,
                "device": "cpu",
                "worker_version": "1",
            }
            try:
                with database.writing() as session:
                    return enrolments.enrol(session, Enrolment.model_validate(body), lambda _: True)[0].id
            except EnrolmentTokenUsed:
                return None

        with ThreadPoolExecutor(6) as pool:
            let_in = [node_id for node_id in pool.map(enrol, range(6)) if node_id]
        assert len(let_in) == (6 if is_one_host else 1)
        assert [row.id for row in rows(database, NodeRow)] == [let_in[0]]
        assert len(rows(database, NodeCredentialRow)) == 1

    def test_one_host_with_two_tokens_at_once_is_one_node(self, database):
        enrolments, shared = Enrolments(KEYRING), uuid4().hex

        def enrol(_):
            with database.writing() as session:
                made = enrolments.create_token(session, subject("operator"), EnrolmentTokenInput())
            body = {
                "token": made.once["token"],
                "installation_id": shared,
                "device": "cpu",
                "worker_version": "1",
            }
            with database.writing() as session:
                return enrolments.enrol(session, Enrolment.model_validate(body), lambda _: True)[0].id

        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(enrol, range(4)))) == 1
        assert len(rows(database, NodeRow)) == 1
