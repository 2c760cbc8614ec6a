"""Latencies and rates of a cluster that serves, with their intervals."""

from dataclasses import dataclass
from functools import cached_property

from service.planning.cases import InferenceCase
from service.planning.estimates.intervals import add_device_spread, find_serving_spreads
from service.planning.estimates.serving.spreads import SPREAD_FAMILIES, ServingSpreads, invert_spread
from service.planning.estimates.settings import build_load_logarithms as load_setting
from service.planning.hardware.calibration import OperatorQuantity
from service.planning.hardware.distance import resolve_family
from service.planning.hardware.local_evidence import (
    EstimateCorrection,
    RunGroup,
    RunSetting,
    apply_correction,
)
from service.planning.inference import (
    IterationBatch,
    IterationModel,
    IterationTime,
    LatencyLimits,
    ReplicaLoad,
    ReplicaServer,
    ServedLoad,
    compute_request_capacity,
)
from service.planning.operators import TimeBound, TimedPhase
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, IntervalFactors, Quantity, assumed, combine

_FULL = 0.9
"""Share of places from which a batch counts as full: the other places compute prompts."""


@dataclass(frozen=True, kw_only=True)
class ServingEstimate:
    """Serving by a cluster.

    ``served`` is the load of one of ``replicas`` equal replicas that have requests.
    """

    served: ServedLoad
    model: IterationModel
    server: ReplicaServer
    load: ReplicaLoad
    replicas: float
    ranks: int
    """Groups of devices of a replica, each with its own batch."""
    held: float | None
    """Requests that a replica holds, fractions included; None where the capacity is unknown."""
    case: InferenceCase

    @property
    def prefilling(self) -> IterationModel:
        """Iterations of the devices that compute prompts."""
        return self.model

    @cached_property
    def basis(self) -> EvidenceBasis:
        """Evidence behind the rates of operators."""
        return self.model.machine.rates.get_work_basis(self.model.narrow)

    @cached_property
    def spreads(self) -> ServingSpreads:
        """Spreads of the nearest measured system, widened by the range of a tenant's measured devices."""
        case, together = self.case, self.load.is_all_at_once
        families = [resolve_family(family, all_at_once=together) for family in SPREAD_FAMILIES]
        count = case.profile.parameter_count
        first, each, rate, *drawn = find_serving_spreads(self.case.curves, families, case.system, count)
        if not self.model.machine.rates.bases:
            return self.apply_corrections(ServingSpreads(first, each, rate, *drawn))
        multiplied = OperatorQuantity.MATRIX_PEAK, self.model.narrow
        streamed = OperatorQuantity.BANDWIDTH, None
        times = invert_spread(rate)
        widened = self._add_device_spread(self._add_device_spread(times, multiplied), streamed)
        found = ServingSpreads(
            self._add_device_spread(first, multiplied),
            self._add_device_spread(each, streamed),
            # Two inversions differ in the last digit from none.
            rate if widened is times else invert_spread(widened),
            *drawn,
        )
        return self.apply_corrections(found)

    def _add_device_spread(
        self, spread: IntervalFactors, constant: tuple[OperatorQuantity, NumberFormat | None]
    ) -> IntervalFactors:
        generation = self.case.system.generation
        return (
            spread
            if generation is None
            else add_device_spread(spread, self.case.curves, generation, *constant)
        )

    def apply_corrections(self, spreads: ServingSpreads) -> ServingSpreads:
        """Corrects the spreads by a tenant's measurements of runs like this one."""
        if self.case.curves.local is None:
            return spreads
        setting = self.setting
        own = (
            apply_correction(self.case.curves.local, family, setting, spread)
            for family, spread in zip(SPREAD_FAMILIES, spreads, strict=True)
        )
        return self._derive_rate_spread(ServingSpreads(*own))

    @property
    def setting(self) -> RunSetting:
        """Setting of the run by which measured runs are told apart."""
        case, served, load = self.case, self.served, self.load
        workload, layout, system = case.workload, case.layout, case.system
        requests = load.concurrency or served.requests_per_second * served.request_seconds.mean
        kind = resolve_family("serving", all_at_once=load.is_all_at_once)
        return RunSetting(
            group=RunGroup(kind, system.engine, system.accelerator, case.profile.parameter_count),
            system=(
                system.release,
                workload.storage.name,
                workload.cache_format,
                workload.cuda_graphs,
                workload.is_static,
                case.load.proposals,
                case.encoding is not None,
            ),
            # Replicas of one model do not affect each other.
            layout=layout._replace(data=layout.expert),
            load=load_setting(requests, load.computed_tokens, load.outputs.mean),
        )

    def _derive_rate_spread(self, spreads: ServingSpreads) -> ServingSpreads:
        """Corrects the rate of a constant number of requests by their measured latencies (Little 1961).

        Returns the spreads unchanged where rates were measured, or latencies were not.
        """
        moved = (*spreads.first_token.calibration_ids, *spreads.output_token.calibration_ids)
        if spreads.rate.calibration_ids or not moved or self.load.rate_per_second is not None:
            return spreads
        first, whole = self.served.time_to_first_token_seconds.mean, self.served.request_seconds.mean
        lasting = first * spreads.first_token.middle + (whole - first) * spreads.output_token.middle
        of = EstimateCorrection(whole / lasting, calibration_ids=tuple(dict.fromkeys(moved)))
        return spreads._replace(rate=of.apply_to_spread(spreads.rate))

    @property
    def computing(self) -> tuple[tuple[float, IterationTime], ...]:
        """Shares of the time of busy replicas, with the iteration that fills each."""
        return ((self.served.utilization, self.served.iteration),)

    @property
    def time_to_first_token_seconds(self) -> Quantity:
        """Mean over requests, in seconds."""
        return self.to_first_token_time(self.served.time_to_first_token_seconds.mean)

    @property
    def time_per_output_token_seconds(self) -> Quantity | None:
        """Mean over requests, in seconds; None where no request has a second token."""
        each = self.served.time_per_output_token_seconds
        return each and self.to_output_token_time(each.mean)

    @property
    def request_seconds(self) -> Quantity:
        """Mean over requests, in seconds."""
        first, whole = self.served.time_to_first_token_seconds.mean, self.served.request_seconds.mean
        return combine(
            lambda before, behind: before + behind,
            self.to_first_token_time(first),
            self.to_output_token_time(whole - first),
        )

    @property
    def most_requests_per_second(self) -> Quantity:
        """Highest rate of the cluster."""
        return self.spreads.rate.around(self.served.most_requests_per_second * self.replicas, self.basis)

    @property
    def requests_per_second(self) -> Quantity:
        """Requests per second of the whole cluster; the arrival rate where that limits them."""
        rate, arriving = self.served.requests_per_second * self.replicas, self.load.rate_per_second
        if arriving is None:
            return self.spreads.rate.around(rate, self.basis)
        most, whole = self.most_requests_per_second, arriving * self.replicas
        if most.low >= whole:
            return assumed(rate)
        if self.spreads.rate.calibration_ids:
            rate = min(whole, most.value)
        return Quantity(rate, min(most.low, rate), max(rate, min(most.high, whole)), most.basis)

    @property
    def requests_inside(self) -> float:
        """Mean number of requests that hold a place on one rank of a replica (Little 1961)."""
        served = self.served
        inside = served.requests_per_second * served.request_seconds.mean - served.waiting
        most = compute_request_capacity(self.server, self.load)
        return max(1.0, min(inside, most)) / self.ranks

    @property
    def phases(self) -> tuple[TimedPhase, ...]:
        """Phases of a request's time: waiting, encoder, prefill, decode."""
        first, whole = self.served.time_to_first_token_seconds.mean, self.served.request_seconds.mean
        rate = self.served.requests_per_second
        waiting = min(self.served.waiting / rate, first) if rate else 0.0
        ahead = min(self.model.preceding.seconds, first - waiting)
        prompt = self.to_first_token_time(first - waiting - ahead)
        phases = [TimedPhase("prefill", prompt, find_bound(self.prefill_iteration))]
        if ahead:
            phases.insert(0, TimedPhase("encoder", self.to_first_token_time(ahead), TimeBound.COMPUTE))
        if waiting:
            phases.insert(0, TimedPhase("waiting", self.to_first_token_time(waiting), TimeBound.WAITING))
        if whole > first:
            phases.append(
                TimedPhase(
                    "decode", self.to_output_token_time(whole - first), find_bound(self.served.iteration)
                )
            )
        return tuple(phases)

    @cached_property
    def prefill_iteration(self) -> IterationTime:
        """An iteration with prompt tokens of one request alone, up to the tokens of an iteration."""
        load, prompt = self.load, self.load.computed_tokens
        # A prompt is computed on one rank.
        most = self.server.batched_tokens / self.server.ranks
        tokens = min(prompt, most) if self.server.chunked_prefill else prompt
        return self.model.compute_time(
            IterationBatch(0.0, 0.0, tokens, load.prefill_context, tokens / prompt)
        )

    def to_first_token_time(self, seconds: float) -> Quantity:
        """Returns a time before the first token, with its interval."""
        return self.spreads.first_token.around(seconds, _find_basis(self.prefill_iteration, self.prefilling))

    def to_output_token_time(self, seconds: float) -> Quantity:
        """Returns a time after the first token, with its interval."""
        return self.spreads.output_token.around(seconds, _find_basis(self.served.iteration, self.model))

    def estimate_goodput(self, levels: LatencyLimits) -> Quantity:
        """Returns the share of requests within ``levels``, by latencies at the ends of their intervals."""
        first, each, *_ = self.spreads
        value, low, high = (
            self.served.compute_goodput(_shrink_levels(levels, factors))
            for factors in (
                (first.middle, each.middle),
                (first.high, each.high),
                (first.low, each.low),
            )
        )
        return Quantity(value, min(low, value), max(high, value), each.basis_over(self.basis))

    @property
    def limit(self) -> str:
        """Limit of the rate: concurrency, arrivals, rate, cache or max_num_seqs."""
        if not self.served.saturated:
            return "concurrency" if self.load.rate_per_second is None else "arrivals"
        places = compute_request_capacity(self.server, self.load)
        if self.served.decoding < _FULL * places:
            return "rate"
        requests = self.server.most_requests
        return "cache" if requests is None or places < requests else "max_num_seqs"


def _shrink_levels(levels: LatencyLimits, factors: tuple[float, float]) -> LatencyLimits:
    """Divides the levels by ``factors``, the ratios of actual to estimated latencies."""
    first, each = factors
    whole = max(factors) if max(factors) > 1.0 else min(factors)
    return LatencyLimits(
        *(level and level / factor for level, factor in zip(levels, (first, each, whole), strict=True))
    )


def _find_basis(iteration: IterationTime, model: IterationModel) -> EvidenceBasis:
    """Returns the evidence behind the largest part of an iteration.

    Behind all of it if that is no operator.
    """
    rates = model.machine.rates
    if not rates.bases:
        return rates.basis
    match find_bound(iteration):
        case TimeBound.COMPUTE:
            return rates.get_basis(OperatorQuantity.MATRIX_PEAK, model.narrow)
        case TimeBound.MEMORY:
            return rates.get_basis(OperatorQuantity.BANDWIDTH)
    return rates.get_work_basis(model.narrow)


def find_bound(time: IterationTime) -> TimeBound:
    """Returns the resource that the largest part of an iteration is bound by."""
    compute = time.compute_bound_seconds
    parts = {
        TimeBound.COMPUTE: compute,
        TimeBound.MEMORY: time.matrices + time.experts + time.attention + time.other - compute,
        TimeBound.COMMUNICATION: time.collectives,
        TimeBound.HOST: time.launch + time.host,
    }
    return max(parts, key=lambda bound: parts[bound])
