"""The matrix library behind NumPy: name, kernels and threads, asked of the library in this process."""

import ctypes
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MAPS = Path("/proc/self/maps")
_LIBRARY = re.compile(r"/[^\n]*(?:blas|mkl_rt|blis)[^/\n]*\.so[^\n]*")
_THREADS = (
    "scipy_openblas_get_num_threads64_",
    "scipy_openblas_get_num_threads",
    "openblas_get_num_threads64_",
    "openblas_get_num_threads",
    "MKL_Get_Max_Threads",
    "bli_thread_get_num_threads",
)
_CORES = (
    "scipy_openblas_get_corename64_",
    "scipy_openblas_get_corename",
    "openblas_get_corename64_",
    "openblas_get_corename",
)


@dataclass(frozen=True, slots=True)
class BlasLibrary:
    """The library that multiplies matrices for NumPy; unknown members are None."""

    name: str
    version: str
    kernels: str | None
    """Processor that the kernels were written for."""
    threads: int | None


def inspect_blas() -> BlasLibrary:
    """Returns the library that NumPy was built with, and the setup of the copy in this process."""
    found = np.show_config(mode="dicts") or {}
    built = found.get("Build Dependencies", {}).get("blas", {})
    name, version = str(built.get("name", "unknown")), str(built.get("version", "unknown"))
    threads, kernels = _query_library(_THREADS, ctypes.c_int), _query_library(_CORES, ctypes.c_char_p)
    return BlasLibrary(
        name=name,
        version=version,
        kernels=kernels.decode("ascii", "replace") if isinstance(kernels, bytes) else None,
        threads=threads if isinstance(threads, int) and threads > 0 else None,
    )


def _query_library(names: tuple[str, ...], kind: type[ctypes.c_int | ctypes.c_char_p]) -> object:
    for library in _open_libraries():
        for name in names:
            if hasattr(library, name):
                function = getattr(library, name)
                function.restype, function.argtypes = kind, ()
                return function()
    return None


def _open_libraries() -> list[ctypes.CDLL]:
    opened = []
    with suppress(OSError):
        for path in sorted(set(_LIBRARY.findall(MAPS.read_text("utf-8")))):
            opened.append(ctypes.CDLL(path))  # noqa: PERF401  # what opened before an error is kept
    return opened
