"""The rate of a tariff."""

from datetime import UTC, date, datetime
from typing import NamedTuple

from service.formats.urdb.findings import ImportFinding
from service.formats.urdb.reading import DOLLAR
from service.formats.urdb.writing.demand import write_demand
from service.formats.urdb.writing.document import PlacedCharge, RateDocument
from service.formats.urdb.writing.energy import write_energy
from service.formats.urdb.writing.single import write_fixed, write_single
from service.planning.tariff.charges import MONTHS, Tariff, TariffRevision


class UrdbExport(NamedTuple):
    """A rate of version 8. Every charge in it is exact; everything else is in ``left_out`` by name.

    Pointers of ``left_out`` lead into the tariff: its members, and charges by their place in the revision.
    """

    document: dict[str, object]
    left_out: tuple[ImportFinding, ...]


def urdb_from_tariff(
    tariff: Tariff, *, name: str = "", utility: str = "", on: date | None = None
) -> UrdbExport:
    """The rate of OpenEI's utility rate database, version 8, that states the tariff.

    Of several revisions that in force ``on`` a day is stated, else the last. Currencies other than the dollar
    stand in ``_meta``, as the page of worked bills has them.
    """
    document = RateDocument({"name": name} if name else {})
    if utility:
        document.keys["utility"] = utility
    place, revision = _select_revision(tariff, on)
    pointer = f"/revisions/{place}"
    _write_tariff_members(tariff, place, document)
    if revision.effective_from != date.min:
        start = datetime(*revision.effective_from.timetuple()[:3], tzinfo=UTC)
        document.keys["startdate"] = int(start.timestamp())
    placed = [PlacedCharge(charge, f"{pointer}/charges/{i}") for i, charge in enumerate(revision.charges)]
    sayable = [one for one in placed if _is_unconditional(one, document)]
    write_fixed(sayable, document)
    flat = write_demand(sayable, document)
    write_energy(sayable, flat, document)
    write_single(sayable, document)
    return UrdbExport(document.keys, tuple(document.left_out))


def _select_revision(tariff: Tariff, on: date | None) -> tuple[int, TariffRevision]:
    """The last revision, or the last that began by a day; the first where none did."""
    places = [i for i, one in enumerate(tariff.revisions) if on is None or one.effective_from <= on]
    place = places[-1] if places else 0
    return place, tariff.revisions[place]


def _write_tariff_members(tariff: Tariff, place: int, document: RateDocument) -> None:
    for other in range(len(tariff.revisions)):
        if other != place:
            document.record_omission("revisions", f"/revisions/{other}", "a rate states one revision")
    document.record_omission("time_zone", "/time_zone", "a rate states no clock")
    if tariff.currency_code != DOLLAR:
        document.keys["_meta"] = {"currency": tariff.currency_code}
    if tariff.holidays:
        document.record_omission("holidays", "/holidays", "a rate knows no holidays")
    if tariff.secondary_loss_factor:
        document.record_omission("secondary_loss_factor", "/secondary_loss_factor", "has no place")
    if tariff.hours_of_use_minimum:
        document.record_omission("hours_of_use_minimum", "/hours_of_use_minimum", "has no place")
    if tariff.notes:
        document.record_omission("notes", "/notes", "has no place")


def _is_unconditional(placed: PlacedCharge, document: RateDocument) -> bool:
    charge = placed.charge
    if charge.hours_of_use_from or charge.hours_of_use_below is not None:
        document.record_charge_omission(placed, "depends on annual hours of use")
        return False
    if charge.months != MONTHS:
        document.record_charge_omission(placed, "is not charged in every month")
        return False
    return True
