"""One accelerator: its primary context, its memory, its kernels and its clock."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from pydantic import MISSING

from service.protocol.nodes import NodeSoftware
from service.worker import nvml
from service.worker.benchmark import Unsupported
from service.worker.cuda import compiler
from service.worker.cuda.bindings import CudaError, check_status, list_versions, load_module

THREADS = 256
"""In a block; the kernels are compiled for as many."""
CACHE_SHARE = 20
"""Data are larger than the cache by this factor, or the cache is overwritten before each sample."""
LEAST_FLUSH_BYTES = 256 * 2**20
"""Long enough to write that what is timed next has been queued meanwhile."""

KernelLaunch = Callable[[], None]


class CudaDevice:
    """An accelerator through the CUDA driver. Addresses are whole numbers, as the driver gives them."""

    def __init__(self, driver: Any, number: Any, context: Any, stack: ExitStack) -> None:  # noqa: ANN401
        self.driver = driver
        self.context = context
        self._number = number
        self._stack = stack
        attribute = driver.CUdevice_attribute
        self.capability = (
            self._read_attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self._read_attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
        self.multiprocessors = self._read_attribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        self.shared_bytes = self._read_attribute(
            attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
        )
        self.l2_bytes = self._read_attribute(attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        self._stream = check_status(driver.cuStreamCreate(flags))
        stack.callback(driver.cuStreamDestroy, self._stream)
        self.stream = int(self._stream)
        self._events = [self.create_event(), self.create_event()]
        self._modules: dict[str, Any] = {}
        self._flush: KernelLaunch | None = None

    def _read_attribute(self, which: Any) -> int:  # noqa: ANN401
        return int(check_status(self.driver.cuDeviceGetAttribute(which, self._number)))

    def make_current(self) -> None:
        """Make the context current in this thread too."""
        check_status(self.driver.cuCtxSetCurrent(self.context))

    @contextmanager
    def scope_allocations(self) -> Iterator[None]:
        """Frees what is allocated inside when it is left; no kernel may be loaded inside."""
        outer, self._stack = self._stack, ExitStack()
        with self._stack:
            try:
                yield
            finally:
                self._stack = outer

    @property
    def pci_bus_id(self) -> str:
        """Domain, bus and device, such as 0000:17:00.0."""
        return (
            nvml.decode_text(check_status(self.driver.cuDeviceGetPCIBusId(32, self._number)))
            .rstrip("\x00")
            .lower()
        )

    @property
    def ordinal(self) -> int:
        """By which number CUDA, and PyTorch, know it in this process."""
        return int(self._number)

    def create_event(self) -> Any:  # noqa: ANN401
        """An event with a time, destroyed with the device."""
        event = check_status(self.driver.cuEventCreate(self.driver.CUevent_flags.CU_EVENT_DEFAULT))
        self._stack.callback(self.driver.cuEventDestroy, event)
        return event

    def create_stream(self) -> Any:  # noqa: ANN401
        """A second stream, destroyed with the device."""
        stream = check_status(self.driver.cuStreamCreate(self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self._stack.callback(self.driver.cuStreamDestroy, stream)
        return stream

    def read_free_bytes(self) -> int:
        """Memory that nobody uses."""
        return int(check_status(self.driver.cuMemGetInfo())[0])

    def allocate(self, size: int) -> int:
        """Address of ``size`` bytes, freed with the device; :class:`Unsupported` if there is no room."""
        free = self.read_free_bytes()
        status, pointer = self.driver.cuMemAlloc(size)
        if status == self.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise Unsupported(f"{status.name}: {size} bytes asked for, {free} free")
        check_status((status,))
        self._stack.callback(self.driver.cuMemFree, pointer)
        return int(pointer)

    def allocate_pinned(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Host memory that the device reads and writes by itself, freed with the device."""
        address = check_status(self.driver.cuMemHostAlloc(size, 0))
        self._stack.callback(self.driver.cuMemFreeHost, address)
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(int(address)))

    def load_kernel(self, file: str, name: str) -> int:
        """A kernel of ``service/worker/kernels``, compiled and loaded."""
        if file not in self._modules:
            module = check_status(
                self.driver.cuModuleLoadData(compiler.compile_cubin(file, *self.capability))
            )
            self._stack.callback(self.driver.cuModuleUnload, module)
            self._modules[file] = module
        return int(check_status(self.driver.cuModuleGetFunction(self._modules[file], name.encode())))

    def build_launch(
        self, kernel: int, blocks: int, *arguments: int, threads: int = THREADS, shared_bytes: int = 0
    ) -> KernelLaunch:
        """A launch with everything packed beforehand; each argument is 8 bytes, and fits every parameter.

        ``shared_bytes`` of each block come on top of what the kernel declares.
        """
        self._set_shared_memory(kernel, shared_bytes)
        launch, stream, function = self.driver.cuLaunchKernel, self._stream, self.driver.CUfunction(kernel)
        # The driver reads the arguments at each launch, through an array of their addresses.
        values = (ctypes.c_uint64 * max(len(arguments), 1))(*arguments)
        addresses = [ctypes.addressof(values) + 8 * place for place in range(len(arguments))]
        pointers = (ctypes.c_uint64 * max(len(arguments), 1))(*addresses)
        parameters = ctypes.addressof(pointers)
        keep = (values, pointers)

        def enqueue_launch() -> None:
            (status,) = launch(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, parameters, 0)
            if status:
                raise CudaError(f"{status.name} for {len(keep[0])} arguments")

        return enqueue_launch

    def count_resident_blocks(self, kernel: int, threads: int, shared_bytes: int = 0) -> int:
        """Blocks of a launch that a multiprocessor has room for at a time."""
        self._set_shared_memory(kernel, shared_bytes)
        ask = self.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        return int(check_status(ask(self.driver.CUfunction(kernel), threads, shared_bytes)))

    def _set_shared_memory(self, kernel: int, shared_bytes: int) -> None:
        """Lets a kernel have so much, and the multiprocessor give all it can: both have to be asked for."""
        if not shared_bytes:
            return
        kinds, function = self.driver.CUfunction_attribute, self.driver.CUfunction(kernel)
        for attribute, value in (
            (kinds.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes),
            (kinds.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
        ):
            check_status(self.driver.cuFuncSetAttribute(function, attribute, value))

    def capture_graph(self, queue: KernelLaunch) -> KernelLaunch:
        """What ``queue`` puts on the stream, as one graph that is launched at once."""
        driver = self.driver
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        check_status(driver.cuStreamBeginCapture(self._stream, mode))
        queue()
        graph = check_status(driver.cuStreamEndCapture(self._stream))
        self._stack.callback(driver.cuGraphDestroy, graph)
        runnable = check_status(driver.cuGraphInstantiate(graph, 0))
        self._stack.callback(driver.cuGraphExecDestroy, runnable)
        check_status(driver.cuGraphUpload(runnable, self._stream))
        self.synchronize()
        return lambda: check_status(driver.cuGraphLaunch(runnable, self._stream))

    @property
    def flush_bytes(self) -> int:
        """How much a flush overwrites."""
        return max(2 * self.l2_bytes, LEAST_FLUSH_BYTES)

    def flush_cache(self) -> None:
        """Overwrite the cache, without waiting for it."""
        if self._flush is None:
            vectors = self.flush_bytes // 16
            address = self.allocate(self.flush_bytes)
            kernel = self.load_kernel("flush.cu", "flush")
            self._flush = self.build_launch(kernel, self.multiprocessors * 8, address, vectors, 0x5A5A5A5A)
        self._flush()

    def time_work(self, work: Callable[[], None]) -> int:
        """Nanoseconds between two events around what ``work`` queues on the stream."""
        start, stop = self._events
        check_status(self.driver.cuEventRecord(start, self._stream))
        work()
        check_status(self.driver.cuEventRecord(stop, self._stream))
        check_status(self.driver.cuEventSynchronize(stop))
        return self.compute_elapsed_ns(start, stop)

    def time_launches(self, launch: KernelLaunch, times: int, working_set_bytes: int | None = None) -> int:
        """Nanoseconds of as many launches one after the other, after a flush.

        While the device is at the flush, the launches are queued: none of them waits for the host. A
        working set that is named and below 20 times the cache is flushed before each launch.
        """
        if working_set_bytes is not None and working_set_bytes < CACHE_SHARE * self.l2_bytes:
            return sum(self.time_launches(launch, 1) for _ in range(times))

        def enqueue_launches() -> None:
            for _ in range(times):
                launch()

        self.flush_cache()
        return self.time_work(enqueue_launches)

    def compute_elapsed_ns(self, start: Any, stop: Any) -> int:  # noqa: ANN401
        """Nanoseconds from one event to another; both have happened."""
        milliseconds = float(check_status(self.driver.cuEventElapsedTime(start, stop)))
        return max(round(milliseconds * 1e6), 1)

    def to_device(self, address: int, array: np.ndarray[Any, Any]) -> None:
        """Copy an array, and wait for it."""
        check_status(self.driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
        # The call returns once pageable memory is staged; the streams of this class wait for no other.
        check_status(self.driver.cuCtxSynchronize())

    def to_host(self, array: np.ndarray[Any, Any], address: int) -> None:
        """Wait for what is queued, then copy into an array."""
        self.synchronize()
        check_status(self.driver.cuMemcpyDtoH(array.ctypes.data, address, array.nbytes))

    def synchronize(self) -> None:
        """Wait for everything queued; raises what went wrong meanwhile."""
        check_status(self.driver.cuStreamSynchronize(self._stream))

    def list_software(self) -> tuple[NodeSoftware, ...]:
        """What a measurement goes through."""
        api = int(check_status(self.driver.cuDriverGetVersion()))
        return (
            NodeSoftware(name="cuda_driver_api", version=f"{api // 1000}.{api % 1000 // 10}"),
            NodeSoftware(name="nvrtc", version=compiler.read_version()),
            *list_versions("cuda-bindings"),
        )


def run_kernel(device: CudaDevice, kernel: tuple[str, str], *arguments: int) -> None:
    """Queue a kernel that is not timed, on enough blocks to fill the device."""
    device.build_launch(device.load_kernel(*kernel), device.multiprocessors * 8, *arguments)()


def load_driver() -> Any:  # noqa: ANN401
    """The CUDA driver, initialised; raises :class:`Unsupported` where there is none."""
    driver = load_module("cuda.bindings.driver")
    try:
        check_status(driver.cuInit(0))
    except RuntimeError as error:
        raise Unsupported(f"CUDA driver: {str(error).splitlines()[0]}") from None
    return driver


def find_device_number(driver: Any, index: int) -> Any:  # noqa: ANN401
    """The driver's number of an accelerator of the inventory: it counts in an order of its own."""
    with nvml.open_nvml() as bindings:
        handle = nvml.get_handle(bindings, index)
        mode = nvml.NvmlAnswers(bindings, "").query_member(
            "mig_mode", lambda: bindings.nvmlDeviceGetMigMode(handle)
        )
        if mode is not MISSING and mode[0]:
            raise Unsupported(f"accelerator {index} is divided (MIG), and its power is that of all parts")
        bus_id = nvml.decode_text(bindings.nvmlDeviceGetPciInfo(handle).busId)
    try:
        return check_status(driver.cuDeviceGetByPCIBusId(bus_id.encode()))
    except CudaError as error:
        raise Unsupported(f"{error}: accelerator {index} is hidden from CUDA") from None


@contextmanager
def open_device(index: int | None) -> Iterator[CudaDevice]:
    """An accelerator of the inventory with its primary context current in this thread.

    Raises :class:`Unsupported` where there is no driver, no such accelerator, or none is named.
    """
    if index is None:
        raise Unsupported("the benchmark needs an accelerator")
    driver = load_driver()
    number = find_device_number(driver, index)
    with ExitStack() as stack:
        context = check_status(driver.cuDevicePrimaryCtxRetain(number))
        stack.callback(driver.cuDevicePrimaryCtxRelease, number)
        check_status(driver.cuCtxSetCurrent(context))
        device = CudaDevice(driver, number, context, stack)
        try:
            yield device
        finally:
            # What is still queued uses what is about to be freed; another device may have been used last.
            driver.cuCtxSetCurrent(context)
            driver.cuCtxSynchronize()


def select_indices(index: int | None, count: int, *, all_of_them: bool = False) -> list[int]:
    """Indices of accelerators, one after the other in the inventory and round its end: so many, or all.

    Raises :class:`Unsupported` where there are fewer, or none is named.
    """
    if index is None:
        raise Unsupported("the benchmark needs an accelerator")
    with nvml.open_nvml() as bindings:
        there = int(bindings.nvmlDeviceGetCount())
    if index >= there:
        raise Unsupported(f"accelerator {index} is not there")
    if there < count:
        raise Unsupported(f"{count} accelerators are needed, {there} are there")
    return [(index + place) % there for place in range(there if all_of_them else count)]


def attributes(index: int) -> dict[str, int]:
    """What only CUDA knows of an accelerator, without making a context."""
    driver = load_driver()
    number, kinds = find_device_number(driver, index), driver.CUdevice_attribute
    wanted = {
        "multiprocessor_count": kinds.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        "l2_bytes": kinds.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
        "numa_node": kinds.CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
    }
    found: dict[str, int] = {
        name: int(check_status(driver.cuDeviceGetAttribute(kind, number))) for name, kind in wanted.items()
    }
    # The driver says -1 for a node that it does not know.
    return {name: value for name, value in found.items() if value >= 0}


def sum_counts(sums: Sequence[int] | np.ndarray[Any, Any], bits: int) -> int:
    """Sum of what each thread counted, modulo 2 to the ``bits``."""
    total = int(np.sum(np.asarray(sums, np.uint64), dtype=np.uint64))
    return total % (1 << bits)
