"""Exposed communication of a step, and the messages of each block.

Communication of T seconds of which a share w is issued behind A seconds of work hides min(w T, A) of them.
The rest is exposed, and the work loses a share of the hidden seconds (both use the memory and the
multiprocessors). So a step never becomes faster by slower work or slower links. Messages: ``traffic``.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from service.planning.figures import larger, smaller
from service.planning.hardware import traffic
from service.planning.hardware.collectives import ClusterFabric, Collective
from service.planning.hardware.traffic import (
    CollectiveMessage,
    ContextExchange,
    ExpertChoice,
    PassMessages,
    ReplicaExchange,
    context_messages,
    copies_sent,
    expert_messages,
    replica_messages,
    tensor_messages,
)
from service.planning.models.architecture import LayerBlock
from service.planning.models.layers import (
    Attention,
    CompressedAttention,
    LatentAttention,
    MixtureOfExperts,
    TensorSplit,
)
from service.planning.parallelism import DeviceGroup, GroupPlacement, Parallelism


class ExposedCommunication(NamedTuple):
    """Seconds that a step waits for communication, and seconds that it hides behind work."""

    seconds: float
    hidden: float


NOTHING = ExposedCommunication(0.0, 0.0)


def split_exposed(seconds: float, *, overlap: float, behind: float) -> ExposedCommunication:
    """Splits communication of which a share ``overlap`` is issued behind ``behind`` seconds of work."""
    hidden = smaller(overlap * seconds, behind)
    return ExposedCommunication(seconds - hidden, hidden)


class BlockTraffic(NamedTuple):
    """Traffic of one block: elements per token, and the number of its layers that send.

    ``pairs`` counts the layers that end in row-split matrices, or in experts: they sum their output over the
    tensor-parallel group. ``grouped_pairs`` are those of experts, whose products are grouped.
    """

    width: float
    pairs: float
    grouped_pairs: float
    key_value_elements: float
    query_elements: float
    expert_elements: float
    experts: ExpertChoice


@lru_cache(maxsize=4096)
def compute_block_traffic(block: LayerBlock) -> BlockTraffic:
    """Returns the traffic of one block, taken once."""
    pairs = grouped = keys = queries = sent = width = 0.0
    experts = ExpertChoice(0.0)
    for layer in block.layers:
        count = float(getattr(layer, "count", 1))
        splits = {tensor.split for tensor in layer.list_tensors()}
        pairs += count * bool(splits & {TensorSplit.ROW, TensorSplit.EXPERT})
        grouped += count * (TensorSplit.EXPERT in splits)
        width = max(width, float(getattr(layer, "hidden_size", 0) or getattr(layer, "size", 0) or 0))
        match layer:
            case Attention(key_value="own" | "key_as_value", cross_size=None):
                value = layer.value_head_size or layer.head_size
                keys += count * layer.key_value_heads * (layer.head_size + value)
                queries += count * layer.query_heads * layer.head_size
            case LatentAttention():
                key = layer.plain_head_size + layer.rotary_head_size
                keys += count * layer.query_heads * (key + layer.value_head_size)
                queries += count * layer.query_heads * key
            case CompressedAttention():
                keys += count * layer.head_size
                queries += count * layer.query_heads * layer.head_size
            case MixtureOfExperts():
                sent += count * (layer.latent_size or layer.hidden_size)
                experts = max(experts, layer.choice)
            case _:
                pass
    return BlockTraffic(width, pairs, grouped, keys, queries, sent, experts)


class GroupLinks(NamedTuple):
    """Groups of a layout on the levels of a cluster; ``known`` are seconds of collectives there."""

    placement: GroupPlacement
    fabric: ClusterFabric
    known: dict[tuple[Collective, DeviceGroup, float], float]

    def compute_seconds(self, messages: Iterable[CollectiveMessage]) -> float:
        """Returns the seconds of several messages, one after the other."""
        return sum((message.times * self._compute_message_seconds(message) for message in messages), 0.0)

    def _compute_message_seconds(self, message: CollectiveMessage) -> float:
        """Returns the seconds of one collective of a message, cached where its figures are numbers."""
        group, key = message.group, (message.kind, message.group, message.message_bytes)
        figures = (message.message_bytes, group.devices, group.per_domain)
        is_number = not any(isinstance(figure, np.ndarray) for figure in figures)
        found = self.known.get(key) if is_number else None
        if found is None:
            found = traffic.compute_message_seconds(message._replace(times=1.0), self.fabric)
            if is_number:
                self.known[key] = found
        return found


class PassCommunication(NamedTuple):
    """Seconds of a block's collectives in the forward and in the backward pass, before any overlap."""

    forward: float = 0.0
    backward: float = 0.0


def compute_both_directions(passes: PassMessages, links: GroupLinks) -> PassCommunication:
    """Returns the seconds of the messages of either direction."""
    return PassCommunication(links.compute_seconds(passes.forward), links.compute_seconds(passes.backward))


class BlockCommunication(NamedTuple):
    """Seconds of one block's collectives, by kind of parallelism."""

    tensor: PassCommunication
    context: PassCommunication
    expert: PassCommunication


def compute_block_seconds(
    links: GroupLinks, layout: Parallelism, traffic: BlockTraffic, element_bytes: float, imbalance: float
) -> BlockCommunication:
    """Returns the seconds of a block's collectives for tokens of ``element_bytes`` each element."""
    placed = links.placement
    hidden = element_bytes * traffic.width
    tensor = tensor_messages(hidden, traffic.pairs, placed, sequence=layout.sequence_parallel)
    context = expert = PassCommunication()
    if traffic.key_value_elements:
        keys, queries = (
            element_bytes * elements / layout.tensor
            for elements in (traffic.key_value_elements, traffic.query_elements)
        )
        context = compute_both_directions(
            context_messages(ContextExchange.GATHER, keys, queries, placed), links
        )
    if traffic.expert_elements:
        spread = layout.tensor if layout.sequence_parallel else 1.0
        chosen = traffic.experts.chosen
        imbalance = 1.0 if traffic.experts.is_even else imbalance
        sent = element_bytes * traffic.expert_elements * chosen * traffic.experts.padding / spread
        domains = larger(1.0, placed.expert.devices / placed.expert.per_domain)
        reached = (copies_sent(traffic.experts, domains), chosen)
        exchange = expert_messages(sent, sent, placed, imbalance=imbalance, nodes_per_token=reached)
        expert = compute_both_directions(exchange, links)
    return BlockCommunication(compute_both_directions(tensor, links), context, expert)


class ReplicaExchangeTime(NamedTuple):
    """Seconds of the exchange of gradients and weights; ``gathered_forward`` precedes the forward pass."""

    gathered_forward: float
    gathered_backward: float
    gradients: float


def compute_replica_seconds(
    links: GroupLinks, layout: Parallelism, exchanged: ReplicaExchange, micro_batches: float
) -> ReplicaExchangeTime:
    """Returns the seconds of the exchange of one step, by purpose."""
    forward, backward, gradients = [], [], []
    for message in replica_messages(exchanged, layout, links.placement, micro_batches):
        if message.name == "weights_backward":
            backward.append(message)
        elif message.name.startswith("weights"):
            forward.append(message)
        else:
            gradients.append(message)
    return ReplicaExchangeTime(
        links.compute_seconds(forward), links.compute_seconds(backward), links.compute_seconds(gradients)
    )
