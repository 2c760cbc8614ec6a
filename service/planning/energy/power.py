"""Power from the activity of a device, and energy as power times time.

A device draws an idle power, more while any kernel runs, and more again for the work of the kernel: it
multiplies, moves bytes to and from memory, sends.

    busy = limit (idle + active + unpacking (n / b) + matrix (m / b)^g + communication (c / b))
    + joules (bytes / b)
    mean = (b min(limit, busy) + (t - b) limit idle) / t

with b the seconds of t in which kernels run, n those of kernels that unpack narrow weights, m those that the
multipliers would take at their sustained rate, and c those of communication. Dynamic power is switched
capacitance times voltage squared times clock (Chandrakasan et al. 1992): m and bytes count the switching.
Where the sum is above the limit, the device lowers its clock and voltage until it is not; the remaining rate
is part of the time of the work, which uses the rate sustained under the limit.

IT energy is the energy of accelerators and hosts; facility energy is IT energy times the power usage
effectiveness (PUE, ISO/IEC 30134-2), which counts cooling and distribution.
"""

from collections.abc import Iterable
from typing import NamedTuple

from service.planning.figures import is_zero, larger, smaller
from service.planning.hardware.calibration.power import PowerRates
from service.planning.inference import IterationTime
from service.planning.inference.passes import PartTime
from service.planning.operators import TimeBound
from service.planning.training.step import StepSeconds
from service.planning.units import HOUR_SECONDS

WATTS_PER_KILOWATT = 1000.0


class DeviceWork(NamedTuple):
    """Work of one device within ``seconds``; figures may be arrays of one shape.

    ``busy_seconds`` are those in which a kernel runs, at most ``seconds``; ``matrix_seconds`` those that the
    multiplications would take at the sustained rate. Of the busy ones, in ``communication_seconds`` the
    device sends and receives, in ``unpacking_seconds`` its kernels scale or unpack weights of 8 bits and
    fewer.
    """

    seconds: float
    busy_seconds: float
    matrix_seconds: float = 0.0
    moved_bytes: float = 0.0
    communication_seconds: float = 0.0
    unpacking_seconds: float = 0.0

    def scale_to_seconds(self, seconds: float) -> "DeviceWork":
        """Returns the part of the work that takes ``seconds``."""
        return DeviceWork(*[figure * seconds / self.seconds for figure in self])


_LEAST_SECONDS = 1e-12
"""Keeps the power of a device without a running kernel defined; its share of the time is 0."""


def _demanded_watts(work: DeviceWork, limit_watts: float, rates: PowerRates) -> float:
    """Returns the draw of the device while kernels run, at its full clock."""
    busy = larger(work.busy_seconds, _LEAST_SECONDS)
    multiplying: float = (work.matrix_seconds / busy) ** rates.matrix_exponent
    shares = (
        rates.idle_share
        + rates.active_share
        + rates.unpacking_share * work.unpacking_seconds / busy
        + rates.matrix_share * multiplying
        + rates.communication_share * work.communication_seconds / busy
    )
    return shares * limit_watts + rates.byte_joules * work.moved_bytes / busy


def device_watts(work: DeviceWork, limit_watts: float, rates: PowerRates) -> float:
    """Returns the mean draw of one device in watts, at most its limit; ``seconds`` are above zero."""
    busy = smaller(limit_watts, _demanded_watts(work, limit_watts, rates))
    share = work.busy_seconds / work.seconds
    return busy * share + idle_watts(limit_watts, rates) * (1.0 - share)


def is_limited(work: DeviceWork, limit_watts: float, rates: PowerRates) -> bool:
    """Returns true if the device would draw more than its limit at full clock, so that the clock falls."""
    return bool(_demanded_watts(work, limit_watts, rates) > limit_watts)


def idle_watts(limit_watts: float, rates: PowerRates) -> float:
    """Returns the draw of one device without a running kernel."""
    return rates.idle_share * limit_watts


def mean_watts(parts: Iterable[tuple[float, float]]) -> float:
    """Returns the mean of several powers, each over its seconds."""
    joules = whole = 0.0
    for seconds, watts in parts:
        joules += seconds * watts
        whole += seconds
    return joules / whole


def build_step_works(
    step: StepSeconds, *, matrix_seconds: float, bandwidth_bytes_per_second: float
) -> tuple[DeviceWork, ...]:
    """Returns the work of a device in one training step, by phase; ``matrix_seconds`` are those of the step.

    Passes of further models work like the own ones. The optimizer, and generation that memory bounds, stream
    at ``bandwidth_bytes_per_second``, the bandwidth that kernels reach. A device that waits for others, in a
    bubble or for stragglers, spins in the kernel of a collective; one that waits for its host, or for
    offloaded data, runs none.
    """
    slowest, times = step.slowest, step.micro_batches
    own = times * (slowest.forward + slowest.backward + slowest.recomputation)
    passes, streams, others = own, step.optimizer, step.host + times * slowest.launch
    for phase in step.further:
        # Not in place: arrays of the step must not change.
        passes = passes + phase.seconds * (phase.bound is TimeBound.COMPUTE)
        streams = streams + phase.seconds * (phase.bound is TimeBound.MEMORY)
        others = others + phase.seconds * (phase.bound not in (TimeBound.COMPUTE, TimeBound.MEMORY))
    waits = slowest.tensor + slowest.context + slowest.expert + slowest.data + slowest.pipeline
    sending = times * waits + step.gradients
    waiting = step.bubble + step.stragglers
    others = others + step.transfers + step.host_update
    return (
        DeviceWork(passes, passes, matrix_seconds, times * slowest.moved_bytes * passes / own),
        DeviceWork(streams, streams, 0.0, streams * bandwidth_bytes_per_second),
        DeviceWork(sending, sending, communication_seconds=sending),
        DeviceWork(waiting, waiting),
        DeviceWork(others, 0.0),
    )


def build_iteration_work(
    time: IterationTime, *, sustained_flops_per_second: float, is_narrow: bool
) -> DeviceWork:
    """Returns the work of a device in one iteration of a serving engine.

    ``is_narrow`` for weights below 16 bits. All of it counts as busy: engines prepare an iteration while
    another runs, and measured rows whose time the model of iterations assigns to the host draw as much as
    others. In a pipeline, every device works for as many groups of requests as there are stages while one of
    them passes, so that its work in that time is that of all stages in ``time``.
    """
    busy = time.seconds
    return DeviceWork(
        busy,
        busy,
        time.flops / sustained_flops_per_second,
        time.moved_bytes,
        time.collectives,
        busy * is_narrow,
    )


def build_pass_work(part: PartTime, *, sustained_flops_per_second: float, is_narrow: bool) -> DeviceWork:
    """Returns the work of a device in the evaluations of a model over a batch; it waits for long launches."""
    busy = part.passes * (part.work.seconds + part.collective_seconds)
    return DeviceWork(
        part.seconds,
        busy,
        part.passes * part.work.flops / sustained_flops_per_second,
        part.passes * part.work.moved_bytes,
        part.passes * part.collective_seconds,
        busy * is_narrow,
    )


def mean_device_watts(works: Iterable[DeviceWork], limit_watts: float, rates: PowerRates) -> float:
    """Returns the mean draw over works that follow each other; works without time do not count."""
    taking = [work for work in works if not is_zero(work.seconds)]
    return mean_watts(
        (work.seconds, device_watts(_ensure_positive_seconds(work), limit_watts, rates)) for work in taking
    )


def _ensure_positive_seconds(work: DeviceWork) -> DeviceWork:
    """Returns the work with a positive time, so that its power is defined; its weight is 0."""
    return work._replace(seconds=larger(work.seconds, _LEAST_SECONDS))


def energy_per_token_joules(watts: float, devices: float, tokens_per_second: float) -> float:
    """Returns the energy of ``devices`` that draw ``watts`` each, per token that they generate."""
    return watts * devices / tokens_per_second


def power_watts(
    *,
    accelerators: float = 0.0,
    accelerator_watts: float = 0.0,
    hosts: float = 0.0,
    host_watts: float = 0.0,
) -> float:
    """Returns the power of accelerators and hosts together."""
    return accelerators * accelerator_watts + hosts * host_watts


def energy_kwh(watts: float, seconds: float) -> float:
    """Returns the energy of a constant power over a time."""
    return watts * seconds / HOUR_SECONDS / WATTS_PER_KILOWATT


def facility_kwh(it_kwh: float, pue: float) -> float:
    """Returns the energy at the meter of the building for IT energy inside it."""
    return it_kwh * pue
