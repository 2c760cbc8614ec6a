"""A recommended change of a case."""

from typing import NamedTuple


class Advice(NamedTuple):
    """A change and its effect.

    ``gain_share`` is the share of the time that it saves, None where not known.
    """

    code: str
    detail: str
    gain_share: float | None = None
