"""Schemes by module, and the modules that are left alone."""

from collections.abc import Sequence
from typing import NamedTuple

from service.formats import module_patterns as patterns
from service.formats.quantization.modules import ModulePatterns, build_invalid_error
from service.planning.hardware.storage import MatrixScheme
from service.planning.hardware.storage.named import WIDE
from service.planning.precision import NumberFormat

_MOST_WORK = 500_000
"""Bound on the work: distinguished layers, times the elements of all patterns and a constant for the rest."""
_WORK_OF_PATTERNS = 1000
"""Constant for the names of a layer, if there are patterns."""
_WORK_OF_A_LIST = 100
"""Constant for the lookup of the names in a list."""


class SchemeRules(NamedTuple):
    """Schemes by module, first match first, and the modules that are left alone."""

    schemes: tuple[tuple[ModulePatterns | None, MatrixScheme], ...]
    """Schemes by module; None stands for every matrix."""
    ignored: ModulePatterns
    compute: NumberFormat
    experts_only: bool = False
    experts: MatrixScheme | None = None
    """Scheme of routed experts, where it differs from that of the other matrices."""
    head: bool = False
    """True if the language-model head is packed unless it is ignored."""
    table: bool = False
    """True if the token table is packed, and with it a head that is tied to it."""
    lookups: MatrixScheme | None = None
    """Scheme of tables of n-grams, where it differs from that of the token table."""

    def select_scheme(self, layer: str, names: Sequence[str]) -> MatrixScheme:
        """Returns the scheme of a matrix that may be called by any of ``names``."""
        if any(self.ignored.has_module(layer, name) for name in names):
            return WIDE
        for modules, scheme in self.schemes:
            if modules is None or any(modules.has_module(layer, name) for name in names):
                return scheme
        return WIDE

    @property
    def module_lists(self) -> tuple[ModulePatterns, ...]:
        """Returns every list of modules."""
        return self.ignored, *(modules for modules, _ in self.schemes if modules)

    def check_work(self, layers: int, pointer: str) -> None:
        """Refuses lists and patterns that take long to evaluate for every layer that they distinguish."""
        lists = self.module_lists
        elements = sum(patterns.count_elements(modules.sequences) for modules in lists)
        asked = max(1, layers) if any(modules.by_layer for modules in lists) else 1
        work = len(lists) * _WORK_OF_A_LIST + (elements and elements + _WORK_OF_PATTERNS)
        if asked * work > _MOST_WORK:
            raise build_invalid_error(pointer, f"has lists and patterns that are too long for {asked} layers")
