"""`make hip-kernels`: the worker's kernels, compiled for AMD Instinct as HIP; writes docs/hip-kernels.md.

The compiler is the clang of the package `ziglang`; the argument is an interpreter that has it.
No ROCm and no GPU is needed: `bench/hip/runtime.h` stands for the headers of HIP, and nothing is run.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from bench.gpu_kernels import KERNELS, ROOT, digest, list_claims, list_files

PAGE: Final = ROOT / "docs" / "hip-kernels.md"
RUNTIME: Final = ROOT / "bench" / "hip" / "runtime.h"
ARCHITECTURES: Final = {"gfx90a": "MI210, MI250", "gfx942": "MI300, MI325", "gfx950": "MI350, MI355"}
INCLUDED: Final = (RUNTIME, KERNELS / "hip.h")
LEFT_OUT: Final = frozenset({"attention.cu", "weight_only.cu"})
"""Files in the machine language of NVIDIA."""
_WIDE: Final = {"loads": "global_load_dwordx4", "stores": "global_store_dwordx4"}
_COMMAND: Final = (
    "-x", "hip", "--offload-device-only", "-nogpuinc", "-nogpulib", "-std=c++17", "-O3", "-Wall", "-Werror",
    "-Wno-unused-function", *(word for path in INCLUDED for word in ("-include", str(path))), "-S", "-o", "-",
)  # fmt: skip


class HipFacts(NamedTuple):
    """Metadata of one kernel in an assembly."""

    registers: int
    shared_bytes: int
    private_bytes: int
    spilled: int


def compile_file(python: str, file: str, architecture: str) -> str:
    """Returns the assembly of a file; raises CalledProcessError for a warning."""
    command = [
        python,
        "-m",
        "ziglang",
        "clang",
        f"--offload-arch={architecture}",
        *_COMMAND,
        str(KERNELS / file),
    ]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def parse_facts(assembly: str) -> dict[str, HipFacts]:
    """Returns the metadata of each kernel of an assembly."""
    found = {}
    metadata = assembly.partition("amdhsa.kernels:")[2].partition("amdhsa.target:")[0]
    for part in metadata.split("\n  - ")[1:]:
        name = re.search(r"\.name: +(\w+)", part)
        if name is None:
            raise ValueError("a kernel has no name")
        spilled = _read_number("vgpr_spill_count", part) + _read_number("sgpr_spill_count", part)
        found[name.group(1)] = HipFacts(
            _read_number("vgpr_count", part),
            _read_number("group_segment_fixed_size", part),
            _read_number("private_segment_fixed_size", part),
            spilled,
        )
    return found


def _read_number(member: str, text: str) -> int:
    found = re.search(rf"\.{member}: +(\d+)", text)
    if found is None:
        raise ValueError(f"no {member}")
    return int(found.group(1))


def list_problems(file: str, assembly: str) -> list[str]:
    """Returns what a file keeps in private memory, and accesses of 16 bytes that it lacks."""
    claims = list_claims((KERNELS / file).read_text("utf-8"))
    problems = []
    for name, facts in parse_facts(assembly).items():
        if facts.private_bytes or facts.spilled:
            problems.append(f"{name} keeps {facts.private_bytes} bytes and spills {facts.spilled} registers")
        code = assembly.partition(f"\n{name}:")[2].partition(".end_amdhsa_kernel")[0]
        problems += [
            f"{name} has no {each} of 16 bytes" for each in claims.get(name, ()) if _WIDE[each] not in code
        ]
    return problems


def build_digest(file: str) -> str:
    """Returns a digest of a file, of its headers, and of what stands for the headers of HIP."""
    return digest(file, *INCLUDED)


def list_compiled() -> list[str]:
    """Returns the files that HIP compiles."""
    return [file for file in list_files() if file not in LEFT_OUT]


def write_rows(file: str, assemblies: Sequence[str]) -> Iterator[str]:
    """Returns the section of a file."""
    facts = [parse_facts(assembly) for assembly in assemblies]
    yield from (f"## {file}", "", f"Source and headers: `{build_digest(file)}`.", "")
    yield f"| kernel | {' | '.join(ARCHITECTURES)} | shared bytes |"
    yield f"|---|{'---:|' * (len(ARCHITECTURES) + 1)}"
    for name in sorted(facts[0]):
        cells = [f"`{name}`", *(str(each[name].registers) for each in facts)]
        yield f"| {' | '.join([*cells, str(max(each[name].shared_bytes for each in facts))])} |"
    yield ""


_DEVICES = "\n".join(f"| {each} | {names} |" for each, names in ARCHITECTURES.items())
_INTRODUCTION: Final = f"""# Kernels of the worker, compiled for AMD Instinct

`make hip-kernels` compiles the kernels of `service/worker/kernels` as HIP for three generations of AMD
Instinct, by the clang of the package `ziglang`, with warnings as errors. It writes this page only if no
kernel keeps anything in private memory or spills a register, and kernels that take pointers to 16 bytes
load and store 16 bytes at a time. `service/worker/kernels/hip.h` makes a warp of each half of a
wavefront, as kernels expect.

**Nothing of this has run**, and no node measures an AMD device: the protocol knows the devices `cuda` and
`cpu`. `bench/hip/runtime.h` stands for the headers of HIP. Reads of `cache.cu` go through the first
cache, which on NVIDIA they pass by. Attention and products with weights of 4 bits are left out: they are
written in the machine language of NVIDIA. A ROCm worker takes attention, products and transforms from
libraries, such as hipBLASLt and hipFFT.

Columns by device are vector registers of a thread.

| | devices |
|---|---|
{_DEVICES}
"""


def main() -> int:
    """Compiles everything and writes the page. Returns 1 if a kernel is not as its source says."""
    lines, problems = [_INTRODUCTION], []
    for file in list_compiled():
        assemblies = [compile_file(sys.argv[1], file, each) for each in ARCHITECTURES]
        lines += write_rows(file, assemblies)
        for architecture, assembly in zip(ARCHITECTURES, assemblies, strict=True):
            problems += [f"{file}, {architecture}: {each}" for each in list_problems(file, assembly)]
    if problems:
        sys.stderr.write("\n".join([*problems, ""]))
        return 1
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
