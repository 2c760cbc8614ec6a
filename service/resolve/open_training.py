"""Training case whose layout is open, from a question."""

from typing import NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.estimates.layouts import OpenTrainingCase
from service.planning.models.positions import forward_flops_of_sample
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.resolve.model import ResolvedModel
from service.resolve.operation import resolve_data_pipeline
from service.resolve.sample import resolve_training_sample
from service.resolve.training import check_adaptation, resolve_total_tokens, resolve_training_workload
from service.schemas.references import ClusterInput
from service.schemas.workloads import TrainingWorkloadInput


class TrainingLength(NamedTuple):
    """Sequences of an optimizer step, and tokens of the whole run."""

    step_sequences: int
    total_tokens: float


def resolve_length(given: TrainingWorkloadInput) -> TrainingLength:
    """Returns the steps by which layouts are compared.

    Raises :class:`PlanningError` for a workload without them.
    """
    batch = given.global_batch_size
    if batch is MISSING:
        detail = "layouts are compared by the steps of one batch: give the sequences of an optimizer step"
        raise PlanningError("BATCH_REQUIRED", "/workload/global_batch_size", detail)
    total = resolve_total_tokens(given, batch)
    if total is None:
        detail = (
            "how long a run takes follows from its total: give total_tokens, total_steps or total_samples"
        )
        raise PlanningError("TOTAL_REQUIRED", "/workload/total_tokens", detail)
    return TrainingLength(batch, total)


def resolve_open_training(
    model: ResolvedModel, given: TrainingWorkloadInput, cluster: ClusterInput, catalog: CatalogView
) -> OpenTrainingCase:
    """Returns the case of a workload with a global batch and a total on a cluster, whatever its layout.

    Raises :class:`PlanningError` for a question that has no sound answer, or whose figures are not known.
    """
    notes = AnswerNotes()
    catalog = apply_calibrations(catalog, cluster)
    devices = resolve_cluster(cluster, catalog, notes)
    workload = resolve_training_workload(given, devices, notes)
    check_adaptation(workload, model)
    sampled = resolve_training_sample(model.profile, workload, given, notes)
    check_profile(sampled.profile, sampled.unknown, generates=workload.rollout is not None)
    length = resolve_length(given)
    return OpenTrainingCase(
        profile=sampled.profile,
        workload=sampled.workload,
        step_sequences=length.step_sequences,
        total_tokens=length.total_tokens / (1 if sampled.sample is None else workload.sequence_length),
        cluster=devices,
        device=catalog.constants,
        data_pipeline=resolve_data_pipeline(given),
    )


def check_profile(profile: ModelProfile, unknown: PlanningError | None, *, generates: bool) -> None:
    """Refuses a model whose memory or time does not tell layouts apart."""
    if unknown is not None:
        raise unknown
    if not profile.shapes_known:
        detail = "a parameter count says nothing of shapes, by which layouts differ in memory and time"
        raise PlanningError("ARCHITECTURE_REQUIRED", "/model", detail)
    if profile.sampled is not None and profile.sample is not None:
        if generates:
            detail = "generating the samples of models that are asked by the sample is not modelled"
            raise PlanningError("NOT_MODELLED", "/workload/objective", detail)
        try:
            forward_flops_of_sample(profile.sampled, profile.sample)
        except PlanningError as error:
            raise PlanningError(error.code, "/model", error.detail) from error
    if profile.sample is None and profile.unmodelled_kinds:
        kinds = ", ".join(sorted(profile.unmodelled_kinds))
        detail = f"the work of layers of kind {kinds} is not modelled"
        raise PlanningError("LAYER_KIND_NOT_MODELLED", "/model", detail)
