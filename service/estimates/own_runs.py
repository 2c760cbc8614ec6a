"""A tenant's measured answers as local evidence: what each was off by, worked out when it is first needed."""

import json
import logging
import math
from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from pydantic import MISSING, ValidationError

from service.estimates.memory import estimate_memory
from service.estimates.rates import plan_run
from service.estimates.throughput import estimate_throughput
from service.evidence.service import known_rows
from service.planning.cases import InferenceCase
from service.planning.errors import PlanningError
from service.planning.estimates import ServingRun, TrainingRun
from service.planning.estimates.memory import estimate_concurrency, find_setting
from service.planning.estimates.serving import ServingEstimate
from service.planning.estimates.settings import build_case_setting
from service.planning.hardware.calibration.measured import MeasuredAnswer
from service.planning.hardware.local_evidence import (
    EstimateCorrection,
    MeasuredRun,
    NearbyRuns,
    RunGroup,
    RunSetting,
    compute_fingerprint,
)
from service.planning.notes import AnswerNotes
from service.planning.training import ModelledTime
from service.resolve import resolve_memory
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.resolve.model import resolve_model
from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest

log = logging.getLogger(__name__)

MOST_ANSWERS: Final = 100
"""Of one kind, model and device; the newest count."""

FIGURES: Final[Mapping[str, str]] = {
    "serving_ttft": "/time_to_first_token_seconds",
    "serving_ttft/median": "/time_to_first_token_seconds_percentiles/p50",
    "serving_tpot": "/time_per_output_token_seconds",
    "serving_tpot/median": "/time_per_output_token_seconds_percentiles/p50",
    "serving_throughput": "/output_tokens_per_second",
    "serving_power": "/power_per_device_watts",
    "serving_energy": "/energy_per_output_token_joules",
    "training_step": "/step_seconds",
    "training_memory": "/per_device/total_bytes",
    "inference_memory": "/per_device/total_bytes",
}
"""The figure of an answer that a kind of measured answer is compared with."""
_MEDIAN: Final = "/median"

_DeviceKey = tuple[str | None, int | None]
"""Accelerator, and parameters of the model."""


class TenantRuns:
    """The measured answers of a tenant beside the estimates of a catalog without them."""

    def __init__(self, catalog: CatalogView, known: AbstractSet[str]) -> None:
        """``known`` are fingerprints of rows that the reference set was fitted to: they count once, there."""
        self._catalog = catalog
        self._known = known
        self._answers = _group_by_device(catalog)
        self._runs: dict[tuple[str, _DeviceKey], list[MeasuredRun]] = {}
        self._solved: dict[tuple[str, RunGroup], NearbyRuns] = {}

    def compute_correction(self, family: str, setting: RunSetting) -> EstimateCorrection | None:
        """What the tenant's runs say of a kind of answer in a setting; None where none is of its group."""
        found = self._get_neighbourhood(family, setting.group)
        return None if found is None else found.compute_correction(setting)

    def list_layouts(self, family: str, group: RunGroup) -> frozenset[Hashable]:
        """Layouts of the runs of a group."""
        found = self._get_neighbourhood(family, group)
        return frozenset() if found is None else found.layouts

    def _get_neighbourhood(self, family: str, group: RunGroup) -> NearbyRuns | None:
        if (family, (group.device, group.parameter_count)) not in self._answers:
            return None
        found = self._solved.get((family, group)) or self._build_neighbourhood(family, group)
        if found is not None:
            self._solved[family, group] = found
        return found

    def _build_neighbourhood(self, family: str, group: RunGroup) -> NearbyRuns | None:
        known, burst = self._catalog.curves.deviations, group.kind.removeprefix("serving")
        deviations = known.get(f"{family}{burst}") or known.get(family)
        key = (family, (group.device, group.parameter_count))
        if deviations is None:
            return None
        if key not in self._runs:
            self._runs[key] = [
                run
                for run in (self._build_run(family, answer) for answer in self._answers[key][-MOST_ANSWERS:])
                if run is not None
            ]
        of_group = [run for run in self._runs[key] if run.setting.group == group]
        return NearbyRuns(of_group, deviations) if of_group else None

    def _build_run(self, family: str, answer: MeasuredAnswer) -> MeasuredRun | None:
        """The answer beside its estimate; None where it has none, or was counted before."""
        try:
            setting, estimated = self._estimate_answer(answer)
            ratio = answer.measured / estimated
        except (PlanningError, ValidationError, ArithmeticError, LookupError) as error:
            # A catalog changes: what a row was measured of may be gone from it.
            log.info("a measured answer has no estimate: %s", type(error).__name__)
            return None
        if setting is None or compute_fingerprint(family, setting, answer.measured) in self._known:
            return None
        return MeasuredRun(setting, math.log(ratio), answer.calibration_id)

    def _estimate_answer(self, answer: MeasuredAnswer) -> tuple[RunSetting | None, float]:
        pointer = FIGURES[answer.family]
        text = json.dumps(answer.question)
        if answer.operation == "memory":
            memory = MemoryEstimateRequest.model_validate_json(text)
            return resolve_memory_setting(memory, self._catalog), _read_figure(
                estimate_memory(memory, self._catalog), pointer
            )
        question = ThroughputEstimateRequest.model_validate_json(text).model_copy(update={"explain": False})
        return resolve_run_setting(question, self._catalog), _read_figure(
            estimate_throughput(question, self._catalog), pointer
        )


def resolve_run_setting(question: ThroughputEstimateRequest, catalog: CatalogView) -> RunSetting | None:
    """What a run of a question is of; None where its time is not that of operators."""
    run = plan_run(question, apply_calibrations(catalog, question.cluster, question.efficiency))
    if isinstance(run, ServingRun) and isinstance(run.serving, ServingEstimate):
        return run.serving.setting
    if isinstance(run, TrainingRun) and isinstance(run.time, ModelledTime):
        return build_case_setting(run.case)
    return None


def resolve_memory_setting(question: MemoryEstimateRequest, catalog: CatalogView) -> RunSetting:
    """What a question of memory is of."""
    notes = AnswerNotes()
    case = resolve_memory(question, apply_calibrations(catalog, question.cluster), notes)
    return find_setting(estimate_concurrency(case, notes) if isinstance(case, InferenceCase) else case)


def _read_figure(answer: Mapping[str, Any], pointer: str) -> float:
    """The figure of an answer that a JSON pointer names; of a quantity its value."""
    found: Any = answer
    for name in pointer.removeprefix("/").split("/"):
        found = found[name]
    return float(found["value"] if isinstance(found, Mapping) else found)


def _group_by_device(catalog: CatalogView) -> dict[tuple[str, _DeviceKey], list[MeasuredAnswer]]:
    """Answers by their kind, accelerator and model, which many of them share."""
    devices: dict[str, _DeviceKey | None] = {}
    found: dict[tuple[str, _DeviceKey], list[MeasuredAnswer]] = {}
    for answer in catalog.measured_answers:
        text = json.dumps([answer.question.get(name) for name in ("model", "cluster")])
        if text not in devices:
            devices[text] = _resolve_device(answer, catalog)
        device = devices[text]
        if answer.family in FIGURES and device is not None and answer.measured > 0.0:
            found.setdefault((answer.family.removesuffix(_MEDIAN), device), []).append(answer)
    return found


def _resolve_device(answer: MeasuredAnswer, catalog: CatalogView) -> _DeviceKey | None:
    shape = MemoryEstimateRequest if answer.operation == "memory" else ThroughputEstimateRequest
    try:
        question = shape.model_validate_json(json.dumps(answer.question))
        if question.cluster is MISSING:
            return None
        cluster = resolve_cluster(question.cluster, catalog, AnswerNotes())
        count = resolve_model(question.model, catalog, AnswerNotes()).profile.parameter_count
    except (PlanningError, ValidationError) as error:
        log.info("a measured answer is of nothing that the catalog has: %s", type(error).__name__)
        return None
    return cluster.accelerator.id, count


def apply_own_runs(catalog: CatalogView) -> CatalogView:
    """The catalog under the tenant's measured answers; itself where there are none."""
    if not catalog.measured_answers:
        return catalog
    seen: CatalogView | None = catalog.cache.get("own_runs")
    if seen is None:
        curves = replace(catalog.curves, local=TenantRuns(catalog, known_rows()))
        seen = catalog.cache["own_runs"] = replace(catalog, curves=curves)
    return seen
