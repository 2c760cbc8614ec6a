"""The energy of a utility bill."""

from service.planning.energy.load_profile import LoadProfile, build_load_series, phase_shares
from service.planning.estimates.energy import MOST_INTERVALS, RunEnergy
from service.planning.quantity import Quantity
from service.planning.units import HOUR_SECONDS
from service.schemas.answer import to_quantity
from service.schemas.energy_answers import EnergyEstimate, EnergyUseLine, LoadProfileEstimate

_LONGEST_SECONDS = MOST_INTERVALS * HOUR_SECONDS
"""Of a run whose highest interval is looked for."""


def to_energy(energy: RunEnergy) -> EnergyEstimate:
    """The energy as it is answered."""
    lines: list[EnergyUseLine] = []
    answer: EnergyEstimate = {"lines": lines}
    for item in energy.equipment:
        line: EnergyUseLine = {"name": item.name, "source": item.source}  # type: ignore[typeddict-item]
        if item.it_kwh:
            line["it_kwh"] = to_quantity(item.it_kwh)
        if item.facility_kwh:
            line["facility_kwh"] = to_quantity(item.facility_kwh)
        lines.append(line)
    if energy.it_kwh:
        answer["it_kwh"] = to_quantity(energy.it_kwh)
    if energy.facility_kwh and energy.peak_kw:
        answer["facility_kwh"] = to_quantity(energy.facility_kwh)
        answer["peak_kw"] = to_quantity(energy.peak_kw)
    if energy.facility_kwh and energy.it_kwh:
        answer["overhead_kwh"] = to_quantity(_subtract_quantities(energy.facility_kwh, energy.it_kwh))
    if energy.profiles:
        answer["load_profile"] = _to_load_profile(energy, energy.profiles.value)
    return answer


def _to_load_profile(energy: RunEnergy, profile: LoadProfile) -> LoadProfileEstimate:
    answer: LoadProfileEstimate = {
        "elapsed_seconds": profile.elapsed_seconds,
        "phases": [
            {"name": name.value, "seconds": share.seconds, "it_kwh": share.it_kwh}
            for name, share in phase_shares(profile).items()
        ],
        "interval_minutes": energy.load.interval_minutes,
    }
    is_short = profile.elapsed_seconds <= _LONGEST_SECONDS
    if energy.starts_at is not None and energy.facility_kwh and is_short:
        load = build_load_series(profile, energy.starts_at, energy.load.interval_minutes)
        answer["first_interval_at"] = f"{load.start:%Y-%m-%dT%H:%M:%SZ}"
        answer["highest_interval_kw"] = float(load.kw.max())
        if energy.load.include_intervals and len(load.kw) <= MOST_INTERVALS + 1:
            answer["intervals_kw"] = [float(kw) for kw in load.kw]
    return answer


def _subtract_quantities(larger: Quantity, smaller: Quantity) -> Quantity:
    """Of two figures that share their ends."""
    return Quantity(
        larger.value - smaller.value, larger.low - smaller.low, larger.high - smaller.high, larger.basis
    )
