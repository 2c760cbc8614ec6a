"""What measured runs of a tenant make of the estimates of further ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.hardware.local_evidence import (
    FURTHEST,
    LOAD_SCALE,
    LogDeviations,
    MeasuredRun,
    NearbyRuns,
    RunGroup,
    RunSetting,
    compute_correlation,
    compute_fingerprint,
)
from service.planning.quantity import EvidenceBasis, IntervalFactors

DEVIATIONS = LogDeviations(model=0.2, system=0.1, layout=0.05, load=0.2, layout_load=0.1, run=0.1)
GROUP = RunGroup("serving", "vllm", "h100-sxm", 8_000_000_000)
HERE = RunSetting(GROUP, "0.11/bf16", 1, (3.0, 6.0, 5.0))
SHIPPED = IntervalFactors(0.7, 1.5, "reference")


def run(ratio, setting=HERE, calibration_id="own"):
    return MeasuredRun(setting, math.log(ratio), calibration_id)


def at(load, system="0.11/bf16", layout=1, group=GROUP):
    return RunSetting(group, system, layout, (load, 6.0, 5.0))


def covariance(one, other):
    """What two settings share, part by part."""
    if one.group != other.group:
        return 0.0
    near = math.exp(
        -sum((a - b) ** 2 for a, b in zip(one.load, other.load, strict=True)) / (2 * LOAD_SCALE**2)
    )
    shared = DEVIATIONS.model**2
    if one.system == other.system:
        shared += DEVIATIONS.system**2 + DEVIATIONS.load**2 * near
        if one.layout == other.layout:
            shared += DEVIATIONS.layout**2 + DEVIATIONS.layout_load**2 * near
    return shared


def conditional(runs, setting):
    """Mean and variance of a further run, given these: the textbook's way."""
    known = np.array([[covariance(a.setting, b.setting) for b in runs] for a in runs])
    known += DEVIATIONS.run**2 * np.eye(len(runs))
    shared = np.array([covariance(setting, each.setting) for each in runs])
    solved = np.linalg.solve(known, shared)
    prior = covariance(setting, setting) + DEVIATIONS.run**2
    return solved @ [each.log_ratio for each in runs], prior - solved @ shared, prior


places = st.builds(
    at,
    st.integers(0, 30).map(lambda tenths: tenths / 5.0),
    st.sampled_from(["0.11/bf16", "0.11/fp8"]),
    st.sampled_from([1, 2]),
)


class TestOneRun:
    def test_it_moves_an_estimate_of_the_same_run_by_what_it_shares_of_its_variance(self):
        shared = covariance(HERE, HERE)
        weight = shared / (shared + DEVIATIONS.run**2)
        found = NearbyRuns([run(1.3)], DEVIATIONS).compute_correction(HERE)
        assert found.factor == pytest.approx(1.3**weight)
        assert 1.0 < found.factor < 1.3

    def test_it_says_less_of_what_is_further_away(self):
        known = NearbyRuns([run(1.3)], DEVIATIONS)
        further = [
            HERE,
            HERE._replace(layout=2),
            HERE._replace(layout=2, load=(6.0, 6.0, 5.0)),
            HERE._replace(system="0.12/fp8"),
        ]
        found = [known.compute_correction(setting) for setting in further]
        assert [each.factor for each in found] == sorted((each.factor for each in found), reverse=True)
        assert [each.narrowing for each in found] == sorted(each.narrowing for each in found)

    @pytest.mark.parametrize("other", [GROUP._replace(software="sglang"), GROUP._replace(device="b200-sxm")])
    def test_it_says_nothing_of_another_group(self, other):
        found = NearbyRuns([run(1.05)], DEVIATIONS).compute_correction(HERE._replace(group=other))
        assert (found.factor, found.narrowing) == (1.0, 1.0)

    def test_one_that_is_very_far_off_counts_as_less_far(self):
        far, further = (
            NearbyRuns([run(ratio)], DEVIATIONS).compute_correction(HERE) for ratio in (10.0, 1000.0)
        )
        assert far.factor == further.factor < math.exp(FURTHEST)


class TestSeveralRuns:
    @settings(max_examples=15, deadline=None)
    @given(st.lists(places, min_size=1, max_size=6, unique=True), places)
    def test_the_estimate_is_the_conditional_mean(self, settings_of_runs, asked):
        runs = [run(1.1 + 0.05 * k, each) for k, each in enumerate(settings_of_runs)]
        found = NearbyRuns(runs, DEVIATIONS).compute_correction(asked)
        mean, variance, prior = conditional(runs, asked)
        assert math.log(found.factor) == pytest.approx(mean, rel=1e-6, abs=1e-9)
        # Runs that agree with the parts leave the spread that these tell.
        assert found.narrowing >= math.sqrt(variance / prior) * (1.0 - 1e-9)

    def test_runs_that_agree_narrow_the_interval(self):
        widths = []
        for count in (1, 3, 10):
            known = NearbyRuns([run(1.2, at(k / 4.0)) for k in range(count)], DEVIATIONS)
            spread = known.compute_correction(at(1.1)).apply_to_spread(SHIPPED)
            widths.append(spread.high / spread.low)
        assert SHIPPED.high / SHIPPED.low > widths[0] > widths[1] > widths[2]

    def test_the_interval_is_never_narrower_than_runs_left_out_in_turn(self):
        runs = [run(1.2 * (1.4 if k % 2 else 1 / 1.4), at(k / 4.0)) for k in range(10)]
        errors = []
        for left in runs:
            others = [each for each in runs if each is not left]
            mean, _, _ = conditional(others, left.setting)
            errors.append(abs(left.log_ratio - mean))
        found = NearbyRuns(runs, DEVIATIONS).compute_correction(at(1.1))
        spread = found.apply_to_spread(SHIPPED)
        # The 9th of 10 errors: a fifth of 11 is further off.
        least = sorted(errors)[8]
        assert found.least == pytest.approx(least)
        assert math.log(spread.high / spread.middle) >= least * (1.0 - 1e-9)
        assert math.log(spread.middle / spread.low) >= least * (1.0 - 1e-9)
        assert spread.high / spread.low > SHIPPED.high / SHIPPED.low

    def test_the_same_run_measured_twice_counts_once(self):
        once = NearbyRuns([run(1.2)], DEVIATIONS).compute_correction(HERE)
        twice = NearbyRuns([run(1.2), run(1.2, calibration_id="again")], DEVIATIONS).compute_correction(HERE)
        assert twice[:4] == once[:4]
        assert twice.calibration_ids == ("own", "again")


def test_a_corrected_spread_is_around_the_corrected_value():
    found = NearbyRuns([run(1.3)], DEVIATIONS).compute_correction(HERE)
    figure = found.apply_to_spread(SHIPPED).around(2.0, EvidenceBasis.REFERENCE)
    assert figure.value == pytest.approx(2.0 * found.factor)
    assert figure.low < figure.value < figure.high
    assert figure.basis is EvidenceBasis.CALIBRATED_SKU
    assert (
        found.apply_to_spread(SHIPPED).around(2.0, EvidenceBasis.CALIBRATED_NODE).basis
        is EvidenceBasis.CALIBRATED_NODE
    )


class TestCorrelation:
    """What the estimates of two runs are wrong alike in."""

    @given(places, places)
    def test_it_is_the_share_of_the_variance_that_both_have(self, one, other):
        variance = covariance(one, one) + DEVIATIONS.run**2
        assert compute_correlation(DEVIATIONS, one, other) == pytest.approx(covariance(one, other) / variance)
        assert compute_correlation(DEVIATIONS, one, other) == compute_correlation(DEVIATIONS, other, one)

    def test_other_devices_are_wrong_on_their_own(self):
        elsewhere = at(3.0, group=GROUP._replace(device="a100-sxm-80gb"))
        assert compute_correlation(DEVIATIONS, HERE, elsewhere) == 0.0

    def test_it_falls_with_the_layout_and_the_load(self):
        layout, load = at(3.0, layout=2), at(6.0)
        known = [compute_correlation(DEVIATIONS, HERE, other) for other in (HERE, layout, load)]
        assert known == sorted(known, reverse=True)
        assert 0.5 < known[-1] < known[0] < 1.0


def test_a_published_figure_is_known_however_its_question_is_written():
    known = compute_fingerprint("serving_tpot", HERE, 0.0123449)
    nearly = HERE._replace(system="other", layout=4, load=(3.0001, 6.0, 5.0))
    assert compute_fingerprint("serving_tpot", nearly, 0.0123451) != known
    assert compute_fingerprint("serving_tpot", nearly, 0.01234492) == known
    assert compute_fingerprint("serving_ttft", HERE, 0.0123449) != known
