"""A rate while it is written, and what it cannot state."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple, TypeVar

from service.formats.urdb.findings import ImportFinding, build_child_pointer
from service.formats.urdb.values import parse_decimal
from service.planning.tariff.charges import TariffCharge

_CHARGED = TypeVar("_CHARGED", bound=TariffCharge)


class PlacedCharge(NamedTuple):
    """A charge and its place in the tariff."""

    charge: TariffCharge
    pointer: str


@dataclass(slots=True)
class RateDocument:
    """Keys of a rate, and what has no place in it."""

    keys: dict[str, object] = field(default_factory=dict)
    left_out: list[ImportFinding] = field(default_factory=list)

    def record_omission(self, name: str, pointer: str, detail: str) -> None:
        """Records a member of the tariff that the rate does not state."""
        self.left_out.append(ImportFinding(name, pointer, detail))

    def record_charge_omission(self, placed: PlacedCharge, detail: str) -> None:
        """Records a charge that the rate does not state."""
        self.record_omission(placed.charge.name, placed.pointer, detail)

    def check_charge_name(self, placed: PlacedCharge, expected: str) -> None:
        """Records the name as omitted, unless it is the one that an import assigns."""
        if placed.charge.name != expected:
            self.record_omission(
                placed.charge.name,
                build_child_pointer(placed.pointer, "name"),
                "has no place: charges have no names",
            )


def to_json_number(price: Decimal) -> float | int | None:
    """The price as JSON has it, or None where it would be another."""
    if price == price.to_integral_value():
        return int(price)
    return float(price) if parse_decimal(float(price)) == price else None


def select_charges(
    placed: Iterable[PlacedCharge], kind: type[_CHARGED]
) -> list[tuple[PlacedCharge, _CHARGED]]:
    """Returns the charges of one kind with their places."""
    return [(one, one.charge) for one in placed if isinstance(one.charge, kind)]
