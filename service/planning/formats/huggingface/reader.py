"""Reading the fields of a configuration: checks, defaults, and what was left out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from service.planning.architecture import Architecture, Block, Layer
from service.planning.errors import PlanningError
from service.planning.layers import SimpleLayer

_LARGEST_SIZE = 2**31 - 1
_LARGEST_DEPTH = 2000


def invalid(name: str, detail: str) -> PlanningError:
    """The error for a field that contradicts the others or its type."""
    return PlanningError("CONFIG_FIELD_INVALID", f"/{name}", detail)


@dataclass(slots=True)
class ConfigReader:
    """One configuration with the defaults of its family."""

    config: Mapping[str, object]
    defaults: Mapping[str, int]
    defaulted: list[str] = field(default_factory=list)

    def states(self, name: str) -> bool:
        """Whether the field is there with a value."""
        return self.config.get(name) is not None

    def size(self, name: str) -> int:
        """A positive integer; a field left out takes the family's default and is noted."""
        value = self.config.get(name)
        if value is None:
            if name not in self.defaults:
                raise PlanningError("CONFIG_FIELD_MISSING", f"/{name}", f"{name} is missing")
            self.defaulted.append(name)
            return self.defaults[name]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _LARGEST_SIZE:
            raise invalid(name, f"{name} must be a positive integer")
        return value

    def size_or(self, name: str, fallback: int) -> int:
        """A positive integer; a field left out or null means ``fallback`` by definition."""
        return self.size(name) if self.states(name) else fallback

    def optional_size(self, name: str) -> int | None:
        """A positive integer; a field left out or null means none."""
        return self.size(name) if self.states(name) else None

    def depth(self, name: str) -> int:
        """A number of layers."""
        depth = self.size(name)
        if depth > _LARGEST_DEPTH:
            raise invalid(name, f"{name} must be at most {_LARGEST_DEPTH}")
        return depth

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A truth value."""
        value = self.config.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise invalid(name, f"{name} must be true or false")
        return value

    def drops(self, name: str, *, default: float = 0.0) -> bool:
        """Whether a dropout probability is above zero."""
        value = self.config.get(name, default)
        if value is None:
            return False
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise invalid(name, f"{name} must lie between 0 and 1")
        return value > 0

    def indexes(self, name: str) -> frozenset[int]:
        """A list of layer numbers; none when left out."""
        value = self.config.get(name)
        if value is None:
            return frozenset()
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise invalid(name, f"{name} must be a list of integers")
        return frozenset(value)

    def labels(self) -> int:
        """Number of classes as transformers derives it: from the label map, else 2."""
        labels = self.config.get("id2label")
        if isinstance(labels, Mapping):
            return max(1, len(labels))
        return self.size_or("num_labels", 2)

    def refuse(self, *names: str) -> None:
        """Refuse switches that change the architecture in a way that is not known here."""
        for name in names:
            if self.flag(name):
                raise PlanningError("CONFIG_FIELD_UNSUPPORTED", f"/{name}", f"{name} is not supported")


class Family(NamedTuple):
    """How one ``model_type`` becomes an architecture."""

    prefix: str
    build: Callable[[ConfigReader, str], Architecture]
    classes: tuple[str, ...]
    unnamed_class: str
    context_field: str | None
    defaults: Mapping[str, int]

    def reader(self, config: Mapping[str, object]) -> ConfigReader:
        """A reader of one configuration of this family."""
        return ConfigReader(config, self.defaults)


def head_size(hidden: int, heads: int, heads_field: str) -> int:
    """Hidden size over heads, which must come out even."""
    if hidden % heads:
        raise invalid(heads_field, f"{heads_field} does not divide the hidden size")
    return hidden // heads


def as_blocks(contents: list[tuple[SimpleLayer, ...]]) -> tuple[Layer, ...]:
    """Layers in order as blocks, equal neighbours as one block with a count."""
    blocks: list[Block] = []
    for content in contents:
        if blocks and blocks[-1].layers == content:
            blocks[-1] = Block(layers=content, count=blocks[-1].count + 1)
        else:
            blocks.append(Block(layers=content))
    return tuple(blocks)
