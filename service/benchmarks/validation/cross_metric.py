"""Cross-metric: whether the results of one attempt on one device fit together. Asked of accelerators."""

from collections.abc import Callable
from statistics import median

from service.benchmarks.validation.case import MOVING, Case, Said, Sibling, known
from service.benchmarks.validation.physics import pcie_bytes_per_second
from service.benchmarks.verdicts import Finding, Unchecked, Verdict
from service.protocol.work import CacheStream, Gemm, HostLink, Power, Stream

SLACK = 1.02
STREAMED_SLACK = 1.05
"""Of kernels that stream something else than the read that they are held against."""
POWER_SLACK = 1.05
LEAST_OF_IDLE = 0.8
"""Of idle power, below which no device under load is (benchmark-worker.md, 10.5, stage 3)."""
LONGER_WARMUP = 5.0
"""Times the warm-up of another benchmark of the same work, from which one is the sustained one."""
LEAST_LINK_SHARE = 0.5
"""Published are 81 to 87% of the raw rate (section 3); half is a generation or half of the lanes."""
LARGE_TRANSFER_BYTES = 2**26
_RANK = {"idle": 0, "context": 1, "stream": 2, "gemm": 3}
"""Loads in the order of the power that they draw in most parts."""


def check(case: Case) -> Said:
    """Copies below reads, caches above memory, sustained below cold, power in order."""
    if not case.is_accelerator:
        return
    work = case.work
    if isinstance(work, Gemm):
        yield from _sustained(case, work)
    if isinstance(work, Stream):
        yield from _cache(case, work)
    if isinstance(work, HostLink):
        yield from _host_link(case, work)
    yield from _read(case)
    yield from _power(case)


def figure(case: Case, is_meant: Callable[[Sibling], bool]) -> float | None:
    """The middle figure of the results of the same device that are meant."""
    figures = [sibling.figure for sibling in case.device_siblings if is_meant(sibling)]
    return median(figures) if figures else None


def _sustained(case: Case, work: Gemm) -> Said:
    """``cross_metric.sustained_above_cold``: a device that is warm is no faster than a cold one."""
    own = case.measurement.warmup_seconds
    metric = case.result.benchmark.metric
    cold = figure(
        case,
        lambda one: (
            one.work == work
            and one.metric == metric
            and one.warmup_seconds is not None
            and 0 < LONGER_WARMUP * one.warmup_seconds <= own
        ),
    )
    if cold is not None and case.figure > cold * SLACK:
        detail = "figure after a long warm-up against that after a short one"
        yield Finding("cross_metric.sustained_above_cold", Verdict.SUSPECT, detail, case.figure, cold * SLACK)


def _cache(case: Case, work: Stream) -> Said:
    """``cross_metric.cache_not_faster``: the control that memory was measured and not the cache."""
    cached = figure(case, lambda one: isinstance(one.work, CacheStream) and one.work.pattern == work.pattern)
    if cached is None:
        if work.pattern in {"read", "copy"}:
            detail = "the attempt has no figure of the cache to hold it against"
            yield Unchecked("cross_metric.cache_not_faster", detail)
    elif cached <= case.figure:
        detail = "bytes per second of memory, against those of the cache"
        yield Finding("cross_metric.cache_not_faster", Verdict.SUSPECT, detail, case.figure, cached)


def _read(case: Case) -> Said:
    """``cross_metric.above_read``: nothing gets more of the memory than plain reads do."""
    work = case.work
    is_stream = isinstance(work, Stream)
    is_held = (
        (isinstance(work, Stream) and work.pattern in {"copy", "triad"})
        or (work.kind in MOVING and not is_stream)
        or (work.kind == "attention" and work.phase == "decode")
        or (work.kind == "gemm" and case.result.benchmark.metric == "bytes_per_second")
    )
    if not is_held:
        return
    slack = SLACK if is_stream else STREAMED_SLACK
    read = figure(case, lambda one: isinstance(one.work, Stream) and one.work.pattern == "read")
    if read is None:
        yield Unchecked("cross_metric.above_read", "the attempt has no figure of plain reads")
    elif case.bytes_per_second > read * slack:
        detail = "bytes per second, against those of plain reads"
        yield Finding("cross_metric.above_read", Verdict.SUSPECT, detail, case.bytes_per_second, read * slack)


def _host_link(case: Case, work: HostLink) -> Said:
    """``cross_metric.slow_link``: large pinned copies get most of what the link can."""
    if work.memory != "pinned" or work.transfer_bytes < LARGE_TRANSFER_BYTES or work.direction == "both":
        return
    raw = pcie_bytes_per_second(case)
    if raw is None:
        yield Unchecked("cross_metric.slow_link", "the generation or the lanes of the link are unknown")
    elif case.bytes_per_second < LEAST_LINK_SHARE * raw:
        detail = "bytes per second of pinned copies"
        limit = LEAST_LINK_SHARE * raw
        yield Finding("cross_metric.slow_link", Verdict.SUSPECT, detail, case.bytes_per_second, limit)


def _load(sibling: Sibling) -> str | None:
    work = sibling.work
    return work.load if isinstance(work, Power) and work.duty == 1.0 else None


def _power(case: Case) -> Said:
    """``cross_metric.power_order`` and ``cross_metric.below_idle``: idle < memory < products."""
    work = case.work
    counted = known(case.telemetry.energy_power_watts) if case.telemetry else None
    is_power = isinstance(work, Power)
    watts = case.figure if is_power else counted
    if watts is None or (isinstance(work, Power) and work.load == "idle"):
        return
    idle = figure(case, lambda one: _load(one) == "idle")
    if idle is None:
        yield Unchecked("cross_metric.below_idle", "the attempt has no figure of idle power")
    elif watts < LEAST_OF_IDLE * idle:
        detail = "watts, against those of the idle device"
        yield Finding("cross_metric.below_idle", Verdict.REJECTED, detail, watts, LEAST_OF_IDLE * idle)
    if not isinstance(work, Power) or work.duty < 1.0 or work.load not in _RANK:
        return
    for load in (load for load, rank in _RANK.items() if rank < _RANK[work.load]):
        lower = figure(case, lambda one, load=load: _load(one) == load)  # type: ignore[misc]
        if lower is not None and lower > watts * POWER_SLACK:
            detail = f"watts, against those of load {load}, which draws less in most parts"
            yield Finding("cross_metric.power_order", Verdict.SUSPECT, detail, watts, lower)
