"""Access to CUDA's libraries: imported on demand, with every status checked."""

from importlib import import_module, metadata
from typing import Any

from service.protocol.nodes import NodeSoftware
from service.worker.benchmark import Unsupported

DISTRIBUTIONS = {
    "cuda": "cuda-bindings",
    "cudnn": "nvidia-cudnn-frontend",
    "flash_attn_interface": "flash-attn-3",
    "flashinfer": "flashinfer-python",
    "nvmath": "nvmath-python",
}
"""Distribution of a package. Others have the name of their package."""


class CudaError(RuntimeError):
    """A call that the driver or a library refused."""


def load_module(module: str) -> Any:  # noqa: ANN401  # none of these libraries is typed
    """Imports a module of CUDA's Python packages; raises :class:`Unsupported` naming the missing package."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise Unsupported(f"{DISTRIBUTIONS.get(package, package)} is not installed") from None


def check_status(answer: tuple[Any, ...]) -> Any:  # noqa: ANN401
    """Returns the values of a call of cuda-bindings after its status: nothing, one value or a tuple."""
    status, *values = answer
    if int(status):
        raise CudaError(status.name)
    return values[0] if len(values) == 1 else tuple(values)


def list_versions(*distributions: str) -> list[NodeSoftware]:
    """Returns the versions of the given distributions that are installed."""
    found = []
    for name in distributions:
        try:
            found.append(NodeSoftware(name=name, version=metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found
