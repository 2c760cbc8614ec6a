"""Resolution of a question into a case: references looked up, defaults applied, contradictions refused."""

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple, TypeVar

from pydantic import MISSING

from service.planning.cases import (
    AssumedShares,
    BaseCase,
    EncoderWork,
    ForwardPassCase,
    InferenceCase,
    PassBatching,
    RequestLoad,
    ResidentModel,
    RunCase,
    ServingCase,
    TrainingCase,
)
from service.planning.errors import PlanningError
from service.planning.estimates.devices import compute_peak, get_usable_bytes, start_engine
from service.planning.hardware.cluster import Cluster, unnamed_cluster
from service.planning.hardware.distance import EvidenceSystem
from service.planning.inference.encoded import is_encoder_read
from service.planning.memory.layout import select_inference_layout
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.workload import InferenceWorkload
from service.resolve.batch import fill_global_batch
from service.resolve.catalog import CatalogView
from service.resolve.configuration import TrainingSite, choose_training
from service.resolve.disaggregated import resolve_decode_layout, resolve_disaggregation
from service.resolve.hardware import resolve_cluster
from service.resolve.host import note_host
from service.resolve.layout import (
    check_serving,
    check_shapes,
    drop_unused_overlap,
    imply_sequence_parallel,
    list_open_members,
    pad_served_model,
    resolve_layout,
)
from service.resolve.load import resolve_levels, resolve_solver
from service.resolve.model import ResolvedModel, resolve_model
from service.resolve.open_serving import complete_service, fill_engine
from service.resolve.operation import (
    resolve_checkpointing,
    resolve_data_pipeline,
    resolve_learning_rate,
    resolve_reliability,
)
from service.resolve.passes import is_passed, resolve_parts
from service.resolve.rollout import select_training_cluster
from service.resolve.sample import SampledWorkload, resolve_inference_sample, resolve_training_sample
from service.resolve.serving import resolve_engine, resolve_workload
from service.resolve.software import get_software_name, resolve_system
from service.resolve.training import (
    apply_layout,
    check_adaptation,
    drop_unused_compression,
    resolve_total_tokens,
    resolve_training_workload,
    route_trained_tokens,
)
from service.schemas.estimates import MemoryEstimateRequest, RunEstimateRequest, ThroughputEstimateRequest
from service.schemas.references import (
    AssumedEfficiency,
    CalibrationEfficiency,
    ModelledEfficiency,
    ParameterCountModel,
)
from service.schemas.workloads import InferenceWorkloadInput, TrainingWorkloadInput

__all__ = ["resolve_memory", "resolve_run", "resolve_served"]

_Case = TypeVar("_Case", bound=BaseCase)


def resolve_memory(
    question: MemoryEstimateRequest, catalog: CatalogView, notes: AnswerNotes
) -> TrainingCase | InferenceCase:
    """Returns the case of a memory question and notes the rows and defaults that it uses.

    Raises :class:`PlanningError` naming the field of the question at fault.
    """
    cluster = None
    if question.cluster is not MISSING:
        cluster = resolve_cluster(question.cluster, catalog, notes)
    site = _resolve_site(question, cluster, resolve_model(question.model, catalog, notes), catalog, notes)
    if isinstance(question.workload, TrainingWorkloadInput):
        return _resolve_training(question.workload, site)
    return _resolve_inference(question.workload, site).case


def resolve_run(question: RunEstimateRequest, catalog: CatalogView, notes: AnswerNotes) -> RunCase:
    """Returns the case of a question whose answer has rates. Raises as :func:`resolve_memory` does."""
    efficiency = question.efficiency
    is_assumed = isinstance(efficiency, AssumedEfficiency)
    communicates = not (is_assumed or isinstance(question.model, ParameterCountModel))
    reach = _count_waiting_devices(question)
    cluster = resolve_cluster(question.cluster, catalog, notes, communicates=communicates, reach=reach)
    model = resolve_model(question.model, catalog, notes)
    if isinstance(question.workload, TrainingWorkloadInput):
        return _resolve_training_run(
            question, question.workload, cluster, model, catalog=catalog, notes=notes
        )
    return _resolve_inference_run(question, question.workload, cluster, model, catalog=catalog, notes=notes)


def _count_waiting_devices(question: RunEstimateRequest) -> int | None:
    """Returns the devices of a stated replica of a service, which wait for no others; else None."""
    workload, layout = question.workload, question.parallelism
    if not isinstance(workload, InferenceWorkloadInput) or layout is MISSING:
        return None
    if workload.disaggregated is not MISSING:
        return None
    return layout.tensor * layout.pipeline * layout.expert


def _resolve_training_run(
    question: RunEstimateRequest,
    given: TrainingWorkloadInput,
    cluster: Cluster,
    model: ResolvedModel,
    *,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> TrainingCase:
    case = _resolve_training(given, _resolve_site(question, cluster, model, catalog, notes))
    compute_peak(cluster, case.workload)
    note_host(question.cluster.host, cluster.host, case.workload, catalog, notes)
    efficiency, factor = question.efficiency, None
    if isinstance(efficiency, ModelledEfficiency) and efficiency.time_factor is not MISSING:
        factor = efficiency.time_factor
    return _extend_case(
        TrainingCase,
        case,
        assumed=_resolve_shares(question),
        calibration_id=efficiency.id if isinstance(efficiency, CalibrationEfficiency) else None,
        time_factor=factor,
        data_pipeline=resolve_data_pipeline(given),
        checkpointing=resolve_checkpointing(given),
        reliability=resolve_reliability(given, catalog.curves),
    )


def _resolve_inference_run(
    question: RunEstimateRequest,
    given: InferenceWorkloadInput,
    cluster: Cluster,
    model: ResolvedModel,
    *,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> ServingCase | ForwardPassCase:
    site = _resolve_site(question, cluster, model, catalog, notes)
    case, resident = _resolve_inference(given, site)
    solver = question.solver if isinstance(question, ThroughputEstimateRequest) else None
    simulation = solver and resolve_solver(solver, case.load)
    compute_peak(cluster, case.workload)
    if isinstance(question.efficiency, ModelledEfficiency) and question.efficiency.time_factor is not MISSING:
        detail = (
            "a time factor needs a training workload: the load of a service on slower devices is not modelled"
        )
        raise PlanningError("NOT_MODELLED", "/efficiency/time_factor", detail)
    shares = _resolve_shares(question)
    if case.profile.shapes_known and is_passed(given, case.profile):
        parts = None
        if case.unknown is None:
            parts = resolve_parts(
                given,
                case.profile,
                resident,
                case.sample,
                peaks=cluster.accelerator.peak_flops_per_second,
                catalog=catalog,
                notes=notes,
            )
        batching = PassBatching()
        if given.batching is not MISSING:
            most = given.batching.max_requests
            batching = PassBatching(None if most is MISSING else most, given.batching.delay_seconds)
        return _extend_case(ForwardPassCase, case, assumed=shares, parts=parts, batching=batching)
    levels = None if given.service_levels is MISSING else resolve_levels(given.service_levels)
    pools = None
    if given.disaggregated is not MISSING and case.profile.shapes_known and case.unknown is None:
        pools = resolve_disaggregation(given.disaggregated, question.cluster, case, catalog, notes)
    return _extend_case(
        ServingCase, case, assumed=shares, simulation=simulation, levels=levels, disaggregation=pools
    )


def resolve_served(
    question: RunEstimateRequest,
    given: InferenceWorkloadInput,
    cluster: Cluster,
    model: ResolvedModel,
    *,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> InferenceCase:
    """Returns the case of a served model, up to the members that need a rate of its devices."""
    return _resolve_inference(given, _resolve_site(question, cluster, model, catalog, notes)).case


_MEMBERS = {kind: tuple(field.name for field in fields(kind)) for kind in (TrainingCase, InferenceCase)}


def _extend_case(kind: Callable[..., _Case], case: TrainingCase | InferenceCase, **members: object) -> _Case:
    """Returns the case as an instance of ``kind``, with further members set."""
    known = {name: getattr(case, name) for name in _MEMBERS[type(case)]}
    return kind(**{**known, **members})


def _resolve_shares(question: RunEstimateRequest) -> AssumedShares | None:
    given = question.efficiency
    if not isinstance(given, AssumedEfficiency):
        return None
    bandwidth = given.bandwidth_utilization
    return AssumedShares(given.utilization, None if bandwidth is MISSING else bandwidth)


class _ResolvedCluster(NamedTuple):
    """A model, the cluster that it runs on, and the layout that the question gives."""

    model: ResolvedModel
    layout: Parallelism | None
    named: Cluster | None
    """Cluster of the question."""
    working: Cluster | None
    """Devices that train or serve. Devices that only generate rollouts for a policy are not among them."""
    catalog: CatalogView
    notes: AnswerNotes
    opened: frozenset[str] = frozenset()
    """Members of the layout that the question leaves open."""

    @property
    def devices(self) -> int:
        return self.working.accelerator_count if self.working else 1

    @property
    def per_node(self) -> int:
        return self.working.accelerators_per_node if self.working else 1

    @property
    def cluster(self) -> Cluster:
        """Devices that train or serve; one unknown device if the question names no cluster."""
        return self.working or unnamed_cluster(1)


def _resolve_site(
    question: MemoryEstimateRequest | RunEstimateRequest,
    cluster: Cluster | None,
    model: ResolvedModel,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> _ResolvedCluster:
    """Checks the layout of the question against model and cluster."""
    given, working = question.workload, cluster
    if cluster and isinstance(given, TrainingWorkloadInput):
        working = select_training_cluster(given.rollout, given.objective, cluster)
    layout, opened = None, frozenset[str]()
    if question.parallelism is not MISSING:
        stated, trains = question.parallelism, isinstance(given, TrainingWorkloadInput)
        stated = imply_sequence_parallel(stated) if trains else stated
        layout = resolve_layout(stated, working)
        opened = list_open_members(stated, layout)
        if not trains:
            device = working.accelerator if working else None
            model = model._replace(profile=pad_served_model(model.profile, layout, device, notes))
        check_shapes(layout, model.profile)
        layout = drop_unused_overlap(layout, notes) if trains else layout
        if working and layout.tensor > working.accelerators_per_node:
            notes.warn(
                "TENSOR_ACROSS_NODES",
                "/parallelism/tensor",
                f"tensor {layout.tensor} exceeds the {working.accelerators_per_node} accelerators of a node",
            )
    if isinstance(given, InferenceWorkloadInput) and given.disaggregated is not MISSING:
        layout, profile = resolve_decode_layout(
            given.disaggregated, question.parallelism, model.profile, working, notes
        )
        model = model._replace(profile=profile)
    return _ResolvedCluster(model, layout, cluster, working, catalog, notes, opened)


def _resolve_training(given: TrainingWorkloadInput, site: _ResolvedCluster) -> TrainingCase:
    model, layout, catalog, notes = site.model, site.layout, site.catalog, site.notes
    if model.stored is not None or model.unreadable is not None:
        notes.warn(
            "QUANTIZATION_NOT_READ",
            model.stored_pointer,
            "the published weights are quantised; the width of the trained weights is that of the workload",
        )
    training = resolve_training_workload(given, site.cluster, notes)
    check_adaptation(training, model)
    routed = route_trained_tokens(model.profile, given, notes)
    sampled = resolve_training_sample(routed, training, given, notes)
    usable = get_usable_bytes(site.cluster, training)
    where = TrainingSite(site.named, site.devices, site.per_node, usable, layout, site.opened)
    given = fill_global_batch(given, sampled, where, notes)
    choice, naive = choose_training(given, sampled, where, catalog, notes)
    chosen, workload = choice.layout, choice.workload
    laid_out = apply_layout(workload, given, chosen)
    if laid_out is None:
        raise PlanningError(
            "BATCH_MISMATCH",
            "/workload/global_batch_size",
            f"global_batch_size is not micro_batch_size {workload.micro_batch_size} x data "
            f"{chosen.data} x gradient_accumulation_steps",
        )
    laid_out = drop_unused_compression(laid_out, chosen, notes)
    if laid_out.steps_in_backward and laid_out.micro_batches > 1:
        detail = "gradients of several micro-batches are summed before a step: give one micro-batch"
        raise PlanningError("STEP_IN_BACKWARD", "/workload/optimizer_in_backward", detail)
    known = layout is not None or model.profile.shapes_known or given.global_batch_size is not MISSING
    _check_length(given.sequence_length, "/workload/sequence_length", model, notes)
    batch = laid_out.micro_batch_size * laid_out.micro_batches * chosen.data if known else None
    total = resolve_total_tokens(given, batch)
    if sampled.sample is not None and total is not None:
        total /= training.sequence_length
    return TrainingCase(
        profile=sampled.profile,
        layout=chosen,
        layout_chosen=layout is None,
        cluster=site.named or unnamed_cluster(chosen.devices),
        device=catalog.constants,
        sample=sampled.sample,
        unknown=sampled.unknown,
        workload=laid_out,
        batch_known=known,
        total_tokens=total,
        learning_rate=resolve_learning_rate(given),
        framework_name=get_software_name(given),
        naive=naive,
    )


class _ResolvedInference(NamedTuple):
    case: InferenceCase
    resident: InferenceWorkload


def _resolve_inference(given: InferenceWorkloadInput, site: _ResolvedCluster) -> _ResolvedInference:
    model, layout, named, catalog, notes = site.model, site.layout, site.named, site.catalog, site.notes
    is_engine_open = given.engine is MISSING
    given = fill_engine(given, model, site.cluster.accelerator, notes)
    if layout is not None:
        check_serving(layout, notes)
    spread = layout.tensor * layout.pipeline if layout else 1
    workload, load = resolve_workload(given, model, site.cluster, catalog, notes, devices=spread)
    sampled = resolve_inference_sample(model.profile, workload, given, notes)
    chosen = layout or select_inference_layout(
        sampled.profile,
        sampled.workload,
        devices=site.devices,
        per_node=site.per_node,
        usable_bytes=get_usable_bytes(site.cluster, workload),
    )
    engine = resolve_engine(given)
    if layout is None and chosen.tensor * chosen.pipeline > 1:
        group, device = chosen.tensor * chosen.pipeline, site.cluster.accelerator
        workload = start_engine(workload, engine, model.context_tokens, device, group)
        if model.profile.passed is None:
            started = start_engine(sampled.workload, engine, model.context_tokens, device, group)
            sampled = sampled._replace(workload=started)
    outputs = load.outputs.values[-1] if workload.output_tokens else 0.0
    _check_length(load.inputs.values[-1] + outputs, "/workload/input_tokens", model, notes)
    timed, asked = _count_positions(workload, load, model, sampled)
    encoding, sample = None, sampled.sample
    if (
        sample is not None
        and model.profile.generates
        and (given.sample is not MISSING or is_encoder_read(model.profile))
    ):
        encoding = EncoderWork(sample, None if given.engine is MISSING else given.engine.name)
    case = InferenceCase(
        profile=model.profile,
        layout=chosen,
        layout_chosen=layout is None,
        cluster=named or unnamed_cluster(chosen.devices),
        device=catalog.constants,
        sample=sample,
        unknown=sampled.unknown,
        workload=timed,
        load=asked,
        resident=ResidentModel(sampled.profile, sampled.workload),
        prompt_tokens=workload.input_tokens,
        system=_resolve_system(given, named),
        engine=engine,
        context_tokens=model.context_tokens,
        encoding=encoding,
    )
    case = complete_service(given, case, notes, is_engine_open=is_engine_open)
    return _ResolvedInference(case, case.resident.workload)


def _resolve_system(given: InferenceWorkloadInput, cluster: Cluster | None) -> EvidenceSystem:
    return resolve_system(given, None if cluster is None else cluster.accelerator)


def _count_positions(
    workload: InferenceWorkload,
    load: RequestLoad,
    model: ResolvedModel,
    sampled: SampledWorkload[InferenceWorkload],
) -> tuple[InferenceWorkload, RequestLoad]:
    """Returns workload and load with the tokens that images and other inputs add to prompts.

    The decoder of an encoder-decoder model starts with a prompt of one token.
    """
    profile, added = model.profile, sampled.workload.input_tokens - workload.input_tokens
    if added and profile.generates:
        longer = tuple(tokens + added for tokens in load.inputs.values)
        load = load._replace(inputs=load.inputs._replace(values=longer))
        workload = workload._replace(
            input_tokens=sampled.workload.input_tokens,
            source_tokens=sampled.workload.source_tokens,
            image_share=sampled.workload.image_share,
        )
    if profile.encodes and profile.generates:
        # The prompt is the encoder's; the decoder begins with one token.
        load = load._replace(inputs=load.inputs._replace(values=(1.0,), weights=(1.0,)))
    return workload, load


def _check_length(tokens: float, pointer: str, model: ResolvedModel, notes: AnswerNotes) -> None:
    if model.context_tokens is not None and tokens > model.context_tokens:
        notes.warn(
            "CONTEXT_EXCEEDED",
            pointer,
            f"{tokens:.0f} tokens exceed the {model.context_tokens} that the model was built for",
        )
