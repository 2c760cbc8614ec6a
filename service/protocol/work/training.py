"""Work of training and serving: steps of optimizers, gradients, and whole small models."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from service.protocol.work.base import INT64, Elements, MatrixSide, Work, WorkAmount

SmallCount = Annotated[int, Field(ge=1, le=1024, json_schema_extra=INT64)]
CHECKED_SECONDS = 4e-9
"""Seconds of one core in which a check reads a weight and multiplies it with at most 16 tokens."""
OPTIMIZER_BYTES = {"adamw": 28, "sgd_momentum": 20}
"""Bytes of a parameter that an update moves: its gradient, master weight and states are read, and the last
two and a weight of 2 bytes are written. A gradient has 2 bytes, master weight and states 4 each: adamw 2 + 3
x 4 + 3 x 4 + 2, momentum 2 + 2 x 4 + 2 x 4 + 2."""


class OptimizerStepWork(Work):
    """One update of parameters in mixed precision, in one fused kernel."""

    kernel_bound: ClassVar[Literal["memory"]] = "memory"
    halved: ClassVar[Mapping[str, int]] = {"parameters": 2**20}

    kind: Literal["optimizer_step"]
    optimizer: Literal["adamw", "sgd_momentum"]
    """Rule of the update."""
    parameters: Elements
    """Parameters that are updated."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes of all that is read and written once."""
        return WorkAmount(moved_bytes=OPTIMIZER_BYTES[self.optimizer] * self.parameters)


class GradientAccumulationWork(Work):
    """Gradients of a micro-batch added to the sum of those before it."""

    kernel_bound: ClassVar[Literal["memory"]] = "memory"
    halved: ClassVar[Mapping[str, int]] = {"parameters": 2**20}

    kind: Literal["gradient_accumulation"]
    gradient_dtype: Literal["bf16", "fp32"]
    """Type of the gradients that are added."""
    parameters: Elements
    """Gradients."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes of each gradient, read, and of its sum of 4 bytes, read and written."""
        return WorkAmount(moved_bytes=((2 if self.gradient_dtype == "bf16" else 4) + 8) * self.parameters)


class GradientCompressionWork(Work):
    """Gradients of 4 bytes made smaller before they are sent, with the error kept for the next step."""

    kernel_bound: ClassVar[Literal["memory"]] = "memory"
    halved: ClassVar[Mapping[str, int]] = {"parameters": 2**20}

    kind: Literal["gradient_compression"]
    method: Literal["int8", "sign", "top_k"]
    """8 bits with a scale for each block of 1024, one bit with a scale, or the largest with their places."""
    parameters: Elements
    """Gradients."""
    kept_share: Annotated[float, Field(gt=0, le=1)] = 0.01
    """Share of the gradients that `top_k` sends."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes that any method moves at least: gradients and error read, the error written."""
        return WorkAmount(moved_bytes=12 * self.parameters)


class _DecoderWork(Work):
    """A small decoder built as Llama is: RMS norm, grouped attention with rotation, gated feed-forward."""

    kernel_bound: ClassVar[Literal["arithmetic"]] = "arithmetic"
    halved: ClassVar[Mapping[str, int]] = {"layers": 1}

    layers: SmallCount
    """Layers, all alike."""
    hidden: MatrixSide
    """Elements of a token."""
    query_heads: SmallCount
    """Heads of a query."""
    kv_heads: SmallCount
    """Heads of keys and values."""
    head_size: Literal[64, 128]
    """Elements of a head."""
    feed_forward: MatrixSide
    """Elements between the matrices of the feed-forward network."""
    vocabulary: MatrixSide
    """Tokens of the vocabulary."""
    dtype: Literal["fp32", "bf16"]
    """Type of weights and activations."""

    @model_validator(mode="after")
    def _validate_heads(self) -> "_DecoderWork":
        if self.query_heads % self.kv_heads:
            raise ValueError("kv_heads must divide query_heads")
        return self

    @property
    def matrix_parameters(self) -> int:
        """Parameters that a token is multiplied with, the head included and the table of tokens not."""
        heads = self.head_size * (2 * self.query_heads + 2 * self.kv_heads)
        layer = self.hidden * (heads + 3 * self.feed_forward)
        return self.layers * layer + self.hidden * self.vocabulary

    @property
    def checking_seconds(self) -> float:
        """Seconds of a check that goes once through all weights."""
        return CHECKED_SECONDS * self.matrix_parameters

    @property
    def element_bytes(self) -> int:
        """Bytes of a weight."""
        return 4 if self.dtype == "fp32" else 2


class TrainingStepWork(_DecoderWork):
    """A whole step of a small decoder: forward, backward, accumulation and the optimizer."""

    kind: Literal["training_step"]
    sequence_length: MatrixSide
    """Tokens of a sequence."""
    micro_batch_size: SmallCount
    """Sequences of a micro-batch."""
    accumulation_steps: SmallCount = 1
    """Micro-batches of a step."""
    recomputation: Literal["none", "full"] = "none"
    """Recomputation of the activations of a layer in the backward pass."""

    @property
    def checking_seconds(self) -> float:
        """Seconds of a check that goes through all weights forward and backward."""
        return 2 * super().checking_seconds

    def count_work(self) -> WorkAmount:
        """Returns 6 P FLOP a token and 12 L h d s / 2 of causal attention (PaLM, appendix B).

        Recomputation is not counted, so that rates are of the model's FLOPs and strategies can be compared.
        """
        tokens = self.sequence_length * self.micro_batch_size * self.accumulation_steps
        attention = 6 * self.layers * self.query_heads * self.head_size * self.sequence_length
        return WorkAmount(flops=tokens * (6 * self.matrix_parameters + attention))


class DecodeLoopWork(_DecoderWork):
    """Tokens of a small decoder, one after the other for each sequence of a batch."""

    kind: Literal["decode_loop"]
    batch: SmallCount
    """Sequences."""
    context_tokens: MatrixSide
    """Tokens in the cache of a sequence before the first step."""
    steps: Annotated[int, Field(ge=1, le=4096, json_schema_extra=INT64)]
    """Tokens that one execution makes for each sequence."""
    uses_graph: bool = True
    """True if the launches of a step are replayed from a graph."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes of the weights once a step and of the first cache; a part is a step."""
        cache = 2 * self.layers * self.kv_heads * self.head_size * self.context_tokens * self.batch
        moved = self.element_bytes * (self.matrix_parameters + cache) * self.steps
        return WorkAmount(
            moved_bytes=moved, flops=2 * self.matrix_parameters * self.batch * self.steps, parts=self.steps
        )


ModelWork = (
    OptimizerStepWork | GradientAccumulationWork | GradientCompressionWork | TrainingStepWork | DecodeLoopWork
)
