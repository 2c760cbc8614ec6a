"""Measures memory in process, on one core: training in one layout and in 100,000, answers of a served model.

``python -m bench.memory``. Times are of the processor, so that a busy machine does not count.
"""

import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from service.estimates.memory import estimate_memory
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.memory.training import estimate_layout_memory, estimate_training_memory
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelHead
from service.planning.models.layers import (
    Attention,
    FeedForward,
    LatentAttention,
    MixtureOfExperts,
    Normalization,
)
from service.planning.models.profile import ModelProfile, build_profile
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import TRAINING_RECIPES, Optimizer, TrainingPrecision
from service.planning.workload import AttentionKernel, Recomputation, TrainingWorkload
from service.schemas.estimates import MemoryEstimateRequest

LAYOUTS = 100_000
WORKLOAD = TrainingWorkload(
    sequence_length=4096,
    micro_batch_size=1,
    micro_batches=16,
    recipe=TRAINING_RECIPES[TrainingPrecision.BF16],
    optimizer=Optimizer.ADAMW,
    kernel=AttentionKernel.FLASH,
    recomputation=Recomputation.FULL,
)


def llama_3_70b() -> ModelProfile:
    """70,553,706,496 parameters."""
    norm = Normalization(size=8192)
    attention = Attention(hidden_size=8192, query_heads=64, key_value_heads=8, head_size=128)
    feed_forward = FeedForward(hidden_size=8192, inner_size=28_672, gated=True)
    return build_profile(
        Architecture(
            embeddings=ModelEmbeddings(size=8192, vocabulary_size=128_256),
            layers=(LayerBlock(layers=(norm, attention, norm, feed_forward), count=80), norm),
            heads=(ModelHead(kind="language_model", input_size=8192, output_size=128_256),),
        )
    )


def deepseek_v3() -> ModelProfile:
    """671 billion parameters: 3 dense blocks, 58 with 256 experts and a shared one."""
    norm = Normalization(size=7168)
    attention = LatentAttention(
        hidden_size=7168,
        query_heads=128,
        query_rank=1536,
        key_value_rank=512,
        rotary_head_size=64,
        plain_head_size=128,
        value_head_size=128,
    )
    dense = FeedForward(hidden_size=7168, inner_size=18_432, gated=True)
    experts = MixtureOfExperts(
        hidden_size=7168,
        expert_count=256,
        experts_per_token=8,
        expert_inner_size=2048,
        shared_inner_size=2048,
        router_bias=True,
    )
    return build_profile(
        Architecture(
            embeddings=ModelEmbeddings(size=7168, vocabulary_size=129_280),
            layers=(
                LayerBlock(layers=(norm, attention, norm, dense), count=3),
                LayerBlock(layers=(norm, attention, norm, experts), count=58),
                norm,
            ),
            heads=(ModelHead(kind="language_model", input_size=7168, output_size=129_280),),
        )
    )


def microseconds(function: Callable[[], object], *, number: int) -> float:
    """Least processor time of one call out of five runs of ``number``."""
    runs = timeit.repeat(function, number=number, repeat=5, timer=time.process_time)
    return min(runs) / number * 1e6


def served(engine: str | None) -> Callable[[], object]:
    """An answer about Llama-3.1-8B on one H100, under an engine or none."""
    workload: dict[str, object] = {"kind": "inference", "input_tokens": 2000, "concurrency": 16}
    if engine:
        workload["engine"] = {"name": engine}
    cluster = {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1}
    asked = {"model": {"source": "catalog", "id": "llama-3.1-8b"}, "cluster": cluster, "workload": workload}
    question = MemoryEstimateRequest.model_validate(asked)
    catalog = build_shipped_snapshot()
    return lambda: estimate_memory(question, catalog)


def main() -> None:
    """Print the times."""
    llama, deepseek = llama_3_70b(), deepseek_v3()
    layout = Parallelism(tensor=8, pipeline=4, data=8, sequence_parallel=True, sharding=Sharding.ZERO_1)
    spread = layout._replace(expert=8)
    alone = microseconds(lambda: estimate_training_memory(llama, WORKLOAD, layout)[0].total_bytes, number=500)
    wide = microseconds(
        lambda: estimate_training_memory(deepseek, WORKLOAD, spread)[0].total_bytes, number=500
    )
    adapted = WORKLOAD._replace(optimizer=Optimizer.ADAFACTOR)
    shaped = microseconds(
        lambda: estimate_training_memory(deepseek, adapted, spread)[0].total_bytes, number=200
    )
    random = np.random.default_rng(1)
    # The physics takes arrays in the place of numbers: one element a layout.
    drawn: list[Any] = [
        random.choice(choices, LAYOUTS) for choices in ([1, 2, 4, 8], [1, 2, 4, 8, 16], [1, 8, 64], [1, 2, 4])
    ]
    tensor, pipeline, data, batch = drawn
    many = layout._replace(tensor=tensor, pipeline=pipeline, data=data)
    workload = WORKLOAD._replace(micro_batch_size=batch)
    at_once = microseconds(lambda: estimate_layout_memory(llama, workload, many), number=1)
    print(f"Llama-3-70B, one layout: {alone:.0f} microseconds")
    print(f"DeepSeek-V3, one layout: {wide:.0f} microseconds; with Adafactor {shaped:.0f}")
    print(f"Llama-3-70B, {LAYOUTS} layouts in one call: {at_once / 1e6:.2f} seconds")
    for engine in (None, "vllm", "tensorrt-llm", "sglang", "llama.cpp", "transformers"):
        answered = microseconds(served(engine), number=200)
        print(f"Llama-3.1-8B served, {engine or 'no engine'}: {answered:.0f} microseconds")


if __name__ == "__main__":
    main()
