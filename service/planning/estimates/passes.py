"""Serving of forward passes: latency of a request, rate, and the phases of its time."""

from dataclasses import dataclass

import numpy as np

from service.planning.cases import ForwardPassCase, PassBatching, RequestLoad
from service.planning.estimates.devices import compute_peak, get_usable_bytes
from service.planning.hardware.collectives import build_fabric
from service.planning.hardware.curves import build_assumed_efficiency
from service.planning.inference.batching import (
    BatchedPasses,
    Floats,
    estimate_closed_batching,
    estimate_open_batching,
)
from service.planning.inference.load import Percentiles, compute_percentiles
from service.planning.inference.passes import (
    PartRole,
    PartTime,
    PassModel,
    RequestParts,
    build_assumed_machine,
    build_pass_machine,
)
from service.planning.memory.capacity import count_pass_requests, find_largest_concurrency
from service.planning.memory.serving import estimate_inference_memory
from service.planning.notes import AnswerNotes
from service.planning.operators import TimeBound, TimedPhase
from service.planning.quantity import EvidenceBasis, IntervalFactors, Quantity, assumed

_MOST_REQUESTS = 1024
"""Requests of a pass that memory does not limit."""
_POINTS = 24
"""Number of batch sizes at which seconds are computed; values between them are interpolated linearly."""


@dataclass(frozen=True, kw_only=True)
class PassServing:
    """Serving by ``replicas`` equal servers of passes; ``batched`` is one of them."""

    batched: BatchedPasses
    parts: tuple[PartTime, ...]
    """Times of the parts at the mean batch."""
    alone: tuple[PartTime, ...]
    """Times of the parts for one request."""
    requested: RequestParts
    replicas: float
    pipeline: float
    arriving: float | None
    """Requests per second of the whole cluster, where they arrive at a rate."""
    spread: IntervalFactors
    basis: EvidenceBasis

    def to_time(self, figure: float) -> Quantity:
        """Returns a time with its interval."""
        return self.spread.around(figure, self.basis)

    def to_rate(self, figure: float) -> Quantity:
        """Returns a rate with its interval, the inverse of that of a time."""
        value, low, high, basis = self.spread.around(1.0, self.basis)
        return Quantity(figure * value, figure / high, figure / low, basis)

    @property
    def requests_per_second(self) -> Quantity:
        """Requests per second of the whole cluster; the arrival rate where that limits them."""
        rate = self.batched.requests_per_second * self.replicas
        if self.arriving is None or self.batched.saturated:
            return self.to_rate(rate)
        return assumed(rate) if self.most_requests_per_second.low >= rate else self.to_rate(rate)

    @property
    def most_requests_per_second(self) -> Quantity:
        """Highest rate of the cluster."""
        return self.to_rate(self.batched.most_requests_per_second * self.replicas)

    @property
    def request_seconds(self) -> Quantity | None:
        """Mean seconds of a request; None where more arrive than can be served."""
        return None if self.batched.saturated else self.to_time(self.batched.mean_seconds)

    @property
    def alone_seconds(self) -> float:
        """Seconds of a request that meets no other."""
        return float(sum(part.seconds for part in self.alone))

    @property
    def request_percentiles(self) -> Percentiles | None:
        """Percentiles of the seconds of a request."""
        latencies = self.batched.latencies
        return None if latencies is None else compute_percentiles(latencies)

    @property
    def phases(self) -> tuple[TimedPhase, ...]:
        """Phases of a request's time: waiting, and the models that it passes."""
        found: dict[PartRole, tuple[float, TimeBound]] = {}
        for part in self.parts:
            known, bound = found.get(part.role, (0.0, part.bound))
            found[part.role] = (known + float(part.seconds), bound)
        passing = sum(seconds for seconds, _ in found.values())
        phases = [
            TimedPhase(role.value, self.to_time(seconds), bound) for role, (seconds, bound) in found.items()
        ]
        waiting = self.batched.mean_seconds - passing
        if not self.batched.saturated and waiting > 1e-9 * passing:
            phases.insert(0, TimedPhase("waiting", self.to_time(waiting), TimeBound.WAITING))
        return tuple(phases)


def serve_passes(case: ForwardPassCase, parts: RequestParts, notes: AnswerNotes) -> PassServing | None:
    """Estimates the serving of requests with these parts; None where the memory bandwidth is not known."""
    layout, cluster, calibration = case.layout, case.cluster, case.curves.calibration
    workload, load = case.resident.workload, case.load
    if case.assumed is None:
        machine = build_pass_machine(cluster.accelerator, calibration, parts.runtime)
        spread = case.curves.pass_latency
    else:
        machine = build_assumed_machine(cluster.accelerator, *build_assumed_efficiency(*case.assumed).shares)
        spread = IntervalFactors(1.0, 1.0, "assumed")
    if machine is None:
        return None
    fabric = build_fabric(cluster, calibration.links.value)
    model = PassModel(parts.parts, layout, machine=machine, fabric=fabric)
    replicas = layout.data if load.concurrency is None else min(layout.data, load.concurrency)
    most = _count_most_requests(case, parts, notes)
    batched = _batch_requests(model, load, case.batching, replicas, float(most))
    return PassServing(
        batched=batched,
        parts=model.compute_part_times(batched.batch),
        alone=model.compute_part_times(1.0),
        requested=parts,
        replicas=float(replicas),
        pipeline=float(layout.pipeline),
        arriving=load.rate_per_second,
        spread=spread,
        basis=machine.machine.rates.get_work_basis(compute_peak(cluster, workload)[0]),
    )


def _count_most_requests(case: ForwardPassCase, parts: RequestParts, notes: AnswerNotes) -> int:
    """Returns the requests of one pass: those of the question, at most as many as the memory holds."""
    profile, workload = case.resident
    most = _MOST_REQUESTS if case.batching.most_requests is None else case.batching.most_requests
    limit = get_usable_bytes(case.cluster, workload)
    if limit is None:
        return most
    memory = estimate_inference_memory(profile, workload._replace(concurrency=case.layout.data), case.layout)
    if workload.pass_elements:
        # A request holds as many samples as a pass takes at a time.
        inside = max(part.samples for part, _ in parts.parts)
        fits = int(count_pass_requests(memory, workload, limit) / inside)
    else:
        fits = find_largest_concurrency(memory, workload, limit)
    if not fits:
        detail = "a device does not hold the model and one request; the rates assume one that does"
        notes.warn("DOES_NOT_FIT", "/cluster", detail)
    return max(1, min(most, fits))


def _batch_requests(
    model: PassModel, load: RequestLoad, batching: PassBatching, replicas: int, most: float
) -> BatchedPasses:
    """Batches the requests of one replica under its share of the load.

    A pipeline takes a new pass per stage.
    """
    stages = float(model.layout.pipeline)
    group = max(1.0, (load.concurrency or 1) / replicas / stages)
    sizes = np.unique([*np.round(np.geomspace(1.0, most, _POINTS)), min(group, most)])
    known = model.compute_seconds(sizes) / stages

    def interpolate_seconds(requests: Floats) -> Floats:
        return np.asarray(np.interp(requests, sizes, known))

    if load.rate_per_second is None:
        found = estimate_closed_batching(interpolate_seconds, group, most)
        if stages == 1.0:
            return found
        through = found.latencies
        return found._replace(
            latencies=None if through is None else through * stages, mean_seconds=found.mean_seconds * stages
        )
    found = estimate_open_batching(
        interpolate_seconds, load.rate_per_second / replicas, most, batching.delay_seconds
    )
    behind = found.pass_seconds * (stages - 1.0)
    return found._replace(
        latencies=None if found.latencies is None else found.latencies + behind,
        mean_seconds=found.mean_seconds + behind,
    )
