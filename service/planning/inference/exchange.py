"""Collectives of an iteration: which messages, and their seconds as a function of the tokens alone.

The time of a collective is T = a + b M + c sqrt(M) for a message of M bytes (``collectives``: hops, bytes
over the rate, chunks), and the fastest of some algorithms. An engine sums messages by kernels of its own,
one- or two-shot, where all devices share a link. Switches that add are left out: the buffers that they need
are turned off (vLLM sets NCCL_CUMEM_ENABLE=0).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from service.planning.figures import smaller, square_root
from service.planning.hardware.collectives import Algorithm, Collective, Fabric, collective_seconds
from service.planning.hardware.traffic import copies_sent
from service.planning.models.layers import MixtureOfExperts, Split
from service.planning.models.profile import Profile
from service.planning.parallelism import Group, Parallelism

_WIDE_BYTES = 2.0


class Terms(NamedTuple):
    """a, b and c of one algorithm."""

    fixed: float
    per_byte: float
    per_root: float


class Message(NamedTuple):
    """``times`` collectives of a pass, of ``token_bytes`` for each token."""

    token_bytes: float
    times: float
    ways: tuple[Terms, ...]
    """Algorithms, of which the fastest is taken."""

    def seconds(self, tokens: float) -> float:
        """Seconds of all of them."""
        sent = self.token_bytes * tokens
        root = square_root(sent)
        first, *others = self.ways
        taken = first.fixed + first.per_byte * sent + first.per_root * root
        for way in others:
            taken = smaller(taken, way.fixed + way.per_byte * sent + way.per_root * root)
        return self.times * taken


class Messages(NamedTuple):
    """Those whose size goes with a rank's tokens, with the replica's, and with positions behind the head."""

    of_rank: tuple[Message, ...]
    of_replica: tuple[Message, ...]
    of_head: tuple[Message, ...]


_OWN_SUMS = (Algorithm.ONE_SHOT, Algorithm.TWO_SHOT)


@lru_cache(maxsize=4096)
def ways_of(
    kind: Collective, group: Group, fabric: Fabric, own_share: float | None = None
) -> tuple[Terms, ...]:
    """What an engine has of a collective, by its terms.

    Its own kernels reach ``own_share`` of the link's rate; None for collectives that it has none of.
    """
    if own_share is None:
        return (_terms(kind, None, group, fabric),)
    ways = [_terms(kind, algorithm, group, fabric) for algorithm in (Algorithm.RING, Algorithm.TREE)]
    if group.devices <= group.per_domain:
        own = (_terms(kind, algorithm, group, fabric) for algorithm in _OWN_SUMS)
        slower = square_root(own_share)
        ways += [Terms(way[0], way[1] / own_share, way[2] / slower) for way in own]
    return tuple(way for way in ways if not any(_is_beaten(way, other) for other in ways))


def _is_beaten(way: Terms, other: Terms) -> bool:
    """Whether ``other`` is no slower for any message, and faster for some."""
    return way != other and all(mine >= theirs for mine, theirs in zip(way, other, strict=True))


def _terms(kind: Collective, algorithm: Algorithm | None, group: Group, fabric: Fabric) -> Terms:
    """a, b and c: the last two from messages whose roots are one and two units."""

    def taking(message_bytes: float) -> float:
        return collective_seconds(
            kind,
            message_bytes,
            devices=group.devices,
            per_domain=group.per_domain,
            fabric=fabric,
            algorithm=algorithm,
        )

    fixed, unit = taking(0.0), 1e12
    one, four = taking(unit) - fixed, taking(4.0 * unit) - fixed
    return Terms(fixed, (four - 2.0 * one) / 2.0 / unit, (4.0 * one - four) / 2.0 / square_root(unit))


def messages_of(
    profile: Profile, layout: Parallelism, domain: int, fabric: Fabric, own_share: float
) -> Messages:
    """The collectives of a pass; a group of one device sends nothing.

    Ranks that share experts exchange tokens and what experts make of them in the faster of two ways.
    """
    width = profile.widest_elements * _WIDE_BYTES
    tensor, everyone = 1.0 * layout.tensor, 1.0 * layout.tensor * layout.expert

    def sent(kind: Collective, devices: float, token_bytes: float, times: float) -> Message:
        group = Group(devices, min(devices, 1.0 * domain))
        share = own_share if kind is Collective.ALL_REDUCE else None
        return Message(token_bytes, times, ways_of(kind, group, fabric, share))

    def of_rank() -> Iterator[Message]:
        if layout.tensor > 1:
            sums = dense + (routed if layout.expert == 1 else 0.0) + bool(profile.table_tensors)
            yield sent(Collective.ALL_REDUCE, tensor, width, sums)
        if layout.pipeline > 1:
            near = 2.0 if everyone < domain else 1.0
            way = ways_of(Collective.POINT_TO_POINT, Group(2.0, near), fabric)
            yield Message(width / tensor, layout.pipeline - 1.0, way)

    dense, routed = _summed_layers(profile)
    joined = routed * (layout.expert > 1)
    logits = profile.vocabulary_size * _WIDE_BYTES
    holders = everyone / (layout.expert_tensor or layout.tensor)
    copies = copies_sent(float(profile.experts_per_token), holders) / everyone
    group = Group(everyone, min(everyone, 1.0 * domain))
    return Messages(
        tuple(of_rank()),
        (Message(width, joined, _expert_ways(group, copies, fabric)),) if joined else (),
        (sent(Collective.ALL_GATHER, tensor, logits, 1.0),) if layout.tensor > 1 else (),
    )


def _expert_ways(group: Group, copies: float, fabric: Fabric) -> tuple[Terms, ...]:
    """Tokens to their experts and back, for each byte of all tokens of a replica.

    They are gathered whole and their sums scattered; or each device sends what it has of them, ``copies`` of
    all, to the places of its experts and has it back.
    """
    (gathered,) = ways_of(Collective.ALL_GATHER, group, fabric)
    (scattered,) = ways_of(Collective.REDUCE_SCATTER, group, fabric)
    (sent,) = ways_of(Collective.ALL_TO_ALL, group, fabric)
    whole = Terms(*[first + second for first, second in zip(gathered, scattered, strict=True)])
    direct = Terms(2.0 * sent.fixed, 2.0 * sent.per_byte * copies, 2.0 * sent.per_root * square_root(copies))
    return (whole, direct)


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
