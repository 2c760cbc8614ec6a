"""Energy of a run as it is answered."""

from service.planning.estimates.energy import RunEnergy
from service.planning.estimates.load_figures import LoadFigures, compute_overhead, describe_load
from service.schemas.answer import to_quantities, to_quantity
from service.schemas.energy_answers import EnergyEstimate, LoadProfileEstimate


def to_energy(energy: RunEnergy) -> EnergyEstimate:
    """Maps the energy of a run, by equipment and in all."""
    answer: EnergyEstimate = {"lines": [to_quantities(item) for item in energy.equipment]}
    if energy.it_kwh:
        answer["it_kwh"] = to_quantity(energy.it_kwh)
    if energy.facility_kwh and energy.peak_kw:
        answer["facility_kwh"] = to_quantity(energy.facility_kwh)
        answer["peak_kw"] = to_quantity(energy.peak_kw)
    overhead, load = compute_overhead(energy), describe_load(energy)
    if overhead is not None:
        answer["overhead_kwh"] = to_quantity(overhead)
    if load is not None:
        answer["load_profile"] = _to_load_profile(load)
    return answer


def _to_load_profile(load: LoadFigures) -> LoadProfileEstimate:
    answer: LoadProfileEstimate = {
        "elapsed_seconds": load.elapsed_seconds,
        "phases": [
            {"name": name, "seconds": share.seconds, "it_kwh": share.it_kwh}  # type: ignore[typeddict-item]
            for name, share in load.phases
        ],
        "interval_minutes": load.interval_minutes,
    }
    if load.intervals is not None:
        answer["first_interval_at"] = f"{load.intervals.start:%Y-%m-%dT%H:%M:%SZ}"
        answer["highest_interval_kw"] = load.intervals.highest_kw
        if load.intervals.kw is not None:
            answer["intervals_kw"] = list(load.intervals.kw)
    return answer
