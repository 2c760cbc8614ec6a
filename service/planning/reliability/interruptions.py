"""Checkpoints, failures, and the goodput of a run.

Failures are a Poisson process: a run on n devices fails n times as often as one on a single device. Optimal
interval: Young 1974 (first order), Daly 2006 (higher order). Expected duration: the complete cost function of
Daly 2006, which lets failures strike checkpoints and restarts too. Times are in seconds and above zero,
floats or arrays.
"""

from typing import NamedTuple

from service.planning.figures import exponential_growth, smaller, square_root
from service.planning.memory.adaptation import count_trained_parameters
from service.planning.memory.training import compute_unsharded_state
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.workload import AdaptationKind, TrainingWorkload


def checkpoint_bytes(profile: ModelProfile, workload: TrainingWorkload) -> float:
    """Returns the bytes of a checkpoint to resume from: trained weights, master copy, optimizer states.

    They count once for the whole model, whatever the layout: 14 bytes a parameter for Adam in mixed
    precision. Frozen weights and gradients are not saved; a moving average of the weights is.
    """
    state = compute_unsharded_state(profile, workload, Parallelism(), 0)
    trained, weights = float(profile.parameter_count), state.weights
    if workload.adaptation.kind is not AdaptationKind.FULL:
        trained = float(count_trained_parameters(profile, workload.adaptation))
        weights = trained * ELEMENT_BYTES[workload.recipe.weights]
    average = trained * ELEMENT_BYTES[NumberFormat.FP32] if workload.weight_average else 0.0
    return weights + state.master_weights + state.optimizer_states + average


def young_interval_seconds(stall_seconds: float, mtbf_seconds: float) -> float:
    """Returns the interval between checkpoints that loses least time, to first order (Young 1974)."""
    return square_root(2.0 * stall_seconds * mtbf_seconds)


def daly_interval_seconds(stall_seconds: float, mtbf_seconds: float) -> float:
    """Returns the interval to higher order (Daly 2006, equation 37), without the checkpoint itself.

    sqrt(2 d M) (1 + x / 3 + x^2 / 9) - d with x = sqrt(d / 2 M), for d < 2 M; M from there on.
    """
    share = smaller(stall_seconds / (2.0 * mtbf_seconds), 1.0)
    x = square_root(share)
    series = young_interval_seconds(stall_seconds, mtbf_seconds) * (1.0 + x / 3.0 + share / 9.0)
    below = (share < 1.0) * 1.0
    return below * (series - stall_seconds) + (1.0 - below) * mtbf_seconds


def system_mtbf(*components: tuple[float, float]) -> float:
    """Returns the mean time between failures of all components, each a count and the mean time of one.

    The system fails when any of them does: rates add up. In the unit of the components' times.
    """
    return 1.0 / sum(count / each for count, each in components)


def failure_probability(duration: float, mtbf: float) -> float:
    """Returns the probability of at least one failure within ``duration``, in the unit of ``mtbf``."""
    return -exponential_growth(-duration / mtbf)


class RecoveryCosts(NamedTuple):
    """Cost of checkpoints and failures, in seconds.

    ``interval`` is progress from one checkpoint to the next, ``stall`` the time that each of them stops
    training, ``mtbf`` the mean time between failures of the whole cluster, None where nothing fails;
    ``restart`` is the time from a failure until training continues, and ``unsaved`` the work beyond the
    interval that a failure loses because the last checkpoint was still being written in the background.
    """

    interval: float
    stall: float
    mtbf: float | None = None
    restart: float = 0.0
    unsaved: float = 0.0


class ElapsedTime(NamedTuple):
    """Expected time of a run by cause; the parts add up."""

    productive: float
    checkpoints: float
    lost_work: float
    restarts: float
    failures: float
    """Expected number of failures."""

    @property
    def total(self) -> float:
        """Expected duration."""
        return self.productive + self.checkpoints + self.lost_work + self.restarts


def estimate_elapsed_time(productive_seconds: float, recovery: RecoveryCosts) -> ElapsedTime:
    """Returns the expected time of a run that needs ``productive_seconds`` of progress.

    M e^(R / M) (e^((tau + d) / M) - 1) T / tau (Daly 2006), where unsaved work is redone like a longer
    restart. Failures are the total over M, and a restart, which may fail in turn, takes M (1 - e^(-R / M)) on
    average.
    """
    interval, stall, mtbf, restart, unsaved = recovery
    segments = productive_seconds / interval
    checkpoints = segments * stall
    if mtbf is None:
        nothing = 0.0 * segments
        return ElapsedTime(productive_seconds, checkpoints, nothing, nothing, nothing)
    working = segments * mtbf * exponential_growth((interval + stall) / mtbf)
    recovering = working * exponential_growth((restart + unsaved) / mtbf)
    recovered = restart + unsaved
    restarts = recovering * restart / (recovered + (recovered == 0.0))
    return ElapsedTime(
        productive=productive_seconds,
        checkpoints=checkpoints,
        lost_work=working - productive_seconds - checkpoints + (recovering - restarts),
        restarts=restarts,
        failures=(working + recovering) / mtbf,
    )


def compute_goodput(recovery: RecoveryCosts) -> float:
    """Returns the share of the elapsed time that is progress, above 0 and at most 1."""
    return 1.0 / estimate_elapsed_time(1.0, recovery).total
