"""The search of a space, by the kind of its workload."""

from collections.abc import Iterable

from service.plans.space import Outcome, Piece, Space


def pieces(space: Space) -> tuple[Piece, ...]:
    """The parts of a space."""
    raise NotImplementedError


def search(space: Space, piece: Piece) -> Outcome:
    """What becomes of a part."""
    raise NotImplementedError


def merged(outcomes: Iterable[Outcome], depth: int) -> Outcome:
    """What becomes of the whole."""
    raise NotImplementedError
