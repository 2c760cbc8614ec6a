"""Changes to a served model that are worth trying, each asked again."""

from collections.abc import Iterator
from typing import NamedTuple

from service.estimates.run import Run
from service.estimates.serving import Serving, Subject, serve, subject_of
from service.planning.hardware.storage import CACHE_FORMATS, PLAIN_FORMATS
from service.planning.inference import IterationTime
from service.planning.precision import NumberFormat
from service.resolve.catalog import Catalog
from service.resolve.hardware import usable_bytes
from service.schemas.base import Advice
from service.schemas.workloads import InferenceWorkloadInput

LEAST_GAIN = 0.02
"""Share below which a change is not worth naming."""
MOST_ADVICE = 3
_FEW_BITS = 8.0
_LARGE_PART = 0.1
"""Share of an iteration from which what shortens it is asked for."""


class Change(NamedTuple):
    """One thing that may be changed, and what it moves."""

    code: str
    what: str
    moves: str
    subject: Subject


def serving_advice(
    given: InferenceWorkloadInput, run: Run, serving: Serving, catalog: Catalog
) -> list[Advice]:
    """Single changes that shorten a request or raise the rate; the largest gain first."""
    subject, cluster = subject_of(run.resolved, given, run.cluster), run.cluster
    found: list[tuple[float, Advice]] = []
    for change in _changes(subject, serving, run):
        limit = usable_bytes(cluster, change.subject.workload)
        changed = serve(change.subject, cluster, catalog.curves, limit_bytes=limit)
        if changed is None:
            continue
        gain, effect = _gain(serving, changed)
        if gain < LEAST_GAIN:
            continue
        detail = f"{change.what}: {effect}; {change.moves}"
        found.append((gain, {"code": change.code, "detail": detail, "gain_share": gain}))
    return [advice for _, advice in sorted(found, key=lambda each: -each[0])[:MOST_ADVICE]]


def _gain(before: Serving, after: Serving) -> tuple[float, str]:
    """Share of the time of a token that a change saves: of a request, or of the cluster where it is full.

    Both by the formulas alone: what was measured of one of them says less of the other.
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


def _changes(subject: Subject, serving: Serving, run: Run) -> Iterator[Change]:
    """Changes that the parts of an iteration speak for; what would hardly move is not asked."""
    workload, time = subject.workload, serving.served.iteration
    yield from _narrower(subject, time, serving.limit)
    if not workload.cuda_graphs and _share(time, time.launch) > _LARGE_PART:
        changed = subject._replace(workload=workload._replace(cuda_graphs=True))
        yield Change("CUDA_GRAPHS", "CUDA graphs", "a graph is replayed in place of single launches", changed)
    yield from _other_layouts(subject, time, run)
    yield from _more_requests(subject, serving)


def _narrower(subject: Subject, time: IterationTime, limit: str) -> Iterator[Change]:
    workload = subject.workload
    multiplied = _share(time, time.matrices + time.experts)
    if workload.storage.mean_bits > _FEW_BITS and multiplied > _LARGE_PART:
        packed = PLAIN_FORMATS[NumberFormat.FP8]
        changed = workload._replace(weight_format=packed.compute, stored=packed)
        what, moves = (
            "weights in FP8",
            "half of the bytes of each pass, at the rate of FP8 where there is one",
        )
        yield Change("FP8_WEIGHTS", what, moves, subject._replace(workload=changed))
    wide = CACHE_FORMATS[workload.cache_format].element_bytes > 1.0
    if wide and (limit == "cache" or _share(time, time.attention) > _LARGE_PART):
        changed = workload._replace(cache_format=NumberFormat.FP8)
        what, moves = "a KV cache in FP8", "half of its bytes, and room for twice the requests"
        yield Change("FP8_KV_CACHE", what, moves, subject._replace(workload=changed))


def _other_layouts(subject: Subject, time: IterationTime, run: Run) -> Iterator[Change]:
    """Half of the replicas, twice as wide; where devices wait for each other, twice as many."""
    layout, heads = subject.layout, [work.query_heads for work in subject.profile.attention]
    if layout.expert > 1 or layout.expert_tensor is not None:
        return
    wider = layout.tensor * 2
    exchanging = _share(time, time.collectives) > _LARGE_PART
    if exchanging and layout.tensor > 1:
        narrower = layout._replace(tensor=layout.tensor // 2, data=layout.data * 2)
        what = f"tensor parallelism of {narrower.tensor} and {narrower.data} replicas"
        moves = "fewer devices wait for each other"
        yield Change("LESS_TENSOR_PARALLELISM", what, moves, subject._replace(layout=narrower))
    fits = wider <= run.cluster.accelerators_per_node and all(count % wider == 0 for count in heads)
    if not exchanging and fits and layout.data % 2 == 0:
        doubled = layout._replace(tensor=wider, data=layout.data // 2)
        what = f"tensor parallelism of {wider} and {doubled.data} replicas"
        moves = "each device computes and streams a smaller share of a pass"
        yield Change("MORE_TENSOR_PARALLELISM", what, moves, subject._replace(layout=doubled))


def _more_requests(subject: Subject, serving: Serving) -> Iterator[Change]:
    asked, workload = subject.asked, subject.workload
    if serving.limit == "concurrency" and asked.concurrency is not None:
        more = asked._replace(concurrency=2 * asked.concurrency)
        what = f"{2 * asked.concurrency} requests at a time"
        moves = "a pass reads the weights once for all requests"
        yield Change("MORE_CONCURRENCY", what, moves, subject._replace(asked=more))
    if serving.limit == "max_num_seqs" and workload.most_requests is not None:
        most = 2 * workload.most_requests
        changed = workload._replace(most_requests=most)
        what, moves = f"max_num_seqs of {most}", "fewer requests wait for a place"
        yield Change("MORE_SEQUENCES", what, moves, subject._replace(workload=changed))


def _share(time: IterationTime, part: float) -> float:
    return part / time.seconds
