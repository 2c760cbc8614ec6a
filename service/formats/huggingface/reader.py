"""Reader of configuration fields: checks, defaults, and a record of the absent ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import SimpleLayer

_LARGEST_SIZE = 2**31 - 1
_LARGEST_FACTOR = 1000
LARGEST_DEPTH = 2000


def build_invalid_error(name: str, detail: str) -> PlanningError:
    """The error for a field that contradicts the others or its type."""
    return PlanningError("CONFIG_FIELD_INVALID", f"/{name}", detail)


ConfigDefault: TypeAlias = int | float | str | None
"""Value of an absent field. ``None`` and words are for the family's reader to resolve."""


@dataclass(slots=True)
class ConfigReader:
    """One configuration with the defaults of its family.

    ``names`` lists the other spellings of a field, the most common first.
    """

    config: Mapping[str, object]
    defaults: Mapping[str, ConfigDefault]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaulted: list[str] = field(default_factory=list)

    def resolve_spelling(self, name: str) -> str:
        """The field as this configuration spells it, else as its family does."""
        spellings = (*self.names.get(name, ()), name)
        for known in (self.config, self.defaults):
            for spelling in spellings:
                if spelling in known:
                    return spelling
        return spellings[0]

    def read_value(self, name: str) -> object:
        """Whatever the field holds, or its default; null and left out without a default are the same."""
        spelling = self.resolve_spelling(name)
        return self.config[spelling] if spelling in self.config else self.defaults.get(spelling)

    def has_value(self, name: str) -> bool:
        """Returns true if the field has a value."""
        return self.config.get(self.resolve_spelling(name)) is not None

    def read_size(self, name: str) -> int:
        """A positive integer; a field left out takes the family's default and is noted."""
        spelling = self.resolve_spelling(name)
        value = self.config.get(spelling)
        if value is None:
            default = self.defaults.get(spelling)
            if not isinstance(default, int):
                raise PlanningError("CONFIG_FIELD_MISSING", f"/{spelling}", f"{spelling} is missing")
            self.defaulted.append(spelling)
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _LARGEST_SIZE:
            raise build_invalid_error(spelling, f"{spelling} must be a positive integer")
        return value

    def read_size_or(self, name: str, fallback: int) -> int:
        """A positive integer; a field left out or null means ``fallback`` by definition."""
        return self.read_size(name) if self.has_value(name) else fallback

    def read_optional_size(self, name: str) -> int | None:
        """A positive integer; null means none, a field left out means the family's default, if any."""
        if self.has_value(name) or (
            self.resolve_spelling(name) not in self.config and self.read_value(name) is not None
        ):
            return self.read_size(name)
        return None

    def read_count(self, name: str) -> int:
        """A number of things that may be none; left out or null means the default, else 0."""
        spelling = self.resolve_spelling(name)
        value = self.config.get(spelling)
        if value is None:
            default = self.defaults.get(spelling)
            return default if isinstance(default, int) else 0
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_SIZE:
            raise build_invalid_error(spelling, f"{spelling} must be an integer, 0 or more")
        return value

    def read_depth(self, name: str) -> int:
        """A number of layers."""
        depth = self.read_size(name)
        if depth > LARGEST_DEPTH:
            raise build_invalid_error(self.resolve_spelling(name), f"{name} must be at most {LARGEST_DEPTH}")
        return depth

    def read_flag(self, name: str, *, default: bool = False) -> bool:
        """A truth value."""
        spelling = self.resolve_spelling(name)
        value = self.config.get(spelling)
        if value is None:
            known = self.defaults.get(spelling)
            return known if isinstance(known, bool) else default
        if not isinstance(value, bool):
            raise build_invalid_error(spelling, f"{spelling} must be true or false")
        return value

    def read_factor(self, name: str) -> float:
        """A number above 0."""
        spelling = self.resolve_spelling(name)
        value = self.read_value(name)
        if value is None:
            raise PlanningError("CONFIG_FIELD_MISSING", f"/{spelling}", f"{spelling} is missing")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LARGEST_FACTOR:
            raise build_invalid_error(
                spelling, f"{spelling} must be a number above 0, at most {_LARGEST_FACTOR}"
            )
        return float(value)

    def read_words(self, name: str, length: int) -> list[str] | None:
        """A list with one word a layer; ``None`` when left out."""
        spelling = self.resolve_spelling(name)
        value = self.config.get(spelling)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length:
            raise build_invalid_error(spelling, f"{spelling} must name a kind for every layer")
        if not all(isinstance(item, str) for item in value):
            raise build_invalid_error(spelling, f"{spelling} must be a list of words")
        return [str(item) for item in value]

    def has_dropout(self, name: str, *, default: float = 0.0) -> bool:
        """Returns true if a dropout probability is above zero."""
        spelling = self.resolve_spelling(name)
        value = self.config.get(spelling, self.defaults.get(spelling, default))
        if value is None:
            return False
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise build_invalid_error(spelling, f"{spelling} must lie between 0 and 1")
        return value > 0

    def read_indexes(self, name: str) -> frozenset[int]:
        """A list of layer numbers; none when left out."""
        value = self.config.get(name)
        if value is None:
            return frozenset()
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise build_invalid_error(name, f"{name} must be a list of integers")
        return frozenset(value)

    def count_labels(self) -> int:
        """Number of classes as transformers derives it: from the label map, else 2."""
        labels = self.config.get("id2label")
        if isinstance(labels, Mapping):
            return max(1, len(labels))
        return self.read_size_or("num_labels", 2)

    def refuse_flags(self, *names: str) -> None:
        """Refuse switches that change the architecture in a way that is not known here."""
        for name in names:
            if self.read_flag(name):
                raise PlanningError("CONFIG_FIELD_UNSUPPORTED", f"/{name}", f"{name} is not supported")


class ModelFamily(NamedTuple):
    """Rules by which one ``model_type`` becomes an architecture."""

    prefix: str
    build: Callable[[ConfigReader, str], Architecture]
    classes: tuple[str, ...]
    unnamed_class: str
    context_field: str | None
    defaults: Mapping[str, ConfigDefault]
    names: Mapping[str, tuple[str, ...]] = {}
    left_out: tuple[str, ...] = ()
    """Members that describe parts which are not read."""

    def build_reader(self, config: Mapping[str, object]) -> ConfigReader:
        """A reader of one configuration of this family."""
        return ConfigReader(config, self.defaults, self.names)


def collapse_layer_lists(reader: ConfigReader, *names: str) -> ConfigReader:
    """A reader in which a list with the same number for every layer is that number."""
    config, depth = dict(reader.config), reader.read_depth("num_hidden_layers")
    for name in names:
        value = config.get(name)
        if not isinstance(value, list):
            continue
        if len(value) != depth or any(item != value[0] or isinstance(item, bool) for item in value):
            detail = f"{name} must be one number, or a list with the same one for every layer"
            raise PlanningError("CONFIG_FIELD_UNSUPPORTED", f"/{name}", detail)
        config[name] = value[0]
    return replace(reader, config=config)


def compute_head_size(hidden: int, heads: int, heads_field: str) -> int:
    """Hidden size over heads, which must come out even."""
    if hidden % heads:
        raise build_invalid_error(heads_field, f"{heads_field} does not divide the hidden size")
    return hidden // heads


def build_blocks(
    contents: list[tuple[SimpleLayer, ...]], over: tuple[str, ...] = ()
) -> tuple[LayerBlock, ...]:
    """Layers in order as blocks over an input, equal neighbours as one block with a count."""
    blocks: list[LayerBlock] = []
    for content in contents:
        if blocks and blocks[-1].layers == content:
            blocks[-1] = LayerBlock(layers=content, count=blocks[-1].count + 1, over=over)
        else:
            blocks.append(LayerBlock(layers=content, over=over))
    return tuple(blocks)
