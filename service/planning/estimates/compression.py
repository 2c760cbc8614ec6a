"""Effect of compressed gradients on a training step."""

from typing import NamedTuple

from service.planning.estimates.devices import compute_peak
from service.planning.estimates.runs import TrainingRun
from service.planning.quantity import Quantity, scaled
from service.planning.training.compressed import estimate_compression_gain
from service.planning.training.modelled import ModelledTime


class CompressionEffect(NamedTuple):
    """Time that compressed gradients save and cost in a step.

    ``ratio`` is the share of the bytes still sent.
    """

    ratio: float
    compression_seconds: Quantity
    plain_step_seconds: Quantity
    pays: bool


def estimate_compression(run: TrainingRun) -> CompressionEffect | None:
    """Returns the effect of the case's compression; None without one, or without a modelled step."""
    case, time = run.case, run.computing
    if case.workload.compression is None or not isinstance(time, ModelledTime):
        return None
    gain = estimate_compression_gain(
        case.profile,
        case.workload,
        case.layout,
        time.step,
        cluster=case.cluster,
        calibration=case.curves.calibration,
        compute_format=compute_peak(case.cluster, case.workload)[0],
    )
    if gain is None:
        return None
    step = scaled(time.seconds_per_token, case.step_tokens / time.step.total)
    verdict = gain.verdict
    if not verdict.pays:
        run.notes.warn(
            "COMPRESSION_DOES_NOT_PAY",
            "/workload/gradient_compression",
            "it takes longer than the communication that it saves",
        )
    return CompressionEffect(
        gain.ratio, scaled(step, verdict.cost_seconds), scaled(step, gain.plain_seconds), verdict.pays
    )
