"""Conditions: the device was measured alone, at its own clocks, on data like those of use.

They are asked of accelerators. Of a processor only the data are checked.
"""

import re
from typing import Final

from service.benchmarks.validation.case import THROTTLED_SHARE, RuleOutcomes, ValidationCase, get_known
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule
from service.protocol.nodes import NodeAccelerator
from service.protocol.results import DeviceTelemetry
from service.protocol.work.device import PowerWork
from service.protocol.work.links import HostLinkWork

LOWEST_CLOCK_SHARE = 0.75
"""Share of the default clock below which nvbench throws a sample away (2.1)."""
_RANDOM = re.compile(r"normal|uniform|random", re.IGNORECASE)
_CONSTANT = re.compile(r"\b(zeros?|ones|constants?|empty)\b", re.IGNORECASE)
_THERMAL = {"sw_thermal", "hw_thermal", "hw_power_brake"}
_THERMAL_REASONS: Final = frozenset({"sw-thermal", "hw-thermal", "hw-power-brake", "hw-slowdown"})


def check_conditions(case: ValidationCase) -> RuleOutcomes:
    """Checks data, throttling, clocks, other processes, errors of memory and the width of the link."""
    yield from _check_constant_data(case)
    yield from _check_size(case)
    if not case.is_accelerator:
        return
    if case.telemetry is None:
        yield UncheckedRule("conditions.telemetry", "nothing was read of the device while it was measured")
    else:
        yield from _check_throttled(case, case.telemetry)
        yield from _check_power_capped(case)
        yield from _check_low_clock(case, case.telemetry)
        yield from _check_other_processes(case.telemetry)
        yield from _check_memory_errors(case.telemetry)
    if case.accelerator is not None:
        yield from _check_partitioned(case.accelerator)
        yield from _check_link_width(case, case.accelerator)


def _check_constant_data(case: ValidationCase) -> RuleOutcomes:
    """``conditions.constant_data``: zeros draw less power and run faster, 13% on H200 (pitfall 1)."""
    data = case.measurement.data
    is_constant = bool(_CONSTANT.search(data))
    if case.is_accelerator and case.work.needs_random_data:
        is_constant = is_constant or not _RANDOM.search(data)
    if is_constant:
        detail = "the data are not random: fewer bits flip than in use"
        yield RuleFinding("conditions.constant_data", ResultVerdict.EVIDENCE_ONLY, detail)


def _check_size(case: ValidationCase) -> RuleOutcomes:
    """``conditions.reduced_size``, a label: the figure is that of a smaller size than was asked for."""
    for gap in case.result.gaps:
        if gap.code == "reduced-size":
            yield RuleFinding("conditions.reduced_size", ResultVerdict.ACCEPTED, gap.detail)


def _check_throttled(case: ValidationCase, telemetry: DeviceTelemetry) -> RuleOutcomes:
    """``conditions.throttled``: the clock is lower for heat or the power supply for over 1% of the window."""
    seconds = [get_known(getattr(telemetry.throttle_seconds, name)) for name in sorted(_THERMAL)]
    counted = [one for one in seconds if one is not None]
    share = sum(counted) / telemetry.window_seconds if telemetry.window_seconds else 0.0
    if share > THROTTLED_SHARE:
        detail = "share of the window at a lower clock for heat or the power supply"
        yield RuleFinding("conditions.throttled", ResultVerdict.SUSPECT, detail, share, THROTTLED_SHARE)
    elif len(counted) < len(seconds):
        # A reading that saw a reason proves it. Readings that saw none prove little.
        if _THERMAL_REASONS.intersection(telemetry.throttle_reasons):
            detail = "a reading saw it held down for heat or the power supply"
            yield RuleFinding("conditions.throttled", ResultVerdict.SUSPECT, detail)
        elif case.work.kernel_bound or isinstance(case.work, PowerWork):
            yield UncheckedRule("conditions.throttled", "the driver does not count every kind of throttling")


def _check_power_capped(case: ValidationCase) -> RuleOutcomes:
    """``conditions.power_capped``, a label: large products of random numbers reach the power limit."""
    share = case.power_limited_share
    if share > THROTTLED_SHARE:
        detail = "share of the window at a lower clock for the power limit: expected, and part of the figure"
        yield RuleFinding("conditions.power_capped", ResultVerdict.ACCEPTED, detail, share, THROTTLED_SHARE)


def _check_low_clock(case: ValidationCase, telemetry: DeviceTelemetry) -> RuleOutcomes:
    """``conditions.low_clock``: below 75% of the default clock, and the power limit did not ask for it."""
    if not case.work.kernel_bound:
        return
    part = case.accelerator
    default = part and (get_known(part.sm_clock_application_hz) or get_known(part.sm_clock_maximum_hz))
    clock = get_known(telemetry.sm_clock_hz)
    if not default or clock is None:
        yield UncheckedRule("conditions.low_clock", "the clock under load or its default is unknown")
        return
    capped = get_known(telemetry.throttle_seconds.sw_power_cap) or 0.0
    is_capped = capped > THROTTLED_SHARE * telemetry.window_seconds
    if clock.median < LOWEST_CLOCK_SHARE * default and not is_capped:
        detail = "middle clock in Hz, and the power limit did not ask for it"
        limit = LOWEST_CLOCK_SHARE * default
        yield RuleFinding("conditions.low_clock", ResultVerdict.SUSPECT, detail, clock.median, limit)


def _check_other_processes(telemetry: DeviceTelemetry) -> RuleOutcomes:
    """``conditions.other_processes``: the device was not alone (pitfall 21)."""
    others = get_known(telemetry.other_processes)
    if others is None:
        yield UncheckedRule("conditions.other_processes", "whether others used the device is unknown")
    elif others:
        detail = "processes of others on the device"
        yield RuleFinding(
            "conditions.other_processes", ResultVerdict.EVIDENCE_ONLY, detail, float(others), 0.0
        )


def _check_memory_errors(telemetry: DeviceTelemetry) -> RuleOutcomes:
    """``conditions.memory_errors``: errors that were not corrected (pitfall 22)."""
    errors = get_known(telemetry.ecc_uncorrected)
    if errors is None:
        yield UncheckedRule("conditions.memory_errors", "the device does not count errors of its memory")
    elif errors:
        detail = "errors of memory that were not corrected"
        yield RuleFinding("conditions.memory_errors", ResultVerdict.EVIDENCE_ONLY, detail, float(errors), 0.0)


def _check_partitioned(part: NodeAccelerator) -> RuleOutcomes:
    """``conditions.partitioned``: a part of a device is not the device (pitfall 21), unless it is a slice."""
    if get_known(part.mig_profile) is not None:
        return
    mode = get_known(part.mig_mode)
    if mode is None:
        yield UncheckedRule("conditions.partitioned", "whether the device is partitioned is unknown")
    elif mode:
        yield RuleFinding(
            "conditions.partitioned", ResultVerdict.EVIDENCE_ONLY, "the device is partitioned (MIG)"
        )


def _check_link_width(case: ValidationCase, part: NodeAccelerator) -> RuleOutcomes:
    """``conditions.narrow_link``: copies go over fewer lanes or an older generation than there are."""
    if not isinstance(case.work, HostLinkWork) or case.telemetry is None:
        return
    pairs = (
        ("lanes", case.telemetry.pcie_width, part.pcie_width_maximum),
        ("generation", case.telemetry.pcie_generation, part.pcie_generation_maximum),
    )
    for name, found, most in pairs:
        now, best = get_known(found), get_known(most)
        if now is None or best is None:
            yield UncheckedRule("conditions.narrow_link", f"the {name} of the link under load are unknown")
        elif now < best:
            detail = f"{name} of the link under load"
            yield RuleFinding(
                "conditions.narrow_link", ResultVerdict.EVIDENCE_ONLY, detail, float(now), float(best)
            )
