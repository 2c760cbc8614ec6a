"""Tariffs and exchange rates over HTTP, on both databases: what is refused and where, rates in and out."""

import copy
import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from service.app.examples import EXAMPLES
from tests.prepared import ON_SQLITE

RATES = Path(__file__).parents[1] / "data" / "tariffs"
TARIFF = EXAMPLES["create_tariff"]
IMPORT = EXAMPLES["import_tariff"]
RATE = EXAMPLES["create_exchange_rate"]


def faults(response):
    assert response.status_code == 422, response.text
    return [(error["pointer"], error["code"]) for error in response.json()["errors"]]


def changed(path, value):
    """The example with another value at a path; None takes the member away."""
    document = copy.deepcopy(TARIFF)
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


CHARGES = ("revisions", 0, "charges")
ALWAYS = {"name": "always", "tiers": [{"price": "1"}]}


@pytest.mark.parametrize(
    ("path", "value", "pointer", "code"),
    [
        (("time_zone",), "Mars/Olympus", "/time_zone", "TIME_ZONE_UNKNOWN"),
        (("time_zone",), "America", "/time_zone", "TIME_ZONE_UNKNOWN"),
        (("holidays",), ["2026-12-25", "2026-02-30"], "/holidays/1", "DAY_UNKNOWN"),
        (("revisions", 0, "effective_from"), "2026-02-30", "/revisions/0/effective_from", "DAY_UNKNOWN"),
        ((*CHARGES, 1, "name"), "customer", "/revisions/0/charges/1/name", "CHARGE_NAME"),
        (
            (*CHARGES, 1, "periods", 1, "windows"),
            [{"from_time": "20:45"}],
            "/revisions/0/charges/1/periods/1/windows",
            "PRICE_PERIODS_OVERLAP",
        ),
        (
            (*CHARGES, 1, "periods", 1, "name"),
            "peak",
            "/revisions/0/charges/1/periods/1/name",
            "PRICE_PERIODS",
        ),
        (
            (*CHARGES, 2, "periods", 0, "tiers"),
            [{"price": "1", "limit": 100, "unit": "kw"}],
            "/revisions/0/charges/2/periods/0/tiers/0/limit",
            "LADDER",
        ),
        ((*CHARGES, 3, "of"), ["custom"], "/revisions/0/charges/3/of/0", "CHARGE_UNKNOWN"),
        ((*CHARGES, 2, "window_minutes"), 7, "/revisions/0/charges/2/window_minutes", "DEMAND_WINDOW"),
        ((*CHARGES, 0, "price"), "1,200", "/revisions/0/charges/0/price", "STRING_PATTERN_MISMATCH"),
        ((*CHARGES, 0, "kind"), "flat", "/revisions/0/charges/0", "UNION_TAG_INVALID"),
        ((*CHARGES, 0, "price"), None, "/revisions/0/charges/0/price", "MISSING"),
    ],
)
@ON_SQLITE
def test_what_contradicts_itself_is_named(reader, path, value, pointer, code):
    assert (pointer, code) in faults(reader.post("/v1/tariffs", changed(path, value)))


@ON_SQLITE
def test_revisions_are_in_order_of_time(reader):
    revision = {**TARIFF["revisions"][0], "effective_from": "2025-01-01"}
    body = {**TARIFF, "revisions": [*TARIFF["revisions"], revision]}
    answer = reader.post("/v1/tariffs", body)
    assert faults(answer) == [("/revisions/1/effective_from", "TARIFF_REVISIONS")]


@ON_SQLITE
def test_a_change_is_checked_as_the_whole_that_it_makes(client):
    made = client.post("/v1/tariffs", TARIFF)
    headers = {"If-Match": made.headers["etag"]}
    refused = client.patch(made.headers["location"], {"time_zone": "Mars/Olympus"}, headers=headers)
    assert faults(refused) == [("/time_zone", "TIME_ZONE_UNKNOWN")]
    kept = client.get(made.headers["location"]).json()
    assert kept["time_zone"] == TARIFF["time_zone"]


def looking_far(charges):
    """Demand charges with ratchets of ten years."""
    ratchet = {"preceding_months": 120}
    return [
        {
            "kind": "demand",
            "name": f"demand {place}",
            "periods": [{"name": "all", "tiers": [{"price": "9"}]}],
            "billing_demand": {
                "ratchets": [{**ratchet, "share_by_peak_month": [n / 6] * 12} for n in range(6)]
            },
        }
        for place in range(charges)
    ]


@ON_SQLITE
def test_what_an_ordinary_bill_would_take_too_much_for_is_not_stored(client):
    """Whoever names the tariff would pay for it."""
    dear = changed(CHARGES, looking_far(50))
    assert faults(client.post("/v1/tariffs", dear)) == [("/revisions", "TARIFF_TOO_COSTLY")]
    made = client.post("/v1/tariffs", changed(CHARGES, looking_far(5)))
    assert made.status_code == 201
    headers = {"If-Match": made.headers["etag"]}
    patched = client.patch(made.headers["location"], {"revisions": dear["revisions"]}, headers=headers)
    assert faults(patched) == [("/revisions", "TARIFF_TOO_COSTLY")]


def test_credits_and_long_prices_come_back_as_sent(client):
    body = changed((*CHARGES, 0, "price"), "-0.123456789012345678")
    address = client.post("/v1/tariffs", body).headers["location"]
    assert client.get(address).json()["revisions"][0]["charges"][0]["price"] == "-0.123456789012345678"


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("utility=Example%20Utility", 1),
        ("currency_code=EUR", 6),
        ("time_zone=Europe/Oslo", 1),
        ("name=none", 0),
    ],
)
def test_lists_are_filtered(client, query, count):
    client.post("/v1/tariffs", TARIFF)
    listed = client.get(f"/v1/tariffs?{query}").json()["items"]
    assert len(listed) == count
    name, _, value = query.partition("=")
    assert {row[name] for row in listed} <= {value.replace("%20", " ")}


@ON_SQLITE
class TestImport:
    def test_a_key_that_nothing_explains_is_refused_by_name(self, reader):
        body = {**IMPORT, "excluded_keys": []}
        assert faults(reader.post("/v1/tariffs:import", body)) == [
            ("/urdb/x_power_quality_rider", "URDB_KEY_REFUSED")
        ]

    def test_unless_the_caller_leaves_it_out(self, client):
        answer = client.post("/v1/tariffs:import", IMPORT)
        assert answer.status_code == 201
        told = answer.json()["refused"]
        assert [(one["pointer"], one["detail"]) for one in told] == [
            ("/urdb/x_power_quality_rider", "is not known")
        ]
        assert client.get(answer.headers["location"]).json() == answer.json()["tariff"]

    def test_a_sound_key_may_be_left_out_too(self, client):
        body = {**IMPORT, "excluded_keys": ["x_power_quality_rider", "fixedchargefirstmeter"]}
        answer = client.post("/v1/tariffs:import", body).json()
        assert {one["detail"] for one in answer["refused"]} == {"is not known", "left out as asked"}
        names = [charge["name"] for charge in answer["tariff"]["revisions"][0]["charges"]]
        assert names == ["flat_demand", "energy"]

    def test_a_key_to_leave_out_is_there(self, reader):
        body = {**IMPORT, "excluded_keys": ["x_power_quality_rider", "x_powder"]}
        assert faults(reader.post("/v1/tariffs:import", body)) == [("/excluded_keys/1", "URDB_KEY_ABSENT")]

    def test_the_day_and_the_holidays_are_the_callers(self, client):
        body = {**IMPORT, "effective_from": "2020-05-01", "holidays": ["2026-07-04"]}
        tariff = client.post("/v1/tariffs:import", body).json()["tariff"]
        assert tariff["revisions"][0]["effective_from"] == "2020-05-01"
        assert tariff["holidays"] == ["2026-07-04"]

    @pytest.mark.parametrize(
        ("member", "value", "fault"),
        [
            ("time_zone", "Mars/Olympus", ("/time_zone", "TIME_ZONE_UNKNOWN")),
            ("effective_from", "2026-02-30", ("/effective_from", "DAY_UNKNOWN")),
            ("holidays", ["2026-02-30"], ("/holidays/0", "DAY_UNKNOWN")),
            ("urdb", {"items": []}, ("/urdb/items", "URDB_DOCUMENT_INVALID")),
        ],
    )
    def test_what_is_wrong_beside_the_rate(self, reader, member, value, fault):
        assert faults(
            reader.post(
                "/v1/tariffs:import",
                {**IMPORT, "excluded_keys": [], "urdb": {"fixedmonthlycharge": 1}, member: value},
            )
        ) == [fault]

    @pytest.mark.parametrize(
        ("key", "value", "fault"),
        [
            ("fixedchargefirstmeter", 1e-25, ("/urdb", "OUT_OF_BOUNDS")),
            ("energyratestructure", {"rate": 1}, ("/urdb/energyratestructure", "URDB_KEY_REFUSED")),
        ],
    )
    def test_values_that_no_tariff_has(self, reader, key, value, fault):
        rate = {name: given for name, given in IMPORT["urdb"].items() if not name.startswith("x_")}
        body = {**IMPORT, "excluded_keys": [], "urdb": {**rate, key: value}}
        assert fault in faults(reader.post("/v1/tariffs:import", body))

    @pytest.mark.parametrize(
        ("key", "value"), [("country", {"code": "US"}), ("utility", "\n \t"), ("name", [])]
    )
    def test_words_of_another_type_are_not_taken(self, client, key, value):
        rate = {name: given for name, given in IMPORT["urdb"].items() if not name.startswith("x_")}
        body = {**IMPORT, "excluded_keys": [], "urdb": {**rate, key: value}}
        answer = client.post("/v1/tariffs:import", body)
        assert answer.status_code == 201, answer.text
        assert answer.json()["tariff"].get(key) == (IMPORT["name"] if key == "name" else None)

    @pytest.mark.parametrize("name", sorted(path.stem for path in RATES.glob("*.json")))
    def test_the_rates_of_worked_bills(self, client, name):
        rate = json.loads((RATES / f"{name}.json").read_text())
        body = {**IMPORT, "urdb": rate, "excluded_keys": []}
        answer = client.post("/v1/tariffs:import", body)
        assert answer.status_code == 201, answer.text
        shown = client.get(answer.headers["location"] + ":export").json()
        assert shown["urdb"]["name"] == IMPORT["name"]


@ON_SQLITE
class TestMarketPrices:
    FILE = Path(__file__).parents[1] / "data" / "grid" / "entsoe-a44-es-2025-10-01-15min.xml"
    BODY = {
        "format": "entsoe_a44_xml",
        "id": "spanish-day-ahead",
        "name": "Spain, day ahead",
        "time_zone": "Europe/Madrid",
        "adder": "0.01",
        "factor": "1.05",
        "sources": IMPORT["sources"],
    }

    def test_a_load_is_billed_by_them(self, client):
        """1,000 kW on 1 October: 24 MWh at 0.01, and 250 kWh at 1.05 times each of the 96 prices."""
        made = client.post("/v1/tariffs:import", {**self.BODY, "content": self.FILE.read_text()})
        assert made.status_code == 201, made.text
        (charge,) = made.json()["tariff"]["revisions"][0]["charges"]
        prices = charge["prices"]
        assert (prices["starts_at"], prices["interval_minutes"]) == ("2025-09-30T22:00:00Z", 15)
        load = {
            "kind": "constant",
            "starts_at": "2025-10-01T00:00",
            "ends_at": "2025-10-02T00:00",
            "kw": 1000.0,
        }
        question = {"tariff": {"source": "catalog", "id": self.BODY["id"]}, "load": load}
        total = client.post("/v1/tariffs:bill", question).json()["total"]
        assert total["currency_code"] == "EUR"
        assert len(prices["values"]) == 96
        expected = 24_000 * 0.01 + sum(250 * 1.05 * price for price in prices["values"])
        assert float(total["amount"]) == pytest.approx(expected, abs=0.011)
        late = {**question, "load": {**load, "starts_at": "2025-10-05T00:00", "ends_at": "2025-10-06T00:00"}}
        assert faults(client.post("/v1/tariffs:bill", late)) == [("/tariff/id", "PRICES_MISSING")]

    def test_they_hold_from_their_first_local_day(self, client):
        """24 hours of Spain from 22:00 UTC: 51.6 EUR/MWh first."""
        content = self.FILE.with_name("entsoe-a44-es-2025-09-29.xml").read_text()
        tariff = client.post("/v1/tariffs:import", {**self.BODY, "content": content}).json()["tariff"]
        (revision,) = tariff["revisions"]
        assert revision["effective_from"] == "2025-09-29"
        values = revision["charges"][0]["prices"]["values"]
        assert (len(values), values[0]) == (24, pytest.approx(0.0516))

    @pytest.mark.parametrize("content", ["no XML", "<a/>", "<!DOCTYPE a><a/>"])
    def test_a_file_of_something_else(self, reader, content):
        answer = reader.post("/v1/tariffs:import", {**self.BODY, "content": content})
        assert faults(answer) == [("/content", "PRICE_FILE")]


@ON_SQLITE
class TestExport:
    def test_an_imported_rate_comes_back(self, client):
        address = client.post("/v1/tariffs:import", IMPORT).headers["location"]
        shown = client.get(f"{address}:export").json()
        again = {**IMPORT, "id": "again", "urdb": shown["urdb"], "excluded_keys": []}
        second = client.post("/v1/tariffs:import", again).json()["tariff"]
        first = client.get(address).json()
        assert second["revisions"] == first["revisions"]

    def test_what_no_rate_says_is_listed(self, client):
        address = client.post("/v1/tariffs", TARIFF).headers["location"]
        pointers = {one["pointer"] for one in client.get(f"{address}:export").json()["left_out"]}
        assert {"/holidays", "/revisions/0/charges/2", "/revisions/0/charges/3"} <= pointers

    def test_the_revision_of_a_day(self, client):
        later = {
            "effective_from": "2027-01-01",
            "charges": [{"kind": "fixed", "name": "customer", "price": "9"}],
        }
        body = {**TARIFF, "revisions": [*TARIFF["revisions"], later]}
        address = client.post("/v1/tariffs", body).headers["location"]
        prices = {
            on: client.get(f"{address}:export?on={on}").json()["urdb"]["fixedchargefirstmeter"]
            for on in ("2026-06-01", "2027-01-01", "")
        }
        assert prices == {"2026-06-01": 1200, "2027-01-01": 9, "": 9}
        assert faults(client.get(f"{address}:export?on=2026-02-30")) == [("/query/on", "DAY_UNKNOWN")]


class TestExchangeRates:
    @pytest.mark.parametrize(
        ("member", "value", "code"),
        [
            ("to_currency_code", "EUR", "SAME_CURRENCY"),
            ("as_of", "2026-02-30", "DAY_UNKNOWN"),
            ("rate", "0", "STRING_PATTERN_MISMATCH"),
            ("rate", "0.000", "STRING_PATTERN_MISMATCH"),
            ("rate", "-1.2", "STRING_PATTERN_MISMATCH"),
        ],
    )
    @ON_SQLITE
    def test_what_is_no_rate(self, reader, member, value, code):
        answer = reader.post("/v1/exchange-rates", {**RATE, member: value})
        assert faults(answer) == [(f"/{member}", code)]

    def test_lists_are_filtered(self, client):
        client.post("/v1/exchange-rates", {**RATE, "from_currency_code": "NOK", "to_currency_code": "SEK"})
        listed = client.get("/v1/exchange-rates?from_currency_code=NOK&to_currency_code=SEK").json()["items"]
        assert [row["id"] for row in listed] == [RATE["id"]]

    def test_a_tenants_own_rate_of_a_day_goes_before_the_shipped_one(self, client):
        client.post("/v1/exchange-rates", {**RATE, "rate": "2", "as_of": "2025-12-31"})
        rates = client.app.state.snapshots.get_current("default").exchange_rates
        assert rates.convert(Decimal(1), "EUR", "USD", date(2026, 1, 5)).amount == 2


def test_a_site_names_its_tariff_and_clock(client):
    body = {**EXAMPLES["create_site"], "tariff_id": "pge-e20-secondary-2017", "time_zone": "Mars/Olympus"}
    assert faults(client.post("/v1/sites", body)) == [("/time_zone", "TIME_ZONE_UNKNOWN")]
    made = client.post("/v1/sites", {**body, "time_zone": "America/Los_Angeles"}).json()
    assert (made["tariff_id"], made["time_zone"]) == ("pge-e20-secondary-2017", "America/Los_Angeles")
    listed = client.get("/v1/sites?tariff_id=pge-e20-secondary-2017").json()["items"]
    assert [row["id"] for row in listed] == [made["id"]]


def test_a_tariff_that_a_site_names_stays(client):
    address = client.post("/v1/tariffs", TARIFF).headers["location"]
    client.post("/v1/sites", {**EXAMPLES["create_site"], "tariff_id": TARIFF["id"]})
    assert client.delete(address, headers={"If-Match": "*"}).json()["code"] == "ROW_IN_USE"
