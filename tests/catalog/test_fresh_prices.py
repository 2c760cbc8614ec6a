"""Shipped prices by the date of the catalog: no accelerator and no provider is old without a reason."""

from collections import defaultdict
from datetime import date

import pytest

from bench.prices.age import describe_age
from bench.prices.page import PAGE, load_gaps, write_page
from bench.prices.rebuild import merge_rows
from service.catalog import service
from service.catalog.shipped import list_shipped_documents
from service.evidence.snapshot import build_shipped_snapshot
from service.kit.security.principals import DEFAULT_TENANT
from service.resolve.price_age import is_used_by_id_only
from service.resolve.rental import TERM_OPTIONS

SNAPSHOT = build_shipped_snapshot()
SHIPPED = list_shipped_documents()
FRESH = [row for row in SHIPPED["offers"] if not is_used_by_id_only(SNAPSHOT.offers[row["id"]], SNAPSHOT)]


def stated(member, missing):
    return {gap[member] for gap in load_gaps() if member in gap and gap["missing"] == missing}


def test_every_accelerator_that_is_rented_has_a_price_of_the_year_or_a_stated_gap():
    priced = {row["accelerator_id"] for row in FRESH}
    rented = {row["accelerator_id"] for row in SHIPPED["offers"]}
    gaps = stated("accelerator_id", "price")
    assert rented - priced <= gaps
    assert not gaps & priced
    assert gaps <= {row["id"] for row in SHIPPED["accelerators"]}


@pytest.mark.parametrize(("missing", "options"), [("on_demand", ("on_demand",)), ("committed", TERM_OPTIONS)])
def test_every_provider_has_a_price_of_the_year_or_a_stated_gap(missing, options):
    offered = defaultdict(set)
    for row in FRESH:
        offered[row["provider"]].add(row["purchase_option"])
    named = {gap["provider"] for gap in load_gaps() if "provider" in gap}
    everyone = {row["provider"] for row in SHIPPED["offers"]} | named
    lacking = {name for name in everyone if not offered[name] & set(options)}
    assert lacking == stated("provider", missing)


def test_every_gap_has_a_reason_and_a_date():
    for gap in load_gaps():
        assert gap["reason"].endswith(".")
        assert date.fromisoformat(gap["as_of"])
        assert len({"accelerator_id", "provider"} & gap.keys()) == 1


def test_what_was_missing_ships():
    providers = {row["provider"] for row in FRESH}
    assert providers >= {"azure", "gcp", "oracle", "coreweave", "together", "vast"}
    accelerators = {row["accelerator_id"] for row in FRESH}
    assert accelerators >= {"b300-sxm", "gb200", "mi355x", "l4", "rtx-4090", "rtx-5090", "tpu-v7x"}
    assert {row["purchase_option"] for row in FRESH} >= {"reserved", "committed", "capacity_block"}


def test_a_price_of_the_year_names_its_source():
    for row in FRESH:
        source = row["sources"][0]
        assert source["citation"]
        assert source["as_of"] == row["as_of"] or "url" not in source


def test_a_machine_is_priced_with_its_host():
    assert all("host" in row.get("includes", ["host"]) for row in FRESH)


def test_the_page_is_that_of_the_catalog():
    assert PAGE.read_text() == write_page()


def test_what_is_old_today_is_told_by_the_day_that_is_given():
    told = "\n".join(describe_age(date(2023, 11, 20)))
    assert f"offers: 0 of {len(SHIPPED['offers'])} " in told
    told = "\n".join(describe_age(date(2036, 1, 1)))
    assert f"offers: {len(SHIPPED['offers'])} of {len(SHIPPED['offers'])} " in told
    assert "aws-p5-48xlarge-us-east-1-on-demand" in told


def test_an_older_row_stays_until_its_product_has_a_newer_price():
    before = [{"id": "kept"}, {"id": "same", "price": 1}, {"id": "renamed"}]
    made = [{"id": "same", "price": 2}, {"id": "new"}]
    assert merge_rows(before, made, {"renamed": "new"}) == [
        {"id": "kept"},
        {"id": "new", "aliases": ["renamed"]},
        {"id": "same", "price": 2},
    ]


def test_a_row_that_ships_no_more_is_withdrawn_and_comes_back(database, monkeypatch):
    documents = {name: list(rows) for name, rows in SHIPPED.items()}
    monkeypatch.setattr(service, "list_shipped_documents", lambda: documents)
    gone = documents["offers"][0]
    for digest, rows, is_seen in (
        ("without", documents["offers"][1:], False),
        ("again", documents["offers"], True),
    ):
        documents["offers"] = rows
        monkeypatch.setattr(service, "compute_shipped_digest", lambda digest=digest: digest)
        with database.open_writer() as session:
            assert service.load_shipped(session).changed == 1
        with database.open_reader() as session:
            seen = {row["id"] for row in service.list_visible_rows(session, "offers", DEFAULT_TENANT)}
        assert (gone["id"] in seen) == is_seen
