"""A device over a window: spreads of readings, differences of counters, and gaps for what it does not say."""

import subprocess
import time
from collections import Counter
from itertools import accumulate
from random import Random
from types import SimpleNamespace

import pynvml
import pytest

from service.protocol.results import ReadingSpread
from service.worker import telemetry
from service.worker.telemetry import REASONS, watch
from tests.worker.cuda.fake_nvml import MOVED, POWER_SMOOTHING, process


class Rising:
    """A counter that grows by a step each time it is read."""

    def __init__(self, start, step):
        self.value, self.step = start - step, step

    def __call__(self):
        self.value += self.step
        return self.value


def test_everything_a_device_reports(fake_nvml, monkeypatch):
    clocks = iter([345, 1980, 1755])
    fake_nvml.answers |= {
        "nvmlDeviceGetClockInfo": lambda: next(clocks, 1755),
        "nvmlDeviceGetTemperature": 61,
        "nvmlDeviceGetPowerUsage": 652_500,
        "nvmlDeviceGetTotalEnergyConsumption": Rising(5_000_000, 1_400_000),
        "nvmlDeviceGetCurrentClocksEventReasons": 0x4 | 0x20,
        "nvmlDeviceGetTotalEccErrors": Rising(7, 0),
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetComputeRunningProcesses": [process(), process(1)],
    }
    fake_nvml.fields = {
        "NVML_FI_DEV_MEMORY_TEMP": 74,
        "NVML_FI_DEV_POWER_INSTANT": 698_125,
        "NVML_FI_DEV_PERF_POLICY_POWER": Rising(10**9, 250_000_000),
        "NVML_FI_DEV_PERF_POLICY_SYNC_BOOST": 0,
        "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN": Rising(0, 1_000),
        "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN": 0,
        "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN": 3,
    }
    monkeypatch.setattr(telemetry, "SHORTEST_ENERGY_SECONDS", 0.0)
    with watch(0, period_seconds=0.01) as window:
        time.sleep(0.1)
    found = window.telemetry
    assert window.gaps == []
    assert found.sample_count > 2
    assert found.sm_clock_hz.minimum == 345_000_000
    assert found.temperature_celsius == ReadingSpread(minimum=61, median=61, maximum=61)
    assert found.memory_temperature_celsius.median == 74
    assert (found.power_watts.median, found.power_instant_watts.median) == (652.5, 698.125)
    assert found.energy_joules == 1400.0
    assert found.energy_power_watts == pytest.approx(1400 / found.window_seconds, rel=0.3)
    assert found.throttle_seconds.sw_power_cap == 0.25
    assert found.throttle_seconds.sw_thermal == 1e-6
    assert found.throttle_seconds.hw_thermal == found.throttle_seconds.hw_power_brake == 0
    assert found.throttle_reasons == ["sw-power-cap", "sw-thermal"]
    assert (found.ecc_corrected, found.ecc_uncorrected) == (0, 0)
    assert (found.pcie_generation, found.pcie_width) == (5, 16)
    assert found.other_processes == 1


def test_what_a_device_does_not_report_is_a_gap_and_never_a_zero(fake_nvml):
    with watch(0, period_seconds=0.01) as window:
        time.sleep(0.02)
    written = window.telemetry.model_dump(mode="json")
    # Nobody uses the device, which is known; everything else is not.
    known = {"window_seconds", "sample_period_seconds", "sample_count", "load_average", "other_processes"}
    assert written.keys() - known == {"throttle_seconds", "throttle_reasons"}
    assert written["throttle_seconds"] == {}
    assert written["throttle_reasons"] == []
    missing = {gap.pointer.removeprefix("/measurement/telemetry/") for gap in window.gaps}
    assert missing == {
        "sm_clock_hz", "memory_clock_hz", "temperature_celsius", "memory_temperature_celsius", "power_watts",
        "power_instant_watts", "energy_joules", "ecc_corrected", "ecc_uncorrected", "pcie_generation",
        "pcie_width", "throttle_reasons",
        *(f"throttle_seconds/{name}" for name in telemetry.THROTTLE_COUNTERS),
    }  # fmt: skip
    assert {gap.code for gap in window.gaps} == {"not-supported"}


def throttled(window):
    return window.telemetry.throttle_seconds.model_dump(mode="json")


@pytest.mark.parametrize("driver", ["575.57.08", "580.65.06", "580.82.07", "580.159.03", "615.71"])
def test_counters_are_asked_by_the_numbers_of_the_driver(fake_nvml, driver):
    """Whatever the numbers of the bindings, which are of one version."""
    fake_nvml.answers["nvmlSystemGetDriverVersion"] = driver
    fake_nvml.fields = {name: Rising(0, 10**9 * (place + 1)) for place, name in enumerate(MOVED)}
    with watch(0) as window:
        pass
    assert throttled(window) == {"sw_thermal": 1.0, "hw_thermal": 2.0, "hw_power_brake": 3.0}


@pytest.mark.parametrize("driver", ["550.54.15", "570.86.10", "580.76.05", "unknown"])
def test_a_driver_without_a_known_number_of_a_counter_is_not_asked(fake_nvml, monkeypatch, driver):
    fake_nvml.answers["nvmlSystemGetDriverVersion"] = driver
    asked = []

    def answer(_, numbers):
        asked.extend(numbers)
        return [SimpleNamespace(nvmlReturn=pynvml.NVML_ERROR_NOT_SUPPORTED)]

    monkeypatch.setattr(fake_nvml, "nvmlDeviceGetFieldValues", answer)
    with watch(0) as window:
        pass
    assert not set(asked) & set(POWER_SMOOTHING)
    codes = {gap.pointer.rpartition("/")[2]: gap.code for gap in window.gaps}
    assert {codes[name] for name in ("sw_thermal", "hw_thermal", "hw_power_brake")} == {"no-field-number"}


def test_a_counter_of_another_type_is_another_field(fake_nvml, monkeypatch):
    """As a driver that has moved its fields once more would answer."""
    monkeypatch.setattr(fake_nvml, "_name", lambda _: None)
    with watch(0) as window:
        pass
    codes = {gap.pointer.rpartition("/")[2]: gap.code for gap in window.gaps}
    assert codes["sw_thermal"] == "wrong-type"
    assert throttled(window) == {}


def test_a_reading_that_is_not_permitted_says_so(fake_nvml):
    def refused():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)

    fake_nvml.answers["nvmlDeviceGetTotalEccErrors"] = refused
    with watch(0) as window:
        pass
    codes = {gap.pointer.rpartition("/")[2]: gap.code for gap in window.gaps}
    assert codes["ecc_corrected"] == "no-permission"


def test_a_driver_that_is_older_than_a_field_is_not_asked(fake_nvml):
    fake_nvml.answers["nvmlSystemGetDriverVersion"] = "515.105.01"
    fake_nvml.fields["NVML_FI_DEV_POWER_INSTANT"] = 698_125
    with watch(0) as window:
        pass
    assert "power_instant_watts" not in window.telemetry.model_dump(mode="json")
    (gap,) = [gap for gap in window.gaps if gap.pointer.endswith("power_instant_watts")]
    assert gap.code == "no-field-number"


def test_readings_keep_no_step_with_a_sensor_or_a_load(monkeypatch):
    """Waits have the mean that is recorded, and readings fall on every tenth of 100 ms alike."""
    monkeypatch.setattr(telemetry, "random", Random(29))  # noqa: S311
    waits = [telemetry.draw_wait(telemetry.PERIOD_SECONDS) for _ in range(10_000)]
    assert 0.0185 <= min(waits) < 0.019
    assert 0.055 < max(waits) <= 0.0555
    assert sum(waits) / len(waits) == pytest.approx(0.037, rel=0.02)
    phases = Counter(int(at * 100) % 10 for at in accumulate(waits))
    assert all(900 < phases[phase] < 1100 for phase in range(10))


def test_power_by_the_counter_is_its_difference_over_the_time_between_its_readings(fake_nvml, monkeypatch):
    readings_ns = iter([10_000_000_000, 12_500_000_000])
    clock = SimpleNamespace(monotonic=time.monotonic, monotonic_ns=lambda: next(readings_ns))
    monkeypatch.setattr(telemetry, "time", clock)
    fake_nvml.answers["nvmlDeviceGetTotalEnergyConsumption"] = Rising(5_000_000, 1_400_000)
    with watch(0) as window:
        pass
    assert (window.telemetry.energy_joules, window.telemetry.energy_power_watts) == (1400.0, 560.0)


def test_energy_of_a_short_window_is_left_out(fake_nvml):
    fake_nvml.answers["nvmlDeviceGetTotalEnergyConsumption"] = Rising(0, 1000)
    with watch(0) as window:
        pass
    assert "energy_joules" not in window.telemetry.model_dump(mode="json")
    (gap,) = [gap for gap in window.gaps if gap.pointer.endswith("energy_joules")]
    assert gap.code == "window-too-short"


def test_a_counter_that_went_back_is_a_gap(fake_nvml):
    fake_nvml.answers["nvmlDeviceGetTotalEnergyConsumption"] = Rising(9000, -1000)
    fake_nvml.fields["NVML_FI_DEV_PERF_POLICY_POWER"] = Rising(50, -10)
    with watch(0) as window:
        pass
    codes = {gap.pointer.rpartition("/")[2]: gap.code for gap in window.gaps}
    assert codes["energy_joules"] == codes["sw_power_cap"] == "counter-went-back"
    assert "sw_power_cap" not in window.telemetry.throttle_seconds.model_dump(mode="json")


def test_processes_that_the_measuring_one_started_are_no_others(fake_nvml):
    with subprocess.Popen(["/bin/sleep", "60"]) as started:
        fake_nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [process(started.pid), process(1)]
        with watch(0) as window:
            pass
        started.kill()
    assert window.telemetry.other_processes == 1


def test_processes_that_cannot_be_told_apart_are_a_gap(fake_nvml):
    fake_nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [process(1), process(2)]
    with watch(0) as window:
        pass
    assert "other_processes" not in window.telemetry.model_dump(mode="json")
    (gap,) = [gap for gap in window.gaps if gap.pointer.endswith("other_processes")]
    assert gap.code == "own-process-not-listed"


def test_without_nvml_there_is_one_gap(fake_nvml, monkeypatch):
    def missing():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(fake_nvml, "nvmlInit", missing)
    with watch(0) as window:
        pass
    assert [(gap.pointer, gap.code) for gap in window.gaps] == [("/measurement/telemetry", "no-nvml")]
    assert window.telemetry.window_seconds >= 0
    assert window.telemetry.sample_count == 0


def test_a_processor_has_a_load_and_no_gaps():
    with watch(None) as window:
        pass
    assert window.gaps == []
    assert window.telemetry.load_average >= 0


def test_a_sampler_that_breaks_says_so(fake_nvml):
    fake_nvml.answers["nvmlDeviceGetClockInfo"] = lambda: 1 // 0
    with pytest.raises(ZeroDivisionError), watch(0):
        pass


def test_a_failure_inside_the_window_is_what_comes_out(fake_nvml):
    with pytest.raises(KeyError), watch(0):
        raise KeyError


def test_the_reasons_are_those_of_the_driver():
    names = {
        "gpu-idle": "GpuIdle", "application-clocks": "ApplicationsClocksSetting",
        "sw-power-cap": "SwPowerCap",
        "hw-slowdown": "HwSlowdown", "sync-boost": "SyncBoost", "sw-thermal": "SwThermalSlowdown",
        "hw-thermal": "HwThermalSlowdown", "hw-power-brake": "HwPowerBrakeSlowdown",
        "display-clock": "DisplayClockSetting",
    }  # fmt: skip
    assert {name: getattr(pynvml, f"nvmlClocksEventReason{names[name]}") for name in names} == {
        name: bit for bit, name in REASONS.items()
    }
    for constant in (*telemetry.THROTTLE_COUNTERS.values(), "NVML_FI_DEV_MEMORY_TEMP"):
        assert isinstance(getattr(pynvml, constant), int)


def test_a_thermometer_says_degrees_or_nothing(fake_nvml):
    with telemetry.thermometer(0) as read:
        assert read() is None
        fake_nvml.answers["nvmlDeviceGetTemperature"] = {(0,): 61}
        assert read() == 61.0
    for index in (None, 7):
        with telemetry.thermometer(index) as read:
            assert read() is None
