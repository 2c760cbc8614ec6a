"""Machine code of a sample of kernels; `make gpu-kernels` compiles all of them and writes the page.

Where a source or the compiler is not that of the page, a test fails until `make gpu-kernels` has passed.
"""

from importlib.metadata import version

import pytest

from bench import gpu_kernels
from bench.gpu_kernels import Compiled, KernelFacts
from tests.worker.cuda import host_kernels

FILES = gpu_kernels.list_files()
OLDEST, NEWEST = min(gpu_kernels.ARCHITECTURES), max(gpu_kernels.ARCHITECTURES)
SAMPLE = (("attention.cu", NEWEST), ("stream.cu", OLDEST), ("random.cu", NEWEST))
"""Files with every kind of claim, and one without any."""


@pytest.mark.parametrize(("file", "architecture"), SAMPLE)
def test_nothing_spills_and_instructions_are_those_that_the_source_says(file, architecture):
    compiled = gpu_kernels.compile_by_nvrtc(file, architecture)
    assert compiled.facts.keys() == compiled.code.keys() == set(host_kernels.names_in(file))
    assert all(facts.registers > 0 for facts in compiled.facts.values())
    assert gpu_kernels.list_problems(file, compiled) == []


@pytest.mark.parametrize(
    ("file", "name", "code", "spilled", "problem"),
    [
        ("stream.cu", "stream_copy", ["LDG.E.128"] * 4 + ["STG.E.128"], 8, "keeps 8 bytes and spills 8"),
        ("stream.cu", "stream_copy", ["LDG.E.128"] * 4 + ["STG.E.128", "LDL.64"], 0, "keeps 0 bytes"),
        ("stream.cu", "stream_copy", ["LDG.E.64"] * 8 + ["STG.E.128"], 0, "has no loads of 16 bytes"),
        ("stream.cu", "stream_copy", ["LDG.E.128"] * 4 + ["STG.E"], 0, "has no stores of 16 bytes"),
        ("stream.cu", "stream_copy", ["LDG.E.128", "STG.E.128"] * 4, 0, "has 1 loads in flight"),
        ("attention.cu", "prefill_bf16_64", ["LDGSTS.E.BYPASS.128", "FFMA"], 0, "multiplies by []"),
        (
            "attention.cu",
            "decode_fp16_128",
            ["LDG.E.128", "HMMA.16816.F32.BF16"],
            0,
            "multiplies by ['HMMA.16816.F32.BF16'], not HMMA.16816.F32",
        ),
        ("decoder.cu", "norm_bf16", ["IMMA.16832.S8.S8"], 0, "multiplies by ['IMMA.16832.S8.S8'], not None"),
    ],
)
def test_what_is_not_as_its_source_says_is_a_problem(file, name, code, spilled, problem):
    facts = KernelFacts(registers=32, shared_bytes=0, stack_bytes=spilled, spilled_bytes=spilled)
    found = gpu_kernels.list_problems(file, Compiled({name: facts}, {name: code}))
    assert f"{name} {problem}" in [each[: len(f"{name} {problem}")] for each in found]


def test_the_page_is_of_these_sources_and_of_this_compiler_and_lists_every_kernel():
    """Where it is not, run `make gpu-kernels`."""
    page = gpu_kernels.PAGE.read_text("utf-8")
    assert f"by NVRTC {version('nvidia-cuda-nvrtc')}," in page
    for file in FILES:
        section = page.partition(f"## {file}\n")[2].partition("\n## ")[0]
        assert f"`{gpu_kernels.digest(file)}`" in section
        assert {name for name in host_kernels.names_in(file) if f"| `{name}` |" not in section} == set()
