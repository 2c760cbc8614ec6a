"""The energy of a utility bill."""

from service.planning.energy.load_profile import LoadProfile, phase_shares, series
from service.planning.estimates.energy import MOST_INTERVALS, Energy
from service.planning.quantity import Quantity
from service.planning.units import HOUR_SECONDS
from service.schemas.answer import quantity
from service.schemas.energy_answers import EnergyAnswer, EnergyLine, LoadProfileAnswer

_LONGEST_SECONDS = MOST_INTERVALS * HOUR_SECONDS
"""Of a run whose highest interval is looked for."""


def energy_answer(energy: Energy) -> EnergyAnswer:
    """The energy as it is answered."""
    lines: list[EnergyLine] = []
    answer: EnergyAnswer = {"lines": lines}
    for item in energy.equipment:
        line: EnergyLine = {"name": item.name, "source": item.source}  # type: ignore[typeddict-item]
        if item.it_kwh:
            line["it_kwh"] = quantity(item.it_kwh)
        if item.facility_kwh:
            line["facility_kwh"] = quantity(item.facility_kwh)
        lines.append(line)
    if energy.it_kwh:
        answer["it_kwh"] = quantity(energy.it_kwh)
    if energy.facility_kwh and energy.peak_kw:
        answer["facility_kwh"] = quantity(energy.facility_kwh)
        answer["peak_kw"] = quantity(energy.peak_kw)
    if energy.facility_kwh and energy.it_kwh:
        answer["overhead_kwh"] = quantity(_difference(energy.facility_kwh, energy.it_kwh))
    if energy.profiles:
        answer["load_profile"] = _load_profile_answer(energy, energy.profiles.value)
    return answer


def _load_profile_answer(energy: Energy, profile: LoadProfile) -> LoadProfileAnswer:
    answer: LoadProfileAnswer = {
        "elapsed_seconds": profile.elapsed_seconds,
        "phases": [
            {"name": name.value, "seconds": share.seconds, "it_kwh": share.it_kwh}
            for name, share in phase_shares(profile).items()
        ],
        "interval_minutes": energy.load.interval_minutes,
    }
    is_short = profile.elapsed_seconds <= _LONGEST_SECONDS
    if energy.starts_at is not None and energy.facility_kwh and is_short:
        load = series(profile, energy.starts_at, energy.load.interval_minutes)
        answer["first_interval_at"] = f"{load.start:%Y-%m-%dT%H:%M:%SZ}"
        answer["highest_interval_kw"] = float(load.kw.max())
        if energy.load.include_intervals and len(load.kw) <= MOST_INTERVALS + 1:
            answer["intervals_kw"] = [float(kw) for kw in load.kw]
    return answer


def _difference(larger: Quantity, smaller: Quantity) -> Quantity:
    """Of two figures that share their ends."""
    return Quantity(
        larger.value - smaller.value, larger.low - smaller.low, larger.high - smaller.high, larger.basis
    )
