"""Factors of a question: each multiplies the figure that it is about, and nothing else."""

from decimal import Decimal

import pytest

from service.app.examples import EXAMPLES
from tests.asking import ask, refusal, shipped, usd

RUN = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16},
    "workload": {"kind": "training", "global_batch_size": 256, "total_tokens": 1_000_000_000},
}
SITE = {"pue": 1.2, "electricity": {"price_per_kwh": usd("0.10")}, "carbon_intensity_kg_co2e_per_kwh": 0.4}


def cost(**members):
    return ask(shipped(), "cost", {**RUN, **members})


def bill(site, **members):
    return ask(shipped(), "utility-bill", {**RUN, **members, "site": site})


def amount(answer, *path):
    for name in path:
        answer = answer[name]
    return Decimal(answer["total"]["amount"])


def test_of_the_price_of_a_rental():
    offer = {"offer_id": "lambda-8x-h100-sxm-on-demand"}
    plain, moved = cost(rental=offer), cost(rental={**offer, "price_factor": 1.5})
    assert amount(moved, "rent") == pytest.approx(amount(plain, "rent") * Decimal("1.5"), abs=Decimal("0.02"))
    assert moved["lines"][0]["source"].endswith(", times 1.5")
    assert moved["duration_seconds"] == plain["duration_seconds"]


def test_of_the_price_of_a_commitment_with_what_is_paid_before():
    terms = {
        "price_per_device_hour": usd("1"),
        "commitment": {"term_hours": 1000.0, "upfront_per_device": usd("250")},
    }
    plain, moved = cost(rental=terms), cost(rental={**terms, "price_factor": 2.0})
    assert amount(moved, "rent") == 2 * amount(plain, "rent")


def test_of_the_price_of_a_purchase_without_what_stands_beside_it():
    bought = {"price_per_device": usd("100"), "network_per_device": usd("10")}
    moved = cost(purchase={**bought, "price_factor": 0.5})
    assert amount(moved, "purchase") == 16 * (50 + 10)


def test_of_a_flat_price_of_electricity():
    dear = {**SITE, "electricity": {**SITE["electricity"], "price_factor": 3.0}}
    plain, moved = bill(SITE), bill(dear)
    assert amount(moved, "electricity") == pytest.approx(3 * amount(plain, "electricity"), abs=Decimal("0.1"))
    assert moved["energy"] == plain["energy"]


def test_of_a_tariff():
    asked = {
        name: value for name, value in EXAMPLES["estimate_utility_bill_shift"].items() if name != "window"
    }
    asked["starts_at"] = "2026-12-01T08:00:00Z"
    plain = ask(shipped(), "utility-bill", asked)
    electricity = {**asked["site"]["electricity"], "price_factor": 2.0}
    moved = ask(shipped(), "utility-bill", {**asked, "site": {**asked["site"], "electricity": electricity}})
    assert amount(moved, "electricity") == pytest.approx(2 * amount(plain, "electricity"), abs=Decimal("0.1"))


@pytest.mark.parametrize("site", [SITE, {"pue": 1.2, "grid_id": "egrid-us"}], ids=["given", "of_the_grid"])
def test_of_the_carbon_intensity(site):
    plain, moved = bill(site), bill({**site, "carbon_intensity_factor": 0.25})
    was, now = (answer["carbon"]["location_based_kg_co2e"] for answer in (plain, moved))
    assert now["value"] == pytest.approx(was["value"] / 4, rel=1e-12)
    assert moved["energy"] == plain["energy"]


def test_of_the_time_of_a_step():
    slow = {"source": "modelled", "time_factor": 1.25}
    plain, moved = (
        ask(shipped(), "throughput", RUN),
        ask(shipped(), "throughput", {**RUN, "efficiency": slow}),
    )
    for end in ("value", "low", "high"):
        for name in ("step_seconds", "duration_seconds"):
            assert moved[name][end] == pytest.approx(1.25 * plain[name][end], rel=1e-12)
    assert moved["tokens_per_second"]["value"] == pytest.approx(plain["tokens_per_second"]["value"] / 1.25)
    parts = sum(phase["seconds"]["value"] for phase in moved["breakdown"])
    assert parts == pytest.approx(moved["step_seconds"]["value"])
    assert moved["power_per_device_watts"] == plain["power_per_device_watts"]


def test_of_the_time_of_a_service_is_refused():
    asked = {
        **RUN,
        "workload": {"kind": "inference", "concurrency": 4},
        "efficiency": {"source": "modelled", "time_factor": 2.0},
    }
    assert refusal(shipped(), "throughput", asked) == ("NOT_MODELLED", "/efficiency/time_factor")
