"""Changes to a served model that are worth trying, each with a new estimate."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from service.planning.cases import ServingCase
from service.planning.estimates.advice import Advice
from service.planning.estimates.serving import ServingEstimate, estimate_serving
from service.planning.hardware.storage import CACHE_FORMATS, PLAIN_FORMATS
from service.planning.inference import IterationTime
from service.planning.precision import NumberFormat

LEAST_GAIN = 0.02
"""Share of the gain below which a change is not listed."""
MOST_ADVICE = 3
_FEW_BITS = 8.0
_LARGE_PART = 0.1
"""Share of an iteration from which changes that shorten it are estimated."""


class ServingChange(NamedTuple):
    """One possible change, with its description and its effect."""

    code: str
    what: str
    moves: str
    case: ServingCase


def list_serving_advice(serving: ServingEstimate, case: ServingCase) -> list[Advice]:
    """Returns single changes that shorten a request or raise the rate; the largest gain first."""
    found: list[Advice] = []
    for change in _list_changes(case, serving):
        changed = estimate_serving(change.case)
        if changed is None:
            continue
        gain, effect = _compare_serving(serving, changed)
        if gain >= LEAST_GAIN:
            found.append(Advice(change.code, f"{change.what}: {effect}; {change.moves}", gain))
    return sorted(found, key=lambda advice: -(advice.gain_share or 0.0))[:MOST_ADVICE]


def _compare_serving(before: ServingEstimate, after: ServingEstimate) -> tuple[float, str]:
    """Returns the share of the time of a request that a change saves, or of the cluster's where it is full.

    Both estimates are uncorrected: measurements of one of them say less about the other.
    """
    served, changed = before.served, after.served
    rate = served.requests_per_second * before.replicas / (changed.requests_per_second * after.replicas)
    seconds = after.served.request_seconds.mean / before.served.request_seconds.mean
    if before.load.rate_per_second is not None:
        if before.served.saturated:
            most = served.most_requests_per_second * before.replicas
            most /= changed.most_requests_per_second * after.replicas
            return 1.0 - most, f"the largest rate rises by {1.0 / most - 1.0:.0%}"
        return 1.0 - seconds, f"a request takes {1.0 - seconds:.0%} less time"
    longer = f" and a request takes {seconds - 1.0:.0%} more time" if seconds > 1.0 + LEAST_GAIN else ""
    return 1.0 - rate, f"the rate rises by {1.0 / rate - 1.0:.0%}{longer}"


def _list_changes(case: ServingCase, serving: ServingEstimate) -> Iterator[ServingChange]:
    """Yields changes of the large parts of an iteration; changes that would hardly matter are left out."""
    workload, time = case.workload, serving.served.iteration
    yield from _list_precision_changes(case, time, serving.limit)
    if not workload.cuda_graphs and _compute_share(time, time.launch) > _LARGE_PART:
        changed = replace(case, workload=workload._replace(cuda_graphs=True))
        yield ServingChange(
            "CUDA_GRAPHS", "CUDA graphs", "a graph is replayed in place of single launches", changed
        )
    yield from _list_layout_changes(case, time)
    yield from _add_requests(case, serving)


def _list_precision_changes(case: ServingCase, time: IterationTime, limit: str) -> Iterator[ServingChange]:
    workload = case.workload
    multiplied = _compute_share(time, time.matrices + time.experts)
    if workload.storage.mean_bits > _FEW_BITS and multiplied > _LARGE_PART:
        packed = PLAIN_FORMATS[NumberFormat.FP8]
        changed = workload._replace(weight_format=packed.compute, stored=packed)
        what, moves = (
            "weights in FP8",
            "half of the bytes of each pass, at the rate of FP8 where there is one",
        )
        yield ServingChange("FP8_WEIGHTS", what, moves, replace(case, workload=changed))
    wide = CACHE_FORMATS[workload.cache_format].element_bytes > 1.0
    if wide and (limit == "cache" or _compute_share(time, time.attention) > _LARGE_PART):
        changed = workload._replace(cache_format=NumberFormat.FP8)
        what, moves = "a KV cache in FP8", "half of its bytes, and room for twice the requests"
        yield ServingChange("FP8_KV_CACHE", what, moves, replace(case, workload=changed))


def _list_layout_changes(case: ServingCase, time: IterationTime) -> Iterator[ServingChange]:
    """Yields half of the replicas, twice as wide; where communication is large, twice as many replicas."""
    layout, heads = case.layout, [work.query_heads for work in case.profile.attention]
    if layout.expert > 1 or layout.expert_tensor is not None:
        return
    wider = layout.tensor * 2
    exchanging = _compute_share(time, time.collectives) > _LARGE_PART
    if exchanging and layout.tensor > 1:
        narrower = layout._replace(tensor=layout.tensor // 2, data=layout.data * 2)
        what = f"tensor parallelism of {narrower.tensor} and {narrower.data} replicas"
        moves = "fewer devices wait for each other"
        yield ServingChange("LESS_TENSOR_PARALLELISM", what, moves, replace(case, layout=narrower))
    fits = wider <= case.cluster.accelerators_per_node and all(count % wider == 0 for count in heads)
    if not exchanging and fits and layout.data % 2 == 0:
        doubled = layout._replace(tensor=wider, data=layout.data // 2)
        what = f"tensor parallelism of {wider} and {doubled.data} replicas"
        moves = "each device computes and streams a smaller share of a pass"
        yield ServingChange("MORE_TENSOR_PARALLELISM", what, moves, replace(case, layout=doubled))


def _add_requests(case: ServingCase, serving: ServingEstimate) -> Iterator[ServingChange]:
    load, workload = case.load, case.workload
    if serving.limit == "concurrency" and load.concurrency is not None:
        more = load._replace(concurrency=2 * load.concurrency)
        what = f"{2 * load.concurrency} requests at a time"
        moves = "a pass reads the weights once for all requests"
        yield ServingChange("MORE_CONCURRENCY", what, moves, replace(case, load=more))
    if serving.limit == "max_num_seqs" and workload.most_requests is not None:
        most = 2 * workload.most_requests
        changed = workload._replace(most_requests=most)
        what, moves = f"max_num_seqs of {most}", "fewer requests wait for a place"
        yield ServingChange("MORE_SEQUENCES", what, moves, replace(case, workload=changed))


def _compute_share(time: IterationTime, part: float) -> float:
    return part / time.seconds
