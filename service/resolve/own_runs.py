"""A tenant's measured answers as evidence of a catalog: their questions resolved and estimated."""

import json
import logging
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial

from pydantic import MISSING, ValidationError

from service.kit.http.cancellation import check_cancelled
from service.planning.cases import InferenceCase
from service.planning.errors import PlanningError
from service.planning.estimates import Run, ServingRun, TrainingRun, estimate_run
from service.planning.estimates.memory import estimate_concurrency, estimate_memory, find_setting
from service.planning.estimates.own_runs import (
    DeviceKey,
    EstimatedAnswer,
    OwnRuns,
    group_answers,
    read_memory_figure,
    read_run_figure,
)
from service.planning.estimates.serving import ServingEstimate
from service.planning.estimates.settings import build_case_setting
from service.planning.hardware.calibration.measured import MeasuredAnswer
from service.planning.hardware.local_evidence import RunSetting
from service.planning.notes import AnswerNotes
from service.planning.training import ModelledTime
from service.resolve import resolve_memory, resolve_run
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.resolve.model import resolve_model
from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest

log = logging.getLogger(__name__)


def apply_own_runs(catalog: CatalogView, known: AbstractSet[str]) -> CatalogView:
    """Returns the catalog under the tenant's measured answers; itself where there are none.

    ``known`` are fingerprints of rows that the reference set was fitted to: they count once, there.
    """
    if not catalog.measured_answers:
        return catalog
    seen: CatalogView | None = catalog.cache.get("own_runs")
    if seen is None:
        curves = replace(catalog.curves, local=_build_own_runs(catalog, known))
        seen = catalog.cache["own_runs"] = replace(catalog, curves=curves)
    return seen


def _build_own_runs(catalog: CatalogView, known: AbstractSet[str]) -> OwnRuns:
    devices: dict[str, DeviceKey | None] = {}

    def find_device(answer: MeasuredAnswer) -> DeviceKey | None:
        # Many answers share their model and their cluster.
        text = json.dumps([answer.question.get(name) for name in ("model", "cluster")])
        if text not in devices:
            devices[text] = _resolve_device(answer, catalog)
        return devices[text]

    answers = group_answers(catalog.measured_answers, find_device)
    estimate = partial(_estimate_answer, catalog.copy_without_cache())
    return OwnRuns(answers, catalog.curves.deviations, known, estimate)


def _estimate_answer(catalog: CatalogView, answer: MeasuredAnswer) -> EstimatedAnswer | None:
    """Returns the estimate of a measured answer's question; None where the catalog has lost its subject."""
    text = json.dumps(answer.question)
    try:
        if answer.operation == "memory":
            return _estimate_memory(MemoryEstimateRequest.model_validate_json(text), catalog)
        run = _estimate_run(ThroughputEstimateRequest.model_validate_json(text), catalog)
        value = read_run_figure(answer.family, run)
        return None if value is None else EstimatedAnswer(_find_run_setting(run), value)
    except (PlanningError, ValidationError, ArithmeticError, LookupError) as error:
        log.info("a measured answer has no estimate: %s", type(error).__name__)
        return None


def _estimate_memory(question: MemoryEstimateRequest, catalog: CatalogView) -> EstimatedAnswer | None:
    notes = AnswerNotes()
    case = resolve_memory(question, apply_calibrations(catalog, question.cluster), notes)
    value = read_memory_figure(estimate_memory(case, notes))
    return None if value is None else EstimatedAnswer(resolve_memory_setting(question, catalog), value)


def _estimate_run(question: ThroughputEstimateRequest, catalog: CatalogView) -> Run:
    check_cancelled()
    notes = AnswerNotes()
    case = resolve_run(question, apply_calibrations(catalog, question.cluster, question.efficiency), notes)
    return estimate_run(case, notes, between=check_cancelled)


def _find_run_setting(run: Run) -> RunSetting | None:
    if isinstance(run, ServingRun) and isinstance(run.serving, ServingEstimate):
        return run.serving.setting
    if isinstance(run, TrainingRun) and isinstance(run.time, ModelledTime):
        return build_case_setting(run.case)
    return None


def resolve_run_setting(question: ThroughputEstimateRequest, catalog: CatalogView) -> RunSetting | None:
    """Returns the setting of a question's run; None where its time is not that of operators."""
    return _find_run_setting(_estimate_run(question, catalog))


def resolve_memory_setting(question: MemoryEstimateRequest, catalog: CatalogView) -> RunSetting:
    """Returns the setting of a question of memory."""
    notes = AnswerNotes()
    case = resolve_memory(question, apply_calibrations(catalog, question.cluster), notes)
    return find_setting(estimate_concurrency(case, notes) if isinstance(case, InferenceCase) else case)


def _resolve_device(answer: MeasuredAnswer, catalog: CatalogView) -> DeviceKey | None:
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
