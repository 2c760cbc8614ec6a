"""Communication of a training step: messages, their groups, and their number.

Every function gives the messages of one kind of parallelism; :func:`compute_message_seconds` is the time of
one on a fabric, all of it, overlapped or not.

Sources: Li et al. 2020 (DDP: buckets in reverse order), Rajbhandari et al. 2020 (ZeRO: reduce-scatter and
all-gather; stage 3 gathers twice, 1.5 times the bytes), Zhao et al. 2023 (FSDP, hybrid sharding), Shoeybi et
al. 2019 (tensor), Korthikanti et al. 2022 (sequence parallelism), Narayanan et al. 2021 (pipeline, scatter of
the sent tensors), Liu et al. 2023 (ring attention), Llama 3 2024 section 3.3.2 (all-gather of keys and
values), Jacobs et al. 2023 (Ulysses), Lepikhin et al. 2021 and DeepSeek-V3 2024 section 3.2.2 (experts).

Bytes and counts are floats or arrays, one entry for each layout. A message of a group of one device takes no
time.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from service.planning.figures import is_zero, larger, rounded_up, smaller
from service.planning.hardware.collectives import ClusterFabric, Collective, collective_seconds
from service.planning.parallelism import DeviceGroup, GroupPlacement, Parallelism, Sharding
from service.planning.software.frameworks import Framework
from service.planning.units import MEBIBYTE_BYTES


class CollectiveMessage(NamedTuple):
    """``times`` equal collectives of a group; ``message_bytes`` is the whole buffer of one of them."""

    name: str
    kind: Collective
    group: DeviceGroup
    message_bytes: float
    times: float = 1.0


def compute_message_seconds(message: CollectiveMessage, fabric: ClusterFabric) -> float:
    """Returns the seconds of all of a message's collectives, one after the other."""
    each = collective_seconds(
        message.kind,
        message.message_bytes,
        devices=message.group.devices,
        per_domain=message.group.per_domain,
        fabric=fabric,
    )
    return message.times * each


def total_seconds(messages: Iterable[CollectiveMessage], fabric: ClusterFabric) -> float:
    """Returns the seconds of several messages, one after the other."""
    return sum((compute_message_seconds(message, fabric) for message in messages), 0.0)


# --- weights and gradients --------------------------------------------------------------------------------

DDP_BUCKET_BYTES: Final = 25.0 * MEBIBYTE_BYTES
"""PyTorch's `bucket_cap_mb`."""
_BUCKET_ELEMENTS: Final = {
    Framework.MEGATRON_LM: 4e7,
    Framework.MEGATRON_DEEPSPEED: 5e8,
    Framework.DEEPSPEED: 5e8,
}
"""Megatron-Core's `ddp_bucket_size` (at least), DeepSpeed's `reduce_bucket_size`."""


def bucket_bytes(framework: Framework, gradient_bytes: float) -> float:
    """Returns the bytes of gradients that a framework reduces at a time, at ``gradient_bytes`` an element."""
    elements = _BUCKET_ELEMENTS.get(framework)
    return DDP_BUCKET_BYTES if elements is None else elements * gradient_bytes


class ReplicaExchange(NamedTuple):
    """Data that replicas exchange: parameters of a device before sharding, and bytes of each.

    ``dense`` is one stage's parameters over its tensor-parallel devices, ``expert`` those of its experts over
    tensor and expert parallelism. ``weight_bytes`` is the size of a gathered weight, ``gradient_bytes`` that
    of a reduced gradient. ``units`` are the parts that are gathered or reduced at a time.
    """

    dense: float
    expert: float
    weight_bytes: float
    gradient_bytes: float
    units: float


def count_buckets(parameters: float, gradient_bytes: float, largest_bytes: float) -> float:
    """Returns the number of equal buckets, none above ``largest_bytes``: 14 GB in 25 MiB are 535."""
    return larger(1.0, rounded_up(parameters * gradient_bytes / largest_bytes))


def replica_messages(
    exchanged: ReplicaExchange, layout: Parallelism, placed: GroupPlacement, micro_batches: float
) -> Iterator[CollectiveMessage]:
    """Yields the messages of data parallelism in one step.

    Plain replicas all-reduce their gradients once a step, however many micro-batches they accumulate. ZeRO 1
    reduce-scatters them and all-gathers the new weights: the same bytes. ZeRO 2 holds a shard only, and so
    reduce-scatters after every micro-batch. ZeRO 3 all-gathers the weights before the forward and again
    before the backward pass of every micro-batch and reduce-scatters its gradients: 1.5 times the bytes for
    one micro-batch. Hybrid sharding does that inside its groups, and all-reduces the shards of the gradients
    between them.
    """
    for parameters, group, shards, across in (
        (exchanged.dense, placed.replicas, placed.shards, placed.shard_replicas),
        (exchanged.expert, placed.expert_replicas, placed.expert_shards, placed.expert_shard_replicas),
    ):
        if is_zero(parameters):
            continue
        share = parameters / exchanged.units
        gradients, weights = share * exchanged.gradient_bytes, share * exchanged.weight_bytes
        units = exchanged.units
        match layout.sharding:
            case Sharding.NONE:
                yield CollectiveMessage("gradients", Collective.ALL_REDUCE, group, gradients, units)
            case Sharding.ZERO_1:
                yield CollectiveMessage("gradients", Collective.REDUCE_SCATTER, group, gradients, units)
                yield CollectiveMessage("weights", Collective.ALL_GATHER, group, weights, units)
            case Sharding.ZERO_2:
                every = units * micro_batches
                yield CollectiveMessage("gradients", Collective.REDUCE_SCATTER, group, gradients, every)
                yield CollectiveMessage("weights", Collective.ALL_GATHER, group, weights, units)
            case Sharding.ZERO_3 | Sharding.HYBRID:
                every = units * micro_batches
                yield CollectiveMessage("weights_forward", Collective.ALL_GATHER, shards, weights, every)
                yield CollectiveMessage("weights_backward", Collective.ALL_GATHER, shards, weights, every)
                yield CollectiveMessage("gradients", Collective.REDUCE_SCATTER, shards, gradients, every)
                if layout.sharding is Sharding.HYBRID:
                    part = gradients / shards.devices
                    yield CollectiveMessage("gradients_across", Collective.ALL_REDUCE, across, part, every)


def tied_embedding(parameters: float, gradient_bytes: float, placed: GroupPlacement) -> CollectiveMessage:
    """Returns the message of the gradients of a table that the first and the last stage share (Shoeybi et al.

    2019). ``parameters`` are those of a tensor-parallel device.
    """
    return CollectiveMessage(
        "tied_embedding", Collective.ALL_REDUCE, placed.ends, parameters * gradient_bytes
    )


# --- activations ------------------------------------------------------------------------------------------


class PassMessages(NamedTuple):
    """Messages of one block and one micro-batch in the forward and in the backward pass."""

    forward: tuple[CollectiveMessage, ...] = ()
    backward: tuple[CollectiveMessage, ...] = ()


def tensor_messages(
    activation_bytes: float, pairs: float, placed: GroupPlacement, *, sequence: bool
) -> PassMessages:
    """Returns the messages of tensor parallelism in a block.

    ``pairs`` counts pairs of a column-split and a row-split matrix.

    A block has two pairs (attention and feed-forward), one where both read the same input. Each pair
    all-reduces its output forward and the gradient of its input backward. With sequence parallelism, these
    are a gather before and a scatter after it, and the backward pass gathers the input once more for the
    gradient of the weights. ``activation_bytes`` are those of the micro-batch's whole hidden state.
    """
    group = placed.tensor
    if not sequence:
        reduced = CollectiveMessage("tensor", Collective.ALL_REDUCE, group, activation_bytes, pairs)
        return PassMessages((reduced,), (reduced,))
    gathered = CollectiveMessage("tensor_gather", Collective.ALL_GATHER, group, activation_bytes, pairs)
    scattered = CollectiveMessage("tensor_scatter", Collective.REDUCE_SCATTER, group, activation_bytes, pairs)
    return PassMessages((gathered, scattered), (gathered._replace(times=2.0 * pairs), scattered))


def vocabulary_messages(
    activation_bytes: float, tokens: float, placed: GroupPlacement, *, sequence: bool
) -> PassMessages:
    """Returns the messages of a table and a head that are split by vocabulary: first stage and last.

    The table's output is reduced; the head's input is gathered where sequences are split, its gradient
    reduced; the loss exchanges three FP32 figures per token (largest logit, the target's, the sum).
    """
    reduce = Collective.REDUCE_SCATTER if sequence else Collective.ALL_REDUCE
    table = CollectiveMessage("vocabulary", reduce, placed.tensor, activation_bytes)
    loss = CollectiveMessage("loss", Collective.ALL_REDUCE, placed.tensor, 4.0 * tokens, 3.0)
    if not sequence:
        return PassMessages((table, loss), (table,))
    gathered = CollectiveMessage("vocabulary_gather", Collective.ALL_GATHER, placed.tensor, activation_bytes)
    return PassMessages((table, gathered, loss), (table, gathered))


def table_messages(pooled_bytes: float, placed: GroupPlacement) -> PassMessages:
    """Returns the messages of embedding tables that are distributed over replicas (Naumov et al.

    2019, section 3.2). The sums of the rows of a device's samples come from all devices, and their gradients
    go back.
    """
    message = CollectiveMessage("tables", Collective.ALL_TO_ALL, placed.replicas, pooled_bytes)
    return PassMessages((message,), (message,))


class ContextExchange(StrEnum):
    """Exchange by which devices that share a sequence access all of it."""

    RING = "ring"
    GATHER = "gather"
    ULYSSES = "ulysses"


def context_messages(
    exchange: ContextExchange, key_value_bytes: float, query_bytes: float, placed: GroupPlacement
) -> PassMessages:
    """Returns the messages of context parallelism in a block.

    ``key_value_bytes`` and ``query_bytes`` are keys and values, and queries, of the tokens of one device. A
    ring passes on keys and values n - 1 times, and in the backward pass their gradients too. A gather
    collects them, again backward, where their gradients are scattered. Ulysses exchanges queries, keys,
    values and outputs for heads, and as much backward.
    """
    group = placed.context
    sent = group.devices - 1.0
    # The slowest wire of a ring sets its pace.
    near = 1.0 + (group.devices <= group.per_domain)
    pair = DeviceGroup(smaller(group.devices, 2.0), smaller(group.devices, near))
    match exchange:
        case ContextExchange.RING:
            step = CollectiveMessage("context", Collective.POINT_TO_POINT, pair, key_value_bytes, sent)
            return PassMessages((step,), (step._replace(message_bytes=2.0 * key_value_bytes),))
        case ContextExchange.GATHER:
            whole = key_value_bytes * group.devices
            gathered = CollectiveMessage("context_gather", Collective.ALL_GATHER, group, whole)
            scattered = CollectiveMessage("context_scatter", Collective.REDUCE_SCATTER, group, whole)
            return PassMessages((gathered,), (gathered, scattered))
        case ContextExchange.ULYSSES:
            heads = CollectiveMessage("context", Collective.ALL_TO_ALL, group, key_value_bytes + query_bytes)
            output = heads._replace(message_bytes=query_bytes)
            return PassMessages((heads, output), (heads, output))


class ExpertChoice(NamedTuple):
    """Experts of a token: their number, and the groups of experts that they are chosen from, if limited.

    ``padding`` is the rows that experts compute over the tokens that take them. ``is_even`` is true if every
    expert takes as many tokens, ``is_limited`` if their number is known ahead.
    """

    chosen: float
    groups: int = 1
    taken_groups: int = 1
    padding: float = 1.0
    is_even: bool = False
    is_limited: bool = False


def copies_sent(choice: ExpertChoice, places: float) -> float:
    """Returns the mean number of places that a token is sent to; its experts fall on them at random.

    A token whose experts lie in some of the groups reaches the places of those alone (DeepSeek-V3 2024,
    section 2.1.2).
    """
    reached = _count_reached_places(choice, places)
    missed: float = (1.0 - 1.0 / reached) ** choice.chosen
    return reached * (1.0 - missed)


def _count_reached_places(choice: ExpertChoice, places: float) -> float:
    """Returns the mean number of places that hold the groups of a token, which lie on them in order."""
    parts = smaller(places, 1.0 * choice.groups)
    held = choice.groups / parts
    missed = 1.0
    for taken in range(choice.taken_groups):
        missed *= larger(0.0, choice.groups - held - taken) / (choice.groups - taken)
    return places * (1.0 - missed)


def expert_messages(
    dispatched_bytes: float,
    combined_bytes: float,
    placed: GroupPlacement,
    *,
    imbalance: float = 1.0,
    nodes_per_token: tuple[float, float] | None = None,
) -> PassMessages:
    """Returns the messages of expert parallelism in a block.

    Tokens to their experts and back, in both passes. The bytes are those of the tokens of one device times
    experts per token. ``imbalance`` is the bytes of the busiest device over the mean: the exchange ends with
    it. ``nodes_per_token``, the most domains that a token goes to and the experts that it takes, sends it
    once to each of those domains and from there on inside (DeepSeek-V3, section 3.2.2).
    """
    group = placed.expert

    def build_exchange(name: str, message_bytes: float) -> tuple[CollectiveMessage, ...]:
        everything = imbalance * message_bytes
        if nodes_per_token is None:
            return (CollectiveMessage(name, Collective.ALL_TO_ALL, group, everything),)
        most, experts = nodes_per_token
        domains = rounded_up(group.devices / group.per_domain)
        copies = smaller(smaller(most, domains), experts) / experts
        return (
            CollectiveMessage(
                f"{name}_between", Collective.ALL_TO_ALL, DeviceGroup(domains, 1.0), everything * copies
            ),
            CollectiveMessage(
                f"{name}_within",
                Collective.ALL_TO_ALL,
                DeviceGroup(group.per_domain, group.per_domain),
                everything,
            ),
        )

    forward = (*build_exchange("dispatch", dispatched_bytes), *build_exchange("combine", combined_bytes))
    backward = (*build_exchange("combine", combined_bytes), *build_exchange("dispatch", combined_bytes))
    return PassMessages(forward, backward)


def pipeline_messages(
    activation_bytes: float, layout: Parallelism, placed: GroupPlacement, virtual_stages: float
) -> PassMessages:
    """Returns the messages of a stage in one micro-batch, and back: its hidden state, once per chunk.

    Split over tensor-parallel devices, it is sent in their parts side by side: with sequence parallelism
    without change, otherwise scattered before and gathered after (Narayanan et al. 2021, section 4.1).
    """
    part = activation_bytes / layout.tensor
    sent = CollectiveMessage("pipeline", Collective.POINT_TO_POINT, placed.pipeline, part, virtual_stages)
    if layout.sequence_parallel:
        return PassMessages((sent,), (sent,))
    gathered = CollectiveMessage(
        "pipeline_gather",
        Collective.ALL_GATHER,
        placed.tensor,
        activation_bytes,
        (placed.pipeline.devices > 1.0) * virtual_stages,
    )
    return PassMessages((sent, gathered), (sent, gathered))
