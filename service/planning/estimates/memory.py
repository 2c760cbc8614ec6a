"""Memory of the fullest device, the limits of each dimension, and changes that make a case fit."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

from service.planning.cases import InferenceCase, TrainingCase
from service.planning.estimates.advice import Advice
from service.planning.estimates.calibrations import note_case, note_memory
from service.planning.estimates.devices import get_usable_bytes, start_engine
from service.planning.estimates.intervals import widen_memory
from service.planning.estimates.serving import estimate_serving
from service.planning.estimates.settings import build_case_setting, build_memory_setting
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.curves import ReferenceCurves
from service.planning.hardware.local_evidence import RunSetting, apply_correction
from service.planning.hardware.storage import CACHE_FORMATS, NAMED_FORMATS, PLAIN_FORMATS
from service.planning.memory.adaptation import count_trained_parameters
from service.planning.memory.advice import StepLayout, find_cheapest_techniques
from service.planning.memory.caches import key_value_bytes
from service.planning.memory.capacity import (
    CacheWaste,
    compute_cache_waste,
    compute_model_token_bytes,
    compute_usable_bytes,
    count_cache_tokens,
    count_pass_requests,
    find_largest_concurrency,
    find_longest_context,
)
from service.planning.memory.sampled import find_longest_sampled_sequence, has_variable_length
from service.planning.memory.serving import (
    ServingMemory,
    ServingRange,
    estimate_inference_memory,
    estimate_inference_memory_range,
)
from service.planning.memory.stages import stage_share
from service.planning.memory.training import (
    StageMemory,
    estimate_training_memory,
    find_largest_micro_batch,
    find_longest_sequence,
)
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, PAGED, NumberFormat
from service.planning.quantity import (
    EvidenceBasis,
    IntervalFactors,
    Quantity,
    combine,
    has_interval,
    probability_at_most,
    scaled,
)
from service.planning.software.frameworks import Framework
from service.planning.units import GIGABYTE_BYTES
from service.planning.workload import (
    InferenceWorkload,
    Offload,
    TrainingObjective,
    TrainingStateLocation,
    TrainingWorkload,
)


class MemoryPart(NamedTuple):
    """A part of the memory of the fullest device."""

    name: str
    size_bytes: int


class DimensionLimits(NamedTuple):
    """Largest value of each dimension that still fits, the others unchanged; None where not known."""

    max_micro_batch_size: int | None = None
    max_concurrency: int | None = None
    """Concurrent requests over the whole cluster."""
    kv_cache_tokens: int | None = None
    """Tokens of the whole cluster's cache, as the engine counts them."""
    max_sequence_length: int | None = None


class RequestCache(NamedTuple):
    """KV cache of one request on the fullest device, and the bytes of a token over the whole model."""

    is_paged: bool
    block_tokens: int
    waste: CacheWaste
    model_bytes_per_token: float


class OffloadedBytes(NamedTuple):
    """Bytes that a training step keeps outside of each device."""

    memory: float
    nvme: float


class MemoryFootprint(NamedTuple):
    """Memory of the fullest device. A member is None where it is not known or does not apply."""

    components: tuple[MemoryPart, ...]
    known_bytes: int
    """Sum of the components, in bytes."""
    total: Quantity | None = None
    """None where a component is not known."""
    limits: DimensionLimits = DimensionLimits()
    capacity: Quantity | None = None
    """Memory that the driver of the device reports, in bytes."""
    usable_bytes: float | None = None
    headroom_bytes: int | None = None
    """Usable bytes less the total; below 0 where the case does not fit."""
    fits: bool | None = None
    fit_probability: float | None = None
    stored_weight_bytes: float | None = None
    """Bytes of the stored weights of a served model."""
    cache: RequestCache | None = None
    """Cache of a request, for a served model that keeps one."""
    trained_parameter_count: int | None = None
    """Number of trained parameters, for a model in training."""
    host: OffloadedBytes | None = None
    """Bytes outside of the device; None where nothing leaves it."""
    advice: tuple[Advice, ...] = ()
    """Changes that make the case fit: for training one set, for serving several alternatives."""


def estimate_memory(case: TrainingCase | InferenceCase, notes: AnswerNotes) -> MemoryFootprint:
    """Estimates the memory of the fullest device, whether the case fits, and the limits of each dimension."""
    if isinstance(case, TrainingCase):
        return _estimate_training(case, notes)
    return _estimate_inference(estimate_concurrency(case, notes), notes)


def estimate_concurrency(case: InferenceCase, notes: AnswerNotes) -> InferenceCase:
    """Returns the case with its mean number of concurrent requests where they arrive at a rate."""
    if case.load.concurrency is not None:
        return case
    serving, profile = None, case.profile
    if case.accelerator_id is not None and profile.shapes_known and not profile.unmodelled_kinds:
        serving = estimate_serving(case)
        note_case(case, notes)
    if serving is None:
        detail = "the number of concurrent requests is not known: one per replica is counted"
        notes.warn("CONCURRENCY_UNKNOWN", "/workload/request_rate_per_second", detail)
        requests = case.layout.data
    else:
        requests = math.ceil(serving.requests_inside) * case.layout.data
        detail = f"{requests} concurrent requests are counted: the mean number of the load"
        notes.warn("CONCURRENCY_ESTIMATED", "/workload/request_rate_per_second", detail)
    resident = case.resident
    return replace(
        case,
        workload=case.workload._replace(concurrency=requests),
        resident=resident._replace(workload=resident.workload._replace(concurrency=requests)),
    )


def find_setting(case: TrainingCase | InferenceCase) -> RunSetting:
    """Returns the setting of a case by which a tenant's own measured runs are told apart."""
    return build_case_setting(case) if isinstance(case, TrainingCase) else build_memory_setting(case)


def _estimate_training(case: TrainingCase, notes: AnswerNotes) -> MemoryFootprint:
    profile, workload, layout = case.profile, case.workload, case.layout
    unknown = _find_unknown(case, profile, _TRAINING_UNKNOWN, notes)
    usable = get_usable_bytes(case.cluster, workload)
    stages = estimate_training_memory(profile, workload, layout, case.curves.training_memory.overhead)
    limits = DimensionLimits()
    if usable is not None and not unknown:
        limits = _compute_training_limits(case, stages, usable, notes)
    fullest = stages[0]
    estimate = _sum_components(_list_training_components(fullest, unknown), unknown)
    note_memory(case.device, notes, has_context=True)
    if not unknown:
        total = case.curves.training_memory.total.around(float(estimate.known_bytes), EvidenceBasis.REFERENCE)
        # The framework is not known: it may keep gradients in FP32.
        total = total._replace(high=total.high + _count_high_precision_gradients(fullest, workload))
        estimate = estimate._replace(total=_correct_total(case, total, notes))
    estimate = _judge_fit(estimate._replace(limits=limits), case.cluster, usable, notes)
    if estimate.fits and estimate.headroom_bytes is not None:
        _warn_of_high_precision_gradients(estimate.headroom_bytes, fullest, workload, notes)
    if workload.objective in (TrainingObjective.PPO, TrainingObjective.GRPO) and not unknown:
        _warn_of_generation(profile, workload, layout, notes)
    is_moved = workload.offload != Offload() or workload.optimizer in PAGED
    host = None
    if is_moved and not (unknown and workload.offload.activations is not TrainingStateLocation.NONE):
        host = OffloadedBytes(fullest.host_state if unknown else fullest.host_bytes, fullest.nvme_state)
    advice: tuple[Advice, ...] = ()
    if usable is not None and estimate.fits is False and not unknown:
        advice = tuple(_list_training_advice(case, usable))
    trained = count_trained_parameters(profile, workload.adaptation)
    return estimate._replace(trained_parameter_count=trained, host=host, advice=advice)


def _estimate_inference(case: InferenceCase, notes: AnswerNotes) -> MemoryFootprint:
    profile, workload = case.resident
    unknown = _find_unknown(case, profile, _SERVING_UNKNOWN, notes)
    between = estimate_inference_memory_range(profile, workload, case.layout)
    memory = between.value
    limit = usable = get_usable_bytes(case.cluster, workload)
    if limit is not None:
        usable = compute_usable_bytes(memory, workload, limit)
    limits = DimensionLimits()
    if usable is not None and limit is not None and not unknown and memory.request_bytes:
        limits = _compute_serving_limits(case, memory, (usable, limit), notes)
    elif not unknown and not memory.request_bytes:
        limits = _compute_pass_limits(case, memory, usable, notes)
    estimate = _sum_components(_list_serving_components(memory), unknown)
    note_memory(case.device, notes, has_context=workload.buffers.context_bytes > 0.0)
    if not unknown:
        total = _add_serving_interval(estimate, between, workload, case.curves)
        estimate = estimate._replace(total=_correct_total(case, total, notes))
    estimate = _judge_fit(estimate._replace(limits=limits), case.cluster, usable, notes)
    cache = None
    if memory.sequence_cache_bytes and not unknown:
        cache = RequestCache(
            workload.rules.paged,
            workload.block_tokens,
            compute_cache_waste(memory, workload),
            compute_model_token_bytes(profile, workload),
        )
    advice: tuple[Advice, ...] = ()
    if limit is not None and estimate.fits is False and not unknown:
        advice = tuple(_list_serving_advice(case, limit / workload.memory_fraction))
    stored = profile.weights.get_stored_weights(workload.storage)
    return estimate._replace(stored_weight_bytes=stored.total, cache=cache, advice=advice)


_TRAINING_UNKNOWN = frozenset({"activations", "logits"})
_SERVING_UNKNOWN = frozenset({"kv_cache", "state", "workspace"})


def _find_unknown(
    case: TrainingCase | InferenceCase, profile: ModelProfile, names: frozenset[str], notes: AnswerNotes
) -> frozenset[str]:
    """Returns those of ``names`` that the description of model and sample does not determine."""
    missing, is_training = case.unknown, isinstance(case, TrainingCase)
    if not profile.shapes_known:
        code, detail = "ARCHITECTURE_REQUIRED", "a parameter count says nothing of shapes"
    elif missing is not None and not is_training and not profile.unserved_kinds:
        detail = (
            "input_tokens are all tokens that the decoder reads, those of images included; the memory of a "
            f"tower while it runs is not counted: {missing.detail}"
        )
        notes.warn("TOKENS_ALONE_COUNTED", missing.pointer, detail)
        return frozenset()
    elif missing is not None:
        is_named = missing.code == "SAMPLE_FIELD_MISSING"
        code = "SAMPLE_REQUIRED" if is_named else missing.code
        detail = f"{missing.detail}: give {missing.pointer}" if is_named else missing.detail
    else:
        if case.sample is not None and is_training:
            detail = "no measured row is of a model like this: the interval of decoders is used"
            notes.warn("INTERVAL_OF_DECODERS", "/per_device/total_bytes", detail)
        return frozenset()
    listed = " and ".join(sorted(names - {"state"}))
    notes.add_gap("/per_device/total_bytes", code, f"{listed}: {detail}")
    return names


_STATE = frozenset({"weights", "gradients", "master_weights", "optimizer_states"})
"""Components of a training step that are listed even if they take no memory."""
_TRANSIENT = frozenset(
    {"activations", "logits", "gathered_weights", "gradient_buffers", "workspace", "fragmentation"}
)


def _list_training_components(stage: StageMemory, unknown: frozenset[str]) -> Iterator[tuple[str, float]]:
    """Yields the components of the fullest moment; without transient ones where activations are unknown."""
    for name, size in stage.components.items():
        if not (unknown and name in _TRANSIENT) and (size or name in _STATE):
            yield name, size


def _list_serving_components(memory: ServingMemory) -> Iterator[tuple[str, float]]:
    yield "weights", memory.weights
    yield "kv_cache", memory.kv_cache
    yield "workspace", memory.workspace
    rest = {
        "state": memory.state,
        "auxiliary_models": memory.auxiliary_models,
        "draft_weights": memory.draft_weights,
        "draft_kv_cache": memory.draft_kv_cache,
        "adapters": memory.adapters,
        "sampler": memory.sampler,
        "cuda_graphs": memory.cuda_graphs,
        "communication_buffers": memory.communication,
        "runtime": memory.runtime,
        "device_context": memory.context,
    }
    yield from ((name, size) for name, size in rest.items() if size)


def _sum_components(sizes: Iterable[tuple[str, float]], unknown: frozenset[str]) -> MemoryFootprint:
    """Returns the known components, in whole bytes."""
    parts = tuple(MemoryPart(name, _round_bytes(size)) for name, size in sizes if name not in unknown)
    return MemoryFootprint(parts, sum(part.size_bytes for part in parts))


def _round_bytes(size: float) -> int:
    if not math.isfinite(size):
        raise OverflowError(str(size))
    return round(size)


def _add_serving_interval(
    estimate: MemoryFootprint, between: ServingRange, workload: InferenceWorkload, curves: ReferenceCurves
) -> Quantity:
    """Returns the total with the interval of the engine's memory."""
    known = estimate.known_bytes
    if workload.rules.name is not None:
        low = min(between.least.total_bytes, known)
        high = max(between.most.total_bytes, known)
        return Quantity(float(known), low, high, EvidenceBasis.REFERENCE)
    # Engines take the cache in blocks of exact size; the memory that they take beside it is uncertain.
    cache = sum(part.size_bytes for part in estimate.components if part.name in ("kv_cache", "state"))
    rest = curves.inference_memory.around(float(known - cache), EvidenceBasis.DATASHEET)
    return combine(lambda size: size + cache, rest)


def _correct_total(case: TrainingCase | InferenceCase, total: Quantity, notes: AnswerNotes) -> Quantity:
    """Returns the total in the interval of measured rows, corrected by a tenant's own measured runs."""
    if isinstance(case, TrainingCase):
        family, software = "training_memory", case.framework_name
    else:
        family, software = "inference_memory", case.system.engine or ""
    total = widen_memory(total, family, software, case.curves)
    if case.curves.local is None or case.accelerator_id is None:
        return total
    shipped = IntervalFactors(total.low / total.value, total.high / total.value, "")
    spread = apply_correction(case.curves.local, family, find_setting(case), shipped)
    if spread is shipped:
        return total
    notes.record_calibrations(spread.calibration_ids)
    return spread.around(total.value, total.basis)


def _compute_training_limits(
    case: TrainingCase, stages: tuple[StageMemory, ...], usable: float, notes: AnswerNotes
) -> DimensionLimits:
    profile, workload, layout, sample = case.profile, case.workload, case.layout, case.sample
    longest = None
    if sample is None:
        longest = find_longest_sequence(
            stages, usable, context=layout.context, micro_batch_size=workload.micro_batch_size
        )
    elif has_variable_length(profile):
        overhead = case.curves.training_memory.overhead
        longest = find_longest_sampled_sequence(
            profile, sample, workload, layout, usable_bytes=usable, overhead=overhead
        )
    else:
        detail = "the model takes no sequence whose length is open"
        notes.add_gap("/limits/max_sequence_length", "NOT_APPLICABLE", detail)
    most = find_largest_micro_batch(stages, usable, context=layout.context)
    return DimensionLimits(max_micro_batch_size=most, max_sequence_length=longest)


def _compute_pass_limits(
    case: InferenceCase, memory: ServingMemory, usable: float | None, notes: AnswerNotes
) -> DimensionLimits:
    """Returns the limits of a model without a cache: the requests of one forward pass."""
    workload = case.resident.workload
    pointer = "/limits/kv_cache_tokens" if workload.pass_elements else "/limits"
    notes.add_gap(pointer, "NO_KV_CACHE", "the model keeps no cache of a request")
    if usable is None or not workload.pass_elements:
        return DimensionLimits()
    return DimensionLimits(max_concurrency=count_pass_requests(memory, workload, usable) * case.layout.data)


def _compute_serving_limits(
    case: InferenceCase, memory: ServingMemory, room: tuple[float, float], notes: AnswerNotes
) -> DimensionLimits:
    """Returns the limits in the bytes that this load may use, and in the engine's share of the device."""
    layout, (profile, workload) = case.layout, case.resident
    usable, limit = room
    most = find_largest_concurrency(memory, workload, limit) * layout.data
    if not memory.sequence_cache_bytes:
        detail = "the model keeps a state of each request and no cache of its tokens"
        notes.add_gap("/limits/kv_cache_tokens", "NO_KV_CACHE", detail)
        return DimensionLimits(max_concurrency=most)
    tokens = count_cache_tokens(memory, usable, workload) * layout.data
    longest = find_longest_context(profile, workload, layout, memory, usable)
    if longest is None:
        detail = "every layer's window is full before the memory is: no length takes more"
        notes.add_gap("/limits/max_sequence_length", "UNBOUNDED", detail)
    return DimensionLimits(max_concurrency=most, kv_cache_tokens=tokens, max_sequence_length=longest)


def _judge_fit(
    estimate: MemoryFootprint, cluster: Cluster, usable: float | None, notes: AnswerNotes
) -> MemoryFootprint:
    """Adds capacity and verdict to the estimate; an incomplete sum can only show that it does not fit."""
    capacity, total = cluster.accelerator.capacity_bytes, estimate.total
    if usable is None or capacity is None:
        notes.add_gap("/fits", "CAPACITY_UNKNOWN", "no accelerator with a known memory is named")
        return estimate
    estimate = estimate._replace(capacity=capacity, usable_bytes=usable)
    if has_interval(capacity):
        notes.warn(
            "CAPACITY_UNCERTAIN",
            "/cluster/accelerator",
            f"only a label of this memory is known: between {capacity.low / GIGABYTE_BYTES:.1f} and "
            f"{capacity.high / GIGABYTE_BYTES:.1f} GB",
        )
    if total is not None:
        return estimate._replace(
            headroom_bytes=_round_bytes(usable - total.value),
            fits=total.value <= usable,
            fit_probability=probability_at_most(total, scaled(capacity, usable / capacity.value)),
        )
    if estimate.known_bytes > usable:
        return estimate._replace(fits=False)
    notes.add_gap("/fits", "TOTAL_UNKNOWN", "the known components fit, but the sum is not known")
    return estimate


def _count_high_precision_gradients(stage: StageMemory, workload: TrainingWorkload) -> float:
    """Returns the extra bytes if a framework keeps narrow gradients in FP32; 0 for a named framework."""
    recipe = workload.recipe
    if workload.framework is not Framework.GENERIC or not recipe.master:
        return 0.0
    if recipe.gradients is NumberFormat.FP32:
        return 0.0
    return stage.state.gradients * ELEMENT_BYTES[NumberFormat.FP32] / ELEMENT_BYTES[recipe.gradients]


def _warn_of_high_precision_gradients(
    headroom: float, stage: StageMemory, workload: TrainingWorkload, notes: AnswerNotes
) -> None:
    """Warns that FP32 gradients would not fit; Megatron-LM and DeepSpeed accumulate bf16 gradients so."""
    wide = _count_high_precision_gradients(stage, workload)
    if wide > headroom:
        notes.warn(
            "GRADIENTS_MAY_BE_WIDE",
            "/workload/precision",
            f"a framework that accumulates gradients in FP32 takes {wide / GIGABYTE_BYTES:.1f} GB more, "
            "which would not fit",
        )


def _warn_of_generation(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, notes: AnswerNotes
) -> None:
    """Warns of the generation between steps, whose cache then takes the place of activations."""
    token = key_value_bytes(profile, 1.0, NumberFormat.BF16, tensor=layout.tensor)
    batch = workload.micro_batch_size * workload.sequence_length
    cache = stage_share(profile, layout) * token * batch
    notes.warn(
        "GENERATION_NOT_COUNTED",
        "/workload/objective",
        f"generating the sequences of a micro-batch holds {cache / GIGABYTE_BYTES:.1f} GB of KV cache "
        "instead of activations; an engine that generates beside the step takes its own share of the "
        "device: ask for it as inference",
    )


def _list_training_advice(case: TrainingCase, usable: float) -> Iterator[Advice]:
    """Yields the cheapest techniques that together bring the fullest device below the limit."""
    advised = find_cheapest_techniques(
        case.profile,
        StepLayout(case.workload, case.layout),
        per_node=case.cluster.accelerators_per_node,
        usable_bytes=usable,
        overhead=case.curves.training_memory.overhead,
    )
    for technique in advised:
        yield _build_advice(technique.code, technique.detail, technique.total_bytes, usable)


def _build_advice(code: str, change: str, total: float, usable: float) -> Advice:
    detail = (
        f"{change}: {total / GIGABYTE_BYTES:.1f} GB of the {usable / GIGABYTE_BYTES:.1f} GB that may be used"
    )
    return Advice(code, detail)


_SMALL_BATCH = 2048
_LARGEST_SET = 3
_MOST_SETS = 5


class _ServedSetup(NamedTuple):
    """Workload and layout of a served model, before or after a change."""

    workload: InferenceWorkload
    layout: Parallelism


class _SetupChange(NamedTuple):
    """One possible change: its code, its description, and the function that applies it."""

    code: str
    text: str
    apply: Callable[[_ServedSetup], _ServedSetup]


def _list_serving_advice(case: InferenceCase, capacity: float) -> Iterator[Advice]:
    """Yields single changes that fit, else the sets of two or three, the cheapest first."""
    profile, workload = case.resident
    changes = list(_list_serving_changes(case))
    for size in range(1, _LARGEST_SET + 1):
        found = 0
        for together in combinations(changes, size):
            changed = _ServedSetup(workload, case.layout)
            for change in together:
                changed = change.apply(changed)
            memory = estimate_inference_memory(profile, *changed)
            limit = changed.workload.memory_fraction * capacity
            usable = compute_usable_bytes(memory, changed.workload, limit)
            if memory.total_bytes <= usable and found < _MOST_SETS + len(changes):
                found += 1
                text = " with ".join(change.text for change in together)
                code = "_AND_".join(change.code for change in together)
                yield _build_advice(code, text, memory.total_bytes, usable)
        if found:
            return


def _list_serving_changes(case: InferenceCase) -> Iterator[_SetupChange]:
    """Yields the possible changes, the cheapest first."""
    layout, (profile, workload) = case.layout, case.resident

    def build_change(code: str, text: str, **changed: Any) -> _SetupChange:  # noqa: ANN401
        return _SetupChange(
            code, text, lambda service: service._replace(workload=service.workload._replace(**changed))
        )

    needed = workload.requests_per_replica(layout.data)
    if workload.rules.samples_at_start and (workload.most_requests or 0) > needed:
        text = f"reserving room for {needed} requests at a time only (max_num_seqs)"
        yield build_change("FEWER_SEQUENCES", text, most_requests=needed)
    if workload.rules.name is not None and workload.batched_tokens > _SMALL_BATCH:
        text = f"at most {_SMALL_BATCH} tokens in an iteration (max_batched_tokens)"
        yield build_change("SMALLER_BATCHES", text, batched_tokens=_SMALL_BATCH)
    if profile.generates and CACHE_FORMATS[workload.cache_format].element_bytes > 1.0:
        yield build_change("FP8_KV_CACHE", "storing the KV cache in FP8", cache_format=NumberFormat.FP8)
    bits = workload.storage.mean_bits
    for code, text, packed, width in (
        ("FP8_WEIGHTS", "storing the weights in FP8", PLAIN_FORMATS[NumberFormat.FP8], 8.0),
        (
            "INT4_WEIGHTS",
            "storing the weights in 4 bit (AWQ, groups of 128)",
            NAMED_FORMATS["awq_int4_g128"],
            5.0,
        ),
    ):
        if bits > width:
            yield build_change(code, text, weight_format=packed.compute, stored=packed)
    wider = _widen_tensor(profile, layout, case.cluster)
    if wider is not None:
        text = f"tensor parallelism of {wider.tensor} and {wider.data} replicas on the same devices"
        yield _SetupChange("MORE_TENSOR_PARALLELISM", text, _build_layout_change(case, wider))
    if workload.concurrency > layout.data:
        yield build_change("CONCURRENCY_1", "one request at a time on each replica", concurrency=1)


def _build_layout_change(case: InferenceCase, layout: Parallelism) -> Callable[[_ServedSetup], _ServedSetup]:
    """Returns a change of the layout and of the memory fraction that the engine sets for it."""
    started = start_engine(
        case.resident.workload,
        case.engine,
        case.context_tokens,
        case.cluster.accelerator,
        layout.tensor * layout.pipeline,
    )
    fraction = started.memory_fraction
    return lambda service: _ServedSetup(service.workload._replace(memory_fraction=fraction), layout)


def _widen_tensor(profile: ModelProfile, layout: Parallelism, cluster: Cluster) -> Parallelism | None:
    """Returns the widest tensor parallelism that node and heads allow, at the expense of replicas."""
    for tensor in range(cluster.accelerators_per_node, layout.tensor, -1):
        devices = layout.tensor * layout.data
        divides = devices % tensor == 0 and (devices // tensor) % layout.expert == 0
        if divides and all(work.query_heads % tensor == 0 for work in profile.attention):
            return layout._replace(tensor=tensor, data=devices // tensor)
    return None
