import threading
import time

import pytest
from pydantic import MISSING

from service.worker import host


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The files of a host with two processors, to be filled in."""
    monkeypatch.setattr(host, "usable_processors", lambda: (0, 1))
    return tmp_path


def put(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def cache(root, processor, index, *, level, size, shared, kind="Unified"):
    folder = f"sys/devices/system/cpu/cpu{processor}/cache/index{index}/"
    put(root, **{folder + "level": str(level), folder + "size": size, folder + "shared_cpu_list": shared})
    put(root, **{folder + "type": kind})


def test_a_cache_that_processors_share_counts_once(root):
    for processor in (0, 1):
        cache(root, processor, 0, level=1, size="32K", shared=str(processor), kind="Data")
        cache(root, processor, 3, level=3, size="24M", shared="0-1")
    assert host.last_level_cache_bytes(root) == 24 * 2**20


def test_caches_of_separate_processors_add_up(root):
    for processor in (0, 1):
        cache(root, processor, 2, level=2, size="512K", shared=str(processor))
        cache(root, processor, 0, level=1, size="32K", shared=str(processor), kind="Data")
    assert host.last_level_cache_bytes(root) == 2**20


def test_a_cache_of_instructions_is_none_for_data(root):
    cache(root, 0, 0, level=1, size="32K", shared="0", kind="Data")
    cache(root, 0, 1, level=1, size="64K", shared="0", kind="Instruction")
    assert host.last_level_cache_bytes(root) == 32 * 2**10


def test_what_the_system_does_not_say_is_not_known(root):
    assert host.last_level_cache_bytes(root) is None
    assert host.available_memory_bytes(root) is None
    assert host.file_system(root, root) is None


def test_memory_is_what_the_host_and_the_container_leave(root):
    put(root, proc__meminfo="MemTotal:  16000 kB\nMemAvailable:   8000 kB")
    assert host.available_memory_bytes(root) == 8000 * 1024
    put(root, **{"sys/fs/cgroup/memory.max": "max", "sys/fs/cgroup/memory.current": "4096"})
    assert host.available_memory_bytes(root) == 8000 * 1024
    put(root, **{"sys/fs/cgroup/memory.max": "1000000"})
    assert host.available_memory_bytes(root) == 1000000 - 4096
    (root / "sys/fs/cgroup/memory.max").unlink()
    version_1 = "sys/fs/cgroup/memory/memory."
    put(root, **{version_1 + "limit_in_bytes": "500", version_1 + "usage_in_bytes": "600"})
    assert host.available_memory_bytes(root) == 0


def test_the_file_system_is_that_of_the_nearest_mount(root):
    lines = [
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw",
        "23 22 0:5 / /mnt/da rw - tmpfs tmpfs rw",
        "24 22 0:6 / /mnt/data rw - xfs /dev/vdb rw",
    ]
    put(root, proc__self__mountinfo="\n".join(lines))
    assert host.file_system(host.Path("/mnt/da/y"), root) == "tmpfs"
    assert host.file_system(host.Path("/mnt/data/x"), root) == "xfs"
    assert host.file_system(host.Path("/srv"), root) == "ext4"


def test_clock_and_temperature_are_spread_over_the_window(root):
    for processor, kilohertz in ((0, "2000000"), (1, "3000000")):
        put(root, **{host.CLOCK.format(processor): kilohertz})
    zone = "sys/class/thermal/thermal_zone0/"
    put(root, **{zone + "type": "x86_pkg_temp", zone + "temp": "51000"})
    put(
        root,
        **{"sys/class/thermal/thermal_zone1/type": "iwlwifi", "sys/class/thermal/thermal_zone1/temp": "9"},
    )
    with host.watch(root=root, period_seconds=60) as window:
        put(root, **{host.CLOCK.format(1): "1000000", zone + "temp": "61000"})
    seen = window.telemetry
    assert (seen.cpu_clock_hz.minimum, seen.cpu_clock_hz.median, seen.cpu_clock_hz.maximum) == (1e9, 2e9, 3e9)
    assert (seen.temperature_celsius.minimum, seen.temperature_celsius.maximum) == (51.0, 61.0)
    assert (seen.sample_count, seen.sample_period_seconds) == (2, 60)
    assert window.gaps == []


def test_sensors_are_read_meanwhile(root, monkeypatch):
    put(root, **{host.CLOCK.format(0): "1000000"})
    seen, number = threading.Event(), host._read_number

    def noticed(path):
        found = number(path)
        if found == 5_000_000:
            seen.set()
        return found

    monkeypatch.setattr(host, "_read_number", noticed)
    with host.watch(root=root, period_seconds=0.001) as window:
        put(root, **{host.CLOCK.format(0): "5000000"})
        assert seen.wait(30)
        put(root, **{host.CLOCK.format(0): "1000000"})
    assert window.telemetry.cpu_clock_hz.maximum == 5e9


def test_a_nominal_clock_is_no_reading(root):
    """A virtual machine repeats the clock of the name plate; only the aperfmperf counters make it one."""
    plate = "cpu MHz\t\t: 2600.000\nflags\t\t: fpu {}\n"
    put(root, proc__cpuinfo=plate.format("tsc"))
    with host.watch(root=root) as window:
        pass
    assert window.telemetry.cpu_clock_hz is MISSING
    assert [gap.pointer.rsplit("/", 1)[1] for gap in window.gaps] == ["cpu_clock_hz", "temperature_celsius"]
    put(root, proc__cpuinfo=plate.format("aperfmperf"))
    with host.watch(root=root) as window:
        pass
    assert window.telemetry.cpu_clock_hz.median == 2.6e9


def test_a_sensor_that_fails_is_a_gap_and_not_zero(root):
    chip = "sys/class/hwmon/hwmon2/"
    put(root, **{chip + "name": "coretemp", chip + "temp1_input": ""})
    with host.watch(root=root) as window:
        pass
    assert window.telemetry.temperature_celsius is MISSING
    assert "/measurement/telemetry/temperature_celsius" in [gap.pointer for gap in window.gaps]


def test_the_load_is_that_of_the_host(root, monkeypatch):
    monkeypatch.setattr(host.os, "getloadavg", lambda: (1.5, 9.0, 9.0))
    with host.watch(root=root) as window:
        time.sleep(0.01)
    assert window.telemetry.load_average == 1.5
    assert window.telemetry.window_seconds >= 0.01
    assert window.telemetry.sample_count == 0
