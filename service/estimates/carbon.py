"""Carbon of a run as it is answered."""

from service.planning.energy.carbon import HOUSEHOLD_MONTH_KWH
from service.planning.estimates.carbon import GridEmissions, MarketBasedEmissions, RunCarbon
from service.schemas.answer import to_quantities, to_quantity
from service.schemas.energy_answers import CarbonEmissions, CarbonMethod, EnergyEquivalent


def to_carbon(carbon: RunCarbon) -> CarbonEmissions:
    """Maps the emissions of a run, each figure under its own name."""
    answer: CarbonEmissions = {}
    if carbon.location_based is not None:
        answer["location_based_kg_co2e"] = to_quantity(carbon.location_based.kg_co2e)
        answer["location_based_method"] = _to_method(carbon.location_based)
    if carbon.marginal is not None:
        answer["marginal_kg_co2e"] = to_quantity(carbon.marginal.kg_co2e)
        answer["marginal_method"] = _to_method(carbon.marginal)
    if carbon.market_based is not None:
        _add_market_based(answer, carbon.market_based)
    if carbon.embodied is not None:
        answer["embodied_kg_co2e"] = to_quantity(carbon.embodied.kg_co2e)
        answer["embodied_lines"] = [to_quantities(part) for part in carbon.embodied.parts]
    if carbon.intensities:
        answer["software_carbon_intensity"] = [
            {"per": one.unit, "kg_co2e": to_quantity(one.kg_co2e)}  # type: ignore[typeddict-item]
            for one in carbon.intensities
        ]
    return answer


def to_equivalent(months: float) -> EnergyEquivalent:
    """Maps household months to the picture of the energy."""
    return {
        "name": "household_months",
        "value": months,
        "detail": f"an illustration: households that take {HOUSEHOLD_MONTH_KWH:.0f} kWh a month",
    }


def _to_method(found: GridEmissions) -> CarbonMethod:
    method: CarbonMethod = {"emission_rate": found.grid.emission_rate, "in_time": found.is_in_time}  # type: ignore[typeddict-item]
    if found.grid.accounting is not None:
        method["accounting"] = found.grid.accounting  # type: ignore[typeddict-item]
    return method


def _add_market_based(answer: CarbonEmissions, found: MarketBasedEmissions) -> None:
    answer["market_based_kg_co2e"] = to_quantity(found.kg_co2e)
    answer["market_based_method"] = {
        "emission_rate": "average",
        "accounting": found.accounting,  # type: ignore[typeddict-item]
        "in_time": False,
    }
    answer["market_based_lines"] = [
        {
            "name": each.instrument.kind,  # type: ignore[typeddict-item]
            "share": each.instrument.share,
            "kwh": each.kwh,
            "kg_co2e": each.kg_co2e,
            "source": each.instrument.source,
        }
        for each in found.instruments
    ]
