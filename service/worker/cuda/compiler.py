"""Compilation of the worker's kernels for the device by NVRTC, once a process."""

from functools import cache
from importlib.resources import files

from service.worker.benchmark import Unsupported
from service.worker.cuda.bindings import check_status, load_module


@cache
def compile_cubin(file: str, major: int, minor: int) -> bytes:
    """Returns machine code of a file of ``service/worker/kernels`` for a compute capability.

    Machine code and not PTX, because a driver runs that of a newer toolkit of its own major version, but does
    not compile its PTX. Raises :class:`Unsupported` if this NVRTC does not know the architecture.
    """
    return compile_with_log(file, major, minor)[0]


def compile_with_log(file: str, major: int, minor: int, *more: bytes) -> tuple[bytes, str]:
    """Returns machine code as :func:`compile_cubin` does, and the compiler's log, under ``more`` options."""
    nvrtc = load_module("cuda.bindings.nvrtc")
    folder = files("service.worker.kernels")
    headers = [part for part in folder.iterdir() if part.name.endswith(".h")]
    texts, names = [part.read_bytes() for part in headers], [part.name.encode() for part in headers]
    source = folder.joinpath(file).read_bytes()
    try:
        program = check_status(nvrtc.nvrtcCreateProgram(source, file.encode(), len(headers), texts, names))
    except RuntimeError as error:
        raise Unsupported(f"NVRTC: {str(error).splitlines()[0]}") from None
    try:
        options = [f"--gpu-architecture=sm_{major}{minor}".encode(), b"--std=c++17", *more]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        held = bytearray(check_status(nvrtc.nvrtcGetProgramLogSize(program)))
        check_status(nvrtc.nvrtcGetProgramLog(program, held))
        log = held.decode(errors="replace").strip("\x00\n ")
        if int(status):
            first, *_ = log.splitlines() or ["no reason given"]
            raise Unsupported(f"{file} for sm_{major}{minor}: {first}")
        code = bytearray(check_status(nvrtc.nvrtcGetCUBINSize(program)))
        check_status(nvrtc.nvrtcGetCUBIN(program, code))
    finally:
        check_status(nvrtc.nvrtcDestroyProgram(program))
    return bytes(code), log


def read_version() -> str:
    """Returns the version of the NVRTC that is used."""
    major, minor = check_status(load_module("cuda.bindings.nvrtc").nvrtcVersion())
    return f"{major}.{minor}"
