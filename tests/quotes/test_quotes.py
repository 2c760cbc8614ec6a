"""Quotes over HTTP: what is frozen stays, and says all that it rests on."""

import csv
import io
import json
import threading
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from service.app.examples import EXAMPLES
from service.audit.service import Writes
from service.estimates.service import ESTIMATES, EstimateOperation
from service.kit.clock import now
from service.planning.errors import PlanningError
from service.quotes import documents, service
from service.quotes import snapshot as freezing
from service.quotes.errors import QuoteChanged
from tests.prepared import ON_SQLITE
from tests.quotes.asking import OWNED, PLAN, RENTED, RUN, SITE, START, body, quoted

NAMES = ["memory", "throughput", "cost", "utility_bill"]


@pytest.mark.parametrize(("place", "operation"), list(enumerate(ESTIMATES)))
@ON_SQLITE
def test_a_question_is_answered_with_those_within_it(reader, place, operation):
    fields = ESTIMATES[operation].question.model_fields
    request = {name: value for name, value in RENTED.items() if name in fields}
    response = reader.post("/v1/quotes?validate_only=true", body(request, operation))
    assert response.status_code == 201, response.text
    quote = response.json()
    assert list(quote["requests"]) == list(quote["answers"]) == NAMES[: place + 1]
    for name, asked in quote["requests"].items():
        estimate = reader.post(f"/v1/estimates/{name.replace('_', '-')}", asked)
        assert f'"{name}":{estimate.text}' in response.text
    assert ("total" in quote["headlines"]) == (place > 1)
    assert ("peak_kw" in quote["headlines"]) == (place > 2)
    assert ("focus_digest" in quote) == (place > 1)


def test_what_is_frozen_is_shown_again_whole(client):
    made = quoted(client, cost_center_id="research", note="urgent")
    assert client.get(f"/v1/quotes/{made['id']}").json() == made
    assert client.get(f"/v1/quotes/{made['id']}?version=1").json() == made
    listed = client.get("/v1/quotes").json()["items"]
    assert [item.items() <= made.items() for item in listed] == [True]
    assert client.get("/v1/quotes?cost_center_id=other&state=draft").json()["items"] == []
    assert client.get(f"/v1/quotes/{made['id']}?version=2").status_code == 404


def total(quote):
    return Decimal(quote["headlines"]["total"]["amount"])


def charged(client, quote):
    """Rows of the charges of a quote."""
    response = client.get(f"/v1/quotes/{quote['id']}/focus")
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text)))


@pytest.mark.parametrize("request_", [RENTED, OWNED], ids=["rented", "owned"])
@ON_SQLITE
def test_electricity_is_paid_beside_own_devices_alone(client, request_):
    quote = quoted(client, request_, cost_center_id="research")
    answers = quote["answers"]
    parts = [
        answers["cost"]["total"],
        *([answers["utility_bill"]["electricity"]["total"]] * quote["owns_devices"]),
    ]
    assert quote["owns_devices"] == (request_ is OWNED)
    assert total(quote) == sum(Decimal(part["amount"]) for part in parts)
    rows = charged(client, quote)
    assert sum(Decimal(row["EffectiveCost"]) for row in rows) == total(quote)
    tags = {row["Tags"] for row in rows}
    assert [json.loads(tag)["quote_id"] for tag in tags] == [quote["id"]]
    assert {json.loads(tag)["cost_center_id"] for tag in tags} == {"research"}


EURO = {**SITE, "electricity": {"price_per_kwh": {"amount": "0.217", "currency_code": "EUR"}}}
TARIFF = {**SITE, "electricity": {"tariff_id": "pge-e20-primary-2018"}, "time_zone": "America/Los_Angeles"}
PAID = {
    "rented": RENTED,
    "owned": OWNED,
    "of a tariff": {**OWNED, "site": TARIFF},
    "in two currencies": {**OWNED, "site": EURO, "currency_code": "USD"},
    "over two months": {**OWNED, "site": EURO, "currency_code": "USD", "starts_at": "2027-01-31T20:00:00Z"},
}


@pytest.mark.parametrize("request_", PAID.values(), ids=PAID)
@ON_SQLITE
def test_what_is_billed_is_the_total_in_its_currency(client, request_):
    quote = quoted(client, request_)
    rows = charged(client, quote)
    for column in ("BilledCost", "EffectiveCost"):
        assert sum(Decimal(row[column]) for row in rows) == total(quote)
    assert {row["BillingCurrency"] for row in rows} == {quote["headlines"]["total"]["currency_code"]}
    for row in rows:
        if row["ListUnitPrice"]:
            assert Decimal(row["ListUnitPrice"]) * Decimal(row["PricingQuantity"]) == Decimal(row["ListCost"])


@ON_SQLITE
def test_charges_in_two_currencies_are_not_exported(client):
    made = quoted(client, {**OWNED, "site": EURO})
    assert "total" not in made["headlines"]
    refused = client.get(f"/v1/quotes/{made['id']}/focus").json()
    assert (refused["code"], refused["errors"][0]["code"]) == ("QUOTE_NOT_EXPORTABLE", "CURRENCY_MISMATCH")


@ON_SQLITE
def test_no_text_of_the_charges_is_a_formula_and_every_number_is_one(client):
    priced(client, provider='=HYPERLINK("http://example.com")')
    rows = charged(client, quoted(client, BY_OFFER))
    assert {row["ProviderName"] for row in rows} == {'\'=HYPERLINK("http://example.com")'}
    for row in rows:
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())
        assert Decimal(row["BilledCost"]) == Decimal(f"{float(row['BilledCost']):.2f}")


SUPPLIES = {"hall", "bought hall", "cloud", "spot"}


def test_a_row_of_a_plan_costs_what_the_plan_says(client):
    plan = client.post("/v1/plans", PLAN).json()
    rows = {row["supply"]["name"]: row for row in plan["answer"]["rows"]}
    assert rows.keys() == SUPPLIES
    for row in rows.values():
        sent = {"name": "a row", "plan_id": plan["id"], "candidate": row["rank"]}
        quote = client.post("/v1/quotes", sent).json()
        assert quote["plan"] == {"plan_id": plan["id"], "candidate": row["rank"]}
        assert quote["requests"] == row["requests"]
        assert "DIFFERS_FROM_PLAN" not in {warning["code"] for warning in quote["warnings"]}
        found = quote["headlines"]
        assert found["total"] == row["cost"]
        for name in ("duration_seconds", "device_hours", "total_bytes", "facility_kwh", "peak_kw"):
            assert found.get(name) == row.get(name), name
        assert (quote["accelerator_count"], quote["starts_at"]) == (64, START)
        paid = sum(Decimal(each["EffectiveCost"]) for each in charged(client, quote))
        assert paid == total(quote)


def test_a_row_that_costs_something_else_by_now_says_so(client):
    site = {**EXAMPLES["create_site"], "pue": 1.1}
    assert client.post("/v1/sites", site).status_code == 201
    given = {"site_id": site["id"], "electricity": SITE["electricity"]}
    owned = [{**PLAN["owned"][0], "site": given}]
    plan = client.post("/v1/plans", {**PLAN, "owned": owned, "rented": []}).json()
    changed = client.patch(f"/v1/sites/{site['id']}", {"pue": 1.9}, headers={"If-Match": "*"})
    assert changed.status_code == 200
    quote = client.post("/v1/quotes", {"name": "late", "plan_id": plan["id"], "candidate": 1}).json()
    (warning,) = [each for each in quote["warnings"] if each["code"] == "DIFFERS_FROM_PLAN"]
    planned = plan["answer"]["rows"][0]["cost"]
    assert f"{planned['amount']} USD" in warning["detail"]
    assert f"{quote['headlines']['total']['amount']} USD" in warning["detail"]
    assert total(quote) > Decimal(planned["amount"])


def test_a_quote_outlives_its_plan(client):
    plan = client.post("/v1/plans", PLAN).json()
    sent = {"name": "kept", "plan_id": plan["id"], "candidate": 1}
    made = client.post("/v1/quotes", sent).json()
    assert client.delete(f"/v1/plans/{plan['id']}").status_code == 204
    place = f"/v1/quotes/{made['id']}"
    assert client.get(place).json() == made
    again = client.post(f"{place}:reprice", {}).json()
    assert (again["version"], again["plan"]) == (2, made["plan"])
    assert total(again) == total(made)
    refused = client.post("/v1/quotes", sent)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/plan_id")


def test_a_question_without_its_operation_is_told_so(client):
    sent = {name: value for name, value in EXAMPLES["create_quote"].items() if name != "operation"}
    refused = client.post("/v1/quotes", sent)
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["code"]) == (422, "OPERATION")
    assert error["detail"].startswith("operation is memory, ")


def test_what_no_plan_has_is_not_quoted(client):
    plan = client.post("/v1/plans", PLAN).json()
    for sent, status in (
        ({"plan_id": plan["id"], "candidate": 99}, 409),
        ({"plan_id": "0" * 32, "candidate": 1}, 422),
    ):
        assert client.post("/v1/quotes", {"name": "none", **sent}).status_code == status


OFFER = {**EXAMPLES["create_offer"], "purchase_option": "on_demand"}
BY_OFFER = {**RENTED, "rental": {"offer_id": OFFER["id"]}}


def priced(client, **members):
    """An offer of the tenant's own."""
    assert client.post("/v1/offers", {**OFFER, **members}).status_code == 201


def patched(client, **members):
    response = client.patch(f"/v1/offers/{OFFER['id']}", members, headers={"If-Match": "*"})
    assert response.status_code == 200, response.text


def dollars(amount):
    return {"amount": amount, "currency_code": "USD"}


def test_a_moved_price_moves_the_next_version_alone_and_is_all_that_is_compared(client):
    priced(client)
    made = quoted(client, BY_OFFER)
    assert [row["row"]["price_per_instance_hour"] for row in made["inputs"] if row["kind"] == "offer"] == [
        OFFER["price_per_instance_hour"]
    ]
    patched(client, price_per_instance_hour=dollars("39.84"))
    place = f"/v1/quotes/{made['id']}"
    again = client.post(f"{place}:reprice", {}).json()
    assert client.get(f"{place}?version=1").json() == {**made, "state": "superseded"}
    assert (again["version"], again["state"], again["id"]) == (2, "draft", made["id"])
    shown = client.get(f"{place}:compare").json()
    assert (shown["before"]["version"], shown["after"]["version"]) == (1, 2)
    assert shown["requests"] == []
    assert [change["pointer"] for change in shown["terms"]] == ["/catalog_revision"]
    (row,) = shown["inputs"]
    assert (row["kind"], row["id"]) == ("offer", OFFER["id"])
    assert (row["version_before"], row["version_after"]) == (1, 2)
    asked = {change["pointer"]: (change["before"], change["after"]) for change in row["changes"]}
    assert asked == {
        "/price_per_instance_hour/amount": ("19.92", "39.84"),
        "/effective_price_per_instance_hour/amount": ("19.92", "39.84"),
        "/price_per_device_hour/amount": ("2.49", "4.98"),
    }
    (headline,) = shown["headlines"]
    assert headline["name"] == "total"
    assert headline["ratio"] == pytest.approx(2.0)
    assert headline["difference"] == str(total(again) - total(made))
    assert headline["is_beyond_intervals"] == (
        Decimal(again["headlines"]["total"]["low"]) > Decimal(made["headlines"]["total"]["high"])
    )
    (line,) = shown["lines"]
    assert (line["part"], line["name"], line["change"]) == ("cost", "rental", "changed")
    assert (line["before"]["unit_price"], line["after"]["unit_price"]) == (dollars("2.49"), dollars("4.98"))
    assert line["by_price"] == line["contribution"] == dollars(headline["difference"])
    assert shown["total_change"]["by_price"] == shown["total_change"]["difference"]


def test_an_exchange_rate_is_frozen_and_compared_as_a_price(client):
    euro = {"price_per_kwh": {"amount": "0.2", "currency_code": "EUR"}}
    asked = {**OWNED, "site": {**SITE, "electricity": euro}, "currency_code": "USD"}
    made = quoted(client, asked)
    (rate,) = [row for row in made["inputs"] if row["kind"] == "exchange_rate"]
    assert (rate["row"]["from_currency_code"], rate["row"]["to_currency_code"]) == ("EUR", "USD")
    paid = Decimal(made["answers"]["utility_bill"]["electricity"]["total"]["amount"])
    assert total(made) - Decimal(made["answers"]["cost"]["total"]["amount"]) == pytest.approx(
        paid * Decimal(rate["row"]["rate"]), abs=Decimal("0.01")
    )
    own = client.post(f"/v1/exchange-rates/{rate['id']}:copy", {})
    assert own.status_code == 201, own.text
    place, any_version = f"/v1/exchange-rates/{rate['id']}", {"If-Match": "*"}
    assert client.patch(place, {"rate": "2"}, headers=any_version).status_code == 200
    client.post(f"/v1/quotes/{made['id']}:reprice", {})
    shown = client.get(f"/v1/quotes/{made['id']}:compare").json()
    (moved,) = [row for row in shown["inputs"] if row["kind"] == "exchange_rate"]
    assert moved["changes"][0] == {"pointer": "/rate", "before": rate["row"]["rate"], "after": "2"}
    assert [headline["name"] for headline in shown["headlines"]] == ["total"]


@ON_SQLITE
def test_two_quotes_differ_by_what_was_asked(client):
    larger = {**RUN["cluster"], "accelerator_count": 128}
    first, second = quoted(client), quoted(client, {**RENTED, "cluster": larger}, name="a larger one")
    shown = client.get(f"/v1/quotes/{second['id']}:compare?base_id={first['id']}").json()
    assert (shown["before"]["id"], shown["after"]["id"]) == (first["id"], second["id"])
    asked = {change["pointer"]: (change["before"], change["after"]) for change in shown["requests"]}
    assert asked == {f"/{name}/cluster/accelerator_count": (64, 128) for name in NAMES}
    assert shown["inputs"] == []
    assert [change["pointer"] for change in shown["terms"]] == ["/name"]
    halved = next(each for each in shown["headlines"] if each["name"] == "duration_seconds")
    assert halved["ratio"] == pytest.approx(0.5)
    assert halved["difference"] == halved["after"] - halved["before"]


@ON_SQLITE
def test_a_first_version_has_nothing_before_it(client):
    place = f"/v1/quotes/{quoted(client)['id']}"
    shown = client.get(f"{place}:compare").json()
    changes = ("terms", "requests", "inputs", "headlines", "lines", "warnings", "gaps")
    assert [shown[name] for name in changes] == [[]] * len(changes)


@ON_SQLITE
def test_a_quote_ends_with_its_prices(client):
    last = (now() + timedelta(days=5)).date()
    priced(client, valid_until=last.isoformat())
    made = quoted(client, BY_OFFER, valid_for_days=365)
    midnight = datetime.fromisoformat(f"{last + timedelta(days=1)}T00:00:00Z")
    assert datetime.fromisoformat(made["valid_until"]) == midnight
    short = quoted(client, BY_OFFER, valid_for_days=2)
    life = datetime.fromisoformat(short["valid_until"]) - datetime.fromisoformat(short["created_at"])
    assert life == timedelta(days=2)
    patched(client, valid_until="2026-01")
    late = client.post("/v1/quotes", body(BY_OFFER))
    assert (late.status_code, late.json()["errors"][0]["code"]) == (422, "OFFER_EXPIRED")
    assert client.post(f"/v1/quotes/{made['id']}:reprice", {}).status_code == 422
    assert len(client.get(f"/v1/quotes/{made['id']}/versions").json()["items"]) == 1


@ON_SQLITE
def test_a_question_without_an_answer_is_refused_at_its_place(reader):
    wrong = {**RENTED, "rental": {"offer_id": "nowhere"}}
    refused = reader.post("/v1/quotes", body(wrong)).json()
    assert (refused["status"], refused["errors"][0]["pointer"]) == (422, "/request/rental/offer_id")
    none = reader.post("/v1/quotes", body(RENTED, "plan")).json()
    assert none["status"] == 422
    other = reader.post("/v1/quotes", body(RENTED, "bill")).json()
    assert other["errors"][0]["code"] == "OPERATION"


@ON_SQLITE
def test_what_a_question_within_lacks_is_a_gap(reader, monkeypatch):
    def refuse(*_):
        raise PlanningError("NO_LAYOUT", "/parallelism", "no layout holds it")

    narrow = EstimateOperation(ESTIMATES["memory"].question, refuse)
    monkeypatch.setattr(freezing, "ESTIMATES", {**ESTIMATES, "memory": narrow})
    quote = reader.post("/v1/quotes?validate_only=true", body(RENTED)).json()
    assert "memory" not in quote["answers"]
    assert {"pointer": "/answers/memory", "code": "NO_LAYOUT", "detail": "no layout holds it"} in quote[
        "gaps"
    ]
    asked = {name: RENTED[name] for name in ("model", "workload", "cluster")}
    refused = reader.post("/v1/quotes", body(asked, "memory")).json()
    assert refused["errors"][0]["pointer"] == "/request/parallelism"


@pytest.mark.parametrize("lacking", ["starts_at", "rental"])
@ON_SQLITE
def test_charges_that_are_not_known_are_not_exported(client, lacking):
    made = quoted(client, {name: value for name, value in RENTED.items() if name != lacking})
    code = {"starts_at": "STARTS_AT_REQUIRED", "rental": "PRICE_REQUIRED"}[lacking]
    assert (code, "/focus_digest") in {(gap["code"], gap["pointer"]) for gap in made["gaps"]}
    assert ("total" in made["headlines"]) == (lacking == "starts_at")
    refused = client.get(f"/v1/quotes/{made['id']}/focus").json()
    assert (refused["status"], refused["code"]) == (409, "QUOTE_NOT_EXPORTABLE")
    assert refused["errors"][0]["code"] == code


@ON_SQLITE
def test_the_electricity_of_own_devices_is_missed_where_nothing_asks_for_it(client):
    asked = {name: value for name, value in OWNED.items() if name != "site"}
    bill = quoted(client, asked)
    assert "total" not in bill["headlines"]
    assert ("PRICE_REQUIRED", "/headlines/total") in {(gap["code"], gap["pointer"]) for gap in bill["gaps"]}
    cost = quoted(client, asked, "cost")
    assert cost["headlines"]["total"] == cost["answers"]["cost"]["total"]
    assert "ELECTRICITY_NOT_IN_TOTAL" in {warning["code"] for warning in cost["warnings"]}


def test_the_same_request_again_is_the_same_quote(client):
    key = {"Idempotency-Key": "once"}
    first, again = (client.post("/v1/quotes", body(RENTED), headers=key) for _ in range(2))
    assert first.json() == again.json()
    assert len(client.get("/v1/quotes").json()["items"]) == 1
    other = client.post("/v1/quotes", body(OWNED), headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")


def test_a_retry_gets_its_answer_whatever_has_moved_since(client):
    """Prices, and then the offer itself: what was frozen once is what the retry is told."""
    priced(client)

    def asked(path, sent, key):
        response = client.post(path, sent, headers={"Idempotency-Key": key})
        return response.json(), response.headers.get("idempotency-replayed")

    made, replayed = asked("/v1/quotes", body(BY_OFFER), "made")
    assert replayed is None
    patched(client, price_per_instance_hour=dollars("39.84"))
    again, _ = asked(f"/v1/quotes/{made['id']}:reprice", {}, "again")
    patched(client, valid_until="2026-01")
    assert client.post("/v1/quotes", body(BY_OFFER)).status_code == 422
    assert asked("/v1/quotes", body(BY_OFFER), "made") == (made, "true")
    assert asked(f"/v1/quotes/{made['id']}:reprice", {}, "again") == (again, "true")
    assert [item["version"] for item in client.get("/v1/quotes").json()["items"]] == [2]
    other, _ = asked("/v1/quotes", body(RENTED), "made")
    assert other["code"] == "IDEMPOTENCY_KEY_REUSED"


def test_a_retry_that_overtakes_its_first_gets_the_same_version(client, monkeypatch):
    made = quoted(client, RUN, "throughput")
    place, key = f"/v1/quotes/{made['id']}:reprice", {"Idempotency-Key": "again"}
    first = client.post(place, {"version": 1}, headers=key).json()
    real, looked = Writes.replayed, []

    def not_yet(self, call, sent):
        """When the retry looks first, its first is still being answered."""
        looked.append(call)
        return None if len(looked) == 1 else real(self, call, sent)

    monkeypatch.setattr(Writes, "replayed", not_yet)
    assert client.post(place, {"version": 1}, headers=key).json() == first
    assert len(looked) == 2


def test_lists_are_paged_by_the_newest_version(client):
    first, second, _ = (quoted(client, RUN, "throughput", name=name) for name in "abc")
    client.post(f"/v1/quotes/{first['id']}:reprice", {"valid_for_days": 3})
    page = client.get("/v1/quotes?page_size=2").json()
    rest = client.get(f"/v1/quotes?page_size=2&page_token={page['next_page_token']}").json()
    shown = [(item["name"], item["version"]) for item in page["items"] + rest["items"]]
    assert shown == [("a", 2), ("c", 1), ("b", 1)]
    versions = client.get(f"/v1/quotes/{first['id']}/versions?page_size=1").json()
    assert [item["version"] for item in versions["items"]] == [2]
    token = versions["next_page_token"]
    older = client.get(f"/v1/quotes/{first['id']}/versions?page_size=1&page_token={token}").json()
    assert [(item["version"], item["state"]) for item in older["items"]] == [(1, "superseded")]
    refused = client.get(f"/v1/quotes/{second['id']}/versions?page_size=1&page_token={token}")
    assert refused.status_code == 400


def test_what_waits_for_approval_is_not_priced_again(client, database):
    made = quoted(client)
    with database.open_writer() as session:
        service.set_state(session, service.lock_version(session, "default", made["id"]), "pending")
    refused = client.post(f"/v1/quotes/{made['id']}:reprice", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "QUOTE_PENDING")
    with database.open_writer() as session:
        row = service.lock_version(session, "default", made["id"])
        service.set_state(session, row, "approved")
        with pytest.raises(service.QuoteStateConflict):
            service.set_state(session, row, "pending")
    again = client.post(f"/v1/quotes/{made['id']}:reprice", {}).json()
    states = client.get(f"/v1/quotes/{made['id']}/versions").json()["items"]
    assert [(each["version"], each["state"]) for each in states] == [(2, "draft"), (1, "approved")]
    assert again["content_digest"] != made["content_digest"]


def test_of_prices_asked_for_at_once_one_follows_what_all_have_read(client, database):
    made = quoted(client, RUN, "throughput")
    frozen = client.app.state.freezing.rebuild_newest("default", made["id"])
    start, found = threading.Barrier(4), []

    def add():
        start.wait()
        try:
            with database.open_writer() as session:
                service.add_version(session, "default", made["id"], frozen, "local:local", days=30)
            found.append("added")
        except QuoteChanged:
            found.append("refused")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["added", "refused", "refused", "refused"]
    shown = client.get(f"/v1/quotes/{made['id']}/versions").json()["items"]
    assert [(each["version"], each["state"]) for each in shown] == [(2, "draft"), (1, "superseded")]


@ON_SQLITE
def test_a_version_that_is_not_the_newest_is_not_priced_again(client):
    made = quoted(client, RUN, "throughput")
    place = f"/v1/quotes/{made['id']}:reprice"
    assert client.post(place, {"version": 1}).json()["version"] == 2
    refused = client.post(place, {"version": 1})
    assert (refused.status_code, refused.json()["code"]) == (409, "QUOTE_CHANGED")
    assert client.post(place, {"version": 2}).json()["version"] == 3
    assert client.post(place, {"version": 0}).status_code == 422


@ON_SQLITE
def test_a_question_that_is_none_any_more_is_named(client, database):
    """A later version of the service may take other members: the frozen request says which it does not."""
    made = quoted(client)
    with database.open_writer() as session:
        row = service.lock_version(session, "default", made["id"])
        row.document = row.document.replace('"total_tokens"', '"tokens_in_all"')
    place = f"/v1/quotes/{made['id']}"
    refused = client.post(f"{place}:reprice", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "REQUEST_OUTDATED")
    assert "/requests/utility_bill/workload/tokens_in_all" in {
        error["pointer"] for error in refused.json()["errors"]
    }
    assert client.get(place).status_code == client.get(f"{place}/report").status_code == 200


@ON_SQLITE
def test_answers_that_are_too_large_are_not_frozen(client, monkeypatch):
    made = quoted(client)
    monkeypatch.setattr(documents, "MOST_CHARACTERS", 1000)
    for refused in (
        client.post("/v1/quotes", body(RENTED)),
        client.post(f"/v1/quotes/{made['id']}:reprice", {}),
    ):
        assert (refused.status_code, refused.json()["code"]) == (422, "QUOTE_TOO_LARGE")
        assert "1,000 characters" in refused.json()["detail"]
    assert [item["version"] for item in client.get("/v1/quotes").json()["items"]] == [1]


@ON_SQLITE
def test_the_report_is_a_page_that_runs_nothing(client):
    made = quoted(client, name="<script>alert(1)</script>")
    page = client.get(f"/v1/quotes/{made['id']}/report")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<script" not in page.text
    assert made["content_digest"][:12] in page.text
