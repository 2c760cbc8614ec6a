"""Cross-metric: the results of one attempt on one accelerator fit together."""

from collections.abc import Callable
from statistics import median

from service.benchmarks.validation.case import RuleOutcomes, SiblingResult, ValidationCase, get_known
from service.benchmarks.validation.physics import compute_pcie_rate
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule
from service.protocol.work.arithmetic import GemmWork
from service.protocol.work.device import PowerWork
from service.protocol.work.links import HostLinkWork
from service.protocol.work.memory import CacheStreamWork, StreamWork
from service.protocol.work.products import ProductWork

SLACK = 1.02
STREAMED_SLACK = 1.05
"""Slack of kernels that stream something else than the read that they are compared with."""
POWER_SLACK = 1.05
LEAST_OF_IDLE = 0.8
"""Share of idle power below which no device under load is (benchmark-worker.md, 10.5, stage 3)."""
LONGER_WARMUP = 5.0
"""Multiple of the warm-up of another benchmark of the same work from which a benchmark is sustained."""
LEAST_LINK_SHARE = 0.5
"""Least share of the raw rate. 81 to 87% are published (section 3); half is a generation or half of the
lanes."""
LARGE_TRANSFER_BYTES = 2**26
_RANK = {"idle": 0, "context": 1, "stream": 2, "gemm": 3}
"""Loads in the order of the power that they draw in most parts."""


def check_cross_metric(case: ValidationCase) -> RuleOutcomes:
    """Checks copies against reads, caches against memory, sustained against cold, and the order of power."""
    if not case.is_accelerator:
        return
    work = case.work
    if isinstance(work, GemmWork | ProductWork):
        yield from _check_sustained(case, work)
    if isinstance(work, StreamWork):
        yield from _check_cache(case, work)
    if isinstance(work, HostLinkWork):
        yield from _check_host_link(case, work)
    yield from _check_read(case)
    yield from _check_power(case)


def compute_median_figure(case: ValidationCase, is_meant: Callable[[SiblingResult], bool]) -> float | None:
    """Returns the median figure of the results of the same device that ``is_meant`` selects, or None."""
    figures = [sibling.figure for sibling in case.device_siblings if is_meant(sibling)]
    return median(figures) if figures else None


def _check_sustained(case: ValidationCase, work: GemmWork | ProductWork) -> RuleOutcomes:
    """``cross_metric.sustained_above_cold``: a device that is warm is no faster than a cold one."""
    own = case.measurement.warmup_seconds
    metric = case.result.benchmark.metric
    cold = compute_median_figure(
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
        yield RuleFinding(
            "cross_metric.sustained_above_cold", ResultVerdict.SUSPECT, detail, case.figure, cold * SLACK
        )


def _check_cache(case: ValidationCase, work: StreamWork) -> RuleOutcomes:
    """``cross_metric.cache_not_faster``: a control that memory was measured and not the cache."""
    cached = compute_median_figure(
        case, lambda one: isinstance(one.work, CacheStreamWork) and one.work.pattern == work.pattern
    )
    if cached is None:
        if work.pattern in {"read", "copy"}:
            detail = "the attempt has no figure of the cache to hold it against"
            yield UncheckedRule("cross_metric.cache_not_faster", detail)
    elif cached <= case.figure:
        detail = "bytes per second of memory, against those of the cache"
        yield RuleFinding("cross_metric.cache_not_faster", ResultVerdict.SUSPECT, detail, case.figure, cached)


def _check_read(case: ValidationCase) -> RuleOutcomes:
    """``cross_metric.above_read``: nothing moves more bytes per second than plain reads do."""
    work = case.work
    is_stream = isinstance(work, StreamWork)
    is_plain = isinstance(work, StreamWork) and work.pattern not in {"copy", "triad"}
    if is_plain or not work.is_memory_bound(case.result.benchmark.metric):
        return
    slack = SLACK if is_stream else STREAMED_SLACK
    read = compute_median_figure(
        case, lambda one: isinstance(one.work, StreamWork) and one.work.pattern == "read"
    )
    if read is None:
        yield UncheckedRule("cross_metric.above_read", "the attempt has no figure of plain reads")
    elif case.bytes_per_second > read * slack:
        detail = "bytes per second, against those of plain reads"
        yield RuleFinding(
            "cross_metric.above_read", ResultVerdict.SUSPECT, detail, case.bytes_per_second, read * slack
        )


def _check_host_link(case: ValidationCase, work: HostLinkWork) -> RuleOutcomes:
    """``cross_metric.slow_link``: large pinned copies reach most of the rate of the link."""
    if work.memory != "pinned" or work.transfer_bytes < LARGE_TRANSFER_BYTES or work.direction == "both":
        return
    raw = compute_pcie_rate(case)
    if raw is None:
        yield UncheckedRule("cross_metric.slow_link", "the generation or the lanes of the link are unknown")
    elif case.bytes_per_second < LEAST_LINK_SHARE * raw:
        detail = "bytes per second of pinned copies"
        limit = LEAST_LINK_SHARE * raw
        yield RuleFinding(
            "cross_metric.slow_link", ResultVerdict.SUSPECT, detail, case.bytes_per_second, limit
        )


def _get_load(sibling: SiblingResult) -> str | None:
    work = sibling.work
    return work.load if isinstance(work, PowerWork) and work.duty == 1.0 else None


def _check_power(case: ValidationCase) -> RuleOutcomes:
    """``cross_metric.power_order`` and ``cross_metric.below_idle``: idle < memory < products."""
    work = case.work
    counted = get_known(case.telemetry.energy_power_watts) if case.telemetry else None
    is_power = isinstance(work, PowerWork)
    watts = case.figure if is_power else counted
    if watts is None or (isinstance(work, PowerWork) and work.load == "idle"):
        return
    idle = compute_median_figure(case, lambda one: _get_load(one) == "idle")
    if idle is None:
        yield UncheckedRule("cross_metric.below_idle", "the attempt has no figure of idle power")
    elif watts < LEAST_OF_IDLE * idle:
        detail = "watts, against those of the idle device"
        yield RuleFinding(
            "cross_metric.below_idle", ResultVerdict.REJECTED, detail, watts, LEAST_OF_IDLE * idle
        )
    if not isinstance(work, PowerWork) or work.duty < 1.0 or work.load not in _RANK:
        return
    for load in (load for load, rank in _RANK.items() if rank < _RANK[work.load]):
        lower = compute_median_figure(case, lambda one, load=load: _get_load(one) == load)  # type: ignore[misc]
        if lower is not None and lower > watts * POWER_SLACK:
            detail = f"watts, against those of load {load}, which draws less in most parts"
            yield RuleFinding("cross_metric.power_order", ResultVerdict.SUSPECT, detail, watts, lower)
