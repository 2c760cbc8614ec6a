"""How much of a step's communication is waited for, and what each block sends.

Communication of T seconds of which a share w is issued behind A seconds of work hides min(w T, A) of them.
The rest is exposed, and the work loses a share of what hides behind it (both use the memory and the
multiprocessors). So a step never becomes faster by slower work or slower links. Messages: ``traffic``.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from service.planning.figures import larger, smaller
from service.planning.hardware import traffic
from service.planning.hardware.collectives import Collective, Fabric
from service.planning.hardware.traffic import (
    ContextExchange,
    Exchanged,
    Message,
    Passes,
    context_messages,
    copies_sent,
    expert_messages,
    replica_messages,
    tensor_messages,
)
from service.planning.models.architecture import Block
from service.planning.models.layers import Attention, LatentAttention, MixtureOfExperts, Split
from service.planning.parallelism import Group, Parallelism, Placement


class Exposed(NamedTuple):
    """Seconds that a step waits for communication, and seconds that it hides behind work."""

    seconds: float
    hidden: float


NOTHING = Exposed(0.0, 0.0)


def exposed(seconds: float, *, overlap: float, behind: float) -> Exposed:
    """Communication of which a share ``overlap`` is issued behind ``behind`` seconds of work."""
    hidden = smaller(overlap * seconds, behind)
    return Exposed(seconds - hidden, hidden)


class BlockTraffic(NamedTuple):
    """What one block sends: elements per token, and how many of its layers send.

    ``pairs`` counts the layers that end in matrices cut by rows, or in experts: they sum their output over
    the tensor-parallel group.
    """

    width: float
    pairs: float
    key_value_elements: float
    query_elements: float
    expert_elements: float
    chosen_experts: float


@lru_cache(maxsize=4096)
def block_traffic(block: Block) -> BlockTraffic:
    """The traffic of one block, taken once."""
    pairs = keys = queries = sent = chosen = width = 0.0
    for layer in block.layers:
        count = float(getattr(layer, "count", 1))
        splits = {tensor.split for tensor in layer.tensors()}
        pairs += count * bool(splits & {Split.ROW, Split.EXPERT})
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
            case MixtureOfExperts():
                sent += count * (layer.latent_size or layer.hidden_size)
                chosen = max(chosen, float(layer.experts_per_token))
            case _:
                pass
    return BlockTraffic(width, pairs, keys, queries, sent, chosen)


class Links(NamedTuple):
    """The groups of a layout on the levels of a cluster; ``known`` are seconds of collectives there."""

    placement: Placement
    fabric: Fabric
    known: dict[tuple[Collective, Group, float], float]

    def seconds(self, messages: Iterable[Message]) -> float:
        """Seconds of several messages, one after the other."""
        return sum((message.times * self._each(message) for message in messages), 0.0)

    def _each(self, message: Message) -> float:
        """Seconds of one of a message's collectives, worked out once where its figures are numbers."""
        group, key = message.group, (message.kind, message.group, message.message_bytes)
        figures = (message.message_bytes, group.devices, group.per_domain)
        is_number = not any(isinstance(figure, np.ndarray) for figure in figures)
        found = self.known.get(key) if is_number else None
        if found is None:
            found = traffic.seconds(message._replace(times=1.0), self.fabric)
            if is_number:
                self.known[key] = found
        return found


class Both(NamedTuple):
    """Seconds of a block's collectives in the forward and in the backward pass, before any overlap."""

    forward: float = 0.0
    backward: float = 0.0


def both_ways(passes: Passes, links: Links) -> Both:
    """Seconds of the messages of either direction."""
    return Both(links.seconds(passes.forward), links.seconds(passes.backward))


class Sent(NamedTuple):
    """Seconds of one block's collectives, by kind of parallelism."""

    tensor: Both
    context: Both
    expert: Both


def block_seconds(
    links: Links, layout: Parallelism, traffic: BlockTraffic, element_bytes: float, imbalance: float
) -> Sent:
    """Seconds of a block's collectives for tokens of ``element_bytes`` each element."""
    placed = links.placement
    hidden = element_bytes * traffic.width
    tensor = tensor_messages(hidden, traffic.pairs, placed, sequence=layout.sequence_parallel)
    context = expert = Both()
    if traffic.key_value_elements:
        keys, queries = (
            element_bytes * elements / layout.tensor
            for elements in (traffic.key_value_elements, traffic.query_elements)
        )
        context = both_ways(context_messages(ContextExchange.GATHER, keys, queries, placed), links)
    if traffic.expert_elements:
        spread = layout.tensor if layout.sequence_parallel else 1.0
        sent = element_bytes * traffic.expert_elements * traffic.chosen_experts / spread
        domains = larger(1.0, placed.expert.devices / placed.expert.per_domain)
        reached = (copies_sent(traffic.chosen_experts, domains), traffic.chosen_experts)
        exchange = expert_messages(sent, sent, placed, imbalance=imbalance, nodes_per_token=reached)
        expert = both_ways(exchange, links)
    return Sent(both_ways(tensor, links), context, expert)


class Replicas(NamedTuple):
    """Seconds in which replicas exchange gradients and weights; forward is what comes before that pass."""

    gathered_forward: float
    gathered_backward: float
    gradients: float


def replica_seconds(
    links: Links, layout: Parallelism, exchanged: Exchanged, micro_batches: float
) -> Replicas:
    """Seconds of the exchange of one step, by what it is for."""
    forward, backward, gradients = [], [], []
    for message in replica_messages(exchanged, layout, links.placement, micro_batches):
        if message.name == "weights_backward":
            backward.append(message)
        elif message.name.startswith("weights"):
            forward.append(message)
        else:
            gradients.append(message)
    return Replicas(links.seconds(forward), links.seconds(backward), links.seconds(gradients))
