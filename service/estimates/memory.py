"""Does it fit?"""

from collections.abc import Iterator

from pydantic import MISSING

from service.estimates.residuals import as_measured
from service.planning.cluster import Cluster
from service.planning.curves import Share
from service.planning.memory.serving import (
    ServingMemory,
    cache_tokens,
    inference_memory,
    largest_concurrency,
    longest_context,
)
from service.planning.memory.training import (
    StageMemory,
    largest_micro_batch,
    longest_sequence,
    training_memory,
)
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.profile import Profile
from service.planning.quantity import Basis, Quantity, Spread, combine, probability_at_most, scaled
from service.planning.units import GIGABYTE_BYTES
from service.planning.workload import InferenceWorkload, Recomputation, TrainingWorkload
from service.questions.answer import evidence, parallelism, quantity, whole
from service.questions.answers import DeviceMemory, MemoryAnswer, MemoryComponent, MemoryLimits
from service.questions.base import Advice
from service.questions.catalog import Catalog
from service.questions.estimates import MemoryQuestion
from service.questions.hardware import resolve_cluster, room_bytes, usable_bytes
from service.questions.notes import Notes
from service.questions.resolve import Resolved, resolve


def estimate_memory(question: MemoryQuestion, catalog: Catalog) -> MemoryAnswer:
    """Memory of the fullest device, the verdict, and how far it goes."""
    notes = Notes()
    cluster = None
    if question.cluster is not MISSING:
        cluster = resolve_cluster(question.cluster, catalog, notes)
    resolved = resolve(question, cluster, catalog, notes)
    profile, layout, workload = resolved.model.profile, resolved.layout, resolved.workload
    unknown = _unknown_components(profile, workload, notes)
    limits: MemoryLimits = {}
    usable = usable_bytes(cluster, workload)
    if isinstance(workload, TrainingWorkload):
        stages = training_memory(profile, workload, layout)
        components = _training_components(stages[0])
        room = room_bytes(cluster, workload, catalog)
        if room is not None and not unknown:
            limits = _training_limits(stages, room, workload, layout)
        per_device = _training_device(components, unknown, catalog.curves.training_overhead)
    else:
        serving = inference_memory(profile, workload, layout)
        components = _serving_components(serving)
        if usable is not None and not unknown and serving.sequence_cache_bytes:
            limits = _serving_limits(resolved, serving, usable, notes)
        elif not unknown and not serving.sequence_cache_bytes:
            notes.gap("/limits", "NO_KV_CACHE", "the model keeps nothing of a request that has ended")
        per_device = _serving_device(components, unknown, catalog.curves.inference_memory)
    answer: MemoryAnswer = {
        "parameter_count": profile.parameter_count,
        "active_parameter_count": profile.active_parameter_count,
        "per_device": as_measured(per_device, question.workload, catalog.curves),
        "limits": limits,
        "advice": [],
        "parallelism": parallelism(layout, chosen=resolved.layout_chosen),
        "evidence": evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    _add_verdict(answer, cluster, usable, notes)
    if isinstance(workload, TrainingWorkload) and answer.get("fits"):
        _warn_of_wide_gradients(answer["headroom_bytes"], stages[0], workload, notes)
    if answer.get("fits") is False and usable is not None:
        answer["advice"] = list(_advice(resolved, usable, catalog.curves.training_overhead))
    return answer


def _unknown_components(
    profile: Profile, workload: TrainingWorkload | InferenceWorkload, notes: Notes
) -> frozenset[str]:
    """Components that the model's description does not give."""
    training = isinstance(workload, TrainingWorkload)
    names = frozenset({"activations", "logits"} if training else {"kv_cache", "workspace"})
    if not profile.shapes_known:
        code, detail = "ARCHITECTURE_REQUIRED", "a parameter count says nothing of shapes"
    elif profile.unmodelled_kinds:
        kinds = ", ".join(sorted(profile.unmodelled_kinds))
        code, detail = "LAYER_KIND_NOT_MODELLED", f"not modelled for layers of kind {kinds}"
    else:
        return frozenset()
    notes.gap("/per_device/total_bytes", code, f"{' and '.join(sorted(names))}: {detail}")
    return names


def _training_components(stage: StageMemory) -> Iterator[tuple[str, float]]:
    yield "weights", stage.state.weights
    yield "gradients", stage.state.gradients
    yield "master_weights", stage.state.master_weights
    yield "optimizer_states", stage.state.optimizer_states
    yield "activations", stage.activation_bytes
    yield "logits", stage.logits_bytes
    yield "workspace", stage.workspace


def _serving_components(memory: ServingMemory) -> Iterator[tuple[str, float]]:
    yield "weights", memory.weights
    yield "kv_cache", memory.kv_cache
    yield "workspace", memory.workspace


def _parts(components: Iterator[tuple[str, float]], unknown: frozenset[str]) -> list[MemoryComponent]:
    return [
        {"name": name, "bytes": whole(size)}  # type: ignore[typeddict-item]
        for name, size in components
        if name not in unknown
    ]


def _training_device(
    components: Iterator[tuple[str, float]], unknown: frozenset[str], overhead: Share
) -> DeviceMemory:
    parts = _parts(components, unknown)
    itemised = sum(part["bytes"] for part in parts)
    if unknown:
        return {"known_bytes": itemised, "components": parts}
    parts.append({"name": "framework_overhead", "bytes": whole(overhead.value * itemised)})
    known = itemised + parts[-1]["bytes"]
    low, high = (itemised * (1.0 + end) for end in (overhead.low, overhead.high))
    total = Quantity(float(known), low, high, Basis.REFERENCE)
    return {"known_bytes": known, "components": parts, "total_bytes": quantity(total)}


def _serving_device(
    components: Iterator[tuple[str, float]], unknown: frozenset[str], spread: Spread
) -> DeviceMemory:
    parts = _parts(components, unknown)
    known = sum(part["bytes"] for part in parts)
    if unknown:
        return {"known_bytes": known, "components": parts}
    # Engines take the cache in blocks of exact size; what they take beside it is what is unsure.
    cache = sum(part["bytes"] for part in parts if part["name"] == "kv_cache")
    total = combine(lambda size: size + cache, spread.around(float(known - cache), Basis.DATASHEET))
    return {"known_bytes": known, "components": parts, "total_bytes": quantity(total)}


def _training_limits(
    stages: tuple[StageMemory, ...],
    usable: float,
    workload: TrainingWorkload,
    layout: Parallelism,
) -> MemoryLimits:
    return {
        "max_micro_batch_size": largest_micro_batch(stages, usable, context=layout.context),
        "max_sequence_length": longest_sequence(
            stages,
            usable,
            context=layout.context,
            micro_batch_size=workload.micro_batch_size,
        ),
    }


def _serving_limits(resolved: Resolved, memory: ServingMemory, usable: float, notes: Notes) -> MemoryLimits:
    layout, workload = resolved.layout, resolved.workload
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    limits: MemoryLimits = {
        "max_concurrency": largest_concurrency(memory, usable) * layout.data,
        "kv_cache_tokens": cache_tokens(memory, usable, workload) * layout.data,
    }
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


def _warn_of_wide_gradients(
    headroom: float, stage: StageMemory, workload: TrainingWorkload, notes: Notes
) -> None:
    """Megatron-LM and DeepSpeed accumulate bf16 gradients in FP32, beside the narrow ones."""
    recipe, wide_bytes = workload.recipe, ELEMENT_BYTES[NumberFormat.FP32]
    wide = stage.state.gradients * wide_bytes / ELEMENT_BYTES[recipe.gradients]
    if recipe.master and recipe.gradients is not NumberFormat.FP32 and wide > headroom:
        notes.warn(
            "GRADIENTS_MAY_BE_WIDE",
            "/workload/precision",
            f"a framework that accumulates gradients in FP32 takes {wide / GIGABYTE_BYTES:.1f} GB more, "
            "which would not fit",
        )


def _advice(resolved: Resolved, usable: float, overhead: Share) -> Iterator[Advice]:
    """Single changes that bring the fullest device below the limit."""
    profile, workload, layout = resolved.model.profile, resolved.workload, resolved.layout
    if not profile.shapes_known or profile.unmodelled_kinds:
        return
    if isinstance(workload, TrainingWorkload):
        changes = _training_changes(workload, layout)
        totals = {
            name: training_memory(profile, changed, changed_layout)[0].total_bytes * (1.0 + overhead.value)
            for name, changed, changed_layout in changes
        }
    else:
        totals = {
            name: inference_memory(profile, changed, layout).total_bytes
            for name, changed in _serving_changes(workload)
        }
    for name, total in totals.items():
        if total <= usable:
            yield {
                "code": name.upper(),
                "detail": f"{_CHANGES[name]} takes {total / GIGABYTE_BYTES:.1f} GB of the "
                f"{usable / GIGABYTE_BYTES:.1f} GB that may be used",
            }


_CHANGES = {
    "full_recomputation": "recomputing all activations",
    "micro_batch_1": "a micro-batch of one sequence",
    "zero_1": "sharding the optimizer states (ZeRO 1)",
    "zero_3": "sharding weights, gradients and optimizer states (ZeRO 3)",
    "zero_3_full_recomputation": "ZeRO 3 with all activations recomputed",
    "fp8_weights": "storing the weights in FP8",
    "fp8_kv_cache": "storing the KV cache in FP8",
    "concurrency_1": "one request at a time on each replica",
}


def _training_changes(
    workload: TrainingWorkload, layout: Parallelism
) -> Iterator[tuple[str, TrainingWorkload, Parallelism]]:
    recomputed = workload._replace(recomputation=Recomputation.FULL)
    if workload.recomputation is not Recomputation.FULL:
        yield "full_recomputation", recomputed, layout
    if workload.micro_batch_size > 1:
        yield "micro_batch_1", workload._replace(micro_batch_size=1), layout
    if layout.replicas > 1:
        for sharding in (Sharding.ZERO_1, Sharding.ZERO_3):
            sharded = layout._replace(sharding=sharding, sharding_group_size=None)
            yield sharding.value, workload, sharded
            if sharding is Sharding.ZERO_3:
                yield "zero_3_full_recomputation", recomputed, sharded


def _serving_changes(workload: InferenceWorkload) -> Iterator[tuple[str, InferenceWorkload]]:
    yield "fp8_weights", workload._replace(weight_format=NumberFormat.FP8)
    yield "fp8_kv_cache", workload._replace(cache_format=NumberFormat.FP8)
    yield "concurrency_1", workload._replace(concurrency=1)
