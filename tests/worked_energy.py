"""Worked examples of energy and carbon, computed by planning."""

from decimal import Decimal

from service.planning.cost import compute_charge
from service.planning.energy.carbon import household_months, location_based_kg_co2e
from service.planning.energy.power import energy_kwh, facility_kwh, power_watts
from tests.worked import example

HOUR = 3_600
WEEKS_2, WEEKS_1_2 = 336, 201.6
"""Hours of both runs of the summary."""


@example("sum-energy-physical")
def physical_summary(i):
    watts = power_watts(
        accelerators=i["gpus"], accelerator_watts=i["tdp"], hosts=i["hosts"], host_watts=i["host_w"]
    )
    before, after = (
        facility_kwh(energy_kwh(watts, hours * HOUR), i["pue"]) for hours in (WEEKS_2, WEEKS_1_2)
    )
    price = Decimal(str(i["price"]))
    return {
        "power_kw": watts / 1000,
        "b_kwh": before,
        "o_kwh": after,
        "b_usd": float(compute_charge(before, price, "USD")),
        "o_usd": float(compute_charge(after, price, "USD")),
        "b_co2_t": location_based_kg_co2e(before, i["ci"]) / 1000,
        "o_co2_t": location_based_kg_co2e(after, i["ci"]) / 1000,
        "reduction_pct": (1 - after / before) * 100,
    }


@example("cf-household")
def households(i):
    assert i["household"] == 1 / household_months(1.0)
    return {"cf_household_months": household_months(i["cf_energy_kwh"])}


@example("mlsys-carbon-per-gpu-hour")
def carbon_of_a_device_hour(i):
    return {"kg": location_based_kg_co2e(energy_kwh(i["w"], HOUR), i["ci"])}
