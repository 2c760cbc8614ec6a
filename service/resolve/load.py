"""Resolution of the load of a server: lengths, arrivals and service levels."""

from itertools import pairwise

from pydantic import MISSING

from service.planning.cases import RequestLoad, ServiceLevels, Simulation, TokenProposals
from service.planning.errors import PlanningError
from service.planning.estimates.simulation import check_length
from service.planning.inference.lengths import (
    LARGEST_P95_RATIO,
    DiscreteLengths,
    build_counted_lengths,
    build_lognormal_lengths,
    lognormal_sigma,
)
from service.planning.inference.load import LatencyLimits
from service.planning.notes import AnswerNotes
from service.schemas.load import (
    FixedLength,
    HistogramLength,
    LengthInput,
    LognormalLength,
    ServiceLevelsInput,
    SimulatedSolver,
    SolverInput,
    SpeculativeDecodingInput,
    TraceArrivals,
)
from service.schemas.workloads import InferenceWorkloadInput


def resolve_load(given: InferenceWorkloadInput, notes: AnswerNotes) -> RequestLoad:
    """Returns the load that the workload puts on the whole cluster.

    Raises :class:`PlanningError` naming the field that contradicts another.
    """
    load = RequestLoad(
        resolve_lengths(given.input_tokens, "/workload/input_tokens"),
        resolve_lengths(given.output_tokens, "/workload/output_tokens"),
        concurrency=None,
        prefix_hit_rate=0.0 if given.prefix_cache_hit_rate is MISSING else given.prefix_cache_hit_rate,
        proposals=None if given.speculative is MISSING else _resolve_proposals(given.speculative, notes),
    )
    return _resolve_arrivals(load, given)


def _resolve_arrivals(load: RequestLoad, given: InferenceWorkloadInput) -> RequestLoad:
    rate, arrivals, concurrency = given.request_rate_per_second, given.arrivals, given.concurrency
    if concurrency is not MISSING:
        for name, other in (("request_rate_per_second", rate), ("arrivals", arrivals)):
            if other is not MISSING:
                detail = "give either concurrency, or a rate with arrivals"
                raise PlanningError("LOAD_CONFLICT", f"/workload/{name}", detail)
        return load._replace(concurrency=concurrency)
    if isinstance(arrivals, TraceArrivals):
        if rate is not MISSING:
            detail = "the times of a trace already set the rate"
            raise PlanningError("LOAD_CONFLICT", "/workload/request_rate_per_second", detail)
        return _resolve_trace(load, arrivals)
    if rate is MISSING:
        if arrivals is not MISSING:
            detail = "give the rate of the arrivals"
            raise PlanningError("RATE_REQUIRED", "/workload/request_rate_per_second", detail)
        return load._replace(concurrency=1)
    uniform = arrivals is not MISSING and arrivals.process == "uniform"
    return load._replace(rate_per_second=rate, is_uniform=uniform)


def _resolve_trace(load: RequestLoad, arrivals: TraceArrivals) -> RequestLoad:
    times, pointer = arrivals.at_seconds, "/workload/arrivals/at_seconds"
    for place, (before, after) in enumerate(pairwise(times), 1):
        if after < before:
            detail = "the times of a trace must ascend"
            raise PlanningError("NOT_ASCENDING", f"{pointer}/{place}", detail)
    span = times[-1] - times[0]
    if not span:
        detail = "all requests arrive at once: give a concurrency with horizon.total_requests"
        raise PlanningError("NO_RATE", pointer, detail)
    rate = (len(times) - 1) / span
    return load._replace(rate_per_second=rate, at_seconds=tuple(times))


def resolve_lengths(given: LengthInput, pointer: str) -> DiscreteLengths:
    """Returns the distribution of a length. Refuses an impossible one at a pointer below ``pointer``."""
    if isinstance(given, int):
        return DiscreteLengths((float(given),), (1.0,))
    if isinstance(given, FixedLength):
        return DiscreteLengths((float(given.tokens),), (1.0,))
    if isinstance(given, HistogramLength):
        return _resolve_histogram(given, pointer)
    return _resolve_lognormal(given, pointer)


def _resolve_histogram(given: HistogramLength, pointer: str) -> DiscreteLengths:
    if len(given.tokens) != len(given.weights):
        detail = (
            f"{len(given.tokens)} lengths have {len(given.weights)} weights: give one weight for each length"
        )
        raise PlanningError("LENGTHS_MISMATCH", f"{pointer}/weights", detail)
    largest = max(given.weights)
    if not largest:
        raise PlanningError("NO_WEIGHT", f"{pointer}/weights", "at least one weight must be above zero")
    # Relative to the largest weight, so that no sum overflows.
    shares = (weight / largest for weight in given.weights)
    return build_counted_lengths(zip(given.tokens, shares, strict=True))


def _resolve_lognormal(given: LognormalLength, pointer: str) -> DiscreteLengths:
    sigma, p95, mean = given.sigma, given.p95_tokens, given.mean_tokens
    if (sigma is MISSING) == (p95 is MISSING):
        raise PlanningError("LENGTH_SPREAD", f"{pointer}/sigma", "give either p95_tokens or sigma")
    spread = 0.0 if sigma is MISSING else sigma
    if p95 is not MISSING:
        ratio = p95 / mean
        if not 1.0 <= ratio <= LARGEST_P95_RATIO:
            detail = (
                f"no lognormal length has its p95 at {ratio:.2f} times its mean: allowed is 1 to 3.86 times"
            )
            raise PlanningError("NO_SUCH_DISTRIBUTION", f"{pointer}/p95_tokens", detail)
        spread = lognormal_sigma(ratio)
        if not spread:
            return DiscreteLengths((mean,), (1.0,))
    if given.most_tokens is MISSING:
        return build_lognormal_lengths(mean, spread)
    return build_lognormal_lengths(mean, spread, float(given.most_tokens))


def resolve_levels(given: ServiceLevelsInput) -> ServiceLevels:
    """Returns the limits of a question. Refuses service levels without a limit."""
    limits = (given.time_to_first_token_seconds, given.time_per_output_token_seconds, given.request_seconds)
    if all(limit is MISSING for limit in limits):
        detail = "give at least one limit"
        raise PlanningError("LEVELS_REQUIRED", "/workload/service_levels", detail)
    known = LatencyLimits(*(None if limit is MISSING else limit for limit in limits))
    return ServiceLevels(known, given.percentile / 100.0)


PROPOSED_TOKENS = 5
"""Default number of tokens that a draft model or a search in the text proposes."""
_ACCEPTANCE_RATES = {None: 0.7, "mtp": 0.85}
"""Acceptance of draft models: 0.62 to 0.75 of T5-small for T5-XXL (Leviathan et al. 2023, table 2).
Multi-token prediction: 0.85 to 0.9 of the second token (DeepSeek-V3 report 2024, section 5.4.3).
"""
LATER_ACCEPTANCE_RATE = 0.75
"""Acceptance of each token if a head proposes several, since it was trained for the first. Three proposed
tokens make 2.7 tokens a pass of DeepSeek-R1 under TensorRT-LLM: 91 runs took 1.16 to 1.3 times as long as an
acceptance of 0.85 each (3.2 tokens) would give.
"""


def _resolve_proposals(given: SpeculativeDecodingInput, notes: AnswerNotes) -> TokenProposals:
    """Returns the proposed tokens. Refuses two sources, none, or an unknown acceptance rate."""
    if (given.model is MISSING) == (given.method is MISSING):
        detail = "give either the model that proposes tokens or a method"
        raise PlanningError("SPECULATION_SOURCE", "/workload/speculative/method", detail)
    method = None if given.method is MISSING else given.method
    rate, tokens = given.acceptance_rate, given.tokens
    if rate is MISSING:
        pointer = "/workload/speculative/acceptance_rate"
        if method == "ngram":
            detail = "the acceptance rate of ngram depends on the task: give acceptance_rate"
            raise PlanningError("ACCEPTANCE_REQUIRED", pointer, detail)
        rate = _ACCEPTANCE_RATES[method]
        if method == "mtp" and tokens is not MISSING and tokens > 1:
            rate = LATER_ACCEPTANCE_RATE
        notes.warn(
            "ACCEPTANCE_ASSUMED",
            pointer,
            f"a proposed token is assumed to be accepted with probability {rate}",
        )
    if tokens is MISSING:
        tokens = 1 if method == "mtp" else PROPOSED_TOKENS
    return TokenProposals(tokens, rate, method)


def resolve_solver(given: SolverInput, load: RequestLoad) -> Simulation | None:
    """Returns the simulation of a question. Refuses two lengths or too many requests."""
    if not isinstance(given, SimulatedSolver):
        return None
    requests = None if given.requests is MISSING else given.requests
    if given.duration_seconds is MISSING:
        return Simulation(given.seed, requests)
    if requests is not None:
        detail = "give either duration_seconds or requests"
        raise PlanningError("SOLVER_CONFLICT", "/solver/requests", detail)
    check_length((load.rate_per_second or 0.0) * given.duration_seconds)
    return Simulation(given.seed, duration_seconds=given.duration_seconds)
