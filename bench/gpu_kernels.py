"""`make gpu-kernels`: what both compilers make of the worker's kernels; writes docs/gpu-kernels.md.

Every kernel is compiled for every device by NVRTC, as the worker does it, and by nvcc. The logs say what
spills, the machine code which instructions multiply and move. Needs nvcc on the path, and NVRTC and nvdisasm
of the development environment; no GPU.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import files, version
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

from service.worker.cuda import compiler
from service.worker.cuda.cublaslt import KINDS

ROOT: Final = Path(__file__).resolve().parents[1]
KERNELS: Final = ROOT / "service" / "worker" / "kernels"
PAGE: Final = ROOT / "docs" / "gpu-kernels.md"
ARCHITECTURES: Final = {
    80: "A100, A30",
    86: "A10, A40, RTX 30",
    89: "L4, L40S, RTX 40",
    90: "H100, H200",
    100: "B200",
    103: "B300",
    120: "RTX PRO 6000, RTX 50",
}
"""Compute capabilities, and devices that have them."""
_MULTIPLIES: Final = {
    r"(prefill|decode)_bf16_\d+": "HMMA.16816.F32.BF16",
    r"(prefill|decode)_fp16_\d+": "HMMA.16816.F32",
    r"weight_only_\w+": "HMMA.16816.F32.BF16",
}
"""Instruction of tensor cores by which kernels multiply, by their name; all others have none."""
_IN_FLIGHT: Final = {
    **dict.fromkeys(("stream_read", "stream_copy", "stream_triad", "cache_read", "cache_copy"), 4),
    **dict.fromkeys(
        (f"weight_only_{each}" for each in ("symmetric_8", "zeros_8", "symmetric_16", "zeros_16")), 4
    ),
}
"""Loads of 16 bytes that a thread starts before it needs the first."""
_TENSOR: Final = re.compile(r"^(?:[DHIOQ]G?MMA|UTC\w*MMA)\.")
_WIDE: Final = {
    "loads": re.compile(r"^(?:LDG|LDGSTS)\.[\w.]*\b(?:128|256)\b"),
    "stores": re.compile(r"^STG\.[\w.]*\b(?:128|256)\b"),
}
_LOCAL: Final = re.compile(r"^(?:LDL|STL)\b")
_SIGNATURE: Final = re.compile(r"__global__ void(?:\s+__launch_bounds__\(\d+\))?\s+(\w+)\(([^)]*)\)")
_POINTER: Final = re.compile(r"(const )?(?:uint4|float4)\*")
_MACRO_LOADS: Final = re.compile(r"(?:prefill|decode)_(?:bf16|fp16)_\d+|weight_only_\w+")
"""Kernels of macros that load 16 bytes at a time from pointers of another type."""


class KernelFacts(NamedTuple):
    """Readings of the log of a compiler for one kernel."""

    registers: int
    shared_bytes: int
    stack_bytes: int
    spilled_bytes: int


class Compiled(NamedTuple):
    """One file for one device by one compiler."""

    facts: Mapping[str, KernelFacts]
    code: Mapping[str, Sequence[str]]
    """Instructions of each kernel with their modifiers, in order."""


def compile_by_nvrtc(file: str, architecture: int) -> Compiled:
    """Compiles a file as the worker does it."""
    cubin, log = compiler.compile_with_log(file, architecture // 10, architecture % 10, b"--ptxas-options=-v")
    return Compiled(parse_log(log), disassemble(cubin))


def compile_by_nvcc(file: str, architecture: int) -> Compiled:
    """Compiles a file by nvcc; raises CalledProcessError for a warning."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.cubin"
        command = [shutil.which("nvcc") or "nvcc", "-std=c++17", f"-arch=sm_{architecture}", "-cubin"]
        command += ["-Werror", "all-warnings", "-Xptxas", "-v", "-o", str(out), str(KERNELS / file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return Compiled(parse_log(done.stderr), disassemble(out.read_bytes()))


def parse_log(log: str) -> dict[str, KernelFacts]:
    """Returns the readings of each kernel."""
    found = {}
    for part in log.split("Compiling entry function '")[1:]:
        stack, stores, loads = (
            int(_read_number(rf"(\d+) bytes {word}", part))
            for word in ("stack frame", "spill stores", "spill loads")
        )
        found[part.partition("'")[0]] = KernelFacts(
            registers=_read_number(r"Used (\d+) registers", part),
            shared_bytes=_read_number(r"(\d+) bytes smem", part),
            stack_bytes=stack,
            spilled_bytes=stores + loads,
        )
    return found


def _read_number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found.group(1)) if found else 0


def disassemble(cubin: bytes) -> dict[str, list[str]]:
    """Returns the instructions of each kernel of a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [find_nvdisasm(), "-c", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[str]] = {}
    for part in text.split("\n.text.")[1:]:
        name = part.partition(":")[0]
        found[name] = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)", part, re.MULTILINE)
    return found


def find_nvdisasm() -> str:
    """Returns the path of nvdisasm, of its package or of a toolkit."""
    packaged = [file for file in files("nvidia-cuda-nvdisasm") or () if file.name == "nvdisasm"]
    return str(packaged[0].locate())


def list_problems(file: str, compiled: Compiled) -> list[str]:
    """Returns what the code of a file lacks of what its source says, and what it has in local memory."""
    claims = list_claims((KERNELS / file).read_text("utf-8"))
    problems = []
    for name, facts in compiled.facts.items():
        code = compiled.code[name]
        if facts.stack_bytes or facts.spilled_bytes or any(map(_LOCAL.match, code)):
            problems.append(f"{name} keeps {facts.stack_bytes} bytes and spills {facts.spilled_bytes}")
        expected = find_multiply(name)
        if (used := list_multiplies(code)) != ([expected] if expected else []):
            problems.append(f"{name} multiplies by {used}, not {expected}")
        problems += [
            f"{name} has no {claim} of 16 bytes"
            for claim in claims.get(name, ["loads"] if _MACRO_LOADS.fullmatch(name) else [])
            if not any(map(_WIDE[claim].match, code))
        ]
        if (most := count_in_flight(code)) < _IN_FLIGHT.get(name, 0):
            problems.append(f"{name} has {most} loads in flight")
    return problems


def list_claims(source: str) -> dict[str, list[str]]:
    """Returns the accesses of 16 bytes that each kernel has to have, by the pointers that it takes."""
    claims = {}
    for name, parameters in _SIGNATURE.findall(source):
        constant = [bool(each) for each in _POINTER.findall(parameters)]
        claims[name] = ["loads"] * (True in constant) + ["stores"] * (False in constant)
    return claims


def find_multiply(name: str) -> str | None:
    """Returns the instruction of tensor cores by which a kernel has to multiply, or None."""
    return next((each for pattern, each in _MULTIPLIES.items() if re.fullmatch(pattern, name)), None)


def list_multiplies(code: Sequence[str]) -> list[str]:
    """Returns the instructions of tensor cores in a kernel."""
    return sorted({each for each in code if _TENSOR.match(each)})


def count_in_flight(code: Sequence[str]) -> int:
    """Returns the most loads of 16 bytes between which nothing is stored and nothing jumps."""
    most = now = 0
    for each in code:
        if _WIDE["loads"].match(each):
            now += 1
        elif each.startswith(("STG", "BRA", "EXIT")):
            now = 0
        most = max(most, now)
    return most


COMPILERS: Final = {"NVRTC": compile_by_nvrtc, "nvcc": compile_by_nvcc}


class Row(NamedTuple):
    """One file for one device by one compiler, with its problems."""

    compiler: str
    file: str
    architecture: int
    compiled: Compiled
    problems: list[str]


def inspect(job: tuple[str, str, int]) -> Row:
    """Compiles one file once."""
    name, file, architecture = job
    compiled = COMPILERS[name](file, architecture)
    return Row(*job, compiled, list_problems(file, compiled))


def digest(file: str, *more: Path) -> str:
    """Returns a digest of a file, of the headers that it includes, and of ``more`` files."""
    source = (KERNELS / file).read_text("utf-8")
    headers = [KERNELS / name for name in re.findall(r'^#include "([\w.]+)"', source, re.MULTILINE)]
    texts = [source.encode(), *(path.read_bytes() for path in (*headers, *more))]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:12]


def list_files() -> list[str]:
    """Returns the files of kernels."""
    return sorted(path.name for path in KERNELS.glob("*.cu"))


def write_page(rows: Sequence[Row]) -> str:
    """Returns the page."""
    by_nvrtc = {(row.file, row.architecture): row.compiled for row in rows if row.compiler == "NVRTC"}
    lines = [_INTRODUCTION.format(nvrtc=version("nvidia-cuda-nvrtc"), nvcc=read_nvcc_version())]
    heads = ["kernel", *(f"sm_{each}" for each in ARCHITECTURES), "shared bytes", "multiplies by"]
    for file in list_files():
        lines += [f"## {file}", "", f"Source and headers: `{digest(file)}`.", ""]
        lines += [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(ARCHITECTURES) + 1)}---|"]
        lines += list_rows({each: by_nvrtc[file, each] for each in ARCHITECTURES})
        lines.append("")
    return "\n".join(lines)


def list_rows(compiled: Mapping[int, Compiled]) -> Iterator[str]:
    """Returns a line for each kernel of a file: registers by device, shared memory, instructions."""
    for name in sorted(compiled[80].facts):
        facts = [each.facts[name] for each in compiled.values()]
        multiplies = Counter(each for one in compiled.values() for each in list_multiplies(one.code[name]))
        cells = [f"`{name}`", *(str(each.registers) for each in facts)]
        cells.append(str(max(each.shared_bytes for each in facts)))
        cells.append(", ".join(f"`{each}`" for each in multiplies) or "-")
        yield f"| {' | '.join(cells)} |"


def read_nvcc_version() -> str:
    """Returns the version of nvcc."""
    command = [shutil.which("nvcc") or "nvcc", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"V(\d[\d.]*)", said)
    return found.group(1) if found else "of an unknown version"


_DEVICES = "\n".join(f"| sm_{each} | {names} |" for each, names in ARCHITECTURES.items())
_PRODUCTS = "\n".join(
    f"| {name} | `{mode.compute}` | {'.'.join(map(str, mode.capability))} |" for name, mode in KINDS.items()
)
_INTRODUCTION: Final = f"""# Kernels of the worker, as they are compiled

`make gpu-kernels` compiles every kernel of `service/worker/kernels` for every device by NVRTC {{nvrtc}}, as
the worker does it, and by nvcc {{nvcc}} with warnings as errors, and reads log and machine code of each. It
writes this page only if all of this holds, by both compilers:

- no kernel has a stack frame, spills a register or touches local memory;
- attention of bf16 and fp16 and products with weights of 4 bits multiply by the instruction below, and no
  other kernel by tensor cores;
- kernels that take pointers to 16 bytes load and store 16 bytes at a time; attention of 16 bits and products
  with weights of 4 bits load so;
- streams and caches whose threads go on start four loads of 16 bytes before they store, products with weights
  of 4 bits as many.

`tests/worker/cuda/test_gpu_kernels.py` holds a sample to it, and this page to the sources and to the version
of NVRTC. Columns by device are registers of a thread, by NVRTC.

| | devices |
|---|---|
{_DEVICES}

Products are calls of cublasLtMatmul, transforms are calls of cuFFT. Those choose kernels of their own, which
are not compiled here.

| products of | compute type | capability |
|---|---|---|
{_PRODUCTS}
"""


def main() -> int:
    """Compiles everything and writes the page. Returns 1 if a kernel is not as its source says."""
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(inspect, product(COMPILERS, list_files(), ARCHITECTURES)))
    for row in rows:
        for problem in row.problems:
            sys.stderr.write(f"{row.compiler}, {row.file}, sm_{row.architecture}: {problem}\n")
    if any(row.problems for row in rows):
        return 1
    PAGE.write_text(write_page(rows), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
