"""Inventory of a node: /proc and /sys for the host, NVML and CUDA for its accelerators.

An accelerator is identified by its PCI ids, its memory and its power limit, not by its name: parts of one
name differ. Its own id leaves the node only as a digest.
"""

import hashlib
import importlib
import os
import platform
import re
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pydantic import MISSING

from service.protocol.nodes import DeviceKind, NodeAccelerator, NodeGap, NodeHost, NodeInventory, NodeSoftware
from service.worker import nvml
from service.worker.benchmark import Unsupported

HZ_PER_MHZ = 1_000_000
MOST_NVLINKS = 36
UNLIMITED_BYTES = 2**60
"""Bound above which the limit that cgroup v1 reports means none."""

DISTRIBUTIONS = {
    "numpy": "numpy",
    "cuda-bindings": "cuda-bindings",
    "nvidia-cuda-nvrtc": "nvrtc",
    "nvidia-cublas": "cublas",
    "nvidia-cufft": "cufft",
    "nvidia-ml-py": "nvidia-ml-py",
    "nvmath-python": "nvmath-python",
}
CUDA_MEMBERS = ("multiprocessor_count", "l2_bytes", "numa_node")
CudaAnswer = dict[str, int] | str
"""Attributes that NVML does not know, or the reason that CUDA does not tell them."""
OF_WHOLE_DEVICE = ("power_", "memory_bus_bits", "nvlink_count")
COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}


def collect_inventory(device: DeviceKind, *, root: Path = Path("/")) -> NodeInventory:
    """Collects everything about this node that a measurement depends on; unknown members are gaps.

    Raises :class:`Unsupported` on a node for CUDA without an NVIDIA driver.
    """
    gaps: list[NodeGap] = []
    accelerators: list[NodeAccelerator] = []
    software = [NodeSoftware(name="python", version=platform.python_version())]
    for distribution, name in DISTRIBUTIONS.items():
        try:
            software.append(NodeSoftware(name=name, version=metadata.version(distribution)))
        except metadata.PackageNotFoundError:
            continue
    if device == "cuda":
        known = _read_all_cuda_attributes()
        with nvml.open_nvml() as bindings:
            software += _list_driver_software(bindings)
            for index, by_cuda in enumerate(known):
                unit = nvml.find_unit(bindings, index)
                withheld = OF_WHOLE_DEVICE if unit.is_slice else ()
                answers = nvml.NvmlAnswers(bindings, f"/accelerators/{index}", withheld=withheld)
                accelerators.append(_build_accelerator(answers, index, unit, by_cuda))
                gaps += answers.gaps
    return NodeInventory(
        device=device, host=_build_host(root, gaps), accelerators=accelerators, software=software, gaps=gaps
    )


def _list_driver_software(bindings: Any) -> list[NodeSoftware]:  # noqa: ANN401
    cuda = int(bindings.nvmlSystemGetCudaDriverVersion())
    return [
        NodeSoftware(name="driver", version=nvml.decode_text(bindings.nvmlSystemGetDriverVersion())),
        NodeSoftware(name="cuda_driver_api", version=f"{cuda // 1000}.{cuda % 1000 // 10}"),
    ]


def _build_accelerator(
    answers: nvml.NvmlAnswers, index: int, unit: nvml.DeviceUnit, asked: CudaAnswer
) -> NodeAccelerator:
    """Builds an accelerator; what a slice does not have of its own is that of the whole device, or a gap."""
    n, handle = answers.nvml, unit.whole

    def query_nvml(member: str, name: str, *arguments: Any) -> Any:  # noqa: ANN401
        return answers.query_member(member, lambda: getattr(n, name)(handle, *arguments))

    def read_watts(member: str, name: str) -> "float | MISSING":
        milliwatts: int | MISSING = query_nvml(member, name)
        return MISSING if milliwatts is MISSING else milliwatts / 1e3

    def read_clock_hz(member: str, name: str, domain: str) -> "int | MISSING":
        megahertz = _to_positive(query_nvml(member, name, getattr(n, domain)))
        return MISSING if megahertz is MISSING else megahertz * HZ_PER_MHZ

    pci = query_nvml("pci_bus_id", "nvmlDeviceGetPciInfo")
    memory = answers.query_member("memory_bytes", lambda: n.nvmlDeviceGetMemoryInfo(unit.handle))
    limits = query_nvml("power_limit_minimum_watts", "nvmlDeviceGetPowerManagementLimitConstraints")
    capability = query_nvml("compute_capability", "nvmlDeviceGetCudaComputeCapability")
    mode = query_nvml("compute_mode", "nvmlDeviceGetComputeMode")
    mig = query_nvml("mig_mode", "nvmlDeviceGetMigMode")
    ecc = query_nvml("ecc_mode", "nvmlDeviceGetCurrentEccMode")
    persistence = query_nvml("persistence_mode", "nvmlDeviceGetPersistenceMode")
    by_cuda = _record_cuda_gaps(answers, asked)
    profile = _read_profile(n, unit) if unit.is_slice else None
    return NodeAccelerator(
        index=index,
        uuid_sha256=hashlib.sha256(nvml.decode_text(n.nvmlDeviceGetUUID(unit.handle)).encode()).hexdigest(),
        name=nvml.decode_text(n.nvmlDeviceGetName(handle)) + (f" MIG {profile}" if profile else ""),
        pci_bus_id=MISSING if pci is MISSING else nvml.decode_text(pci.busId),
        pci_device_id=MISSING if pci is MISSING else f"{pci.pciDeviceId:08x}",
        pci_subsystem_id=MISSING if pci is MISSING else f"{pci.pciSubSystemId:08x}",
        vbios_version=_to_text(query_nvml("vbios_version", "nvmlDeviceGetVbiosVersion")),
        compute_capability=MISSING if capability is MISSING else "{}.{}".format(*capability),
        multiprocessor_count=by_cuda.get("multiprocessor_count", MISSING),
        memory_bytes=MISSING if memory is MISSING else int(memory.total),
        l2_bytes=by_cuda.get("l2_bytes", MISSING),
        memory_bus_bits=_to_positive(query_nvml("memory_bus_bits", "nvmlDeviceGetMemoryBusWidth")),
        power_limit_watts=read_watts("power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit"),
        power_limit_default_watts=read_watts(
            "power_limit_default_watts", "nvmlDeviceGetPowerManagementDefaultLimit"
        ),
        power_limit_minimum_watts=MISSING if limits is MISSING else limits[0] / 1e3,
        power_limit_maximum_watts=MISSING if limits is MISSING else limits[1] / 1e3,
        sm_clock_maximum_hz=read_clock_hz(
            "sm_clock_maximum_hz", "nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"
        ),
        memory_clock_maximum_hz=read_clock_hz(
            "memory_clock_maximum_hz", "nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"
        ),
        sm_clock_application_hz=read_clock_hz(
            "sm_clock_application_hz", "nvmlDeviceGetApplicationsClock", "NVML_CLOCK_SM"
        ),
        memory_clock_application_hz=read_clock_hz(
            "memory_clock_application_hz", "nvmlDeviceGetApplicationsClock", "NVML_CLOCK_MEM"
        ),
        persistence_mode=MISSING if persistence is MISSING else bool(persistence),
        compute_mode=MISSING if mode is MISSING else COMPUTE_MODES.get(mode, str(mode)),
        mig_mode=MISSING if mig is MISSING else bool(mig[0]),
        mig_profile=profile or MISSING,
        ecc_mode=MISSING if ecc is MISSING else bool(ecc),
        pcie_generation_maximum=_to_positive(
            query_nvml("pcie_generation_maximum", "nvmlDeviceGetMaxPcieLinkGeneration")
        ),
        pcie_width_maximum=_to_positive(query_nvml("pcie_width_maximum", "nvmlDeviceGetMaxPcieLinkWidth")),
        nvlink_count=_count_nvlinks(answers, handle),
        numa_node=by_cuda.get("numa_node", MISSING),
    )


def _read_all_cuda_attributes() -> list[CudaAnswer]:
    """Returns the attributes of each accelerator that NVML does not know.

    A process of CUDA sees one slice alone, so that a host with slices takes a process for each.
    """
    with nvml.open_nvml() as bindings:
        count, is_apart = nvml.count_units(bindings), nvml.has_slices(bindings)
    if not is_apart:
        return [_read_cuda_attributes(index) for index in range(count)]
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        return pool.map(_read_cuda_attributes, range(count), chunksize=1)


def _read_cuda_attributes(index: int) -> CudaAnswer:
    """Reads attributes without creating a CUDA context; returns the reason if there are none."""
    try:
        device = importlib.import_module("service.worker.cuda.device")
        found: dict[str, int] = device.attributes(index)
    except (Unsupported, RuntimeError) as error:
        return str(error)
    return found


def _record_cuda_gaps(answers: nvml.NvmlAnswers, asked: CudaAnswer) -> dict[str, int]:
    """Returns what CUDA said, and records a gap for each member that it did not know."""
    for member in CUDA_MEMBERS:
        if isinstance(asked, str):
            answers.record_gap(member, "no-cuda", asked)
        elif member not in asked:
            answers.record_gap(member, "not-supported", "unknown to the CUDA driver")
    return {} if isinstance(asked, str) else asked


def _read_profile(bindings: Any, unit: nvml.DeviceUnit) -> str:  # noqa: ANN401
    """Returns the profile of a slice, such as 1g.10gb, from its name or else from its parts."""
    name = nvml.decode_text(bindings.nvmlDeviceGetName(unit.handle))
    _, _, named = name.partition("MIG ")
    if named:
        return named.strip()
    parts = bindings.nvmlDeviceGetAttributes_v2(unit.handle)
    computes, slices = parts.computeInstanceSliceCount, parts.gpuInstanceSliceCount
    share = "" if computes == slices else f"{computes}c."
    return f"{share}{slices}g.{round(parts.memorySizeMB / 1024)}gb"


def _count_nvlinks(answers: nvml.NvmlAnswers, handle: Any) -> "int | MISSING":  # noqa: ANN401
    """Counts the links that are up; a device without any refuses the query."""
    n = answers.nvml
    first = answers.query_member("nvlink_count", lambda: n.nvmlDeviceGetNvLinkState(handle, 0))
    if first is MISSING:
        return MISSING
    up = int(bool(first))
    for link in range(1, MOST_NVLINKS):
        try:
            up += bool(n.nvmlDeviceGetNvLinkState(handle, link))
        except n.NVMLError:
            break
    return up


def _to_positive(value: Any) -> "int | MISSING":  # noqa: ANN401
    """Returns a number that is never 0 if it is known."""
    return MISSING if value is MISSING else int(value) or MISSING


def _to_text(value: Any) -> "str | MISSING":  # noqa: ANN401
    return MISSING if value is MISSING else nvml.decode_text(value)


def _build_host(root: Path, gaps: list[NodeGap]) -> NodeHost:
    cpus, memory = _read_file(root, "proc/cpuinfo"), _read_file(root, "proc/meminfo")
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
            gaps.append(NodeGap(pointer=f"/host/{member}", code="not-in-kernel", detail=""))
    return NodeHost(
        operating_system=_read_operating_system(root),
        kernel=platform.release(),
        architecture=platform.machine(),
        cpu_model=model[1].strip()[:500] if model else MISSING,
        cpu_count=len(os.sched_getaffinity(0)),
        socket_count=len(sockets) or MISSING,
        numa_node_count=len(nodes) or MISSING,
        memory_bytes=int(total[1]) * 1024 if total else MISSING,
        virtualization=_detect_virtualization(root, cpus),
        cgroup_memory_limit_bytes=_read_memory_limit(root),
        cgroup_cpu_limit=_read_cpu_limit(root),
    )


def _read_operating_system(root: Path) -> str:
    named = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', _read_file(root, "etc/os-release"), re.MULTILINE)
    return named[1] if named else platform.system()


def _detect_virtualization(root: Path, cpus: str) -> str:
    """Returns the layer between the worker and the machine: a container first, then a hypervisor."""
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return "container"
    vendor = _read_file(root, "sys/class/dmi/id/sys_vendor").strip()
    if re.search(r"^flags\s*:.*\bhypervisor\b", cpus, re.MULTILINE):
        return f"virtual machine, {vendor}"[:500] if vendor else "virtual machine"
    return "none"


def _read_memory_limit(root: Path) -> "int | MISSING":
    for file in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _read_file(root, file).strip()
        if text.isdigit() and 0 < int(text) < UNLIMITED_BYTES:
            return int(text)
    return MISSING


def _read_cpu_limit(root: Path) -> "float | MISSING":
    """Returns the limit in processors, by cgroup v2 or v1."""
    quota, _, period = _read_file(root, "sys/fs/cgroup/cpu.max").strip().partition(" ")
    if not quota:
        quota = _read_file(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us").strip()
        period = _read_file(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us").strip()
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else MISSING


def _read_file(root: Path, file: str) -> str:
    try:
        return (root / file).read_text(errors="replace")
    except OSError:
        return ""
