"""Laws of scaling, the empirical curve, and the decision to scale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.training.scaling import (
    RunScale,
    amdahl_speedup,
    communication_tax_speedup,
    crossover_devices,
    fit_empirical_curve,
    fit_serial_share,
    gustafson_speedup,
    least_devices,
    linear_learning_rate,
    overhead_share,
    square_root_learning_rate,
    strong_efficiency,
    suggest_scale,
    weak_efficiency,
    work_cost_factor,
)

DDP = {1: 1.0, 2: 1.95, 4: 3.80, 8: 7.20, 32: 26.0, 64: 48.0, 256: 160.0}
"""Published speed-ups of distributed data parallelism by number of devices."""


class TestLaws:
    def test_amdahl_and_the_communication_tax_are_one(self):
        for devices, speedup in ((8, 7.477), (64, 39.26), (1000, 90.99)):
            assert amdahl_speedup(devices, 0.01) == pytest.approx(speedup, rel=1e-3)
            assert communication_tax_speedup(devices, 0.01) == amdahl_speedup(devices, 0.01)
            assert amdahl_speedup(devices, 0.01) == pytest.approx(1 / (0.01 + 0.99 / devices))
        assert amdahl_speedup(1e12, 0.01) == pytest.approx(100.0)

    def test_gustafson_grows_with_the_problem(self):
        assert [gustafson_speedup(n, 0.01) for n in (8, 64, 1000)] == pytest.approx([7.93, 63.37, 990.01])

    @given(st.floats(0.0, 1.0), st.lists(st.integers(2, 10**5), min_size=1, max_size=8))
    def test_the_serial_share_is_found_again(self, share, counts):
        strong = [amdahl_speedup(n, share) for n in counts]
        weak = [gustafson_speedup(n, share) for n in counts]
        assert fit_serial_share(counts, strong) == pytest.approx(share, abs=1e-6)
        assert fit_serial_share(counts, weak, weak=True) == pytest.approx(share, abs=1e-6)

    @given(st.floats(0.0, 1.0), st.integers(1, 10**6))
    def test_no_law_is_faster_than_its_devices(self, share, devices):
        strong, weak = amdahl_speedup(devices, share), gustafson_speedup(devices, share)
        assert 1.0 - 1e-9 <= strong <= weak * (1 + 1e-9) <= devices * (1 + 2e-9)

    def test_a_single_count_has_no_serial_share(self):
        with pytest.raises(ValueError, match="count above 1"):
            fit_serial_share([1], [1.0])


class TestDataParallelTable:
    def test_efficiencies(self):
        printed = {2: 97.5, 4: 95, 8: 90, 32: 81, 64: 75, 256: 62}
        for devices, percent in printed.items():
            share = strong_efficiency(1.0, devices, 1.0 / DDP[devices])
            assert 100 * share == pytest.approx(percent, abs=0.6)

    def test_from_8_to_64_devices_efficiency_falls_by_a_sixth(self):
        assert strong_efficiency(1 / DDP[8], 64 / 8, 1 / DDP[64]) == pytest.approx(0.75 / 0.90)

    def test_the_empirical_curve_meets_it_within_two_per_cent(self):
        fitted = fit_empirical_curve(list(DDP), list(DDP.values()))
        assert fitted.constant == pytest.approx(0.9804, abs=1e-4)
        assert fitted.linear == pytest.approx(0.001059, abs=1e-6)
        assert fitted.logarithmic == pytest.approx(0.06361, abs=1e-5)
        assert fitted.largest_error < 0.02
        for devices, speedup in DDP.items():
            assert fitted.compute_speedup(devices) == pytest.approx(speedup, rel=0.02)

    def test_no_single_serial_share_does(self):
        share = fit_serial_share(list(DDP), list(DDP.values()))
        worst = max(abs(amdahl_speedup(n, share) / speedup - 1) for n, speedup in DDP.items())
        assert worst > 0.3

    def test_three_points_are_no_fit(self):
        with pytest.raises(ValueError, match="4 different counts"):
            fit_empirical_curve([1, 2, 4, 4], [1, 2, 4, 4])

    def test_from_8_to_64_devices_work_costs_a_fifth_more(self):
        cost = work_cost_factor(0.75) / work_cost_factor(0.90)
        assert cost == pytest.approx(1.2)
        assert work_cost_factor(0.7) == pytest.approx(1.4286, abs=1e-4)


def test_efficiencies_of_printed_times():
    assert strong_efficiency(100.0, 8, 14.0) == pytest.approx(0.893, abs=5e-4)
    assert weak_efficiency(1.0, 1.05) == pytest.approx(0.952, abs=5e-4)


def test_compute_and_communication_cross():
    devices = crossover_devices(10.0, 0.1)
    assert devices == pytest.approx(100.0)
    assert overhead_share(10.0 / devices, 0.1) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("efficiency", "devices", "speedup"), [(0.85, 1024, 870.4), (0.9, 256, 230.4), (0.7, 2048, 1433.6)]
)
def test_speedups_behind_printed_efficiencies(efficiency, devices, speedup):
    assert strong_efficiency(1.0, devices, 1 / speedup) == pytest.approx(efficiency)


def test_learning_rates_of_eight_times_the_batch():
    assert linear_learning_rate(0.1, 8) == pytest.approx(0.8)
    assert square_root_learning_rate(0.1, 8) == pytest.approx(0.2828, abs=5e-5)


def test_the_rule_of_thumb_is_by_size():
    assert suggest_scale(5e8, 50e9) == (RunScale.SINGLE_DEVICE, False)
    assert suggest_scale(5e8, 500e9) == (RunScale.SINGLE_NODE, False)
    assert suggest_scale(20e9, 50e9) == (RunScale.CLUSTER, False)
    assert suggest_scale(5e8, 20e12) == (RunScale.CLUSTER, True)


def test_devices_by_memory():
    assert least_devices(140e9, 80e9) == 2
    assert least_devices(80e9, 80e9) == 1
