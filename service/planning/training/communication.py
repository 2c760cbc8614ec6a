"""What the devices of a step send each other, how long that takes and how much of it a step waits for.

Communication of T seconds of which a share w is issued behind A seconds of work hides min(w T, A) of them.
The rest is exposed, and the work loses a share of what hides behind it (both use the memory and the
multiprocessors). So a step never becomes faster by slower work or slower links.

Traffic: Shoeybi et al. 2019 (tensor parallelism: two all-reduces a layer and direction), Korthikanti et al.
2022 (sequence parallelism: an all-gather and a reduce-scatter for each), Rajbhandari et al. 2020 and Zhao et
al. 2023 (sharded weights are gathered in both directions and their gradients spread), Lepikhin et al. 2021
(tokens to experts and back), Liu et al. 2023 (keys and values pass a ring), Narayanan et al. 2021 (pipeline).
"""

from functools import lru_cache
from typing import NamedTuple

from service.planning.architecture import Block
from service.planning.collectives import Collective, Fabric, collective_seconds
from service.planning.figures import larger, smaller
from service.planning.layers import Attention, LatentAttention, MixtureOfExperts, Split
from service.planning.parallelism import Group, Parallelism, Placement, Sharding


class Exposed(NamedTuple):
    """Seconds that a step waits for communication, and seconds that it hides behind work."""

    seconds: float
    hidden: float

    def plus(self, other: "Exposed", times: float = 1.0) -> "Exposed":
        """The sum of both, the other taken ``times`` times."""
        return Exposed(self.seconds + other.seconds * times, self.hidden + other.hidden * times)


NOTHING = Exposed(0.0, 0.0)


def exposed(seconds: float, *, overlap: float, behind: float) -> Exposed:
    """Communication of which a share ``overlap`` is issued behind ``behind`` seconds of work."""
    hidden = smaller(overlap * seconds, behind)
    return Exposed(seconds - hidden, hidden)


class BlockTraffic(NamedTuple):
    """What one block sends, per token and direction: elements, and how often."""

    width: float
    tensor_collectives: float
    key_value_elements: float
    expert_elements: float
    chosen_experts: float


@lru_cache(maxsize=4096)
def block_traffic(block: Block) -> BlockTraffic:
    """The traffic of one block, taken once.

    A layer that ends in matrices cut by rows, or in experts, sums its output over the tensor-parallel group.
    """
    summed = keys = sent = chosen = 0.0
    width = 0.0
    for layer in block.layers:
        count = float(getattr(layer, "count", 1))
        splits = {tensor.split for tensor in layer.tensors()}
        summed += count * bool(splits & {Split.ROW, Split.EXPERT})
        width = max(width, float(getattr(layer, "hidden_size", 0) or getattr(layer, "size", 0) or 0))
        match layer:
            case Attention(key_value="own" | "key_as_value", cross_size=None):
                value = layer.value_head_size or layer.head_size
                keys += count * layer.key_value_heads * (layer.head_size + value)
            case LatentAttention():
                each = layer.plain_head_size + layer.rotary_head_size + layer.value_head_size
                keys += count * layer.query_heads * each
            case MixtureOfExperts():
                sent += count * (layer.latent_size or layer.hidden_size)
                chosen = max(chosen, float(layer.experts_per_token))
            case _:
                pass
    return BlockTraffic(width, summed, keys, sent, chosen)


class Links(NamedTuple):
    """The groups of a layout on the levels of a cluster."""

    placement: Placement
    fabric: Fabric

    def seconds(self, kind: Collective, message_bytes: float, group: Group) -> float:
        """Seconds of one collective of a group."""
        return collective_seconds(
            kind, message_bytes, devices=group.devices, per_domain=group.per_domain, fabric=self.fabric
        )


def sum_seconds(links: Links, layout: Parallelism, message_bytes: float) -> float:
    """The sum of a layer's outputs over the tensor-parallel group, each device keeping all or its part."""
    group = links.placement.tensor
    if layout.sequence_parallel:
        gathered = links.seconds(Collective.ALL_GATHER, message_bytes, group)
        return gathered + links.seconds(Collective.REDUCE_SCATTER, message_bytes, group)
    return links.seconds(Collective.ALL_REDUCE, message_bytes, group)


def tensor_seconds(links: Links, layout: Parallelism, *, collectives: float, message_bytes: float) -> float:
    """Sums of the outputs of ``collectives`` layers, in one direction."""
    return collectives * sum_seconds(links, layout, message_bytes)


def context_seconds(links: Links, layout: Parallelism, key_value_bytes: float) -> float:
    """Keys and values of a device's tokens to all devices that share the sequence, on one tensor shard."""
    message = key_value_bytes / layout.tensor * layout.context
    return links.seconds(Collective.ALL_GATHER, message, links.placement.context)


def copies_sent(chosen: float, devices: float) -> float:
    """Devices that a token is sent to, on average: ``chosen`` experts fall on ``devices`` at random."""
    return devices * (1.0 - (1.0 - 1.0 / devices) ** chosen)


def expert_seconds(
    links: Links, layout: Parallelism, token_bytes: float, *, chosen: float, imbalance: float
) -> float:
    """Tokens to the devices of their experts, and back.

    A token is sent once to a domain that holds several of its experts and passed on inside
    (DeepSeek-V3 2024, section 3.2.2).
    """
    spread = layout.tensor if layout.sequence_parallel else 1.0
    group = links.placement.expert
    domains = larger(1.0, group.devices / group.per_domain)
    inside = copies_sent(chosen, group.devices) / domains
    between = copies_sent(chosen, domains)
    message = token_bytes / spread * imbalance
    within = Group(group.per_domain, group.per_domain)
    across = Group(domains, 0.0 * domains + 1.0)
    seconds = links.seconds(Collective.ALL_TO_ALL, message * inside * domains, within)
    return 2.0 * larger(seconds, links.seconds(Collective.ALL_TO_ALL, message * between, across))


def shard_group(links: Links, layout: Parallelism) -> Group:
    """The devices that share one copy of the training state."""
    hybrid = layout.sharding is Sharding.HYBRID
    return links.placement.shards if hybrid else links.placement.replicas


class Sharded(NamedTuple):
    """Parameters of a part of the model on one device before sharding: ordinary ones and experts'."""

    dense: float
    expert: float

    def plus(self, other: "Sharded") -> "Sharded":
        """The sum of both."""
        return Sharded(self.dense + other.dense, self.expert + other.expert)


def gather_seconds(links: Links, layout: Parallelism, parameters: Sharded, width: float) -> float:
    """Sharded weights to all devices of their group."""
    dense = links.seconds(Collective.ALL_GATHER, parameters.dense * width, shard_group(links, layout))
    experts = links.placement.expert_replicas
    return dense + links.seconds(Collective.ALL_GATHER, parameters.expert * width, experts)


def spread_seconds(links: Links, layout: Parallelism, parameters: Sharded, width: float) -> float:
    """Gradients summed, each device keeping its shard; then over the copies of the state, if there are any."""
    group, experts = shard_group(links, layout), links.placement.expert_replicas
    seconds = links.seconds(Collective.REDUCE_SCATTER, parameters.dense * width, group)
    seconds += links.seconds(Collective.REDUCE_SCATTER, parameters.expert * width, experts)
    if layout.sharding is Sharding.HYBRID:
        shard = parameters.dense * width / group.devices
        seconds += links.seconds(Collective.ALL_REDUCE, shard, links.placement.shard_replicas)
    return seconds


def reduce_seconds(links: Links, parameters: Sharded, width: float) -> float:
    """Gradients summed on every replica."""
    dense = links.seconds(Collective.ALL_REDUCE, parameters.dense * width, links.placement.replicas)
    experts = links.placement.expert_replicas
    return dense + links.seconds(Collective.ALL_REDUCE, parameters.expert * width, experts)


def pipeline_seconds(links: Links, layout: Parallelism, boundary_bytes: float) -> float:
    """Activations of a micro-batch to the next stage, or their gradients back, on one tensor shard.

    Each device of a tensor-parallel group sends its part of what all of them hold (Narayanan et al. 2021,
    section 4.1).
    """
    message = boundary_bytes / layout.tensor
    return links.seconds(Collective.POINT_TO_POINT, message, links.placement.pipeline)


def tied_seconds(links: Links, layout: Parallelism, tied_bytes: float) -> float:
    """Gradients of a table that the first and the last stage share."""
    several = larger(0.0, smaller(1.0, layout.pipeline - 1.0))
    return several * links.seconds(Collective.ALL_REDUCE, tied_bytes / layout.tensor, links.placement.ends)
