"""Blocks of the stages of a pipeline, and rounding of limits to whole numbers."""

import math

from service.planning.figures import larger, smaller
from service.planning.models.profile import BlockProfile, ModelProfile
from service.planning.parallelism import Parallelism


def stage_start(profile: ModelProfile, layout: Parallelism, stage: int) -> int:
    """Returns the first block of ``stage``.

    Stages differ by one block at most, the first being the deepest.
    """
    return -(-stage * profile.block_count // layout.pipeline)


def stage_share(profile: ModelProfile, layout: Parallelism) -> float:
    """Returns the share of the blocks that the first stage holds, which is the largest."""
    return stage_start(profile, layout, 1) / max(profile.block_count, 1)


def count_blocks_within(block: BlockProfile, start: int, end: int) -> float:
    """Returns the repetitions of ``block`` among the single blocks from ``start`` to before ``end``."""
    last = smaller(end, block.start + block.repeats)
    return larger(0.0, last - larger(start, block.start))


def round_down_units(limit: float) -> int:
    """Rounds the limit down to a count."""
    return max(0, math.floor(min(limit, float(2**53 - 1))))
