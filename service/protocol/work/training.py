"""What training and serving are made of: steps of optimizers, gradients, and whole small models."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from service.protocol.base import ProtocolMessage
from service.protocol.work.base import INT64, Elements, MatrixSide, WorkAmount

SmallCount = Annotated[int, Field(ge=1, le=1024, json_schema_extra=INT64)]
OPTIMIZER_BYTES = {"adamw": 28, "sgd_momentum": 20}
"""Of a parameter: its gradient, and its master weight and states of 4 bytes, read; these and a weight of 2
bytes written. A gradient is 2 bytes wide: adamw 2 + 3 x 4 + 3 x 4 + 2, momentum 2 + 2 x 4 + 2 x 4 + 2."""


class OptimizerStepWork(ProtocolMessage):
    """One update of parameters in mixed precision, in one fused kernel."""

    kind: Literal["optimizer_step"]
    optimizer: Literal["adamw", "sgd_momentum"]
    """Rule of the update."""
    parameters: Elements
    """Parameters that are updated."""

    def count_work(self) -> WorkAmount:
        """Bytes of all that is read and written once."""
        return WorkAmount(moved_bytes=OPTIMIZER_BYTES[self.optimizer] * self.parameters)


class GradientAccumulationWork(ProtocolMessage):
    """Gradients of a micro-batch added to the sum of those before it."""

    kind: Literal["gradient_accumulation"]
    gradient_dtype: Literal["bf16", "fp32"]
    """Type of the gradients that are added."""
    parameters: Elements
    """Gradients."""

    def count_work(self) -> WorkAmount:
        """A gradient is read, its sum of 4 bytes read and written."""
        return WorkAmount(moved_bytes=((2 if self.gradient_dtype == "bf16" else 4) + 8) * self.parameters)


class GradientCompressionWork(ProtocolMessage):
    """Gradients of 4 bytes made smaller before they are sent, with the error kept for the next step."""

    kind: Literal["gradient_compression"]
    method: Literal["int8", "sign", "top_k"]
    """8 bits with a scale a block of 1024, one bit with a scale, or the largest of them with their places."""
    parameters: Elements
    """Gradients."""
    kept_share: Annotated[float, Field(gt=0, le=1)] = 0.01
    """Of `top_k`: the share that is sent."""

    def count_work(self) -> WorkAmount:
        """The gradients and the error are read, the error is written: what any method moves at least."""
        return WorkAmount(moved_bytes=12 * self.parameters)


class _DecoderWork(ProtocolMessage):
    """A small decoder as Llama is built: RMS norm, grouped attention with rotation, gated feed-forward."""

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
    """Tokens that there are."""
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
    """Whether the activations of a layer are computed again in the backward pass."""

    def count_work(self) -> WorkAmount:
        """6 P a token and 12 L h d s / 2 of causal attention (PaLM, appendix B), recomputation not counted.

        So the rate is that of the model's FLOPs, and two strategies stand beside each other.
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
    """Tokens made for each sequence in one execution."""
    uses_graph: bool = True
    """Whether the launches of a step are replayed from a graph."""

    def count_work(self) -> WorkAmount:
        """Weights once a step and the cache as it is at the beginning; the time is that of a step."""
        cache = 2 * self.layers * self.kv_heads * self.head_size * self.context_tokens * self.batch
        moved = self.element_bytes * (self.matrix_parameters + cache) * self.steps
        return WorkAmount(
            moved_bytes=moved, flops=2 * self.matrix_parameters * self.batch * self.steps, parts=self.steps
        )
