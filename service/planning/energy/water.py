"""Water of a run: evaporated on the site for cooling, and off the site for the electricity.

On-site water usage effectiveness (WUE, ISO/IEC 30134-9) is per IT energy, off-site water per energy taken
from the grid (Li et al. 2023, section 3).
"""


def onsite_liters(it_kwh: float, liters_per_kwh: float) -> float:
    """Returns the litres that cool the machines."""
    return it_kwh * liters_per_kwh


def offsite_liters(facility_kwh: float, liters_per_kwh: float) -> float:
    """Returns the litres that power plants consume for the energy at the meter."""
    return facility_kwh * liters_per_kwh
