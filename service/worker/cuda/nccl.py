"""NCCL by its C interface: a communicator for each accelerator, of one process or of one each.

Processes join by an identity that one of them creates, wherever the others run.
"""

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal

from service.worker.benchmark import Unsupported
from service.worker.cuda.bindings import CudaError

LIBRARY = "libnccl.so.2"
ALGORITHMS = {"ring": "Ring", "tree": "Tree", "nvls": "NVLS"}
FLOAT32, SUM = 7, 0
"""Values of ncclDataType_t and ncclRedOp_t, nccl.h."""
_SIZE, _POINTER, _INT = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int


class _Identity(ctypes.Structure):
    """ncclUniqueId, which is passed by value."""

    _fields_: ClassVar = [("internal", ctypes.c_ubyte * 128)]


_SIGNATURES = {
    "ncclGetVersion": (_POINTER,),
    "ncclCommInitAll": (_POINTER, _INT, _POINTER),
    "ncclGetUniqueId": (_POINTER,),
    "ncclCommInitRank": (_POINTER, _INT, _Identity, _INT),
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


class NcclLibrary:
    """The functions of NCCL; the algorithm is set in ``NCCL_ALGO``, which NCCL reads at its start."""

    def __init__(self, algorithm: str) -> None:
        """Loads NCCL; :class:`Unsupported` if it is not installed."""
        if algorithm in ALGORITHMS:
            os.environ["NCCL_ALGO"] = ALGORITHMS[algorithm]
        self._library = _load_library()
        self._calls: dict[str, Callable[..., int]] = {}
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.argtypes, function.restype = arguments, _INT
            self._calls[name] = function
        self._library.ncclGetErrorString.restype = ctypes.c_char_p
        self._library.ncclGetErrorString.argtypes = (_INT,)
        found = _INT()
        self.call("ncclGetVersion", ctypes.byref(found))
        # 2.9 and later: major * 10000 + minor * 100 + patch.
        self.version = f"{found.value // 10_000}.{found.value // 100 % 100}.{found.value % 100}"

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function; raises :class:`CudaError` with what NCCL says of a status."""
        status = self._calls[name](*arguments)
        if status:
            said = self._library.ncclGetErrorString(status).decode(errors="replace")
            raise CudaError(f"{name}: {said}")

    def create_identity(self) -> bytes:
        """Creates the identity by which processes join; this process has to outlive their joining."""
        identity = _Identity()
        self.call("ncclGetUniqueId", ctypes.byref(identity))
        return bytes(identity.internal)


class NcclCommunicators:
    """Communicators of the ranks of this process, in their order, among all ranks."""

    def __init__(
        self, library: NcclLibrary, communicators: Sequence[Any], first_rank: int, ranks: int
    ) -> None:
        self._library, self._communicators = library, communicators
        self._first_rank, self._all_ranks = first_rank, ranks
        self.version = library.version

    def close(self) -> None:
        """Destroys the communicators."""
        for communicator in self._communicators:
            self._library.call("ncclCommDestroy", communicator)

    def enqueue_collective(
        self,
        operation: NcclOperation,
        sent: Sequence[int],
        received: Sequence[int],
        count: int,
        streams: Sequence[int],
    ) -> None:
        """Enqueues one collective on the streams of all ranks of this process.

        Args:
            operation: Collective operation.
            sent: Address of the input of each rank of this process, fp32.
            received: Address of the result of each of them.
            count: Elements of the payload as nccl-tests counts; a multiple of the ranks if it is divided.
            streams: Stream of each of them.

        Raises:
            CudaError: NCCL refuses.
        """
        self._library.call("ncclGroupStart")
        for place, (source, target, stream) in enumerate(zip(sent, received, streams, strict=True)):
            self._enqueue_rank(operation, (source, target), count, place, stream)
        self._library.call("ncclGroupEnd")

    def _enqueue_rank(
        self, operation: NcclOperation, buffers: tuple[int, int], count: int, place: int, stream: int
    ) -> None:
        (source, target), ranks, rank = buffers, self._all_ranks, self._first_rank + place
        own, call = (self._communicators[place], stream), self._library.call
        match operation:
            case "all_reduce":
                call("ncclAllReduce", source, target, count, FLOAT32, SUM, *own)
            case "reduce_scatter":
                call("ncclReduceScatter", source, target, count // ranks, FLOAT32, SUM, *own)
            case "all_gather":
                call("ncclAllGather", source, target, count // ranks, FLOAT32, *own)
            case "broadcast":
                call("ncclBroadcast", source, target, count, FLOAT32, 0, *own)
            case "send_receive":
                call("ncclSend", source, count, FLOAT32, (rank + 1) % ranks, *own)
                call("ncclRecv", target, count, FLOAT32, (rank - 1) % ranks, *own)
            case "all_to_all":
                part = count // ranks
                for peer in range(ranks):
                    call("ncclSend", source + 4 * part * peer, part, FLOAT32, peer, *own)
                    call("ncclRecv", target + 4 * part * peer, part, FLOAT32, peer, *own)


@contextmanager
def open_communicators(ordinals: Sequence[int], algorithm: str) -> Iterator[NcclCommunicators]:
    """Opens NCCL over accelerators by the driver's numbers; :class:`Unsupported` if it is not installed."""
    library, ranks = NcclLibrary(algorithm), len(ordinals)
    opened = (_POINTER * ranks)()
    library.call("ncclCommInitAll", opened, ranks, (_INT * ranks)(*ordinals))
    with closing(NcclCommunicators(library, list(opened), 0, ranks)) as found:
        yield found


@contextmanager
def join_communicator(
    library: NcclLibrary, identity: bytes, rank: int, ranks: int
) -> Iterator[NcclCommunicators]:
    """Joins the accelerator whose context is current to those of other processes, and waits for these."""
    opened = (_POINTER * 1)()
    library.call("ncclCommInitRank", opened, ranks, _Identity.from_buffer_copy(identity), rank)
    with closing(NcclCommunicators(library, list(opened), rank, ranks)) as found:
        yield found


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
