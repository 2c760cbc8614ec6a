"""Time of training on a cluster, from its operators, its collectives and the schedule of its layout."""

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from service.planning.figures import larger
from service.planning.hardware.calibration import Calibration
from service.planning.hardware.cluster import Accelerator, Cluster
from service.planning.hardware.collectives import Collective, build_fabric
from service.planning.models.profile import ModelProfile
from service.planning.operators import DeviceMachine, StepFlops, TimeBound, TimedPhase, build_machine
from service.planning.parallelism import DeviceGroup, Parallelism, build_placement
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, IntervalFactors, Quantity, combine, scaled
from service.planning.training.communication import GroupLinks
from service.planning.training.compute import MicroBatchCompute, compute_step_work
from service.planning.training.iron_law import compute_utilization
from service.planning.training.offload import compute_host_rates
from service.planning.training.step import StepPlatform, StepSeconds, estimate_step_seconds
from service.planning.workload import TrainingWorkload


def build_training_machine(
    accelerator: Accelerator, workload: TrainingWorkload, calibration: Calibration
) -> DeviceMachine | None:
    """Builds the device as the framework's kernels see it; None where its bandwidth is not known."""
    machine = build_machine(accelerator, calibration.operators)
    if machine is None:
        return None
    share, rates = calibration.steps.get_rates(workload.framework).attention_share, machine.rates
    return machine._replace(
        rates=rates._replace(
            attention_first_peak=rates.attention_first_peak * share,
            attention_peak=rates.attention_peak * share,
            attention_native_peak=rates.attention_native_peak * share,
        )
    )


class StepContext(NamedTuple):
    """Results that steps of one model on one cluster share.

    A changed step is computed only where it differs. Figures must be numbers.
    """

    collectives: dict[tuple[Collective, DeviceGroup, float], float]
    computes: dict[Hashable, MicroBatchCompute]


def build_empty_known() -> StepContext:
    """Returns an empty context, for the first step."""
    return StepContext({}, {})


def estimate_step(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    *,
    cluster: Cluster,
    calibration: Calibration,
    compute_format: NumberFormat,
    known: StepContext | None = None,
) -> StepSeconds | None:
    """Estimates the seconds of one step by phase; None where the bandwidth of the device is not known.

    Degrees of ``layout``, micro-batches and lengths may be arrays, one entry for each layout; so may its
    devices, on clusters that differ in nothing else and of which each has a whole domain of ``cluster``.
    """
    machine = build_training_machine(cluster.accelerator, workload, calibration)
    if machine is None:
        return None
    collectives = {} if known is None else known.collectives
    fabric = build_fabric(cluster, calibration.links.value)
    links = GroupLinks(build_placement(layout, cluster.domain), fabric, collectives)
    domains = larger(1.0, layout.devices / cluster.domain)
    rates, host = calibration.steps.get_rates(workload.framework), cluster.host
    achieved = calibration.links.value.links[host.link.kind].rate
    platform = StepPlatform(
        machine, links, rates, compute_host_rates(host, cluster, achieved, rates.host_memory), domains
    )
    before = None if known is None else known.computes
    compute = compute_step_work(profile, workload, layout, machine, compute_format, before=before)
    return estimate_step_seconds(profile, workload, layout, compute, platform)


class ModelledTime(NamedTuple):
    """Rates of a training run on the whole cluster, and the step behind them."""

    flops: StepFlops
    seconds_per_token: Quantity
    model_flops_utilization: Quantity
    hardware_flops_utilization: Quantity
    bound: TimeBound
    bubble_share: float
    step: StepSeconds

    def slow_to(self, seconds_per_token: Quantity, *, peak_flops_per_second: float) -> "ModelledTime":
        """Returns the same work in a longer time; rates add up to ``peak_flops_per_second``."""
        model, hardware = compute_utilizations(self.flops, seconds_per_token, peak_flops_per_second)
        return self._replace(
            seconds_per_token=seconds_per_token,
            model_flops_utilization=model,
            hardware_flops_utilization=hardware,
        )

    def list_phases(self, tokens: float) -> Iterator[TimedPhase]:
        """Yields the parts of a step that take time, in its order; they add up to it."""
        whole = scaled(self.seconds_per_token, tokens)
        for name, seconds, bound in self.step.list_phases():
            if seconds > 0.0:
                yield TimedPhase(name, scaled(whole, seconds / self.step.total), bound)


def compute_utilizations(
    flops: StepFlops, seconds_per_token: Quantity, peak_flops_per_second: float
) -> tuple[Quantity, Quantity]:
    """Returns model and hardware FLOPs utilization at a summed rate of ``peak_flops_per_second``.

    No device is faster than its data sheet: the interval of the time ends where hardware FLOPs reach it.
    """

    def combine_utilization(of: float) -> Quantity:
        return combine(
            lambda s: compute_utilization(of / s, peak_flops_per_second=peak_flops_per_second),
            seconds_per_token,
        )

    return combine_utilization(flops.model), combine_utilization(flops.hardware)


def find_main_bound(step: StepSeconds) -> TimeBound:
    """Returns the limit that sets most of a step."""
    totals: dict[TimeBound, float] = {}
    for _, seconds, bound in step.list_phases():
        totals[bound] = totals.get(bound, 0.0) + seconds
    return max(totals, key=lambda bound: totals[bound])


def estimate_modelled_time(
    flops: StepFlops,
    step: StepSeconds,
    *,
    tokens: float,
    peak_flops_per_second: float,
    spread: IntervalFactors,
    basis: EvidenceBasis,
    generated: Quantity | None = None,
) -> ModelledTime:
    """Returns the rates of a step of ``tokens`` on devices whose rates add up to ``peak_flops_per_second``.

    ``spread`` is that of training; ``generated`` seconds have their own interval.
    """
    waited = sum((phase.seconds for phase in step.further if phase.name == "generation"), 0.0)
    per_token = spread.around((step.total - waited) / tokens, basis)
    if generated is not None and waited:
        part = scaled(generated, waited / generated.value / tokens)
        per_token = combine(lambda own, other: own + other, per_token, part)
    least = flops.hardware / peak_flops_per_second
    per_token = per_token._replace(low=min(per_token.value, max(per_token.low, least)))
    model, hardware = compute_utilizations(flops, per_token, peak_flops_per_second)
    return ModelledTime(
        flops, per_token, model, hardware, find_main_bound(step), step.bubble / step.total, step
    )
