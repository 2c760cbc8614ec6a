"""Whether compressed gradients pay."""

from service.estimates.run import Run
from service.planning.quantity import scaled
from service.planning.training.compressed import compression_gain
from service.planning.training.modelled import ModelledTime
from service.planning.workload import TrainingWorkload
from service.resolve.catalog import Catalog
from service.resolve.hardware import compute_peak
from service.schemas.answer import quantity
from service.schemas.run_answers import GradientCompressionAnswer


def compression_answer(
    run: Run, workload: TrainingWorkload, catalog: Catalog, tokens: float
) -> GradientCompressionAnswer | None:
    """What the compression saves and costs in a step; None without one, or without a modelled step."""
    time = run.working or run.training
    if workload.compression is None or not isinstance(time, ModelledTime):
        return None
    gain = compression_gain(
        run.resolved.model.profile,
        workload,
        run.resolved.layout,
        time.step,
        cluster=run.cluster,
        calibration=catalog.curves.calibration,
        compute_format=compute_peak(run.cluster, workload)[0],
    )
    if gain is None:
        return None
    step = scaled(time.seconds_per_token, tokens / time.step.total)
    verdict = gain.verdict
    if not verdict.pays:
        run.notes.warn(
            "COMPRESSION_DOES_NOT_PAY",
            "/workload/gradient_compression",
            "it takes longer than the communication that it saves",
        )
    return {
        "ratio": gain.ratio,
        "compression_seconds": quantity(scaled(step, verdict.cost_seconds)),
        "step_seconds_without": quantity(scaled(step, gain.plain_seconds)),
        "pays": verdict.pays,
    }
