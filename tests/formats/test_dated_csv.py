"""Files of dated prices: what a row becomes, which of two stands, and rows that are no price."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.catalog.shipped import list_shipped_documents
from service.formats.dated_token_prices import COLUMNS as TOKEN_COLUMNS
from service.formats.dated_token_prices import token_prices_from_dated_csv
from service.formats.offers import READERS
from service.formats.offers.dated_csv import COLUMNS
from service.formats.offers.names import PriceListContext, build_accelerators
from service.planning.errors import PlanningError

KNOWN = build_accelerators(
    {
        row["id"]: (row.get("memory_label_gb"), (row["name"], *row.get("aliases", ())))
        for row in list_shipped_documents()["accelerators"]
    }
)
ROW = {
    "provider": "Own Cloud",
    "product": "node-8",
    "catalog_accelerator_id": "h100-sxm",
    "accelerator_count": "8",
    "region": "eu-1",
    "purchase_option": "on_demand",
    "commitment_note": "",
    "price_per_hour": "24.0",
    "currency": "EUR",
    "as_of": "2026-11-01",
    "source_url": "https://prices.example/list",
    "price_per_accelerator_hour": "3",
    "includes_host": "yes",
    "via": "",
    "confidence": "list",
    "term_days": "",
    "licence": "",
}
TOKENS = {
    "provider": "Own Tokens",
    "model": "some-model",
    "hub_id": "Some/Model",
    "input_per_million": "0.5",
    "output_per_million": "1.5",
    "currency": "USD",
    "as_of": "2026-11-01",
    "source_url": "prices.example/tokens",
}


def table(*rows, columns=tuple(ROW)):
    def quote(text):
        return '"' + text.replace('"', '""') + '"'

    lines = [",".join(columns), *(",".join(quote(row[name]) for name in columns) for row in rows)]
    return "\n".join(lines) + "\n"


def read(*changes, columns=tuple(ROW)):
    rows = [ROW | change for change in changes or ({},)]
    return READERS["dated_csv"](table(*rows, columns=columns), PriceListContext("", KNOWN))


def only(**change):
    found = read(change)
    assert found.refused == ()
    (offer,) = found.offers
    return offer


def refusals(*changes):
    return [(one.pointer, one.code) for one in read(*changes).refused]


def test_a_row_is_an_instance_with_its_own_date_and_source():
    offer = only()
    assert offer.id == "own-cloud-node-8-eu-1-on-demand"
    assert (offer.price, offer.currency_code, offer.accelerator_count) == (Decimal(24), "EUR", 8)
    assert (offer.as_of, offer.includes, offer.doubt) == ("2026-11-01", ("host",), None)
    assert offer.source.url == "https://prices.example/list"
    assert "Own Cloud" in offer.source.citation


def test_what_may_be_left_out_may_be_left_out():
    (offer,) = read(columns=COLUMNS).offers
    assert offer.includes is None
    assert offer.source.licence is None


@pytest.mark.parametrize(
    ("name", "short"),
    [("Google", "gcp"), ("AWS", "aws"), ("Vast.ai", "vast"), ("Some New Cloud", "some-new-cloud")],
)
def test_providers_have_the_names_of_offers(name, short):
    assert only(provider=name).provider == short


def test_a_price_without_its_region_is_that_of_none():
    assert only(region="global").region is None


@pytest.mark.parametrize(
    ("option", "remark", "days", "read_as", "term"),
    [
        ("reserved_1y", "standard RI, no upfront", "", "reserved", 365),
        ("reserved_3y", "3-year resource CUD, month / 730", "", "committed", 1095),
        ("reserved_1y", "savings plan", "", "committed", 365),
        ("reserved_1y", "12-month reservation", "", "reserved", 365),
        ("reserved_other", "EC2 Capacity Block for ML", "", "capacity_block", None),
        ("reserved_other", "DWS Calendar mode", "14", "capacity_block", 14),
        ("reserved_other", "5-year reservation, 1,722,566 USD in total", "", "reserved", 1825),
        ("reserved_other", "6-month plan", "", "reserved", 182),
        ("reserved_other", "2 weeks to 1 year, InfiniBand in it", "", "reserved", 14),
        ("reserved_other", "31 to 90 days; per GPU-hour", "", "reserved", 31),
        ("reserved_other", "one-month minimum", "", "reserved", 30),
        ("reserved_other", "monthly billing, 1100 EUR / 730 h", "", "reserved", 30),
        ("reserved_other", "from-price of a reservation", "", "reserved", None),
        ("reserved_other", "reservation total / (years x 8760 h) / GPUs", "", "reserved", None),
        ("committed", "", "365", "committed", 365),
        ("capacity_block", "", "", "capacity_block", None),
    ],
)
def test_what_is_promised_follows_from_the_remark(option, remark, days, read_as, term):
    offer = only(purchase_option=option, commitment_note=remark, term_days=days)
    assert offer.purchase_option == read_as
    assert (offer.term.days if offer.term else None) == term
    assert offer.hourly_price == 24


@pytest.mark.parametrize(
    ("remark", "hourly"),
    [("standard RI, no upfront", 24), ("1-year resource CUD", 24), ("payment option not stated", None)],
)
def test_what_is_paid_by_the_hour_of_a_term_is_known_where_the_remark_says_it(remark, hourly):
    offer = only(purchase_option="reserved_1y", commitment_note=remark)
    assert offer.term.hourly == hourly
    assert (offer.price is None) == (hourly is not None)


@pytest.mark.parametrize(
    ("change", "doubted"),
    [
        ({"commitment_note": '"starting at", decentralised market'}, True),
        ({"commitment_note": "GPU count inferred"}, True),
        ({"commitment_note": "minimum 256 GPUs"}, True),
        ({"confidence": "marketplace"}, True),
        ({"confidence": "transcribed"}, False),
        ({"confidence": ""}, False),
        ({"commitment_note": "before tax"}, False),
    ],
)
def test_what_is_no_rate_is_doubted(change, doubted):
    assert (only(**change).doubt is not None) == doubted


@pytest.mark.parametrize(
    ("change", "column", "code"),
    [
        ({"catalog_accelerator_id": ""}, "catalog_accelerator_id", "ACCELERATOR_NOT_STATED"),
        ({"catalog_accelerator_id": "h100"}, "catalog_accelerator_id", "UNKNOWN_ACCELERATOR"),
        ({"accelerator_count": "0"}, "accelerator_count", "COUNT_INVALID"),
        ({"accelerator_count": "0.5"}, "accelerator_count", "FRACTION_OF_DEVICE"),
        ({"price_per_hour": "0"}, "price_per_hour", "PRICE_ZERO"),
        ({"price_per_hour": "cheap"}, "price_per_hour", "PRICE_INVALID"),
        ({"price_per_hour": "NaN"}, "price_per_hour", "PRICE_INVALID"),
        (
            {"price_per_accelerator_hour": "24"},
            "price_per_accelerator_hour",
            "PRICE_CONTRADICTS_COUNT",
        ),
        ({"currency": "dollars"}, "currency", "CURRENCY_INVALID"),
        ({"as_of": "2026-02-30"}, "as_of", "DATE_INVALID"),
        ({"as_of": "last week"}, "as_of", "DATE_INVALID"),
        ({"purchase_option": "lease"}, "purchase_option", "PURCHASE_OPTION_UNKNOWN"),
        (
            {"purchase_option": "reserved_other", "commitment_note": "DWS Flex-start"},
            "commitment_note",
            "PURCHASE_OPTION_UNKNOWN",
        ),
        ({"term_days": "365"}, "term_days", "TERM_NOT_EXPECTED"),
        ({"purchase_option": "reserved", "term_days": "5000"}, "term_days", "TERM_INVALID"),
        ({"source_url": "http://prices.example"}, "source_url", "URL_INVALID"),
        ({"source_url": ""}, "source_url", "SOURCE_MISSING"),
        ({"includes_host": "maybe"}, "includes_host", "INCLUDES_HOST_INVALID"),
        ({"confidence": "sure"}, "confidence", "CONFIDENCE_UNKNOWN"),
        ({"provider": ""}, "provider", "CELL_EMPTY"),
        ({"product": "a\x07b"}, "product", "TEXT_INVALID"),
    ],
)
def test_a_cell_that_is_wrong_is_named_by_line_and_column(change, column, code):
    assert refusals({"product": "right"}, change) == [(f"/3/{column}", code)]


def test_of_one_product_the_newest_price_stands():
    found = read(
        {"price_per_hour": "16", "price_per_accelerator_hour": "2", "as_of": "2026-03-01"},
        {},
        {"price_per_hour": "40", "price_per_accelerator_hour": "5", "as_of": "2025-11"},
    )
    assert [offer.price for offer in found.offers] == [24]
    assert sorted((one.pointer, one.code) for one in found.refused) == [
        ("/2", "SUPERSEDED"),
        ("/4", "SUPERSEDED"),
    ]


DOUBTFUL = {"commitment_note": "starting at", "price_per_hour": "16", "price_per_accelerator_hour": "2"}


def test_a_doubtful_price_does_not_hide_one_of_the_year_before_without_a_doubt():
    found = read(DOUBTFUL, {"as_of": "2025-11-01"}, {"as_of": "2025-10", "price_per_hour": "24.01"})
    assert [(offer.price, offer.as_of, offer.doubt) for offer in found.offers] == [(24, "2025-11-01", None)]
    assert sorted((one.pointer, one.code) for one in found.refused) == [
        ("/2", "DOUBTFUL"),
        ("/4", "SUPERSEDED"),
    ]


@pytest.mark.parametrize("as_of", ["2025-10-31", "2025-10", "2025"])
def test_a_doubtful_price_stands_before_one_that_is_used_by_its_id_only(as_of):
    found = read(DOUBTFUL, {"as_of": as_of})
    assert [(offer.price, offer.doubt) for offer in found.offers] == [(16, "starting at")]
    assert [(one.pointer, one.code) for one in found.refused] == [("/3", "SUPERSEDED")]


def test_age_counts_from_the_newest_price_of_the_file():
    newer = {"product": "other", "as_of": "2026-11-02"}
    found = read(DOUBTFUL, {"as_of": "2025-11-01"}, newer)
    assert {offer.instance_type: offer.doubt for offer in found.offers} == {
        "node-8": "starting at",
        "other": None,
    }


def test_of_doubtful_prices_the_newest_stands():
    found = read(DOUBTFUL, {**DOUBTFUL, "as_of": "2026-03-01"})
    assert [offer.as_of for offer in found.offers] == ["2026-11-01"]
    assert [(one.pointer, one.code) for one in found.refused] == [("/3", "SUPERSEDED")]


def test_of_one_day_the_more_reliable_origin_stands():
    found = read(
        {"price_per_hour": "23.9", "price_per_accelerator_hour": "", "confidence": "transcribed"},
        {},
        {"confidence": "computed"},
    )
    assert [offer.pointer for offer in found.offers] == ["/3"]
    assert [(one.pointer, one.code) for one in found.refused] == [
        ("/2", "CONTRADICTS_ANOTHER_ROW"),
        ("/4", "REPEATS_ANOTHER_ROW"),
    ]


def test_terms_and_regions_are_products_of_their_own():
    found = read(
        {},
        {"region": "us-1"},
        {"purchase_option": "reserved_1y", "commitment_note": "no upfront"},
        {"purchase_option": "reserved_3y", "commitment_note": "no upfront"},
    )
    assert len({offer.id for offer in found.offers}) == 4


@pytest.mark.parametrize("column", COLUMNS)
def test_a_file_that_lacks_a_column_is_no_such_file(column):
    with pytest.raises(PlanningError) as caught:
        read(columns=tuple(name for name in ROW if name != column))
    assert (caught.value.code, caught.value.pointer) == ("FORMAT", "/content")
    assert column in caught.value.detail


@given(st.dictionaries(st.sampled_from(sorted(ROW)), st.text(max_size=30), max_size=5))
def test_any_cell_is_read_or_refused(change):
    row = {name: text.replace("\r", "").replace("\n", "") for name, text in change.items()}
    found = read(row)
    assert len(found.offers) + len(found.refused) == found.rows
    assert all(offer.hourly_price > 0 and offer.accelerator_count > 0 for offer in found.offers)


def read_tokens(*changes, columns=tuple(TOKENS), provider=None):
    text = table(*(TOKENS | change for change in changes), columns=columns)
    return token_prices_from_dated_csv(text, provider=provider, models={"some/model": "our-model"})


def test_a_token_price_is_read_with_the_model_of_its_hub():
    (price,) = read_tokens({}).prices
    assert (price.id, price.model_id, price.currency_code) == ("own-tokens-some-model", "our-model", "USD")
    assert (price.input_per_million, price.output_per_million) == (Decimal("0.5"), Decimal("1.5"))
    assert (price.as_of, price.source.url) == ("2026-11-01", "https://prices.example/tokens")


def test_a_model_that_the_catalog_lacks_is_not_guessed():
    (price,) = read_tokens({"hub_id": "Some/Model-2"}).prices
    assert price.model_id is None


def test_of_one_model_the_newest_token_price_stands_and_a_price_of_nothing_is_refused():
    found = read_tokens({"as_of": "2026-01-01"}, {}, {"model": "free", "output_per_million": "0"})
    assert [price.pointer for price in found.prices] == ["/3"]
    assert [(one.pointer, one.code) for one in found.refused] == [
        ("/4/output_per_million", "PRICE_ZERO"),
        ("/2", "SUPERSEDED"),
    ]


def test_token_prices_of_one_provider():
    rows = ({}, {"provider": "Another"})
    assert [price.provider for price in read_tokens(*rows, provider="Own Tokens").prices] == ["own-tokens"]


@pytest.mark.parametrize("column", TOKEN_COLUMNS)
def test_a_file_of_tokens_that_lacks_a_column_is_no_such_file(column):
    with pytest.raises(PlanningError):
        read_tokens({}, columns=tuple(name for name in TOKENS if name != column))
