"""What ships: a source and a date on every value, references that hold, and loading it again."""

import csv
import json
import re
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from sqlalchemy import select

from service.catalog import service
from service.catalog.registry import ACCELERATORS, MODELS, OFFERS, RESOURCES
from service.catalog.shipped import list_shipped_documents
from service.evidence.snapshot import build_shipped_snapshot
from service.formats.offers.listed import build_slug
from service.kit.security.principals import DEFAULT_TENANT, SHIPPED_TENANT
from service.planning.precision import NumberFormat
from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.billing import compute_bill
from service.schemas.tariffs import parse_terms, to_planning

METHODS = Path(__file__).parents[2] / "docs/methods/architectures.md"
PUBLISHED = json.loads((Path(__file__).parents[1] / "data/published_parameters.json").read_text())
"""Totals that repositories publish, without what PyTorch counts as a buffer."""
DAY = len("2026-11-22")
DESCRIPTIVE = {"id", "name", "aliases", "note", "sources", "architecture", "context_tokens", "config"}
UNSOURCED = {"accelerators": {"vendor"}, "links": {"kind", "scope"}}


def rows(name):
    return list_shipped_documents()[name]


def leaves(value, path=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}/{name}")
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}/{index}")
    else:
        yield path


@pytest.mark.parametrize("name", RESOURCES)
def test_every_value_has_a_source_with_a_date(name):
    bare = []
    for row in rows(name):
        pointers = [pointer for source in row["sources"] for pointer in source["pointers"]]
        described = DESCRIPTIVE | UNSOURCED.get(name, set())
        values = {name: value for name, value in row.items() if name not in described}
        bare += [
            (row["id"], leaf)
            for leaf in leaves(values)
            if not any(leaf == pointer or leaf.startswith(f"{pointer}/") for pointer in pointers)
        ]
        assert all(source["as_of"] for source in row["sources"])
    assert not bare


@pytest.mark.parametrize(
    ("opening", "closing"), [("Read in part", "Not read"), ("Not read again", "Corrected")]
)
def test_the_page_lists_the_models_whose_sources_were_not_read_again(opening, closing):
    """A source of a whole day was read on it; what it left out stands in its citation."""

    def left(row):
        read = [source["citation"] for source in row["sources"] if len(source["as_of"]) == DAY]
        return "Not read again" if not read else "Read in part" if "not reread:" in "".join(read) else ""

    listed = METHODS.read_text(encoding="utf-8").split(f"\n{opening}, ")[1].split(f"\n{closing}")[0]
    ids = re.findall(r"`([\w.-]+)`", listed)
    assert int(listed.split(":")[0].split(";")[0]) == len(ids)
    assert sorted(ids) == sorted(row["id"] for row in rows("models") if left(row) == opening)


@pytest.mark.parametrize("name", RESOURCES)
def test_pointers_point_at_something(name):
    for row in rows(name):
        places = {""} | {
            leaf[:end]
            for leaf in leaves(row)
            for end in [*[i for i, c in enumerate(leaf) if c == "/" and i], len(leaf)]
        }
        for source in row["sources"]:
            assert set(source["pointers"]) <= places, row["id"]


@pytest.mark.parametrize("name", RESOURCES)
def test_ids_and_aliases_name_one_row(name):
    names = [each for row in rows(name) for each in (row["id"], *row.get("aliases", []))]
    assert len(names) == len(set(names))


def test_references_hold():
    for resource in RESOURCES.values():
        for reference in (each for row in rows(resource.name) for each in resource.list_references(row)):
            assert reference.row_id in {row["id"] for row in rows(reference.target)}


def test_what_there_is():
    assert len(rows("accelerators")) >= 50
    assert len(rows("models")) >= 120
    assert len(rows("grids")) == 288
    kinds = {row["kind"] for row in rows("links")}
    assert {"nvlink", "pcie", "infiniband", "ethernet"} <= kinds


def test_rates_are_dense_and_in_order():
    """A narrower format is never slower, and no 16-bit tensor rate is the sparse one."""
    for row in rows("accelerators"):
        rates = row.get("peak_flops_per_second", {})
        ordered = [rates[name] for name in ("fp32", "tf32", "bf16", "fp8", "fp4") if name in rates]
        assert ordered == sorted(ordered), row["id"]
        assert set(rates) <= {*NumberFormat, "fp64_tensor"}
    by_id = {row["id"]: row.get("peak_flops_per_second", {}) for row in rows("accelerators")}
    assert by_id["h100-sxm"]["bf16"] == 989e12
    assert by_id["b200-sxm"]["bf16"] == 2250e12
    assert by_id["l40s"]["fp8"] == 733e12


def test_reported_memory_lies_below_its_label():
    """A system on a chip leaves a third or a quarter of its memory to the processor."""
    for row in rows("accelerators"):
        if "memory_reported_bytes" in row:
            share = row["memory_reported_bytes"] / (row["memory_label_gb"] * 2**30)
            least = 0.6 if row.get("form_factor") == "system on a chip" else 0.9
            assert least < share <= 1.0, row["id"]


def test_models_are_the_published_ones():
    """Llama 2 70B: 68,976,648,192 parameters; Llama 3.1: 8,030,261,248, 70,553,706,496, 405,853,388,800."""
    counts = {row["id"]: MODELS.derive(row)["parameter_count"] for row in rows("models")}
    assert counts["llama-2-70b"] == 68_976_648_192
    assert counts["llama-3.1-8b"] == 8_030_261_248
    assert counts["llama-3.1-70b"] == 70_553_706_496
    assert counts["llama-3.1-405b"] == 405_853_388_800
    assert counts["gpt2-xl"] == 1_557_611_200
    assert [
        (published["id"], counts[published["id"]], published["parameter_count"])
        for published in PUBLISHED
        if counts[published["id"]] != published["parameter_count"]
    ] == []


def test_licences_are_kept_with_what_needs_them():
    text = (files("service.catalog") / "grids" / "shipped.json").read_text()
    ember = [s for row in json.loads(text) for s in row["sources"] if "Ember" in s["citation"]]
    assert len(ember) == 210
    assert {source["licence"] for source in ember} == {"CC-BY-SA-4.0"}
    assert all("Ember, yearly electricity data" in source["citation"] and source["url"] for source in ember)


class TestLoading:
    def test_loading_again_changes_nothing(self, database):
        with database.open_writer() as session:
            load = service.load_shipped(session)
        assert load == (1, 0)

    def test_the_same_rows_in_another_file_change_nothing(self, database, monkeypatch):
        monkeypatch.setattr(service, "compute_shipped_digest", lambda: "another")
        with database.open_writer() as session:
            assert service.load_shipped(session) == (1, 0)

    def test_a_derived_member_is_derived_again(self, database, monkeypatch):
        """Where a formula changes, the rows that it derives change with it."""
        prices = {"price_per_device_hour": {"amount": "0.0101", "currency_code": "USD"}}
        changed = replace(OFFERS, derive=lambda _: prices)
        monkeypatch.setattr(service, "RESOURCES", {**RESOURCES, "offers": changed})
        monkeypatch.setattr(service, "compute_shipped_digest", lambda: "another")
        with database.open_writer() as session:
            assert service.load_shipped(session) == (2, len(rows("offers")))

    def test_changed_files_come_in_as_versions(self, database, monkeypatch):
        documents = {name: list(rows) for name, rows in list_shipped_documents().items()}
        documents["offers"][0] = {**documents["offers"][0], "as_of": "2027-01-01"}
        monkeypatch.setattr(service, "list_shipped_documents", lambda: documents)
        monkeypatch.setattr(service, "compute_shipped_digest", lambda: "another")
        with database.open_writer() as session:
            assert service.load_shipped(session) == (2, 1)
        with database.open_reader() as session:
            row = service.get_row(session, OFFERS, DEFAULT_TENANT, documents["offers"][0]["id"])
        assert (row["version"], row["revision"], row["origin"]) == (2, 2, "shipped")
        assert row["as_of"] == "2027-01-01"
        assert row["price_per_device_hour"]["currency_code"] == "USD"

    def test_what_tenants_made_their_own_stays(self, database, monkeypatch):
        patch = {"power_limit_watts": 600.0}
        with database.open_writer() as session:
            service.copy_row(session, ACCELERATORS, DEFAULT_TENANT, "h100-sxm", None)
            service.update_row(session, ACCELERATORS, DEFAULT_TENANT, "h100-sxm", patch=patch, if_match="*")
        documents = {
            name: [{**row, "note": "revised"} for row in rows]
            for name, rows in list_shipped_documents().items()
        }
        monkeypatch.setattr(service, "list_shipped_documents", lambda: documents)
        monkeypatch.setattr(service, "compute_shipped_digest", lambda: "another")
        with database.open_writer() as session:
            load = service.load_shipped(session)
        assert load.changed == sum(map(len, documents.values()))
        with database.open_reader() as session:
            own = service.get_row(session, ACCELERATORS, DEFAULT_TENANT, "h100-sxm")
            assert (own["power_limit_watts"], own["version"]) == (600.0, 2)
            assert own["note"] != "revised"
            assert service.get_revision(session, DEFAULT_TENANT) == 4
            other = service.get_row(session, ACCELERATORS, "another", "h100-sxm")
            assert (other["power_limit_watts"], other["note"]) == (700.0, "revised")

    def test_every_version_is_kept(self, database):
        with database.open_writer() as session:
            service.copy_row(session, ACCELERATORS, DEFAULT_TENANT, "h100-sxm", None)
            patch = {"power_limit_watts": 600.0}
            service.update_row(session, ACCELERATORS, DEFAULT_TENANT, "h100-sxm", patch=patch, if_match='"1"')
        table = ACCELERATORS.table
        with database.open_reader() as session:
            kept = session.execute(
                select(table.tenant_id, table.version, table.power_limit_watts)
                .where(table.id == "h100-sxm")
                .order_by(table.tenant_id, table.version)
            ).all()
        assert kept == [("default", 1, 700.0), ("default", 2, 600.0), ("shipped", 1, 700.0)]

    def test_what_is_read_is_what_was_shipped(self, database):
        """Every type of value survives both databases."""
        with database.open_reader() as session:
            stored = service.list_own_documents(session, SHIPPED_TENANT)
        for resource in RESOURCES.values():
            kept = [
                {name: value for name, value in row.items() if name in resource.input.model_fields}
                for row in stored[resource.name]
            ]
            shipped = [{"aliases": [], **row} for row in list_shipped_documents()[resource.name]]
            assert kept == sorted(shipped, key=lambda row: row["id"])


class TestPrices:
    """Every price of ``gpu-prices.csv`` ships, or a newer one of its product; what is suspicious is said."""

    ASKED = {"on-demand": "on_demand", "spot": "spot", "preemptible": "spot", "capacity": "capacity_block"}

    def every(self):
        with (Path(__file__).parents[1] / "data/offers/gpu-prices.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def listed(self):
        """The rows whose product has no newer price, with their offers."""
        found = [(row, self.offer(row)) for row in self.every()]
        return [(row, offer) for row, offer in found if self.is_of_the_list(row, offer)]

    def is_of_the_list(self, row, offer):
        return row["as_of"].startswith(offer["as_of"]) or "not dated" in offer.get("doubt", "")

    def offer(self, row):
        option = self.ASKED[row["purchase_option"].split()[0]]
        place, product = row["region"].split(" (")[0] or None, row["instance_or_sku"].split(" (")[0]
        alias = build_slug(row["provider"], product, place or "", option)
        named = row["provider"], product, place, option
        found = [
            offer
            for offer in rows("offers")
            if (offer["provider"], offer["instance_type"], offer.get("region"), offer["purchase_option"])
            == named
            or alias in offer["aliases"]
        ]
        assert len(found) == 1, named
        return found[0]

    def test_every_row_ships_or_has_a_newer_price(self):
        assert len(self.every()) == 117
        for row in self.every():
            offer = self.offer(row)
            assert self.is_of_the_list(row, offer) or offer["as_of"] > row["as_of"][:DAY], offer["id"]

    def test_a_row_is_there_per_instance_and_per_device(self):
        assert len(self.listed()) > 50
        for row, offer in self.listed():
            derived = OFFERS.derive(offer)
            assert Decimal(offer["price_per_instance_hour"]["amount"]) == Decimal(row["usd_per_hour"])
            assert offer["accelerator_count"] == int(row["accelerator_count"])
            each = Decimal(derived["price_per_device_hour"]["amount"])
            assert abs(each - Decimal(row["usd_per_accelerator_hour"])) <= Decimal("0.00005")

    def test_what_is_suspicious_is_marked(self):
        """Spot above on demand in the source, and prices from before a cut."""
        for row, offer in self.listed():
            if row["note"].startswith(("spot above", "before the mid-2025")):
                assert offer["doubt"]

    def test_spot_is_above_on_demand_only_where_it_is_marked(self):
        prices = {}
        for offer in rows("offers"):
            sold = offer["provider"], offer["instance_type"], offer.get("region")
            prices.setdefault(sold, {})[offer["purchase_option"]] = offer
        for options in prices.values():
            if {"spot", "on_demand"} <= options.keys():
                spot, asked = (
                    Decimal(options[name]["price_per_instance_hour"]["amount"])
                    for name in ("spot", "on_demand")
                )
                assert spot <= asked or "error of the source" in options["spot"]["doubt"]

    def test_the_estimate_among_the_prices_is_left_out(self):
        """The Crusoe B200 price of its source is an estimate (cost-and-energy.md, section 5)."""
        assert not [
            o for o in rows("offers") if o["provider"] == "crusoe" and o["accelerator_id"] == "b200-sxm"
        ]


def test_tariffs_are_marked_as_what_they_are():
    """Each says that it is history, and every one from a database says under which licence."""
    for row in rows("tariffs"):
        assert row["note"].startswith("Historical: "), row["id"]
        for source in row["sources"]:
            assert source["url"], row["id"]
            if "OpenEI" in source["citation"]:
                assert source["licence"] == "CC0 (OpenEI URDB)"


@pytest.mark.parametrize("row", rows("tariffs"), ids=lambda row: row["id"])
def test_a_month_under_a_tariff(row):
    """1 MW through the first January of 2026 or later in force costs something, and each hour has a price."""
    tariff = to_planning(parse_terms({**row, "hours_of_use_minimum": 0.0}))
    year = 2026 if row["revisions"][0]["effective_from"] <= "2026-01-01" else 2027
    start = datetime(year, 1, 1, tzinfo=ZoneInfo(row["time_zone"]))
    billed = compute_bill(tariff, MeteredLoad(start, 60, np.full(744, 1000.0)))
    assert billed.total > 1000
    assert "ENERGY_UNPRICED" not in {finding.code for finding in billed.findings}


def test_exchange_rates_are_those_of_the_ecb():
    """Reference rates of 31 December 2025: 1.1750 USD and 10.8215 SEK for a euro."""
    rates = {(row["to_currency_code"], row["as_of"]): row["rate"] for row in rows("exchange_rates")}
    assert rates["USD", "2025-12-31"] == "1.175"
    assert rates["SEK", "2025-12-31"] == "10.8215"
    assert {row["from_currency_code"] for row in rows("exchange_rates")} == {"EUR"}
    snapshot = build_shipped_snapshot()
    found = snapshot.exchange_rates.convert(Decimal(108215), "SEK", "USD", date(2026, 1, 15))
    assert round(found.amount, 4) == 11750
    assert found.age_days == 15
