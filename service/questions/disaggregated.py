"""Serving whose prompts and answers are computed on devices of their own."""

from typing import Literal

from pydantic import MISSING

from service.questions.base import Degree, Input, Size
from service.questions.references import AcceleratorReference, LinkReference, ParallelismInput


class PoolInput(Input):
    """Replicas of one kind: all compute prompts, or all generate."""

    parallelism: ParallelismInput = ParallelismInput()
    """Layout of one replica; `data`, attention ranks that share its experts, defaults to `expert`."""
    replicas: Degree = 1
    """Equal replicas, with devices of their own."""
    accelerator: AcceleratorReference | MISSING = MISSING
    """Defaults to that of the cluster."""
    max_num_seqs: Degree | MISSING = MISSING
    """Most requests of one replica in one iteration. Defaults to that of the engine."""
    max_batched_tokens: Size | MISSING = MISSING
    """Most tokens of one iteration. Defaults to that of the engine."""


class DisaggregatedInput(Input):
    """Prefill and decode on replicas of their own; the KV cache of a prompt goes from one to the other."""

    prefill: PoolInput
    """Replicas that compute prompts."""
    decode: PoolInput
    """Replicas that generate."""
    transfer_link: LinkReference | MISSING = MISSING
    """What carries the KV cache, for each device; defaults to the cluster's link between nodes, and to that
    inside a node where all replicas stand in one."""
    transfer: Literal["by_layer", "whole"] = "by_layer"
    """Whether the cache of a layer leaves while later layers compute, or all of it behind the last."""
