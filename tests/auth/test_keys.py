"""API keys: their text, their life, and how fast a change reaches every process."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.auth import service
from service.auth.service import ApiKeys, LiveKeys
from service.kit import clock
from service.kit.http.problems import Unauthorized
from service.kit.security import credentials
from service.kit.security.credentials import (
    API_KEY,
    ENROLMENT,
    NODE,
    generate_id,
    is_well_formed,
    mint_credential,
    parse_id,
)
from tests.applications import KEYRING, bearing
from tests.prepared import ON_SQLITE


def status(callers, credential):
    return callers.client.get("/v1/api-keys", headers=bearing(credential)).status_code


@pytest.fixture
def admin(callers):
    return bearing(callers.key("*:*"))


def made(callers, admin, **members):
    body = {"name": "made", "scopes": ["api-keys:read"], **members}
    answer = callers.client.post("/v1/api-keys", body, headers=admin)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"], answer.json()["secret"]


class TestText:
    @pytest.mark.parametrize("prefix", [API_KEY, NODE, ENROLMENT])
    def test_the_id_can_be_read(self, prefix):
        key_id = generate_id()
        text = mint_credential(prefix, key_id)
        assert is_well_formed(text)
        assert parse_id(text) == key_id

    def test_keys_differ(self):
        assert len({mint_credential(API_KEY, "a" * 16) for _ in range(1000)}) == 1000

    @given(st.integers(0, 72), st.sampled_from("aZ0_-é"))
    def test_a_mistyped_key_is_no_key(self, place, letter):
        text = "ironlaw_abcdefghijklmnop_" + "s" * 43
        text += credentials._compute_checksum(text)
        wrong = text[:place] + letter + text[place + 1 :]
        assert is_well_formed(text)
        assert wrong == text or not is_well_formed(wrong)

    @given(st.text(max_size=120))
    def test_other_text_is_no_key(self, text):
        assert not is_well_formed(text)


class TestLife:
    def test_a_key_opens_until_it_is_revoked(self, callers, admin):
        location, secret = made(callers, admin)
        assert status(callers, secret) == 200
        assert callers.client.delete(location, headers=admin).status_code == 204
        assert status(callers, secret) == 401
        assert callers.client.delete(location, headers=admin).status_code == 404
        assert "revoked_at" in callers.client.get(location, headers=admin).json()

    def test_nothing_of_the_secret_is_kept(self, callers, admin, database):
        _, secret = made(callers, admin)
        with database.engine.connect() as connection:
            stored = connection.exec_driver_sql("SELECT * FROM api_keys").all()
            stored += connection.exec_driver_sql("SELECT * FROM audit_events").all()
        assert secret.rpartition("_")[2][:20] not in str(stored)

    def test_an_expired_key_opens_nothing(self, callers, admin, monkeypatch):
        expires_at = clock.now() + timedelta(hours=1)
        _, secret = made(callers, admin, expires_at=expires_at.isoformat())
        assert status(callers, secret) == 200
        monkeypatch.setattr(service, "now", lambda: expires_at)
        assert status(callers, secret) == 401

    @pytest.mark.parametrize("expires_at", ["2001-01-01T00:00:00Z", "2026-11-20T00:00:00Z"])
    @ON_SQLITE
    def test_a_key_that_never_works_is_not_made(self, callers, admin, expires_at):
        body = {"name": "late", "scopes": ["api-keys:read"], "expires_at": expires_at}
        refused = callers.client.post("/v1/api-keys", body, headers=admin)
        assert refused.json()["errors"][0]["pointer"] == "/expires_at"

    @pytest.mark.parametrize(
        "expires_at", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2030-01-01T00:00:00", 1]
    )
    @ON_SQLITE
    def test_times_beyond_reason_are_refused(self, callers, admin, expires_at):
        body = {"name": "odd", "scopes": ["api-keys:read"], "expires_at": expires_at}
        refused = callers.client.post("/v1/api-keys", body, headers=admin)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/expires_at")

    def test_the_last_use_is_written_in_batches(self, callers, admin):
        location, secret = made(callers, admin)
        for _ in range(3):
            assert status(callers, secret) == 200
        assert "last_used_at" not in callers.client.get(location, headers=admin).json()
        callers.client.app.state.held_keys.record_key_use()
        assert "last_used_at" in callers.client.get(location, headers=admin).json()


class TestScopes:
    def test_nobody_hands_on_what_they_do_not_hold(self, callers):
        holder = bearing(callers.key("api-keys:*", "models:read"))
        for scopes, status_code in (
            (["models:read"], 201),
            (["api-keys:write", "models:read"], 201),
            (["models:write"], 403),
            (["models:*"], 403),
            (["*:read"], 403),
            (["*:*"], 403),
            (["tenants:read"], 403),
        ):
            body = {"name": "given", "scopes": scopes}
            answer = callers.client.post("/v1/api-keys", body, headers=holder)
            assert answer.status_code == status_code, scopes
            if status_code == 403:
                assert answer.json()["errors"][0]["pointer"] == f"/scopes/{len(scopes) - 1}"

    @ON_SQLITE
    def test_everything_does_not_reach_what_is_the_operators(self, callers, admin):
        assert callers.client.get("/v1/tenants", headers=admin).status_code == 403
        assert callers.client.get("/metrics", headers=admin).status_code == 403
        body = {"name": "wide", "scopes": ["tenants:read"]}
        assert callers.client.post("/v1/api-keys", body, headers=admin).status_code == 403
        other = {"name": "there", "scopes": ["models:read"], "tenant_id": callers.tenant("other")}
        refused = callers.client.post("/v1/api-keys", other, headers=admin)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, "/tenant_id")

    def test_the_operator_lets_a_tenant_in(self, callers):
        operator = bearing(callers.key("*:*", "tenants:*", "metrics:read"))
        assert callers.client.get("/metrics", headers=operator).status_code == 200
        tenant = {"id": "research", "name": "Research"}
        assert callers.client.post("/v1/tenants", tenant, headers=operator).status_code == 201
        body = {"name": "first", "scopes": ["*:*"], "tenant_id": "research"}
        secret = callers.client.post("/v1/api-keys", body, headers=operator).json()["secret"]
        assert status(callers, secret) == 200
        assert callers.client.post("/v1/tenants/research:disable", headers=operator).status_code == 200
        assert status(callers, secret) == 401
        assert callers.client.post("/v1/tenants/research:enable", headers=operator).status_code == 200
        assert status(callers, secret) == 200

    @pytest.mark.parametrize("tenant_id", ["shipped", "default"])
    def test_a_tenants_id_is_taken_once(self, callers, tenant_id):
        operator = bearing(callers.key("tenants:*"))
        body = {"id": tenant_id, "name": "Again"}
        assert callers.client.post("/v1/tenants", body, headers=operator).json()["code"] == "TENANT_EXISTS"
        shipped = callers.client.get("/v1/tenants/shipped", headers=operator)
        assert shipped.status_code == 404

    @pytest.mark.parametrize("scopes", [{}, {"scopes": []}])
    @ON_SQLITE
    def test_a_key_without_scopes_opens_nothing_and_is_not_made(self, callers, admin, scopes):
        refused = callers.client.post("/v1/api-keys", {"name": "rack 7", **scopes}, headers=admin)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/scopes")

    @ON_SQLITE
    def test_a_node_comes_in_by_enrolment_only(self, callers, admin):
        node = {"name": "rack 7", "kind": "node", "scopes": ["leases:claim"]}
        refused = callers.client.post("/v1/api-keys", node, headers=admin)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/kind")


class TestRotation:
    @pytest.fixture
    def key(self, callers, admin):
        return made(callers, admin)

    def rotate(self, callers, admin, location, overlap=3600):
        answer = callers.client.post(f"{location}:rotate", {"overlap_seconds": overlap}, headers=admin)
        assert answer.status_code == 200, answer.text
        return answer.json()["secret"]

    def test_both_secrets_work_until_the_first_is_retired(self, callers, admin, key):
        location, first = key
        second = self.rotate(callers, admin, location)
        assert [status(callers, secret) for secret in (first, second)] == [200, 200]
        retired = callers.client.post(f"{location}:retire", headers=admin)
        assert "rotation_ends_at" not in retired.json()
        assert [status(callers, secret) for secret in (first, second)] == [401, 200]
        again = callers.client.post(f"{location}:retire", headers=admin)
        assert (again.status_code, again.json()["code"]) == (409, "NOT_ROTATING")

    def test_the_first_secret_ends_with_the_overlap(self, callers, admin, key, monkeypatch):
        location, first = key
        second = self.rotate(callers, admin, location)
        later = clock.now() + timedelta(seconds=3601)
        monkeypatch.setattr(service, "now", lambda: later)
        assert [status(callers, secret) for secret in (first, second)] == [401, 200]
        third = self.rotate(callers, admin, location)
        assert [status(callers, secret) for secret in (first, second, third)] == [401, 200, 200]

    def test_a_rotation_whose_answer_was_lost_is_done_again(self, callers, admin, key):
        location, first = key
        lost = self.rotate(callers, admin, location)
        second = self.rotate(callers, admin, location)
        assert [status(callers, secret) for secret in (first, lost, second)] == [200, 401, 200]

    def test_without_an_overlap_the_first_ends_at_once(self, callers, admin, key):
        location, first = key
        second = self.rotate(callers, admin, location, overlap=0)
        assert [status(callers, secret) for secret in (first, second)] == [401, 200]


class TestManyProcesses:
    def test_another_process_follows_at_its_next_look(self, callers, admin, database):
        location, secret = made(callers, admin)
        elsewhere = LiveKeys(database, ApiKeys.from_keyring(KEYRING))
        elsewhere.refresh()
        assert elsewhere.check(secret).id in location
        callers.client.delete(location, headers=admin)
        assert elsewhere.check(secret)
        elsewhere.refresh()
        with pytest.raises(Unauthorized):
            elsewhere.check(secret)

    def test_a_look_without_a_change_is_one_statement(self, database):
        from sqlalchemy import event  # noqa: PLC0415

        held = LiveKeys(database, ApiKeys.from_keyring(KEYRING))
        held.refresh()
        seen = []
        event.listen(database.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
        held.refresh()
        assert [one for one in seen if "SELECT" in one and "set_config" not in one] == seen[-1:]


@ON_SQLITE
@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic dXNlcjpwYXNz",
        "Bearer x y",
        "Bearer " + "x" * 5000,
        "Bearer ironlaw_aaaaaaaaaaaaaaaa_" + "0" * 49,
        "Bearer eyJhbGciOiJub25lIn0.e30.",
        b"Bearer \xff\xfe",
    ],
)
def test_what_is_no_credential_is_refused_and_not_repeated(callers, header):
    refused = callers.client.get("/v1/models", headers={"Authorization": header})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert len(refused.text) < 500
    assert "ironlaw_" not in refused.text


@ON_SQLITE
def test_a_mistyped_key_is_told_from_a_wrong_one(callers):
    key = callers.key("*:*")
    mistyped = callers.client.get("/v1/models", headers=bearing(key[:-1] + ("a" if key[-1] != "a" else "b")))
    assert "mistyped" in mistyped.json()["detail"]
    wrong = callers.client.get("/v1/models", headers=bearing(mint_credential(API_KEY, "a" * 16)))
    assert "mistyped" not in wrong.json()["detail"]


@ON_SQLITE
def test_two_credentials_are_none(callers):
    key = callers.key("*:*")
    headers = [("Authorization", f"Bearer {key}")] * 2
    import httpx  # noqa: PLC0415

    assert callers.client.request("GET", "/v1/models", headers=httpx.Headers(headers)).status_code == 401


@ON_SQLITE
def test_in_open_mode_everybody_is_local(client):
    made = client.post("/v1/grids", json.loads(json.dumps(_grid())), headers=bearing("nonsense"))
    assert made.status_code == 201
    event = client.get("/v1/audit-events").json()["items"][0]
    assert (event["subject_kind"], event["subject_id"]) == ("local", "local")


def _grid():
    from service.app.examples import EXAMPLES  # noqa: PLC0415

    return EXAMPLES["create_grid"]
