"""Compilation of C for the host, by its own compiler, once a process."""

import ctypes
import shutil
import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from service.worker.benchmark import Unsupported
from service.worker.errors import get_first_line

COMPILERS = ("cc", "gcc", "clang", "g++", "c++")
"""Names of compilers in the order in which they are looked for."""
SECONDS = 30.0


class HostLibrary(NamedTuple):
    """A file of C as a library of this process, and the compiler that made it."""

    functions: ctypes.CDLL
    compiler: str


@cache
def build_library(file: str) -> HostLibrary:
    """Compiles and loads a C file of this package; raises :class:`Unsupported` without a compiler."""
    found = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if found is None:
        raise Unsupported(
            f"{file} needs a C compiler on the host: none of {', '.join(COMPILERS)} is installed"
        )
    with TemporaryDirectory(prefix="ironlaw-") as folder:
        source, library = Path(folder) / file, Path(folder) / "library.so"
        source.write_bytes(files("service.worker.cuda").joinpath(file).read_bytes())
        _run_compiler(found, "-O2", "-shared", "-fPIC", str(source), "-o", str(library))
        version, *_ = _run_compiler(found, "--version").splitlines()
        try:
            return HostLibrary(ctypes.CDLL(str(library)), version)
        except OSError as error:
            # Where nothing in the temporary directory may be executed.
            raise Unsupported(f"{file} cannot be loaded: {get_first_line(error)}") from None


def _run_compiler(*command: str) -> str:
    try:
        return subprocess.run(  # noqa: S603  # a fixed list of arguments
            command, capture_output=True, text=True, errors="replace", check=True, timeout=SECONDS
        ).stdout
    except subprocess.CalledProcessError as error:
        raise Unsupported(f"{command[0]}: {(error.stderr.splitlines() or ['no reason given'])[0]}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unsupported(f"{command[0]}: {get_first_line(error)}") from None
