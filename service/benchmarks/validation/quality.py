"""Quality: the samples, and the processes that took them, agree with each other."""

from statistics import median

from service.benchmarks.validation.case import RuleOutcomes, ValidationCase, get_known
from service.benchmarks.validation.limits import SpreadLimits
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule
from service.protocol.work.device import PowerWork

SECONDS_REPEAT_SPREAD = 0.10
"""Spread of times of single launches and small copies, which differ more from process to process."""
ENERGY_DISAGREEMENT = 0.10
"""Share between counter and sensor (benchmark-worker.md, 2.11)."""
SHORTEST_ENERGY_SECONDS = 5.0
"""Shortest window of the energy counter, which moves every 100 ms (2.11): 2% of this."""
TREND_SAMPLES = 10
IDENTICAL_SAMPLES = 10


def check_quality(case: ValidationCase) -> RuleOutcomes:
    """Checks number, spread and drift of samples, spread of repeats, and the counter against the sensor."""
    limits = case.limits
    if case.measurement.samples_ns and not case.work.is_reported:
        yield from _check_samples(case, limits)
    yield from _check_repeats(case, limits)
    if case.result.benchmark.metric == "watts":
        yield from _check_energy(case)


def _check_samples(case: ValidationCase, limits: SpreadLimits) -> RuleOutcomes:
    summary, sampling = case.summary, case.result.benchmark.sampling
    fewest = min(limits.fewest_samples, sampling.least_samples)
    if summary.size < fewest:
        detail = "samples"
        yield RuleFinding(
            "quality.few_samples", ResultVerdict.SUSPECT, detail, float(summary.size), float(fewest)
        )
    most = max(limits.sample_spread, sampling.relative_spread)
    if summary.relative_spread > most:
        detail = "interquartile range over the median"
        yield RuleFinding(
            "quality.sample_spread", ResultVerdict.SUSPECT, detail, summary.relative_spread, most
        )
    if summary.size >= TREND_SAMPLES and abs(summary.drift) > limits.drift:
        detail = "change over the window as a share of the median"
        yield RuleFinding("quality.drift", ResultVerdict.SUSPECT, detail, summary.drift, limits.drift)
    if summary.size >= IDENTICAL_SAMPLES and summary.minimum == summary.maximum:
        # Nanoseconds of a host are never equal so often. Events are read in steps.
        verdict = ResultVerdict.REJECTED if case.measurement.timer == "host_clock" else ResultVerdict.SUSPECT
        detail = "samples that are all equal: no clock does that"
        yield RuleFinding("quality.identical_samples", verdict, detail, float(summary.size))


def _check_repeats(case: ValidationCase, limits: SpreadLimits) -> RuleOutcomes:
    """``quality.repeat_spread``: processes that measure the same agree."""
    figures = [case.figure, *(sibling.figure for sibling in case.repeats)]
    if len(figures) == 1:
        if case.result.benchmark.repeats > 1:
            yield UncheckedRule("quality.repeat_spread", "no other repeat of the attempt counts")
        return
    is_latency = case.is_accelerator and case.result.benchmark.metric == "seconds"
    most = SECONDS_REPEAT_SPREAD if is_latency else limits.repeat_spread
    middle = median(figures)
    spread = (max(figures) - min(figures)) / middle if middle else 0.0
    if spread > most:
        detail = "highest less lowest figure of the repeats over the middle one"
        yield RuleFinding("quality.repeat_spread", ResultVerdict.SUSPECT, detail, spread, most)


def _check_energy(case: ValidationCase) -> RuleOutcomes:
    """``quality.short_window`` and ``quality.energy_disagrees``: counters step, sensors average."""
    telemetry = case.telemetry
    if telemetry is None:
        yield UncheckedRule("quality.short_window", "the record has no window")
        return
    if telemetry.window_seconds < SHORTEST_ENERGY_SECONDS:
        detail = "seconds over which energy was counted"
        observed = telemetry.window_seconds
        limit = SHORTEST_ENERGY_SECONDS
        yield RuleFinding("quality.short_window", ResultVerdict.EVIDENCE_ONLY, detail, observed, limit)
    sensor = get_known(telemetry.power_watts)
    is_steady = isinstance(case.work, PowerWork) and case.work.duty == 1.0
    if sensor is None:
        yield UncheckedRule("quality.energy_disagrees", "there is no reading of the power sensor")
    elif is_steady and sensor.median and abs(case.figure / sensor.median - 1) > ENERGY_DISAGREEMENT:
        detail = "watts by the counter over those by the sensor, less one"
        observed = case.figure / sensor.median - 1
        yield RuleFinding(
            "quality.energy_disagrees", ResultVerdict.SUSPECT, detail, observed, ENERGY_DISAGREEMENT
        )
