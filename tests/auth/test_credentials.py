"""Credentials never grow: who is handed one may do all of it already, counts as one with it, and ends it."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from service.auth import service
from service.auth.repository import lock_keys_of
from service.auth.service import build_named_subject, expire_keys, resolve_lineage
from service.auth.tables import ApiKeyRow
from service.kit import clock
from service.kit.security.credentials import parse_id
from tests.applications import bearing


def path(secret, verb=""):
    return f"/v1/api-keys/{parse_id(secret)}{verb}"


def name(secret):
    return f"api_key:{parse_id(secret)}"


def made_with(callers, secret, *scopes, **members):
    body = {"name": "made", "scopes": list(scopes), **members}
    answer = callers.client.post("/v1/api-keys", body, headers=bearing(secret))
    assert answer.status_code == 201, answer.text
    return answer.json()["secret"]


def rotated(callers, secret, by, overlap=0):
    sent = {"overlap_seconds": overlap}
    return callers.client.post(path(secret, ":rotate"), sent, headers=bearing(by))


def opens(callers, secret):
    return callers.client.get("/v1/models", headers=bearing(secret)).status_code == 200


def line(database, secret, tenant="default"):
    with database.open_reader() as session:
        return resolve_lineage(session, build_named_subject(tenant, name(secret)))


class TestRotation:
    @pytest.mark.parametrize(
        "scopes", [["*:*"], ["*:*", "tenants:*", "metrics:*"], ["models:read", "approvals:write"]]
    )
    def test_hands_nobody_what_they_do_not_hold(self, callers, scopes):
        key = callers.key(*scopes)
        keeper = callers.key("api-keys:write", "models:read")
        refused = rotated(callers, key, keeper)
        assert (refused.status_code, refused.json()["code"]) == (403, "SCOPE_NOT_HELD")
        assert opens(callers, key) == ("models:read" in scopes or "*:*" in scopes)
        assert "secret" not in refused.json()

    def test_nor_lets_them_end_the_overlap_of_others(self, callers):
        key, keeper = callers.key("*:*"), callers.key("api-keys:write")
        assert rotated(callers, key, key, overlap=3600).status_code == 200
        refused = callers.client.post(path(key, ":retire"), headers=bearing(keeper))
        assert (refused.status_code, refused.json()["code"]) == (403, "SCOPE_NOT_HELD")
        assert opens(callers, key)

    def test_of_an_operator_takes_an_operator(self, callers):
        operator, admin = callers.key("*:*", "tenants:*"), callers.key("*:*")
        assert rotated(callers, operator, admin).status_code == 403
        assert rotated(callers, admin, operator).status_code == 200

    def test_is_of_the_own_tenant(self, callers):
        key = callers.key("models:read", tenant=callers.tenant("other"))
        refused = rotated(callers, key, callers.key("*:*", "tenants:*"))
        assert (refused.status_code, refused.json()["code"]) == (404, "API_KEY_NOT_FOUND")

    def test_makes_who_was_handed_the_secret_one_with_it(self, callers, database):
        key, admin = callers.key("models:read"), callers.key("*:*")
        assert name(admin) not in line(database, key)
        assert rotated(callers, key, admin).status_code == 200
        assert name(admin) in line(database, key)
        shown = callers.client.get(path(key), headers=bearing(admin)).json()
        assert name(admin) not in shown["lineage"], "it was made by somebody else"

    def test_leaves_nobody_out_again(self, callers, database):
        """What was asked for by the key while the admin held its secret, the admin may have asked for."""
        maker, admin = callers.key("*:*"), callers.key("*:*")
        key = made_with(callers, maker, "models:read")
        for by in (admin, maker, maker):
            assert rotated(callers, key, by).status_code == 200
        assert line(database, key) == {name(key), name(maker), name(admin), "local:local"}


class TestLife:
    def test_a_key_does_not_outlive_the_one_that_it_was_made_with(self, callers, monkeypatch):
        ends = clock.now() + timedelta(hours=1)
        parent = made_with(callers, callers.key("*:*"), "*:*", expires_at=ends.isoformat())
        child = made_with(callers, parent, "*:*")
        grandchild = made_with(
            callers, child, "models:read", expires_at=(ends - timedelta(minutes=1)).isoformat()
        )
        body = {"name": "late", "scopes": ["*:*"], "expires_at": (ends + timedelta(seconds=1)).isoformat()}
        refused = callers.client.post("/v1/api-keys", body, headers=bearing(child))
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["code"] == "OUTLIVES_MAKER"
        assert all(opens(callers, each) for each in (parent, child, grandchild))
        monkeypatch.setattr(service, "now", lambda: ends)
        assert not any(opens(callers, each) for each in (parent, child, grandchild))

    def test_with_a_key_end_all_that_were_made_with_it_and_what_it_was_handed(self, callers):
        root = callers.key("*:*")
        parent = made_with(callers, root, "*:*")
        child = made_with(callers, parent, "*:*")
        grandchild, sibling = (
            made_with(callers, child, "models:read"),
            made_with(callers, root, "models:read"),
        )
        other = callers.key("models:read")
        handed = rotated(callers, other, child).json()["secret"]
        ended = callers.client.delete(path(parent), headers=bearing(root))
        assert ended.status_code == 204
        assert not any(opens(callers, each) for each in (parent, child, grandchild, handed))
        assert opens(callers, sibling)
        events = callers.client.get("/v1/audit-events", headers=bearing(root)).json()["items"][:4]
        assert {one["operation"] for one in events} == {"revoke_api_key"}
        ended_ids = {parse_id(each) for each in (parent, child, grandchild, other)}
        assert {one["resource"].partition("/")[2] for one in events} == ended_ids

    def test_that_reaches_other_tenants(self, callers):
        operator = callers.key("*:*", "tenants:*")
        middle = made_with(callers, operator, "*:*", "tenants:*")
        there = made_with(callers, middle, "*:*", tenant_id=callers.tenant("other"))
        further = made_with(callers, there, "models:read")
        assert opens(callers, further)
        assert callers.client.delete(path(middle), headers=bearing(operator)).status_code == 204
        assert not opens(callers, there)
        assert not opens(callers, further)

    def test_of_keys_in_other_tenants_is_ended_by_whoever_may_make_them_there(self, callers):
        operator, keeper = callers.key("*:*", "tenants:*"), callers.key("api-keys:write")
        there = made_with(callers, operator, "*:*", tenant_id=callers.tenant("other"))
        refused = callers.client.delete(path(operator), headers=bearing(keeper))
        assert (refused.status_code, refused.json()["code"]) == (403, "SCOPE_NOT_HELD")
        assert opens(callers, operator)
        assert opens(callers, there)
        assert callers.client.delete(path(operator), headers=bearing(operator)).status_code == 204
        assert not opens(callers, there)

    def test_by_a_key_that_was_revoked_a_moment_ago_none_is_made(self, callers, database):
        """Another process may take two seconds to notice; the transaction does not."""
        parent = made_with(callers, callers.key("*:*"), "*:*")
        with database.open_writer() as session:
            row = session.scalars(select(ApiKeyRow).where(ApiKeyRow.id == parse_id(parent))).one()
            row.revoked_at = clock.now()
        body = {"name": "late", "scopes": ["models:read"]}
        assert callers.client.post("/v1/api-keys", body, headers=bearing(parent)).status_code == 401


class TestLineage:
    def test_is_kept_with_the_key_and_after_it(self, callers, database, monkeypatch):
        root = callers.key("*:*")
        parent = made_with(callers, root, "*:*")
        child = made_with(callers, parent, "models:read")
        shown = callers.client.get(path(child), headers=bearing(root)).json()
        assert shown["lineage"][:2] == [name(parent), name(root)]
        before = line(database, child)
        assert {name(child), name(parent), name(root)} <= before
        assert callers.client.delete(path(root), headers=bearing(root)).status_code == 204
        monkeypatch.setattr(service, "now", lambda: clock.now() + service.KEYS_KEPT + timedelta(days=1))
        with database.open_writer() as session:
            assert len(expire_keys(session)) == 3
        assert line(database, child) == before

    def test_of_names_that_look_alike_is_nobody_elses(self, database):
        """A list of names is searched as text before it is read."""
        odd = ['token:a%b"\\\\é', "token:a_b", "token:aXb"]
        with database.open_writer() as session:
            for number, maker in enumerate(odd):
                session.add(
                    ApiKeyRow(
                        tenant_id="default", id=f"odd{number}", name="", scopes=[], digest="", version=1,
                        created_at=clock.now(), lineage=[maker],
                    )
                )  # fmt: skip
            session.flush()
            for number, maker in enumerate(odd):
                assert [row.id for row in lock_keys_of(session, [maker])] == [f"odd{number}"], maker
