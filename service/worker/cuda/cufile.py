"""cuFile by its C interface: files read into device memory, and the mode in which they were (cufile.h).

Where a node has no GPUDirect Storage for a file, cuFile copies it through host memory and says nothing. The
mode is told, in this order, by

- the library's own counters of reads by nvidia-fs, by PCI peer to peer and by the host (``cuFileGetStatsL3``,
  of CUDA 13), which are those of this process;
- the counters of the module nvidia-fs, if it keeps them (``rw_stats_enabled``), which are those of the node;
- the properties of the driver: neither nvidia-fs nor peer to peer, or one of them and no compatibility mode.

What none of them tells stays unknown.
"""

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, NamedTuple

from service.worker.benchmark import Unsupported
from service.worker.cuda.bindings import CudaError

LIBRARY = "libcufile.so.0"
TOOLKIT = Path("/usr/local/cuda/lib64")
WHEELS = (("nvidia.cu13", "lib"), ("nvidia.cufile", "lib"))
"""Packages of the wheels nvidia-cufile and nvidia-cufile-cu12, and their folder of libraries."""
STATISTICS = Path("/proc/driver/nvidia-fs/stats")
STATUSES = {
    5001: "nvidia-fs is not loaded",
    5004: "nvidia-fs has another version",
    5006: "the driver is closing",
    5007: "the platform is not supported",
    5008: "the file is not supported",
    5009: "the device is not supported",
    5010: "nvidia-fs refused the call",
    5011: "the CUDA driver refused the call",
    5016: "more memory than can be pinned",
    5018: "the type of the file is not supported",
    5020: "the file is not opened for direct access",
    5025: "permission denied",
    5033: "the driver does not start",
    5034: "GPUDirect Storage is disabled for the file",
    5036: "the memory cannot be pinned",
}
"""Meaning of a CUfileOpError."""
_BASE_ERROR = 5000
_OPAQUE_DESCRIPTOR = 1
"""CU_FILE_HANDLE_TYPE_OPAQUE_FD."""
_PEER_TO_PEER = 1 << 11
"""CU_FILE_NVME_P2P_SUPPORTED of the status flags."""
_COMPATIBILITY = 1 << 1
"""CU_FILE_ALLOW_COMPAT_MODE of the control flags."""
_READ_MEBIBYTES = re.compile(r"^Reads\s*:.*\breadMiB=(\d+)", re.MULTILINE)
_MEBIBYTE = 2**20
_DETAILED = 3
"""Level of statistics with counters of each device."""
_OTHERS = 1.1
"""Largest ratio of what the node has read to what this process has, beyond which others read too."""
_SIZE, _POINTER, _INT, _OFFSET = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64


class StorageMode(StrEnum):
    """Path of the bytes from a file to the device."""

    NVIDIA_FS = "GPUDirect mode by nvidia-fs"
    PEER_TO_PEER = "GPUDirect mode by PCI peer to peer"
    DIRECT = "GPUDirect mode"
    COMPATIBILITY = "compatibility mode, through host memory"
    MIXED = "GPUDirect and compatibility mode in turns"
    UNKNOWN = "unknown mode"


class _Status(ctypes.Structure):
    """CUfileError_t."""

    _fields_: ClassVar = [("operation", _INT), ("driver", _INT)]


class _Descriptor(ctypes.Structure):
    """CUfileDescr_t, of a descriptor of Linux."""

    _fields_: ClassVar = [("kind", _INT), ("descriptor", ctypes.c_int64), ("operations", _POINTER)]


class _Properties(ctypes.Structure):
    """CUfileDrvProps_t."""

    _fields_: ClassVar = [
        ("major_version", ctypes.c_uint),
        ("minor_version", ctypes.c_uint),
        ("poll_threshold", _SIZE),
        ("max_direct_io", _SIZE),
        ("status_flags", ctypes.c_uint),
        ("control_flags", ctypes.c_uint),
        ("others", ctypes.c_uint * 6),
    ]


class _DeviceStatistics(ctypes.Structure):
    """CUfilePerGpuStats_t."""

    _fields_: ClassVar = [
        ("uuid", ctypes.c_char * 16),
        ("before", ctypes.c_uint64 * 5),
        ("peer_to_peer", ctypes.c_uint64),
        ("nvidia_fs", ctypes.c_uint64),
        ("host", ctypes.c_uint64),
        ("after", ctypes.c_uint64 * 21),
    ]


class _Statistics(ctypes.Structure):
    """CUfileStatsLevel3_t, with room for later members."""

    _fields_: ClassVar = [
        ("basic", ctypes.c_uint64 * 64),
        ("histograms", ctypes.c_uint64 * 64),
        ("devices", ctypes.c_uint32),
        ("device", _DeviceStatistics * 16),
        ("room", ctypes.c_uint64 * 4096),
    ]


class ReadCounts(NamedTuple):
    """Counters before or after some reads; None where they are not kept."""

    reads: tuple[int, int, int] | None
    """Reads of this process by nvidia-fs, by peer to peer and by the host."""
    node_mebibytes: int | None
    """MiB that nvidia-fs has read for all processes."""


_SIGNATURES: dict[str, tuple[tuple[object, ...], object]] = {
    "cuFileDriverOpen": ((), _Status),
    "cuFileDriverClose": ((), _Status),
    "cuFileDriverGetProperties": ((_POINTER,), _Status),
    "cuFileHandleRegister": ((_POINTER, _POINTER), _Status),
    "cuFileHandleDeregister": ((_POINTER,), None),
    "cuFileBufRegister": ((_POINTER, _SIZE, _INT), _Status),
    "cuFileBufDeregister": ((_POINTER,), _Status),
    "cuFileRead": ((_POINTER, _POINTER, _SIZE, _OFFSET, _OFFSET), ctypes.c_ssize_t),
}
_OPTIONAL: dict[str, tuple[tuple[object, ...], object]] = {
    "cuFileGetVersion": ((_POINTER,), _Status),
    "cuFileSetStatsLevel": ((_INT,), _Status),
    "cuFileStatsStart": ((), _Status),
    "cuFileStatsStop": ((), _Status),
    "cuFileGetStatsL3": ((_POINTER,), _Status),
}
"""Functions of later releases."""


class CufileLibrary:
    """The functions of cuFile with its driver open; device memory is that of the current context."""

    def __init__(self) -> None:
        """Loads cuFile; :class:`Unsupported` if it is not installed."""
        # It writes its log to the current folder otherwise.
        os.environ.setdefault("CUFILE_LOGFILE_PATH", os.devnull)
        library = _load_library()
        self._calls: dict[str, Callable[..., object]] = {}
        for name, (arguments, result) in {**_SIGNATURES, **_OPTIONAL}.items():
            function = getattr(library, name, None)
            if function is not None:
                function.argtypes, function.restype = arguments, result
                self._calls[name] = function
            elif name in _SIGNATURES:
                raise Unsupported(f"{LIBRARY} has no {name}")
        self.version = self._read_version()

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function; raises :class:`CudaError` with the meaning of its status."""
        status = self._calls[name](*arguments)
        if isinstance(status, _Status) and status.operation:
            driver = f", CUDA error {status.driver}" if status.driver else ""
            raise CudaError(f"{name}: {_describe(status.operation)}{driver}")

    def read(self, handle: int, address: int, size: int, file_offset: int, offset: int) -> None:
        """Reads ``size`` bytes of a file to an offset of a buffer; raises :class:`CudaError` or OSError."""
        count = self._calls["cuFileRead"](handle, address, size, file_offset, offset)
        if count == size:
            return
        if not isinstance(count, int) or count < -_BASE_ERROR:
            raise CudaError(f"cuFileRead: {_describe(-int(str(count)))}")
        if count < 0:
            raise OSError(ctypes.get_errno(), f"cuFileRead: {os.strerror(ctypes.get_errno())}")
        raise CudaError(f"cuFileRead: {count} of {size} bytes were read")

    def read_counts(self) -> ReadCounts:
        """Returns the counters of now."""
        return ReadCounts(self._read_own_counts(), _read_node_mebibytes())

    @contextmanager
    def count_reads(self) -> Iterator[None]:
        """Lets the library count the reads of the block, which it does not do while they are timed."""
        counts = "cuFileGetStatsL3" in self._calls and self._try("cuFileSetStatsLevel", _DETAILED)
        counts = counts and self._try("cuFileStatsStart")
        try:
            yield
        finally:
            if counts:
                self._try("cuFileStatsStop")
                self._try("cuFileSetStatsLevel", 0)

    def find_mode(self, before: ReadCounts, after: ReadCounts, read_bytes: int) -> StorageMode:
        """Returns the mode in which ``read_bytes`` were read between two readings of the counters."""
        if before.reads is not None and after.reads is not None:
            by_driver, by_peer, by_host = (
                later - earlier for earlier, later in zip(before.reads, after.reads, strict=True)
            )
            if by_driver or by_peer:
                return (
                    StorageMode.MIXED
                    if by_host
                    else (StorageMode.NVIDIA_FS if by_driver >= by_peer else StorageMode.PEER_TO_PEER)
                )
            if by_host:
                return StorageMode.COMPATIBILITY
        properties = _Properties()
        self.call("cuFileDriverGetProperties", ctypes.byref(properties))
        reaches_peers = bool(properties.status_flags & _PEER_TO_PEER)
        if before.node_mebibytes is not None and after.node_mebibytes is not None:
            counted = after.node_mebibytes - before.node_mebibytes
            # What nvidia-fs has not read may have gone from peer to peer.
            if counted or not reaches_peers:
                return _judge_node(counted, read_bytes)
        if not reaches_peers and (properties.major_version, properties.minor_version) == (0, 0):
            return StorageMode.COMPATIBILITY
        return StorageMode.UNKNOWN if properties.control_flags & _COMPATIBILITY else StorageMode.DIRECT

    def _read_own_counts(self) -> tuple[int, int, int] | None:
        found = _Statistics()
        if "cuFileGetStatsL3" not in self._calls or not self._try("cuFileGetStatsL3", ctypes.byref(found)):
            return None
        known = found.device[: min(found.devices, len(found.device))]
        return (
            sum(one.nvidia_fs for one in known),
            sum(one.peer_to_peer for one in known),
            sum(one.host for one in known),
        )

    def _try(self, name: str, *arguments: object) -> bool:
        try:
            self.call(name, *arguments)
        except CudaError:
            return False
        return True

    def _read_version(self) -> str | None:
        found = _INT()
        if "cuFileGetVersion" not in self._calls or not self._try("cuFileGetVersion", ctypes.byref(found)):
            return None
        # As cufile.h has it: major * 1000 + minor * 10.
        return f"{found.value // 1000}.{found.value % 1000 // 10}"


def _judge_node(mebibytes: int, read_bytes: int) -> StorageMode:
    """Returns the mode by what nvidia-fs has read for all processes of the node meanwhile."""
    own = read_bytes / _MEBIBYTE
    if mebibytes == 0:
        return StorageMode.COMPATIBILITY
    # Counters of whole MiB may be one short.
    return StorageMode.NVIDIA_FS if own - 1.0 <= mebibytes <= _OTHERS * own + 1.0 else StorageMode.UNKNOWN


def _read_node_mebibytes() -> int | None:
    try:
        found = _READ_MEBIBYTES.search(STATISTICS.read_text(errors="replace"))
    except OSError:
        return None
    return int(found[1]) if found else None


def _describe(status: int) -> str:
    return f"{STATUSES.get(status, 'error')} ({status})"


@contextmanager
def open_driver() -> Iterator[CufileLibrary]:
    """Opens the driver of cuFile; :class:`Unsupported` if it is not installed or does not open here."""
    library = CufileLibrary()
    try:
        library.call("cuFileDriverOpen")
    except CudaError as error:
        raise Unsupported(str(error)) from None
    try:
        yield library
    finally:
        library.call("cuFileDriverClose")


@contextmanager
def register_file(library: CufileLibrary, descriptor: int) -> Iterator[int]:
    """Registers an open file; :class:`Unsupported` if cuFile does not take it. Yields its handle."""
    described = _Descriptor(_OPAQUE_DESCRIPTOR, descriptor, None)
    handle = ctypes.c_void_p()
    try:
        library.call("cuFileHandleRegister", ctypes.byref(handle), ctypes.byref(described))
    except CudaError as error:
        raise Unsupported(str(error)) from None
    try:
        yield handle.value or 0
    finally:
        library.call("cuFileHandleDeregister", handle)


@contextmanager
def register_buffer(library: CufileLibrary, address: int, size: int) -> Iterator[None]:
    """Registers device memory; :class:`Unsupported` if it cannot be pinned."""
    try:
        library.call("cuFileBufRegister", address, size, 0)
    except CudaError as error:
        raise Unsupported(str(error)) from None
    try:
        yield
    finally:
        library.call("cuFileBufDeregister", address)


def _load_library() -> ctypes.CDLL:
    """Loads the library that the loader finds, or else that of the toolkit or of the wheels."""
    for name in (LIBRARY, str(TOOLKIT / LIBRARY), *_list_wheel_libraries()):
        try:
            return ctypes.CDLL(name, use_errno=True)
        except OSError:
            continue
    raise Unsupported(f"cuFile ({LIBRARY}) is not installed")


def _list_wheel_libraries() -> Iterator[str]:
    for package, folder in WHEELS:
        try:
            spec = find_spec(package)
        except ModuleNotFoundError:
            continue
        for place in (spec.submodule_search_locations if spec else None) or []:
            yield str(Path(place) / folder / LIBRARY)
