"""The registry of worked examples that planning computes."""

from collections.abc import Callable, Mapping
from typing import Any

Inputs = Mapping[str, Any]
COMPUTED: dict[str, Callable[[Inputs], dict[str, Any]]] = {}


def example(*ids: str) -> Callable[..., Any]:
    """Register what computes the examples ``ids`` from their inputs."""

    def register(function: Callable[[Inputs], dict[str, Any]]) -> Callable[[Inputs], dict[str, Any]]:
        assert not COMPUTED.keys() & set(ids)
        COMPUTED.update(dict.fromkeys(ids, function))
        return function

    return register
