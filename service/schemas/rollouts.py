"""How a policy generates what it is trained on."""

from typing import Literal

from pydantic import MISSING

from service.schemas.base import Degree, Share, Size, StrictModel


class RolloutInput(StrictModel):
    """How ppo and grpo generate their sequences; prompt and response together are sequence_length."""

    prompt_tokens: Size | MISSING = MISSING
    """Tokens of a sequence that are given. Defaults to what response_tokens leave, else to half of it."""
    response_tokens: Size | MISSING = MISSING
    """Tokens of a sequence that are generated, on average. Defaults to what prompt_tokens leave."""
    longest_response_tokens: Size | MISSING = MISSING
    """Tokens of the longest response of a rollout, until whose end engines work. Defaults to
    response_tokens."""
    samples_per_prompt: Degree | MISSING = MISSING
    """Sequences that begin with the same prompt: the group of grpo. Defaults to 8 for grpo, else to 1."""
    steps_per_rollout: Degree = 1
    """Optimizer steps that a rollout has sequences for: its sequences over the global batch."""
    epochs: Degree = 1
    """How often each sequence of a rollout is trained on."""
    placement: Literal["colocated", "separate"] = "colocated"
    """Whether the devices that train generate as well, in turn, or others of the cluster do."""
    accelerator_count: Degree | MISSING = MISSING
    """Devices of the cluster that generate and do not train; belongs to separate, and that needs it."""
    asynchronous: bool = False
    """Whether a rollout is generated while the one before is trained on; belongs to separate."""
    tensor: Degree | MISSING = MISSING
    """Devices of one replica of the engine. Defaults to as few as hold the model and some sequences."""
    memory_fraction: Share | MISSING = MISSING
    """Share of a device that the engine takes; defaults to 0.5 beside training (verl), else to 0.9 (vLLM)."""
