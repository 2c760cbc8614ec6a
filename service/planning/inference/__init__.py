"""Latency and rate of served models."""

from service.planning.inference.roofline import (
    Iteration,
    ServingTime,
    decode_iteration,
    prefill_iteration,
    serving_time,
    touched_expert_share,
)

__all__ = [
    "Iteration",
    "ServingTime",
    "decode_iteration",
    "prefill_iteration",
    "serving_time",
    "touched_expert_share",
]
