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


class RecomputationInput(Input):
    """Which activations the backward pass computes again."""

    strategy: Recomputation


class Adaptation(Input):
    """Which parameters are trained."""

    kind: Literal["full"]


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
    attention: AttentionKernel = AttentionKernel.FLASH
    """Whether the attention kernel stores the score matrix (standard) or not (flash)."""
    recomputation: RecomputationInput = RecomputationInput(strategy=Recomputation.NONE)
    adaptation: Adaptation = Adaptation(kind="full")
    objective: Literal["pretraining", "supervised"] = "pretraining"
    total_tokens: Count | MISSING = MISSING
    total_steps: Count | MISSING = MISSING
    total_samples: Count | MISSING = MISSING
    framework: Software | MISSING = MISSING


class FixedLength(Input):
    """Every request has the same length."""

    distribution: Literal["fixed"]
    tokens: Size


class Engine(Input):
    """The serving engine and the settings that bound a batch."""

    name: Text
    version: Text | MISSING = MISSING
    cuda_graphs: bool = True
    block_tokens: Annotated[int, Field(ge=1, le=4096, json_schema_extra={"format": "int64"})] = 16
    """Tokens of one block of the paged KV cache."""
    max_num_seqs: Degree | MISSING = MISSING
    """Most requests of one replica in one iteration."""
    max_batched_tokens: Size | MISSING = MISSING
    """Most tokens of one iteration; defaults to 8192."""


class HorizonInput(Input):
    """How long the service runs. Give one."""

    duration_seconds: Positive | MISSING = MISSING
    total_requests: Count | MISSING = MISSING
    total_output_tokens: Count | MISSING = MISSING


class InferenceWorkloadInput(Input):
    """A served model under a constant number of requests at a time."""

    kind: Literal["inference"]
    weight_precision: Literal["fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4"] = "bf16"
    kv_cache_precision: Literal["fp32", "fp16", "bf16", "fp8", "int8"] = "bf16"
    input_tokens: Size | FixedLength = 1024
    output_tokens: Size | FixedLength = 256
    concurrency: Degree = 1
    """Requests at a time over the whole cluster."""
    engine: Engine | MISSING = MISSING
    scheduler: Literal["continuous"] = "continuous"
    memory_fraction: Share = 0.9
    """Share of the device's memory that the engine may use."""
    horizon: HorizonInput | MISSING = MISSING
    """Needed for cost and utility bill."""


WorkloadInput = Annotated[TrainingWorkloadInput | InferenceWorkloadInput, Field(discriminator="kind")]
