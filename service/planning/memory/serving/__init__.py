"""Memory of one device that serves a model, itemised, in bytes.

KV cache: two vectors per key-value head, layer and token, or one compressed vector of latent attention;
layers without a cache of tokens have a state per request. Weights are counted as stored. The fullest pipeline
stage is reported.
"""

from service.planning.memory.serving.components import ServingMemory, ServingRange
from service.planning.memory.serving.iteration import pass_bytes
from service.planning.memory.serving.replica import estimate_inference_memory, estimate_inference_memory_range
from service.planning.memory.serving.weights import adapter_bytes, inference_weight_bytes

__all__ = [
    "ServingMemory",
    "ServingRange",
    "adapter_bytes",
    "estimate_inference_memory",
    "estimate_inference_memory_range",
    "inference_weight_bytes",
    "pass_bytes",
]
