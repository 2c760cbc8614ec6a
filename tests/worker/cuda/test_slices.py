"""Slices of a divided accelerator (MIG): devices of their own, in the inventory, for CUDA and in a record."""

import os
from types import SimpleNamespace

import pytest

from service.worker import nvml, telemetry
from service.worker.availability import list_device_processes
from service.worker.benchmark import Unsupported
from service.worker.cuda import PREPARE, device
from service.worker.inventory import collect_inventory
from tests.worker.cuda.fake_nvml import EachDevice, Slice, process
from tests.worker.cuda.test_cuda import SEED, asked
from tests.worker.cuda.test_inventory import answers, root  # noqa: F401

GIB = 2**30
POWER = {"load": "idle", "window_seconds": 10, "settle_seconds": 1}


@pytest.fixture
def divided(fake_nvml, driver, monkeypatch):
    """A host of two accelerators, of which the first is divided into two slices."""
    small = Slice("1g.18gb", nvmlDeviceGetMemoryInfo=SimpleNamespace(total=16 * GIB, used=0))
    large = Slice(
        "3g.71gb",
        nvmlDeviceGetName="NVIDIA H200",  # as drivers before R470 named them
        nvmlDeviceGetMemoryInfo=SimpleNamespace(total=70 * GIB, used=0),
        nvmlDeviceGetAttributes_v2=SimpleNamespace(
            gpuInstanceSliceCount=3, computeInstanceSliceCount=1, memorySizeMB=71_680
        ),
    )
    busses = [b"00000000:17:00.0", b"00000000:18:00.0"]
    fake_nvml.slices = {0: {1: small, 4: large}}
    fake_nvml.answers |= answers(
        nvmlDeviceGetCount=2,
        nvmlDeviceGetMigMode=EachDevice([[1, 1], [0, 0]]),
        nvmlDeviceGetUUID=EachDevice(["GPU-0", "GPU-1"]),
        nvmlDeviceGetPowerUsage=300_000,
        nvmlDeviceGetTotalEnergyConsumption=1,
        nvmlDeviceGetTemperature=44,
        nvmlDeviceGetPciInfo=EachDevice([
            SimpleNamespace(busId=bus, pciDeviceId=0x233510DE, pciSubSystemId=0x18BE10DE) for bus in busses
        ]),
    )  # fmt: skip
    driver.fact("devices", 2)
    # What a process of the worker sets for itself ends with the test.
    monkeypatch.setenv(device.VISIBLE, "")
    return small, large


@pytest.mark.usefixtures("divided")
def test_slices_take_the_place_of_their_accelerator(root):  # noqa: F811
    found = collect_inventory("cuda", root=root)
    assert [(one.index, one.name) for one in found.accelerators] == [
        (0, "NVIDIA H200 MIG 1g.18gb"),
        (1, "NVIDIA H200 MIG 1c.3g.70gb"),
        (2, "NVIDIA H200"),
    ]
    first, second, whole = (one.model_dump(mode="json") for one in found.accelerators)
    assert (first["mig_profile"], second["mig_profile"]) == ("1g.18gb", "1c.3g.70gb")
    assert "mig_profile" not in whole
    assert (first["memory_bytes"], second["memory_bytes"]) == (16 * GIB, 70 * GIB)
    assert first["mig_mode"] is True
    assert len({one["uuid_sha256"] for one in (first, second, whole)}) == 3
    # Each as CUDA shows it to a process that sees it alone.
    assert first["l2_bytes"] == second["l2_bytes"] == 2**20
    assert whole["power_limit_watts"] == 700.0
    gaps = {gap.pointer: gap.code for gap in found.gaps}
    for member in ("power_limit_watts", "power_limit_default_watts", "memory_bus_bits", "nvlink_count"):
        assert member not in first
        assert gaps[f"/accelerators/0/{member}"] == "of-whole-device"
    # Clocks are those of the whole device.
    assert first["sm_clock_maximum_hz"] == whole["sm_clock_maximum_hz"]


@pytest.mark.usefixtures("driver")
def test_cuda_sees_the_slice_alone(divided):
    with device.open_device(1) as found:
        assert os.environ[device.VISIBLE] == divided[1].uuid
        assert found.ordinal == 0


@pytest.mark.usefixtures("divided")
def test_another_slice_is_never_taken_for_it():
    real = device.load_driver()  # initialised too early, while no device was named
    with pytest.raises(Unsupported, match="slice 0 is hidden from CUDA, which sees another one"):
        device.find_device_number(real, 0)


@pytest.mark.usefixtures("driver", "divided")
def test_on_such_a_host_a_whole_device_is_shown_by_its_id_too():
    with device.open_device(2):
        assert os.environ[device.VISIBLE] == "GPU-1"


def test_a_divided_accelerator_without_a_slice_is_unsupported(divided, fake_nvml):
    fake_nvml.slices = {}
    with (
        pytest.raises(Unsupported, match=r"accelerator 0 is divided \(MIG\), and has no slice"),
        device.open_device(0),
    ):
        pass
    del divided


@pytest.mark.usefixtures("divided")
def test_power_is_that_of_the_whole_device_and_a_gap():
    with telemetry.watch(0) as window:
        pass
    assert window.telemetry.temperature_celsius.median == 44
    written = window.telemetry.model_dump(mode="json")
    assert not {"power_watts", "energy_joules", "energy_power_watts"} & set(written)
    gaps = {gap.pointer.rpartition("/")[2]: gap.code for gap in window.gaps}
    assert gaps["power_watts"] == gaps["energy_joules"] == "of-whole-device"
    power = PREPARE["power"](asked("power", metric="watts", **POWER), SEED, 0)
    with pytest.raises(Unsupported, match="its power is that of all slices"), power:
        pass


def test_processes_of_a_slice_are_its_own(divided, fake_nvml):
    small, large = divided
    small.answers["nvmlDeviceGetComputeRunningProcesses"] = [process()]
    large.answers["nvmlDeviceGetComputeRunningProcesses"] = [process(77)]
    assert list_device_processes() == {os.getpid(), 77}
    with telemetry.watch(0) as window:
        pass
    assert window.telemetry.other_processes == 0
    fake_nvml.answers["nvmlDeviceGetTemperature"] = lambda: 44
    assert not nvml.is_device_lost(0)
