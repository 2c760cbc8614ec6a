"""Lists of modules that a configuration names: names, globs and expressions."""

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from service.formats import module_patterns as patterns
from service.planning.errors import PlanningError

_LAYER_PREFIX = re.compile(
    r"^(?:(?:language_model\.)?model\.(?:language_model\.)?layers|transformer\.h|backbone\.layers|layers)\."
)
_EXPRESSION_PARENTS = ("model.layers", "language_model.model.layers", "model.language_model.layers")
_MOST_LISTED = 5000


@lru_cache(maxsize=1024)
def _split_module(module: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of a module: any part of its name, and the paths from the layer down."""
    parts = module.split(".")
    inner = (".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))
    return tuple(inner), ("", *(".".join(parts[:j]) for j in range(1, len(parts) + 1)))


@dataclass(frozen=True)
class ModulePatterns:
    """A list of modules: names or ends of names, globs, and ``re:`` expressions."""

    names: frozenset[str] = frozenset()
    globs: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()

    def merge_with(self, other: "ModulePatterns") -> "ModulePatterns":
        """Returns the union of both lists."""
        return ModulePatterns(
            self.names | other.names, self.globs + other.globs, self.expressions + other.expressions
        )

    @property
    def by_layer(self) -> bool:
        """Returns true if the list may distinguish single layers."""
        named = any(name[:1].isdigit() for name in self.names)
        return named or bool(self.expressions) or any(re.search(r"\d", glob) for glob in self.globs)

    @cached_property
    def sequences(self) -> tuple[patterns.PatternSequence, ...]:
        """Elements of the patterns."""
        return *self._glob_sequences, *self._expression_sequences

    @cached_property
    def _glob_sequences(self) -> tuple[patterns.PatternSequence, ...]:
        return tuple(chain.from_iterable(map(patterns.parse_glob, self.globs)))

    @cached_property
    def _expression_sequences(self) -> tuple[patterns.PatternSequence, ...]:
        return tuple(chain.from_iterable(map(patterns.parse_expression, self.expressions)))

    @cached_property
    def _globs(self) -> patterns.PatternSet:
        return patterns.PatternSet(self._glob_sequences)

    @cached_property
    def _expressions(self) -> patterns.PatternSet:
        return patterns.PatternSet(self._expression_sequences)

    @cached_property
    def _of_layers(self) -> Mapping[str, frozenset[str]]:
        """Names below each single layer that the list mentions."""
        found: dict[str, set[str]] = {}
        for name in self.names:
            layer, _, below = name.partition(".")
            found.setdefault(layer, set()).add(below)
        return {layer: frozenset(below) for layer, below in found.items()}

    @cached_property
    def _states(self) -> dict[str, tuple[int, ...]]:
        return {}

    @cached_property
    def _known(self) -> dict[tuple[Hashable, str], bool]:
        return {}

    def build_layer_key(self, layer: str) -> Hashable:
        """Returns a key of ``layer``: the list treats layers with the same key alike."""
        states = self._states.get(layer)
        if states is None:
            states = self._states[layer] = tuple(self._enter_layer(layer))
        return layer if layer in self._of_layers else "", states

    def _enter_layer(self, layer: str) -> Iterable[int]:
        """Yields the states of the patterns before the name of a module."""
        within = f"{layer}." if layer else ""
        yield self._globs.advance_state(self._globs.start, within) if self.globs else 0
        if self.expressions:
            for parent in _EXPRESSION_PARENTS if layer else ("",):
                start = self._expressions.advance_state(
                    self._expressions.start, f"{parent}." if parent else ""
                )
                yield self._expressions.advance_state(start, within)

    def has_module(self, layer: str, module: str) -> bool:
        """Returns true if ``module`` of ``layer`` (empty outside layers) is in the list."""
        key = (self.build_layer_key(layer), module)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._has_name(layer, module) or self._has_pattern_match(layer, module)
        return known

    def _has_name(self, layer: str, module: str) -> bool:
        inner, above = _split_module(module)
        of_layer = self._of_layers.get(layer) if layer else None
        return not self.names.isdisjoint(inner) or bool(of_layer and not of_layer.isdisjoint(above))

    def _has_pattern_match(self, layer: str, module: str) -> bool:
        glob, *expressed = self._states[layer]
        return self._globs.is_match(self._globs.advance_state(glob, module)) or any(
            self._expressions.is_match(self._expressions.advance_state(state, module)) for state in expressed
        )


def parse_modules(entries: object, pointer: str) -> ModulePatterns:
    """Returns a list of modules; refuses one that is none, is too long, or takes long to evaluate."""
    if entries is None:
        return ModulePatterns()
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise build_invalid_error(pointer, "must be a list of module names")
    if len(entries) > _MOST_LISTED:
        raise build_invalid_error(pointer, f"must not be longer than {_MOST_LISTED}")
    plain = [entry for entry in entries if not entry.startswith("re:")]
    short = [_LAYER_PREFIX.sub("", entry.removesuffix(".weight")) for entry in plain]
    modules = ModulePatterns(
        names=frozenset(entry for entry in short if "*" not in entry),
        globs=tuple(entry for entry in short if "*" in entry),
        expressions=tuple(entry.removeprefix("re:") for entry in entries if entry.startswith("re:")),
    )
    _check_patterns(modules, pointer)
    return modules


def _check_patterns(modules: ModulePatterns, pointer: str) -> None:
    """Refuses patterns that are not supported or would take long, because callers send them."""
    many = f"holds patterns of more than {patterns.MOST_ELEMENTS} characters, alternatives written out"
    if sum(map(len, (*modules.globs, *modules.expressions))) > patterns.MOST_ELEMENTS:
        raise build_invalid_error(pointer, many)
    elements = 0
    for expression in modules.expressions:
        try:
            elements += patterns.count_elements(patterns.parse_expression(expression))
        except patterns.PatternError as error:
            raise build_invalid_error(pointer, f"holds an expression that {error}") from error
        if elements > patterns.MOST_ELEMENTS:
            raise build_invalid_error(pointer, many)


def build_invalid_error(pointer: str, detail: str) -> PlanningError:
    """Returns the error of a field with an invalid value."""
    return PlanningError("CONFIG_FIELD_INVALID", pointer, f"{pointer.rsplit('/', 1)[-1]} {detail}")
