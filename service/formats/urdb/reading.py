"""From the document of a rate to a tariff."""

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from typing import NamedTuple

from service.formats.urdb.demand import read_demand_charges
from service.formats.urdb.energy import read_energy_charges
from service.formats.urdb.findings import ImportFinding, ImportFindings, build_child_pointer
from service.formats.urdb.fixed import read_fixed_charges, read_minimum_charges
from service.formats.urdb.further import (
    read_annual_demand_charge,
    read_coincident_peak_charge,
    read_hours_of_use_minimum,
    read_reactive_charges,
    read_secondary_loss_factor,
)
from service.formats.urdb.keys import (
    ATTRIBUTES,
    DATABASE,
    ELIGIBILITY,
    FURTHER_ELIGIBILITY,
    LISTED,
    META,
    META_MEMBERS,
    RENAMED,
)
from service.formats.urdb.rate import UrdbRate
from service.formats.urdb.rows import read_charge_rows
from service.formats.urdb.values import MemberPath, parse_decimal
from service.planning.errors import PlanningError
from service.planning.tariff.charges import Tariff, TariffRevision

DOLLAR = "USD"
_UNITED_STATES = ("USA", "US")
_CODE_LETTERS = 3


class UrdbImport(NamedTuple):
    """The tariff of a rate. With refused fields it is not the whole rate and must not be used to bill.

    ``year_zero_peaks_kw``: monthly peaks, January to December, of the year before the load.
    """

    tariff: Tariff
    refused: tuple[ImportFinding, ...]
    approximated: tuple[ImportFinding, ...]
    warnings: tuple[ImportFinding, ...]
    name: str
    utility: str | None = None
    source: str | None = None
    label: str | None = None
    sector: str | None = None
    description: str | None = None
    starts_on: date | None = None
    ends_on: date | None = None
    year_zero_peaks_kw: tuple[float, ...] | None = None


def tariff_from_urdb(
    document: Mapping[str, object],
    *,
    time_zone: str,
    excluded_keys: Collection[str] = (),
    only_listed: bool = False,
) -> UrdbImport:
    """The tariff that a rate of OpenEI's utility rate database states, on the clock ``time_zone``.

    ``document`` is a parsed rate, or the answer of the database with one rate in ``items``. ``excluded_keys``
    are left out before it is read. ``only_listed`` also refuses keys that the database writes and the page
    of worked bills does not list. Raises :class:`PlanningError` where the document is no rate at all; fields
    that cannot be taken over are in ``refused`` by name.

    Source of the keys' meaning: OpenEI utility rate database, version 8; docs/methods/urdb.md.
    """
    rate_document, pointer = _select_rate(document)
    kept = {key: value for key, value in rate_document.items() if key not in excluded_keys}
    findings = ImportFindings()
    known = _select_known_keys(kept, pointer, findings, only_listed=only_listed)
    notes = _read_meta(known, pointer, findings)
    rate = UrdbRate(
        document=known,
        pointer=pointer,
        findings=findings,
        only_listed=only_listed,
        currency_code=_read_currency(known, pointer, findings),
    )
    read_fixed_charges(rate)
    read_demand_charges(rate)
    read_energy_charges(rate)
    read_annual_demand_charge(rate)
    read_reactive_charges(rate)
    read_coincident_peak_charge(rate)
    read_charge_rows(rate)
    read_minimum_charges(rate)
    _record_information(rate)
    starts_on, ends_on = _read_dates(rate)
    if not rate.charges and not findings.refused:
        findings.record_refusal(pointer, "states no charge")
    tariff = Tariff(
        currency_code=rate.currency_code,
        time_zone=time_zone,
        revisions=(TariffRevision(effective_from=starts_on or date.min, charges=tuple(rate.charges)),),
        secondary_loss_factor=read_secondary_loss_factor(rate),
        hours_of_use_minimum=read_hours_of_use_minimum(rate),
        notes=notes,
    )
    return UrdbImport(
        tariff=tariff,
        refused=tuple(findings.refused),
        approximated=tuple(findings.approximated),
        warnings=tuple(findings.warnings),
        name=_read_text(known, "name") or _read_text(known, "label") or "",
        utility=_read_text(known, "utility"),
        source=_read_text(known, "source") or _read_text(known, "uri"),
        label=_read_text(known, "label"),
        sector=_read_text(known, "sector"),
        description=_read_text(known, "description"),
        starts_on=starts_on,
        ends_on=ends_on,
        year_zero_peaks_kw=rate.year_zero_peaks_kw,
    )


def _select_rate(document: Mapping[str, object]) -> tuple[Mapping[str, object], str]:
    """The one rate of an answer of the database, or the document itself."""
    if "items" not in document:
        return document, ""
    items = document["items"]
    if not isinstance(items, list) or not items or not isinstance(items[0], Mapping):
        raise PlanningError("URDB_DOCUMENT_INVALID", "/items", "must be a list of rates")
    if len(items) > 1:
        raise PlanningError("URDB_SEVERAL_RATES", "/items", "has several rates: import them one by one")
    return items[0], "/items/0"


def _select_known_keys(
    document: Mapping[str, object], pointer: str, findings: ImportFindings, *, only_listed: bool
) -> dict[str, object]:
    """Returns the keys under their present names; unknown ones are refused."""
    known: dict[str, object] = {}
    for key, value in document.items():
        at = build_child_pointer(pointer, key)
        if key in LISTED:
            known[key] = value
        elif only_listed or key not in DATABASE:
            findings.record_refusal(at, "is not known")
        elif key not in RENAMED:
            known[key] = value
    for key in document:
        if key in RENAMED and not only_listed:
            _rename_key(key, document, known, build_child_pointer(pointer, key), findings)
    return known


def _rename_key(
    key: str, document: Mapping[str, object], known: dict[str, object], pointer: str, findings: ImportFindings
) -> None:
    name = RENAMED[key]
    if known.get(name) is None:
        known[name] = document[key]
    elif document[key] is not None and known[name] != document[key]:
        findings.record_refusal(pointer, f"differs from {name}, of which it is the older name")


def _read_currency(document: Mapping[str, object], pointer: str, findings: ImportFindings) -> str:
    meta = document.get(META)
    code = meta.get("currency") if isinstance(meta, Mapping) else None
    if code is None:
        if document.get("country", "USA") not in _UNITED_STATES:
            findings.record_approximation(
                build_child_pointer(pointer, "country"), "no currency is stated: prices are read as USD"
            )
        return DOLLAR
    if isinstance(code, str) and len(code) == _CODE_LETTERS and code.isascii() and code.isupper():
        return code
    findings.record_refusal(
        build_child_pointer(build_child_pointer(pointer, META), "currency"),
        "must be a code of three capital letters",
    )
    return DOLLAR


def _read_meta(document: Mapping[str, object], pointer: str, findings: ImportFindings) -> tuple[str, ...]:
    """Returns notes of the file that no key carries."""
    if document.get(META) is None:
        return ()
    members = MemberPath(document[META], build_child_pointer(pointer, META), findings).read_members(
        META_MEMBERS
    )
    if members is None:
        return ()
    notes = []
    for name in ("urdb_representable", "note"):
        if name in members and members[name].value is not True:
            findings.record_warning(members[name].pointer, str(members[name].value))
            notes.append(str(members[name].value))
    return tuple(notes)


def _record_information(rate: UrdbRate) -> None:
    """Records fields without effect on a bill: limits of eligibility, and the utility's own attributes."""
    for key in rate.list_present_keys((*ELIGIBILITY, *FURTHER_ELIGIBILITY)):
        rate.findings.record_warning(rate.get_field(key).pointer, "limits who may have the rate: not checked")
    for key in rate.list_present_keys(ATTRIBUTES):
        rate.findings.record_warning(
            rate.get_field(key).pointer, "names charges without a rule to bill them: not billed"
        )
    if rate.has_key("x_adj_is") and not isinstance(rate.get_field("x_adj_is").value, str):
        rate.get_field("x_adj_is").record_refusal("must be text")
    if rate.has_key("x_demandattrs"):
        entries = rate.get_field("x_demandattrs").list_entries() or ()
        for entry in entries:
            if not isinstance(entry.value, Mapping) or len(entry.value) != 1:
                entry.record_refusal("must be an object with one member")


def _read_dates(rate: UrdbRate) -> tuple[date | None, date | None]:
    starts_on = _read_date(rate, ("startdate_iso", "startdate"))
    ends_on = _read_date(rate, ("enddate_iso", "enddate"))
    if ends_on is None:
        return starts_on, None
    pointer = rate.get_field(rate.list_present_keys(("enddate_iso", "enddate"))[0]).pointer
    if starts_on is not None and ends_on <= starts_on:
        rate.findings.record_warning(pointer, "is not after the start: read as no end")
        return starts_on, None
    rate.findings.record_warning(pointer, f"the rate is not in force after {ends_on}")
    return starts_on, ends_on


def _read_date(rate: UrdbRate, keys: tuple[str, ...]) -> date | None:
    """The day of a Unix time or of an ISO 8601 text, in UTC."""
    for key in rate.list_present_keys(keys):
        found = _parse_day(rate.get_field(key).value)
        if found is not None:
            return found
        rate.findings.record_warning(
            rate.get_field(key).pointer, "is neither Unix seconds nor an ISO 8601 date: not read"
        )
    return None


def _parse_day(value: object) -> date | None:
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value).date()
        seconds = parse_decimal(value)
        return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC).date()
    except (ValueError, OverflowError, OSError):
        return None


def _read_text(document: Mapping[str, object], key: str) -> str | None:
    value = document.get(key)
    return value if isinstance(value, str) and value else None
