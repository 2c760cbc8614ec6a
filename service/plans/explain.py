"""Comparison of one row of a plan with the next.

Two estimates of the same model share errors as far as they share device, software, precision and layout, so
the ratio of two rows is more certain than either. The correlation comes from measured runs
(:func:`service.planning.hardware.local_evidence.compute_correlation`); it is zero between different devices.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pydantic import MISSING

from service.estimates.cost import estimate_cost
from service.estimates.throughput import estimate_throughput
from service.estimates.utility_bill import estimate_utility_bill
from service.planning.hardware.local_evidence import LogDeviations, RunSetting, compute_correlation
from service.planning.quantity import (
    EvidenceBasis,
    LogReach,
    Quantity,
    compute_log_reach,
    compute_ratio_reach,
    exact,
)
from service.resolve.catalog import CatalogView
from service.resolve.own_runs import resolve_run_setting
from service.schemas.answers import ThroughputEstimate
from service.schemas.plan_answers import PlanRow, PlanRowDifference, PlanSeparation
from service.schemas.plans import PlanGoal
from service.schemas.workloads import TrainingWorkloadInput

_SUPPLY: Final = {
    "name": "supply",
    "kind": "supply_kind",
    "provider": "provider",
    "region": "region",
    "purchase_option": "purchase_option",
}
_LAYOUT: Final = (
    "tensor",
    "pipeline",
    "data",
    "context",
    "expert",
    "expert_tensor",
    "sequence_parallel",
    "sharding",
    "pipeline_schedule",
    "virtual_stages",
    "overlap_expert_communication",
    "overlap_tensor_communication",
)
_CHOICES: Final = (
    "precision",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "recomputation",
    "weight_format",
    "kv_cache_precision",
    "replicas",
    "starts_at",
)
_UNITS: Final = {
    "cost": "",
    "duration_seconds": "seconds",
    "request_seconds": "seconds",
    "location_based_kg_co2e": "kg_co2e",
    "accelerator_count": "devices",
    "step_seconds": "seconds",
    "tokens_per_second": "tokens_per_second",
    "model_flops_utilization": "share",
    "time_to_first_token_seconds": "seconds",
    "time_per_output_token_seconds": "seconds",
    "service_level_share": "share",
    "total_bytes": "bytes",
    "device_hours": "hours",
    "facility_kwh": "kwh",
    "peak_kw": "kw",
}
"""Headlines of a row and their units. The unit of a cost is its currency."""
_TIMES: Final = ("duration_seconds", "request_seconds")
_POWER: Final = "serving_power"
"""Kind of measured answer used for the draw of devices, since too few training runs were measured."""
_NO_DOUBT: Final = LogReach(0.0, 0.0)
_SAME: Final = 1e-9
"""Relative difference up to which two figures count as equal."""


def build_separation(goal: PlanGoal, first: PlanRow, second: PlanRow, catalog: CatalogView) -> PlanSeparation:
    """Returns differences between two rows in choices, headlines and parts of the goal's figure."""
    name = select_headline(goal, first)
    names = (name, *(each for each in _UNITS if each != name))
    figures = [
        _build_difference(each, _get_figure(first, each), _get_figure(second, each), _get_unit(each, first))
        for each in names
    ]
    parts = split_headline(name, first, catalog), split_headline(name, second, catalog)
    return {
        "settings": _list_setting_differences(first, second),
        "figures": [each for each in figures if each],
        "parts": _sort_differences(*parts, unit=_get_unit(name, first)),
        "within_interval": is_within(name, first, second, catalog),
    }


def select_headline(goal: PlanGoal, row: PlanRow) -> str:
    """Returns the name of the figure that a goal ranks by. A Pareto set is ranked by cost."""
    if goal == "fastest":
        return "duration_seconds" if _is_training(row) else "request_seconds"
    if goal == "cleanest":
        return "location_based_kg_co2e"
    return "accelerator_count" if goal == "fewest_devices" else "cost"


def _is_training(row: PlanRow) -> bool:
    return isinstance(row["requests"]["throughput"].workload, TrainingWorkloadInput)


def _list_setting_differences(first: PlanRow, second: PlanRow) -> list[PlanRowDifference]:
    one, other = _list_choices(first), _list_choices(second)
    found = [_build_difference(name, one.get(name), other.get(name)) for name in one | other]
    return [each for each in found if each]


def _list_choices(row: PlanRow) -> dict[str, str | float]:
    """Returns every choice of a row by name."""
    supply, layout, members = _to_mapping(row["supply"]), _to_mapping(row["parallelism"]), _to_mapping(row)
    names = [(said, supply.get(name)) for name, said in _SUPPLY.items()]
    names += [(name, members[name]) for name in ("accelerator_id", "accelerator_count")]
    names += [(name, layout.get(name)) for name in _LAYOUT]
    names += [(name, members.get(name)) for name in _CHOICES]
    return {name: _to_plain_value(value) for name, value in names if value is not None}


def _to_mapping(shape: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Returns a typed dictionary as a mapping, for access by dynamic names."""
    members: Mapping[str, Any] = shape
    return members


def _to_plain_value(value: str | float) -> str | float:
    """Returns a choice as text or number, with booleans as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return float(value) if isinstance(value, int | float) else str(value)


def _build_difference(
    name: str, one: str | float | None, other: str | float | None, unit: str | None = None
) -> PlanRowDifference | None:
    """Returns both values if they differ, or None."""
    if _is_same(one, other):
        return None
    found: PlanRowDifference = {"name": name}
    if one is not None:
        found["first"] = one
    if other is not None:
        found["second"] = other
    if unit is not None:
        found["unit"] = unit
    return found


def _is_same(one: str | float | None, other: str | float | None) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_SAME)
    return one == other


def _get_unit(name: str, row: PlanRow) -> str:
    return row["cost"]["currency_code"] if name == "cost" and "cost" in row else _UNITS[name]


def _get_figure(row: PlanRow, name: str) -> float | None:
    """Returns the middle of a headline, or None if the row has none."""
    known = _get_quantity(row, name)
    return None if known is None else known.value


def _get_quantity(row: PlanRow, name: str) -> Quantity | None:
    found = _to_mapping(row).get(name)
    if found is None:
        return None
    if name == "cost":
        value, low, high = (float(found[end]) for end in ("amount", "low", "high"))
        return Quantity(value, low, high, found["basis"])
    if isinstance(found, int):
        return exact(float(found))
    return Quantity(found["value"], found["low"], found["high"], EvidenceBasis(found["basis"]))


def split_headline(name: str, row: PlanRow, catalog: CatalogView) -> dict[str, float]:
    """Returns the parts of a row's headline: phases, charges or kinds of equipment. Counts have none.

    The phases of a training run cover all its steps and its interruptions.
    """
    if name == "duration_seconds":
        return _sum_run_phases(row, catalog)
    if name == "request_seconds":
        return _sum_phases(row, catalog)
    if name == "cost":
        return _sum_charges(row, catalog)
    return _sum_emissions(row, catalog) if name == "location_based_kg_co2e" else {}


def _estimate_throughput(row: PlanRow, catalog: CatalogView) -> ThroughputEstimate:
    question = row["requests"]["throughput"]
    return estimate_throughput(question.model_copy(update={"explain": False, "scaling": MISSING}), catalog)


def _sum_phases(row: PlanRow, catalog: CatalogView) -> dict[str, float]:
    return _sum_parts(
        (phase["phase"], phase["seconds"]["value"])
        for phase in _estimate_throughput(row, catalog)["breakdown"]
    )


def _sum_run_phases(row: PlanRow, catalog: CatalogView) -> dict[str, float]:
    answer, lasting = _estimate_throughput(row, catalog), _get_figure(row, "duration_seconds")
    if lasting is None or "step_seconds" not in answer or "duration_seconds" not in answer:
        return {}
    progress = answer["goodput"]["value"] if "goodput" in answer else 1.0
    productive = answer["duration_seconds"]["value"] * progress
    steps = productive / answer["step_seconds"]["value"]
    parts = _sum_parts((phase["phase"], phase["seconds"]["value"] * steps) for phase in answer["breakdown"])
    if not math.isclose(lasting, productive, rel_tol=_SAME):
        parts["interruptions"] = lasting - productive
    return parts


def _sum_charges(row: PlanRow, catalog: CatalogView) -> dict[str, float]:
    """Returns the lines of the cost. Electricity of owned devices is the remainder of the row's cost."""
    asked, cost = row["requests"].get("cost"), _get_figure(row, "cost")
    if cost is None:
        return {}
    lines = [] if asked is None else estimate_cost(asked, catalog)["lines"]
    parts = _sum_parts((line["name"], float(line["amount"]["amount"])) for line in lines if "amount" in line)
    if row["supply"]["kind"] == "owned":
        parts["electricity"] = cost - math.fsum(parts.values())
    return parts


def _sum_emissions(row: PlanRow, catalog: CatalogView) -> dict[str, float]:
    """Returns emissions by kind of equipment, each at the mean intensity of the whole."""
    asked, emitted = row["requests"].get("utility_bill"), _get_figure(row, "location_based_kg_co2e")
    if asked is None or emitted is None:
        return {}
    energy = estimate_utility_bill(asked, catalog)["energy"]
    drawn = [
        (line["name"], line["facility_kwh"]["value"]) for line in energy["lines"] if "facility_kwh" in line
    ]
    whole = math.fsum(kwh for _, kwh in drawn)
    return _sum_parts((name, emitted * kwh / whole) for name, kwh in drawn) if whole else {}


def _sum_parts(parts: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, amount in parts:
        found[name] = found.get(name, 0.0) + amount
    return found


def _sort_differences(
    one: Mapping[str, float], other: Mapping[str, float], unit: str
) -> list[PlanRowDifference]:
    """Returns the parts that differ, by the size of their difference. Parts that a row lacks are absent."""
    names = [name for name in {**one, **other} if one.get(name) or other.get(name)]
    found = [_build_difference(name, one.get(name), other.get(name), unit) for name in names]
    return sorted(
        (each for each in found if each),
        key=lambda each: -abs(one.get(each["name"], 0.0) - other.get(each["name"], 0.0)),
    )


def is_within(name: str, first: PlanRow, second: PlanRow, catalog: CatalogView) -> bool:
    """Returns true if the first row is better by less than the uncertainty of the estimates.

    Uncertainty of time is correlated as measured times are, that of power as measured draws are, and that of
    a price fully within one supply. Equal runs differ in their charges only.
    """
    one, other = _get_quantity(first, name), _get_quantity(second, name)
    if one is None or other is None:
        return False
    if min(one.low, other.low) <= 0.0:
        # A figure that may be 0 has no logarithm; its ends are used directly, as if independent.
        return other.value - one.value <= math.hypot(one.high - one.value, other.value - other.low)
    whole, against = compute_log_reach(one), compute_log_reach(other)
    timed, beside = _compute_time_doubt(name, first, whole), _compute_time_doubt(name, second, against)
    alike = _ComparedRuns.from_rows(first, second, catalog)
    reach = math.hypot(
        compute_ratio_reach(timed, beside, alike.compute_correlation(_get_family(name, first))),
        compute_ratio_reach(
            whole.subtract(timed),
            against.subtract(beside),
            _find_rest_correlation(name, first, second, alike),
        ),
    )
    return math.log(other.value / one.value) <= reach


def _compute_time_doubt(name: str, row: PlanRow, whole: LogReach) -> LogReach:
    """Returns the uncertainty of a figure that comes from the time of the work."""
    timed = _get_quantity(row, name if name in _TIMES else "duration_seconds")
    return (
        _NO_DOUBT
        if timed is None or name == "accelerator_count"
        else compute_log_reach(timed).limit_to(whole)
    )


def _find_rest_correlation(name: str, first: PlanRow, second: PlanRow, alike: "_ComparedRuns") -> float:
    """Returns the correlation of uncertainty from prices, or power of emissions and owned devices."""
    one, other = first["supply"], second["supply"]
    if name == "cost" and one["name"] != other["name"]:
        return 0.0
    is_price = name == "cost" and one["kind"] != "owned"
    return 1.0 if is_price else alike.compute_correlation(_POWER)


class _ComparedRuns(NamedTuple):
    """Run settings of two rows. ``same`` is true if both are one run."""

    same: bool
    one: RunSetting | None
    other: RunSetting | None
    known: Mapping[str, LogDeviations]

    @classmethod
    def from_rows(cls, first: PlanRow, second: PlanRow, catalog: CatalogView) -> "_ComparedRuns":
        """Builds the comparison of two rows."""
        asked, against = first["requests"]["throughput"], second["requests"]["throughput"]
        known = catalog.curves.deviations
        if asked == against:
            return cls(same=True, one=None, other=None, known=known)
        one, other = resolve_run_setting(asked, catalog), resolve_run_setting(against, catalog)
        return cls(same=False, one=one, other=other, known=known)

    def compute_correlation(self, family: str) -> float:
        """Returns the correlation of errors for a kind of answer."""
        if self.same:
            return 1.0
        if self.one is None or self.other is None:
            return 0.0
        burst = self.one.group.kind.removeprefix("serving")
        deviations = self.known.get(f"{family}{burst}") or self.known.get(family)
        return 0.0 if deviations is None else compute_correlation(deviations, self.one, self.other)


def _get_family(name: str, row: PlanRow) -> str:
    """Returns the kind of measured answer for the time behind a headline."""
    if _is_training(row):
        return "training_step"
    return "serving_tpot" if name == "request_seconds" else "serving_throughput"
