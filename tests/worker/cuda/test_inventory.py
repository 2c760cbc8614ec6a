"""What a node says of itself."""

import hashlib
from types import SimpleNamespace

import pynvml
import pytest

from service.protocol.canonical import compute_digest
from service.worker.benchmark import Unsupported
from service.worker.inventory import collect_inventory

UUID = "GPU-5d1f2a3c-0000-1111-2222-333344445555"
CPUINFO = """processor\t: 0
model name\t: AMD EPYC 9654 96-Core Processor
physical id\t: 0
flags\t\t: fpu vme {extra}

processor\t: 1
model name\t: AMD EPYC 9654 96-Core Processor
physical id\t: 1
flags\t\t: fpu vme {extra}
"""


@pytest.fixture
def root(tmp_path):
    """The files of a machine with two sockets."""
    files = {
        "proc/cpuinfo": CPUINFO.format(extra=""),
        "proc/meminfo": "MemTotal:       1584973824 kB\nMemFree: 1 kB\n",
        "etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.2 LTS"\n',
        "sys/fs/cgroup/memory.max": "max\n",
        "sys/fs/cgroup/cpu.max": "max 100000\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for node in range(2):
        (tmp_path / f"sys/devices/system/node/node{node}").mkdir(parents=True)
    return tmp_path


def answers(**changed):
    return {
        "nvmlSystemGetDriverVersion": "580.95.05",
        "nvmlSystemGetCudaDriverVersion": 13000,
        "nvmlDeviceGetUUID": UUID,
        "nvmlDeviceGetName": b"NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=150_754_820_096, used=0),
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetMemoryBusWidth": 6144,
        "nvmlDeviceGetEnforcedPowerLimit": 700_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
        "nvmlDeviceGetPowerManagementLimitConstraints": [200_000, 700_000],
        "nvmlDeviceGetMaxClockInfo": {(pynvml.NVML_CLOCK_SM,): 1980, (pynvml.NVML_CLOCK_MEM,): 3201},
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetComputeMode": 0,
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetCurrentEccMode": 1,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetMaxPcieLinkWidth": 16,
        **changed,
    }


def test_a_processor_is_what_the_kernel_says(root):
    found = collect_inventory("cpu", root=root)
    assert found.accelerators == []
    host = found.host
    assert host.operating_system == "Ubuntu 24.04.2 LTS"
    assert host.cpu_model == "AMD EPYC 9654 96-Core Processor"
    assert (host.socket_count, host.numa_node_count) == (2, 2)
    assert host.memory_bytes == 1_584_973_824 * 1024
    assert host.virtualization == "none"
    written = host.model_dump(mode="json")
    assert "cgroup_memory_limit_bytes" not in written
    assert "cgroup_cpu_limit" not in written
    assert {"python", "numpy"} <= {part.name for part in found.software}
    assert found.gaps == []


def test_limits_and_hypervisors_are_seen(root):
    (root / "sys/fs/cgroup/memory.max").write_text("8589934592\n")
    (root / "sys/fs/cgroup/cpu.max").write_text("350000 100000\n")
    (root / "proc/cpuinfo").write_text(CPUINFO.format(extra="hypervisor"))
    host = collect_inventory("cpu", root=root).host
    assert (host.cgroup_memory_limit_bytes, host.cgroup_cpu_limit) == (8_589_934_592, 3.5)
    assert host.virtualization == "virtual machine"
    (root / ".dockerenv").touch()
    assert collect_inventory("cpu", root=root).host.virtualization == "container"


def test_what_the_kernel_does_not_say_is_a_gap(tmp_path):
    found = collect_inventory("cpu", root=tmp_path)
    assert {gap.pointer for gap in found.gaps} == {
        "/host/cpu_model", "/host/memory_bytes", "/host/socket_count", "/host/numa_node_count"
    }  # fmt: skip
    assert "memory_bytes" not in found.host.model_dump(mode="json")


def test_this_machine_has_an_inventory():
    found = collect_inventory("cpu")
    assert found.host.cpu_count >= 1
    assert found.host.memory_bytes > 2**28


def test_an_accelerator_is_told_by_its_numbers(root, fake_nvml, driver):
    fake_nvml.answers |= answers()
    found = collect_inventory("cuda", root=root)
    (accelerator,) = found.accelerators
    assert accelerator.name == "NVIDIA H200"
    assert (accelerator.pci_device_id, accelerator.pci_subsystem_id) == ("233510de", "18be10de")
    assert accelerator.memory_bytes == 150_754_820_096
    assert accelerator.compute_capability == "9.0"
    assert (accelerator.power_limit_watts, accelerator.power_limit_minimum_watts) == (700.0, 200.0)
    assert (accelerator.sm_clock_maximum_hz, accelerator.memory_clock_maximum_hz) == (
        1_980_000_000,
        3_201_000_000,
    )
    assert (accelerator.multiprocessor_count, accelerator.l2_bytes) == (2, 2**20)
    assert accelerator.mig_mode is False
    assert accelerator.ecc_mode is True
    assert accelerator.compute_mode == "default"
    assert {part.name: part.version for part in found.software}.items() >= {
        "driver": "580.95.05", "cuda_driver_api": "13.0"
    }.items()  # fmt: skip


def test_the_id_of_a_device_leaves_the_node_as_a_digest_only(root, fake_nvml, driver):
    fake_nvml.answers |= answers()
    found = collect_inventory("cuda", root=root)
    assert found.accelerators[0].uuid_sha256 == hashlib.sha256(UUID.encode()).hexdigest()
    assert UUID not in found.model_dump_json()


def test_what_the_device_does_not_report_is_absent_and_a_gap(root, fake_nvml, driver):
    fake_nvml.answers |= answers()
    found = collect_inventory("cuda", root=root)
    written = found.model_dump(mode="json")["accelerators"][0]
    for member in ("sm_clock_application_hz", "vbios_version", "nvlink_count", "numa_node"):
        assert member not in written
        (gap,) = [gap for gap in found.gaps if gap.pointer == f"/accelerators/0/{member}"]
        assert gap.code == "not-supported"


def test_links_that_are_up_are_counted(root, fake_nvml, driver):
    states = iter([1] * 17 + [0])
    fake_nvml.answers |= answers(nvmlDeviceGetNvLinkState=lambda: next(states, 0))
    assert collect_inventory("cuda", root=root).accelerators[0].nvlink_count == 17


def test_without_the_cuda_driver_the_rest_is_still_known(root, fake_nvml, driver):
    fake_nvml.answers |= answers()
    driver.fact("cuInit", 100)
    found = collect_inventory("cuda", root=root)
    assert "l2_bytes" not in found.accelerators[0].model_dump(mode="json")
    (gap,) = [gap for gap in found.gaps if gap.pointer == "/accelerators/0/l2_bytes"]
    assert gap.code == "no-cuda"


def test_the_same_node_has_the_same_digest(root, fake_nvml, driver):
    fake_nvml.answers |= answers()
    first = compute_digest(collect_inventory("cuda", root=root))
    assert compute_digest(collect_inventory("cuda", root=root)) == first
    fake_nvml.answers["nvmlDeviceGetEnforcedPowerLimit"] = 500_000
    assert compute_digest(collect_inventory("cuda", root=root)) != first


def test_a_node_for_cuda_without_a_driver_is_unsupported(root, fake_nvml, monkeypatch):
    def missing():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(fake_nvml, "nvmlInit", missing)
    with pytest.raises(Unsupported, match="NVML: NVML Shared Library Not Found"):
        collect_inventory("cuda", root=root)
