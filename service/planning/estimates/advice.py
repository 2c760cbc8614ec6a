"""A change worth trying."""

from typing import NamedTuple


class Advice(NamedTuple):
    """A change and what it does; ``gain_share`` of the time is what it saves, where that is known."""

    code: str
    detail: str
    gain_share: float | None = None
