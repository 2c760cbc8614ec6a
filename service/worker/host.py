"""Properties of the host: processors, caches and memory, and its state during a measurement."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from pydantic import MISSING

from service.protocol.nodes import NodeGap
from service.protocol.results import DeviceTelemetry, ReadingSpread

ROOT = Path("/")
CLOCK = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
CPU_ZONES = ("x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc_thermal")
CPU_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
PERIOD_SECONDS = 0.5
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def usable_processors() -> tuple[int, ...]:
    """Returns the numbers of the logical processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def last_level_cache_bytes(root: Path = ROOT) -> int | None:
    """Returns the total size of the last-level caches of the usable processors; None if it is unknown.

    A virtual machine may report the cache of the whole host, of which it gets only a part.
    """
    found: dict[tuple[int, str], int] = {}
    for processor in usable_processors():
        for cache in (root / f"sys/devices/system/cpu/cpu{processor}/cache").glob("index*"):
            size, level = _read_text(cache / "size"), _read_text(cache / "level")
            if size and level and _read_text(cache / "type") != "Instruction":
                shared = _read_text(cache / "shared_cpu_list") or str(processor)
                found[int(level), shared] = int(size[:-1]) * _UNITS[size[-1]]
    last = max((level for level, _ in found), default=0)
    return sum(size for (level, _), size in found.items() if level == last) or None


def available_memory_bytes(root: Path = ROOT) -> int | None:
    """Returns the memory available without swapping, within the container's limit; None if unknown."""
    lines = (_read_text(root / "proc/meminfo") or "").splitlines()
    rooms = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    for limit, used in (("memory.max", "memory.current"), ("limit_in_bytes", "usage_in_bytes")):
        folder = root / "sys/fs/cgroup"
        prefix = "" if limit == "memory.max" else "memory/memory."
        most, taken = _read_number(folder / (prefix + limit)), _read_number(folder / (prefix + used))
        if most is not None and taken is not None:
            rooms.append(max(most - taken, 0))
    return min(rooms, default=None)


def file_system(path: Path, root: Path = ROOT) -> str | None:
    """Returns the kind of the file system under a path, such as ext4; None if it is unknown."""
    mounts = {}
    for line in (_read_text(root / "proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        mounts[before.split()[4]] = after.split()[0]
    resolved = path.resolve()
    return next((mounts[str(at)] for at in (resolved, *resolved.parents) if str(at) in mounts), None)


class ProcessorWindow:
    """Readings of the processors between entering and leaving :func:`watch`."""

    telemetry: DeviceTelemetry
    gaps: list[NodeGap]


@dataclass
class _ProcessorSensors:
    """Files of clock and temperature, and their readings."""

    root: Path
    clocks: list[float] = field(default_factory=list)
    temperatures: list[float] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        at = self.root
        self.clock_files = [file for cpu in usable_processors() if (file := at / CLOCK.format(cpu)).exists()]
        # Without the aperfmperf counters this file repeats the nominal clock, whatever the processor does.
        info = at / "proc/cpuinfo"
        self.info = info if not self.clock_files and " aperfmperf" in (_read_text(info) or "") else None
        zones = (at / "sys/class/thermal").glob("thermal_zone*/type")
        chips = (at / "sys/class/hwmon").glob("hwmon*/name")
        self.temperature_files = [
            zone.with_name("temp") for zone in zones if _read_text(zone) in CPU_ZONES
        ] or [
            file
            for chip in chips
            if _read_text(chip) in CPU_CHIPS
            for file in chip.parent.glob("temp*_input")
        ]

    @property
    def has_sources(self) -> bool:
        return bool(self.clock_files or self.info or self.temperature_files)

    def read(self) -> None:
        self.count += 1
        kilohertz = [_read_number(file) for file in self.clock_files]
        self.clocks += [reading * 1e3 for reading in kilohertz if reading]
        for line in (_read_text(self.info) or "").splitlines() if self.info else ():
            if line.startswith("cpu MHz"):
                self.clocks.append(float(line.split(":")[1]) * 1e6)
        thousandths = [_read_number(file) for file in self.temperature_files]
        self.temperatures += [reading / 1e3 for reading in thousandths if reading is not None]


@contextmanager
def watch(
    index: int | None = None, *, root: Path = ROOT, period_seconds: float = PERIOD_SECONDS
) -> Iterator[ProcessorWindow]:
    """Watches the processors: clock in Hz, temperature in degrees Celsius, load; ``index`` is ignored.

    They are read at both ends of the block and every ``period_seconds`` in it, by a thread that is only
    started if there is something to read. Afterwards the window has ``telemetry``, and ``gaps`` for
    unreported values.
    """
    del index
    window, sensors, over = ProcessorWindow(), _ProcessorSensors(root), threading.Event()

    def read_repeatedly() -> None:
        while not over.wait(period_seconds):
            sensors.read()

    thread = (
        threading.Thread(target=read_repeatedly, name="telemetry", daemon=True)
        if sensors.has_sources
        else None
    )
    sensors.read()
    start = time.perf_counter()
    if thread:
        thread.start()
    try:
        yield window
    finally:
        over.set()
        if thread:
            thread.join()
        seconds = time.perf_counter() - start
        sensors.read()
        window.telemetry, window.gaps = (
            _build_telemetry(sensors, seconds, period_seconds),
            _list_gaps(sensors),
        )


def _build_telemetry(sensors: _ProcessorSensors, seconds: float, period_seconds: float) -> DeviceTelemetry:
    return DeviceTelemetry(
        window_seconds=seconds,
        sample_period_seconds=period_seconds if sensors.has_sources else MISSING,
        sample_count=sensors.count if sensors.has_sources else 0,
        cpu_clock_hz=_build_spread(sensors.clocks),
        temperature_celsius=_build_spread(sensors.temperatures),
        load_average=os.getloadavg()[0],
    )


def _list_gaps(sensors: _ProcessorSensors) -> list[NodeGap]:
    missing = {"cpu_clock_hz": sensors.clocks, "temperature_celsius": sensors.temperatures}
    return [
        NodeGap(
            pointer=f"/measurement/telemetry/{name}", code="not-reported", detail="the system does not say"
        )
        for name, readings in missing.items()
        if not readings
    ]


def _build_spread(readings: list[float]) -> ReadingSpread | MISSING:
    if not readings:
        return MISSING
    return ReadingSpread(minimum=min(readings), median=median(readings), maximum=max(readings))


def _read_text(path: Path) -> str | None:
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text("utf-8").strip() or None
    return None


def _read_number(path: Path) -> int | None:
    with suppress(ValueError):
        return int(_read_text(path) or "")
    return None
