"""A server of passes: how long a request takes, how many end a second, and where their time goes."""

from dataclasses import dataclass

import numpy as np
from pydantic import MISSING

from service.planning.hardware.cluster import Cluster
from service.planning.hardware.collectives import fabric_of
from service.planning.hardware.curves import Efficiency
from service.planning.inference.batching import Batched, Floats, closed_batching, open_batching
from service.planning.inference.load import Percentiles, percentiles
from service.planning.inference.passes import (
    PartTime,
    PassModel,
    Role,
    assumed_machine,
    pass_machine,
)
from service.planning.memory.capacity import largest_concurrency, requests_of_a_pass
from service.planning.memory.serving import inference_memory
from service.planning.operators import Bound, Phase
from service.planning.quantity import Basis, Quantity, Spread, assumed
from service.planning.workload import InferenceWorkload
from service.resolve import Resolved
from service.resolve.catalog import Catalog
from service.resolve.hardware import compute_peak, usable_bytes
from service.resolve.load import Asked
from service.resolve.passes import WalkedPasses, walked_passes
from service.schemas.answer import quantity
from service.schemas.notes import Notes
from service.schemas.passes import PassesAnswer
from service.schemas.workloads import InferenceWorkloadInput

_MOST_REQUESTS = 1024
"""Of a pass whose memory is no limit."""
_POINTS = 24
"""Batches whose seconds are worked out; between them on a line."""


@dataclass(frozen=True, kw_only=True)
class Passing:
    """What ``replicas`` equal servers of passes do; ``batched`` is one of them."""

    batched: Batched
    parts: tuple[PartTime, ...]
    """At the mean batch."""
    alone: tuple[PartTime, ...]
    """For one request."""
    walked: WalkedPasses
    replicas: float
    pipeline: float
    arriving: float | None
    """Requests a second of the whole cluster, where they arrive at a rate."""
    spread: Spread
    basis: Basis

    def around(self, figure: float) -> Quantity:
        """A time with its interval."""
        return self.spread.around(figure, self.basis)

    def rate(self, figure: float) -> Quantity:
        """A rate with its interval: where time is longer, it is lower."""
        value, low, high, basis = self.spread.around(1.0, self.basis)
        return Quantity(figure * value, figure / high, figure / low, basis)

    @property
    def requests_per_second(self) -> Quantity:
        """Of the whole cluster; as many as arrive, where that is what limits them."""
        rate = self.batched.requests_per_second * self.replicas
        if self.arriving is None or self.batched.saturated:
            return self.rate(rate)
        return assumed(rate) if self.most_requests_per_second.low >= rate else self.rate(rate)

    @property
    def most_requests_per_second(self) -> Quantity:
        """The rate that the cluster cannot pass."""
        return self.rate(self.batched.most_requests_per_second * self.replicas)

    @property
    def request_seconds(self) -> Quantity | None:
        """Mean over requests; None where more arrive than can be served."""
        return None if self.batched.saturated else self.around(self.batched.mean_seconds)

    @property
    def alone_seconds(self) -> float:
        """Of a request that meets no other."""
        return float(sum(part.seconds for part in self.alone))

    @property
    def request_percentiles(self) -> Percentiles | None:
        """By request."""
        latencies = self.batched.latencies
        return None if latencies is None else percentiles(latencies)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Where the time of a request goes: its wait, and the models that it passes."""
        found: dict[Role, tuple[float, Bound]] = {}
        for part in self.parts:
            known, bound = found.get(part.role, (0.0, part.bound))
            found[part.role] = (known + float(part.seconds), bound)
        passing = sum(seconds for seconds, _ in found.values())
        phases = [Phase(role.value, self.around(seconds), bound) for role, (seconds, bound) in found.items()]
        waiting = self.batched.mean_seconds - passing
        if not self.batched.saturated and waiting > 1e-9 * passing:
            phases.insert(0, Phase("waiting", self.around(waiting), Bound.WAITING))
        return tuple(phases)

    def answer(self) -> PassesAnswer:
        """The models of a request, and how they are batched."""
        return {
            "models": [
                {
                    "phase": time.role.value,  # type: ignore[typeddict-item]
                    "evaluations": time.passes,
                    "samples": part.samples,
                    "flops": time.passes * float(time.work.flops) / self.batched.batch,
                }
                for time, (part, _) in zip(self.parts, self.walked.parts, strict=True)
            ],
            "samples_per_second": quantity(_times(self.requests_per_second, self.walked.samples)),
            "batch": self.batched.batch,
            "pass_seconds": quantity(self.around(self.batched.pass_seconds * self.pipeline)),
        }


def _times(figure: Quantity, factor: float) -> Quantity:
    return Quantity(figure.value * factor, figure.low * factor, figure.high * factor, figure.basis)


def serve_passes(
    resolved: Resolved,
    given: InferenceWorkloadInput,
    cluster: Cluster,
    catalog: Catalog,
    notes: Notes,
    *,
    efficiency: Efficiency | None = None,
) -> Passing | None:
    """What the cluster does; None where its bandwidth is not known.

    ``efficiency`` is one that the question assumes. Raises :class:`PlanningError` as ``walked_passes`` does.
    """
    held, layout, curves = resolved.held, resolved.layout, catalog.curves
    workload, asked = held.workload, resolved.asked
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    assert asked is not None  # noqa: S101
    peaks = cluster.accelerator.peak_flops_per_second
    walked = walked_passes(
        given,
        resolved.model.profile,
        workload,
        held.sample,
        peaks=peaks,
        catalog=catalog,
        notes=notes,
    )
    if efficiency is None:
        machine = pass_machine(cluster.accelerator, curves.calibration, walked.runtime)
    else:
        machine = assumed_machine(cluster.accelerator, *efficiency.shares)
    if machine is None:
        return None
    fabric = fabric_of(cluster, curves.calibration.links.value)
    model = PassModel(walked.parts, layout, machine=machine, fabric=fabric)
    replicas = layout.data if asked.concurrency is None else min(layout.data, asked.concurrency)
    most = _most_requests(resolved, given, cluster, walked, notes)
    batched = _batched(model, asked, given, replicas, float(most))
    spread = curves.pass_latency if efficiency is None else Spread(1.0, 1.0, "assumed")
    return Passing(
        batched=batched,
        parts=model.times(batched.batch),
        alone=model.times(1.0),
        walked=walked,
        replicas=float(replicas),
        pipeline=float(layout.pipeline),
        arriving=asked.rate_per_second,
        spread=spread,
        basis=machine.machine.rates.basis_of_work(compute_peak(cluster, workload)[0]),
    )


def _most_requests(
    resolved: Resolved,
    given: InferenceWorkloadInput,
    cluster: Cluster,
    walked: WalkedPasses,
    notes: Notes,
) -> int:
    """Requests of one pass: as the question says, at most those that the memory holds."""
    profile, workload = resolved.held.profile, resolved.held.workload
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    most = _MOST_REQUESTS
    if given.batching is not MISSING and given.batching.max_requests is not MISSING:
        most = given.batching.max_requests
    limit = usable_bytes(cluster, workload)
    if limit is None:
        return most
    memory = inference_memory(profile, workload._replace(concurrency=resolved.layout.data), resolved.layout)
    if workload.pass_elements:
        # Of a request, as many samples as a pass takes at a time.
        inside = max(part.samples for part, _ in walked.parts)
        fits = int(requests_of_a_pass(memory, workload, limit) / inside)
    else:
        fits = largest_concurrency(memory, workload, limit)
    if not fits:
        detail = "a device does not hold the model and one request; the rates are those of one that does"
        notes.warn("DOES_NOT_FIT", "/cluster", detail)
    return max(1, min(most, fits))


def _batched(
    model: PassModel, asked: Asked, given: InferenceWorkloadInput, replicas: int, most: float
) -> Batched:
    """One replica under its share of the load; stages of a pipeline take the next pass each."""
    stages = float(model.layout.pipeline)
    group = max(1.0, (asked.concurrency or 1) / replicas / stages)
    sizes = np.unique([*np.round(np.geomspace(1.0, most, _POINTS)), min(group, most)])
    known = model.seconds(sizes) / stages

    def seconds(requests: Floats) -> Floats:
        return np.asarray(np.interp(requests, sizes, known))

    delay = 0.0 if given.batching is MISSING else given.batching.delay_seconds
    if asked.rate_per_second is None:
        found = closed_batching(seconds, group, most)
        if stages == 1.0:
            return found
        through = found.latencies
        return found._replace(
            latencies=None if through is None else through * stages, mean_seconds=found.mean_seconds * stages
        )
    found = open_batching(seconds, asked.rate_per_second / replicas, most, delay)
    behind = found.pass_seconds * (stages - 1.0)
    return found._replace(
        latencies=None if found.latencies is None else found.latencies + behind,
        mean_seconds=found.mean_seconds + behind,
    )
