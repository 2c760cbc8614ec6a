"""Replay: the record was measured once, on this node and in its own time."""

from service.benchmarks.validation.case import (
    LEAST_BITS,
    RuleOutcomes,
    ValidationCase,
    compute_information_bits,
)
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule

SKEW_SECONDS = 10.0
"""Error of the offset that a worker measures: a round trip, and the drift since."""
STEP_SECONDS = 1.0
"""Seconds by which the clock of the host may be set during a measurement."""
SLACK_SECONDS = 0.05
SLACK = 1.01
"""Slack of clocks that are read one after the other."""


def check_replay(case: ValidationCase) -> RuleOutcomes:
    """Checks for copies, times before the lease or after the receipt, and more time than has passed."""
    yield from _check_samples_seen(case)
    yield from _check_lease_window(case)
    yield from _check_overlap(case)
    yield from _check_clocks(case)
    yield from _check_elapsed_time(case)


def _check_samples_seen(case: ValidationCase) -> RuleOutcomes:
    """``replay.samples_seen``: the same samples in the same order are one measurement."""
    other = case.earlier.with_these_samples
    if other is not None:
        yield RuleFinding(
            "replay.samples_seen", ResultVerdict.REJECTED, f"the samples are those of result {other}"
        )
    elif (
        case.measurement.samples_ns and compute_information_bits(case.measurement, case.summary) < LEAST_BITS
    ):
        detail = f"samples of less than {LEAST_BITS:.0f} bits may be equal by chance"
        yield UncheckedRule("replay.samples_seen", detail)


def _check_lease_window(case: ValidationCase) -> RuleOutcomes:
    """``replay.before_lease`` and ``replay.after_receipt``: by the service's clock, give or take its skew."""
    offset = case.clock_offset_seconds
    if case.granted_at is None:
        return
    if offset is None:
        detail = "the worker did not know how far its clock is from the service's"
        yield UncheckedRule("replay.before_lease", detail)
        yield UncheckedRule("replay.after_receipt", detail)
        return
    early = (case.granted_at - case.result.started_at).total_seconds() - offset
    if early > SKEW_SECONDS:
        detail = "seconds by which it began before the lease was granted"
        yield RuleFinding("replay.before_lease", ResultVerdict.SUSPECT, detail, early, SKEW_SECONDS)
    late = (case.result.finished_at - case.received_at).total_seconds() + offset
    if late > SKEW_SECONDS:
        detail = "seconds by which it ended after it was received"
        yield RuleFinding("replay.after_receipt", ResultVerdict.SUSPECT, detail, late, SKEW_SECONDS)


def _check_overlap(case: ValidationCase) -> RuleOutcomes:
    """``replay.overlap``: a device is measured by one process at a time."""
    began, ended = case.result.started_at, case.result.finished_at
    most = max(
        (
            (min(ended, other.finished_at) - max(began, other.started_at)).total_seconds()
            for other in case.device_siblings
        ),
        default=0.0,
    )
    if most > STEP_SECONDS:
        detail = "seconds at the same time as another result of the same device"
        yield RuleFinding("replay.overlap", ResultVerdict.SUSPECT, detail, most, STEP_SECONDS)


def _check_clocks(case: ValidationCase) -> RuleOutcomes:
    """``replay.clock_set``: two clocks of one host measure the same time."""
    result = case.result
    wall = (result.finished_at - result.started_at).total_seconds()
    apart = abs(wall - case.elapsed_seconds)
    if apart > STEP_SECONDS:
        detail = "seconds between what the host's clock and its monotonic clock say of the time taken"
        yield RuleFinding("replay.clock_set", ResultVerdict.SUSPECT, detail, apart, STEP_SECONDS)


def _check_elapsed_time(case: ValidationCase) -> RuleOutcomes:
    """``replay.time_not_passed``: warm-up and samples fit into the process, samples into their window."""
    if case.work.is_reported:
        return
    sampled = sum(case.measurement.samples_ns) / 1e9
    window = case.telemetry.window_seconds if case.telemetry else None
    needed = case.measurement.warmup_seconds + max(sampled, window or 0.0)
    for taken, there in ((needed, case.elapsed_seconds), (sampled, window)):
        if there is not None and taken > there * SLACK + SLACK_SECONDS:
            detail = "seconds of warm-up and samples, in a process or window that was shorter"
            yield RuleFinding("replay.time_not_passed", ResultVerdict.REJECTED, detail, taken, there)
            return
