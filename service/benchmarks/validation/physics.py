"""Physical limits: nothing is faster than its device, memory and links, or draws more power than it may.

Every limit is that of the data sheet with 2% for clocks and timers, 5% for power sensors
(benchmark-worker.md, 10.5, stage 3). Rates are computed here from the samples; rates that a node reports are
not read.
"""

from collections.abc import Mapping

from service.benchmarks.validation.case import RuleOutcomes, ValidationCase, get_known
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule
from service.protocol.work.arithmetic import AttentionWork
from service.protocol.work.links import (
    CollectiveWork,
    HostLinkWork,
    PeerLinkWork,
    PeerMatrixWork,
    RdmaLinkWork,
    StorageToDeviceWork,
)
from service.protocol.work.memory import CapacityWork

SLACK = 1.02
POWER_SLACK = 1.05
LAUNCH_FLOOR_SECONDS = 0.5e-6
"""Half a microsecond, which events resolve. No kernel ends earlier."""
SWAP = 300.0
"""Factor of swapped units, which differ by 1000 or 1024. Nothing else is off by a third of that."""
CACHE_MULTIPLE = 20
"""Multiple of the second-level cache below which buffers are flushed (pitfall 9)."""
UNKNOWN_BOOST = 1.10
"""Highest clock over the clock of the data sheet's rate if the latter is unknown. It is 1.08 on H100 SXM."""
SM_FLOPS_PER_CLOCK: Mapping[str, int] = {"8.0": 2048, "9.0": 4096}
"""Dense bf16 FLOP of a multiprocessor in a clock (A100, H100 white papers: 1024, 2048 multiply-adds)."""
PCIE_LANE_BYTES_PER_SECOND: Mapping[int, float] = {
    1: 2.5e9 * 8 / 10 / 8,
    2: 5e9 * 8 / 10 / 8,
    3: 8e9 * 128 / 130 / 8,
    4: 16e9 * 128 / 130 / 8,
    5: 32e9 * 128 / 130 / 8,
    6: 64e9 * 242 / 256 / 8,
}
"""Rate of a lane by generation: transfers times the coding (PCI Express base specification)."""


def check_physics(case: ValidationCase) -> RuleOutcomes:
    """Checks every limit that applies to the work, and of a processor only those that hold everywhere."""
    yield from _check_units(case)
    if not case.is_accelerator:
        yield from _check_host_cache(case)
        return
    yield from _check_clock(case)
    yield from _check_peak(case)
    yield from _check_memory_bandwidth(case)
    yield from _check_cache(case)
    yield from _check_launch(case)
    yield from _check_link(case)
    yield from _check_power(case)
    yield from _check_memory(case)


def _check_units(case: ValidationCase) -> RuleOutcomes:
    """``physics.swapped_units``: a figure is a thousand times off another one of the same record."""
    telemetry, metric = case.telemetry, case.result.benchmark.metric
    if telemetry is None:
        yield UncheckedRule("physics.swapped_units", "the record has no window to hold samples against")
        return
    pairs: list[tuple[str, float, float | None]] = []
    if case.measurement.samples_ns and not case.work.is_reported:
        pairs.append(("samples", sum(case.measurement.samples_ns) / 1e9, telemetry.window_seconds))
    if metric == "watts" and (sensor := get_known(telemetry.power_watts)):
        pairs.append(("power by the counter", case.figure, sensor.median))
    if case.accelerator is not None and isinstance(case.work, CapacityWork):
        pairs.append(("memory", case.figure, get_known(case.accelerator.memory_bytes)))
    if case.accelerator is not None and (clock := get_known(telemetry.sm_clock_hz)):
        pairs.append(("clock", clock.maximum, get_known(case.accelerator.sm_clock_maximum_hz)))
    for name, one, other in pairs:
        if other and not 1 / SWAP < one / other < SWAP:
            detail = f"{name}: hundreds of times off what else the record says of it"
            yield RuleFinding("physics.swapped_units", ResultVerdict.REJECTED, detail, one, other)


def _check_host_cache(case: ValidationCase) -> RuleOutcomes:
    """``physics.cache_resident`` of a processor, which is only known if the system names the cache."""
    for gap in case.result.gaps:
        if gap.code in {"within-cache", "cache-unknown"}:
            yield UncheckedRule("physics.cache_resident", gap.detail)


def _check_clock(case: ValidationCase) -> RuleOutcomes:
    """``physics.clock_above_maximum``: no clock is above the highest that the driver names."""
    clock = get_known(case.telemetry.sm_clock_hz) if case.telemetry else None
    highest = get_known(case.accelerator.sm_clock_maximum_hz) if case.accelerator else None
    if clock is None or highest is None:
        if case.work.kernel_bound:
            yield UncheckedRule("physics.clock_above_maximum", "the clock or its maximum is unknown")
    elif clock.maximum > highest * SLACK:
        detail = "clock of the multiprocessors in Hz"
        yield RuleFinding(
            "physics.clock_above_maximum", ResultVerdict.REJECTED, detail, clock.maximum, highest * SLACK
        )


def _check_peak(case: ValidationCase) -> RuleOutcomes:
    """``physics.above_dense_peak``: FLOP/s <= dense rate x highest clock / clock of that rate x 1.02."""
    if not case.flops_per_second:
        return
    dtype: str = getattr(case.work, "dtype", "fp32")
    peak = case.datasheet.find_peak(dtype) if case.datasheet else None
    if peak is None:
        yield UncheckedRule("physics.above_dense_peak", f"no data sheet gives the dense rate in {dtype}")
        return
    limit = peak * _compute_clock_ratio(case) * SLACK
    if case.flops_per_second > limit:
        detail = f"FLOP/s in {dtype}; the limit is dense, a 2:4 sparse rate is up to twice as high"
        yield RuleFinding(
            "physics.above_dense_peak", ResultVerdict.REJECTED, detail, case.flops_per_second, limit
        )


def _compute_clock_ratio(case: ValidationCase) -> float:
    """Returns the highest observed clock over the clock of the data sheet's rate, at least 1."""
    part, peak = case.accelerator, case.datasheet.find_peak("bf16") if case.datasheet else None
    clock = get_known(case.telemetry.sm_clock_hz) if case.telemetry else None
    capability = get_known(part.compute_capability) if part else None
    count = get_known(part.multiprocessor_count) if part else None
    each = SM_FLOPS_PER_CLOCK.get(capability or "")
    if clock is None or count is None or each is None or peak is None:
        return UNKNOWN_BOOST
    return max(clock.maximum / (peak / (count * each)), 1.0)


def _check_memory_bandwidth(case: ValidationCase) -> RuleOutcomes:
    """``physics.above_memory_bandwidth``: bytes from memory once, at most at the data sheet's rate."""
    rate = case.bytes_per_second * case.work.fetched_bytes_per_moved_byte
    if not case.work.fetched_bytes_per_moved_byte:
        return
    peak = case.datasheet.memory_bytes_per_second if case.datasheet else None
    if peak is None:
        yield UncheckedRule("physics.above_memory_bandwidth", "no data sheet gives the rate of the memory")
    elif rate > peak * SLACK:
        detail = "bytes per second; data that stay in a cache look like this"
        yield RuleFinding(
            "physics.above_memory_bandwidth", ResultVerdict.REJECTED, detail, rate, peak * SLACK
        )


def _check_cache(case: ValidationCase) -> RuleOutcomes:
    """``physics.cache_resident``: buffers are 20 times the cache, or flushed before each sample."""
    work, measurement = case.work, case.measurement
    # Kernels of attention flush the cache whatever their size.
    if not work.is_memory_bound(case.result.benchmark.metric) or isinstance(work, AttentionWork):
        return
    cache = get_known(case.accelerator.l2_bytes) if case.accelerator else None
    if cache is None or not measurement.working_set_bytes:
        yield UncheckedRule("physics.cache_resident", "the size of the cache or of the buffers is unknown")
    elif measurement.working_set_bytes < CACHE_MULTIPLE * cache and measurement.flush_bytes < cache:
        detail = "bytes of buffers that nothing flushes, against 20 times the second-level cache"
        limit = float(CACHE_MULTIPLE * cache)
        observed = float(measurement.working_set_bytes)
        yield RuleFinding("physics.cache_resident", ResultVerdict.REJECTED, detail, observed, limit)


def _check_launch(case: ValidationCase) -> RuleOutcomes:
    """``physics.below_launch_floor``: an execution takes at least the time of a launch."""
    seconds = case.execution_seconds
    if case.work.kernel_bound and seconds is not None and seconds < LAUNCH_FLOOR_SECONDS:
        detail = "seconds of one execution; was the device waited for?"
        yield RuleFinding(
            "physics.below_launch_floor", ResultVerdict.REJECTED, detail, seconds, LAUNCH_FLOOR_SECONDS
        )


def compute_pcie_rate(case: ValidationCase) -> float | None:
    """Returns bytes per second of one direction of the host link, under load or at most, or None."""
    part, telemetry = case.accelerator, case.telemetry
    generation = get_known(telemetry.pcie_generation) if telemetry else None
    width = get_known(telemetry.pcie_width) if telemetry else None
    if part is not None:
        generation = generation or get_known(part.pcie_generation_maximum)
        width = width or get_known(part.pcie_width_maximum)
    return compute_lane_rate(generation, width)


def compute_lane_rate(generation: int | None, width: int | None) -> float | None:
    """Returns bytes per second of one direction of a bus of a generation with ``width`` lanes, or None."""
    lane = PCIE_LANE_BYTES_PER_SECOND.get(generation or 0)
    return None if lane is None or width is None else lane * width


def _check_link(case: ValidationCase) -> RuleOutcomes:
    """``physics.above_link``: payload of both directions over links, bus bytes of collectives.

    What adapters and drives write to the memory of a device comes over its host link.
    """
    work = case.work
    peer = case.datasheet.link_bytes_per_second if case.datasheet else None
    directions = 1.0
    match work:
        case HostLinkWork():
            one_way, directions = compute_pcie_rate(case), count_directions(work)
        case StorageToDeviceWork() | RdmaLinkWork(memory="device"):
            one_way = compute_pcie_rate(case)
        case PeerLinkWork() | PeerMatrixWork() | CollectiveWork():
            one_way, directions = peer, count_directions(work)
        case _:
            return
    if one_way is None:
        yield UncheckedRule("physics.above_link", "the rate of the link is unknown")
        return
    limit = one_way * SLACK * directions
    if case.bytes_per_second > limit:
        detail = "bytes per second over the link"
        yield RuleFinding("physics.above_link", ResultVerdict.REJECTED, detail, case.bytes_per_second, limit)


def count_directions(work: HostLinkWork | PeerLinkWork | PeerMatrixWork | CollectiveWork) -> float:
    """Returns the multiple of the rate of one direction that bounds the work.

    If switches add up (NVLS), a device sends and receives its payload once, so that the bus bytes of an
    all-reduce, 2 (n - 1) / n of it, go beyond the link: 480 of 450 GB/s are published.
    """
    if isinstance(work, PeerMatrixWork):
        return float(work.devices) if work.pattern == "all_to_all" else 1.0
    if not isinstance(work, CollectiveWork):
        return 2.0 if work.direction == "both" else 1.0
    if work.operation == "all_reduce" and work.algorithm in {"default", "nvls"}:
        return 2 * (work.devices - 1) / work.devices
    return 1.0


def _check_power(case: ValidationCase) -> RuleOutcomes:
    """``physics.above_power_limit``: energy over time at most the enforced limit x 1.05."""
    counted = get_known(case.telemetry.energy_power_watts) if case.telemetry else None
    watts = case.figure if case.result.benchmark.metric == "watts" else counted
    if watts is None:
        return
    limit = get_known(case.accelerator.power_limit_watts) if case.accelerator else None
    if limit is None:
        yield UncheckedRule("physics.above_power_limit", "the enforced power limit is unknown")
    elif watts > limit * POWER_SLACK:
        yield RuleFinding(
            "physics.above_power_limit", ResultVerdict.REJECTED, "watts", watts, limit * POWER_SLACK
        )


def _check_memory(case: ValidationCase) -> RuleOutcomes:
    """``physics.above_memory``: no process has more memory than the device."""
    if case.result.benchmark.metric != "bytes":
        return
    there = get_known(case.accelerator.memory_bytes) if case.accelerator else None
    if there is None:
        yield UncheckedRule("physics.above_memory", "the memory of the device is unknown")
    elif case.figure > there:
        yield RuleFinding("physics.above_memory", ResultVerdict.REJECTED, "bytes", case.figure, float(there))
