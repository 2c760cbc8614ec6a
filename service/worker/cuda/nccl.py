"""NCCL by its C interface: one process, a communicator for each of its accelerators."""

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from service.worker.benchmark import Unsupported
from service.worker.cuda.bindings import CudaError

LIBRARY = "libnccl.so.2"
ALGORITHMS = {"ring": "Ring", "tree": "Tree", "nvls": "NVLS"}
FLOAT32, SUM = 7, 0
"""Values of ncclDataType_t and ncclRedOp_t, nccl.h."""
_SIZE, _POINTER, _INT = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
_SIGNATURES = {
    "ncclGetVersion": (_POINTER,),
    "ncclCommInitAll": (_POINTER, _INT, _POINTER),
    "ncclCommDestroy": (_POINTER,),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
    "ncclAllReduce": (_POINTER, _POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER),
    "ncclReduceScatter": (_POINTER, _POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER),
    "ncclAllGather": (_POINTER, _POINTER, _SIZE, _INT, _POINTER, _POINTER),
    "ncclBroadcast": (_POINTER, _POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER),
    "ncclSend": (_POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER),
    "ncclRecv": (_POINTER, _SIZE, _INT, _INT, _POINTER, _POINTER),
}

NcclOperation = Literal[
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_receive"
]


class NcclCommunicators:
    """Communicators of some accelerators, in the order of their ranks."""

    def __init__(self, library: ctypes.CDLL, ordinals: Sequence[int]) -> None:
        self._library = library
        self._calls: dict[str, Callable[..., int]] = {}
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, _INT
            self._calls[name] = function
        library.ncclGetErrorString.restype = ctypes.c_char_p
        library.ncclGetErrorString.argtypes = (_INT,)
        found = _INT()
        self._call_library("ncclGetVersion", ctypes.byref(found))
        # 2.9 and later: major * 10000 + minor * 100 + patch.
        self.version = f"{found.value // 10_000}.{found.value // 100 % 100}.{found.value % 100}"
        self._communicators = (_POINTER * len(ordinals))()
        self._call_library(
            "ncclCommInitAll", self._communicators, len(ordinals), (_INT * len(ordinals))(*ordinals)
        )

    def close(self) -> None:
        """Destroys the communicators."""
        for communicator in self._communicators:
            self._call_library("ncclCommDestroy", communicator)

    def enqueue_collective(
        self,
        operation: NcclOperation,
        sent: Sequence[int],
        received: Sequence[int],
        count: int,
        streams: Sequence[int],
    ) -> None:
        """Enqueues one collective on the streams of all ranks.

        Args:
            operation: Collective operation.
            sent: Address of the input of each rank, fp32.
            received: Address of the result of each rank.
            count: Elements of the payload as nccl-tests counts; a multiple of the ranks if it is divided.
            streams: Stream of each rank.

        Raises:
            CudaError: NCCL refuses.
        """
        self._call_library("ncclGroupStart")
        for rank, (source, target, stream) in enumerate(zip(sent, received, streams, strict=True)):
            self._enqueue_rank(operation, (source, target), count, rank, stream)
        self._call_library("ncclGroupEnd")

    def _enqueue_rank(
        self, operation: NcclOperation, buffers: tuple[int, int], count: int, rank: int, stream: int
    ) -> None:
        (source, target), ranks = buffers, len(self._communicators)
        own = (self._communicators[rank], stream)
        match operation:
            case "all_reduce":
                self._call_library("ncclAllReduce", source, target, count, FLOAT32, SUM, *own)
            case "reduce_scatter":
                self._call_library("ncclReduceScatter", source, target, count // ranks, FLOAT32, SUM, *own)
            case "all_gather":
                self._call_library("ncclAllGather", source, target, count // ranks, FLOAT32, *own)
            case "broadcast":
                self._call_library("ncclBroadcast", source, target, count, FLOAT32, 0, *own)
            case "send_receive":
                self._call_library("ncclSend", source, count, FLOAT32, (rank + 1) % ranks, *own)
                self._call_library("ncclRecv", target, count, FLOAT32, (rank - 1) % ranks, *own)
            case "all_to_all":
                part = count // ranks
                for peer in range(ranks):
                    self._call_library("ncclSend", source + 4 * part * peer, part, FLOAT32, peer, *own)
                    self._call_library("ncclRecv", target + 4 * part * peer, part, FLOAT32, peer, *own)

    def _call_library(self, name: str, *arguments: object) -> None:
        status = self._calls[name](*arguments)
        if status:
            said = self._library.ncclGetErrorString(status).decode(errors="replace")
            raise CudaError(f"{name}: {said}")


@contextmanager
def open_communicators(ordinals: Sequence[int], algorithm: str) -> Iterator[NcclCommunicators]:
    """Opens NCCL over accelerators by the driver's numbers; :class:`Unsupported` if it is not installed.

    The algorithm is set in ``NCCL_ALGO``, which NCCL reads at its start.
    """
    if algorithm in ALGORITHMS:
        os.environ["NCCL_ALGO"] = ALGORITHMS[algorithm]
    found = NcclCommunicators(_load_library(), ordinals)
    try:
        yield found
    finally:
        found.close()


def _load_library() -> ctypes.CDLL:
    """Loads the library that the loader finds, or else that of the wheel that PyTorch depends on."""
    for name in (LIBRARY, *_list_wheel_libraries()):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise Unsupported(f"{LIBRARY} is not installed")


def _list_wheel_libraries() -> list[str]:
    try:
        spec = find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        return []
    places = spec.submodule_search_locations if spec else None
    return [str(Path(place) / "lib" / LIBRARY) for place in places or []]
