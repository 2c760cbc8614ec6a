"""Support of attention by cuDNN, as the library itself tells it without a GPU.

The library checks graphs against the properties of a device that it is told (ahead-of-time compilation), so
its wheels and a driver that answers nothing are enough. It says neither that a kernel is right nor how fast.
"""

import argparse
import ctypes
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from service.protocol.suites import shipped_suites
from service.protocol.work.arithmetic import AttentionWork
from service.worker.cuda import cudnn_graph

DRIVER_FUNCTIONS = (
    "cuCtxGetCurrent", "cuCtxGetLimit", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuDeviceGet",
    "cuDeviceGetCount",
    "cuGetErrorName", "cuGetErrorString", "cuGetProcAddress", "cuGetProcAddress_v2", "cuInit",
    "cuKernelGetAttribute", "cuKernelGetFunction", "cuKernelSetAttribute", "cuLaunchCooperativeKernel",
    "cuLaunchKernel", "cuLaunchKernelEx", "cuLibraryGetKernel", "cuLibraryLoadData", "cuLibraryLoadFromFile",
    "cuLibraryUnload", "cuLinkAddData", "cuLinkComplete", "cuLinkCreate", "cuLinkDestroy",
    "cuModuleGetFunction",
    "cuModuleLoadData", "cuModuleUnload", "cuOccupancyMaxPotentialClusterSize", "cuStreamGetCtx",
    "cuTensorMapEncodeIm2col", "cuTensorMapEncodeTiled",
)  # fmt: skip
"""Functions of the driver that cuDNN looks up. Each answers CUDA_ERROR_NO_DEVICE."""
DRIVER_VERSION = "int cuDriverGetVersion(int* version) { *version = 13000; return 0; }"


class Described(NamedTuple):
    """A device as cuDNN is told of it."""

    name: str
    multiprocessors: int
    shared_bytes: int
    """Most shared memory of a block."""


DEVICES = {
    "8.0": Described("A100", 108, 166_912),
    "8.6": Described("A10", 72, 101_376),
    "8.9": Described("L40S", 142, 101_376),
    "9.0": Described("H100", 132, 232_448),
    "10.0": Described("B200", 148, 232_448),
    "10.3": Described("B300", 148, 232_448),
    "12.0": Described("RTX PRO 6000", 188, 101_376),
}


def describe(capability: str) -> str:
    """Returns the properties of a device as cuDNN reads them; what heuristics do not need is that of H100."""
    major, minor = map(int, capability.split("."))
    name, multiprocessors, shared = DEVICES[capability]
    return json.dumps({
        "deviceName": name, "deviceVer": 100 * major + 10 * minor, "cudaDeviceId": 0, "driverVer": 13_000,
        "multiProcessorCount": multiprocessors, "smCountOrigin": 0, "totalGlobalMem": 80 * 2**30,
        "warpSize": 32,
        "maxGridSize": [2**31 - 1, 65_535, 65_535], "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": 65_536, "maxRegistersPerSM": 65_536, "maxSharedMemoryPerBlock": 49_152,
        "maxSharedMemoryPerBlockOptin": shared, "reservedSharedMemoryPerBlock": 1024,
        "oversizedSharedMemoryPerBlock": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
        "maxThreadsPerSM": 2048, "smClockRateKHz": 1_980_000, "memClockRateKHz": 2_619_000,
        "memoryBusWidth": 5120, "l2CacheSize": 50 * 2**20, "pciDeviceId": 0, "isTccDriver": 0,
        "supportCoopLaunch": 1,
    })  # fmt: skip


def load_silent_driver(folder: Path) -> None:
    """Loads a driver without devices under the name by which the library looks for one."""
    source, built = folder / "driver.c", folder / "libcuda.so.1"
    bodies = [f"int {name}(void) {{ return 100; }}" for name in DRIVER_FUNCTIONS]
    source.write_text("\n".join([*bodies, DRIVER_VERSION]))
    compiler, name = shutil.which("gcc") or "gcc", f"-Wl,-soname,{built.name}"
    subprocess.run([compiler, "-shared", "-fPIC", name, "-o", built, source], check=True)
    ctypes.CDLL(str(built), mode=ctypes.RTLD_GLOBAL)


def find_refusal(cudnn: Any, work: AttentionWork, capability: str) -> str | None:  # noqa: ANN401
    """Returns why the library does not take the work on a device, None if it does."""
    options = {
        "device_property": cudnn.create_device_properties(describe(capability)),
        "sm_version": int(capability.replace(".", "")),
    }
    try:
        if work.phase == "backward":
            forward = cudnn_graph.build_forward_graph(cudnn, work, gives_stats=True, **options)
            cudnn_graph.finalize_graph(cudnn, forward.graph)
            asked = cudnn_graph.build_backward_graph(cudnn, work, **options)
        else:
            asked = cudnn_graph.build_forward_graph(cudnn, work, gives_stats=False, **options)
        cudnn_graph.finalize_graph(cudnn, asked.graph)
    except (cudnn.cudnnGraphNotSupportedError, RuntimeError) as error:
        return str(error).strip().splitlines()[0]
    return None


def main() -> int:
    """Prints a table of benchmarks and compute capabilities; ends with 1 if nothing takes a benchmark."""
    parser = argparse.ArgumentParser(prog="cudnn-support", description=__doc__.splitlines()[0])
    parser.parse_args()
    # The library writes what it misses of a driver to this stream.
    sys.stderr.flush()
    quiet = os.open(os.devnull, os.O_WRONLY)
    said = os.dup(2)
    os.dup2(quiet, 2)
    try:
        with tempfile.TemporaryDirectory() as folder:
            load_silent_driver(Path(folder))
            cudnn = importlib.import_module("cudnn")
            rows = {
                one.name: [find_refusal(cudnn, one.work, each) for each in DEVICES]
                for one in shipped_suites()["gpu-deep"].benchmarks
                if one.work.kind == "attention" and one.work.back_end == "cudnn"
            }
    finally:
        os.dup2(said, 2)
    print(f"cuDNN {cudnn.backend_version_string()}, front end {cudnn.__version__}")
    print(" " * 32, *(f"{each:>5}" for each in DEVICES))
    for name, refusals in rows.items():
        print(f"{name:32}", *("  yes" if refusal is None else "   no" for refusal in refusals))
    for name, refusals in rows.items():
        for capability, refusal in zip(DEVICES, refusals, strict=True):
            if refusal:
                print(f"{name} on {capability}: {refusal}")
    return int(any(all(refusals) for refusals in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
