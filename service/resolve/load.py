"""What a server is asked, from a question: lengths, arrivals, levels; contradictions refused."""

from itertools import pairwise
from typing import NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.inference.lengths import (
    LARGEST_P95_RATIO,
    DiscreteLengths,
    counted_lengths,
    lognormal_lengths,
    lognormal_sigma,
)
from service.schemas.load import (
    MOST_SIMULATED,
    FixedLength,
    HistogramLength,
    LengthInput,
    LognormalLength,
    ServiceLevelsInput,
    SimulatedSolver,
    SolverInput,
    SpeculativeInput,
    TraceArrivals,
)
from service.schemas.notes import Notes
from service.schemas.workloads import InferenceWorkloadInput


class Proposals(NamedTuple):
    """Tokens that are proposed at a time, and the probability that one is accepted behind accepted ones."""

    tokens: int
    acceptance_rate: float
    method: str | None
    """None where a draft model proposes."""


class Asked(NamedTuple):
    """What the whole cluster is asked: ``concurrency`` requests at a time, or a rate."""

    inputs: DiscreteLengths
    outputs: DiscreteLengths
    concurrency: int | None
    rate_per_second: float | None = None
    uniform: bool = False
    at_seconds: tuple[float, ...] = ()
    """Arrivals of a trace."""
    prefix_hit_rate: float = 0.0
    proposals: Proposals | None = None


def asked_of(given: InferenceWorkloadInput, notes: Notes) -> Asked:
    """What the workload asks of the server.

    Raises :class:`PlanningError` naming the field that contradicts another.
    """
    asked = Asked(
        lengths_of(given.input_tokens, "/workload/input_tokens"),
        lengths_of(given.output_tokens, "/workload/output_tokens"),
        concurrency=None,
        prefix_hit_rate=given.prefix_cache_hit_rate,
        proposals=None if given.speculative is MISSING else _proposals(given.speculative, notes),
    )
    return _arriving(asked, given)


def _arriving(asked: Asked, given: InferenceWorkloadInput) -> Asked:
    rate, arrivals, concurrency = given.request_rate_per_second, given.arrivals, given.concurrency
    if concurrency is not MISSING:
        for name, other in (("request_rate_per_second", rate), ("arrivals", arrivals)):
            if other is not MISSING:
                detail = "give concurrency, or a rate with arrivals"
                raise PlanningError("LOAD_CONFLICT", f"/workload/{name}", detail)
        return asked._replace(concurrency=concurrency)
    if isinstance(arrivals, TraceArrivals):
        if rate is not MISSING:
            detail = "the times of a trace set the rate"
            raise PlanningError("LOAD_CONFLICT", "/workload/request_rate_per_second", detail)
        return _traced(asked, arrivals)
    if rate is MISSING:
        if arrivals is not MISSING:
            detail = "give the rate of the arrivals"
            raise PlanningError("RATE_REQUIRED", "/workload/request_rate_per_second", detail)
        return asked._replace(concurrency=1)
    uniform = arrivals is not MISSING and arrivals.process == "uniform"
    return asked._replace(rate_per_second=rate, uniform=uniform)


def _traced(asked: Asked, arrivals: TraceArrivals) -> Asked:
    times, pointer = arrivals.at_seconds, "/workload/arrivals/at_seconds"
    for place, (before, after) in enumerate(pairwise(times), 1):
        if after < before:
            detail = "the times of a trace ascend"
            raise PlanningError("NOT_ASCENDING", f"{pointer}/{place}", detail)
    span = times[-1] - times[0]
    if not span:
        detail = "requests that all arrive at once are a concurrency with horizon.total_requests"
        raise PlanningError("NO_RATE", pointer, detail)
    rate = (len(times) - 1) / span
    return asked._replace(rate_per_second=rate, at_seconds=tuple(times))


def lengths_of(given: LengthInput, pointer: str) -> DiscreteLengths:
    """The distribution of a length; one that does not exist is refused below ``pointer``."""
    if isinstance(given, int):
        return DiscreteLengths((float(given),), (1.0,))
    if isinstance(given, FixedLength):
        return DiscreteLengths((float(given.tokens),), (1.0,))
    if isinstance(given, HistogramLength):
        return _counted(given, pointer)
    return _lognormal(given, pointer)


def _counted(given: HistogramLength, pointer: str) -> DiscreteLengths:
    if len(given.tokens) != len(given.weights):
        detail = f"{len(given.tokens)} lengths have {len(given.weights)} weights"
        raise PlanningError("LENGTHS_MISMATCH", f"{pointer}/weights", detail)
    largest = max(given.weights)
    if not largest:
        raise PlanningError("NO_WEIGHT", f"{pointer}/weights", "at least one weight is above zero")
    # Against the largest, so that no sum leaves the range of numbers.
    shares = (weight / largest for weight in given.weights)
    return counted_lengths(zip(given.tokens, shares, strict=True))


def _lognormal(given: LognormalLength, pointer: str) -> DiscreteLengths:
    sigma, p95, mean = given.sigma, given.p95_tokens, given.mean_tokens
    if (sigma is MISSING) == (p95 is MISSING):
        raise PlanningError("LENGTH_SPREAD", f"{pointer}/sigma", "give either p95_tokens or sigma")
    if p95 is not MISSING:
        ratio = p95 / mean
        if not 1.0 <= ratio <= LARGEST_P95_RATIO:
            detail = f"no lognormal length has its p95 at {ratio:.2f} times its mean: 1 to 3.86 times"
            raise PlanningError("NO_SUCH_DISTRIBUTION", f"{pointer}/p95_tokens", detail)
        sigma = lognormal_sigma(ratio)
        if not sigma:
            return DiscreteLengths((mean,), (1.0,))
    assert sigma is not MISSING  # noqa: S101
    if given.most_tokens is MISSING:
        return lognormal_lengths(mean, sigma)
    return lognormal_lengths(mean, sigma, float(given.most_tokens))


def check_levels(levels: ServiceLevelsInput) -> None:
    """Refuse service levels without a limit."""
    limits = (
        levels.time_to_first_token_seconds,
        levels.time_per_output_token_seconds,
        levels.request_seconds,
    )
    if all(limit is MISSING for limit in limits):
        detail = "give at least one limit"
        raise PlanningError("LEVELS_REQUIRED", "/workload/service_levels", detail)


PROPOSED_TOKENS = 5
"""Tokens that a draft model or a search in the text proposes, where the question does not say."""
_ACCEPTANCE_RATES = {None: 0.7, "mtp": 0.85}
"""Draft models: 0.62 to 0.75 of T5-small for T5-XXL (Leviathan et al. 2023, table 2). Multi-token prediction:
0.85 to 0.9 of the second token (DeepSeek-V3 report 2024, section 5.4.3)."""
LATER_ACCEPTANCE_RATE = 0.75
"""Of each token where a head proposes several: it was trained for the first. Three make 2.7 tokens a pass of
DeepSeek-R1 under TensorRT-LLM: 91 runs took 1.16 to 1.3 times what 0.85 each, 3.2 tokens, would."""


def _proposals(given: SpeculativeInput, notes: Notes) -> Proposals:
    """What is proposed; refuses proposals of two sources or of none, and those of unknown success."""
    if (given.model is MISSING) == (given.method is MISSING):
        detail = "give the model that proposes tokens, or a method"
        raise PlanningError("SPECULATION_SOURCE", "/workload/speculative/method", detail)
    method = None if given.method is MISSING else given.method
    rate, tokens = given.acceptance_rate, given.tokens
    if rate is MISSING:
        pointer = "/workload/speculative/acceptance_rate"
        if method == "ngram":
            detail = "how often a text repeats itself depends on the task"
            raise PlanningError("ACCEPTANCE_REQUIRED", pointer, detail)
        rate = _ACCEPTANCE_RATES[method]
        if method == "mtp" and tokens is not MISSING and tokens > 1:
            rate = LATER_ACCEPTANCE_RATE
        notes.warn("ACCEPTANCE_ASSUMED", pointer, f"a proposed token is accepted with probability {rate}")
    if tokens is MISSING:
        tokens = 1 if method == "mtp" else PROPOSED_TOKENS
    return Proposals(tokens, rate, method)


def check_solver(solver: SolverInput, asked: Asked) -> None:
    """Refuse a simulation of two lengths, or of too many requests."""
    if not isinstance(solver, SimulatedSolver) or solver.duration_seconds is MISSING:
        return
    if solver.requests is not MISSING:
        detail = "give duration_seconds or requests"
        raise PlanningError("SOLVER_CONFLICT", "/solver/requests", detail)
    check_length((asked.rate_per_second or 0.0) * solver.duration_seconds)


def check_length(requests: float) -> None:
    """Refuse a simulation of too many requests."""
    if requests > MOST_SIMULATED:
        detail = f"{MOST_SIMULATED} requests are simulated at most"
        raise PlanningError("SIMULATION_TOO_LONG", "/solver/duration_seconds", detail)
