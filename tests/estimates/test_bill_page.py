"""The worked numbers of docs/methods/utility-bill.md, computed."""

import csv
from pathlib import Path

import pytest

from service.planning.energy.power import DeviceWork
from service.planning.energy.power_cap import apply_power_cap
from tests.asking import ask, shipped
from tests.estimates.test_electricity import (
    DEMAND,
    ENERGY,
    FIXED,
    RATCHETED,
    TAX,
    lines,
    question,
    total,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "methods" / "utility-bill.md").read_text()


def constant(kw):
    return {"kind": "constant", "kw": kw}


def shown(amount):
    return f"{float(amount):,.2f}"


def answered(*charges, **members):
    return ask(shipped(), "utility-bill", question(*charges, **members))


def test_what_the_run_adds():
    answer = answered(ENERGY, DEMAND, TAX, FIXED, baseline_load=constant(2000.0))
    for line in answer["electricity"]["lines"]:
        assert f"= {shown(line['amount']['amount']):>9}" in PAGE
    (energy,) = lines(answer, kind="energy")
    assert f"{energy['quantity']:,.2f} kWh x 0.10" in PAGE
    assert (
        f"total                                                             = {shown(total(answer))}" in PAGE
    )


def test_what_it_pays_alone():
    answer = answered(ENERGY, DEMAND, FIXED, starts_at="2026-03-20T12:00:00Z")
    assert (
        f"37,748.57 + 2 x 12,000 + 2 x 400                                  = {shown(total(answer))}" in PAGE
    )


def test_what_outlasts_it():
    answer = answered(RATCHETED, baseline_load=constant(100.0))
    during, *after = (line["amount"]["amount"] for line in answer["electricity"]["lines"])
    assert f"(900 - 100) kW x 15                                    = {shown(during)}" in PAGE
    assert f"each, after the run          = {shown(sum(map(float, after)))}" in PAGE
    assert f"= {shown(total(answer))}" in PAGE


def test_a_named_tariff():
    asked = question(starts_at="2026-06-08T07:00:00Z", baseline_load=constant(2000.0))
    asked["site"]["electricity"] = {"tariff_id": "pge-e20-secondary-2017"}
    answer = ask(shipped(), "utility-bill", asked)
    for kind in ("demand", "energy"):
        paid = sum(float(line["amount"]["amount"]) for line in lines(answer, kind=kind))
        assert f"= {paid:,.2f}" in PAGE
    assert f"= {shown(total(answer))}" in PAGE


def test_a_cap_of_two_thirds():
    rates = shipped().curves.calibration.power.get_rates("hopper")
    run = apply_power_cap([DeviceWork(1.0, 1.0, 1.0)], 700 * 2 / 3, 700.0, rates)
    energy = run.slowdown * run.watts / 700
    assert f"= {run.clock:.3f} of the clock, {run.slowdown:.3f}" in PAGE
    assert f"times the time, {energy:.3f} of the energy" in PAGE


@pytest.mark.parametrize(
    "row",
    [
        row
        for row in csv.reader(PAGE.splitlines(), delimiter="|")
        if len(row) == 7 and row[3].strip()[:1] == "0"
    ],
)
def test_caps_beside_what_was_measured(row):
    device, work, power, measured, modelled = (cell.strip() for cell in row[1:6])
    with (ROOT / "tests" / "data" / "power_capping.csv").open() as file:
        rows = [one for one in csv.DictReader(file) if (one["device"], one["work"]) == (device, work)]
    (found,) = [one for one in rows if f"{float(one['watts']) / float(one['watts_before']):.2f}" == power]
    before = float(found["watts_before"])
    rates = shipped().curves.calibration.power.get_rates("ampere")
    run = apply_power_cap([DeviceWork(1.0, 1.0, 1.0)], float(found["watts"]), before, rates)
    assert (f"{float(found['slowdown']):.3f}", f"{run.slowdown:.3f}") == (measured, modelled)
