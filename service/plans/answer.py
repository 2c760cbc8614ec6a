"""The answer of a plan: rows with their estimates, what was searched, and what the choice hangs on."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC
from typing import NamedTuple

from service.estimates.charges import to_money
from service.estimates.cost import answer_cost_of_run
from service.estimates.memory import estimate_memory
from service.estimates.payment import electricity_paid
from service.estimates.throughput import estimate_throughput
from service.estimates.utility_bill import bill_of_run
from service.planning.cases import InferenceCase, TrainingCase
from service.planning.cost.charges import Charges, sum_charges
from service.planning.notes import Notes
from service.planning.quantity import scaled
from service.planning.units import HOUR_SECONDS
from service.plans.explain import separation
from service.plans.hints import launch_hints
from service.plans.pricing import Candidate, Wanted, located, place_of
from service.plans.ranking import Ranking
from service.plans.requests import bill_request, cost_request, currency_of, requests_of
from service.plans.runs import Runs, Worked
from service.plans.sensitivity import sensitivities
from service.plans.space import Outcome, Space, Supply
from service.resolve.training import precision_of
from service.schemas.answer import evidence, quantity
from service.schemas.answers import Answer
from service.schemas.bill_answers import UtilityBillAnswer
from service.schemas.plan_answers import (
    CandidateCounts,
    PlanAnswer,
    PlanConstraint,
    PlanRow,
    PruningRule,
    RuledOutCandidates,
    SupplyAnswer,
)
from service.schemas.workloads import InferenceWorkloadInput, TrainingWorkloadInput

_TIMES = (
    "step_seconds",
    "tokens_per_second",
    "model_flops_utilization",
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "request_seconds",
)
"""Figures of a throughput estimate that a row shows."""


_SURE_TO_FIT = 0.9
"""Probability of a fit below which a plan says so."""


def answer_of(space: Space, outcome: Outcome, ranking: Ranking) -> PlanAnswer:
    """The rows with their estimates, and what separates and sways them."""
    question, notes = space.question, Notes(list(space.warnings))
    rows = [
        _row(_Row(space, each.candidate, ranking.runs, notes, f"/rows/{place}"), each.rank)
        for place, each in enumerate(ranking.rows)
    ]
    given = [
        _row(_Row(space, each.candidate, ranking.runs, notes, f"/given/{place}"), each.rank)
        for place, each in enumerate(ranking.given)
    ]
    answer: PlanAnswer = {
        "rows": rows,
        "given": given,
        "candidates": _counts(outcome, ranking),
        "sensitivities": sensitivities(space, outcome, ranking, row_of, notes),
        "launch_hints": launch_hints(rows[0], space.model, space.catalog) if rows else [],
        "currency_code": currency_of(question),
        "evidence": evidence(question, notes, space.catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if rows and rows[0].get("fit_probability", 1.0) < _SURE_TO_FIT:
        _warn_of_fit(rows[0], notes)
    if len(rows) > 1:
        answer["separation"] = separation(question.goal, rows[0], rows[1], space.catalog)
    if not rows:
        notes.gap("/rows", "NONE_FEASIBLE", _why_none(answer["candidates"]))
    return answer


def _warn_of_fit(row: PlanRow, notes: Notes) -> None:
    how = "constraints.headroom_share keeps a part free"
    if "replicas" in row:
        how = "a smaller memory_fraction keeps a part free"
    detail = f"the first row fits with a probability of {row['fit_probability']:.2f}: {how}"
    notes.warn("FIT_UNSURE", "/constraints/headroom_share", detail)


def row_of(
    space: Space,
    candidate: Candidate,
    rank: int,
    runs: Runs | None = None,
    *,
    notes: Notes | None = None,
    pointer: str = "",
) -> PlanRow:
    """A candidate with its estimates, and in ``notes`` what these say; rank 0 for one that is ruled out.

    ``pointer`` is the row's place in the answer.
    """
    return _row(_Row(space, candidate, runs or Runs(), notes or Notes(), pointer), rank)


class _Row(NamedTuple):
    """A candidate that is answered, and where."""

    space: Space
    candidate: Candidate
    runs: Runs
    notes: Notes
    pointer: str

    @property
    def supply(self) -> Supply:
        """Where its devices come from."""
        return self.candidate.supply

    @property
    def worked(self) -> Worked:
        """Its rates."""
        return self.runs.of(self.space, self.candidate.kept, self.supply.accelerator_id)

    def take(self, answer: Answer) -> None:
        """Note what an estimate says of the question, at its place in that of the plan."""
        notes, supply = self.notes, self.supply
        for warning in answer["warnings"]:
            at = place_of(warning["pointer"], supply)
            detail = f"{supply.name}: {warning['detail']}" if at == supply.pointer else warning["detail"]
            said = next(
                (one for one in notes.warnings if one["code"] == warning["code"] and one["pointer"] == at),
                None,
            )
            if said is None:
                notes.warn(warning["code"], at, detail)
            elif at == supply.pointer and detail not in said["detail"]:
                said["detail"] += f"; {detail}"
        cited = {(source["kind"], source["id"]) for source in notes.sources}
        for source in answer["evidence"]["sources"]:
            if (source["kind"], source["id"]) not in cited:
                notes.cite(source, place_of(source["pointer"], supply))
        notes.calibrated(answer["evidence"]["calibration_ids"])

    def gap(self, name: str, code: str, detail: str) -> None:
        """Name a figure that is absent."""
        self.notes.gap(f"{self.pointer}/{name}", code, detail)


def _row(shown: _Row, rank: int) -> PlanRow:
    space, candidate, supply, worked = shown.space, shown.candidate, shown.supply, shown.worked
    with located(supply):
        asked = worked.configuration.throughput.model_copy(update={"explain": False})
        throughput = estimate_throughput(asked, space.catalog)
        row: PlanRow = {
            "rank": rank,
            "supply": _supply_answer(supply),
            "accelerator_id": supply.accelerator_id,
            "accelerator_count": candidate.devices,
            "parallelism": throughput["parallelism"],
            "requests": requests_of(space, candidate.kept, supply, candidate.starts_at),
        }
        if candidate.name is not None:
            row["name"] = candidate.name
        if candidate.ruled_out_by is not None:
            row["ruled_out_by"] = candidate.ruled_out_by
        if candidate.starts_at is not None:
            row["starts_at"] = f"{candidate.starts_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        shown.take(throughput)
        _add_settings(row, worked)
        _add_memory(row, shown)
        for name in _TIMES:
            if name in throughput:
                row[name] = throughput[name]  # type: ignore[literal-required]
        if "service_level_goodput" in throughput:
            row["service_level_share"] = throughput["service_level_goodput"]["share"]
        if Wanted(space.question).has_end:
            _add_money(row, shown)
        else:
            detail = "how long the service runs is not given: it has no cost and no energy"
            shown.gap("cost", "HORIZON_REQUIRED", detail)
    return row


def _supply_answer(supply: Supply) -> SupplyAnswer:
    answer: SupplyAnswer = {"name": supply.name, "kind": supply.kind}
    for name in ("provider", "region", "purchase_option"):
        known = getattr(supply, name)
        if known is not None:
            answer[name] = known
    return answer


def _add_settings(row: PlanRow, worked: Worked) -> None:
    """Choices beside the layout, defaults filled in."""
    case, given = worked.run.case, worked.configuration.throughput.workload
    if isinstance(case, TrainingCase) and isinstance(given, TrainingWorkloadInput):
        row["precision"] = precision_of(given, case.cluster)
        row["micro_batch_size"] = case.workload.micro_batch_size
        row["gradient_accumulation_steps"] = case.workload.micro_batches
        row["recomputation"] = case.workload.recomputation
    elif isinstance(case, InferenceCase) and isinstance(given, InferenceWorkloadInput):
        row["weight_format"] = case.workload.storage.name
        row["kv_cache_precision"] = given.kv_cache_precision
        row["replicas"] = case.replicas


def _add_memory(row: PlanRow, shown: _Row) -> None:
    memory = estimate_memory(shown.worked.configuration.memory, shown.space.catalog)
    shown.take(memory)
    if "total_bytes" in memory["per_device"]:
        row["total_bytes"] = memory["per_device"]["total_bytes"]
    else:
        shown.gap("total_bytes", "MEMORY_UNKNOWN", "a part of the memory of the fullest device is not known")
    if "headroom_bytes" in memory:
        row["headroom_bytes"] = memory["headroom_bytes"]
    if "fit_probability" in memory:
        row["fit_probability"] = memory["fit_probability"]


def _add_money(row: PlanRow, shown: _Row) -> None:
    """Time, cost, energy and emissions of the whole run."""
    space, supply, worked, start = shown.space, shown.supply, shown.worked, shown.candidate.starts_at
    duration, parts = worked.run.duration_seconds, list[Charges | None]()
    request = cost_request(space, worked.configuration, supply, start)
    if request is not None:
        costed = answer_cost_of_run(request, worked.again(), worked.catalog)
        shown.take(costed.answer)
        parts.append(costed.cost.total)
        if costed.cost.rent is not None and costed.cost.rent.spot is not None:
            duration = costed.cost.rent.spot.lasting
    if duration is not None:
        row["duration_seconds"] = quantity(duration)
        row["device_hours"] = quantity(scaled(duration, shown.candidate.devices / HOUR_SECONDS))
    bill = bill_request(space, worked.configuration, supply, start)
    if bill is None:
        detail = f"the building of {supply.name} is not given"
        shown.gap("facility_kwh", "SITE_REQUIRED", detail)
        shown.gap("location_based_kg_co2e", "SITE_REQUIRED", detail)
    else:
        billed = bill_of_run(bill, worked.again(), worked.draw, worked.catalog)
        shown.take(billed)
        _add_energy(row, shown, billed)
    if supply.kind == "owned":
        parts.append(None if bill is None else electricity_paid(billed, bill, worked.catalog, shown.notes))
    total = None if None in parts else sum_charges(parts)
    if total is None:
        shown.gap("cost", "PRICE_UNKNOWN", f"what {supply.name} costs in this currency is not known")
    else:
        row["cost"] = to_money(total.total)


def _add_energy(row: PlanRow, shown: _Row, billed: UtilityBillAnswer) -> None:
    for name in ("facility_kwh", "peak_kw"):
        if name in billed["energy"]:
            row[name] = billed["energy"][name]
        else:
            shown.gap(name, "ENERGY_UNKNOWN", "the energy at the meter is not known")
    if "location_based_kg_co2e" in billed["carbon"]:
        row["location_based_kg_co2e"] = billed["carbon"]["location_based_kg_co2e"]
    else:
        detail = "the emissions of the grid, or the energy at the meter, are not known"
        shown.gap("location_based_kg_co2e", "EMISSIONS_UNKNOWN", detail)


def _counts(outcome: Outcome, ranking: Ranking) -> CandidateCounts:
    return {
        "considered": outcome.considered,
        "scored": outcome.scored,
        "feasible": outcome.feasible,
        "ruled_out": _by_constraint(outcome.ruled_out),
        "pruned": [
            {"rule": rule, "candidates": outcome.pruned[rule]}
            for rule in PruningRule
            if outcome.pruned.get(rule)
        ],
        "priced": ranking.priced,
        "priced_feasible": ranking.priced_feasible,
        "priced_ruled_out": _by_constraint(ranking.priced_ruled_out),
    }


def _by_constraint(counts: Mapping[PlanConstraint, int]) -> list[RuledOutCandidates]:
    return [
        {"constraint": constraint, "candidates": counts[constraint]}
        for constraint in PlanConstraint
        if counts.get(constraint)
    ]


def _why_none(counts: CandidateCounts) -> str:
    """What rules most candidates out."""
    found = Counter[str]()
    for each in (*counts["ruled_out"], *counts["priced_ruled_out"]):
        found[each["constraint"]] += each["candidates"]
    if not found:
        return "the search has no candidate"
    names = ", ".join(f"{name} ({number})" for name, number in found.most_common(3))
    return f"no candidate is left: most are ruled out by {names}"
