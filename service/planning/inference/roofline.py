"""Latency and rate of a served model by the roofline, at assumed shares of rate and bandwidth.

Prefill runs 2 N s FLOPs plus attention over a prompt and gives the first token; a decode step streams the
weights once and the KV cache of every request, or computes 2 N FLOPs per request, whichever takes longer
(Pope et al. 2022, section 2). A server with c requests at a time is never idle: while a request takes its
prefill and (outputs - 1) decode steps, each of the others starts once, so that it lasts W = c x prefill +
(outputs - 1) x step, and c / W requests end per second (Little 1961). Of the other c - 1 prefills some pass
before its first token and the rest between its tokens; their numbers depend on the arrivals, which are not
known here. Waiting for a free place is not modelled. A model that generates nothing takes as many inputs in
one pass as the engine batches.
"""

from typing import NamedTuple

from service.planning.memory.caches import key_value_bytes, state_bytes
from service.planning.memory.serving import inference_weight_bytes
from service.planning.models.profile import ModelProfile
from service.planning.operators import (
    RooflineTime,
    TimedPhase,
    compute_roofline,
    forward_flops_per_token,
)
from service.planning.parallelism import Parallelism
from service.planning.quantity import Quantity, assumed
from service.planning.workload import InferenceWorkload


class IterationWork(NamedTuple):
    """One pass through the model: its work on each device of a tensor-parallel group."""

    flops: float
    moved_bytes: float

    def compute_roofline(
        self, *, peak_flops_per_second: float, bandwidth_bytes_per_second: float
    ) -> RooflineTime:
        """Returns both roofline times at full rate and bandwidth."""
        return compute_roofline(
            self.flops,
            self.moved_bytes,
            peak_flops_per_second=peak_flops_per_second,
            bandwidth_bytes_per_second=bandwidth_bytes_per_second,
        )


def touched_expert_share(profile: ModelProfile, tokens: float) -> float:
    """Returns the share of experts that ``tokens`` use when routing is even: 1 - (1 - k / E)^tokens."""
    if not profile.expert_count:
        return 1.0
    return float(1.0 - (1.0 - profile.experts_per_token / profile.expert_count) ** tokens)


def _compute_weight_traffic(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism, tokens: float
) -> float:
    """Returns the bytes of weights that a device reads in one pass of ``tokens`` tokens through all stages.

    The token table is looked up, not read, and a prompt has no images, so that experts of images are not read
    either. Under expert parallelism the experts of a device see the tokens of the whole group.
    """
    stages = Parallelism(tensor=layout.tensor, data=layout.expert, expert=layout.expert)
    weights = inference_weight_bytes(profile, workload.storage, stages)
    touched = touched_expert_share(profile, tokens * layout.expert)
    return weights.rest + weights.experts * (1.0 - profile.image_expert_share) * touched


def build_prefill_iteration(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism, prompts: float = 1.0
) -> IterationWork:
    """Builds the pass of ``prompts`` whole prompts.

    In a generating model only the last token passes the head.
    """
    per_token = forward_flops_per_token(profile, workload.input_tokens, skips_masked=True)
    if workload.output_tokens:
        per_token -= profile.head_flops_per_token * (1.0 - 1.0 / workload.input_tokens)
    cache = key_value_bytes(
        profile,
        workload.input_tokens,
        workload.cache_format,
        tensor=layout.tensor,
        source_tokens=workload.input_tokens,
    )
    tokens = prompts * workload.input_tokens
    weights = _compute_weight_traffic(profile, workload, layout, tokens)
    return IterationWork(per_token * tokens / layout.tensor, weights + prompts * cache)


def build_decode_iteration(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism, requests: float
) -> IterationWork:
    """Builds the pass of one token for each of ``requests`` requests, half-way through their output."""
    context = workload.input_tokens + workload.output_tokens / 2.0
    flops = profile.matmul_flops_per_token
    for work in profile.attention:
        scores = work.decode_score_flops or work.score_flops
        reached = workload.input_tokens if work.cross else min(context, work.window_tokens)
        attended = min(reached, work.attended_tokens)
        flops += work.layers * (scores * attended + work.index_flops * reached + work.token_flops)
    cache = key_value_bytes(
        profile,
        context,
        workload.cache_format,
        tensor=layout.tensor,
        source_tokens=workload.input_tokens,
    )
    # A state is read and written.
    cache += 2.0 * state_bytes(profile, workload.state_format, tensor=layout.tensor, rules=workload.rules)
    weights = _compute_weight_traffic(profile, workload, layout, requests)
    return IterationWork(flops * requests / layout.tensor, weights + requests * cache)


class ServingTime(NamedTuple):
    """A cluster under a constant number of requests; latencies are those of one request."""

    time_to_first_token_seconds: Quantity
    time_per_output_token_seconds: Quantity | None
    """None for a model that generates nothing."""
    request_seconds: Quantity
    requests_per_second: Quantity
    """Requests per second of all replicas."""
    phases: tuple[TimedPhase, ...]
    """Prefills and decode steps in the life of a request."""


def estimate_serving_time(
    profile: ModelProfile,
    workload: InferenceWorkload,
    layout: Parallelism,
    *,
    peak_flops_per_second: float,
    bandwidth_bytes_per_second: float,
    utilization: float,
    bandwidth_utilization: float,
) -> ServingTime:
    """Estimates latency and rate of ``data`` replicas of ``tensor`` x ``pipeline`` devices.

    Replicas beyond the number of requests idle. A pipeline does not shorten a pass; it holds as many groups
    of requests as it has stages, and the c requests of the module's formulas are those of one group. Both
    shares are assumed, so that the figures are points.
    """

    def compute_derated_roofline(iteration: IterationWork) -> RooflineTime:
        return iteration.compute_roofline(
            peak_flops_per_second=peak_flops_per_second * utilization,
            bandwidth_bytes_per_second=bandwidth_bytes_per_second * bandwidth_utilization,
        )

    def compute_pass_seconds(iteration: IterationWork) -> float:
        found = compute_derated_roofline(iteration)
        return max(found.compute_seconds, found.memory_seconds)

    busy = float(workload.busy_replicas(layout.data))
    requests = workload.mean_requests(layout.data)
    group = max(1.0, requests / layout.pipeline)
    outputs = workload.output_tokens
    together = 1.0 if outputs else min(group, max(1.0, workload.batched_tokens // workload.input_tokens))
    prefilling = build_prefill_iteration(profile, workload, layout, together)
    prefill = compute_pass_seconds(prefilling) * group / together
    phases = [TimedPhase("prefill", assumed(prefill), compute_derated_roofline(prefilling).bound)]
    first, each, lasting = prefill, None, prefill
    if outputs:
        decoding = build_decode_iteration(profile, workload, layout, group)
        step = compute_pass_seconds(decoding)
        before = _compute_prefill_share(group, outputs)
        first = prefill * before
        each = assumed(step + (prefill - first) / (outputs - 1.0) if outputs > 1.0 else step)
        if outputs > 1.0:
            decode = step * (outputs - 1.0)
            lasting += decode
            phases.append(TimedPhase("decode", assumed(decode), compute_derated_roofline(decoding).bound))
    return ServingTime(
        time_to_first_token_seconds=assumed(first),
        time_per_output_token_seconds=each,
        request_seconds=assumed(lasting),
        requests_per_second=assumed(busy * requests / lasting),
        phases=tuple(phases),
    )


def _compute_prefill_share(group: float, outputs: float) -> float:
    """Returns the share of a group's prefills that pass before a first token: the own one, and some others.

    A quarter of the others: between 1 / outputs where requests arrive evenly and half where all arrive at
    once. A single token waits for all of them.
    """
    one, others = 1.0 / group, 1.0 - 1.0 / group
    return one + others * max(1.0 / outputs, 0.25)
