"""Operational carbon by location-based accounting (GHG Protocol Scope 2 Guidance, 2015)."""


def location_based_kg_co2e(facility_kwh: float, intensity_kg_co2e_per_kwh: float) -> float:
    """Emissions of the average grid at the place for the energy taken from it."""
    return facility_kwh * intensity_kg_co2e_per_kwh
