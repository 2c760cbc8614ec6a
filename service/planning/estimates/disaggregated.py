"""Disaggregated serving: prefill and decode on separate replicas, and the cache transfer between them."""

from dataclasses import dataclass, replace
from functools import cached_property

from service.planning.cases import Disaggregation, ReplicaPool, ServingCase, TokenProposals
from service.planning.errors import PlanningError
from service.planning.estimates.calibrations import TimedWorkload, note_rates
from service.planning.estimates.devices import get_usable_bytes
from service.planning.estimates.iterations import build_iterations
from service.planning.estimates.serving import (
    ServingEstimate,
    ServingSpreads,
    build_load,
    build_server,
    build_speculation,
    count_replica_requests,
    find_bound,
)
from service.planning.hardware.collectives import build_rail
from service.planning.inference import IterationBatch, IterationModel, IterationTime
from service.planning.inference.disaggregated import (
    CacheTransfer,
    DisaggregatedRates,
    build_transfer,
    estimate_disaggregated,
)
from service.planning.inference.disaggregated import ReplicaPool as ServerPool
from service.planning.notes import AnswerNotes
from service.planning.operators import TimeBound, TimedPhase


@dataclass(frozen=True, kw_only=True)
class DisaggregatedServing(ServingEstimate):
    """A disaggregated system as one server, with its prefill and its decode side."""

    sides: DisaggregatedRates
    transfer: CacheTransfer
    prefill_model: IterationModel
    prefill_tokens: float
    """Most tokens of one iteration of a prefill replica."""
    devices: tuple[int, int]
    """Devices of all replicas of the prefill and the decode side."""

    @property
    def prefilling(self) -> IterationModel:
        """Iterations of the side that computes prompts."""
        return self.prefill_model

    @cached_property
    def prefill_iteration(self) -> IterationTime:
        """An iteration of a prefill replica with one prompt, cut to the tokens of an iteration."""
        load, prompt = self.load, self.load.computed_tokens
        tokens = min(prompt, self.prefill_tokens)
        return self.prefill_model.compute_time(
            IterationBatch(0.0, 0.0, tokens, load.prefill_context, tokens / prompt)
        )

    @property
    def computing(self) -> tuple[tuple[float, IterationTime], ...]:
        """Shares of the time of all devices of both sides, with the iteration that fills each."""
        prefill, decode = (devices / sum(self.devices) for devices in self.devices)
        sides = self.sides
        return (
            (prefill * sides.prefill_utilization, self.prefill_iteration),
            (decode * sides.decode_utilization, self.served.iteration),
        )

    def apply_corrections(self, spreads: ServingSpreads) -> ServingSpreads:
        """Returns the spreads unchanged: runs of replicas that do both say little of two sides."""
        return spreads

    @property
    def requests_inside(self) -> float:
        """Requests that decode on one rank of a replica, on average."""
        return self.sides.decode_batch / self.ranks

    @property
    def phases(self) -> tuple[TimedPhase, ...]:
        """Phases of a request's time: waiting, prefill, transfer of the cache, decode."""
        seconds = self.served.time_to_first_token_seconds.mean
        whole = self.served.request_seconds.mean
        rate = self.served.requests_per_second
        sent = self.sides.exposed_seconds
        waiting = min(self.served.waiting / rate, max(0.0, seconds - sent)) if rate else 0.0
        phases = [
            TimedPhase(
                "prefill",
                self.to_first_token_time(seconds - sent - waiting),
                find_bound(self.prefill_iteration),
            ),
            TimedPhase("transfer", self.to_first_token_time(sent), TimeBound.COMMUNICATION),
        ]
        if waiting:
            phases.insert(0, TimedPhase("waiting", self.to_first_token_time(waiting), TimeBound.WAITING))
        if whole > seconds:
            phases.append(
                TimedPhase(
                    "decode", self.to_output_token_time(whole - seconds), find_bound(self.served.iteration)
                )
            )
        return tuple(phases)

    @property
    def limit(self) -> str:
        """Limit of the rate: the concurrency, the arrivals, or a side."""
        if not self.served.saturated and not self.sides.is_reached(self.served.requests_per_second):
            return "concurrency" if self.load.rate_per_second is None else "arrivals"
        return self.sides.limit


@dataclass(frozen=True, slots=True)
class _DisaggregatedPool:
    """A pool as one server, and the requests that one of its replicas holds."""

    pool: ServerPool
    model: IterationModel
    held: float | None


def serve_disaggregated(
    case: ServingCase, pools: Disaggregation, notes: AnswerNotes
) -> DisaggregatedServing | None:
    """Estimates the whole system; None where the data of a device do not suffice."""
    prefill = _build_side(case, pools.prefill, None, notes)
    decode = _build_side(case, pools.decode, case.load.proposals, notes)
    if prefill is None or decode is None:
        return None
    load = build_load(case, 1)
    if not load.decodes:
        detail = "nothing is decoded: a request has one output token or none"
        raise PlanningError("NOT_MODELLED", "/workload/disaggregated", detail)
    transfer = build_transfer(
        case.profile,
        load.inputs.mean,
        case.workload.cache_format,
        prefill=pools.prefill.layout,
        decode=pools.decode.layout,
        rail=build_rail(pools.link, case.curves.links.value),
        by_layer=pools.is_by_layer,
        handoff_seconds=decode.model.rates.handoff_seconds,
    )
    found = estimate_disaggregated(prefill.pool, decode.pool, load, transfer)
    return DisaggregatedServing(
        served=found.served,
        model=decode.model,
        server=decode.pool.server,
        load=load,
        replicas=1.0,
        ranks=pools.decode.layout.expert,
        held=decode.held,
        case=case,
        sides=found.sides,
        transfer=transfer,
        prefill_model=prefill.model,
        prefill_tokens=float(prefill.pool.server.batched_tokens),
        devices=(pools.prefill.cluster.accelerator_count, pools.decode.cluster.accelerator_count),
    )


def _build_side(
    case: ServingCase, pool: ReplicaPool, proposals: TokenProposals | None, notes: AnswerNotes
) -> _DisaggregatedPool | None:
    resident = case.resident
    if resident.profile is case.profile:
        resident = resident._replace(profile=pool.profile)
    alone = replace(
        case,
        profile=pool.profile,
        resident=resident,
        workload=pool.workload,
        layout=pool.layout,
        cluster=pool.cluster,
        device=pool.device,
    )
    model = build_iterations(alone)
    if model is None:
        return None
    note_rates(TimedWorkload(pool.profile, pool.workload, pool.layout, pool.cluster), pool.device, notes)
    limit = get_usable_bytes(pool.cluster, pool.workload)
    held = None if limit is None else count_replica_requests(alone, limit)
    server = build_server(alone, held)._replace(frontend_seconds=model.rates.frontend_seconds)
    if proposals is not None:
        server = server._replace(speculation=build_speculation(alone, proposals))
    return _DisaggregatedPool(ServerPool(model, server, float(pool.replicas)), model, held)
