"""The kernels of the worker, compiled for this processor: the same source, run thread by thread."""

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "service" / "worker" / "kernels"
SHIM = Path(__file__).with_name("host_grid.h")
COMPILE = ["g++", "-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-fsanitize=thread", "-Wall", "-Werror"]
QUIET = ["-Wno-unknown-pragmas", "-Wno-tsan", "-Wno-unused-function"]


def names_in(file):
    """Kernels of a file, in order."""
    text = (KERNELS / file).read_text()
    return re.findall(r"^FILL\((\w+)", text, re.MULTILINE) + re.findall(
        r"__global__ void(?: __launch_bounds__\(\d+\))?\s+(?!name|__)(\w+)\(", text
    )


@cache
def library(file):
    """A source file as a shared library; built once for its text, by whichever process comes first."""
    source = f'#include "{SHIM}"\n#include "{KERNELS / file}"\n'
    source += "".join(f"EXPORT({name})\n" for name in names_in(file))
    text = source + SHIM.read_text() + (KERNELS / file).read_text()
    folder = Path(tempfile.gettempdir()) / f"ironlaw-host-kernels-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    built = folder / f"{hashlib.sha256(text.encode()).hexdigest()}.so"
    if not built.exists():
        with tempfile.TemporaryDirectory(dir=folder) as own:
            (Path(own) / "kernels.cpp").write_text(source)
            compile_ = [*COMPILE, *QUIET, "-c", "kernels.cpp", "-o", "kernels.o"]
            subprocess.run(compile_, cwd=own, check=True)
            # Linked by hand: the compiler would bring the sanitizer's own library.
            subprocess.run(["g++", "-shared", "kernels.o", "-o", "kernels.so"], cwd=own, check=True)
            (Path(own) / "kernels.so").replace(built)
    found = ctypes.CDLL(str(built))
    for count in (found.bytes_read, found.bytes_written):
        count.restype = ctypes.c_uint64
    found.watch.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
    return found


def run(file, name, blocks, threads, *arguments):
    """One launch; arrays are passed by address."""
    words = [int(a.ctypes.data) if hasattr(a, "ctypes") else int(a) for a in arguments]
    packed = (ctypes.c_uint64 * len(words))(*words)
    getattr(library(file), f"run_{name}")(blocks, threads, packed)


def counted(file, name, blocks, threads, *arguments):
    """One launch; bytes read and written of each array among the arguments."""
    arrays = [argument for argument in arguments if hasattr(argument, "ctypes")]
    for place, array in enumerate(arrays):
        library(file).watch(place, array.ctypes.data, array.nbytes)
    run(file, name, blocks, threads, *arguments)
    counts = [(library(file).bytes_read(p), library(file).bytes_written(p)) for p in range(len(arrays))]
    for place in range(len(arrays)):
        library(file).watch(place, 0, 0)
    return counts
