"""Seconds of one iteration of a serving engine on one replica, from operators.

An iteration passes some tokens through the model: one (or some, under speculation) of every request that
decodes, and chunks of prompts. It is a forward pass with weights as they are stored,

    T = sum over operators of max(T_compute, T_memory) + launches + collectives + host

on training's operators (``operators``), links and collectives. What serving adds:

- weights are streamed once whatever the batch, in their stored width with its scales; of the experts those
  that the tokens choose, X (1 - (1 - x / X)^N) of X when each of N tokens takes x at random;
- attention of a decoding request streams its cache: keys and values of the heads that a device holds, the
  latent vector whole on every device of a tensor-parallel group, a window's tokens only, of a sparse
  attention the keys of its index and the tokens that it picks, or a state that is read and written;
- a chunk of a prompt attends as in training's forward pass, to the tokens before it too;
- only the last token of a prompt passes the head, and every position of a decoding request;
- short all-reduces are kernels of the engine's own, one- or two-shot;
- kernels are launched by a graph that is replayed, or one by one by the host, which may be slower than they.

A replica is ``tensor`` x ``pipeline`` x ``expert`` devices: ``expert`` ranks share the requests between them,
each with attention over ``tensor`` devices, and hold the experts together. Figures of a batch are those of
the replica. A pass goes through all stages of a pipeline one after the other.

A batch's figures may be arrays of one shape; those of a layout are numbers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from service.planning.calibration import Calibration, ServingRates
from service.planning.cluster import Accelerator, Cluster
from service.planning.collectives import Algorithm, Collective, Fabric, collective_seconds, fabric_of
from service.planning.engines import EngineName
from service.planning.figures import (
    Figure,
    doublings,
    larger,
    natural_log,
    power_of_two,
    smaller,
    square_root,
)
from service.planning.layers import MixtureOfExperts, Split
from service.planning.memory.caches import layer_cache_bytes, state_bytes
from service.planning.memory.serving import inference_weight_bytes
from service.planning.operators import (
    Machine,
    Operator,
    OperatorKind,
    OperatorTime,
    machine_of,
    operator_seconds,
)
from service.planning.parallelism import Group, Parallelism
from service.planning.precision import COMPUTE_FORMATS, ELEMENT_BITS, ELEMENT_BYTES, NumberFormat
from service.planning.profile import AttentionWork, Choice, FusedAttention, Fusion, Profile, Trained
from service.planning.profile.layer_operators import Experts, Matrix, Scan, Streamed, Template, Traffic
from service.planning.storage import WeightFormat
from service.planning.storage.named import ALWAYS_WIDE, EXPERT_MODULES
from service.planning.storage.scheme import Place
from service.planning.workload import InferenceWorkload


class Batch(NamedTuple):
    """What one iteration of one replica processes; figures may be arrays of one shape."""

    decoding: float
    """Requests that decode in it."""
    cached_tokens: float
    """Context tokens of all decoding requests together."""
    prefilled: float = 0.0
    """Prompt tokens computed in it; those whose keys and values are there already are not among them."""
    prefill_context: float = 0.0
    """Mean tokens of context that one of these attends to: half a prompt where it begins at its start."""
    prompts: float = 0.0
    """Prompts that end in it: each passes the head once."""
    positions: float = 1.0
    """Positions of each decoding request: 1, and the proposed tokens under speculation."""

    @property
    def tokens(self) -> float:
        """Positions that pass the blocks."""
        return self.decoding * self.positions + self.prefilled


class IterationTime(NamedTuple):
    """Seconds by part on the critical path through all stages of a pipeline; the parts sum to ``seconds``.

    ``flops`` and ``moved_bytes`` are those of one device of every stage together.
    """

    matrices: float
    experts: float
    attention: float
    other: float
    """Norms, rotations, activation functions, routing, sampling: what streams activations."""
    collectives: float
    launch: float
    host: float
    flops: float
    moved_bytes: float
    compute_bound_seconds: float
    """The part of the operators' seconds whose limit is compute."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return sum(self[:7])


_SERVED = Choice(
    fused=FusedAttention.NATIVE,
    fusion=Fusion.COMPILED,
    trained=Trained(frozenset(), 0),
    serves=True,
    built=True,
)
_EAGER = _SERVED._replace(fused=FusedAttention.SECOND, fusion=Fusion.EAGER, built=False)
_CHOICES: Mapping[EngineName | None, Choice] = {EngineName.TRANSFORMERS: _EAGER}
"""Engines run a kernel for each chain, Transformers PyTorch's own."""

GRAPH_TOKENS = 512.0
"""Tokens of the largest batch that engines capture a graph for; longer ones are launched by the host."""
LEAST_TILE_ROWS = 16.0
"""Rows of the smallest tile of a multiplication."""
TILE_ROWS = 64.0
"""Rows of queries that a kernel of decode attention multiplies at a time, filled or not."""
SAMPLED_PASSES = 4.0
"""How often drawing a token passes over FP32 logits: widened, penalised, softmax, drawn."""

_LEAST = 1e-9
_WIDE_BYTES = 2.0
_FP32_BYTES = ELEMENT_BYTES[NumberFormat.FP32]
_GEMM, _GROUPED, _MEMORY, _ATTENTION, _SCAN, _GATHER = (
    OperatorKind.GEMM,
    OperatorKind.GROUPED_GEMM,
    OperatorKind.MEMORY,
    OperatorKind.ATTENTION,
    OperatorKind.SCAN,
    OperatorKind.GATHER,
)


class _Stored(NamedTuple):
    """Matrices of one kind: the format that they multiply in, bits of an element as stored."""

    number_format: NumberFormat
    widened: bool = False
    casts: bool = False
    """Whether their input is cast with scales of its own."""


class _Shapes(NamedTuple):
    """Matrices on one device, one entry a distinct shape."""

    columns: float
    depth: float
    times: float
    copies: float
    weight_bytes: float
    """Of all copies and times together."""
    stored: _Stored


class _Attention(NamedTuple):
    """Attention-like layers of one kind on one device."""

    work: AttentionWork
    layers: float
    token_bytes: float
    """Cache of a token in a layer, without the index of a sparse attention."""
    index_bytes: float
    query_heads: float
    shared_heads: float
    """Heads of queries that share keys and values on a device."""


class _Message(NamedTuple):
    """``times`` collectives of a pass, of ``token_bytes`` for each token of a rank or of the replica."""

    kind: Collective
    group: Group
    token_bytes: float
    times: float
    of_replica: bool = False
    of_head: bool = False


class _Part(NamedTuple):
    """Sums over operators that run one after the other."""

    seconds: float = 0.0
    bound: float = 0.0
    kernels: float = 0.0
    flops: float = 0.0
    moved_bytes: float = 0.0

    def plus(self, other: "_Part") -> "_Part":
        """The sum of both."""
        return _Part(*[a + b for a, b in zip(self, other, strict=True)])


def _part(operator: Operator, time: OperatorTime, *, summed: bool = False, counts: float = 1.0) -> _Part:
    """An operator's sums; ``summed`` over its last axis. ``counts`` is 0 where there is none of it."""
    seconds = larger(time.compute_seconds, time.memory_seconds)
    bound = seconds * (time.compute_seconds >= time.memory_seconds)
    each = (seconds, bound, operator.kernels, operator.flops, operator.moved_bytes)
    return _Part(*[(_total(figure) if summed else figure) * counts for figure in each])


def _total(figure: float) -> float:
    """The sum over the last axis; as a number where there is no other."""
    whole: float = np.sum(figure, axis=-1)
    return whole if np.ndim(whole) else float(whole)


def _across(figure: Figure) -> float:
    """A figure of each batch beside the axis of shapes."""
    return cast("float", figure[..., None]) if isinstance(figure, np.ndarray) else figure


@dataclass(frozen=True, slots=True, eq=False)
class IterationModel:
    """The iterations of one model under one engine and layout; made by :func:`iteration_model`."""

    machine: Machine
    """With what the engine reaches of it."""
    rates: ServingRates
    fabric: Fabric
    wide: NumberFormat
    ranks: float
    """Groups of devices that share the requests between them."""
    tensor: float
    matrices: _Shapes
    head: _Shapes
    experts: _Shapes
    expert_count: float
    chosen: float
    holders: float
    """Groups of devices that the experts are spread over."""
    attention: tuple[_Attention, ...]
    streamed: Traffic
    dispatched: Traffic
    dispatched_row: float
    scanned: tuple[float, float, float]
    """FLOPs, elements and kernels of recurrences, of a prompt's token."""
    state_bytes: float
    """Of one request, on a device."""
    messages: tuple[_Message, ...]
    kernels: float
    """Beside those of operators."""
    vocabulary: float
    graphs: bool

    def time(self, batch: Batch) -> IterationTime:
        """Seconds of one iteration by part."""
        tokens = larger(batch.tokens, _LEAST)
        fixed = self._fixed(tokens)
        ending = self._ending(batch)
        attention = self._attention(batch)
        matrices = fixed.matrices.plus(ending.matrices)
        other = fixed.other.plus(ending.other)
        parts = (matrices, fixed.experts, attention, other)
        kernels = sum(part.kernels for part in parts) + self.kernels
        collectives = fixed.collectives + ending.collectives
        launch = kernels * self.rates.kernel_seconds
        busy = sum(part.seconds for part in parts) + collectives + launch
        waiting = larger(0.0, kernels * self._launched(tokens) - busy)
        return IterationTime(
            matrices=matrices.seconds,
            experts=fixed.experts.seconds,
            attention=attention.seconds,
            other=other.seconds,
            collectives=collectives,
            launch=launch + waiting,
            host=self._host(batch),
            flops=sum(part.flops for part in parts),
            moved_bytes=sum(part.moved_bytes for part in parts),
            compute_bound_seconds=sum(part.bound for part in parts),
        )

    def tabulated(self, most_tokens: int) -> "Tabulated":
        """The same for batches of up to ``most_tokens`` tokens as a table and few multiplications.

        Exact for whole tokens; between them what depends on their number alone is taken on a line.
        """
        tokens = np.arange(most_tokens + 2.0)
        tokens[0] = _LEAST
        fixed = self._fixed(cast("float", tokens))
        work = fixed.matrices.plus(fixed.experts).plus(fixed.other)
        kernels = work.kernels + self.kernels
        device = work.seconds + fixed.collectives + kernels * self.rates.kernel_seconds
        return Tabulated(self, np.asarray(device).tolist(), kernels)

    def _launched(self, tokens: float) -> float:
        """Seconds in which the host launches a kernel; 0 where a graph is replayed."""
        return self.rates.launch_seconds * ((not self.graphs) + self.graphs * (tokens > GRAPH_TOKENS))

    def _host(self, batch: Batch) -> float:
        rates = self.rates
        return rates.host_seconds + rates.request_seconds * (batch.decoding + batch.prompts) / self.ranks

    def _of_rank(self, figure: float) -> float:
        """What the fullest rank has of a figure of the replica: requests are whole."""
        return larger(figure / self.ranks, smaller(1.0 * figure, 1.0))

    def _fixed(self, tokens: float) -> "_Fixed":
        """What depends on the number of tokens alone."""
        here = self._of_rank(tokens)
        moved = here * (self.streamed.whole + self.streamed.split / self.tensor) * _WIDE_BYTES
        moved = (
            moved + here * (self.streamed.whole_wide + self.streamed.split_wide / self.tensor) * _FP32_BYTES
        )
        streamed = Operator(
            "streamed", _MEMORY, self.wide, here * self.streamed.flops, moved, self.streamed.kernels
        )
        other = _part(streamed, operator_seconds(streamed, self.machine))
        if self.dispatched_row:
            gathered = Operator(
                "dispatch",
                _GATHER,
                self.wide,
                0.0,
                here * self.dispatched.whole * _WIDE_BYTES,
                self.dispatched.kernels,
                row_bytes=self.dispatched_row * _WIDE_BYTES,
            )
            other = other.plus(_part(gathered, operator_seconds(gathered, self.machine)))
        collectives = 0.0 * tokens
        for message in self.messages:
            if not message.of_head:
                collectives = collectives + self._sent(message, tokens if message.of_replica else here)
        return _Fixed(
            self._multiplied(self.matrices, here, self.rates.matrix_share),
            self._routed(tokens) if self.expert_count else _Part(0.0 * tokens),
            other,
            collectives,
        )

    def _ending(self, batch: Batch) -> "_Fixed":
        """What depends on the positions that become tokens: the head, its exchange and the draw."""
        rows = self._of_rank(batch.decoding * batch.positions + batch.prompts)
        some = 1.0 * (rows > 0.0)
        rows = larger(rows, _LEAST)
        head = self._multiplied(self.head, rows, self.rates.matrix_share)
        drawn = rows * self.vocabulary * _FP32_BYTES * SAMPLED_PASSES / self.tensor
        draw = Operator("draw", _MEMORY, self.wide, 0.0, drawn, SAMPLED_PASSES * (self.vocabulary > 0.0))
        collectives = sum((self._sent(each, rows) for each in self.messages if each.of_head), 0.0)
        return _Fixed(
            _Part(*[some * figure for figure in head]),
            _Part(),
            _part(draw, operator_seconds(draw, self.machine), counts=some),
            some * collectives,
        )

    def _machine(self, stored: _Stored, bandwidth: float, share: float, rows: float) -> Machine:
        """The device as matrices of one kind and so many rows see it: few rows have tiles of their own."""
        rates, facts = self.machine.rates, self.machine.facts
        fitting = power_of_two(doublings(larger(rows, LEAST_TILE_ROWS)))
        tile = cast("int", smaller(fitting, 1.0 * facts.tile_rows))
        peak = rates.matrix_peak[stored.number_format] * share
        if stored.widened:
            peak *= self.rates.widening_share
            bandwidth *= self.rates.widened_bandwidth
        return self.machine._replace(
            facts=facts._replace(tile_rows=tile),
            rates=rates._replace(
                bandwidth=rates.bandwidth * bandwidth, matrix_peak={stored.number_format: peak}
            ),
        )

    def _multiplied(self, shapes: _Shapes, tokens: float, share: float) -> _Part:
        if not np.size(shapes.columns):
            return _Part(0.0 * tokens)
        rows = _across(tokens)
        each = shapes.copies * shapes.times
        operand = larger(1.0, ELEMENT_BYTES[shapes.stored.number_format])
        entering = rows * (shapes.depth * operand + shapes.columns * _WIDE_BYTES)
        operator = Operator(
            "matrices",
            _GEMM,
            shapes.stored.number_format,
            2.0 * rows * shapes.columns * shapes.depth * each,
            shapes.weight_bytes + entering * each,
            shapes.times,
            rows,
            shapes.columns,
            shapes.depth,
            shapes.copies,
        )
        machine = self._machine(shapes.stored, self.rates.weight_bandwidth, share, rows)
        return _part(operator, operator_seconds(operator, machine), summed=True)

    def _routed(self, tokens: float) -> _Part:
        """Matrices of the experts on the busiest of the groups that hold them."""
        count, shapes, holders = self.expert_count, self.experts, self.holders
        # What depends on the tokens before falls on experts that are there already.
        varied = smaller(tokens, 1.0 + (tokens - 1.0) * self.rates.expert_variety)
        share = 1.0 - (1.0 - self.chosen / count) ** larger(varied, 0.0)
        held = count / holders
        spread = square_root(2.0 * natural_log(holders))
        touched = held * share + spread * square_root(held * share * (1.0 - share))
        touched = smaller(smaller(touched, held), larger(tokens * self.chosen, _LEAST))
        # Tokens fall on the groups by chance, and beside it because experts are not equally liked.
        chosen = tokens * self.chosen / holders
        rows = chosen + spread * square_root(chosen * (1.0 - 1.0 / holders))
        rows = smaller(rows, tokens * smaller(self.chosen, held))
        rows = rows * (1.0 + self.rates.expert_imbalance * spread / held**0.5)
        rows, touched = _across(rows), _across(touched)
        each = rows / larger(touched, _LEAST)
        operand = larger(1.0, ELEMENT_BYTES[shapes.stored.number_format])
        entering = rows * (shapes.depth * operand + shapes.columns * _WIDE_BYTES)
        operator = Operator(
            "experts",
            _GROUPED,
            shapes.stored.number_format,
            2.0 * rows * shapes.columns * shapes.depth * shapes.times,
            shapes.weight_bytes * touched / held + entering * shapes.times,
            shapes.times,
            each,
            shapes.columns,
            shapes.depth,
            touched,
        )
        rates = self.rates
        reached = rates.expert_bandwidth * (rates.scaled_bandwidth if shapes.stored.casts else 1.0)
        machine = self._machine(shapes.stored, reached, rates.expert_share, each)
        return _part(operator, operator_seconds(operator, machine), summed=True)

    def _attention(self, batch: Batch) -> _Part:
        decoding = self._of_rank(batch.decoding)
        cached = batch.cached_tokens * decoding / larger(batch.decoding, _LEAST)
        prefilled = batch.prefilled / self.ranks
        whole = _Part(0.0 * decoding)
        for each in self.attention:
            whole = whole.plus(self._decoded(each, decoding, cached, batch.positions))
            whole = whole.plus(self._prefilled(each, prefilled, batch.prefill_context))
        if self.state_bytes:
            states = 2.0 * decoding * self.state_bytes
            whole = whole.plus(_Part(states / self._streaming(), 0.0 * states, 0.0, 0.0, states))
            whole = whole.plus(self._scan(prefilled))
        return whole

    def _streaming(self) -> float:
        """Bytes per second of attention over a cache."""
        rates = self.machine.rates
        return self.machine.bandwidth_bytes_per_second * rates.bandwidth * self.rates.cache_bandwidth

    def _decoded(self, each: _Attention, decoding: float, cached: float, positions: float) -> _Part:
        """Attention of decoding requests over their caches in the layers of one kind."""
        work = each.work
        if not work.caches or work.state_elements:
            return _Part()
        context = cached / larger(decoding, _LEAST)
        reached = smaller(context, work.window_tokens)
        attended = decoding * smaller(reached, work.attended_tokens)
        seen = decoding * reached
        moved = each.layers * (attended * each.token_bytes + seen * each.index_bytes)
        moved = moved + each.layers * decoding * positions * (each.token_bytes + each.index_bytes)
        scores = (work.decode_score_flops or work.score_flops) / self.tensor
        filled = larger(1.0, TILE_ROWS / (each.shared_heads * positions))
        executed = each.layers * positions * (scores * attended * filled + work.index_flops * seen)
        flops = each.layers * positions * (scores * attended + work.index_flops * seen)
        peak = self.machine.peak_flops_per_second[self.wide] * self.rates.decode_attention
        time = OperatorTime(executed / peak, moved / self._streaming(), 0.0)
        operator = Operator("attention", _ATTENTION, self.wide, flops, moved, each.layers)
        return _part(operator, time, counts=1.0 * (decoding > 0.0))

    def _prefilled(self, each: _Attention, tokens: float, mean_context: float) -> _Part:
        """Attention of chunks of prompts in the layers of one kind, as in a forward pass of training."""
        work = each.work
        if work.state_elements or not work.score_flops:
            return _Part()
        reached = smaller(mean_context, work.window_tokens)
        context = larger(smaller(reached, work.attended_tokens), _LEAST)
        scored = tokens * context * work.score_flops / self.tensor
        indexed = tokens * reached * work.index_flops
        size = work.score_flops / (4.0 * each.query_heads * self.tensor)
        written = tokens * (each.token_bytes + each.index_bytes)
        moved = written + 2.0 * tokens * each.query_heads * size * _WIDE_BYTES
        operator = Operator(
            "attention",
            _ATTENTION,
            self.wide,
            each.layers * (scored + indexed),
            each.layers * moved,
            each.layers,
            columns=size,
            context=context,
            fused=FusedAttention.NATIVE,
        )
        return _part(operator, operator_seconds(operator, self.machine), counts=1.0 * (tokens > 0.0))

    def _scan(self, tokens: float) -> _Part:
        """Recurrences over the tokens of prompts."""
        flops, elements, kernels = self.scanned
        each = tokens / self.tensor
        operator = Operator("scan", _SCAN, self.wide, each * flops, each * elements * _WIDE_BYTES, kernels)
        return _part(operator, operator_seconds(operator, self.machine))

    def _sent(self, message: _Message, tokens: float) -> float:
        """Seconds of the collectives of one kind in a pass."""
        group, sent = message.group, message.token_bytes * tokens

        def taking(algorithm: Algorithm | None = None) -> float:
            return collective_seconds(
                message.kind,
                sent,
                devices=group.devices,
                per_domain=group.per_domain,
                fabric=self.fabric,
                algorithm=algorithm,
            )

        seconds = taking()
        if message.kind is Collective.ALL_REDUCE and group.devices == group.per_domain:
            seconds = smaller(smaller(seconds, taking(Algorithm.ONE_SHOT)), taking(Algorithm.TWO_SHOT))
        return message.times * seconds


class _Fixed(NamedTuple):
    """Parts of an iteration."""

    matrices: _Part
    experts: _Part
    other: _Part
    collectives: float


class Tabulated:
    """Seconds of iterations from a table, for a simulation that asks a million times."""

    __slots__ = ("_device", "_ending", "_kernels", "_model")

    def __init__(self, model: IterationModel, device: list[float], kernels: float) -> None:
        self._model = model
        self._device = device
        self._kernels = kernels
        self._ending: dict[float, tuple[float, float]] = {}

    def seconds(  # noqa: PLR0917 - the figures of a batch, in its order
        self,
        decoding: float,
        cached_tokens: float,
        prefilled: float = 0.0,
        prefill_context: float = 0.0,
        prompts: float = 0.0,
        positions: float = 1.0,
    ) -> float:
        """Seconds of one iteration; figures as of :class:`Batch`."""
        model = self._model
        batch = Batch(decoding, cached_tokens, prefilled, prefill_context, prompts, positions)
        tokens = decoding * positions + prefilled
        place = int(tokens)
        rest = tokens - place
        device = self._device[place] + rest * (self._device[place + 1] - self._device[place])
        ending, drawn = self._head(decoding * positions + prompts)
        attention = model._attention(batch)  # noqa: SLF001 - the two are one
        kernels = attention.kernels + drawn
        device += ending + attention.seconds + kernels * model.rates.kernel_seconds
        launched = (self._kernels + kernels) * model._launched(tokens)  # noqa: SLF001
        return max(device, launched) + model._host(batch)  # noqa: SLF001

    def slope(  # noqa: PLR0917
        self,
        decoding: float,
        cached_tokens: float,
        prefilled: float = 0.0,
        prefill_context: float = 0.0,
        prompts: float = 0.0,
        positions: float = 1.0,
    ) -> float:
        """Seconds for each further cached token of all requests together."""
        rest = (prefilled, prefill_context, prompts, positions)
        further = self.seconds(decoding, cached_tokens + decoding, *rest)
        return (further - self.seconds(decoding, cached_tokens, *rest)) / decoding

    def _head(self, rows: float) -> tuple[float, float]:
        """Seconds and kernels of what stands behind the blocks for ``rows`` positions."""
        known = self._ending.get(rows)
        if known is None:
            ending = self._model._ending(Batch(rows, 0.0))  # noqa: SLF001
            seconds = ending.matrices.seconds + ending.other.seconds + ending.collectives
            known = self._ending[rows] = (seconds, ending.matrices.kernels + ending.other.kernels)
        return known


def iteration_model(
    profile: Profile,
    workload: InferenceWorkload,
    layout: Parallelism,
    *,
    cluster: Cluster,
    calibration: Calibration,
) -> IterationModel | None:
    """The iterations of ``profile`` on one replica of ``layout``.

    None where the bandwidth of the device, or every rate that its weights could be multiplied at, is not
    known.
    """
    accelerator = cluster.accelerator
    machine = machine_of(accelerator, calibration.operators)
    narrow = accelerator.peak(*COMPUTE_FORMATS[workload.weight_format])
    wide = _wide(workload.weight_format, accelerator)
    if machine is None or narrow is None or wide is None:
        return None
    rules = workload.rules
    rates = calibration.serving.rates(rules.name, rules.generation)
    machine = machine._replace(rates=machine.rates._replace(expert_variation=0.0))
    fabric = fabric_of(cluster, calibration.links.value)._replace(launch_seconds=rates.collective_seconds)
    templates = _templates(profile, _CHOICES.get(rules.name, _SERVED))
    dense, routed = _stored(profile, workload.storage, narrow[0], wide)
    beside = _Stored(wide)
    sizes = inference_weight_bytes(
        profile, workload.storage, Parallelism(tensor=layout.tensor, data=layout.expert, expert=layout.expert)
    )
    head_bytes = _head_bytes(profile, workload.storage, layout.tensor)
    holders = 1.0 * layout.tensor * layout.expert / (layout.expert_tensor or layout.tensor)
    cut = 1.0 * (layout.expert_tensor or layout.tensor)
    traffic, gathered, row = _traffic(templates)
    chosen = next((each for each, _ in templates if isinstance(each, Experts)), None)
    matrices = _matrix_shapes(profile, templates, layout.tensor, sizes.rest - head_bytes, dense)
    experts = _expert_shapes(templates, cut, sizes.experts, routed)
    attentive = sum(work.layers for work in profile.attention)
    return IterationModel(
        machine=machine,
        rates=rates,
        fabric=fabric,
        wide=wide,
        ranks=1.0 * layout.expert,
        tensor=1.0 * layout.tensor,
        matrices=matrices,
        head=_head_shapes(profile, layout.tensor, head_bytes, beside),
        experts=experts,
        expert_count=float(chosen.experts) if chosen else 0.0,
        chosen=float(chosen.chosen) if chosen else 0.0,
        holders=holders,
        attention=tuple(_attention_of(work, workload, layout.tensor) for work in profile.attention),
        streamed=traffic,
        dispatched=gathered,
        dispatched_row=row,
        scanned=_scanned(templates),
        state_bytes=state_bytes(profile, workload.state_format, tensor=layout.tensor, rules=rules),
        messages=tuple(_messages(profile, layout, cluster)),
        kernels=attentive * rates.layer_kernels
        + profile.expert_blocks * (rates.expert_kernels + routed.widened * rates.widened_kernels)
        + rates.cast_kernels
        * (dense.casts * float(np.sum(matrices.times)) + routed.casts * float(np.sum(experts.times))),
        vocabulary=float(profile.vocabulary_size),
        graphs=workload.cuda_graphs and rules.name is not EngineName.TRANSFORMERS,
    )


def _wide(weight_format: NumberFormat, accelerator: Accelerator) -> NumberFormat | None:
    """The format of attention, of the head and of all that is stored wide."""
    formats: tuple[NumberFormat, ...] = (NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32)
    if ELEMENT_BITS[weight_format] >= ELEMENT_BITS[NumberFormat.BF16]:
        formats = (weight_format, *formats)
    found = accelerator.peak(*formats)
    return found[0] if found else None


def _stored(
    profile: Profile, storage: WeightFormat, narrow: NumberFormat, wide: NumberFormat
) -> tuple[_Stored, _Stored]:
    """How dense matrices and those of experts multiply: a mixed format leaves one of them wide."""
    facts = profile.weights.facts

    def of(*, routed: bool) -> _Stored:
        bits, grouped = storage.mean_bits, False
        for matrix in profile.weights.matrices:
            if (matrix.module in EXPERT_MODULES) is routed and matrix.module not in ALWAYS_WIDE:
                place = Place(matrix.module, 0, facts.depth, matrix.inputs)
                scheme = storage.scheme_of(place, facts)
                bits, grouped = scheme.element_bits, scheme.group_inputs > 0
                break
        if bits >= ELEMENT_BITS[wide]:
            return _Stored(wide)
        widened = bits < ELEMENT_BITS[narrow]
        return _Stored(narrow, widened, grouped and not widened)

    return of(routed=False), of(routed=True)


Counted = tuple[Template, float]


def _templates(profile: Profile, choice: Choice) -> list[Counted]:
    """The operators of all blocks and of what stands behind them, each with how often it occurs."""
    counts: dict[int, float] = {}
    distinct: dict[int, tuple[Template, ...]] = {}
    for block, templates in zip(profile.blocks, profile.operators.of(choice), strict=True):
        counts[id(templates)] = counts.get(id(templates), 0.0) + block.repeats
        distinct[id(templates)] = templates
    found = [(template, counts[key]) for key, block in distinct.items() for template in block]
    return [*found, *((template, 1.0) for template in profile.operators.outside(choice))]


def _head_bytes(profile: Profile, storage: WeightFormat, tensor: float) -> float:
    """Bytes of language-model heads and of what else stands outside blocks, on one device."""
    if not profile.shapes_known:
        return 0.0
    sizes = profile.weights.stored(storage)
    return (sizes.head_split + sizes.tied) / tensor + sizes.head_whole


def _shapes(rows: list[tuple[float, float, float, float]], weight_bytes: float, stored: _Stored) -> _Shapes:
    """Shapes on one device as columns, depth, times and copies; the bytes are shared by their elements."""
    shapes = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    elements = np.prod(shapes, axis=0)
    share = elements / max(float(np.sum(elements)), 1.0)
    columns, depth, times, copies = cast("list[float]", list(shapes))
    return _Shapes(columns, depth, times, copies, cast("float", weight_bytes * share), stored)


def _matrix_shapes(
    profile: Profile, templates: list[Counted], tensor: float, weight_bytes: float, stored: _Stored
) -> _Shapes:
    """Dense matrices of blocks on one device; without shapes one matrix as large as the model."""
    if not profile.shapes_known:
        side = profile.parameter_count**0.5
        return _shapes([(side / tensor, side, 1.0, 1.0)], weight_bytes, stored)
    rows = []
    for template, count in templates:
        if isinstance(template, Matrix) and template.rows_of != "sample":
            columns, depth = template.columns, template.depth
            if template.split is Split.ROW:
                depth = depth / tensor
            elif template.split is not Split.NONE:
                columns = larger(columns / tensor, template.least)
            rows.append((columns, depth, template.times * count, template.copies))
    return _shapes(rows, weight_bytes, stored)


def _head_shapes(profile: Profile, tensor: float, weight_bytes: float, stored: _Stored) -> _Shapes:
    if not profile.vocabulary_size:
        return _shapes([], 0.0, stored)
    depth = profile.head_flops_per_token / (2.0 * profile.vocabulary_size)
    return _shapes([(profile.vocabulary_size / tensor, depth, 1.0, 1.0)], weight_bytes, stored)


def _expert_shapes(templates: list[Counted], cut: float, weight_bytes: float, stored: _Stored) -> _Shapes:
    """Matrices of one expert, each cut over ``cut`` devices; bytes are of all that a device holds."""
    rows = []
    for template, count in templates:
        if isinstance(template, Experts):
            depth, columns = template.depth, template.columns
            if template.inward:
                depth = depth / cut
            else:
                columns = columns / cut
            rows.append((columns, depth, template.times * count, 1.0))
    return _shapes(rows, weight_bytes, stored)


def _attention_of(work: AttentionWork, workload: InferenceWorkload, tensor: int) -> _Attention:
    cached = layer_cache_bytes(work, workload.cache_format, tensor) if work.caches else 0.0
    elements = work.key_value_heads * work.key_value_head_elements + work.whole_cache_elements
    indexed = cached * work.index_elements / elements if elements else 0.0
    heads = max(work.query_heads / tensor, 1.0)
    held = max(work.key_value_heads / tensor, 1.0)
    return _Attention(work, float(work.layers), cached - indexed, indexed, heads, heads / held)


def _traffic(templates: list[Counted]) -> tuple[Traffic, Traffic, float]:
    """What streams activations, per token; that of rows in random order apart, and such a row's elements."""
    plain, gathered, row = Traffic(), Traffic(), 0.0
    for template, count in templates:
        if isinstance(template, Streamed):
            if template.gathers:
                gathered, row = gathered.plus(template.forward, count), template.gathers
            else:
                plain = plain.plus(template.forward, count)
    return plain, gathered, row


def _scanned(templates: list[Counted]) -> tuple[float, float, float]:
    scans = [(each, count * each.times) for each, count in templates if isinstance(each, Scan)]
    return (
        sum(each.flops * count for each, count in scans),
        sum(each.elements * count for each, count in scans),
        4.0 * sum(count for _, count in scans),
    )


def _messages(profile: Profile, layout: Parallelism, cluster: Cluster) -> Iterator[_Message]:
    """The collectives of a pass; a group of one device sends nothing."""
    domain, width = cluster.domain, profile.widest_elements * _WIDE_BYTES

    def group(devices: float) -> Group:
        return Group(1.0 * devices, min(1.0 * devices, 1.0 * domain))

    dense, routed = _summed_layers(profile)
    tensor, everyone = group(layout.tensor), group(layout.tensor * layout.expert)
    if layout.expert == 1:
        dense, routed = dense + routed, 0.0
    if layout.tensor > 1:
        table = 1.0 * bool(profile.table_tensors)
        yield _Message(Collective.ALL_REDUCE, tensor, width, dense + table)
        logits = profile.vocabulary_size * _WIDE_BYTES
        yield _Message(Collective.ALL_GATHER, tensor, logits, 1.0, of_head=True)
    if routed:
        # Tokens of all ranks are gathered, and what experts make of them is summed and scattered.
        yield _Message(Collective.ALL_GATHER, everyone, width, routed, of_replica=True)
        yield _Message(Collective.REDUCE_SCATTER, everyone, width, routed, of_replica=True)
    if layout.pipeline > 1:
        near = 2.0 if layout.tensor * layout.expert < domain else 1.0
        hops = layout.pipeline - 1.0
        yield _Message(Collective.POINT_TO_POINT, Group(2.0, near), width / layout.tensor, hops)


def _summed_layers(profile: Profile) -> tuple[float, float]:
    """Layers that end in matrices cut by rows, and layers of experts: both sum over devices."""
    dense = routed = 0.0
    for block in profile.blocks:
        for layer in block.block.layers:
            count = block.repeats * float(getattr(layer, "count", 1))
            if isinstance(layer, MixtureOfExperts):
                routed += count
            elif any(tensor.split is Split.ROW for tensor in layer.tensors()):
                dense += count
    return dense, routed
