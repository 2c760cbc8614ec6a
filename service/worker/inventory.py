"""What a node is made of: /proc and /sys for the host, NVML and CUDA for its accelerators.

An accelerator is told by its PCI ids, its memory and its power limit, not by its name: parts of one name
differ. Its own id leaves the node as a digest only.
"""

import hashlib
import importlib
import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import MISSING

from service.protocol.nodes import Accelerator, DeviceKind, Gap, Host, Inventory, Software
from service.worker import nvml
from service.worker.benchmark import Unsupported

HZ_PER_MHZ = 1_000_000
MOST_NVLINKS = 36
UNLIMITED_BYTES = 2**60
"""What cgroup v1 says where there is no limit lies above it."""

DISTRIBUTIONS = {
    "numpy": "numpy",
    "cuda-bindings": "cuda-bindings",
    "nvidia-cuda-nvrtc": "nvrtc",
    "nvidia-cublas": "cublas",
    "nvidia-cufft": "cufft",
    "nvidia-ml-py": "nvidia-ml-py",
    "nvmath-python": "nvmath-python",
}
COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}


def take_inventory(device: DeviceKind, *, root: Path = Path("/")) -> Inventory:
    """Everything about this node that a measurement depends on; what is not known is a gap.

    Raises :class:`Unsupported` on a node for CUDA without an NVIDIA driver.
    """
    gaps: list[Gap] = []
    accelerators: list[Accelerator] = []
    software = [Software(name="python", version=platform.python_version())]
    for distribution, name in DISTRIBUTIONS.items():
        try:
            software.append(Software(name=name, version=metadata.version(distribution)))
        except metadata.PackageNotFoundError:
            continue
    if device == "cuda":
        with nvml.opened() as bindings:
            software += _driver(bindings)
            for index in range(bindings.nvmlDeviceGetCount()):
                answers = nvml.Answers(bindings, f"/accelerators/{index}")
                accelerators.append(_accelerator(answers, index))
                gaps += answers.gaps
    return Inventory(
        device=device, host=_host(root, gaps), accelerators=accelerators, software=software, gaps=gaps
    )


def _driver(bindings: Any) -> list[Software]:  # noqa: ANN401
    cuda = int(bindings.nvmlSystemGetCudaDriverVersion())
    return [
        Software(name="driver", version=nvml.text(bindings.nvmlSystemGetDriverVersion())),
        Software(name="cuda_driver_api", version=f"{cuda // 1000}.{cuda % 1000 // 10}"),
    ]


def _accelerator(answers: nvml.Answers, index: int) -> Accelerator:
    n, handle = answers.nvml, nvml.device(answers.nvml, index)

    def told(member: str, name: str, *arguments: Any) -> Any:  # noqa: ANN401
        return answers.ask(member, lambda: getattr(n, name)(handle, *arguments))

    def watts(member: str, name: str) -> "float | MISSING":
        milliwatts: int | MISSING = told(member, name)
        return MISSING if milliwatts is MISSING else milliwatts / 1e3

    def clock(member: str, name: str, domain: str) -> "int | MISSING":
        megahertz = _whole(told(member, name, getattr(n, domain)))
        return MISSING if megahertz is MISSING else megahertz * HZ_PER_MHZ

    pci = told("pci_bus_id", "nvmlDeviceGetPciInfo")
    memory = told("memory_bytes", "nvmlDeviceGetMemoryInfo")
    limits = told("power_limit_minimum_watts", "nvmlDeviceGetPowerManagementLimitConstraints")
    capability = told("compute_capability", "nvmlDeviceGetCudaComputeCapability")
    mode = told("compute_mode", "nvmlDeviceGetComputeMode")
    mig = told("mig_mode", "nvmlDeviceGetMigMode")
    ecc = told("ecc_mode", "nvmlDeviceGetCurrentEccMode")
    persistence = told("persistence_mode", "nvmlDeviceGetPersistenceMode")
    by_cuda = _by_cuda(answers, index)
    return Accelerator(
        index=index,
        uuid_sha256=hashlib.sha256(nvml.text(n.nvmlDeviceGetUUID(handle)).encode()).hexdigest(),
        name=nvml.text(n.nvmlDeviceGetName(handle)),
        pci_bus_id=MISSING if pci is MISSING else nvml.text(pci.busId),
        pci_device_id=MISSING if pci is MISSING else f"{pci.pciDeviceId:08x}",
        pci_subsystem_id=MISSING if pci is MISSING else f"{pci.pciSubSystemId:08x}",
        vbios_version=_text(told("vbios_version", "nvmlDeviceGetVbiosVersion")),
        compute_capability=MISSING if capability is MISSING else "{}.{}".format(*capability),
        multiprocessor_count=by_cuda.get("multiprocessor_count", MISSING),
        memory_bytes=MISSING if memory is MISSING else int(memory.total),
        l2_bytes=by_cuda.get("l2_bytes", MISSING),
        memory_bus_bits=_whole(told("memory_bus_bits", "nvmlDeviceGetMemoryBusWidth")),
        power_limit_watts=watts("power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit"),
        power_limit_default_watts=watts(
            "power_limit_default_watts", "nvmlDeviceGetPowerManagementDefaultLimit"
        ),
        power_limit_minimum_watts=MISSING if limits is MISSING else limits[0] / 1e3,
        power_limit_maximum_watts=MISSING if limits is MISSING else limits[1] / 1e3,
        sm_clock_maximum_hz=clock("sm_clock_maximum_hz", "nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
        memory_clock_maximum_hz=clock(
            "memory_clock_maximum_hz", "nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"
        ),
        sm_clock_application_hz=clock(
            "sm_clock_application_hz", "nvmlDeviceGetApplicationsClock", "NVML_CLOCK_SM"
        ),
        memory_clock_application_hz=clock(
            "memory_clock_application_hz", "nvmlDeviceGetApplicationsClock", "NVML_CLOCK_MEM"
        ),
        persistence_mode=MISSING if persistence is MISSING else bool(persistence),
        compute_mode=MISSING if mode is MISSING else COMPUTE_MODES.get(mode, str(mode)),
        mig_mode=MISSING if mig is MISSING else bool(mig[0]),
        ecc_mode=MISSING if ecc is MISSING else bool(ecc),
        pcie_generation_maximum=_whole(told("pcie_generation_maximum", "nvmlDeviceGetMaxPcieLinkGeneration")),
        pcie_width_maximum=_whole(told("pcie_width_maximum", "nvmlDeviceGetMaxPcieLinkWidth")),
        nvlink_count=_nvlinks(answers, handle),
        numa_node=by_cuda.get("numa_node", MISSING),
    )


def _by_cuda(answers: nvml.Answers, index: int) -> dict[str, int]:
    """What NVML does not know. The CUDA driver makes no context for it."""
    members = ("multiprocessor_count", "l2_bytes", "numa_node")
    try:
        device = importlib.import_module("service.worker.cuda.device")
        found: dict[str, int] = device.attributes(index)
    except (Unsupported, RuntimeError) as error:
        for member in members:
            answers.gap(member, "no-cuda", str(error))
        return {}
    for member in members:
        if member not in found:
            answers.gap(member, "not-supported", "unknown to the CUDA driver")
    return found


def _nvlinks(answers: nvml.Answers, handle: Any) -> "int | MISSING":  # noqa: ANN401
    """Links that are up; a device without any refuses the question."""
    n = answers.nvml
    first = answers.ask("nvlink_count", lambda: n.nvmlDeviceGetNvLinkState(handle, 0))
    if first is MISSING:
        return MISSING
    up = int(bool(first))
    for link in range(1, MOST_NVLINKS):
        try:
            up += bool(n.nvmlDeviceGetNvLinkState(handle, link))
        except n.NVMLError:
            break
    return up


def _whole(value: Any) -> "int | MISSING":  # noqa: ANN401
    """A number that is never 0 where it is known."""
    return MISSING if value is MISSING else int(value) or MISSING


def _text(value: Any) -> "str | MISSING":  # noqa: ANN401
    return MISSING if value is MISSING else nvml.text(value)


def _host(root: Path, gaps: list[Gap]) -> Host:
    cpus, memory = _read(root, "proc/cpuinfo"), _read(root, "proc/meminfo")
    model = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", cpus, re.MULTILINE)
    total = re.search(r"^MemTotal:\s*(\d+) kB$", memory, re.MULTILINE)
    sockets = set(re.findall(r"^physical id\s*:\s*(\d+)$", cpus, re.MULTILINE))
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    for member, found in {
        "cpu_model": model,
        "memory_bytes": total,
        "socket_count": sockets,
        "numa_node_count": nodes,
    }.items():
        if not found:
            gaps.append(Gap(pointer=f"/host/{member}", code="not-in-kernel", detail=""))
    return Host(
        operating_system=_operating_system(root),
        kernel=platform.release(),
        architecture=platform.machine(),
        cpu_model=model[1].strip()[:500] if model else MISSING,
        cpu_count=len(os.sched_getaffinity(0)),
        socket_count=len(sockets) or MISSING,
        numa_node_count=len(nodes) or MISSING,
        memory_bytes=int(total[1]) * 1024 if total else MISSING,
        virtualization=_virtualization(root, cpus),
        cgroup_memory_limit_bytes=_memory_limit(root),
        cgroup_cpu_limit=_cpu_limit(root),
    )


def _operating_system(root: Path) -> str:
    named = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', _read(root, "etc/os-release"), re.MULTILINE)
    return named[1] if named else platform.system()


def _virtualization(root: Path, cpus: str) -> str:
    """What lies between the worker and the machine: a container first, then a hypervisor."""
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return "container"
    vendor = _read(root, "sys/class/dmi/id/sys_vendor").strip()
    if re.search(r"^flags\s*:.*\bhypervisor\b", cpus, re.MULTILINE):
        return f"virtual machine, {vendor}"[:500] if vendor else "virtual machine"
    return "none"


def _memory_limit(root: Path) -> "int | MISSING":
    for file in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _read(root, file).strip()
        if text.isdigit() and 0 < int(text) < UNLIMITED_BYTES:
            return int(text)
    return MISSING


def _cpu_limit(root: Path) -> "float | MISSING":
    """Processors' worth of time, by cgroup v2 or v1."""
    quota, _, period = _read(root, "sys/fs/cgroup/cpu.max").strip().partition(" ")
    if not quota:
        quota = _read(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us").strip()
        period = _read(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us").strip()
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else MISSING


def _read(root: Path, file: str) -> str:
    try:
        return (root / file).read_text(errors="replace")
    except OSError:
        return ""
