"""Latency and rate of a served model by the roofline.

Prefill runs 2 N s FLOPs plus attention over a prompt; a decode step streams the weights once and the
KV cache of every request, or computes 2 N FLOPs per request, whichever takes longer (Pope et al. 2022,
section 2). A server with c requests at a time is never idle: each request takes a prefill and its share
of the decode steps, so that a request lasts W = c x prefill + outputs x step, and c / W requests end per
second (Little 1961). Under continuous batching the prefills of the other requests spread evenly over a
request's tokens: each takes step + (c - 1) x prefill / outputs, the first its own prefill besides. Waiting
for a free place is not modelled.
"""

from typing import NamedTuple

from service.planning.curves import Efficiency
from service.planning.memory import inference_weight_bytes, key_value_bytes
from service.planning.operators import (
    AttentionKernel,
    Bound,
    Roofline,
    forward_flops_per_token,
    roofline,
)
from service.planning.parallelism import Parallelism
from service.planning.profile import Profile
from service.planning.quantity import Quantity, Spread, combine, exact, inverted
from service.planning.training import Phase
from service.planning.workload import InferenceWorkload


class Iteration(NamedTuple):
    """One pass through the model: its work on each device of a tensor-parallel group."""

    flops: float
    moved_bytes: float

    def times(self, *, peak_flops_per_second: float, bandwidth_bytes_per_second: float) -> Roofline:
        """Both roofline times at full rate and bandwidth."""
        return roofline(
            self.flops,
            self.moved_bytes,
            peak_flops_per_second=peak_flops_per_second,
            bandwidth_bytes_per_second=bandwidth_bytes_per_second,
        )


def touched_expert_share(profile: Profile, tokens: float) -> float:
    """Share of the experts that ``tokens`` tokens use when routing is even: 1 - (1 - k / E)^tokens."""
    if not profile.expert_count:
        return 1.0
    return float(1.0 - (1.0 - profile.experts_per_token / profile.expert_count) ** tokens)


def _moved_weights(
    profile: Profile, workload: InferenceWorkload, layout: Parallelism, tokens: float
) -> float:
    whole_model = Parallelism(tensor=layout.tensor, data=layout.expert, expert=layout.expert)
    weights = inference_weight_bytes(profile, workload.weight_format, whole_model)
    if not profile.expert_parameters:
        return weights
    experts = weights * profile.expert_parameters / profile.parameter_count
    return weights - experts * (1.0 - touched_expert_share(profile, tokens))


def prefill_iteration(profile: Profile, workload: InferenceWorkload, layout: Parallelism) -> Iteration:
    """One whole prompt; only its last token passes the head."""
    per_token = forward_flops_per_token(profile, workload.input_tokens, AttentionKernel.FLASH)
    if workload.output_tokens:
        per_token -= profile.head_flops_per_token * (1.0 - 1.0 / workload.input_tokens)
    cache = key_value_bytes(profile, workload.input_tokens, workload.cache_format, tensor=layout.tensor)
    weights = _moved_weights(profile, workload, layout, workload.input_tokens)
    return Iteration(per_token * workload.input_tokens / layout.tensor, weights + cache)


def decode_iteration(
    profile: Profile, workload: InferenceWorkload, layout: Parallelism, requests: float
) -> Iteration:
    """One token for each of ``requests`` requests, half-way through their output."""
    context = workload.input_tokens + workload.output_tokens / 2.0
    flops = profile.matmul_flops_per_token
    for work in profile.attention:
        flops += work.layers * work.score_flops * min(context, work.window_tokens)
    cache = key_value_bytes(profile, context, workload.cache_format, tensor=layout.tensor)
    weights = _moved_weights(profile, workload, layout, requests)
    return Iteration(flops * requests / layout.tensor, weights + requests * cache)


class ServingTime(NamedTuple):
    """One replica under a constant number of requests. Without output tokens only prefill counts."""

    prefill_seconds: Quantity
    time_to_first_token_seconds: Quantity
    time_per_output_token_seconds: Quantity | None
    request_seconds: Quantity
    requests_per_second: Quantity
    phases: tuple[Phase, ...]


def serving_time(
    profile: Profile,
    workload: InferenceWorkload,
    layout: Parallelism,
    *,
    peak_flops_per_second: float,
    bandwidth_bytes_per_second: float,
    efficiency: Efficiency,
    spread: Spread,
) -> ServingTime:
    """Latency and rate of one replica of ``tensor`` x ``pipeline`` devices.

    A pipeline does not shorten a pass; it holds as many groups of requests as it has stages.
    ``spread`` is the error of the method itself, beside the interval of its coefficients.
    """
    layers = float(profile.block_count)

    def seconds(iteration: Iteration) -> Quantity:
        times = iteration.times(
            peak_flops_per_second=peak_flops_per_second,
            bandwidth_bytes_per_second=bandwidth_bytes_per_second,
        )

        def pass_seconds(utilization: float, bandwidth: float, launch: float, collective: float) -> float:
            work = max(times.compute_seconds / utilization, times.memory_seconds / bandwidth)
            return work + layers * (launch + (collective if layout.tensor > 1 else 0.0))

        return combine(
            pass_seconds,
            inverted(efficiency.utilization),
            inverted(efficiency.bandwidth_utilization),
            efficiency.layer_seconds,
            efficiency.collective_seconds,
        )

    def bound(iteration: Iteration) -> Bound:
        return roofline(
            iteration.flops / efficiency.utilization.value,
            iteration.moved_bytes / efficiency.bandwidth_utilization.value,
            peak_flops_per_second=peak_flops_per_second,
            bandwidth_bytes_per_second=bandwidth_bytes_per_second,
        ).bound

    requests = float(workload.requests_per_replica(layout.data))
    outputs = workload.output_tokens
    prefilling = prefill_iteration(profile, workload, layout)
    prefill = seconds(prefilling)
    if not outputs:
        first = combine(lambda p: p, _widened(prefill, spread))
        rate = combine(lambda p: layout.pipeline / p, first)
        phases = (Phase("prefill", first, bound(prefilling)),)
        return ServingTime(first, first, None, first, rate, phases)
    decoding = decode_iteration(profile, workload, layout, requests / layout.pipeline)
    step = seconds(decoding)
    per_token = combine(lambda p, s: s + (requests - 1.0) * p / outputs, prefill, step)
    first = _widened(combine(lambda p, t: p + t, prefill, per_token), spread)
    per_token = _widened(per_token, spread)
    decode = combine(lambda t: (outputs - 1.0) * t, per_token)
    request = combine(lambda f, d: f + d, first, decode)
    return ServingTime(
        prefill_seconds=prefill,
        time_to_first_token_seconds=first,
        time_per_output_token_seconds=per_token,
        request_seconds=request,
        requests_per_second=combine(lambda r, c: c / r, request, exact(requests)),
        phases=(
            Phase("prefill", first, bound(prefilling)),
            Phase("decode", decode, bound(decoding)),
        ),
    )


def _widened(quantity: Quantity, spread: Spread) -> Quantity:
    if quantity.low == quantity.high:
        return quantity
    return quantity._replace(low=quantity.low * spread.low, high=quantity.high * spread.high)
