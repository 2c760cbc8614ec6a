"""Layouts that a model, a batch and a cluster allow, by the first rule that a layout breaks.

In the order in which they are checked: degrees that make up the ``devices``; ``heads``, ``blocks`` and
``experts`` of the model; the ``sequence``; the ``batch``; the fast ``link``.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.planning.models.profile import ModelProfile
from service.planning.parallelism import PipelineSchedule, Sharding
from service.planning.search.layouts import LayoutArray, LayoutChoice, Mask

RULES = ("devices", "heads", "blocks", "experts", "sequence", "batch", "link")
"""Names of the rules in their order."""


class SearchShape(NamedTuple):
    """Sizes that a layout has to divide: a model, sequences and a batch, and devices of one fast link."""

    profile: ModelProfile
    sequence_length: int
    global_batch_size: int
    domain: int
    single_micro_batch: bool = False
    """True if a step has a single micro-batch: the optimizer runs in its backward pass."""


def _find_broken_rules(layouts: LayoutArray, choice: LayoutChoice, of: SearchShape) -> Mapping[str, Mask]:
    tensor, pipeline, context, expert = layouts.tensor, layouts.pipeline, layouts.context, layouts.expert
    profile, replicas = of.profile, layouts.data * context
    heads = np.zeros(layouts.number, dtype=np.bool_)
    for work in profile.attention:
        heads |= work.query_heads % tensor != 0
    experts = layouts.data % expert != 0
    experts |= (profile.expert_count % expert != 0) if profile.expert_count else (expert > 1)
    devices = tensor * pipeline * context * layouts.data != layouts.devices
    if choice.sharding is Sharding.HYBRID and choice.group_size is not None:
        devices |= replicas % choice.group_size != 0
    shared = tensor if choice.sequence_parallel else 1
    held = layouts.micro_batch_size * layouts.data
    batch = held * layouts.micro_batches != of.global_batch_size
    if choice.schedule is PipelineSchedule.INTERLEAVED:
        # Groups of as many micro-batches as stages pass each part in turn (Narayanan et al. 2021, 2.2).
        batch |= layouts.micro_batches % pipeline != 0
    if of.single_micro_batch:
        batch |= layouts.micro_batches > 1
    return {
        "devices": devices,
        "heads": heads,
        "blocks": _is_too_deep(layouts, profile.block_count),
        "experts": experts,
        "sequence": of.sequence_length % (context * shared) != 0,
        "batch": batch,
        "link": (tensor > of.domain) | (of.domain % np.minimum(tensor, of.domain) != 0),
    }


_LEFT_OUT = 2
"""Blocks that table and head replace in the first and in the last chunk of an interleaved pipeline

(Llama 3 2024, section 3.3.2).
"""


def _is_too_deep(layouts: LayoutArray, blocks: int) -> Mask:
    """Returns a mask of layouts with stages without a block, or more chunks than table and head allow."""
    parts = layouts.pipeline * layouts.virtual_stages
    return (layouts.pipeline > max(blocks, 1)) | ((layouts.virtual_stages > 1) & (parts > blocks + _LEFT_OUT))


def apply_rules(layouts: LayoutArray, choice: LayoutChoice, of: SearchShape) -> tuple[Mask, Counter[str]]:
    """Returns a mask of layouts that break no rule, and the number that break each rule first."""
    left: NDArray[np.bool_] = np.ones(layouts.number, dtype=np.bool_)
    counts: Counter[str] = Counter()
    broken = _find_broken_rules(layouts, choice, of)
    for rule in RULES:
        counts[rule] = int(np.count_nonzero(left & broken[rule]))
        left &= ~broken[rule]
    return left, +counts
