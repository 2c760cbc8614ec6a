"""The page of the kernels as HIP, and what is read from assembly; `make hip-kernels` compiles them."""

from bench import hip_kernels
from bench.hip_kernels import HipFacts
from tests.worker.cuda import host_kernels

ASSEMBLY = """
stream_copy:
\tglobal_load_dwordx4 v[0:3], v[0:1], off
\tglobal_store_dword v[4:5], v0, off
\t.amdhsa_kernel stream_copy
\t.end_amdhsa_kernel
amdhsa.kernels:
  - .agpr_count:     0
    .group_segment_fixed_size: 16
    .name:           stream_copy
    .private_segment_fixed_size: 80
    .sgpr_spill_count: 1
    .vgpr_count:     38
    .vgpr_spill_count: 2
amdhsa.target:   amdgcn-amd-amdhsa--gfx90a
amdhsa.version:
  - 1
  - 2
"""


def test_the_page_is_of_these_sources_and_lists_every_kernel():
    """Of another text, run `make hip-kernels`."""
    page = hip_kernels.PAGE.read_text("utf-8")
    for file in hip_kernels.list_compiled():
        section = page.partition(f"## {file}\n")[2].partition("\n## ")[0]
        assert f"`{hip_kernels.build_digest(file)}`" in section
        assert {name for name in host_kernels.names_in(file) if f"| `{name}` |" not in section} == set()
    assert not any(f"## {file}" in page for file in hip_kernels.LEFT_OUT)


def test_what_a_kernel_keeps_in_memory_and_what_it_lacks_are_problems():
    assert hip_kernels.parse_facts(ASSEMBLY) == {"stream_copy": HipFacts(38, 16, 80, 3)}
    assert hip_kernels.list_problems("stream.cu", ASSEMBLY) == [
        "stream_copy keeps 80 bytes and spills 3 registers",
        "stream_copy has no stores of 16 bytes",
    ]
