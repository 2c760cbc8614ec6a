"""Seconds of one iteration of a serving engine on one replica, from operators.

An iteration passes some tokens through the model: one (or several, under speculation) of every decoding
request, and chunks of prompts. It is a forward pass with weights as they are stored,

    T = sum over operators of max(T_compute, T_memory) + launches + collectives + host

on training's operators (``operators``), links and collectives. Serving adds:

- weights are streamed once whatever the batch, in their stored width with its scales; of the experts those
  that the tokens choose, X (1 - (1 - x / X)^N) of X when each of N tokens takes x at random;
- attention of a decoding request streams its cache: keys and values of the heads that a device holds, the
  latent vector whole on every device of a tensor-parallel group, a window's tokens only, of a sparse
  attention the keys of its index and the tokens that it picks, or a state that is read and written;
- a chunk of a prompt attends as in training's forward pass, to the tokens before it too;
- only the last token of a prompt passes the head, and every position of a decoding request;
- short all-reduces are the engine's own kernels, one- or two-shot;
- kernels are launched by a graph that is replayed, or one by one by the host, which may be slower than they.

A replica is ``tensor`` x ``pipeline`` x ``expert`` devices: ``expert`` ranks share the requests between them,
each with attention over ``tensor`` devices, and hold the experts together. Figures of a batch are those of
the replica. A pass goes through all stages of a pipeline one after the other.

A batch's figures may be arrays of one shape; those of a layout are numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from service.planning.figures import Figure, larger, smaller
from service.planning.hardware.calibration import Calibration, ServingRates
from service.planning.hardware.cluster import Accelerator, Cluster
from service.planning.hardware.collectives import build_fabric
from service.planning.hardware.storage import WeightFormat
from service.planning.inference.attention import (
    AttentionTime,
    CacheAttention,
    build_attention,
    build_scan_operator,
    compute_scan_work,
)
from service.planning.inference.exchange import PassMessages, build_messages
from service.planning.inference.matrices import (
    DENSE,
    HEAD,
    IMAGE_ROUTED,
    NOTHING_ROUTED,
    ROUTED,
    Array,
    CountedTemplate,
    ExpertRouting,
    MatrixKind,
    MatrixTable,
    MatrixTimes,
    RoutedRows,
    StoredMatrices,
    build_matrices,
    build_stored_format,
    list_dense_shapes,
    list_expert_shapes,
    list_head_shapes,
)
from service.planning.inference.streaming import (
    StreamedActivations,
    build_sampling_streaming,
    build_streaming,
)
from service.planning.memory.caches import state_bytes
from service.planning.memory.serving import inference_weight_bytes
from service.planning.models.profile import (
    FusedAttention,
    KernelChoice,
    ModelProfile,
    OperatorFusion,
    TrainedMatrices,
)
from service.planning.models.profile.layer_operators import ExpertsTemplate, OperatorTemplate
from service.planning.operators import (
    DeviceMachine,
    OperatorWork,
    build_machine,
)
from service.planning.parallelism import Parallelism
from service.planning.precision import COMPUTE_FORMATS, ELEMENT_BITS, NumberFormat
from service.planning.software.engines import EngineName
from service.planning.workload import InferenceWorkload


class IterationBatch(NamedTuple):
    """Requests and tokens that one iteration of one replica processes; figures may be arrays of one shape."""

    decoding: float
    """Decoding requests."""
    cached_tokens: float
    """Context tokens of all decoding requests together."""
    prefilled: float = 0.0
    """Prompt tokens that are computed, without those whose keys and values are cached."""
    prefill_context: float = 0.0
    """Mean context tokens that a prompt token attends to: half a prompt where it starts at its beginning."""
    prompts: float = 0.0
    """Prompts that end in the iteration: each passes the head once."""
    positions: float = 1.0
    """Positions of each decoding request: 1 plus the proposed tokens under speculation."""

    @property
    def tokens(self) -> float:
        """Positions that pass the blocks."""
        return self.decoding * self.positions + self.prefilled


class IterationTime(NamedTuple):
    """Seconds by part on the critical path through all stages of a pipeline; the parts sum to ``seconds``.

    ``flops`` and ``moved_bytes`` are sums over one device of every stage.
    """

    matrices: float
    experts: float
    attention: float
    other: float
    """Seconds of streaming activations: norms, rotations, activation functions, routing, sampling."""
    collectives: float
    launch: float
    host: float
    flops: float
    moved_bytes: float
    compute_bound_seconds: float
    """Seconds of the operators that compute bounds."""

    @property
    def seconds(self) -> float:
        """Seconds of all parts."""
        operators = self.matrices + self.experts + self.attention + self.other
        return operators + self.collectives + self.launch + self.host


_SERVED = KernelChoice(
    fused=FusedAttention.NATIVE,
    fusion=OperatorFusion.COMPILED,
    trained=TrainedMatrices(frozenset(), 0),
    serves=True,
    built=True,
)
_EAGER = _SERVED._replace(fused=FusedAttention.SECOND, fusion=OperatorFusion.EAGER, built=False)
_CHOICES: Mapping[EngineName | None, KernelChoice] = {EngineName.TRANSFORMERS: _EAGER}
"""Engines run one kernel for each chain of operators; Transformers runs those of PyTorch."""


def _choose_kernels(workload: InferenceWorkload) -> KernelChoice:
    return _CHOICES.get(workload.rules.name, _SERVED)._replace(fused=workload.fused)


GRAPH_TOKENS = 512.0
"""Tokens of the largest batch of a rank that engines capture a graph for; the host launches larger ones."""

_WIDE_BYTES = 2.0
_LOOP_KERNELS = 4.0
"""Kernels of an expert that no token has chosen: the search for its tokens, copies of none there and back."""

_LEAST = 1e-9


def _stack_figures(*figures: Figure) -> Array:
    """Stacks figures on a new last axis."""
    shape = next((figure.shape for figure in figures if isinstance(figure, np.ndarray)), ())
    found = np.empty((*shape, len(figures)))
    for place, figure in enumerate(figures):
        found[..., place] = figure
    return found


def _to_number(figure: Figure) -> float:
    """Returns a figure without axes as a number."""
    return cast("float", figure) if np.ndim(figure) else float(figure)


class EncoderTime(NamedTuple):
    """Time of a prompt's encoder, in the iteration that the prompt ends in."""

    seconds: float = 0.0
    flops: float = 0.0
    moved_bytes: float = 0.0
    compute_bound_seconds: float = 0.0


NOTHING_AHEAD = EncoderTime()


@dataclass(frozen=True, slots=True, eq=False)
class IterationModel:
    """Iterations of one model under one engine and layout; built by :func:`build_iteration_model`."""

    machine: DeviceMachine
    rates: ServingRates
    narrow: NumberFormat
    """Format that the weights are multiplied in."""
    wide: NumberFormat
    ranks: float
    """Groups of devices that share the requests between them."""
    matrices: MatrixTable
    routing: ExpertRouting | None
    streaming: StreamedActivations
    """Streamed activations of a position that passes the blocks."""
    drawing: StreamedActivations
    """Streamed activations of a position that becomes a token."""
    attention: tuple[CacheAttention, ...]
    copied_bytes: float
    """Bytes of the copies of a token, of one expert in each layer with experts."""
    scanning: OperatorWork
    """Recurrences over one token of a prompt."""
    state_bytes: float
    """Bytes of the state of one request, on a device."""
    messages: PassMessages
    kernels: float
    """Kernels of an iteration without prompts, except for the head and sampling."""
    prefill_kernels: float
    stream: float
    """Bytes per second of attention over a cache."""
    copying: float
    """Bytes per second of copies."""
    decode_peak: float
    """FLOPs per second of attention over a cache."""
    graphs: bool
    image_share: float = 0.0
    """Share of a prompt that takes the experts of images; 0 where there are none."""
    preceding: EncoderTime = NOTHING_AHEAD

    def compute_time(self, batch: IterationBatch) -> IterationTime:
        """Returns the seconds of one iteration by part."""
        tokens = larger(batch.tokens, _LEAST)
        here, rows = self._compute_rank_share(tokens), self._count_output_rows(batch)
        routed, image_routed = self._route_tokens(batch, tokens)
        matrices = self._compute_matmul_time(here, routed, image_routed, rows)
        dense, experts, head = (_to_number(matrices.seconds[..., kind]) for kind in (DENSE, ROUTED, HEAD))
        if self.image_share:
            experts = experts + _to_number(matrices.seconds[..., IMAGE_ROUTED])
        attention = self._compute_attention_work(batch)
        copied = (routed.rows + image_routed.rows) * self.copied_bytes * self.rates.expert_copies
        other = here * self.streaming.seconds + rows * self.drawing.seconds + copied / self.copying
        collectives = self._compute_collective_seconds(tokens, here) + self._compute_head_collective_seconds(
            rows
        )
        kernels = self._count_kernels(batch, rows)
        launch = kernels * self.rates.kernel_seconds
        busy = dense + head + experts + attention.seconds + other + collectives + launch
        waiting = larger(0.0, kernels * self._compute_launch_seconds(here) - busy)
        moved = here * self.streaming.moved_bytes + rows * self.drawing.moved_bytes + copied
        return IterationTime(
            matrices=dense + head,
            experts=experts,
            attention=attention.seconds,
            other=other + batch.prompts * self.preceding.seconds,
            collectives=collectives,
            launch=launch + waiting,
            host=self._compute_host_seconds(batch.decoding + batch.prompts),
            flops=matrices.flops
            + attention.flops
            + here * self.streaming.flops
            + batch.prompts * self.preceding.flops,
            moved_bytes=matrices.moved_bytes
            + attention.moved_bytes
            + moved
            + batch.prompts * self.preceding.moved_bytes,
            compute_bound_seconds=matrices.bound
            + attention.bound
            + batch.prompts * self.preceding.compute_bound_seconds,
        )

    @property
    def _head_kernels(self) -> float:
        return self.matrices.launches[HEAD] + self.drawing.kernels

    def _count_kernels(self, batch: IterationBatch, rows: float) -> float:
        prefills = 1.0 * (batch.prefilled > 0.0)
        return self.kernels + prefills * self.prefill_kernels + (rows > 0.0) * self._head_kernels

    def _compute_launch_seconds(self, here: float) -> float:
        """Returns the seconds in which the host launches a kernel; 0 where a rank replays a graph."""
        return self.rates.launch_seconds * ((not self.graphs) + self.graphs * (here > GRAPH_TOKENS))

    def _compute_host_seconds(self, requests: float) -> float:
        rates = self.rates
        return rates.host_seconds + rates.request_seconds * requests / self.ranks

    def _compute_rank_share(self, figure: float) -> float:
        """Returns the fullest rank's share of a figure of the replica; requests are not divided."""
        return larger(figure / self.ranks, smaller(1.0 * figure, 1.0))

    def _count_output_rows(self, batch: IterationBatch) -> float:
        """Returns the positions of a rank that become tokens."""
        return self._compute_rank_share(batch.decoding * batch.positions + batch.prompts)

    def _route_tokens(self, batch: IterationBatch, tokens: float) -> tuple[RoutedRows, RoutedRows]:
        """Returns the rows of experts, and those of the experts of images."""
        if self.routing is None:
            return NOTHING_ROUTED, NOTHING_ROUTED
        if not self.image_share:
            return self.routing.estimate_busiest_group(tokens), NOTHING_ROUTED
        images = batch.prefilled * self.image_share
        text = larger(tokens - images, _LEAST)
        return self.routing.estimate_busiest_group(text), self.routing.estimate_busiest_group(images)

    def _compute_matmul_time(
        self, here: float, routed: RoutedRows, image_routed: RoutedRows, rows: float
    ) -> MatrixTimes:
        """Returns all matrices: blocks on a rank's tokens, experts on the replica's, the head on ``rows``."""
        kinds = [
            (here, here, 1.0, 1.0),
            (routed.rows, routed.rows_of_expert, self._compute_read_share(routed), routed.experts),
            (rows, larger(rows, _LEAST), 1.0 * (rows > 0.0), 1.0),
        ]
        if self.image_share:
            # An iteration without images reads none of their experts.
            read = self._compute_read_share(image_routed) * (image_routed.rows > 0.0)
            kinds.append((image_routed.rows, image_routed.rows_of_expert, read, image_routed.experts))
        total, each, share, batch = (_stack_figures(*figures) for figures in zip(*kinds, strict=True))
        return self.matrices.compute_matmul_time(total, each, share, batch)

    def _compute_read_share(self, routed: RoutedRows) -> float:
        if self.routing is None:
            return 0.0
        return routed.experts * self.routing.holders / self.routing.experts

    def _compute_collective_seconds(self, tokens: float, here: float) -> float:
        sent = sum((message.compute_seconds(here) for message in self.messages.of_rank), 0.0)
        return sent + sum((message.compute_seconds(tokens) for message in self.messages.of_replica), 0.0)

    def _compute_head_collective_seconds(self, rows: float) -> float:
        return (rows > 0.0) * sum((message.compute_seconds(rows) for message in self.messages.of_head), 0.0)

    def _compute_attention_work(self, batch: IterationBatch) -> AttentionTime:
        decoding = self._compute_rank_share(batch.decoding)
        # The fullest rank holds the caches of its requests.
        cached = batch.cached_tokens * decoding / larger(batch.decoding, _LEAST)
        prefilled = batch.prefilled / self.ranks
        works = []
        if self.state_bytes:
            states = 2.0 * decoding * self.state_bytes
            taken = states / self.stream
            works = [
                AttentionTime(taken, 0.0 * taken, 0.0, states),
                compute_scan_work(self.scanning, prefilled, self.machine),
            ]
        for each in self.attention:
            if each.caches:
                works.append(
                    each.compute_decode_work(decoding, cached, batch.positions, self.stream, self.decode_peak)
                )
            works.append(each.compute_prefill_work(prefilled, batch.prefill_context, self.machine, self.wide))
        if not works:
            return AttentionTime(*[0.0 * decoding] * 4)
        return AttentionTime(*[sum(figures) for figures in zip(*works, strict=True)])


def build_iteration_model(
    profile: ModelProfile,
    workload: InferenceWorkload,
    layout: Parallelism,
    *,
    cluster: Cluster,
    calibration: Calibration,
) -> IterationModel | None:
    """Builds the iterations of ``profile`` on one replica of ``layout``.

    Returns None where the bandwidth of the device, or every rate that its weights could be multiplied at, is
    not known.
    """
    accelerator = cluster.accelerator
    machine = build_machine(accelerator, calibration.operators)
    narrow = accelerator.find_peak(*COMPUTE_FORMATS[workload.weight_format])
    wide = _select_high_precision(workload.weight_format, accelerator)
    if machine is None or narrow is None or wide is None:
        return None
    rules, tensor = workload.rules, layout.tensor
    rates = calibration.serving.get_rates(rules.name, rules.generation)
    fabric = build_fabric(cluster, calibration.links.value)._replace(launch_seconds=rates.collective_seconds)
    templates = _list_operator_templates(profile, _choose_kernels(workload))
    kinds = _build_matrix_kinds(
        profile,
        workload,
        layout,
        templates,
        rates,
        formats=(narrow[0], wide),
        has_fp4=accelerator.find_peak(NumberFormat.FP4) is not None,
    )
    matrices = build_matrices(kinds, machine, rates)
    streaming = build_streaming(templates, machine, wide, tensor)
    attention = tuple(
        build_attention(work, workload, tensor) for work in profile.attention if not work.state_elements
    )
    scanning = build_scan_operator(templates, wide, tensor)
    attentive = sum(work.layers for work in profile.attention if not work.joined)
    dense, routed = kinds[DENSE].stored, kinds[ROUTED].stored
    beside = attentive * (1.0 + rates.layer_kernels)
    beside += profile.expert_blocks * (rates.expert_kernels + routed.widened * rates.widened_kernels)
    looped = profile.expert_count * 1.0 * rules.loops_experts
    beside += profile.expert_blocks * looped * _LOOP_KERNELS
    casts_of_experts = matrices.launches[ROUTED] * larger(looped, 1.0)
    cast = dense.casts * matrices.launches[DENSE] + routed.casts * casts_of_experts
    stream = machine.bandwidth_bytes_per_second * machine.rates.bandwidth * rates.cache_bandwidth
    image_share, of_images = _find_image_share(profile, workload), 0.0
    if image_share:
        of_images = matrices.launches[IMAGE_ROUTED] + profile.expert_blocks * rates.expert_kernels
    return IterationModel(
        machine=machine,
        rates=rates,
        narrow=narrow[0],
        wide=wide,
        ranks=1.0 * layout.expert,
        matrices=matrices,
        routing=_build_routing(templates, layout, rates),
        streaming=streaming,
        drawing=build_sampling_streaming(profile, machine, wide, tensor),
        attention=attention,
        copied_bytes=sum(
            count * template.depth * _WIDE_BYTES
            for template, count in templates
            if isinstance(template, ExpertsTemplate) and not template.inward and not template.of_images
        ),
        scanning=scanning,
        state_bytes=state_bytes(profile, workload.state_format, tensor=tensor, rules=rules),
        messages=build_messages(profile, layout, cluster.domain, fabric, rates.sum_bandwidth),
        kernels=sum(matrices.launches[:HEAD]) + streaming.kernels + beside + cast * rates.cast_kernels,
        prefill_kernels=attentive + scanning.kernels + of_images,
        stream=stream,
        copying=machine.bandwidth_bytes_per_second * machine.rates.bandwidth,
        decode_peak=machine.peak_flops_per_second[wide] * rates.decode_attention,
        graphs=workload.cuda_graphs and rules.name is not EngineName.TRANSFORMERS,
        image_share=image_share,
    )


def _find_image_share(profile: ModelProfile, workload: InferenceWorkload) -> float:
    """Returns the share of a prompt that takes the experts of images."""
    return workload.image_share if profile.image_expert_share else 0.0


def _build_matrix_kinds(
    profile: ModelProfile,
    workload: InferenceWorkload,
    layout: Parallelism,
    templates: list[CountedTemplate],
    rates: ServingRates,
    *,
    formats: tuple[NumberFormat, NumberFormat],
    has_fp4: bool,
) -> list[MatrixKind]:
    """Builds dense matrices, experts and the head on one device, with their bytes in memory.

    Experts of images are a fourth kind, if a prompt has some.
    """
    tensor, storage = layout.tensor, workload.storage
    whole = inference_weight_bytes(
        profile, storage, Parallelism(tensor=tensor, data=layout.expert, expert=layout.expert)
    )
    head_bytes = _head_bytes(profile, storage, tensor)
    dense, routed = (
        build_stored_format(profile, storage, *formats, routed=routed, has_fp4=has_fp4)
        for routed in (False, True)
    )
    reached = rates.expert_bandwidth * (rates.scaled_bandwidth if routed.blocks else 1.0)
    cut = 1.0 * (layout.expert_tensor or tensor)
    apart = profile.image_expert_share
    experts = MatrixKind(
        list_expert_shapes(templates, cut),
        whole.experts * (1.0 - apart),
        routed,
        reached,
        rates.expert_share,
        0.0 if routed.widened else rates.expert_rows,
    )
    kinds = [
        MatrixKind(
            list_dense_shapes(profile, templates, tensor),
            whole.rest - head_bytes,
            dense,
            rates.weight_bandwidth,
            rates.matrix_share,
        ),
        experts,
        MatrixKind(
            list_head_shapes(profile, tensor),
            head_bytes,
            StoredMatrices(formats[1]),
            rates.weight_bandwidth,
            rates.matrix_share,
        ),
    ]
    if _find_image_share(profile, workload):
        shapes = list_expert_shapes(templates, cut, of_images=True)
        kinds.append(experts._replace(shapes=shapes, weight_bytes=whole.experts * apart))
    return kinds


def list_stored_matrices(
    profile: ModelProfile, workload: InferenceWorkload, accelerator: Accelerator
) -> tuple[StoredMatrices, ...]:
    """Returns the storage of dense matrices and of experts; empty where the device has no rate for them."""
    narrow = accelerator.find_peak(*COMPUTE_FORMATS[workload.weight_format])
    wide = _select_high_precision(workload.weight_format, accelerator)
    if narrow is None or wide is None:
        return ()
    has_fp4 = accelerator.find_peak(NumberFormat.FP4) is not None
    dense, routed = (
        build_stored_format(profile, workload.storage, narrow[0], wide, routed=each, has_fp4=has_fp4)
        for each in (False, True)
    )
    return dense, routed


def _select_high_precision(weight_format: NumberFormat, accelerator: Accelerator) -> NumberFormat | None:
    """Returns the format of attention, of the head and of all tensors that are stored in high precision."""
    formats: tuple[NumberFormat, ...] = (NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32)
    if ELEMENT_BITS[weight_format] >= ELEMENT_BITS[NumberFormat.BF16]:
        formats = (weight_format, *formats)
    found = accelerator.find_peak(*formats)
    return found[0] if found else None


def _list_operator_templates(profile: ModelProfile, choice: KernelChoice) -> list[CountedTemplate]:
    """Returns the operators of all blocks and of the layers outside, with the occurrences of each."""
    counts: dict[int, float] = {}
    distinct: dict[int, tuple[OperatorTemplate, ...]] = {}
    for block, templates in zip(profile.blocks, profile.operators.get_block_templates(choice), strict=True):
        counts[id(templates)] = counts.get(id(templates), 0.0) + block.repeats
        distinct[id(templates)] = templates
    found = [(template, counts[key]) for key, block in distinct.items() for template in block]
    return [*found, *((template, 1.0) for template in profile.operators.get_outside_templates(choice))]


def _head_bytes(profile: ModelProfile, storage: WeightFormat, tensor: float) -> float:
    """Returns the bytes of language-model heads and of other tensors outside blocks, on one device."""
    if not profile.shapes_known:
        return 0.0
    sizes = profile.weights.get_stored_weights(storage)
    return (sizes.head_split + sizes.tied) / tensor + sizes.head_whole


def _build_routing(
    templates: list[CountedTemplate], layout: Parallelism, rates: ServingRates
) -> ExpertRouting | None:
    experts = next((template for template, _ in templates if isinstance(template, ExpertsTemplate)), None)
    if experts is None:
        return None
    holders = 1.0 * layout.tensor * layout.expert / (layout.expert_tensor or layout.tensor)
    return ExpertRouting(
        float(experts.experts),
        float(experts.chosen),
        min(holders, float(experts.experts)),
        rates.expert_imbalance,
        rates.expert_variety,
    )
