"""One accelerator: its primary context, its memory, its kernels and its clock."""

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import UUID

import numpy as np

from service.protocol.nodes import NodeSoftware
from service.worker import nvml
from service.worker.benchmark import NoRoom, Unsupported
from service.worker.cuda import compiler
from service.worker.cuda.bindings import CudaError, check_status, list_versions, load_module

THREADS = 256
"""Threads in a block; the kernels are compiled for this number."""
CACHE_SHARE = 20
"""Data are larger than the cache by this factor, or the cache is flushed before each sample."""
FLUSHED_CACHES = 4
"""Size of a flush in caches: of lines that are replaced at random, 2% (exp -4) stay."""
LEAST_FLUSH_BYTES = 256 * 2**20
"""Least bytes of a flush: long enough to read that the next launches are queued meanwhile."""
FLUSH_WORD = 0x5A5A5A5A
"""Word of the buffer that a flush reads; its kernel requires that it is not 0."""
LEAST_HOLD_NS = 300_000
"""Time for which the stream is held at first while calls of a library are queued."""
MOST_HOLD_NS = 256 * LEAST_HOLD_NS

VISIBLE = "CUDA_VISIBLE_DEVICES"

KernelLaunch = Callable[[], None]


class CudaDevice:
    """An accelerator through the CUDA driver. Addresses are integers, as the driver gives them."""

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
        self._hold_ns = LEAST_HOLD_NS

    def _read_attribute(self, which: Any) -> int:  # noqa: ANN401
        return int(check_status(self.driver.cuDeviceGetAttribute(which, self._number)))

    def make_current(self) -> None:
        """Makes the context current in this thread too."""
        check_status(self.driver.cuCtxSetCurrent(self.context))

    @contextmanager
    def scope_allocations(self) -> Iterator[None]:
        """Frees allocations of the block when it is left; no kernel may be loaded inside."""
        outer, self._stack = self._stack, ExitStack()
        with self._stack:
            try:
                yield
            finally:
                self._stack = outer

    @property
    def pci_bus_id(self) -> str:
        """Returns domain, bus and device, such as 0000:17:00.0."""
        return read_bus_id(self.driver, self._number)

    @property
    def ordinal(self) -> int:
        """Number by which CUDA and PyTorch know the device in this process."""
        return int(self._number)

    def create_event(self) -> Any:  # noqa: ANN401
        """Creates an event with a time, destroyed with the device."""
        event = check_status(self.driver.cuEventCreate(self.driver.CUevent_flags.CU_EVENT_DEFAULT))
        self._stack.callback(self.driver.cuEventDestroy, event)
        return event

    def create_stream(self) -> Any:  # noqa: ANN401
        """Creates a second stream, destroyed with the device."""
        stream = check_status(self.driver.cuStreamCreate(self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self._stack.callback(self.driver.cuStreamDestroy, stream)
        return stream

    def read_free_bytes(self) -> int:
        """Returns the bytes of free device memory."""
        return int(check_status(self.driver.cuMemGetInfo())[0])

    def demand_room(self, size: int) -> None:
        """Raises :class:`NoRoom` if the free memory does not hold ``size`` bytes and those of a flush."""
        free, needed = self.read_free_bytes(), size + self.flush_bytes
        if needed > free:
            raise self.build_refusal(f"needs {needed} bytes, {free} are free")

    def build_refusal(self, text: str) -> NoRoom:
        """Builds the error of data that do not fit."""
        return NoRoom(text, CACHE_SHARE * self.l2_bytes)

    def allocate(self, size: int) -> int:
        """Allocates ``size`` bytes, freed with the device; :class:`NoRoom` if they do not fit."""
        free = self.read_free_bytes()
        status, pointer = self.driver.cuMemAlloc(size)
        if status == self.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise self.build_refusal(f"{status.name}: {size} bytes requested, {free} free")
        check_status((status,))
        self._stack.callback(self.driver.cuMemFree, pointer)
        return int(pointer)

    def allocate_pinned(self, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Allocates host memory that the device accesses directly, freed with the device."""
        address = check_status(self.driver.cuMemHostAlloc(size, 0))
        self._stack.callback(self.driver.cuMemFreeHost, address)
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(int(address)))

    def load_kernel(self, file: str, name: str) -> int:
        """Compiles and loads a kernel of ``service/worker/kernels``."""
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
        """Builds a launch with all arguments packed; each is 8 bytes, and fits every parameter.

        ``shared_bytes`` of each block are added to those that the kernel declares.
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
        """Returns the number of blocks of a launch that a multiprocessor can hold at a time."""
        self._set_shared_memory(kernel, shared_bytes)
        ask = self.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        return int(check_status(ask(self.driver.CUfunction(kernel), threads, shared_bytes)))

    def _set_shared_memory(self, kernel: int, shared_bytes: int) -> None:
        """Sets the shared memory limit of a kernel and the multiprocessor's share; both are needed."""
        if not shared_bytes:
            return
        kinds, function = self.driver.CUfunction_attribute, self.driver.CUfunction(kernel)
        for attribute, value in (
            (kinds.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes),
            (kinds.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
        ):
            check_status(self.driver.cuFuncSetAttribute(function, attribute, value))

    def capture_graph(self, queue: KernelLaunch) -> KernelLaunch:
        """Captures the work that ``queue`` enqueues as one graph that is launched at once."""
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
        """Bytes that a flush reads."""
        return max(FLUSHED_CACHES * self.l2_bytes, LEAST_FLUSH_BYTES)

    def flush_cache(self) -> None:
        """Empties the cache by reads alone, so that no line has to be written back; does not wait for it."""
        if self._flush is None:
            vectors = self.flush_bytes // 16
            address, never = self.allocate(self.flush_bytes), self.allocate(16)
            run_kernel(self, ("flush.cu", "spoil"), address, vectors, FLUSH_WORD)
            kernel = self.load_kernel("flush.cu", "flush")
            self._flush = self.build_launch(kernel, self.multiprocessors * 8, address, vectors, never)
        self._flush()

    def time_work(self, work: Callable[[], None]) -> int:
        """Returns the nanoseconds between two events around the work that ``work`` enqueues."""
        start, stop = self._events
        check_status(self.driver.cuEventRecord(start, self._stream))
        work()
        check_status(self.driver.cuEventRecord(stop, self._stream))
        check_status(self.driver.cuEventSynchronize(stop))
        return self.compute_elapsed_ns(start, stop)

    def time_warm_launches(self, launch: KernelLaunch, times: int) -> int:
        """Returns nanoseconds of ``times`` launches in sequence, after an untimed one to warm the cache."""
        launch()
        return self._time_in_sequence(launch, times)

    def time_launches(self, launch: KernelLaunch, times: int, working_set_bytes: int | None = None) -> int:
        """Returns nanoseconds of ``times`` launches in sequence, after a flush.

        The launches are queued during the flush, so that none of them waits for the host. A stated working
        set below 20 times the cache is flushed before each launch.
        """
        if working_set_bytes is not None and working_set_bytes < CACHE_SHARE * self.l2_bytes:
            return sum(self.time_launches(launch, 1) for _ in range(times))
        self.flush_cache()
        return self._time_in_sequence(launch, times)

    def _time_in_sequence(self, launch: KernelLaunch, times: int) -> int:
        def enqueue_launches() -> None:
            for _ in range(times):
                launch()

        return self.time_work(enqueue_launches)

    def time_queued(self, work: Callable[[], None]) -> int:
        """Returns the nanoseconds of calls of a library after a flush, none of which waits for the host.

        A kernel holds the stream while they are queued. If the device begins before the host has queued all,
        they are repeated behind a longer hold. Raises :class:`Unsupported` if 77 ms are not enough.
        """
        start, stop = self._events
        waiting = self.driver.CUresult.CUDA_ERROR_NOT_READY
        while True:
            self.flush_cache()
            self.build_launch(self.load_kernel("hold.cu", "hold"), 1, self._hold_ns, threads=1)()
            check_status(self.driver.cuEventRecord(start, self._stream))
            work()
            check_status(self.driver.cuEventRecord(stop, self._stream))
            (begun,) = self.driver.cuEventQuery(start)
            check_status(self.driver.cuEventSynchronize(stop))
            if begun == waiting:
                return self.compute_elapsed_ns(start, stop)
            check_status((begun,))
            if self._hold_ns >= MOST_HOLD_NS:
                raise Unsupported(f"the host takes longer than {self._hold_ns} ns to queue the work")
            self._hold_ns *= 2

    def compute_elapsed_ns(self, start: Any, stop: Any) -> int:  # noqa: ANN401
        """Returns the nanoseconds between two events that have occurred."""
        milliseconds = float(check_status(self.driver.cuEventElapsedTime(start, stop)))
        return max(round(milliseconds * 1e6), 1)

    def to_device(self, address: int, array: np.ndarray[Any, Any]) -> None:
        """Copies an array to the device, and waits for it."""
        check_status(self.driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
        # The call returns once pageable memory is staged; the streams of this class wait for no other.
        check_status(self.driver.cuCtxSynchronize())

    def to_host(self, array: np.ndarray[Any, Any], address: int) -> None:
        """Waits for queued work, then copies into an array."""
        self.synchronize()
        check_status(self.driver.cuMemcpyDtoH(array.ctypes.data, address, array.nbytes))

    def synchronize(self) -> None:
        """Waits for queued work; raises its errors."""
        check_status(self.driver.cuStreamSynchronize(self._stream))

    def list_software(self) -> tuple[NodeSoftware, ...]:
        """Returns the software that a measurement uses."""
        api = int(check_status(self.driver.cuDriverGetVersion()))
        return (
            NodeSoftware(name="cuda_driver_api", version=f"{api // 1000}.{api % 1000 // 10}"),
            NodeSoftware(name="nvrtc", version=compiler.read_version()),
            *list_versions("cuda-bindings"),
        )


def run_kernel(device: CudaDevice, kernel: tuple[str, str], *arguments: int) -> None:
    """Enqueues an untimed kernel, on enough blocks to fill the device."""
    device.build_launch(device.load_kernel(*kernel), device.multiprocessors * 8, *arguments)()


def load_driver() -> Any:  # noqa: ANN401
    """Loads and initialises the CUDA driver; raises :class:`Unsupported` if there is none."""
    driver = load_module("cuda.bindings.driver")
    try:
        check_status(driver.cuInit(0))
    except RuntimeError as error:
        raise Unsupported(f"CUDA driver: {str(error).splitlines()[0]}") from None
    return driver


def show_device(index: int) -> None:
    """Makes CUDA see one device alone where the host has slices, of which a process can use one.

    CUDA reads the variable as it is initialised, so that this comes first, and once in a process.
    """
    with nvml.open_nvml() as bindings:
        if nvml.has_slices(bindings):
            unit = nvml.find_unit(bindings, index)
            os.environ[VISIBLE] = nvml.decode_text(bindings.nvmlDeviceGetUUID(unit.handle))


def find_device_number(driver: Any, index: int) -> Any:  # noqa: ANN401
    """Returns the driver's number of an accelerator of the inventory; the driver has its own order."""
    with nvml.open_nvml() as bindings:
        unit = nvml.find_unit(bindings, index)
        if unit.is_slice:
            uuid = nvml.decode_text(bindings.nvmlDeviceGetUUID(unit.handle))
            return _find_slice(driver, index, uuid)
        if unit.is_divided:
            raise Unsupported(f"accelerator {index} is divided (MIG), and has no slice")
        bus_id = nvml.decode_text(bindings.nvmlDeviceGetPciInfo(unit.handle).busId)
    try:
        return check_status(driver.cuDeviceGetByPCIBusId(bus_id.encode()))
    except CudaError as error:
        raise Unsupported(f"{error}: accelerator {index} is hidden from CUDA") from None


def read_bus_id(driver: Any, number: Any) -> str:  # noqa: ANN401
    """Returns domain, bus and device of an accelerator by the driver's number, such as 0000:17:00.0."""
    return nvml.decode_text(check_status(driver.cuDeviceGetPCIBusId(32, number))).rstrip("\x00").lower()


def _find_slice(driver: Any, index: int, uuid: str) -> Any:  # noqa: ANN401
    """Returns the driver's number of a slice, the only device that this process sees."""
    try:
        number = check_status(driver.cuDeviceGet(0))
        # Bindings of CUDA 12 have the id of a slice under another name than that of a device.
        ask = getattr(driver, "cuDeviceGetUuid_v2", driver.cuDeviceGetUuid)
        seen = f"MIG-{UUID(bytes=bytes(check_status(ask(number)).bytes))}"
    except CudaError as error:
        raise Unsupported(f"{error}: slice {index} is hidden from CUDA") from None
    if seen != uuid:
        raise Unsupported(f"slice {index} is hidden from CUDA, which sees another one")
    return number


@contextmanager
def open_device(index: int | None) -> Iterator[CudaDevice]:
    """Opens an accelerator of the inventory with its primary context current in this thread.

    Raises :class:`Unsupported` if there is no driver, no such accelerator, or none is named.
    """
    if index is None:
        raise Unsupported("the benchmark needs an accelerator")
    show_device(index)
    driver = load_driver()
    number = find_device_number(driver, index)
    with ExitStack() as stack:
        context = _retain_context(driver, number)
        stack.callback(driver.cuDevicePrimaryCtxRelease, number)
        check_status(driver.cuCtxSetCurrent(context))
        device = CudaDevice(driver, number, context, stack)
        try:
            yield device
        finally:
            # Queued work uses memory that is about to be freed; another device may have been used last.
            driver.cuCtxSetCurrent(context)
            driver.cuCtxSynchronize()


def _retain_context(driver: Any, number: Any) -> Any:  # noqa: ANN401
    """Returns the primary context; raises :class:`Unsupported` if this process may not have one."""
    results = driver.CUresult
    status, context = driver.cuDevicePrimaryCtxRetain(number)
    if status in (results.CUDA_ERROR_DEVICE_UNAVAILABLE, results.CUDA_ERROR_NOT_PERMITTED):
        raise Unsupported(f"{status.name}: compute mode or operator keep this process off the device")
    check_status((status,))
    return context


def select_indices(index: int | None, count: int, *, all_of_them: bool = False) -> list[int]:
    """Returns ``count`` consecutive indices of the inventory, wrapping around, or all of them.

    Raises :class:`Unsupported` if there are fewer, or none is named.
    """
    if index is None:
        raise Unsupported("the benchmark needs an accelerator")
    with nvml.open_nvml() as bindings:
        there = nvml.count_units(bindings)
    if index >= there:
        raise Unsupported(f"accelerator {index} does not exist")
    if there < count:
        raise Unsupported(f"{count} accelerators are required, {there} exist")
    return [(index + place) % there for place in range(there if all_of_them else count)]


def attributes(index: int) -> dict[str, int]:
    """Returns attributes of an accelerator that only CUDA knows, without creating a context.

    On a host with slices a process can ask for one device only.
    """
    show_device(index)
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
    """Returns the sum of the threads' counts, modulo 2 to the ``bits``."""
    total = int(np.sum(np.asarray(sums, np.uint64), dtype=np.uint64))
    return total % (1 << bits)
