"""Offers on terms, over HTTP, on both databases."""

import json

import pytest
from sqlalchemy import update

from service.app.examples import EXAMPLES
from service.catalog.offers.tables import OfferRow
from tests.prepared import ON_SQLITE


def usd(amount):
    return {"amount": amount, "currency_code": "USD"}


def offer(**members):
    sent = {**EXAMPLES["create_offer"], **members}
    return {name: value for name, value in sent.items() if value is not None}


TERM = {"term_days": 365, "upfront_per_instance": usd("87600"), "hourly_per_instance": usd("6")}


@ON_SQLITE
def test_parts_of_a_term_make_an_effective_price(client):
    """87,600 USD over 8,760 hours and 6 an hour are 16 for eight devices, 2 for one."""
    row = client.post("/v1/offers", offer(price_per_instance_hour=None, commitment=TERM)).json()
    assert row["effective_price_per_instance_hour"] == usd("16")
    assert row["price_per_device_hour"] == usd("2")
    assert "price_per_instance_hour" not in row
    assert client.get(f"/v1/offers/{row['id']}").json() == row


@ON_SQLITE
def test_a_price_and_a_term_of_unknown_parts(client):
    row = client.post("/v1/offers", offer(commitment={"term_days": 1095, "minimum_instances": 4})).json()
    assert row["effective_price_per_instance_hour"] == row["price_per_instance_hour"] == usd("19.92")
    assert row["price_per_device_hour"] == usd("2.49")


def test_everything_else_is_kept(client):
    more = {
        "zone": "eu-north-1a",
        "billing_increment_seconds": 1,
        "minimum_billed_seconds": 60,
        "includes": ["host", "local_storage"],
        "valid_from": "2026-11",
        "valid_until": "2026-12-31",
        "doubt": "read from a mirror",
    }
    row = client.post("/v1/offers", offer(**more)).json()
    assert {name: row[name] for name in more} == more


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"price_per_instance_hour": None}, "/price_per_instance_hour", "PRICE_PARTS"),
        ({"commitment": TERM}, "/price_per_instance_hour", "PRICE_PARTS"),
        ({"price_per_instance_hour": usd("0")}, "/price_per_instance_hour", "PRICE_ZERO"),
        (
            {"purchase_option": "spot", "commitment": {"term_days": 7}},
            "/commitment",
            "TERM_NOT_EXPECTED",
        ),
        (
            {
                "price_per_instance_hour": None,
                "commitment": {**TERM, "hourly_per_instance": {"amount": "6", "currency_code": "EUR"}},
            },
            "/commitment/hourly_per_instance/currency_code",
            "CURRENCY_MISMATCH",
        ),
        ({"as_of": "2026-02-30"}, "/as_of", "DATE_INVALID"),
        ({"valid_from": "2026-13"}, "/valid_from", "DATE_INVALID"),
        ({"valid_from": "2026-12", "valid_until": "2026-11-30"}, "/valid_until", "VALIDITY_REVERSED"),
    ],
)
@ON_SQLITE
def test_what_contradicts_itself_is_refused(reader, members, pointer, code):
    answer = reader.post("/v1/offers", offer(**members))
    assert answer.status_code == 422
    assert [(error["pointer"], error["code"]) for error in answer.json()["errors"]] == [(pointer, code)]


@ON_SQLITE
def test_a_change_may_go_from_a_price_to_its_parts(client):
    made = client.post("/v1/offers", offer())
    patch = {"price_per_instance_hour": None, "commitment": TERM}
    changed = client.patch(made.headers["location"], patch, headers={"If-Match": made.headers["etag"]})
    assert changed.json()["price_per_device_hour"] == usd("2")


IMPORT = EXAMPLES["import_offers"]
HEADER = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot"


def sent(client, *rows, **members):
    content = "\n".join((HEADER, *rows))
    return client.post("/v1/offers:import", {**IMPORT, "content": content, **members})


def dated(client, **cells):
    row = {
        "provider": "Own Cloud",
        "product": "node-1",
        "catalog_accelerator_id": "l4",
        "accelerator_count": "1",
        "region": "eu-1",
        "purchase_option": "on_demand",
        "commitment_note": "",
        "price_per_hour": "3",
        "currency": "USD",
        "source_url": "https://prices.example/list",
        **cells,
    }
    content = f"{','.join(row)}\n{','.join(row.values())}\n"
    members = {name: IMPORT[name] for name in ("as_of", "source")}
    return client.post("/v1/offers:import", {**members, "format": "dated_csv", "content": content})


class TestImport:
    def test_offers_of_a_list(self, client):
        before = int(client.get("/v1/offers").headers["etag"].strip('"').split("-")[0])
        answer = client.post("/v1/offers:import", IMPORT)
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert told["created"] == ["example-cloud-gpu-8x-h200-eu-north-1-on-demand"]
        assert (told["changed"], told["unchanged"], told["row_count"]) == ([], [], 3)
        assert [(row["pointer"], row["code"]) for row in told["refused"]] == [
            ("/3", "SPOT_ABOVE_ON_DEMAND"),
            ("/4", "NO_ACCELERATOR"),
        ]
        assert int(answer.headers["catalog-revision"]) == before + 1
        row = client.get(f"/v1/offers/{told['created'][0]}").json()
        assert (row["price_per_device_hour"], row["accelerator_id"]) == (usd("3.55"), "h200-sxm")
        assert (row["as_of"], row["includes"], row["revision"]) == ("2026-11-20", ["host"], before + 1)
        assert row["sources"][0]["citation"] == IMPORT["source"]["citation"]
        assert "form of H200" in row["doubt"]

    def test_the_same_list_again_changes_nothing(self, client):
        first = client.post("/v1/offers:import", IMPORT)
        again = client.post("/v1/offers:import", IMPORT)
        assert again.json()["unchanged"] == first.json()["created"]
        assert again.json()["created"] == again.json()["changed"] == []
        assert again.headers["catalog-revision"] == first.headers["catalog-revision"]

    def test_a_newer_list_makes_versions_and_keeps_names_that_people_gave(self, client):
        created = sent(client, "vm,us,3,1,1,1,L4,24,False", "vm,eu,3,1,1,1,L4,24,False").json()["created"]
        first = f"/v1/offers/{created[0]}"
        client.patch(first, {"aliases": ["cheap"]}, headers={"If-Match": "*"})
        newer = {"as_of": "2026-11-21"}
        told = sent(client, "vm,us,2.5,1,1,1,L4,24,False", "vm,ap,4,1,1,1,L4,24,False", **newer).json()
        assert (told["changed"], len(told["created"])) == ([created[0]], 1)
        row = client.get(first).json()
        assert (row["version"], row["aliases"], row["price_per_device_hour"]) == (3, ["cheap"], usd("2.5"))
        assert client.get(f"/v1/offers/{created[1]}").json()["version"] == 1

    @ON_SQLITE
    def test_an_older_list_does_not_take_the_place_of_a_newer_price(self, client):
        sent(client, "vm,us,3,1,1,1,L4,24,False")
        told = sent(client, "vm,us,2,1,1,1,L4,24,False", as_of="2025-11").json()
        assert (told["changed"], told["created"]) == ([], [])
        assert [row["code"] for row in told["refused"]] == ["OLDER_THAN_CATALOG"]

    @ON_SQLITE
    def test_a_doubtful_price_does_not_take_the_place_of_one_of_the_year_without_a_doubt(self, client):
        (row_id,) = dated(client, as_of="2026-01-01").json()["created"]
        doubtful = {"price_per_hour": "2", "commitment_note": "starting at"}
        told = dated(client, as_of="2026-11-20", **doubtful).json()
        assert [row["code"] for row in told["refused"]] == ["OLDER_THAN_CATALOG"]
        assert client.get(f"/v1/offers/{row_id}").json()["price_per_device_hour"] == usd("3")

    @ON_SQLITE
    def test_a_price_without_a_doubt_takes_the_place_of_a_doubtful_one_of_the_year(self, client):
        doubtful = {"price_per_hour": "2", "commitment_note": "starting at"}
        (row_id,) = dated(client, as_of="2026-11-20", **doubtful).json()["created"]
        told = dated(client, as_of="2025-11-19").json()
        assert [row["code"] for row in told["refused"]] == ["OLDER_THAN_CATALOG"]
        assert dated(client, as_of="2026-01-01").json()["changed"] == [row_id]
        row = client.get(f"/v1/offers/{row_id}").json()
        assert (row["price_per_device_hour"], "doubt" in row) == (usd("3"), False)

    def test_a_shipped_offer_is_shadowed(self, client):
        content = '{"TPU v6e": {"us-east1": {"On Demand (USD)": 2.5}}}'
        body = {**IMPORT, "format": "gpuhunt_tpu", "content": content}
        del body["provider"]
        told = client.post("/v1/offers:import", body).json()
        assert told["created"] == ["gcp-tpu-v6e-us-east1-on-demand"]
        row = client.get(f"/v1/offers/{told['created'][0]}").json()
        assert (row["origin"], row["price_per_device_hour"]) == ("tenant", usd("2.5"))

    @ON_SQLITE
    def test_rows_of_dated_prices_keep_their_own_dates_and_sources(self, client):
        """The longest texts that a row may have are stored too."""
        long = "x" * 500
        columns = (
            "provider,product,catalog_accelerator_id,accelerator_count,region,purchase_option,"
            "commitment_note,price_per_hour,currency,as_of,source_url,via,licence"
        )
        cells = f"{long},{long},l4,1000000,{long},reserved_1y,no upfront,1000000,USD,2026-11-01,"
        content = f"{columns}\n{cells}https://prices.example,{long},{long}\n"
        body = {**IMPORT, "format": "dated_csv", "content": content}
        refused = client.post("/v1/offers:import", body)
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["code"] == "PROVIDER_NOT_EXPECTED"
        del body["provider"]
        told = client.post("/v1/offers:import", body).json()
        (made,) = told["created"]
        row = client.get(f"/v1/offers/{made}").json()
        assert (row["as_of"], row["commitment"]["term_days"]) == ("2026-11-01", 365)
        assert row["sources"][0]["url"] == "https://prices.example"
        assert len(row["sources"][0]["citation"]) == 1000

    def test_a_deleted_offer_comes_back(self, client):
        (made,) = sent(client, "vm,us,3,1,1,1,L4,24,False").json()["created"]
        client.delete(f"/v1/offers/{made}", headers={"If-Match": "*"})
        told = sent(client, "vm,us,3,1,1,1,L4,24,False").json()
        assert told["created"] == [made]
        assert client.get(f"/v1/offers/{made}").json()["version"] == 3

    def test_an_id_that_is_an_alias_is_refused(self, client):
        client.post("/v1/offers", offer(aliases=["example-cloud-vm-us-on-demand"]))
        told = sent(client, "vm,us,3,1,1,1,L4,24,False").json()
        assert [row["code"] for row in told["refused"]] == ["ID_TAKEN"]

    def test_nothing_is_stored_when_it_is_only_checked(self, client):
        told = client.post("/v1/offers:import?validate_only=true", IMPORT).json()
        assert client.get(f"/v1/offers/{told['created'][0]}").status_code == 404

    @ON_SQLITE
    def test_terms_of_a_list(self, client):
        instance = {
            "instance_type": "p5.48xlarge",
            "GPU": 8,
            "GPU_model": "NVIDIA H100",
            "pricing": {"us-east-1": {"linux": {"reserved": {"yrTerm1Standard.allUpfront": "35"}}}},
        }
        body = {**IMPORT, "format": "ec2instances", "provider": "aws", "content": json.dumps([instance])}
        (made,) = client.post("/v1/offers:import", body).json()["created"]
        row = client.get(f"/v1/offers/{made}").json()
        assert row["commitment"] == {"term_days": 365, "upfront_per_instance": usd("306600")}
        assert (row["purchase_option"], row["price_per_device_hour"]) == ("reserved", usd("4.375"))

    @pytest.mark.parametrize(
        ("members", "pointer", "code"),
        [
            ({"content": "{}"}, "/content", "FORMAT"),
            ({"format": "skypilot"}, "/content", "FORMAT"),
            ({"provider": None}, "/provider", "PROVIDER_REQUIRED"),
            ({"as_of": "2026-02-31"}, "/as_of", "DATE_INVALID"),
            ({"format": "xml"}, "/format", "LITERAL_ERROR"),
        ],
    )
    @ON_SQLITE
    def test_what_is_no_list_is_refused_whole(self, reader, members, pointer, code):
        body = {name: value for name, value in {**IMPORT, **members}.items() if value is not None}
        answer = reader.post("/v1/offers:import", body)
        assert answer.status_code == 422
        assert [(error["pointer"], error["code"]) for error in answer.json()["errors"]] == [(pointer, code)]


@ON_SQLITE
def test_a_date_of_an_earlier_version_that_is_no_day_does_not_stop_an_import(client, database):
    (made,) = sent(client, "vm,us,3,1,1,1,L4,24,False").json()["created"]
    with database.open_writer() as session:
        session.execute(update(OfferRow).where(OfferRow.id == made).values(as_of="2026-99"))
    told = sent(client, "vm,us,2,1,1,1,L4,24,False").json()
    assert told["changed"] == [made]
