"""Ranges and settings of a search for the best configurations of a served model, from a question."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final, NamedTuple

from pydantic import MISSING

from service.planning.cases import InferenceCase
from service.planning.errors import PlanningError
from service.planning.estimates.frontier import (
    FrontierRanges,
    FrontierSetting,
    SearchLimits,
    is_searchable,
)
from service.planning.hardware.cluster import Cluster
from service.planning.inference import SearchDegrees, list_batch_sizes
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.resolve import resolve_served
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import replace_accelerator, resolve_cluster
from service.resolve.load import resolve_lengths
from service.resolve.model import ResolvedModel, resolve_model
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.frontier import MOST_CONFIGURATIONS, MOST_VARIANTS, ThroughputFrontierRequest
from service.schemas.references import ClusterInput, ParallelismInput
from service.schemas.workloads import InferenceWorkloadInput

_SEARCHED: Final = ("concurrency", "request_rate_per_second", "arrivals")
"""Members of a workload that a search sets."""
_APART: Final = ("disaggregated", "passes")
"""Members that ask for something else than replicas of one layout that generate tokens."""


class SettingQuestion(NamedTuple):
    """Cluster and workload of a setting, as a question names them."""

    cluster: ClusterInput
    workload: InferenceWorkloadInput


class FrontierResolver:
    """The search of a question; ``notes`` take what is looked up."""

    def __init__(self, question: ThroughputFrontierRequest, catalog: CatalogView, notes: AnswerNotes) -> None:
        self._question, self._catalog, self._notes = question, catalog, notes
        self._model: ResolvedModel = resolve_model(question.model, catalog, notes)
        for name in _SEARCHED:
            if name in question.workload.model_fields_set:
                notes.warn("NOT_USED", f"/workload/{name}", "requests at a time are what the search varies")
        self.settings: list[SettingQuestion] = []
        """Questions of the settings that were listed."""

    def is_searchable(self) -> bool:
        """Returns true if the model can be searched; adds a gap otherwise."""
        workload = self._question.workload
        longest = resolve_lengths(workload.output_tokens, "/workload/output_tokens").values[-1]
        is_apart = any(getattr(workload, name) is not MISSING for name in _APART)
        return is_searchable(self._model.profile, longest, _APART if is_apart else (), self._notes)

    def resolve_ranges(self) -> FrontierRanges:
        """Returns the requests at a time and the degrees of parallelism to search."""
        search = self._question.search
        asked = search.requests_per_replica
        given = (search.tensor, search.pipeline, search.expert, search.expert_tensor)
        lists = {name: len(values) for name, values in search if isinstance(values, list)}
        longest = max(lists, key=lambda name: lists[name], default=None)
        pointer = f"/search/{longest}" if longest else "/cluster/accelerator_count"
        return FrontierRanges(
            self._model.profile,
            list_batch_sizes() if asked is MISSING else tuple(sorted(set(asked))),
            SearchDegrees(*(None if degrees is MISSING else degrees for degrees in given)),
            SearchLimits(MOST_CONFIGURATIONS, MOST_VARIANTS, pointer),
        )

    def list_settings(self) -> Iterator[FrontierSetting]:
        """Yields every cluster with every precision of the search.

        Raises :class:`PlanningError` naming the field of the question at fault.
        """
        for given, cluster, catalog in self._list_clusters():
            for workload in self._list_workloads():
                self.settings.append(SettingQuestion(given, workload))
                yield self._build_setting(self.settings[-1], cluster, catalog)

    def build_question(
        self, setting: int, layout: Parallelism, concurrency: int
    ) -> ThroughputEstimateRequest:
        """Returns the throughput question of a layout with so many requests at a time."""
        asked = self.settings[setting]
        return self._build_question(asked.cluster, _set_concurrency(asked.workload, concurrency), layout)

    def _build_question(
        self, cluster: ClusterInput, workload: InferenceWorkloadInput, layout: Parallelism
    ) -> ThroughputEstimateRequest:
        return ThroughputEstimateRequest.model_construct(
            model=self._question.model,
            workload=workload,
            cluster=cluster,
            parallelism=_to_parallelism_input(layout),
        )

    def _build_setting(
        self, asked: SettingQuestion, cluster: Cluster, catalog: CatalogView
    ) -> FrontierSetting:
        def build_case(layout: Parallelism) -> InferenceCase:
            given, notes = _set_concurrency(asked.workload, layout.data), AnswerNotes()
            question = self._build_question(asked.cluster, given, layout)
            case = resolve_served(question, given, cluster, self._model, catalog=catalog, notes=notes)
            self._notes.merge(notes)
            return case

        return FrontierSetting(cluster, build_case)

    def _list_clusters(self) -> Iterator[tuple[ClusterInput, Cluster, CatalogView]]:
        given, accelerators = self._question.cluster, self._question.search.accelerators
        references = [given.accelerator] if accelerators is MISSING else accelerators
        for place, reference in enumerate(references):
            asked = replace_accelerator(given, reference)
            pointer = "/cluster/accelerator" if accelerators is MISSING else f"/search/accelerators/{place}"
            try:
                catalog = apply_calibrations(self._catalog, asked)
                cluster = resolve_cluster(asked, catalog, self._notes)
            except PlanningError as error:
                at = error.pointer.replace("/cluster/accelerator", pointer, 1)
                raise PlanningError(error.code, at, error.detail) from error
            if cluster.accelerator.bandwidth_bytes_per_second is None:
                detail = f"the memory bandwidth of the accelerator at {pointer} is not known"
                self._notes.add_gap("/points", "BANDWIDTH_UNKNOWN", detail)
                continue
            yield asked, cluster, catalog

    def _list_workloads(self) -> Iterator[InferenceWorkloadInput]:
        given, search = self._question.workload, self._question.search
        stored: list[dict[str, Any]] = []
        if search.weight_formats is not MISSING:
            stored += [{"weight_format": name, "weight_precision": MISSING} for name in search.weight_formats]
        if search.weight_precisions is not MISSING:
            stored += [{"weight_format": MISSING, "weight_precision": p} for p in search.weight_precisions]
        caches = search.kv_cache_precisions
        kept = [{}] if caches is MISSING else [{"kv_cache_precision": name} for name in caches]
        for weights, cache in product(stored or [{}], kept):
            yield given.model_copy(update={**weights, **cache})


def _set_concurrency(given: InferenceWorkloadInput, concurrency: int) -> InferenceWorkloadInput:
    return given.model_copy(update={**dict.fromkeys(_SEARCHED, MISSING), "concurrency": concurrency})


def _to_parallelism_input(layout: Parallelism) -> ParallelismInput:
    return ParallelismInput(
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        data=layout.data,
        expert=layout.expert,
        expert_tensor=MISSING if layout.expert_tensor is None else layout.expert_tensor,
    )
