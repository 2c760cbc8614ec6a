"""Layout of a service that leaves it open: the smallest replica that keeps up with the fastest.

Engines recommend tensor parallelism within a node, pipeline stages across nodes, and for models with latent
attention, whose cache a tensor-parallel group repeats, data-parallel attention with parallel experts (vLLM,
Parallelism and Scaling, and the recipe of DeepSeek-V3; SGLang, DeepSeek Usage, 2025). The load decides
between them: few requests need wide replicas, many need room for their caches.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from service.planning.cases import InferenceCase, ResidentModel, ServiceLevels
from service.planning.estimates.devices import get_usable_bytes, start_engine
from service.planning.estimates.serving import ServingEstimate, count_replica_requests, estimate_serving
from service.planning.memory.caches import layer_cache_bytes
from service.planning.memory.layout import list_inference_layouts
from service.planning.models.padding import choose_padding, pad_profile
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat

KEPT_SHARE: Final = 0.9
"""Share of the highest rate that a smaller replica has to keep."""


def choose_serving_layout(case: InferenceCase, levels: ServiceLevels | None) -> InferenceCase | None:
    """Returns the case on the smallest replica within a tenth of the highest rate at its load.

    Layouts that hold all requests of a stated concurrency go before those where some wait. Rates count the
    requests that keep ``levels``. None where no layout holds a request, and where memory or time is unknown.
    """
    layouts = list_serving_layouts(case) if case.layout_chosen else [case.layout]
    cases = [fitting for layout in layouts if holds_request(fitting := lay_out_service(case, layout))]
    cases = [each for each in cases if holds_concurrency(each)] or cases
    if len(cases) == 1:
        return cases[0]
    found = [(each, estimate) for each in cases if (estimate := estimate_serving(each)) is not None]
    rates = [_compute_kept_rate(estimate, levels) for _, estimate in found]
    if not any(rates):
        # No request keeps the levels: the shortest ones miss them by the least.
        rates = [1.0 / estimate.served.request_seconds.mean for _, estimate in found]
    least = KEPT_SHARE * max(rates, default=0.0)
    return next((each for (each, _), rate in zip(found, rates, strict=True) if rate >= least), None)


def list_serving_layouts(case: InferenceCase) -> list[Parallelism]:
    """Returns the layouts of the cluster, smallest replica first, data-parallel attention last."""
    devices, per_node = case.cluster.accelerator_count, case.cluster.accelerators_per_node
    rules = case.workload.rules
    layouts = list_inference_layouts(case.profile, rules, devices=devices, per_node=per_node)
    if rules.splits_layers:
        return layouts
    return [*layouts, *_list_expert_layouts(case.profile, devices, per_node)]


def _list_expert_layouts(profile: ModelProfile, devices: int, per_node: int) -> Iterator[Parallelism]:
    """Yields data-parallel attention with parallel experts, where tensor parallelism repeats the cache."""
    if not profile.expert_count or not _is_cache_repeated(profile):
        return
    for ranks in dict.fromkeys((min(devices, per_node), devices)):
        if ranks > 1 and devices % ranks == 0 and profile.expert_count % ranks == 0:
            yield Parallelism(data=devices, expert=ranks)


def _is_cache_repeated(profile: ModelProfile) -> bool:
    """Returns true if no layer divides its cache over a tensor-parallel group of two."""
    each = [
        tuple(layer_cache_bytes(work, NumberFormat.BF16, tensor) for tensor in (1, 2))
        for work in profile.attention
        if work.caches and not work.state_elements
    ]
    return bool(each) and all(whole == divided for whole, divided in each)


def lay_out_service(case: InferenceCase, layout: Parallelism) -> InferenceCase:
    """Returns the case on another layout, with the settings that its engine starts with there."""
    group, device = layout.tensor * layout.pipeline, case.cluster.accelerator
    profile, resident = case.resident
    padded = pad_profile(case.profile, choose_padding(layout, device.generation))
    if profile is case.profile:
        profile = padded
    workload = start_engine(case.workload, case.engine, case.context_tokens, device, group)
    if case.profile.passed is None:
        resident = start_engine(resident, case.engine, case.context_tokens, device, group)
    return replace(
        case, profile=padded, layout=layout, workload=workload, resident=ResidentModel(profile, resident)
    )


def holds_request(case: InferenceCase) -> bool:
    """Returns true if every rank of a replica holds a request, or if the capacity is unknown."""
    limit = get_usable_bytes(case.cluster, case.workload)
    return limit is None or count_replica_requests(case, limit) >= case.layout.expert


def holds_concurrency(case: InferenceCase) -> bool:
    """Returns true if the replicas hold all requests of a stated concurrency together."""
    limit, concurrency = get_usable_bytes(case.cluster, case.workload), case.load.concurrency
    if limit is None or concurrency is None:
        return True
    return count_replica_requests(case, limit) * case.replicas >= concurrency


def _compute_kept_rate(found: ServingEstimate, levels: ServiceLevels | None) -> float:
    """Returns requests per second of the cluster, in the share that keeps the levels."""
    rate = found.served.requests_per_second * found.replicas
    if levels is None:
        return rate
    return rate * min(1.0, found.served.compute_goodput(levels.limits) / levels.share)
