"""Answer of a plan: rows with their estimates, counts of the search, and sensitivities of the choice."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC
from typing import NamedTuple

from service.estimates.charges import to_money
from service.estimates.cost import answer_cost_of_run
from service.estimates.memory import estimate_memory
from service.estimates.throughput import estimate_throughput
from service.estimates.utility_bill import bill_run, to_utility_bill
from service.planning.cases import InferenceCase, TrainingCase
from service.planning.cost.charges import CurrencyCharges, sum_charges
from service.planning.notes import AnswerNotes
from service.planning.quantity import scaled
from service.planning.units import HOUR_SECONDS
from service.plans.explain import build_separation
from service.plans.hints import build_launch_hints
from service.plans.pricing import PricedCandidate, RequiredFigures, map_pointer, relocate_errors
from service.plans.ranking import CandidateRanking
from service.plans.requests import build_bill_request, build_cost_request, build_requests, get_currency
from service.plans.runs import EvaluatedConfiguration, RunCache
from service.plans.sensitivity import list_sensitivities
from service.plans.space import DeviceSupply, SearchOutcome, SearchSpace
from service.resolve.prices import exchange_total
from service.resolve.training import resolve_precision
from service.schemas.answer import to_evidence, to_quantity
from service.schemas.answers import BaseEstimate
from service.schemas.bill_answers import UtilityBill
from service.schemas.plan_answers import (
    PlanCandidateCounts,
    PlanConstraint,
    PlanResult,
    PlanRow,
    PlanSupply,
    PruningRule,
    RuledOutCandidates,
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
"""Figures of a throughput estimate that a row contains."""


_BOUND_CONSTRAINTS = {
    PruningRule.STATE: "memory",
    PruningRule.WORK: "memory",
    PruningRule.LEVELS: "service_level",
}
"""Constraints that bounds prove to be violated; the others have the name of their constraint."""
_SURE_TO_FIT = 0.9
"""Probability of a fit below which a plan warns."""


def build_answer(space: SearchSpace, outcome: SearchOutcome, ranking: CandidateRanking) -> PlanResult:
    """Returns the rows with their estimates, the differences between them and their sensitivities."""
    question, notes = space.question, AnswerNotes(list(space.warnings), defaults=list(space.defaults))
    rows = [
        _build_row(_AnsweredRow(space, each.candidate, ranking.runs, notes, f"/rows/{place}"), each.rank)
        for place, each in enumerate(ranking.rows)
    ]
    given = [
        _build_row(_AnsweredRow(space, each.candidate, ranking.runs, notes, f"/given/{place}"), each.rank)
        for place, each in enumerate(ranking.given)
    ]
    answer: PlanResult = {
        "rows": rows,
        "given": given,
        "candidates": _to_counts(outcome, ranking),
        "sensitivities": list_sensitivities(space, outcome, ranking, build_row, notes),
        "launch_hints": build_launch_hints(rows[0], space.model, space.catalog) if rows else [],
        "currency_code": get_currency(question),
        "evidence": to_evidence(space.asked, notes, space.catalog.revision),
        "defaults": notes.defaults,
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if rows and rows[0].get("fit_probability", 1.0) < _SURE_TO_FIT:
        _warn_of_fit(rows[0], notes)
    if len(rows) > 1:
        answer["separation"] = build_separation(question.goal, rows[0], rows[1], space.catalog)
    if not rows:
        notes.add_gap("/rows", "NONE_FEASIBLE", _explain_no_candidate(space, answer["candidates"]))
    return answer


def _warn_of_fit(row: PlanRow, notes: AnswerNotes) -> None:
    how = "a larger constraints.headroom_share leaves more of the memory free"
    detail = f"the first row fits with a probability of {row['fit_probability']:.2f}: {how}"
    notes.warn("FIT_UNSURE", "/constraints/headroom_share", detail)


def build_row(
    space: SearchSpace,
    candidate: PricedCandidate,
    rank: int,
    runs: RunCache | None = None,
    *,
    notes: AnswerNotes | None = None,
    pointer: str = "",
) -> PlanRow:
    """Returns the row of a candidate with its estimates, and records their notes in ``notes``.

    Rank 0 marks a candidate that is ruled out. ``pointer`` is the place of the row in the answer.
    """
    return _build_row(
        _AnsweredRow(space, candidate, runs or RunCache(), notes or AnswerNotes(), pointer), rank
    )


class _AnsweredRow(NamedTuple):
    """A candidate and its place in the answer."""

    space: SearchSpace
    candidate: PricedCandidate
    runs: RunCache
    notes: AnswerNotes
    pointer: str

    @property
    def supply(self) -> DeviceSupply:
        """Supply of the candidate's devices."""
        return self.candidate.supply

    @property
    def worked(self) -> EvaluatedConfiguration:
        """Rates of the candidate."""
        return self.runs.get_run(self.space, self.candidate.kept, self.supply.accelerator_id)

    def record_notes(self, answer: BaseEstimate) -> None:
        """Records the warnings and sources of an estimate at their place in the question of the plan."""
        notes, supply = self.notes, self.supply
        for warning in answer["warnings"]:
            if supply.kind == "offer" and warning["pointer"].startswith("/cluster/intra_node_link"):
                # The plan itself names the link of an instance.
                continue
            at = map_pointer(warning["pointer"], supply)
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
                notes.cite(source, map_pointer(source["pointer"], supply))
        notes.record_calibrations(answer["evidence"]["calibration_ids"])

    def add_gap(self, name: str, code: str, detail: str) -> None:
        """Records a figure that is absent."""
        self.notes.add_gap(f"{self.pointer}/{name}", code, detail)


def _build_row(shown: _AnsweredRow, rank: int) -> PlanRow:
    space, candidate, supply, worked = shown.space, shown.candidate, shown.supply, shown.worked
    with relocate_errors(supply):
        asked = worked.configuration.throughput.model_copy(update={"explain": False})
        throughput = estimate_throughput(asked, space.catalog)
        row: PlanRow = {
            "rank": rank,
            "supply": _to_supply(supply),
            "accelerator_id": supply.accelerator_id,
            "accelerator_count": candidate.devices,
            "parallelism": throughput["parallelism"],
            "requests": build_requests(space, candidate.kept, supply, candidate.starts_at),
        }
        if candidate.name is not None:
            row["name"] = candidate.name
        if candidate.ruled_out_by is not None:
            row["ruled_out_by"] = candidate.ruled_out_by
        if candidate.starts_at is not None:
            row["starts_at"] = f"{candidate.starts_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        shown.record_notes(throughput)
        _add_settings(row, worked)
        _add_memory(row, shown)
        for name in _TIMES:
            if name in throughput:
                row[name] = throughput[name]  # type: ignore[literal-required]
        if "service_level_goodput" in throughput:
            row["service_level_share"] = throughput["service_level_goodput"]["share"]
        if RequiredFigures(space.question).has_end:
            _add_money(row, shown)
        else:
            detail = "the horizon of the service is not given: it has no cost and no energy"
            shown.add_gap("cost", "HORIZON_REQUIRED", detail)
    return row


def _to_supply(supply: DeviceSupply) -> PlanSupply:
    answer: PlanSupply = {"name": supply.name, "kind": supply.kind}
    for name in ("provider", "region", "purchase_option"):
        known = getattr(supply, name)
        if known is not None:
            answer[name] = known
    return answer


def _add_settings(row: PlanRow, worked: EvaluatedConfiguration) -> None:
    """Adds choices other than the layout, including defaults."""
    case, given = worked.run.case, worked.configuration.throughput.workload
    if isinstance(case, TrainingCase) and isinstance(given, TrainingWorkloadInput):
        row["precision"] = resolve_precision(given, case.cluster)
        row["micro_batch_size"] = case.workload.micro_batch_size
        row["gradient_accumulation_steps"] = case.workload.micro_batches
        row["recomputation"] = case.workload.recomputation
    elif isinstance(case, InferenceCase) and isinstance(given, InferenceWorkloadInput):
        row["weight_format"] = case.workload.storage.name
        row["kv_cache_precision"] = case.workload.cache_format.value
        row["replicas"] = case.replicas


def _add_memory(row: PlanRow, shown: _AnsweredRow) -> None:
    memory = estimate_memory(shown.worked.configuration.memory, shown.space.catalog)
    shown.record_notes(memory)
    if "total_bytes" in memory["per_device"]:
        row["total_bytes"] = memory["per_device"]["total_bytes"]
    else:
        shown.add_gap(
            "total_bytes", "MEMORY_UNKNOWN", "a part of the memory of the fullest device is unknown"
        )
    if "headroom_bytes" in memory:
        row["headroom_bytes"] = memory["headroom_bytes"]
    if "fit_probability" in memory:
        row["fit_probability"] = memory["fit_probability"]


def _add_money(row: PlanRow, shown: _AnsweredRow) -> None:
    """Adds time, cost, energy and emissions of the whole run."""
    space, supply, worked, start = shown.space, shown.supply, shown.worked, shown.candidate.starts_at
    duration, parts = worked.run.duration_seconds, list[CurrencyCharges | None]()
    request = build_cost_request(space, worked.configuration, supply, start)
    if request is not None:
        costed = answer_cost_of_run(request, worked.copy_run(), worked.catalog)
        shown.record_notes(costed.answer)
        parts.append(costed.cost.total)
        if costed.cost.rent is not None and costed.cost.rent.spot is not None:
            duration = costed.cost.rent.spot.lasting
    if duration is not None:
        row["duration_seconds"] = to_quantity(duration)
        row["device_hours"] = to_quantity(scaled(duration, shown.candidate.devices / HOUR_SECONDS))
    bill = build_bill_request(space, worked.configuration, supply, start)
    if bill is None:
        detail = f"the site of {supply.name} is not given"
        shown.add_gap("facility_kwh", "SITE_REQUIRED", detail)
        shown.add_gap("location_based_kg_co2e", "SITE_REQUIRED", detail)
    else:
        found = bill_run(bill, worked.copy_run(), worked.draw, worked.catalog)
        billed = to_utility_bill(bill, found, worked.catalog)
        shown.record_notes(billed)
        _add_energy(row, shown, billed)
    if supply.kind == "owned":
        charged = None if bill is None else found.electricity.charged
        parts.append(
            None
            if bill is None or charged is None
            else exchange_total(charged, bill, worked.catalog, shown.notes)
        )
    total = None if None in parts else sum_charges(parts)
    if total is None:
        shown.add_gap("cost", "PRICE_UNKNOWN", f"the cost of {supply.name} in this currency is unknown")
    else:
        row["cost"] = to_money(total.total)


def _add_energy(row: PlanRow, shown: _AnsweredRow, billed: UtilityBill) -> None:
    for name in ("facility_kwh", "peak_kw"):
        if name in billed["energy"]:
            row[name] = billed["energy"][name]
        else:
            shown.add_gap(name, "ENERGY_UNKNOWN", "the energy at the meter is unknown")
    if "location_based_kg_co2e" in billed["carbon"]:
        row["location_based_kg_co2e"] = billed["carbon"]["location_based_kg_co2e"]
    else:
        detail = "the emissions of the grid or the energy at the meter are unknown"
        shown.add_gap("location_based_kg_co2e", "EMISSIONS_UNKNOWN", detail)


def _to_counts(outcome: SearchOutcome, ranking: CandidateRanking) -> PlanCandidateCounts:
    return {
        "considered": outcome.considered,
        "scored": outcome.scored,
        "feasible": outcome.feasible,
        "ruled_out": _to_ruled_out(outcome.ruled_out),
        "pruned": [
            {"rule": rule, "candidates": outcome.pruned[rule]}
            for rule in PruningRule
            if outcome.pruned.get(rule)
        ],
        "priced": ranking.priced,
        "priced_feasible": ranking.priced_feasible,
        "priced_ruled_out": _to_ruled_out(ranking.priced_ruled_out),
    }


def _to_ruled_out(counts: Mapping[PlanConstraint, int]) -> list[RuledOutCandidates]:
    return [
        {"constraint": constraint, "candidates": counts[constraint]}
        for constraint in PlanConstraint
        if counts.get(constraint)
    ]


def _explain_no_candidate(space: SearchSpace, counts: PlanCandidateCounts) -> str:
    """Returns a sentence with the constraints that rule out most candidates."""
    found = Counter[str]()
    for each in (*counts["ruled_out"], *counts["priced_ruled_out"]):
        found[each["constraint"]] += each["candidates"]
    for pruned in counts["pruned"]:
        found[_BOUND_CONSTRAINTS.get(pruned["rule"], pruned["rule"])] += pruned["candidates"]
    if not found:
        return "the search has no candidate"
    names = ", ".join(f"{name} ({number})" for name, number in found.most_common(3))
    detail = f"no candidate is left: most are ruled out by {names}"
    if found["memory"] and space.headroom_share:
        detail += f"; each has to leave {space.headroom_share:g} of the memory free (headroom_share)"
    return detail
