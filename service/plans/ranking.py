"""Configurations on their supplies, by the goal."""

from typing import NamedTuple

from service.plans.space import Outcome, Space


class Ranking(NamedTuple):
    """Configurations on their supplies, by the goal."""


def ranked(space: Space, outcome: Outcome) -> Ranking:
    """What is kept, priced and ranked."""
    raise NotImplementedError
