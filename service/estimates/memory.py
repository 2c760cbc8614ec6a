"""Does it fit?"""

import math
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

from pydantic import MISSING

from service.estimates.calibrated import note_memory, note_run
from service.estimates.residuals import as_measured
from service.estimates.serving import serve, subject_of
from service.estimates.settings import held_setting, trained_setting
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.local_evidence import LocalEvidence, Setting, corrected
from service.planning.hardware.storage import CACHE_FORMATS, NAMED_FORMATS, PLAIN_FORMATS
from service.planning.memory.adaptation import trained_parameters
from service.planning.memory.advice import Step, cheapest_techniques
from service.planning.memory.caches import key_value_bytes
from service.planning.memory.capacity import (
    cache_tokens,
    cache_waste,
    largest_concurrency,
    longest_context,
    requests_of_a_pass,
    usable_bytes_of,
)
from service.planning.memory.sampled import longest_sampled_sequence, takes_any_length
from service.planning.memory.serving import (
    ServingMemory,
    ServingRange,
    inference_memory,
    inference_memory_range,
)
from service.planning.memory.stages import stage_share
from service.planning.memory.training import (
    StageMemory,
    largest_micro_batch,
    longest_sequence,
    training_memory,
)
from service.planning.models.profile import Profile
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, PAGED, NumberFormat
from service.planning.quantity import Basis, Quantity, Spread, combine, probability_at_most, scaled
from service.planning.software.frameworks import Framework
from service.planning.software.overhead import DeviceOverhead
from service.planning.units import GIGABYTE_BYTES
from service.planning.workload import InferenceWorkload, Objective, Offload, Place, TrainingWorkload
from service.resolve import Resolved, resolve
from service.resolve.calibrated import calibrated
from service.resolve.catalog import Catalog
from service.resolve.hardware import resolve_cluster, usable_bytes
from service.resolve.model import ResolvedModel
from service.resolve.serving import under_engine
from service.schemas.answer import evidence, parallelism, quantity, whole
from service.schemas.answers import CacheAnswer, DeviceMemory, MemoryAnswer, MemoryComponent, MemoryLimits
from service.schemas.base import Advice
from service.schemas.estimates import MemoryQuestion
from service.schemas.notes import Notes
from service.schemas.software import system_of
from service.schemas.workloads import InferenceWorkloadInput, WorkloadInput


def estimate_memory(question: MemoryQuestion, catalog: Catalog) -> MemoryAnswer:
    """Memory of the fullest device, the verdict, and how far it goes."""
    catalog = calibrated(catalog, question.cluster)
    notes = Notes()
    cluster, resolved = resolve_held(question, catalog, notes)
    profile, layout, workload = resolved.model.profile, resolved.layout, resolved.workload
    unknown = _unknown_components(resolved, notes)
    curves = catalog.curves.training_memory
    limits: MemoryLimits = {}
    usable = usable_bytes(cluster, workload)
    if isinstance(workload, TrainingWorkload):
        stages = training_memory(profile, workload, layout, curves.overhead)
        if usable is not None and not unknown:
            limits = _training_limits(resolved, stages, usable, curves.overhead, notes)
        per_device = _training_device(
            stages[0], unknown, curves.total, _wide_gradient_bytes(stages[0], workload)
        )
    else:
        between = inference_memory_range(profile, workload, layout)
        serving = between.value
        limit = usable
        if limit is not None:
            usable = usable_bytes_of(serving, workload, limit)
        if usable is not None and limit is not None and not unknown and serving.request_bytes:
            limits = _serving_limits(resolved, serving, (usable, limit), notes)
        elif not unknown and not serving.request_bytes:
            limits = _pass_limits(resolved, serving, usable, notes)
        per_device = _serving_device(between, workload, unknown, catalog)
    note_memory(catalog, notes, has_context=_has_context(workload))
    per_device = as_measured(per_device, question.workload, catalog.curves)
    local = catalog.curves.local
    if local is not None and cluster is not None:
        family, setting = family_and_setting(question, resolved, cluster)
        per_device = _as_held_before(per_device, family, setting, local, notes)
    answer: MemoryAnswer = {
        "parameter_count": profile.parameter_count,
        "active_parameter_count": profile.active_parameter_count,
        "per_device": per_device,
        "limits": limits,
        "advice": [],
        "parallelism": parallelism(layout, chosen=resolved.layout_chosen),
        "evidence": evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if isinstance(workload, InferenceWorkload):
        _add_stored(answer, serving, resolved, unknown)
    _add_verdict(answer, cluster, usable, notes)
    if isinstance(workload, TrainingWorkload):
        _add_training(answer, stages[0], resolved, unknown, notes)
    if cluster is not None and answer.get("fits") is False and not unknown:
        answer["advice"] = list(_advice(resolved, cluster, question.workload, curves.overhead))
    return answer


def resolve_held(question: MemoryQuestion, catalog: Catalog, notes: Notes) -> tuple[Cluster | None, Resolved]:
    """The cluster of a question, and model and workload as memory sees them."""
    cluster = None
    if question.cluster is not MISSING:
        cluster = resolve_cluster(question.cluster, catalog, notes)
    resolved = _arriving(resolve(question, cluster, catalog, notes), question, cluster, catalog, notes)
    return cluster, as_held(resolved)


def _has_context(workload: TrainingWorkload | InferenceWorkload) -> bool:
    """Whether the total counts what driver and libraries hold: of a named engine, and of training."""
    return isinstance(workload, TrainingWorkload) or workload.buffers.context_bytes > 0.0


def _as_held_before(
    device: DeviceMemory, family: str, setting: Setting, local: LocalEvidence, notes: Notes
) -> DeviceMemory:
    """The memory under what the tenant's own runs held; the parts stay those of the formulas."""
    if "total_bytes" not in device:
        return device
    total = Quantity(**device["total_bytes"])
    shipped = Spread(total.low / total.value, total.high / total.value, "")
    spread = corrected(local, family, setting, shipped)
    if spread is shipped:
        return device
    notes.calibrated(spread.calibration_ids)
    return {**device, "total_bytes": quantity(spread.around(total.value, total.basis))}


def family_and_setting(
    question: MemoryQuestion, resolved: Resolved, cluster: Cluster | None
) -> tuple[str, Setting]:
    """The kind of answer that the memory of a question is, and what the run is of."""
    workload, profile, layout = resolved.workload, resolved.model.profile, resolved.layout
    if isinstance(workload, TrainingWorkload):
        return "training_memory", trained_setting(profile, workload, layout, cluster)
    assert isinstance(question.workload, InferenceWorkloadInput)  # noqa: S101
    system = system_of(question.workload, None if cluster is None else cluster.accelerator)
    return "inference_memory", held_setting(system, profile, workload, layout)


def _arriving(
    resolved: Resolved, question: MemoryQuestion, cluster: Cluster | None, catalog: Catalog, notes: Notes
) -> Resolved:
    """The question with as many requests at a time as there are on average where they arrive at a rate."""
    if resolved.asked is None or resolved.asked.concurrency is not None:
        return resolved
    serving, profile = None, resolved.model.profile
    assert isinstance(question.workload, InferenceWorkloadInput)  # noqa: S101
    if cluster is not None and profile.shapes_known and not profile.unmodelled_kinds:
        subject = subject_of(resolved, question.workload, cluster)
        limit = usable_bytes(cluster, subject.workload)
        serving = serve(subject, cluster, catalog.curves, limit_bytes=limit)
        note_run(resolved, cluster, catalog, notes)
    if serving is None:
        detail = "how many requests there are at a time is not known: one of each replica is counted"
        notes.warn("CONCURRENCY_UNKNOWN", "/workload/request_rate_per_second", detail)
        requests = resolved.layout.data
    else:
        requests = math.ceil(serving.requests_inside) * resolved.layout.data
        detail = f"{requests} requests at a time are counted: as many as there are on average"
        notes.warn("CONCURRENCY_ESTIMATED", "/workload/request_rate_per_second", detail)
    workload, held = resolved.workload, resolved.held
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    assert isinstance(held.workload, InferenceWorkload)  # noqa: S101
    return resolved._replace(
        workload=workload._replace(concurrency=requests),
        held=held._replace(workload=held.workload._replace(concurrency=requests)),
    )


def as_held(resolved: Resolved) -> Resolved:
    """The question with model and workload as memory sees them."""
    model = resolved.model._replace(profile=resolved.held.profile)
    return resolved._replace(model=model, workload=resolved.held.workload)


def _unknown_components(resolved: Resolved, notes: Notes) -> frozenset[str]:
    """Components that the description of model and sample does not give."""
    profile, missing = resolved.model.profile, resolved.held.unknown
    training = isinstance(resolved.workload, TrainingWorkload)
    names = frozenset({"activations", "logits"} if training else {"kv_cache", "state", "workspace"})
    if not profile.shapes_known:
        code, detail = "ARCHITECTURE_REQUIRED", "a parameter count says nothing of shapes"
    elif missing is not None and not training and not profile.unserved_kinds:
        detail = (
            "input_tokens are all that the decoder reads, those of images and the like with them; what a "
            f"tower takes while it runs is not counted: {missing.detail}"
        )
        notes.warn("TOKENS_ALONE_COUNTED", missing.pointer, detail)
        return frozenset()
    elif missing is not None:
        known = missing.code == "SAMPLE_FIELD_MISSING"
        code = "SAMPLE_REQUIRED" if known else missing.code
        detail = f"{missing.detail}: give {missing.pointer}" if known else missing.detail
    else:
        if resolved.held.sample is not None and training:
            detail = "no measured row is of a model like this: the interval is that of decoders"
            notes.warn("INTERVAL_OF_DECODERS", "/per_device/total_bytes", detail)
        return frozenset()
    named = sorted(names - {"state"})
    notes.gap("/per_device/total_bytes", code, f"{' and '.join(named)}: {detail}")
    return names


STATE_PARTS = frozenset({"weights", "gradients", "master_weights", "optimizer_states"})
"""Parts of a training step that are named even where they hold nothing."""


def _training_components(stage: StageMemory, unknown: frozenset[str]) -> Iterator[tuple[str, float]]:
    """The parts of the fullest moment; where activations are unknown, what does not come and go."""
    passing = {"activations", "logits", "gathered_weights", "gradient_buffers", "workspace", "fragmentation"}
    for name, size in stage.components.items():
        if not (unknown and name in passing) and (size or name in STATE_PARTS):
            yield name, size


def _add_training(
    answer: MemoryAnswer,
    stage: StageMemory,
    resolved: Resolved,
    unknown: frozenset[str],
    notes: Notes,
) -> None:
    """What belongs to training alone: how much is trained, and what leaves the device."""
    workload = resolved.workload
    assert isinstance(workload, TrainingWorkload)  # noqa: S101
    if answer.get("fits"):
        _warn_of_wide_gradients(answer["headroom_bytes"], stage, workload, notes)
    if workload.objective in (Objective.PPO, Objective.GRPO) and not unknown:
        _warn_of_generation(resolved.model.profile, workload, resolved.layout, notes)
    answer["trained_parameter_count"] = trained_parameters(resolved.model.profile, workload.adaptation)
    moved = workload.offload != Offload() or workload.optimizer in PAGED
    if moved and not (unknown and workload.offload.activations is not Place.NONE):
        host = stage.host_state if unknown else stage.host_bytes
        answer["host"] = {"memory_bytes": whole(host), "nvme_bytes": whole(stage.nvme_state)}


def _serving_components(memory: ServingMemory) -> Iterator[tuple[str, float]]:
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


def _add_stored(
    answer: MemoryAnswer, memory: ServingMemory, resolved: Resolved, unknown: frozenset[str]
) -> None:
    """What the model's files hold, and what a request holds."""
    workload = resolved.workload
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    stored = resolved.model.profile.weights.stored(workload.storage)
    answer["stored_weight_bytes"] = whole(stored.total)
    if memory.sequence_cache_bytes and not unknown:
        answer["kv_cache"] = _cache(memory, workload)


def _cache(memory: ServingMemory, workload: InferenceWorkload) -> CacheAnswer:
    waste = cache_waste(memory, workload)
    return {
        "allocation": "paged" if workload.rules.paged else "contiguous",
        "block_tokens": workload.block_tokens,
        "bytes_per_token": waste.bytes_per_token,
        "bytes_per_request": whole(waste.bytes_per_request),
        "waste_bytes_per_request": whole(waste.waste_bytes_per_request),
    }


def _parts(components: Iterator[tuple[str, float]], unknown: frozenset[str]) -> list[MemoryComponent]:
    return [
        {"name": name, "bytes": whole(size)}  # type: ignore[typeddict-item]
        for name, size in components
        if name not in unknown
    ]


def _training_device(
    stage: StageMemory, unknown: frozenset[str], spread: Spread, wide_gradients: float
) -> DeviceMemory:
    parts = _parts(_training_components(stage, unknown), unknown)
    known = sum(part["bytes"] for part in parts)
    if unknown:
        return {"known_bytes": known, "components": parts}
    total = spread.around(float(known), Basis.REFERENCE)
    # Which framework trains is not known: it may keep gradients in FP32.
    total = total._replace(high=total.high + wide_gradients)
    return {"known_bytes": known, "components": parts, "total_bytes": quantity(total)}


def _serving_device(
    between: ServingRange, workload: InferenceWorkload, unknown: frozenset[str], catalog: Catalog
) -> DeviceMemory:
    parts = _parts(_serving_components(between.value), unknown)
    known = sum(part["bytes"] for part in parts)
    if unknown:
        return {"known_bytes": known, "components": parts}
    if workload.rules.name is not None:
        low = min(between.least.total_bytes, known)
        high = max(between.most.total_bytes, known)
        total = Quantity(float(known), low, high, Basis.REFERENCE)
    else:
        # Engines take the cache in blocks of exact size; what they take beside it is what is unsure.
        cache = sum(part["bytes"] for part in parts if part["name"] in ("kv_cache", "state"))
        beside = catalog.curves.inference_memory.around(float(known - cache), Basis.DATASHEET)
        total = combine(lambda size: size + cache, beside)
    return {"known_bytes": known, "components": parts, "total_bytes": quantity(total)}


def _training_limits(
    resolved: Resolved,
    stages: tuple[StageMemory, ...],
    usable: float,
    overhead: DeviceOverhead,
    notes: Notes,
) -> MemoryLimits:
    workload, layout, sample = resolved.workload, resolved.layout, resolved.held.sample
    assert isinstance(workload, TrainingWorkload)  # noqa: S101
    limits: MemoryLimits = {
        "max_micro_batch_size": largest_micro_batch(stages, usable, context=layout.context)
    }
    if sample is None:
        limits["max_sequence_length"] = longest_sequence(
            stages, usable, context=layout.context, micro_batch_size=workload.micro_batch_size
        )
    elif takes_any_length(resolved.model.profile):
        limits["max_sequence_length"] = longest_sampled_sequence(
            resolved.model.profile, sample, workload, layout, usable_bytes=usable, overhead=overhead
        )
    else:
        detail = "the model takes no sequence whose length is open"
        notes.gap("/limits/max_sequence_length", "NOT_APPLICABLE", detail)
    return limits


def _pass_limits(
    resolved: Resolved, memory: ServingMemory, usable: float | None, notes: Notes
) -> MemoryLimits:
    """Of a model that keeps nothing of a request that has ended: the requests of one forward pass."""
    workload, layout = resolved.workload, resolved.layout
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    pointer = "/limits/kv_cache_tokens" if workload.pass_elements else "/limits"
    notes.gap(pointer, "NO_KV_CACHE", "the model keeps nothing of a request that has ended")
    if usable is None or not workload.pass_elements:
        return {}
    return {"max_concurrency": requests_of_a_pass(memory, workload, usable) * layout.data}


def _serving_limits(
    resolved: Resolved, memory: ServingMemory, room: tuple[float, float], notes: Notes
) -> MemoryLimits:
    """Limits in the bytes that may be used as asked, and in the engine's share of the device."""
    layout, workload = resolved.layout, resolved.workload
    usable, limit = room
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    most = largest_concurrency(memory, workload, limit)
    limits: MemoryLimits = {"max_concurrency": most * layout.data}
    if not memory.sequence_cache_bytes:
        detail = "the model keeps a state of each request and no tokens"
        notes.gap("/limits/kv_cache_tokens", "NO_KV_CACHE", detail)
        return limits
    limits["kv_cache_tokens"] = cache_tokens(memory, usable, workload) * layout.data
    longest = longest_context(resolved.model.profile, workload, layout, memory, usable)
    if longest is None:
        detail = "every layer's window is full before the memory is: no length takes more"
        notes.gap("/limits/max_sequence_length", "UNBOUNDED", detail)
    else:
        limits["max_sequence_length"] = longest
    return limits


def _add_verdict(
    answer: MemoryAnswer,
    cluster: Cluster | None,
    usable: float | None,
    notes: Notes,
) -> None:
    """Capacity and verdict; an incomplete sum can only show that it does not fit."""
    capacity = cluster.accelerator.capacity_bytes if cluster else None
    if usable is None or capacity is None:
        notes.gap("/fits", "CAPACITY_UNKNOWN", "no accelerator with a known memory is named")
        return
    fraction = usable / capacity.value
    answer["capacity_bytes"] = whole(capacity.value)
    answer["usable_bytes"] = whole(usable)
    if capacity.low != capacity.high:
        notes.warn(
            "CAPACITY_UNCERTAIN",
            "/cluster/accelerator",
            f"only a label is known of this memory: between {capacity.low / GIGABYTE_BYTES:.1f} and "
            f"{capacity.high / GIGABYTE_BYTES:.1f} GB",
        )
    device = answer["per_device"]
    if "total_bytes" in device:
        total = device["total_bytes"]
        answer["headroom_bytes"] = whole(usable - total["value"])
        answer["fits"] = total["value"] <= usable
        figure = Quantity(total["value"], total["low"], total["high"], total["basis"])
        limit = scaled(capacity, fraction)
        answer["fit_probability"] = probability_at_most(figure, limit)
    elif device["known_bytes"] > usable:
        answer["fits"] = False
    else:
        notes.gap("/fits", "TOTAL_UNKNOWN", "the known components fit, but the sum is not known")


def _wide_gradient_bytes(stage: StageMemory, workload: TrainingWorkload) -> float:
    """FP32 gradients that a framework may keep beside narrow ones; 0 where the question settles it."""
    recipe = workload.recipe
    if workload.framework is not Framework.GENERIC or not recipe.master:
        return 0.0
    if recipe.gradients is NumberFormat.FP32:
        return 0.0
    return stage.state.gradients * ELEMENT_BYTES[NumberFormat.FP32] / ELEMENT_BYTES[recipe.gradients]


def _warn_of_generation(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, notes: Notes
) -> None:
    """Sequences are generated between steps: their cache is held then, in place of activations."""
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


def _warn_of_wide_gradients(
    headroom: float, stage: StageMemory, workload: TrainingWorkload, notes: Notes
) -> None:
    """Megatron-LM and DeepSpeed accumulate bf16 gradients in FP32; only a named framework settles it."""
    wide = _wide_gradient_bytes(stage, workload)
    if wide > headroom:
        notes.warn(
            "GRADIENTS_MAY_BE_WIDE",
            "/workload/precision",
            f"a framework that accumulates gradients in FP32 takes {wide / GIGABYTE_BYTES:.1f} GB more, "
            "which would not fit",
        )


def _advice(
    resolved: Resolved, cluster: Cluster, given: WorkloadInput, overhead: DeviceOverhead
) -> Iterator[Advice]:
    """Changes that bring the fullest device below the limit."""
    profile, workload, layout = resolved.model.profile, resolved.workload, resolved.layout
    usable = usable_bytes(cluster, workload)
    if usable is None:
        return
    if isinstance(workload, TrainingWorkload):
        advised = cheapest_techniques(
            profile,
            Step(workload, layout),
            per_node=cluster.accelerators_per_node,
            usable_bytes=usable,
            overhead=overhead,
        )
        for technique in advised:
            yield _advised(technique.code, technique.detail, technique.total_bytes, usable)
        return
    yield from _serving_advice(resolved, cluster, given, usable / workload.memory_fraction)


def _advised(code: str, change: str, total: float, usable: float) -> Advice:
    detail = (
        f"{change}: {total / GIGABYTE_BYTES:.1f} GB of the {usable / GIGABYTE_BYTES:.1f} GB that may be used"
    )
    return {"code": code, "detail": detail}


_SMALL_BATCH = 2048
_LARGEST_SET = 3
_MOST_SETS = 5


class _Served(NamedTuple):
    """A served model as it is asked for, or as it would be after a change."""

    workload: InferenceWorkload
    layout: Parallelism


class _Change(NamedTuple):
    """One thing that may be changed: its code, what it is in words, and how it is done."""

    code: str
    text: str
    apply: Callable[[_Served], _Served]


def _serving_advice(
    resolved: Resolved, cluster: Cluster, given: WorkloadInput, capacity: float
) -> Iterator[Advice]:
    """Single changes that fit, else the sets of two or three, those that cost least first."""
    assert isinstance(given, InferenceWorkloadInput)  # noqa: S101
    assert isinstance(resolved.workload, InferenceWorkload)  # noqa: S101
    asked = _Served(resolved.workload, resolved.layout)
    changes = list(_serving_changes(asked, resolved.model, cluster, given))
    for size in range(1, _LARGEST_SET + 1):
        found = 0
        for together in combinations(changes, size):
            changed = asked
            for change in together:
                changed = change.apply(changed)
            memory = inference_memory(resolved.model.profile, *changed)
            limit = changed.workload.memory_fraction * capacity
            usable = usable_bytes_of(memory, changed.workload, limit)
            if memory.total_bytes <= usable and found < _MOST_SETS + len(changes):
                found += 1
                text = " with ".join(change.text for change in together)
                code = "_AND_".join(change.code for change in together)
                yield _advised(code, text, memory.total_bytes, usable)
        if found:
            return


def _serving_changes(
    asked: _Served, model: ResolvedModel, cluster: Cluster, given: InferenceWorkloadInput
) -> Iterator[_Change]:
    """What may be changed, that which costs least first."""
    workload, layout = asked

    def to(code: str, text: str, **changed: Any) -> _Change:  # noqa: ANN401
        return _Change(
            code, text, lambda served: served._replace(workload=served.workload._replace(**changed))
        )

    def wider(served: _Served) -> _Served:
        """Settings that follow from the devices of a group change with it."""
        assert wide is not None  # noqa: S101
        again = under_engine(workload, given, model, cluster, wide.tensor * wide.pipeline)
        return _Served(served.workload._replace(memory_fraction=again.memory_fraction), wide)

    needed = workload.requests_per_replica(layout.data)
    if workload.rules.samples_at_start and (workload.most_requests or 0) > needed:
        text = f"reserving room for {needed} requests at a time only (max_num_seqs)"
        yield to("FEWER_SEQUENCES", text, most_requests=needed)
    if workload.rules.name is not None and workload.batched_tokens > _SMALL_BATCH:
        text = f"at most {_SMALL_BATCH} tokens in an iteration (max_batched_tokens)"
        yield to("SMALLER_BATCHES", text, batched_tokens=_SMALL_BATCH)
    if model.profile.generates and CACHE_FORMATS[workload.cache_format].element_bytes > 1.0:
        yield to("FP8_KV_CACHE", "storing the KV cache in FP8", cache_format=NumberFormat.FP8)
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
            yield to(code, text, weight_format=packed.compute, stored=packed)
    wide = _wider(model.profile, layout, cluster)
    if wide is not None:
        text = f"tensor parallelism of {wide.tensor} and {wide.data} replicas on the same devices"
        yield _Change("MORE_TENSOR_PARALLELISM", text, wider)
    if workload.concurrency > layout.data:
        yield to("CONCURRENCY_1", "one request at a time on each replica", concurrency=1)


def _wider(profile: Profile, layout: Parallelism, cluster: Cluster) -> Parallelism | None:
    """The widest tensor parallelism that a node and the heads allow, replicas given up for it."""
    for tensor in range(cluster.accelerators_per_node, layout.tensor, -1):
        devices = layout.tensor * layout.data
        divides = devices % tensor == 0 and (devices // tensor) % layout.expert == 0
        if divides and all(work.query_heads % tensor == 0 for work in profile.attention):
            return layout._replace(tensor=tensor, data=devices // tensor)
    return None
