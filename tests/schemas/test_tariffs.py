"""Tariffs become planning's classes and come back; prices and times come back as sent."""

import json
import re
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.app.examples import EXAMPLES
from service.planning.errors import PlanningError
from service.planning.tariff import charges as planning
from service.schemas import tariffs as shapes
from service.schemas.tariffs import TariffTerms, parse_terms, to_document, to_planning

SHAPES = {get_args(shape.model_fields["kind"].annotation)[0]: shape for shape in shapes._charges}
EXAMPLE = EXAMPLES["create_tariff"]


def read(document):
    return to_planning(TariffTerms.model_validate_json(json.dumps(document)))


def test_every_kind_of_charge_has_a_shape():
    kinds = {
        kind.kind
        for kind in vars(planning).values()
        if isinstance(kind, type) and issubclass(kind, planning.TariffCharge) and hasattr(kind, "kind")
    }
    assert set(SHAPES) == kinds == set(MEMBERS)


@pytest.mark.parametrize(
    ("shape", "planned"),
    [(shapes.TariffRevision, planning.TariffRevision), (TariffTerms, planning.Tariff)],
)
def test_members_and_defaults_are_the_same(shape, planned):
    members = shape.model_fields
    assert list(members) == [field.name for field in fields(planned)]
    for field in fields(planned):
        if field.default is NO_DEFAULT:
            assert members[field.name].is_required(), field.name
        else:
            assert type(field.default)(members[field.name].default) == field.default, field.name


def shares():
    return st.lists(st.floats(0, 1), min_size=12, max_size=12)


def months():
    return st.lists(st.integers(1, 12), min_size=1, max_size=12, unique=True).map(sorted)


prices = st.decimals(-1000, 1000, places=6).map(lambda price: f"{price:f}")
times = st.integers(0, 1439).map(shapes._format_time)


def object_of(required, **optional):
    return st.fixed_dictionaries(required, optional=optional)


windows = object_of(
    {},
    months=months(),
    weekdays=st.lists(st.integers(1, 7), min_size=1, max_size=7, unique=True).map(sorted),
    from_time=times,
    to_time=times | st.just("24:00"),
    holidays=st.sampled_from(["as_weekday", "included", "excluded"]),
)


def periods(*units):
    """One period, so that none overlap; its ladder rises and has no end."""
    ladders = st.lists(st.tuples(prices, st.integers(1, 10**6)), max_size=3, unique_by=lambda tier: tier[1])
    tiers = st.builds(
        lambda below, last, unit: [
            *(
                {"price": price, "limit": float(limit), "unit": unit}
                for price, limit in sorted(below, key=lambda tier: tier[1])
            ),
            {"price": last, "unit": unit},
        ],
        ladders,
        prices,
        st.sampled_from(units),
    )
    period = object_of(
        {"name": st.just("on peak"), "tiers": tiers}, windows=st.lists(windows, min_size=1, max_size=3)
    )
    return st.lists(period, min_size=1, max_size=1)


ratchets = object_of(
    {"preceding_months": st.integers(1, 24)},
    share_by_billing_month=shares(),
    share_by_peak_month=shares(),
    peak_months=months(),
    within_billing_month=st.booleans(),
    period=st.just("on peak"),
    raises=st.just(["on peak"]),
    wraps_year=st.booleans(),
)
billing_demands = object_of(
    {},
    minimum_kw=st.floats(0, 1e6),
    contract_kw=st.floats(0, 1e6),
    ratchets=st.lists(ratchets, max_size=2),
    apparent_power_share=st.floats(0, 2),
    power_factor_threshold=st.floats(0.1, 1),
    own_peak_months=months(),
)
peak_sets = st.one_of(
    object_of({"hours_of_year": st.lists(st.integers(1, 8784), min_size=1, max_size=4)}, price=prices),
    object_of({"given": st.integers(1, 4)}, price=prices),
    object_of(
        {"starts": st.lists(st.just("2026-07-01T16:00:00+00:00"), min_size=1, max_size=2)},
        price=prices,
        interval_minutes=st.integers(1, 60),
    ),
)
market = st.fixed_dictionaries(
    {
        "starts_at": st.just("2026-07-01T00:00:00+02:00"),
        "interval_minutes": st.integers(1, 60),
        "values": st.lists(st.floats(-1, 1), min_size=1, max_size=4),
    }
)
PRORATIONS = st.sampled_from(["none", "thirty_days", "days_of_month"])
PERS = st.sampled_from(["day", "month", "year"])
MEMBERS = {
    "fixed": ({"price": prices}, {"per": PERS, "meters": st.integers(1, 9), "proration": PRORATIONS}),
    "energy": (
        {"periods": periods("kwh", "kwh_per_kw", "kwh_per_day", "kwh_per_kw_per_day")},
        {"accumulation": st.sampled_from(["per_period", "all_periods_in_time_order"])},
    ),
    "real_time": ({"prices": market}, {"adder": prices, "factor": prices}),
    "demand": (
        {"periods": periods("kw")},
        {
            "apparent": st.booleans(),
            "window_minutes": st.sampled_from([5, 15, 30, 60]),
            "peaks": st.integers(1, 9),
            "on_distinct_days": st.booleans(),
            "span": st.sampled_from(["billing_period", "calendar_year"]),
            "pricing": st.sampled_from(["marginal", "bracket", "bracket_amount"]),
            "billing_demand": billing_demands,
            "proration": PRORATIONS,
            "minimum": prices,
        },
    ),
    "overrun": (
        {"contract_kw": st.floats(0, 1e6), "price": prices},
        {"tolerance": st.floats(0, 2), "window_minutes": st.sampled_from([15, 60])},
    ),
    "coincident_peak": (
        {"sets": st.lists(peak_sets, min_size=1, max_size=2)},
        {"statistic": st.sampled_from(["max", "mean"]), "in_following_year": st.booleans()},
    ),
    "reactive": ({"price": prices}, {"free_share_of_active": st.floats(0, 1), "by_energy": st.booleans()}),
    "minimum": ({"amount": prices}, {"per": PERS, "proration": PRORATIONS}),
    "percentage": ({"percent": prices}, {"tax": st.booleans()}),
}


def charges_of(kind):
    required, optional = MEMBERS[kind]
    always = {"kind": st.just(kind), "name": st.just("")}
    hours = {"months": months(), "hours_of_use_from": st.just(2500.0), "hours_of_use_below": st.just(5000.0)}
    return object_of({**always, **required}, **hours, **optional)


def named(charges):
    return [{**charge, "name": f"charge {place}"} for place, charge in enumerate(charges)]


tariffs = object_of(
    {
        "currency_code": st.sampled_from(["USD", "NOK"]),
        "time_zone": st.sampled_from(["Europe/Oslo", "America/Los_Angeles", "Etc/GMT+8"]),
        "revisions": st.lists(
            st.lists(st.one_of([charges_of(kind) for kind in MEMBERS]), min_size=1, max_size=4).map(named),
            min_size=1,
            max_size=2,
        ).map(
            lambda revisions: [
                {"effective_from": f"{2020 + place}-01-01", "charges": charges}
                for place, charges in enumerate(revisions)
            ]
        ),
    },
    holidays=st.lists(st.dates(date(2020, 1, 1), date(2030, 1, 1)).map(str), max_size=3, unique=True).map(
        sorted
    ),
    secondary_loss_factor=st.floats(0, 0.1),
    hours_of_use_minimum=st.floats(0, 8760),
    notes=st.lists(st.just("Net of VAT."), max_size=2),
)


def complete(document):
    """A document with every default that its shape writes out."""
    return TariffTerms.model_validate_json(json.dumps(document)).model_dump(mode="json")


@given(tariffs)
def test_there_and_back(document):
    """What planning was given is written as it was sent, but for members that say what is so without them."""
    planned = read(document)
    written = to_document(planned)
    again = read(written)
    assert to_document(again) == written
    assert defaults_away(complete(written)) == defaults_away(complete(document))


def defaults_away(value):
    """A document without members that say nothing: whole years, always, and rules without effect."""
    nothing = ({}, list(range(1, 13)), list(range(1, 8)), [1.0] * 12)
    if isinstance(value, dict):
        kept = {name: defaults_away(member) for name, member in value.items()}
        if "starts_at" in kept:
            kept["starts_at"] = datetime.fromisoformat(kept["starts_at"]).astimezone(UTC)
        if kept.get("from_time") == "00:00" and kept.get("to_time") == "24:00":
            del kept["from_time"], kept["to_time"]
        if kept.get("holidays") == "as_weekday":
            del kept["holidays"]
        if "billing_demand" in kept and kept["billing_demand"] == NO_RULE:
            del kept["billing_demand"]
        if kept.get("windows") == [{}]:
            del kept["windows"]
        return {name: member for name, member in kept.items() if member not in nothing or name == "windows"}
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        return Decimal(value)
    return [defaults_away(item) for item in value] if isinstance(value, list) else value


NO_RULE = {"minimum_kw": 0.0, "contract_kw": 0.0, "ratchets": [], "apparent_power_share": 0.0}


@pytest.mark.parametrize("kind", list(MEMBERS))
def test_every_member_of_a_charge_is_read(kind):
    """A member that reading forgot would come back as its default."""
    _, optional = MEMBERS[kind]
    assert set(SHAPES[kind].model_fields) >= {"kind", "name", *optional, *MEMBERS[kind][0]}


def test_prices_are_exact():
    document = {
        "currency_code": "USD",
        "time_zone": "UTC",
        "revisions": [
            {
                "effective_from": "0001-01-01",
                "charges": [{"kind": "fixed", "name": "credit", "price": "-0.100000000000000001"}],
            }
        ],
    }
    (charge,) = read(document).revisions[0].charges
    assert charge.price == Decimal("-0.100000000000000001")
    assert to_document(read(document)) == document


@pytest.mark.parametrize("price", ["1e3", "NaN", "Infinity", "+1", "1,5", ".5", "5.", "--1", "", "1_000"])
def test_no_other_text_is_a_price(price):
    document = {**EXAMPLE, "revisions": [{"effective_from": "2026-01-01", "charges": []}]}
    document["revisions"][0]["charges"].append({"kind": "fixed", "name": "customer", "price": price})
    with pytest.raises(ValidationError):
        parse_terms(document)


@pytest.mark.parametrize(("text", "minute"), [("00:00", 0), ("08:30", 510), ("23:59", 1439), ("24:00", 1440)])
def test_boundaries_are_minutes(text, minute):
    window = shapes.build_window(shapes.TariffWindow(from_time="00:01", to_time=text))
    assert (window.from_minute, window.to_minute) == (1, minute)
    assert shapes._format_time(minute) == text


def test_market_prices_are_an_array():
    document = to_document(
        read(
            {
                "currency_code": "EUR",
                "time_zone": "Europe/Madrid",
                "revisions": [
                    {
                        "effective_from": "2025-01-01",
                        "charges": [
                            {
                                "kind": "real_time",
                                "name": "market",
                                "prices": {
                                    "starts_at": "2025-10-01T00:00:00+02:00",
                                    "interval_minutes": 15,
                                    "values": [0.1, -0.05],
                                },
                            }
                        ],
                    }
                ],
            }
        )
    )
    (charge,) = read(document).revisions[0].charges
    assert charge.prices.values.dtype == np.float64
    assert charge.prices.start == datetime(2025, 9, 30, 22, tzinfo=UTC)


def test_a_day_that_is_none():
    with pytest.raises(PlanningError) as caught:
        read(
            {
                **{name: EXAMPLE[name] for name in TariffTerms.model_fields if name in EXAMPLE},
                "holidays": ["2026-02-30"],
            }
        )
    assert (caught.value.pointer, caught.value.code) == ("/holidays/0", "DAY_UNKNOWN")
