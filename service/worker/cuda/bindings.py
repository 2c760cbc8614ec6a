"""How CUDA's libraries are reached: imported when asked for, every status checked."""

from importlib import import_module, metadata
from typing import Any

from service.protocol.nodes import NodeSoftware
from service.worker.benchmark import Unsupported

DISTRIBUTIONS = {
    "cuda.bindings.driver": "cuda-bindings",
    "cuda.bindings.nvrtc": "cuda-bindings",
    "nvmath.bindings.cublas": "nvmath-python",
    "nvmath.bindings.cublasLt": "nvmath-python",
    "nvmath.bindings.cufft": "nvmath-python",
    "torch": "torch",
    "torch.nn.attention": "torch",
}


class CudaError(RuntimeError):
    """A call that the driver or a library refused."""


def load_module(module: str) -> Any:  # noqa: ANN401  # none of these libraries is typed
    """A module of CUDA's Python packages; raises :class:`Unsupported` naming the package that is missing."""
    try:
        return import_module(module)
    except ImportError:
        raise Unsupported(f"{DISTRIBUTIONS[module]} is not installed") from None


def check_status(answer: tuple[Any, ...]) -> Any:  # noqa: ANN401
    """What a call of cuda-bindings returned after its status: nothing, one value or a tuple."""
    status, *values = answer
    if int(status):
        raise CudaError(status.name)
    return values[0] if len(values) == 1 else tuple(values)


def list_versions(*distributions: str) -> list[NodeSoftware]:
    """The versions of those distributions that are installed."""
    found = []
    for name in distributions:
        try:
            found.append(NodeSoftware(name=name, version=metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found
