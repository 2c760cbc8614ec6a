"""The kernels of the worker, compiled for this processor: the same source, run thread by thread."""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "service" / "worker" / "kernels"
SHIM = Path(__file__).with_name("host_grid.h")
DRIVER = Path(__file__).with_name("fake_driver.cpp")
GXX = shutil.which("g++") or "g++"
CUFILE = Path(__file__).with_name("fake_cufile.cpp")
COMPILE = [GXX, "-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-Wall", "-Werror"]
# No pragma is for this compiler; its sanitizer is there for the calls before each access alone.
WAITS = re.compile(r"__sync|_sync\(")
"""What makes the threads of a block wait for each other; without it each runs through by itself."""
WORK = ctypes.CFUNCTYPE(None)
COUNTED = ["-fsanitize=thread", "-Wno-unknown-pragmas", "-Wno-tsan", "-Wno-unused-function", "-Wno-clobbered"]


def names_in(file):
    """Kernels of a file, in order."""
    text = (KERNELS / file).read_text()
    # A macro in capitals at the start of a line makes a kernel of its first word, BOTH one of each type.
    made = re.findall(r"^([A-Z]+)\((\w+)", text, re.MULTILINE)
    of_macros = [
        name + ending for macro, name in made for ending in (("_bf16", "_fp32") if macro == "BOTH" else ("",))
    ]
    return of_macros + re.findall(r"__global__ void(?: __launch_bounds__\(\d+\))?\s+(?!name|__)(\w+)\(", text)


def _built(name, source, *texts, flags=(), link=()):
    """A shared library of a source; built once for its text, by whichever process comes first."""
    folder = Path(tempfile.gettempdir()) / f"ironlaw-host-kernels-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    digest = hashlib.sha256("".join([source, *texts, *COMPILE, *flags, *link]).encode()).hexdigest()
    built = folder / f"{name}-{digest[:32]}.so"
    if not built.exists():
        with tempfile.TemporaryDirectory(dir=folder) as own:
            (Path(own) / "source.cpp").write_text(source)
            subprocess.run([*COMPILE, *flags, "-c", "source.cpp", "-o", "object.o"], cwd=own, check=True)
            # Linked by hand: the compiler would bring the sanitizer's own library.
            subprocess.run([GXX, "-shared", *link, "object.o", "-o", "shared.so"], cwd=own, check=True)
            (Path(own) / "shared.so").replace(built)
    return built


@cache
def library(file):
    """A file of kernels as a shared library."""
    source = f'#include "{SHIM}"\n#include "{KERNELS / file}"\n'
    text = (KERNELS / file).read_text()
    waits = "true" if WAITS.search(text) else "false"
    source += "".join(f"EXPORT({name}, {waits})\n" for name in names_in(file))
    headers = [path.read_text() for path in sorted(KERNELS.glob("*.h"))]
    built = _built(file, source, SHIM.read_text(), text, *headers, flags=COUNTED)
    found = ctypes.CDLL(str(built))
    for count in (found.bytes_read, found.bytes_written):
        count.restype = ctypes.c_uint64
    found.watch.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
    return found


@cache
def cufile():
    """A cuFile whose device is this processor: its path, and its functions."""
    built = _built("cufile", CUFILE.read_text())
    return built, ctypes.CDLL(str(built))


def built_driver():
    """The library of a CUDA driver, under the name by which the bindings look for theirs."""
    return _built("driver", DRIVER.read_text(), link=("-Wl,-soname,libcuda.so.1",))


@cache
def driver():
    """A CUDA driver whose device is this processor."""
    found = ctypes.CDLL(str(built_driver()))
    found.fake_journal.restype = ctypes.c_char_p
    found.fake_memory.argtypes = [ctypes.c_uint64]
    found.fake_advance.argtypes = [ctypes.c_double]
    found.fake_queue.argtypes = [ctypes.c_uint64, WORK]
    for file in sorted(path.name for path in KERNELS.glob("*.cu")):
        kernels = library(file)
        for name in names_in(file):
            run_ = ctypes.cast(getattr(kernels, f"run_{name}"), ctypes.c_void_p)
            found.fake_kernel(name.encode(), run_, getattr(kernels, f"arity_{name}")())
    return found


def compile_nothing(file, major, minor):
    """In place of :func:`compile_cubin`: the driver above takes any machine code of a file that there is."""
    assert (KERNELS / file).is_file()
    return f"\x7fELF {file} sm_{int(major)}{int(minor)}".encode()


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
