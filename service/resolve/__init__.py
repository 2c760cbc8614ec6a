"""From a question to planning values: references looked up, defaults taken, contradictions refused."""

from typing import NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.memory.layout import inference_layout, training_layout
from service.planning.parallelism import Parallelism
from service.planning.workload import InferenceWorkload, TrainingWorkload
from service.resolve.catalog import Catalog
from service.resolve.disaggregated import decode_layout
from service.resolve.hardware import usable_bytes
from service.resolve.layout import check_serving, check_shapes, given_layout
from service.resolve.load import Asked, check_solver
from service.resolve.model import ResolvedModel, resolve_model
from service.resolve.sample import Sampled, sampled_inference, sampled_training
from service.resolve.serving import inference_workload, under_engine
from service.resolve.training import (
    check_adaptation,
    compressed_on,
    laid_out_on,
    total_tokens_of,
    training_workload,
)
from service.schemas.estimates import MemoryQuestion, RunQuestion, ThroughputQuestion
from service.schemas.notes import Notes
from service.schemas.rollouts import left_to_train
from service.schemas.workloads import InferenceWorkloadInput, TrainingWorkloadInput


class Resolved(NamedTuple):
    """A question with every choice made."""

    model: ResolvedModel
    workload: TrainingWorkload | InferenceWorkload
    layout: Parallelism
    layout_chosen: bool
    batch_known: bool
    """Whether the sequences of one step follow from the question."""
    held: Sampled[TrainingWorkload] | Sampled[InferenceWorkload]
    """Model and workload as memory sees them."""
    total_tokens: float | None = None
    """Tokens that a training run has in all."""
    asked: Asked | None = None
    """What a served model is asked."""


def resolve(
    question: MemoryQuestion | RunQuestion,
    cluster: Cluster | None,
    catalog: Catalog,
    notes: Notes,
    model: ResolvedModel | None = None,
) -> Resolved:
    """The question as planning values on ``cluster``, with what was looked up and chosen noted.

    ``model`` is that of the question, where it is known already.
    Raises :class:`PlanningError` naming the field of the question at fault.
    """
    model = model or resolve_model(question.model, catalog, notes)
    if cluster and isinstance(question.workload, TrainingWorkloadInput):
        cluster = left_to_train(question.workload.rollout, question.workload.objective, cluster)
    layout = None
    if question.parallelism is not MISSING:
        layout = given_layout(question.parallelism, cluster)
        check_shapes(layout, model.profile)
        if cluster and layout.tensor > cluster.accelerators_per_node:
            notes.warn(
                "TENSOR_ACROSS_NODES",
                "/parallelism/tensor",
                f"tensor {layout.tensor} exceeds the {cluster.accelerators_per_node} accelerators of a node",
            )
    given = question.workload
    if isinstance(given, InferenceWorkloadInput) and given.disaggregated is not MISSING:
        layout = decode_layout(given.disaggregated, question.parallelism, model.profile, cluster, notes)
    place = _Place(model, layout, cluster, catalog, notes)
    if isinstance(question.workload, TrainingWorkloadInput):
        return _trained(question.workload, place)
    resolved, asked = _served(question.workload, place)
    if isinstance(question, ThroughputQuestion):
        check_solver(question.solver, asked)
    return resolved


class _Place(NamedTuple):
    """What a workload runs on: a model, and a cluster with the layout that was given."""

    model: ResolvedModel
    layout: Parallelism | None
    cluster: Cluster | None
    catalog: Catalog
    notes: Notes

    @property
    def devices(self) -> int:
        return self.cluster.accelerator_count if self.cluster else 1

    @property
    def per_node(self) -> int:
        return self.cluster.accelerators_per_node if self.cluster else 1


def _trained(given: TrainingWorkloadInput, place: _Place) -> Resolved:
    model, layout, cluster, catalog, notes = place
    if model.stored is not None or model.unreadable is not None:
        notes.warn(
            "QUANTIZATION_NOT_READ",
            "/model/config/quantization_config",
            "the width of the weights is that of the workload",
        )
    training = training_workload(given, cluster, notes)
    check_adaptation(training, model)
    held = sampled_training(model.profile, training, given, notes)
    chosen = layout or training_layout(
        held.profile,
        lambda candidate: laid_out_on(held.workload, given, candidate),
        devices=place.devices,
        per_node=place.per_node,
        usable_bytes=usable_bytes(cluster, training),
        overhead=catalog.curves.training_memory.overhead,
    )
    laid_out = laid_out_on(training, given, chosen)
    if laid_out is None:
        raise PlanningError(
            "BATCH_MISMATCH",
            "/workload/global_batch_size",
            f"global_batch_size is not micro_batch_size {given.micro_batch_size} x data "
            f"{chosen.data} x gradient_accumulation_steps",
        )
    laid_out = compressed_on(laid_out, chosen, notes)
    if laid_out.steps_in_backward and laid_out.micro_batches > 1:
        detail = "gradients of several micro-batches are summed before a step: give one micro-batch"
        raise PlanningError("STEP_IN_BACKWARD", "/workload/optimizer_in_backward", detail)
    known = layout is not None or model.profile.shapes_known or given.global_batch_size is not MISSING
    _check_length(given.sequence_length, "/workload/sequence_length", model, notes)
    batch = laid_out.micro_batch_size * laid_out.micro_batches * chosen.data if known else None
    total = total_tokens_of(given, batch)
    held = held._replace(
        workload=held.workload._replace(
            micro_batches=laid_out.micro_batches, compression=laid_out.compression
        )
    )
    return Resolved(model, laid_out, chosen, layout is None, known, held, total)


def _served(given: InferenceWorkloadInput, place: _Place) -> tuple[Resolved, Asked]:
    model, layout, cluster, catalog, notes = place
    if layout is not None:
        check_serving(layout, notes)
    spread = layout.tensor * layout.pipeline if layout else 1
    inference, asked = inference_workload(given, model, cluster, catalog, notes, devices=spread)
    served = sampled_inference(model.profile, inference, given, notes)
    chosen = layout or inference_layout(
        served.profile,
        served.workload,
        devices=place.devices,
        per_node=place.per_node,
        usable_bytes=usable_bytes(cluster, inference),
    )
    if layout is None and chosen.tensor * chosen.pipeline > 1:
        group = chosen.tensor * chosen.pipeline
        inference = under_engine(inference, given, model, cluster, group)
        if model.profile.passed is None:
            wide = under_engine(served.workload, given, model, cluster, group)
            served = served._replace(workload=wide)
    outputs = asked.outputs.values[-1] if inference.output_tokens else 0.0
    _check_length(asked.inputs.values[-1] + outputs, "/workload/input_tokens", model, notes)
    known = Resolved(model, inference, chosen, layout is None, batch_known=True, held=served, asked=asked)
    return known, asked


def _check_length(tokens: float, pointer: str, model: ResolvedModel, notes: Notes) -> None:
    if model.context_tokens is not None and tokens > model.context_tokens:
        notes.warn(
            "CONTEXT_EXCEEDED",
            pointer,
            f"{tokens:.0f} tokens exceed the {model.context_tokens} that the model was built for",
        )
