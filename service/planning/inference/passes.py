"""Seconds of requests that are passes: encoders, towers, denoisers and autoencoders over their samples.

A request passes through parts, one after the other: text encoders once, the denoiser in each step, the
autoencoder's decoder at the end; an encoder of pictures or sound before a decoder; or one model alone. Each
part is a list of blocks over the positions of a sample (``positions``), with the operators of training's
forward pass. A pass over r requests takes

    T(r) = sum over parts of e x max(sum over blocks of (operators + collectives), kernels x launch)

seconds, where e is the number of times that a request passes the part. Classifier-free guidance is a second
sample in the same pass (Ho and Salimans 2022); a sampler of S steps evaluates the denoiser S times, one of
second order 2 S - 1 times (Karras et al. 2022, algorithm 1). A decoded picture may be split in tiles, each
its own sample.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from service.planning.figures import larger
from service.planning.hardware.calibration import Calibration, MachineFacts, OperatorRates
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.collectives import ClusterFabric
from service.planning.hardware.traffic import tensor_messages, total_seconds
from service.planning.inference.batching import Floats
from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import TensorSplit
from service.planning.models.positions import BlockPositions, SampleShape, block_positions
from service.planning.models.profile import FusedAttention, KernelChoice, OperatorFusion
from service.planning.operators import (
    NO_WORK,
    DeviceMachine,
    OperatorKind,
    OperatorWork,
    PassFormats,
    PassWork,
    SampleOperators,
    TimeBound,
    block_operators,
    build_machine,
    build_sample_operators,
    sample_head_operators,
    sum_work,
)
from service.planning.parallelism import Parallelism, build_placement
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.quantity import EvidenceBasis


class PartRole(StrEnum):
    """Role of a part of a request."""

    FORWARD = "forward"
    TEXT_ENCODER = "text_encoder"
    ENCODER = "encoder"
    DENOISER = "denoiser"
    AUTOENCODER = "autoencoder"


class HeadPositions(StrEnum):
    """Positions that pass the heads after the blocks."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


class PassRuntime(NamedTuple):
    """Execution of a pass by a program: fused operators, and kernels that its host launches singly."""

    fusion: OperatorFusion
    attention: FusedAttention = FusedAttention.SECOND
    eager: bool = False
    built: bool = False


EAGER: Final = PassRuntime(OperatorFusion.EAGER, eager=True)
_FUSED: Final = PassRuntime(OperatorFusion.FUSED)
_COMPILED: Final = PassRuntime(OperatorFusion.COMPILED)
_BUILT: Final = PassRuntime(OperatorFusion.COMPILED, FusedAttention.NATIVE, built=True)
RUNTIMES: Final[Mapping[str, PassRuntime]] = {
    "transformers": EAGER,
    "diffusers": EAGER,
    "pytorch": EAGER,
    "torch_compile": _COMPILED,
    "onnxruntime": _COMPILED,
    "tensorrt": _BUILT,
}
"""Eager PyTorch launches a kernel for each step; compilers fuse those between matrices (torch.compile by

Inductor); TensorRT also has attention for the generation's own instructions. Others run fused kernels.
"""


def select_runtime(engine: str | None) -> PassRuntime:
    """Returns the runtime of the engine of this name, in any case."""
    name = (engine or "").lower().replace("-", "_").replace(".", "_").replace(" ", "_")
    return RUNTIMES.get(name, _FUSED)


class _PassedBlock(NamedTuple):
    """One block of a part: its operators, repetitions, and the sums that it sends."""

    work: int
    """Index of its operators among those of the whole architecture."""
    repeats: int
    sums: float
    """Layers that end in row-split matrices, or in experts, and sum their output over the devices."""
    summed_elements: float
    """Elements of one such sum for one sample."""


class PassPart(NamedTuple):
    """A model, or a part of one, and the passes that a request takes through it.

    ``passes`` follow each other, each over ``samples`` of a request.
    """

    role: PartRole
    operators: SampleOperators
    blocks: tuple[_PassedBlock, ...]
    heads: tuple[tuple[float, float, float], ...] = ()
    passes: float = 1.0
    samples: float = 1.0


class RequestParts(NamedTuple):
    """Parts of a request in order, each with the formats that it multiplies in."""

    parts: tuple[tuple[PassPart, PassFormats], ...]
    samples: float
    """Sequences, pictures or videos of a request."""
    runtime: PassRuntime


def _list_input_kinds(block: LayerBlock, architecture: Architecture) -> frozenset[str]:
    kinds = {item.name: item.kind for item in architecture.inputs}
    return frozenset(kinds[name] for name in block.over or (architecture.inputs[0].name,))


def is_encoder_block(block: LayerBlock, architecture: Architecture) -> bool:
    """Returns true if a block precedes a decoder: over pictures, sound or a text that others read."""
    return "tokens" not in _list_input_kinds(block, architecture)


def is_latent_decoder(block: LayerBlock, architecture: Architecture) -> bool:
    """Returns true if a block belongs to the half of an autoencoder that makes pixels."""
    return "latent" in _list_input_kinds(block, architecture)


def is_any_block(block: LayerBlock, architecture: Architecture) -> bool:
    """Returns true for all blocks."""
    del block, architecture
    return True


BlockFilter = Callable[[LayerBlock, Architecture], bool]


def select_kernel_choice(runtime: PassRuntime) -> KernelChoice:
    """Returns the kernels of a pass, without gradients, and without rotation, which no sample declares."""
    return KernelChoice(
        fused=runtime.attention, fusion=runtime.fusion, rotary=False, serves=True, built=runtime.built
    )


@lru_cache(maxsize=256)
def build_part(
    architecture: Architecture,
    sample: SampleShape,
    runtime: PassRuntime,
    role: PartRole,
    *,
    chosen: BlockFilter = is_any_block,
    heads: HeadPositions = HeadPositions.NONE,
) -> PassPart:
    """Builds the chosen blocks of ``architecture`` over one sample; blocks without positions are left out.

    Raises:
        PlanningError: As in :func:`block_positions`, for a sample that lacks a size or is too small.
    """
    operators = build_sample_operators(architecture, sample, select_kernel_choice(runtime))
    positions = block_positions(architecture, sample)
    blocks = tuple(
        _PassedBlock(index, block.count, *_count_reductions(block, places))
        for index, (block, places) in enumerate(zip(architecture.list_blocks(), positions, strict=True))
        if places.instances and chosen(block, architecture)
    )
    rows = {
        HeadPositions.NONE: (),
        HeadPositions.ALL: operators.heads,
        HeadPositions.LAST: _list_head_shapes(operators.heads),
    }
    return PassPart(role, operators, blocks, rows[heads])


def _count_reductions(block: LayerBlock, places: BlockPositions) -> tuple[float, float]:
    sums = width = 0.0
    for layer in block.layers:
        splits = {tensor.split for tensor in layer.list_tensors()}
        sums += layer.count * bool(splits & {TensorSplit.ROW, TensorSplit.EXPERT})
        width = max(width, float(getattr(layer, "hidden_size", 0) or 0))
    return sums, width * places.entering


def _list_head_shapes(heads: Iterable[tuple[float, float, float]]) -> tuple[tuple[float, float, float], ...]:
    return tuple((1.0, columns, depth) for _, columns, depth in heads)


_WIDE = (NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32)


def select_pass_widths(
    compute: NumberFormat, stored_bits: float, peaks: Mapping[NumberFormat, float]
) -> PassFormats:
    """Returns the formats of a pass whose matrices multiply in ``compute`` from weights of ``stored_bits``.

    Attention, norms and other operators between matrices are in 16 bit, or as wide as the matrices. Weights
    that are narrower than the format that the device multiplies are unpacked first.
    """
    operand = ELEMENT_BYTES[compute]
    wide = compute
    if operand < ELEMENT_BYTES[NumberFormat.FP16]:
        wide = next(each for each in _WIDE if each in peaks)
    stored = stored_bits / 8.0
    return PassFormats(
        matrix=compute,
        wide=wide,
        element=ELEMENT_BYTES[wide],
        operand=operand,
        gradient=0.0,
        packed=stored if stored < 0.9 * operand else 0.0,
    )


class PartTime(NamedTuple):
    """One evaluation of a part on one device over a batch, and the number that a request needs."""

    role: PartRole
    work: PassWork
    collective_seconds: float
    host_seconds: float
    """Seconds that the host needs to launch the kernels, where it launches each."""
    passes: float

    @property
    def evaluation_seconds(self) -> float:
        """Seconds of one evaluation."""
        return larger(self.work.seconds + self.collective_seconds, self.host_seconds)

    @property
    def seconds(self) -> float:
        """Seconds of all evaluations of a request, one after the other."""
        return self.passes * self.evaluation_seconds

    @property
    def bound(self) -> TimeBound:
        """Limit that sets most of the time."""
        if self.host_seconds > self.work.seconds + self.collective_seconds:
            return TimeBound.HOST
        if self.collective_seconds > self.work.seconds:
            return TimeBound.COMMUNICATION
        computed = self.work.compute_bound_seconds
        return TimeBound.COMPUTE if 2.0 * computed >= self.work.seconds else TimeBound.MEMORY


class PassMachine(NamedTuple):
    """A device as the kernels of a pass see it, with the constants of ``PassCalibration``."""

    machine: DeviceMachine
    convolving: DeviceMachine
    """The device at the rate of convolutions."""
    launch_seconds: float
    """Seconds that the host takes to launch a kernel; 0 where an engine or a graph launches all."""


def build_pass_machine(
    accelerator: Accelerator, calibration: Calibration, runtime: PassRuntime
) -> PassMachine | None:
    """Builds the device under ``runtime``; None where its bandwidth is not known."""
    machine, constants = build_machine(accelerator, calibration.operators), calibration.passes
    if machine is None:
        return None
    if runtime.built:
        kernel = constants.built_kernel_seconds.value
        machine = machine._replace(rates=machine.rates._replace(kernel_seconds=kernel))
    share = constants.convolution_share.value
    slower = {each: rate * share for each, rate in machine.peak_flops_per_second.items()}
    launch = constants.launch_seconds.value if runtime.eager else 0.0
    return PassMachine(machine, machine._replace(peak_flops_per_second=slower), launch)


_ONE_UNIT = MachineFacts(1, 1, 1, "assumed: no tile is cut")


def build_assumed_machine(
    accelerator: Accelerator, utilization: float, bandwidth_utilization: float
) -> PassMachine | None:
    """Builds the roofline of a device at assumed shares of its peak rate and bandwidth, without launches."""
    if accelerator.bandwidth_bytes_per_second is None:
        return None
    peaks = accelerator.peak_flops_per_second
    rates = OperatorRates(
        matrix_peak=dict.fromkeys(peaks, utilization),
        matrix_fill=0.0,
        wave_tail=0.0,
        kernel_seconds=0.0,
        bandwidth=bandwidth_utilization,
        gather_row=0.0,
        attention_peak=utilization,
        attention_first_peak=utilization,
        attention_native_peak=utilization,
        attention_backward=1.0,
        attention_context=0.0,
        attention_head=0.0,
        scan_peak=utilization,
        expert_variation=0.0,
        basis=EvidenceBasis.ASSUMED,
    )
    machine = DeviceMachine(peaks, accelerator.bandwidth_bytes_per_second, _ONE_UNIT, rates)
    return PassMachine(machine, machine, 0.0)


class PassModel:
    """Parts of a request on one replica: seconds of a batch of any size."""

    def __init__(
        self,
        parts: tuple[tuple[PassPart, PassFormats], ...],
        layout: Parallelism,
        *,
        machine: PassMachine,
        fabric: ClusterFabric,
    ) -> None:
        """Stores the parts, each with its own formats."""
        self.parts, self.layout = parts, layout
        self._machine, self._fabric = machine, fabric
        self._placed = build_placement(layout, fabric.domain)

    def compute_part_times(self, requests: float | Floats) -> tuple[PartTime, ...]:
        """Returns the times of each part over a batch of ``requests``, which may be an array."""
        return tuple(
            self._compute_part_time(part, widths, requests * part.samples) for part, widths in self.parts
        )

    def compute_seconds(self, requests: Floats) -> Floats:
        """Returns the seconds of a pass over a batch, from end to end."""
        total: float | Floats = 0.0
        for part in self.compute_part_times(requests):
            total = total + part.seconds
        return np.asarray(total) * np.ones_like(requests)

    def _compute_part_time(self, part: PassPart, widths: PassFormats, samples: float | Floats) -> PartTime:
        layout = self.layout
        known: dict[int, PassWork] = {}
        total, sent = NO_WORK, 0.0
        for block in part.blocks:
            stations = part.operators.blocks[block.work]
            work = known.get(id(stations))
            if work is None:
                found = block_operators(stations, samples, layout, widths)  # type: ignore[arg-type]
                work = known[id(stations)] = self._compute_work(found)
            total = total.add_scaled(work, block.repeats)
            if layout.tensor > 1 and block.sums:
                summed = samples * block.summed_elements * widths.element
                messages = tensor_messages(summed, block.sums, self._placed, sequence=False)  # type: ignore[arg-type]
                sent = sent + block.repeats * total_seconds(messages.forward, self._fabric)
        if part.heads:
            heads = part.operators._replace(heads=part.heads)
            found = sample_head_operators(heads, samples, layout, widths)  # type: ignore[arg-type]
            total = total.add_scaled(self._compute_work(found))
        return PartTime(part.role, total, sent, total.kernels * self._machine.launch_seconds, part.passes)

    def _compute_work(self, found: Iterable[OperatorWork]) -> PassWork:
        convolutions: list[OperatorWork] = []
        others: list[OperatorWork] = []
        for operator in found:
            (convolutions if operator.kind is OperatorKind.CONVOLUTION else others).append(operator)
        return sum_work(others, self._machine.machine).add_scaled(
            sum_work(convolutions, self._machine.convolving)
        )


# --- diffusion --------------------------------------------------------------------------------------------


class Sampler(StrEnum):
    """Algorithm that turns noise into a sample."""

    DDPM = "ddpm"
    DDIM = "ddim"
    DPM_SOLVER = "dpm_solver"
    EULER = "euler"
    HEUN = "heun"


USUAL_STEPS: Final[Mapping[Sampler, int]] = {
    Sampler.DDPM: 1000,
    Sampler.DDIM: 50,
    Sampler.DPM_SOLVER: 20,
    Sampler.EULER: 28,
    Sampler.HEUN: 18,
}
"""Ho et al. 2020 (section 4: T = 1000), Song et al. 2020 (section 5.1), Lu et al. 2022 (about 20), the
defaults of flow-matching pipelines (Esser et al. 2024), Karras et al. 2022 (table 2: 35 evaluations)."""


def count_evaluations(sampler: Sampler, steps: float) -> float:
    """Returns the evaluations of ``steps`` steps, before guidance: 2 S - 1 of second order, else S."""
    return 2.0 * steps - 1.0 if sampler is Sampler.HEUN else float(steps)


def split_tiles(height: int, width: int, side: int | None) -> tuple[int, int, int]:
    """Returns the tiles of a decoded picture, and their height and width in pixels.

    They overlap by a quarter. The tiles are those of diffusers: squares, each a quarter of its side over its
    neighbour.
    """
    if side is None or side >= max(height, width):
        return 1, height, width
    stride = 0.75 * side
    return math.ceil(height / stride) * math.ceil(width / stride), min(side, height), min(side, width)


def build_denoiser_parts(
    denoiser: PassPart, sampler: Sampler, steps: float, *, samples: float = 1.0, guided_share: float = 0.0
) -> tuple[PassPart, ...]:
    """Builds the denoiser over all steps: guided steps have two samples in a pass, the others one."""
    each = count_evaluations(sampler, steps)
    found = (
        denoiser._replace(passes=each * guided_share, samples=2.0 * samples),
        denoiser._replace(passes=each * (1.0 - guided_share), samples=samples),
    )
    return tuple(part for part in found if part.passes)
