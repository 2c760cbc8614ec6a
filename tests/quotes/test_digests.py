"""What is frozen never moves, and whoever edits it is found."""

import hashlib
import json
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import from_json, to_json
from sqlalchemy import select, update

from service.app.examples import EXAMPLES
from service.app.examples.quotes import build_example_quote as example
from service.audit import service as audit
from service.estimates.service import ESTIMATES, answer_question
from service.quotes import documents, service
from service.quotes.errors import QuoteNotAsFrozen
from service.quotes.snapshot import (
    QuoteSubject,
    build_quote,
    is_owning_devices,
    parse_request,
    project_questions,
)
from service.quotes.tables import QuoteRow
from tests.quotes.asking import OWNED, RENTED, quoted

SERVED = {
    "kind": "inference",
    "input_tokens": 1000,
    "output_tokens": 200,
    "concurrency": 16,
    "horizon": {"duration_seconds": 86_400.0},
}
MODELS = [
    {"source": "parameter_count", "parameter_count": 7_000_000_000},
    {"source": "catalog", "id": "llama-3.1-8b"},
]


@st.composite
def questions(draw):
    """Utility bills of runs that are trained or served, rented or owned, with and without a start."""
    asked = {**draw(st.sampled_from([RENTED, OWNED])), "model": draw(st.sampled_from(MODELS))}
    del asked["efficiency"]
    count = draw(st.sampled_from([8, 16, 64]))
    asked["cluster"] = {**asked["cluster"], "accelerator_count": count}
    if draw(st.booleans()):
        asked["workload"] = SERVED
    if draw(st.booleans()):
        del asked["starts_at"]
    price = {"amount": str(draw(st.decimals("0.01", "9.99", places=2))), "currency_code": "EUR"}
    asked["site"] = {**asked["site"], "electricity": {"price_per_kwh": price}}
    if draw(st.booleans()):
        asked["currency_code"] = "USD"
    return asked


@settings(max_examples=8)
@given(asked=questions())
def test_what_is_stored_is_what_the_estimates_answered(snapshot, asked):
    question = parse_request("utility_bill", asked)
    requests = project_questions("utility_bill", question)
    frozen = build_quote(
        QuoteSubject("utility-bill", "a run", requests, is_owning_devices(question)),
        snapshot,
        lambda sources: [{} for _ in sources],
    )
    row = documents.build_row(frozen, "default", "local:local", days=30)
    shown = documents.to_detail(row)
    assert list(shown["answers"]) == ["memory", "throughput", "cost", "utility_bill"]
    for name, stored in shown["requests"].items():
        estimate = ESTIMATES[name.replace("_", "-")]
        sent = estimate.question.model_validate_json(json.dumps(stored))
        answered = answer_question(estimate.estimator, sent, snapshot)
        assert to_json(answered) == to_json(shown["answers"][name])
    assert documents.is_intact(row)


@settings(max_examples=8)
@given(asked=questions())
def test_what_is_frozen_and_read_back_is_asked_and_answered_the_same(snapshot, asked):
    """Through JSON and back: the same document, the same questions, under one catalog the same answers."""
    question = parse_request("utility_bill", asked)

    def frozen(requests):
        terms = QuoteSubject("utility-bill", "a run", requests, is_owning_devices(question), note="größer")
        return build_quote(terms, snapshot, lambda sources: [{} for _ in sources])

    first = project_questions("utility_bill", question)
    row = documents.build_row(frozen(first), "default", "local:local", days=30)
    shown = documents.to_detail(row)
    sent = from_json(to_json(shown))
    assert sent == from_json(to_json(sent)) == json.loads(to_json(shown))
    restored = {name: parse_request(name, sent["requests"][name]) for name in first}
    assert [to_json(each) for each in restored.values()] == [to_json(each) for each in first.values()]
    again = documents.build_row(
        frozen(restored), "default", "local:local", days=30, quote_id=row.id, version=row.version
    )
    moving = {"created_at", "valid_until", "content_digest"}
    for name, value in documents.to_audit_columns(again).items():
        assert name in moving or value == getattr(row, name), name
    assert documents.is_intact(again)


def _leaves(value, path=()):
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if inner is None:
        return [path]
    return [leaf for name, each in inner for leaf in _leaves(each, (*path, name))]


def _edited(value):
    if isinstance(value, bool):
        return not value
    return 2 * value + 1 if isinstance(value, int | float) else f"{value}0"


EXAMPLE = example(1, 30)
DOCUMENT = from_json(EXAMPLE.document)
SUMMARY = from_json(EXAMPLE.summary)


@given(
    place=st.sampled_from(
        [("document", leaf) for leaf in _leaves(DOCUMENT)] + [("summary", leaf) for leaf in _leaves(SUMMARY)]
    )
)
def test_no_figure_is_edited_unseen(place):
    row = example_copy()
    column, (*path, last) = place
    content = from_json(getattr(row, column))
    holder = content
    for name in path:
        holder = holder[name]
    holder[last] = _edited(holder[last])
    setattr(row, column, to_json(content).decode())
    assert not documents.is_intact(row)


def example_copy():
    values = {column.key: getattr(EXAMPLE, column.key) for column in QuoteRow.__table__.columns}
    row = QuoteRow(**values)
    assert documents.is_intact(row)
    return row


EDITS = {
    "tenant_id": "other",
    "id": "0" * 32,
    "version": 7,
    "operation": "cost",
    "name": "another",
    "cost_center_id": None,
    "created_at": timedelta(seconds=1),
    "created_by": "local:other",
    "valid_until": timedelta(days=400),
    "catalog_revision": 99,
    "method_version": "0",
    "summary": "{}",
    "document": ("0.12", "0.01"),
    "focus": ("Usage", "Credit"),
    "content_digest": "0" * 64,
}


def test_every_column_but_the_state_is_known():
    assert EDITS.keys() | {"state"} == {column.key for column in QuoteRow.__table__.columns}


def faults(session, tenant="default"):
    """Versions that are not as the chain says."""
    return list(
        audit.find_deviations(session, tenant, "quotes", service.list_audit_documents(session, tenant))
    )


def test_an_edited_row_is_found(client, database):
    made = quoted(client, cost_center_id="research")
    again = client.post(f"/v1/quotes/{made['id']}:reprice", {}).json()
    assert again["version"] == 2
    with database.open_reader() as session:
        assert faults(session) == []
    first = (QuoteRow.id == made["id"], QuoteRow.version == 1)
    for name, edit in EDITS.items():
        with database.open_writer() as session:
            column = getattr(QuoteRow, name)
            known = session.scalars(select(column).where(*first)).one()
            value = edit
            if isinstance(edit, timedelta):
                value = known + edit
            elif isinstance(edit, tuple):
                value = known.replace(*edit)
            assert value != known
            session.execute(update(QuoteRow).where(*first).values({name: value}))
            moved = {"tenant_id", "id", "version"}
            expected = [(f"quotes/{made['id']}?version=1", "MISSING" if name in moved else "CHANGED")]
            if name in moved - {"tenant_id"}:
                quote_id, version = (edit, 1) if name == "id" else (made["id"], edit)
                expected.insert(0, (f"quotes/{quote_id}?version={version}", "NOT_RECORDED"))
            assert faults(session) == expected, name
            session.rollback()


def test_an_edit_with_all_its_digests_made_anew_is_found(client, database):
    """Whoever writes to the database can make the digests; the chain holds what was frozen, to the byte."""
    made = quoted(client)
    with database.open_writer() as session:
        row = service.lock_version(session, "default", made["id"])
        row.document = f"{row.document} "
        session.flush()
        assert faults(session) == [(f"quotes/{made['id']}?version=1", "CHANGED")]
        row.name, row.document = "another", row.document.rstrip()
        row.content_digest = documents.compute_digest(row)
        session.flush()
        assert documents.is_intact(row)
        assert faults(session) == [(f"quotes/{made['id']}?version=1", "CHANGED")]
        session.rollback()
    with database.open_reader() as session:
        assert faults(session) == []


def test_nothing_is_decided_about_charges_that_somebody_edited(client, database):
    """The digest that is signed covers the charges by one of their own."""
    made = quoted(client)
    signed = ("default", made["id"], 1, made["content_digest"])
    with database.open_writer() as session:
        service.check_integrity(session, *signed)
        row = service.lock_version(session, "default", made["id"])
        row.focus = row.focus.replace("Usage", "Credit")
        session.flush()
        with pytest.raises(QuoteNotAsFrozen):
            service.check_integrity(session, *signed)
        session.rollback()


def test_each_version_is_a_resource_of_the_audit(client):
    made = quoted(client)
    client.post(f"/v1/quotes/{made['id']}:reprice", {})
    events = client.get("/v1/audit-events").json()["items"]
    assert [event["resource"] for event in events[:2]] == [
        f"quotes/{made['id']}?version=2",
        f"quotes/{made['id']}?version=1",
    ]


def test_whoever_has_the_document_can_check_it(client):
    made = quoted(client, cost_center_id="research", note="größer")
    signed = {name: value for name, value in made.items() if name not in ("state", "content_digest")}
    canonical = json.dumps(signed, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(canonical.encode()).hexdigest() == made["content_digest"]
    rows = client.get(f"/v1/quotes/{made['id']}/focus").content
    assert hashlib.sha256(rows).hexdigest() == made["focus_digest"]


prices = st.lists(st.decimals("0.01", "99.99", places=2), min_size=1, max_size=4)


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=prices)
def test_versions_keep_the_prices_that_they_were_made_with(client, database, moves):
    offer_id = f"offer-{len(client.get('/v1/quotes').json()['items'])}"
    offer = {**EXAMPLES["create_offer"], "id": offer_id, "purchase_option": "on_demand"}
    assert client.post("/v1/offers", offer).status_code == 201
    made = [quoted(client, {**RENTED, "rental": {"offer_id": offer_id}})]
    place = f"/v1/quotes/{made[0]['id']}"
    for price in moves:
        patch = {"price_per_instance_hour": {"amount": str(price), "currency_code": "USD"}}
        client.patch(f"/v1/offers/{offer_id}", patch, headers={"If-Match": "*"})
        made.append(client.post(f"{place}:reprice", {}).json())
    charged = [Decimal(offer["price_per_instance_hour"]["amount"]), *moves]
    for quote, price in zip(made, charged, strict=True):
        shown = client.get(f"{place}?version={quote['version']}").json()
        assert {**shown, "state": "draft"} == quote
        (line,) = shown["answers"]["cost"]["lines"]
        assert Decimal(line["unit_price"]["amount"]) == price / 8
    with database.open_reader() as session:
        assert faults(session) == []
