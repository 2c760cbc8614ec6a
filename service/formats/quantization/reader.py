"""Fields of a quantization configuration."""

from collections.abc import Mapping
from typing import NamedTuple

from service.formats.quantization.modules import ModulePatterns, build_invalid_error, parse_modules
from service.planning.errors import PlanningError


class QuantizationReader(NamedTuple):
    """The fields of one quantisation configuration."""

    fields: Mapping[str, object]
    pointer: str

    def read_integer(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """Returns the first of these fields that is given; refuses anything but an integer in its range."""
        for name in names:
            value = self.fields.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 1_000_000:  # noqa: PLR2004
                raise build_invalid_error(f"{self.pointer}/{name}", f"must be an integer of at least {least}")
            return value
        if default is None:
            raise PlanningError(
                "CONFIG_FIELD_MISSING", f"{self.pointer}/{names[0]}", f"{names[0]} is missing"
            )
        return default

    def read_flag(self, *names: str, default: bool = False) -> bool:
        """Returns the first of these fields that is given; refuses anything but true and false."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, bool):
                return value
            if value is not None:
                raise build_invalid_error(f"{self.pointer}/{name}", "must be true or false")
        return default

    def read_modules(self, *names: str) -> ModulePatterns:
        """Returns the modules that any of these fields lists."""
        found = ModulePatterns()
        for name in names:
            found = found.merge_with(parse_modules(self.fields.get(name), f"{self.pointer}/{name}"))
        return found

    def read_block(self, name: str) -> tuple[int, int] | None:
        """Returns both sides of a block; None where the field is not given."""
        value = self.fields.get(name)
        if value is None:
            return None
        sides = value if isinstance(value, list) else []
        if len(sides) != 2 or not all(type(side) is int and 0 < side <= 1_000_000 for side in sides):  # noqa: PLR2004
            raise build_invalid_error(f"{self.pointer}/{name}", "must be two positive integers")
        return sides[0], sides[1]


_WIDEST_INTEGER = 8


def read_bits(reader: QuantizationReader, *names: str, default: int | None = None) -> int:
    """Returns the bits of an integer, 8 at most."""
    bits = reader.read_integer(*names, default=default)
    if bits > _WIDEST_INTEGER:
        raise build_invalid_error(f"{reader.pointer}/{names[0]}", "must be at most 8")
    return bits
