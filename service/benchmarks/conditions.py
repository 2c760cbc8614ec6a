"""Conditions of the measurement of a result, as one flat row; unknown members are absent."""

import hashlib
from typing import Any, NamedTuple

from pydantic import MISSING
from pydantic_core import to_json

from service.protocol.nodes import NodeAccelerator, NodeHost, NodeInventory
from service.protocol.results import BenchmarkMeasurement, BenchmarkResultReport, DeviceTelemetry


def build_conditions(result: BenchmarkResultReport) -> dict[str, Any]:
    """Builds the conditions of a result, by the names of ``MeasurementConditions``."""
    found: dict[str, Any] = {
        "worker_version": result.worker_version,
        "accelerator_index": result.accelerator_index,
        "concurrent_accelerators": result.concurrent_accelerators,
    }
    if result.measurement is not MISSING:
        found |= _build_measurement_conditions(result.measurement)
    return {name: value for name, value in found.items() if value is not MISSING}


def _build_measurement_conditions(measurement: BenchmarkMeasurement) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: getattr(measurement, name)
        for name in (
            "library",
            "algorithm",
            "math_mode",
            "accumulation",
            "data",
            "timer",
            "warmup_seconds",
            "inner_iterations",
            "stop_reason",
            "flush_bytes",
            "rotated_buffers",
            "uses_graph",
            "threads",
        )
    }
    found["discarded_samples"] = sum(discarded.count for discarded in measurement.discarded)
    if measurement.correctness is not MISSING:
        found["correctness_passed"] = measurement.correctness.passed
        found["largest_relative_error"] = measurement.correctness.largest_error
    if measurement.telemetry is not MISSING:
        found |= _build_telemetry_conditions(measurement.telemetry)
    return found


def _build_telemetry_conditions(telemetry: DeviceTelemetry) -> dict[str, Any]:
    spreads = (
        "sm_clock_hz",
        "cpu_clock_hz",
        "memory_clock_hz",
        "temperature_celsius",
        "memory_temperature_celsius",
    )
    found: dict[str, Any] = {}
    for name in (*spreads, "power_watts", "power_instant_watts"):
        spread = getattr(telemetry, name)
        if spread is not MISSING:
            found[name] = spread.median
    single = ("window_seconds", "energy_joules", "energy_power_watts", "ecc_corrected", "ecc_uncorrected")
    for name in (*single, "pcie_generation", "pcie_width", "other_processes", "load_average"):
        found[name] = getattr(telemetry, name)
    for name in type(telemetry.throttle_seconds).model_fields:
        found[f"throttle_{name}_seconds"] = getattr(telemetry.throttle_seconds, name)
    return found


class MeasuredHardware(NamedTuple):
    """Measured hardware: its usual name, and the digest of the numbers that identify it."""

    name: str
    sha256: str


_ACCELERATOR_IDENTITY = (
    "name",
    "pci_device_id",
    "pci_subsystem_id",
    "memory_bytes",
    "power_limit_watts",
    "sm_clock_maximum_hz",
    "memory_clock_maximum_hz",
    "mig_mode",
)
"""Identifying members. One name is sold with different memory, power and clocks, so all have to agree."""
_HOST_IDENTITY = ("cpu_model", "architecture", "cpu_count")


def resolve_hardware(inventory: NodeInventory, result: BenchmarkResultReport) -> MeasuredHardware | None:
    """Returns the hardware that a result was measured on; None if the inventory does not state it."""
    host = inventory.host
    if result.device == "cpu":
        return None if host.cpu_model is MISSING else _build_hardware(host.cpu_model, host, _HOST_IDENTITY)
    for accelerator in inventory.accelerators:
        if accelerator.index == result.accelerator_index:
            return _build_hardware(accelerator.name, accelerator, _ACCELERATOR_IDENTITY)
    return None


def _build_hardware(
    name: str, part: NodeAccelerator | NodeHost, members: tuple[str, ...]
) -> MeasuredHardware:
    identity = part.model_dump(mode="json", include=set(members))
    digest = hashlib.sha256(to_json([identity.get(member) for member in members]))
    return MeasuredHardware(name, digest.hexdigest())
