"""What the model is asked to do."""

from typing import Annotated, Literal

from pydantic import MISSING, Field

from service.planning.precision import Optimizer, TrainingPrecision
from service.planning.workload import AttentionKernel, Recomputation
from service.questions.base import Count, Degree, Input, Positive, Share, Size, Text


class Software(Input):
    """A framework or an engine by name and version."""

    name: Text
    version: Text | MISSING = MISSING
    """As it calls itself."""


class RecomputationInput(Input):
    """Which activations the backward pass computes again."""

    strategy: Recomputation
    """Which activations are computed again."""


class Adaptation(Input):
    """Which parameters are trained."""

    kind: Literal["full"]
    """All parameters are trained."""


class TrainingWorkloadInput(Input):
    """A training run. One of the three totals sets its length."""

    kind: Literal["training"]
    sequence_length: Size = 4096
    """Tokens per sequence."""
    micro_batch_size: Degree = 1
    """Sequences that a data-parallel replica processes at a time."""
    global_batch_size: Count | MISSING = MISSING
    """Sequences per optimizer step over all replicas."""
    gradient_accumulation_steps: Degree | MISSING = MISSING
    """Micro-batches per optimizer step. Left out, they follow from the global batch size; without one
    they are 1, or four for each pipeline stage."""
    precision: TrainingPrecision | MISSING = MISSING
    """bf16 and fp16 keep an FP32 master copy, pure_bf16 does not. Defaults to bf16, or where the
    accelerator has no bf16 rate to fp16, then fp32."""
    optimizer: Optimizer = Optimizer.ADAMW
    """Sets the state kept for each parameter."""
    attention: AttentionKernel = AttentionKernel.FLASH
    """Whether the attention kernel stores the score matrix (standard) or not (flash)."""
    recomputation: RecomputationInput = RecomputationInput(strategy=Recomputation.NONE)
    """None when left out."""
    adaptation: Adaptation = Adaptation(kind="full")
    """All parameters when left out."""
    objective: Literal["pretraining", "supervised"] = "pretraining"
    """What the loss is taken on; both cost the same."""
    total_tokens: Count | MISSING = MISSING
    """Tokens of the whole run."""
    total_steps: Count | MISSING = MISSING
    """Optimizer steps of the whole run."""
    total_samples: Count | MISSING = MISSING
    """Sequences of the whole run."""
    framework: Software | MISSING = MISSING
    """Framework that trains; no figure depends on it yet."""


class FixedLength(Input):
    """Every request has the same length."""

    distribution: Literal["fixed"]
    tokens: Size
    """Tokens of every request."""


class Engine(Input):
    """The serving engine and the settings that bound a batch."""

    name: Text
    version: Text | MISSING = MISSING
    """As it calls itself."""
    cuda_graphs: bool = True
    """Whether a decode step is launched as one graph; no figure depends on it yet."""
    block_tokens: Annotated[int, Field(ge=1, le=4096, json_schema_extra={"format": "int64"})] = 16
    """Tokens of one block of the paged KV cache."""
    max_num_seqs: Degree | MISSING = MISSING
    """Most requests of one replica in one iteration."""
    max_batched_tokens: Size | MISSING = MISSING
    """Most tokens of one iteration; defaults to 8192."""


class HorizonInput(Input):
    """How long the service runs. Give one."""

    duration_seconds: Positive | MISSING = MISSING
    """How long the service runs."""
    total_requests: Count | MISSING = MISSING
    """How many requests it answers."""
    total_output_tokens: Count | MISSING = MISSING
    """How many tokens it generates."""


class InferenceWorkloadInput(Input):
    """A served model under a constant number of requests at a time."""

    kind: Literal["inference"]
    weight_precision: Literal["fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4"] = "bf16"
    """Format that the weights are stored in."""
    kv_cache_precision: Literal["fp32", "fp16", "bf16", "fp8", "int8"] = "bf16"
    """Format that the KV cache is stored in."""
    input_tokens: Size | FixedLength = 1024
    """Tokens of a prompt."""
    output_tokens: Size | FixedLength = 256
    """Tokens that are generated for a prompt."""
    concurrency: Degree = 1
    """Requests at a time over the whole cluster."""
    engine: Engine | MISSING = MISSING
    """The serving engine."""
    scheduler: Literal["continuous"] = "continuous"
    """Requests join and leave the batch at every step."""
    memory_fraction: Share = 0.9
    """Share of the device's memory that the engine may use."""
    horizon: HorizonInput | MISSING = MISSING
    """Needed for cost and utility bill."""


WorkloadInput = Annotated[TrainingWorkloadInput | InferenceWorkloadInput, Field(discriminator="kind")]
