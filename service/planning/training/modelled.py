"""The time of training on a cluster, from its operators, its collectives and the schedule of its layout."""

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from service.planning.figures import larger
from service.planning.hardware.calibration import Calibration
from service.planning.hardware.cluster import Accelerator, Cluster
from service.planning.hardware.collectives import Collective, fabric_of
from service.planning.models.profile import Profile
from service.planning.operators import Bound, Machine, Phase, StepFlops, machine_of
from service.planning.parallelism import Group, Parallelism, placement
from service.planning.precision import NumberFormat
from service.planning.quantity import Basis, Quantity, Spread, combine, scaled
from service.planning.training.communication import Links
from service.planning.training.compute import Compute, compute_of
from service.planning.training.iron_law import utilization_of
from service.planning.training.offload import host_rates
from service.planning.training.step import Platform, StepSeconds, step_seconds
from service.planning.workload import TrainingWorkload


def machine_under(
    accelerator: Accelerator, workload: TrainingWorkload, calibration: Calibration
) -> Machine | None:
    """The device as the framework's kernels see it; None where its bandwidth is not known."""
    machine = machine_of(accelerator, calibration.operators)
    if machine is None:
        return None
    share, rates = calibration.steps.rates(workload.framework).attention_share, machine.rates
    return machine._replace(
        rates=rates._replace(
            attention_first_peak=rates.attention_first_peak * share,
            attention_peak=rates.attention_peak * share,
            attention_native_peak=rates.attention_native_peak * share,
        )
    )


class Known(NamedTuple):
    """What steps of one model on one cluster have in common.

    A changed step is worked out where it differs. Figures must be numbers.
    """

    collectives: dict[tuple[Collective, Group, float], float]
    computes: dict[Hashable, Compute]


def nothing_known() -> Known:
    """Before the first step."""
    return Known({}, {})


def modelled_step(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    *,
    cluster: Cluster,
    calibration: Calibration,
    compute_format: NumberFormat,
    known: Known | None = None,
) -> StepSeconds | None:
    """Seconds of one step by phase; None where the bandwidth of the device is not known.

    Degrees of ``layout``, micro-batches and lengths may be arrays, one entry for each layout; so may its
    devices, on clusters that differ in nothing else and of which each has a whole domain of ``cluster``.
    """
    machine = machine_under(cluster.accelerator, workload, calibration)
    if machine is None:
        return None
    collectives = {} if known is None else known.collectives
    fabric = fabric_of(cluster, calibration.links.value)
    links = Links(placement(layout, cluster.domain), fabric, collectives)
    domains = larger(1.0, layout.devices / cluster.domain)
    rates, host = calibration.steps.rates(workload.framework), cluster.host
    achieved = calibration.links.value.links[host.link.kind].rate
    platform = Platform(
        machine, links, rates, host_rates(host, cluster, achieved, rates.host_memory), domains
    )
    before = None if known is None else known.computes
    compute = compute_of(profile, workload, layout, machine, compute_format, before=before)
    return step_seconds(profile, workload, layout, compute, platform)


class ModelledTime(NamedTuple):
    """Rates of a training run on the whole cluster, and the step behind them."""

    flops: StepFlops
    seconds_per_token: Quantity
    model_flops_utilization: Quantity
    hardware_flops_utilization: Quantity
    bound: Bound
    bubble_share: float
    step: StepSeconds

    def slowed_to(self, seconds_per_token: Quantity, *, peak_flops_per_second: float) -> "ModelledTime":
        """The same work in a longer time, on devices whose rates add up to ``peak_flops_per_second``."""
        model, hardware = utilizations(self.flops, seconds_per_token, peak_flops_per_second)
        return self._replace(
            seconds_per_token=seconds_per_token,
            model_flops_utilization=model,
            hardware_flops_utilization=hardware,
        )

    def phases(self, tokens: float) -> Iterator[Phase]:
        """The parts of a step that take time, in its order; they add up to it."""
        whole = scaled(self.seconds_per_token, tokens)
        for name, seconds, bound in self.step.phases():
            if seconds > 0.0:
                yield Phase(name, scaled(whole, seconds / self.step.total), bound)


def utilizations(
    flops: StepFlops, seconds_per_token: Quantity, peak_flops_per_second: float
) -> tuple[Quantity, Quantity]:
    """Model and hardware FLOPs utilization of devices whose rates add up to ``peak_flops_per_second``.

    No device is faster than its data sheet: the interval of the time ends where hardware FLOPs reach it.
    """

    def share(of: float) -> Quantity:
        return combine(
            lambda s: utilization_of(of / s, peak_flops_per_second=peak_flops_per_second), seconds_per_token
        )

    return share(flops.model), share(flops.hardware)


def main_bound(step: StepSeconds) -> Bound:
    """The limit that sets most of a step."""
    totals: dict[Bound, float] = {}
    for _, seconds, bound in step.phases():
        totals[bound] = totals.get(bound, 0.0) + seconds
    return max(totals, key=lambda bound: totals[bound])


def modelled_time(
    flops: StepFlops,
    step: StepSeconds,
    *,
    tokens: float,
    peak_flops_per_second: float,
    spread: Spread,
    basis: Basis,
    generated: Quantity | None = None,
) -> ModelledTime:
    """Rates of a step of ``tokens`` on devices whose rates add up to ``peak_flops_per_second``.

    ``spread`` is that of training; what is ``generated`` has its own interval.
    """
    waited = sum((phase.seconds for phase in step.further if phase.name == "generation"), 0.0)
    per_token = spread.around((step.total - waited) / tokens, basis)
    if generated is not None and waited:
        part = scaled(generated, waited / generated.value / tokens)
        per_token = combine(lambda own, other: own + other, per_token, part)
    least = flops.hardware / peak_flops_per_second
    per_token = per_token._replace(low=min(per_token.value, max(per_token.low, least)))
    model, hardware = utilizations(flops, per_token, peak_flops_per_second)
    return ModelledTime(flops, per_token, model, hardware, main_bound(step), step.bubble / step.total, step)
