"""Claims of the notes: those that no other test holds, and the table of all."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from service.planning.hardware.storage import PLAIN_FORMATS
from service.planning.memory.activations import activation_bytes_per_token
from service.planning.memory.serving import inference_weight_bytes
from service.planning.memory.training import estimate_training_memory
from service.planning.models.architecture import Architecture
from service.planning.models.layers import EmbeddingTable
from service.planning.models.positions import SampleShape, block_positions
from service.planning.models.profile import build_profile, build_profile_from_count
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat
from service.planning.training import count_flops_per_token
from service.planning.workload import AttentionKernel, Recomputation
from tests.planning.test_memory import gpt_block, training
from tests.shapes import catalog_architecture

ROOT = Path(__file__).parents[1]
CLAIMS = {
    *(f"C{n:02}" for n in range(1, 38)),
    *(f"M{n:02}" for n in range(1, 19)),
    *(f"S{n:02}" for n in range(1, 31)),
    *(f"D{n:02}" for n in range(1, 23)),
    *(f"G{n:02}" for n in range(1, 24)),
    *(f"T{n:03}" for n in range(30, 64)),
}
TABLE = (ROOT / "docs/methods/claims.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([CMSDTG]\d+) \| .+ \| (.+) \|$", TABLE, flags=re.MULTILINE)


def test_m17_a_chip_of_900_mb_holds_450_million_parameters():
    def held(count):
        return inference_weight_bytes(
            build_profile_from_count(count), PLAIN_FORMATS[NumberFormat.FP16], Parallelism()
        ).total

    assert held(450_000_000) == 900e6
    assert held(450_000_001) > 900e6


def test_m18_complex_vectors_are_twice_as_long():
    """A complex number is two real ones; a table of DistMult against one of ComplEx."""
    real, complex_ = (
        build_profile(Architecture(layers=(EmbeddingTable(rows=14_541, size=size),))).parameter_count
        for size in (200, 400)
    )
    assert complex_ == 2 * real


def test_t040_a_vision_transformer_does_not_fit_at_4096_images():
    """Blocks alone, without the patches' own layers: the claim's 64 GB, accepted from 50 to 400."""
    architecture = catalog_architecture("vit-base-patch16-224")
    (block,) = build_profile(architecture).blocks
    stack = next(
        places for places in block_positions(architecture, SampleShape(height=224)) if len(places.layers) > 3
    )
    stored = activation_bytes_per_token(
        block.activations, element_bytes=2.0, kernel=AttentionKernel.FLASH
    ).compute_bytes(stack.entering)
    held = 4096 * stack.entering * block.repeats * stored
    assert stack.entering == 14 * 14 + 1
    assert 50e9 < held < 400e9


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_t049_recomputing_saves_half_or_more_of_the_activations(k):
    profile = build_profile(Architecture(layers=(gpt_block(1024, 16, 24),)))

    def activations(**changes):
        return estimate_training_memory(profile, training(**changes), Parallelism())[0].components[
            "activations"
        ]

    again = activations(recomputation=Recomputation.EVERY_K, interval=k)
    assert 0.5 < 1 - again / activations() < 0.95


@pytest.mark.parametrize(("hidden", "heads", "length"), [(768, 12, 1024), (1024, 16, 512), (12288, 96, 2048)])
def test_t051_selective_recomputation_costs_a_tenth_and_more(hidden, heads, length):
    """The claim's 10 to 15% of a step, accepted from 5 to 20."""
    profile = build_profile(Architecture(layers=(gpt_block(hidden, heads, 12),)))
    workload = training(recomputation=Recomputation.SELECTIVE, sequence_length=length)
    flops = count_flops_per_token(profile, workload)
    assert 0.05 < flops.recomputation / flops.model < 0.20


@cache
def functions(path: Path) -> frozenset[str]:
    """Names of all functions and methods of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_claim_stands_in_the_table_once():
    assert sorted(claim for claim, _ in ROWS) == sorted(CLAIMS)


@pytest.mark.parametrize(("claim", "held_by"), ROWS)
def test_what_the_table_names_exists(claim, held_by):
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", held_by)
    decisions = re.findall(r"\(\.\./decisions/([\w-]+\.md)\)", held_by)
    assert named or decisions
    for path, function in named:
        assert function in functions(ROOT / path)
    for page in decisions:
        assert claim in (ROOT / "docs/decisions" / page).read_text(encoding="utf-8")
