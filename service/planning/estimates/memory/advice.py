"""Changes that make a case fit."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

from service.planning.cases import InferenceCase, TrainingCase
from service.planning.estimates.advice import Advice
from service.planning.estimates.devices import start_engine
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.storage import CACHE_FORMATS, NAMED_FORMATS, PLAIN_FORMATS
from service.planning.memory.advice import StepLayout, find_cheapest_techniques
from service.planning.memory.capacity import compute_usable_bytes
from service.planning.memory.serving import estimate_inference_memory
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat
from service.planning.units import GIGABYTE_BYTES
from service.planning.workload import InferenceWorkload


def list_training_advice(case: TrainingCase, usable: float) -> Iterator[Advice]:
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


def list_serving_advice(case: InferenceCase, capacity: float) -> Iterator[Advice]:
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
