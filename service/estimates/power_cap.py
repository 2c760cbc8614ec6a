"""What if devices were held below their power limit: time against energy and money."""

from service.estimates.rates import plan_run
from service.estimates.utility_bill import bill_run
from service.planning.energy.power_cap import apply_power_cap
from service.planning.errors import PlanningError
from service.planning.estimates import Run, TrainingRun
from service.planning.estimates.power import DevicePower, estimate_draw, list_training_works
from service.planning.quantity import EvidenceBasis, Quantity, combine
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_quantity
from service.schemas.bill_answers import UtilityBill
from service.schemas.what_if import PowerCapEstimate, PowerCapEstimateRequest, PowerCapFigures

_MEASURED_ERROR = ((2 / 3, 0.04), (0.0, 0.14))
"""Largest error of the time, by the share of the power that is left (docs/methods/utility-bill.md)."""


def estimate_power_cap(question: PowerCapEstimateRequest, catalog: CatalogView) -> PowerCapEstimate:
    """Time, energy and money of a training run whose devices are held below their limit."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    draw, limit, duration = estimate_draw(run), _get_power_limit(run), run.duration_seconds
    works = list_training_works(run) if isinstance(run, TrainingRun) else None
    if not isinstance(run, TrainingRun) or works is None or draw is None or duration is None:
        detail = "a cap is answered for a training run whose operators are known and whose length is given"
        raise PlanningError("WORK_NOT_MODELLED", "/workload", detail)
    rates = run.case.curves.calibration.power.get_rates(run.case.cluster.accelerator.generation)
    uncapped = apply_power_cap(works, limit, limit, rates)
    caps = []
    for place, cap in enumerate(question.power_caps_watts):
        pointer = f"/power_caps_watts/{place}"
        if cap > limit:
            raise PlanningError("POWER_CAP_TOO_HIGH", pointer, f"the device is limited to {limit:.0f} W")
        try:
            held = apply_power_cap(works, cap, limit, rates)
        except PlanningError as error:
            raise PlanningError(error.code, pointer, error.detail) from error
        slowdown = _estimate_slowdown(held.slowdown, held.watts / uncapped.watts)
        drawn = _cap_draw(draw, held.watts / uncapped.watts, cap)
        slower = _slow_run(run, duration, slowdown)
        answer = bill_run(question, slower, drawn, catalog)
        caps.append(_to_cap_figures(answer, slowdown, drawn, held.clock, cap))
    first = run._replace(notes=run.notes.copy())
    whole = bill_run(question, first, draw, catalog)
    one = Quantity(1.0, 1.0, 1.0, draw.watts.basis)
    result: PowerCapEstimate = {
        "uncapped": _to_cap_figures(whole, one, draw, uncapped.clock, None),
        "caps": caps,
        "evidence": whole["evidence"],
        "warnings": whole["warnings"],
        "gaps": whole["gaps"],
    }
    _add_least_energy(result)
    return result


def _get_power_limit(run: Run) -> float:
    limit = run.case.cluster.accelerator.power_limit_watts
    if limit is None:
        detail = "the power limit of the accelerator is not known"
        raise PlanningError("POWER_UNKNOWN", "/cluster/accelerator", detail)
    return limit


def _estimate_slowdown(slowdown: float, left: float) -> Quantity:
    """With the largest error that was measured at such a cap; nothing gets faster."""
    error = next(error for share, error in _MEASURED_ERROR if left >= share) if slowdown > 1.0 else 0.0
    return Quantity(
        slowdown, max(1.0, slowdown * (1 - error)), slowdown * (1 + error), EvidenceBasis.REFERENCE
    )


def _cap_draw(draw: DevicePower, share: float, cap: float) -> DevicePower:
    """The draw under a cap: the same share of each end, and never above it."""
    value, low, high, basis = draw.watts
    ends = [min(cap, end * share) for end in (value, low, high)]
    return draw._replace(watts=Quantity(ends[0], min(ends[:2]), max(ends[0], ends[2]), basis))


def _slow_run(run: TrainingRun, duration: Quantity, slowdown: Quantity) -> TrainingRun:
    """The run, of ``duration``, when its work takes so many times as long."""
    found, lasting = run.interruptions, run.duration_seconds
    if found.productive is None:
        lasting = combine(lambda t, s: t * s, duration, slowdown)
    else:
        found = found._replace(productive=combine(lambda t, s: t * s, found.productive, slowdown))
        lasting = found.duration
    return run._replace(interruptions=found, duration_seconds=lasting, notes=run.notes.copy())


def _to_cap_figures(
    answer: UtilityBill, slowdown: Quantity, draw: DevicePower, clock: float, cap: float | None
) -> PowerCapFigures:
    figures: PowerCapFigures = {
        "clock_share": clock,
        "slowdown": to_quantity(slowdown),
        "power_per_device_watts": to_quantity(draw.watts),
        "duration_seconds": answer["duration_seconds"],
    }
    if cap is not None:
        figures["power_cap_watts"] = cap
    energy = answer["energy"]
    if "it_kwh" in energy:
        figures["it_kwh"] = energy["it_kwh"]
    if "facility_kwh" in energy:
        figures["facility_kwh"] = energy["facility_kwh"]
    if "peak_kw" in energy:
        figures["peak_kw"] = energy["peak_kw"]
    if "total" in answer["electricity"]:
        figures["electricity"] = answer["electricity"]["total"]
    if "total" in answer["rent"]:
        figures["rent"] = answer["rent"]["total"]
    if "location_based_kg_co2e" in answer["carbon"]:
        figures["location_based_kg_co2e"] = answer["carbon"]["location_based_kg_co2e"]
    return figures


def _add_least_energy(result: PowerCapEstimate) -> None:
    known = [cap for cap in result["caps"] if "it_kwh" in cap]
    if not known or "it_kwh" not in result["uncapped"]:
        return
    best = min(known, key=lambda cap: cap["it_kwh"]["value"])
    if best["it_kwh"]["value"] < result["uncapped"]["it_kwh"]["value"]:
        result["least_energy_watts"] = best["power_cap_watts"]
