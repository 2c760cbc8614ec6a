"""Collectives of an iteration: their messages, and their seconds as a function of the tokens alone.

The time of a collective is T = a + b M + c sqrt(M) for a message of M bytes (``collectives``: hops, bytes
over the rate, chunks), and the fastest of some algorithms. An engine sums messages by its own kernels, one-
or two-shot, where all devices share a link and read the memory of each other. In-network sums are left out:
the buffers that they need are turned off (vLLM sets NCCL_CUMEM_ENABLE=0).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from service.planning.figures import smaller, square_root
from service.planning.hardware.collectives import (
    ClusterFabric,
    Collective,
    CollectiveAlgorithm,
    collective_seconds,
)
from service.planning.hardware.traffic import copies_sent
from service.planning.models.layers import MixtureOfExperts, TensorSplit
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import DeviceGroup, Parallelism

_WIDE_BYTES = 2.0


class AlgorithmTerms(NamedTuple):
    """Coefficients a, b and c of one algorithm."""

    fixed: float
    per_byte: float
    per_root: float


class PassMessage(NamedTuple):
    """``times`` collectives of a pass, with ``token_bytes`` per token."""

    token_bytes: float
    times: float
    ways: tuple[AlgorithmTerms, ...]
    """Algorithms, of which the fastest is taken."""

    def compute_seconds(self, tokens: float) -> float:
        """Returns the seconds of all collectives."""
        sent = self.token_bytes * tokens
        root = square_root(sent)
        first, *others = self.ways
        taken = first.fixed + first.per_byte * sent + first.per_root * root
        for way in others:
            taken = smaller(taken, way.fixed + way.per_byte * sent + way.per_root * root)
        return self.times * taken


class PassMessages(NamedTuple):
    """Messages that scale with a rank's tokens, with the replica's, and with positions after the head."""

    of_rank: tuple[PassMessage, ...]
    of_replica: tuple[PassMessage, ...]
    of_head: tuple[PassMessage, ...]


_OWN_SUMS = (CollectiveAlgorithm.ONE_SHOT, CollectiveAlgorithm.TWO_SHOT)


@lru_cache(maxsize=4096)
def list_collective_terms(
    kind: Collective, group: DeviceGroup, fabric: ClusterFabric, own_share: float | None = None
) -> tuple[AlgorithmTerms, ...]:
    """Returns the algorithms that an engine has for a collective, by their coefficients.

    Its own kernels reach ``own_share`` of the link's rate; None for collectives without own kernels.
    """
    if own_share is None:
        return (_fit_collective_terms(kind, None, group, fabric),)
    ways = [
        _fit_collective_terms(kind, algorithm, group, fabric)
        for algorithm in (CollectiveAlgorithm.RING, CollectiveAlgorithm.TREE)
    ]
    if group.devices <= group.per_domain and fabric.reads_peers:
        own = (_fit_collective_terms(kind, algorithm, group, fabric) for algorithm in _OWN_SUMS)
        slower = square_root(own_share)
        ways += [AlgorithmTerms(way[0], way[1] / own_share, way[2] / slower) for way in own]
    return tuple(way for way in ways if not any(_is_dominated(way, other) for other in ways))


def _is_dominated(way: AlgorithmTerms, other: AlgorithmTerms) -> bool:
    """Returns true if ``other`` is no slower for any message, and faster for some."""
    return way != other and all(mine >= theirs for mine, theirs in zip(way, other, strict=True))


def _fit_collective_terms(
    kind: Collective, algorithm: CollectiveAlgorithm | None, group: DeviceGroup, fabric: ClusterFabric
) -> AlgorithmTerms:
    """Returns a, b and c, the last two from messages whose square roots are one and two units."""

    def time_message(message_bytes: float) -> float:
        return collective_seconds(
            kind,
            message_bytes,
            devices=group.devices,
            per_domain=group.per_domain,
            fabric=fabric,
            algorithm=algorithm,
        )

    fixed, unit = time_message(0.0), 1e12
    one, four = time_message(unit) - fixed, time_message(4.0 * unit) - fixed
    return AlgorithmTerms(
        fixed, (four - 2.0 * one) / 2.0 / unit, (4.0 * one - four) / 2.0 / square_root(unit)
    )


def build_messages(
    profile: ModelProfile, layout: Parallelism, domain: int, fabric: ClusterFabric, own_share: float
) -> PassMessages:
    """Builds the collectives of a pass; a group of one device sends nothing.

    Ranks that share experts exchange tokens and the experts' outputs in the faster of two ways.
    """
    width = profile.widest_elements * _WIDE_BYTES
    tensor, everyone = 1.0 * layout.tensor, 1.0 * layout.tensor * layout.expert

    def build_message(kind: Collective, devices: float, token_bytes: float, times: float) -> PassMessage:
        group = DeviceGroup(devices, min(devices, 1.0 * domain))
        share = own_share if kind is Collective.ALL_REDUCE else None
        return PassMessage(token_bytes, times, list_collective_terms(kind, group, fabric, share))

    def list_rank_messages() -> Iterator[PassMessage]:
        if layout.tensor > 1:
            sums = dense + (routed if layout.expert == 1 else 0.0) + bool(profile.table_tensors)
            yield build_message(Collective.ALL_REDUCE, tensor, width, sums)
        if layout.pipeline > 1:
            near = 2.0 if everyone < domain else 1.0
            way = list_collective_terms(Collective.POINT_TO_POINT, DeviceGroup(2.0, near), fabric)
            yield PassMessage(width / tensor, layout.pipeline - 1.0, way)

    dense, routed = _count_reduced_layers(profile)
    joined = routed * (layout.expert > 1)
    logits = profile.vocabulary_size * _WIDE_BYTES
    holders = everyone / (layout.expert_tensor or layout.tensor)
    copies = copies_sent(profile.expert_choice, holders) / everyone
    group = DeviceGroup(everyone, min(everyone, 1.0 * domain))
    return PassMessages(
        tuple(list_rank_messages()),
        (PassMessage(width, joined, _list_expert_terms(group, copies, fabric)),) if joined else (),
        (build_message(Collective.ALL_GATHER, tensor, logits, 1.0),) if layout.tensor > 1 else (),
    )


def _list_expert_terms(
    group: DeviceGroup, copies: float, fabric: ClusterFabric
) -> tuple[AlgorithmTerms, ...]:
    """Returns the coefficients of sending tokens to their experts and back, per byte of a replica's tokens.

    Either all tokens are gathered and the sums scattered, or each device sends its tokens, ``copies`` of all,
    to the devices of their experts and receives the results.
    """
    (gathered,) = list_collective_terms(Collective.ALL_GATHER, group, fabric)
    (scattered,) = list_collective_terms(Collective.REDUCE_SCATTER, group, fabric)
    (sent,) = list_collective_terms(Collective.ALL_TO_ALL, group, fabric)
    whole = AlgorithmTerms(*[first + second for first, second in zip(gathered, scattered, strict=True)])
    direct = AlgorithmTerms(
        2.0 * sent.fixed, 2.0 * sent.per_byte * copies, 2.0 * sent.per_root * square_root(copies)
    )
    return (whole, direct)


def _count_reduced_layers(profile: ModelProfile) -> tuple[float, float]:
    """Counts layers that end in row-split matrices, and layers of experts: both sum over devices."""
    dense = routed = 0.0
    for block in profile.blocks:
        for layer in block.block.layers:
            count = block.repeats * float(getattr(layer, "count", 1))
            if isinstance(layer, MixtureOfExperts):
                routed += count
            elif any(tensor.split is TensorSplit.ROW for tensor in layer.list_tensors()):
                dense += count
    return dense, routed
