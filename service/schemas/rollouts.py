"""Generation of the sequences that a policy is trained on."""

from typing import Literal

from pydantic import MISSING

from service.schemas.base import Degree, Share, Size, StrictModel


class RolloutInput(StrictModel):
    """Generation of the sequences of ppo and grpo. Prompt and response together are `sequence_length`."""

    prompt_tokens: Size | MISSING = MISSING
    """Tokens of the prompt in a sequence. Defaults to the rest beside `response_tokens`, else to half the
    sequence."""
    response_tokens: Size | MISSING = MISSING
    """Mean tokens of a sequence that are generated. Defaults to the rest beside `prompt_tokens`."""
    longest_response_tokens: Size | MISSING = MISSING
    """Tokens of the longest response of a rollout; engines work until it ends. Defaults to
    `response_tokens`."""
    samples_per_prompt: Degree | MISSING = MISSING
    """Sequences that begin with the same prompt (the group of grpo). Defaults to 8 for grpo, else to 1."""
    steps_per_rollout: Degree = 1
    """Optimizer steps of one rollout: its sequences over the global batch."""
    epochs: Degree = 1
    """Number of times that each sequence of a rollout is trained on."""
    placement: Literal["colocated", "separate"] = "colocated"
    """`colocated` if the devices that train also generate, in turn; `separate` if other devices of the
    cluster do."""
    accelerator_count: Degree | MISSING = MISSING
    """Devices of the cluster that generate and do not train. Required for the placement `separate`, and
    allowed only there."""
    asynchronous: bool = False
    """Set to true to generate a rollout while the one before is trained on. Allowed only for the placement
    `separate`."""
    tensor: Degree | MISSING = MISSING
    """Devices of one replica of the engine. Defaults to the fewest that hold the model and some sequences."""
    memory_fraction: Share | MISSING = MISSING
    """Share of a device that the engine takes. Defaults to 0.5 beside training (verl), else to 0.9 (vLLM)."""
