"""Telemetry of the device over a timed window: a thread of readings, and counters at both ends.

Clocks, temperature and power are read periodically; energy, throttling and memory errors are counters of the
driver, of which the difference counts: a thread that polls would miss events between its readings. The power
that NVML reports is an average over one second on most devices, so that of the moment is read beside it.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from pydantic import MISSING

from service.protocol.nodes import NodeGap
from service.protocol.results import DeviceTelemetry, ReadingSpread, ThrottleSeconds
from service.worker import nvml
from service.worker.benchmark import Unsupported
from service.worker.process import find_group

PERIOD_SECONDS = 0.037
"""Mean time between readings, no part or multiple of the 20 and 100 ms in which sensors move."""
JITTER = 0.5
"""Share of the period by which a wait is shorter or longer, so that readings keep no step with a load."""
SHORTEST_ENERGY_SECONDS = 2.0
"""Least window of an energy: the counter moves about ten times a second (documentation of Zeus)."""

OF_WHOLE_DEVICE = ("power_", "energy_")
AT = "/measurement/telemetry"
HZ_PER_MHZ = 1_000_000

THROTTLE_COUNTERS = {
    "sw_power_cap": "NVML_FI_DEV_PERF_POLICY_POWER",
    "sync_boost": "NVML_FI_DEV_PERF_POLICY_SYNC_BOOST",
    "sw_thermal": "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",
    "hw_thermal": "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    "hw_power_brake": "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
}
"""Fields of counters in nanoseconds, of 64 bits each."""

REASONS = {
    0x1: "gpu-idle",
    0x2: "application-clocks",
    0x4: "sw-power-cap",
    0x8: "hw-slowdown",
    0x10: "sync-boost",
    0x20: "sw-thermal",
    0x40: "hw-thermal",
    0x80: "hw-power-brake",
    0x100: "display-clock",
}
"""Bits of the clock event reasons, by nvml.h."""


def draw_wait(period_seconds: float) -> float:
    """Returns the seconds to the next reading, uniform around the period."""
    return period_seconds * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  # no secret


class TelemetryWindow:
    """Readings of a device between entering and leaving :func:`watch`."""

    telemetry: DeviceTelemetry
    gaps: list[NodeGap]


@contextmanager
def watch(index: int | None, *, period_seconds: float = PERIOD_SECONDS) -> Iterator[TelemetryWindow]:
    """Watches an accelerator of the inventory, or only the host if the index is None.

    Afterwards the window has ``telemetry`` (SI units) and ``gaps``, whose pointers start at the result.
    """
    window = TelemetryWindow()
    started = time.monotonic()
    with ExitStack() as stack:
        sampler = _open_sampler(stack, index, period_seconds) if index is not None else None
        if isinstance(sampler, _TelemetrySampler):
            sampler.start()
        try:
            yield window
        finally:
            if isinstance(sampler, _TelemetrySampler):
                window.telemetry, window.gaps = sampler.stop()
            else:
                window.telemetry = DeviceTelemetry(
                    window_seconds=time.monotonic() - started, load_average=os.getloadavg()[0]
                )
                window.gaps = [sampler] if sampler else []


@contextmanager
def thermometer(index: int | None) -> Iterator[Callable[[], float | None]]:
    """Yields a reader of an accelerator's degrees Celsius, which returns None if they are unknown."""
    with ExitStack() as stack:
        try:
            bindings = stack.enter_context(nvml.open_nvml())
            handle = None if index is None else nvml.find_unit(bindings, index).whole
        except Unsupported:
            handle = None

        def read_temperature() -> float | None:
            if handle is None:
                return None
            try:
                return float(bindings.nvmlDeviceGetTemperature(handle, bindings.NVML_TEMPERATURE_GPU))
            except bindings.NVMLError:
                return None

        yield read_temperature


def _open_sampler(stack: ExitStack, index: int, period_seconds: float) -> "_TelemetrySampler | NodeGap":
    try:
        bindings = stack.enter_context(nvml.open_nvml())
        return _TelemetrySampler(bindings, nvml.find_unit(bindings, index), period_seconds)
    except Unsupported as error:
        return NodeGap(pointer=AT, code="no-nvml", detail=str(error)[:500])


class _TelemetrySampler:
    def __init__(self, bindings: Any, unit: nvml.DeviceUnit, period_seconds: float) -> None:  # noqa: ANN401
        # Clocks and heat of a slice are those of the whole device; its power is not.
        self._nvml, self._handle, self._period = bindings, unit.whole, period_seconds
        self._unit = unit
        self._answers = nvml.NvmlAnswers(bindings, AT, withheld=OF_WHOLE_DEVICE if unit.is_slice else ())
        self._readings: dict[str, list[float]] = {}
        self._reasons = 0
        self._rounds = 0
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        self._counters = self._read_counters()
        self._started = time.monotonic()
        self._thread.start()

    def stop(self) -> tuple[DeviceTelemetry, list[NodeGap]]:
        seconds = time.monotonic() - self._started
        self._over.set()
        self._thread.join()
        if self._failure:
            raise self._failure
        telemetry = self._build_telemetry(seconds, self._read_counters())
        return telemetry, self._answers.gaps

    def _run(self) -> None:
        try:
            self._read_sensors()
            while not self._over.wait(draw_wait(self._period)):
                self._read_sensors()
        except Exception as error:  # noqa: BLE001  # raised again by whoever stops the thread
            self._failure = error

    def _read_sensors(self) -> None:
        bindings, handle, ask = self._nvml, self._handle, self._answers.query_member
        questions = {
            "sm_clock_hz": (
                HZ_PER_MHZ,
                lambda: bindings.nvmlDeviceGetClockInfo(handle, bindings.NVML_CLOCK_SM),
            ),
            "memory_clock_hz": (
                HZ_PER_MHZ,
                lambda: bindings.nvmlDeviceGetClockInfo(handle, bindings.NVML_CLOCK_MEM),
            ),
            "temperature_celsius": (
                1,
                lambda: bindings.nvmlDeviceGetTemperature(handle, bindings.NVML_TEMPERATURE_GPU),
            ),
            "power_watts": (1e-3, lambda: bindings.nvmlDeviceGetPowerUsage(handle)),
            "pcie_generation": (1, lambda: bindings.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
            "pcie_width": (1, lambda: bindings.nvmlDeviceGetCurrPcieLinkWidth(handle)),
        }
        for member, (unit, question) in questions.items():
            self._record_reading(member, ask(member, question), unit)
        for member, field, unit in (
            ("memory_temperature_celsius", "NVML_FI_DEV_MEMORY_TEMP", 1),
            ("power_instant_watts", "NVML_FI_DEV_POWER_INSTANT", 1e-3),
        ):
            self._record_reading(member, self._answers.query_field(member, handle, field), unit)
        reasons = ask("throttle_reasons", lambda: bindings.nvmlDeviceGetCurrentClocksEventReasons(handle))
        if reasons is not MISSING:
            self._reasons |= reasons
        self._rounds += 1

    def _record_reading(self, member: str, value: "int | MISSING", unit: float) -> None:
        if value is not MISSING:
            self._readings.setdefault(member, []).append(value * unit)

    def _read_counters(self) -> dict[str, "int | MISSING"]:
        bindings, handle, ask = self._nvml, self._handle, self._answers.query_member
        energy = ask("energy_joules", lambda: bindings.nvmlDeviceGetTotalEnergyConsumption(handle))
        return {
            # Read beside the counter, because the time between its own readings counts.
            "energy_millijoules": energy,
            "energy_read_ns": time.monotonic_ns(),
            "ecc_corrected": ask(
                "ecc_corrected", lambda: self._read_ecc_errors("NVML_MEMORY_ERROR_TYPE_CORRECTED")
            ),
            "ecc_uncorrected": ask(
                "ecc_uncorrected", lambda: self._read_ecc_errors("NVML_MEMORY_ERROR_TYPE_UNCORRECTED")
            ),
            **{
                name: self._answers.query_field(f"throttle_seconds/{name}", handle, constant, is_counter=True)
                for name, constant in THROTTLE_COUNTERS.items()
            },
        }

    def _read_ecc_errors(self, kind: str) -> int:
        bindings = self._nvml
        return int(
            bindings.nvmlDeviceGetTotalEccErrors(
                self._handle, getattr(bindings, kind), bindings.NVML_VOLATILE_ECC
            )
        )

    def _build_telemetry(self, seconds: float, after: dict[str, "int | MISSING"]) -> DeviceTelemetry:
        joules, watts = self._compute_energy(after)
        throttled = {
            name: self._compute_difference(name, after, f"throttle_seconds/{name}")
            for name in THROTTLE_COUNTERS
        }
        return DeviceTelemetry(
            window_seconds=seconds,
            sample_period_seconds=self._period,
            sample_count=self._rounds,
            sm_clock_hz=self._build_spread("sm_clock_hz"),
            memory_clock_hz=self._build_spread("memory_clock_hz"),
            temperature_celsius=self._build_spread("temperature_celsius"),
            memory_temperature_celsius=self._build_spread("memory_temperature_celsius"),
            power_watts=self._build_spread("power_watts"),
            power_instant_watts=self._build_spread("power_instant_watts"),
            energy_joules=joules,
            energy_power_watts=watts,
            throttle_seconds=ThrottleSeconds(
                **{name: MISSING if value is MISSING else value / 1e9 for name, value in throttled.items()}
            ),
            throttle_reasons=[name for bit, name in REASONS.items() if self._reasons & bit],
            ecc_corrected=self._compute_difference("ecc_corrected", after),
            ecc_uncorrected=self._compute_difference("ecc_uncorrected", after),
            pcie_generation=self._find_highest("pcie_generation"),
            pcie_width=self._find_highest("pcie_width"),
            other_processes=self._count_other_processes(),
            load_average=os.getloadavg()[0],
        )

    def _compute_difference(
        self, name: str, after: dict[str, "int | MISSING"], member: str | None = None
    ) -> "int | MISSING":
        first, last = self._counters[name], after[name]
        if first is MISSING or last is MISSING:
            return MISSING
        if last < first:
            self._answers.record_gap(member or name, "counter-went-back", f"from {first} to {last}")
            return MISSING
        return last - first

    def _compute_energy(
        self, after: dict[str, "int | MISSING"]
    ) -> tuple["float | MISSING", "float | MISSING"]:
        millijoules = self._compute_difference("energy_millijoules", after, "energy_joules")
        passed = self._compute_difference("energy_read_ns", after)
        if millijoules is MISSING or passed is MISSING:
            return MISSING, MISSING
        if passed < SHORTEST_ENERGY_SECONDS * 1e9:
            self._answers.record_gap("energy_joules", "window-too-short", f"{passed / 1e9:.3f} s")
            return MISSING, MISSING
        return millijoules / 1e3, millijoules * 1e6 / passed

    def _build_spread(self, member: str) -> "ReadingSpread | MISSING":
        values = self._readings.get(member)
        if not values:
            return MISSING
        return ReadingSpread(minimum=min(values), median=median(values), maximum=max(values))

    def _find_highest(self, member: str) -> "int | MISSING":
        values = self._readings.get(member)
        return int(max(values)) if values else MISSING

    def _count_other_processes(self) -> "int | MISSING":
        found = self._answers.query_member(
            "other_processes", lambda: self._nvml.nvmlDeviceGetComputeRunningProcesses(self._unit.handle)
        )
        if found is MISSING:
            return MISSING
        numbers = {process.pid for process in found}
        own = {each for each in numbers if find_group(each) == os.getpgrp()}
        if numbers and not own:
            # In a container NVML may know this process by another number: own and other processes look alike.
            detail = f"{len(numbers)} processes, none of this number"
            self._answers.record_gap("other_processes", "own-process-not-listed", detail)
            return MISSING
        return len(numbers - own)
