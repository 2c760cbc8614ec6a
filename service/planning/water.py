"""Water of a run: evaporated on the site for cooling, and off the site for the electricity.

On-site water usage effectiveness (WUE, ISO/IEC 30134-9) is per IT energy, off-site water per energy
taken from the grid (Li et al. 2023, section 3).
"""


def water_liters(
    it_kwh: float,
    facility_kwh: float,
    onsite_liters_per_kwh: float,
    offsite_liters_per_kwh: float,
) -> float:
    """Litres on and off the site."""
    return it_kwh * onsite_liters_per_kwh + facility_kwh * offsite_liters_per_kwh
