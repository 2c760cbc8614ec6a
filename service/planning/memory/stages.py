"""Which blocks the stages of a pipeline hold, and how limits become whole numbers."""

import math

from service.planning.figures import larger, smaller
from service.planning.models.profile import BlockProfile, ModelProfile
from service.planning.parallelism import Parallelism


def stage_start(profile: ModelProfile, layout: Parallelism, stage: int) -> int:
    """The first block of ``stage``; stages differ by one block at most, the first being the deepest."""
    return -(-stage * profile.block_count // layout.pipeline)


def stage_share(profile: ModelProfile, layout: Parallelism, stage: int = 0) -> float:
    """Share of the blocks that ``stage`` holds; that of the first is the largest."""
    depth = stage_start(profile, layout, stage + 1) - stage_start(profile, layout, stage)
    return depth / max(profile.block_count, 1)


def count_blocks_within(block: BlockProfile, start: int, end: int) -> float:
    """How many repetitions of ``block`` stand among the single blocks from ``start`` to before ``end``."""
    last = smaller(end, block.start + block.repeats)
    return larger(0.0, last - larger(start, block.start))


def round_down_units(limit: float) -> int:
    """The limit rounded down to a count."""
    return max(0, math.floor(min(limit, float(2**53 - 1))))
