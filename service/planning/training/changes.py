"""Changes of a training run that may speed it up, each with the term of the Iron Law that it affects."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from service.planning.hardware.cluster import Accelerator
from service.planning.models.profile import OperatorFusion
from service.planning.operators import resolve_fusion
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.precision import TRAINING_RECIPES, NumberFormat, TrainingPrecision
from service.planning.training.iron_law import IronLawTechnique
from service.planning.training.step import StepSeconds
from service.planning.workload import AttentionKernel, Offload, Recomputation, TrainingWorkload


class LayoutChange(NamedTuple):
    """A workload and a layout that differ in one choice from those of the question."""

    code: str
    what: str
    technique: IronLawTechnique
    workload: TrainingWorkload
    layout: Parallelism
    reverts: bool = False
    """True if the change gives the technique up."""


def compute_max_gain(change: LayoutChange, step: StepSeconds) -> float:
    """Returns the largest share of a token's time that a change can save; 1 where no bound is known.

    More micro-batches per step spread the costs of a step, and may fill a small group; more chunks shorten
    the bubble.
    """
    once = step.total - step.slowest.total * step.micro_batches
    match change.code:
        case "MORE_MICRO_BATCHES" | "GRADIENT_ACCUMULATION":
            filled = change.layout.idle_chunks(step.micro_batches) > 0.0
            return once / (1.0 if filled else 2.0) / step.total
        case "INTERLEAVED_SCHEDULE":
            return (step.bubble + step.stragglers) / 2.0 / step.total
        case _:
            return 1.0


_WIDE = (NumberFormat.FP32, NumberFormat.TF32)


def _change_format(workload: TrainingWorkload, precision: TrainingPrecision) -> TrainingWorkload:
    recipe = TRAINING_RECIPES[precision]
    kept = replace(workload.recipe, compute=recipe.compute, activations=recipe.activations, low=recipe.low)
    return workload._replace(recipe=kept)


def _list_arithmetic_changes(
    workload: TrainingWorkload, layout: Parallelism, accelerator: Accelerator
) -> Iterator[LayoutChange]:
    """Yields other formats and kernels of the same step."""
    recipe = workload.recipe
    if recipe.compute in _WIDE and accelerator.find_peak(NumberFormat.BF16):
        narrow = _change_format(workload, TrainingPrecision.BF16)
        yield LayoutChange(
            "MIXED_PRECISION", "multiply in bf16", IronLawTechnique.MIXED_PRECISION, narrow, layout
        )
    elif recipe.compute in (NumberFormat.BF16, NumberFormat.FP16) and accelerator.find_peak(NumberFormat.FP8):
        narrow = _change_format(workload, TrainingPrecision.FP8_DELAYED)
        yield LayoutChange(
            "NARROWER_COMPUTE", "multiply matrices in FP8", IronLawTechnique.MIXED_PRECISION, narrow, layout
        )
    if workload.recomputation is not Recomputation.NONE:
        kept = workload._replace(recomputation=Recomputation.NONE)
        technique = IronLawTechnique.RECOMPUTATION
        yield LayoutChange(
            "LESS_RECOMPUTATION", "keep all activations", technique, kept, layout, reverts=True
        )
    if workload.kernel is AttentionKernel.STANDARD:
        fused = workload._replace(kernel=AttentionKernel.FLASH)
        yield LayoutChange(
            "FLASH_ATTENTION", "do not store scores", IronLawTechnique.FLASH_ATTENTION, fused, layout
        )
    if resolve_fusion(workload) is OperatorFusion.EAGER:
        compiled = workload._replace(fusion=OperatorFusion.COMPILED)
        yield LayoutChange(
            "OPERATOR_FUSION", "compile the model", IronLawTechnique.OPERATOR_FUSION, compiled, layout
        )


def list_changes(
    workload: TrainingWorkload, layout: Parallelism, accelerator: Accelerator
) -> Iterator[LayoutChange]:
    """Yields techniques that the run does not use yet, or uses at a cost; tokens of a step may grow."""
    yield from _list_arithmetic_changes(workload, layout, accelerator)
    if workload.offload != Offload():
        held = workload._replace(offload=Offload())
        yield LayoutChange(
            "NO_OFFLOAD", "keep all state on the device", IronLawTechnique.LESS_COMMUNICATION, held, layout
        )
    more = workload._replace(micro_batches=2 * workload.micro_batches)
    if layout.pipeline > 1:
        what = "twice the micro-batches a step"
        yield LayoutChange("MORE_MICRO_BATCHES", what, IronLawTechnique.PIPELINE, more, layout)
        if layout.pipeline_schedule is PipelineSchedule.ONE_F_ONE_B:
            two = layout._replace(pipeline_schedule=PipelineSchedule.INTERLEAVED, virtual_stages=2)
            yield LayoutChange(
                "INTERLEAVED_SCHEDULE", "two parts a stage", IronLawTechnique.PIPELINE, workload, two
            )
    else:
        what = "accumulate the gradients of twice the micro-batches"
        yield LayoutChange(
            "GRADIENT_ACCUMULATION", what, IronLawTechnique.GRADIENT_ACCUMULATION, more, layout
        )
    larger = workload._replace(micro_batch_size=2 * workload.micro_batch_size)
    yield LayoutChange(
        "LARGER_MICRO_BATCH", "twice the micro-batch", IronLawTechnique.LARGER_BATCH, larger, layout
    )
    if layout.tensor > 1 and layout.tensor % 2 == 0:
        half = layout._replace(tensor=layout.tensor // 2, data=2 * layout.data)
        what = "half the tensor-parallel devices, twice the replicas"
        yield LayoutChange(
            "LESS_TENSOR_PARALLELISM", what, IronLawTechnique.LESS_COMMUNICATION, workload, half
        )
    if layout.sharding is Sharding.ZERO_3 and layout.replicas > 1:
        once = layout._replace(sharding=Sharding.ZERO_1)
        what = "shard the optimizer's states only"
        yield LayoutChange("LESS_SHARDING", what, IronLawTechnique.LESS_COMMUNICATION, workload, once)
