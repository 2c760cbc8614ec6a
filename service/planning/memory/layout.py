"""Choice of a layout where the question leaves it open.

The order is that of engineering practice (Narayanan et al. 2021, takeaways 1 to 3; Rajbhandari et al. 2020):
data parallelism while a replica fits, then sharding of the optimizer states (ZeRO 1), then of all state (ZeRO
3), then the same with more tensor parallelism inside a node, then pipeline stages across nodes. The first
layout that fits the memory is taken; where none does, the one that comes closest.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache

from service.planning.memory.capacity import compute_usable_bytes
from service.planning.memory.serving import estimate_inference_memory
from service.planning.memory.training import estimate_training_memory
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism, Sharding, list_divisors
from service.planning.software.engines import EngineRules
from service.planning.software.frameworks import LAYOUTS, Framework, FrameworkLayouts
from service.planning.software.overhead import NO_OVERHEAD, DeviceOverhead
from service.planning.workload import InferenceWorkload, TrainingWorkload


@lru_cache(maxsize=4096)
def _list_splits(
    heads: tuple[int, ...], block_count: int, devices: int, per_node: int
) -> tuple[tuple[int, int], ...]:
    """Returns tensor and pipeline degrees, smallest replica first, tensor parallelism within a node."""
    tensors = [
        t for t in list_divisors(per_node) if devices % t == 0 and all(count % t == 0 for count in heads)
    ]
    pipelines = [p for p in list_divisors(devices) if p <= block_count]
    splits = {(t, p) for t in tensors for p in pipelines if devices % (t * p) == 0}
    # Pipeline stages only once tensor parallelism fills the node.
    widest = max(tensors)
    kept = [(t, p) for t, p in splits if p == 1 or t == widest]
    return tuple(sorted(kept, key=lambda split: (split[0] * split[1], split[1])))


def _list_profile_splits(profile: ModelProfile, devices: int, per_node: int) -> tuple[tuple[int, int], ...]:
    heads = tuple(work.query_heads for work in profile.attention)
    # A model without shapes may have any depth.
    depth = max(profile.block_count, 1) if profile.shapes_known else devices
    return _list_splits(heads, depth, devices, min(devices, per_node))


def _find_first_fitting(
    candidates: Iterator[Parallelism],
    used_bytes: Callable[[Parallelism], float],
    usable_bytes: float | None,
    devices: int,
) -> Parallelism:
    best: Parallelism | None = None
    best_bytes = 0.0
    for candidate in candidates:
        if usable_bytes is None:
            return candidate
        used = used_bytes(candidate)
        if used <= usable_bytes:
            return candidate
        if best is None or used < best_bytes:
            best, best_bytes = candidate, used
    return best or Parallelism(data=devices)


def select_training_layout(
    profile: ModelProfile,
    laid_out: Callable[[Parallelism], TrainingWorkload | None],
    *,
    devices: int,
    per_node: int,
    usable_bytes: float | None,
    overhead: DeviceOverhead = NO_OVERHEAD,
    allowed: FrameworkLayouts = LAYOUTS[Framework.GENERIC],
) -> Parallelism:
    """Returns the first layout in the order of practice that fits the training step in ``usable_bytes``.

    ``laid_out`` gives the workload on a layout, or None where the question's batch does not divide. A model
    without shapes takes the first such layout, with all of its state sharded.
    """
    if devices == 1:
        return Parallelism()
    workloads: dict[Parallelism, TrainingWorkload] = {}

    def list_candidates() -> Iterator[Parallelism]:
        for tensor, pipeline in _list_profile_splits(profile, devices, per_node):
            if (tensor > 1 and not allowed.tensor) or (pipeline > 1 and not allowed.pipeline):
                continue
            data = devices // (tensor * pipeline)
            shardings = allowed.shardings
            if data == 1:
                shardings = (Sharding.NONE,) if profile.shapes_known else shardings[-1:]
            elif not profile.shapes_known:
                shardings = shardings[-1:]
            for sharding in shardings:
                if profile.shapes_known and sharding is Sharding.ZERO_3 and pipeline > 1:
                    continue
                layout = Parallelism(
                    tensor=tensor,
                    pipeline=pipeline,
                    data=data,
                    sequence_parallel=tensor > 1,
                    sharding=sharding,
                )
                workload = laid_out(layout)
                if workload is not None:
                    workloads[layout] = workload
                    yield layout

    return _find_first_fitting(
        list_candidates(),
        lambda layout: estimate_training_memory(profile, workloads[layout], layout, overhead)[0].total_bytes,
        usable_bytes if profile.shapes_known else None,
        devices,
    )


def list_inference_layouts(
    profile: ModelProfile, rules: EngineRules, *, devices: int, per_node: int
) -> list[Parallelism]:
    """Returns replicas of every size, repeated over the cluster, smallest first."""
    widest = 1 if rules.splits_layers else per_node
    return [
        Parallelism(tensor=tensor, pipeline=pipeline, data=devices // (tensor * pipeline))
        for tensor, pipeline in _list_profile_splits(profile, devices, widest)
    ]


def select_inference_layout(
    profile: ModelProfile,
    workload: InferenceWorkload,
    *,
    devices: int,
    per_node: int,
    usable_bytes: float | None,
) -> Parallelism:
    """Returns the smallest replica that holds its share of the requests, repeated over the cluster.

    ``usable_bytes`` is the engine's share of a device.
    """
    if devices == 1:
        return Parallelism()

    def compute_used_bytes(layout: Parallelism) -> float:
        memory = estimate_inference_memory(profile, workload, layout)
        if usable_bytes is None:
            return memory.total_bytes
        # Memory of an engine outside its share does not count against it.
        return memory.total_bytes - compute_usable_bytes(memory, workload, usable_bytes) + usable_bytes

    layouts = list_inference_layouts(profile, workload.rules, devices=devices, per_node=per_node)
    return _find_first_fitting(iter(layouts), compute_used_bytes, usable_bytes, devices)
