"""From the document of a rate to a tariff."""

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from typing import NamedTuple

from service.formats.urdb.demand import demand_charges
from service.formats.urdb.energy import energy_charges
from service.formats.urdb.findings import Finding, Findings, child
from service.formats.urdb.fixed import fixed_charges, minimum_charges
from service.formats.urdb.further import (
    annual_demand_charge,
    coincident_peak_charge,
    hours_of_use_minimum,
    reactive_charges,
    secondary_loss_factor,
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
from service.formats.urdb.rate import Rate
from service.formats.urdb.rows import charge_rows
from service.formats.urdb.values import Place, decimal_of
from service.planning.errors import PlanningError
from service.planning.tariff.charges import Revision, Tariff

DOLLAR = "USD"
_UNITED_STATES = ("USA", "US")
_CODE_LETTERS = 3


class UrdbImport(NamedTuple):
    """What a rate says. A tariff beside refused fields is not the whole rate: it must not bill as if it were.

    ``year_zero_peaks_kw``: monthly peaks, January to December, of the year before the load.
    """

    tariff: Tariff
    refused: tuple[Finding, ...]
    approximated: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
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
    rate_document, pointer = _rate_of(document)
    kept = {key: value for key, value in rate_document.items() if key not in excluded_keys}
    findings = Findings()
    known = _known_keys(kept, pointer, findings, only_listed=only_listed)
    notes = _meta(known, pointer, findings)
    rate = Rate(
        document=known,
        pointer=pointer,
        findings=findings,
        only_listed=only_listed,
        currency_code=_currency(known, pointer, findings),
    )
    fixed_charges(rate)
    demand_charges(rate)
    energy_charges(rate)
    annual_demand_charge(rate)
    reactive_charges(rate)
    coincident_peak_charge(rate)
    charge_rows(rate)
    minimum_charges(rate)
    _information(rate)
    starts_on, ends_on = _dates(rate)
    if not rate.charges and not findings.refused:
        findings.refuse(pointer, "states no charge")
    tariff = Tariff(
        currency_code=rate.currency_code,
        time_zone=time_zone,
        revisions=(Revision(effective_from=starts_on or date.min, charges=tuple(rate.charges)),),
        secondary_loss_factor=secondary_loss_factor(rate),
        hours_of_use_minimum=hours_of_use_minimum(rate),
        notes=notes,
    )
    return UrdbImport(
        tariff=tariff,
        refused=tuple(findings.refused),
        approximated=tuple(findings.approximated),
        warnings=tuple(findings.warnings),
        name=_text(known, "name") or _text(known, "label") or "",
        utility=_text(known, "utility"),
        source=_text(known, "source") or _text(known, "uri"),
        label=_text(known, "label"),
        sector=_text(known, "sector"),
        description=_text(known, "description"),
        starts_on=starts_on,
        ends_on=ends_on,
        year_zero_peaks_kw=rate.year_zero_peaks_kw,
    )


def _rate_of(document: Mapping[str, object]) -> tuple[Mapping[str, object], str]:
    """The one rate of an answer of the database, or the document itself."""
    if "items" not in document:
        return document, ""
    items = document["items"]
    if not isinstance(items, list) or not items or not isinstance(items[0], Mapping):
        raise PlanningError("URDB_DOCUMENT_INVALID", "/items", "must be a list of rates")
    if len(items) > 1:
        raise PlanningError("URDB_SEVERAL_RATES", "/items", "has several rates: import them one by one")
    return items[0], "/items/0"


def _known_keys(
    document: Mapping[str, object], pointer: str, findings: Findings, *, only_listed: bool
) -> dict[str, object]:
    """Keys under their present names; what nothing explains is refused."""
    known: dict[str, object] = {}
    for key, value in document.items():
        at = child(pointer, key)
        if key in LISTED:
            known[key] = value
        elif only_listed or key not in DATABASE:
            findings.refuse(at, "is not known")
        elif key not in RENAMED:
            known[key] = value
    for key in document:
        if key in RENAMED and not only_listed:
            _rename(key, document, known, child(pointer, key), findings)
    return known


def _rename(
    key: str, document: Mapping[str, object], known: dict[str, object], pointer: str, findings: Findings
) -> None:
    name = RENAMED[key]
    if known.get(name) is None:
        known[name] = document[key]
    elif document[key] is not None and known[name] != document[key]:
        findings.refuse(pointer, f"differs from {name}, of which it is the older name")


def _currency(document: Mapping[str, object], pointer: str, findings: Findings) -> str:
    meta = document.get(META)
    code = meta.get("currency") if isinstance(meta, Mapping) else None
    if code is None:
        if document.get("country", "USA") not in _UNITED_STATES:
            findings.approximate(child(pointer, "country"), "no currency is stated: prices are read as USD")
        return DOLLAR
    if isinstance(code, str) and len(code) == _CODE_LETTERS and code.isascii() and code.isupper():
        return code
    findings.refuse(child(child(pointer, META), "currency"), "must be a code of three capital letters")
    return DOLLAR


def _meta(document: Mapping[str, object], pointer: str, findings: Findings) -> tuple[str, ...]:
    """What the file says that no key carries."""
    if document.get(META) is None:
        return ()
    members = Place(document[META], child(pointer, META), findings).members(META_MEMBERS)
    if members is None:
        return ()
    notes = []
    for name in ("urdb_representable", "note"):
        if name in members and members[name].value is not True:
            findings.warn(members[name].pointer, str(members[name].value))
            notes.append(str(members[name].value))
    return tuple(notes)


def _information(rate: Rate) -> None:
    """What has no effect on a bill: limits of who may have the rate, and the utility's own attributes."""
    for key in rate.one_of((*ELIGIBILITY, *FURTHER_ELIGIBILITY)):
        rate.findings.warn(rate.at(key).pointer, "limits who may have the rate: not checked")
    for key in rate.one_of(ATTRIBUTES):
        rate.findings.warn(rate.at(key).pointer, "names charges without a rule to bill them: not billed")
    if rate.has("x_adj_is") and not isinstance(rate.at("x_adj_is").value, str):
        rate.at("x_adj_is").refuse("must be text")
    if rate.has("x_demandattrs"):
        entries = rate.at("x_demandattrs").entries() or ()
        for entry in entries:
            if not isinstance(entry.value, Mapping) or len(entry.value) != 1:
                entry.refuse("must be an object with one member")


def _dates(rate: Rate) -> tuple[date | None, date | None]:
    starts_on = _date(rate, ("startdate_iso", "startdate"))
    ends_on = _date(rate, ("enddate_iso", "enddate"))
    if ends_on is None:
        return starts_on, None
    pointer = rate.at(rate.one_of(("enddate_iso", "enddate"))[0]).pointer
    if starts_on is not None and ends_on <= starts_on:
        rate.findings.warn(pointer, "is not after the start: read as no end")
        return starts_on, None
    rate.findings.warn(pointer, f"the rate is not in force after {ends_on}")
    return starts_on, ends_on


def _date(rate: Rate, keys: tuple[str, ...]) -> date | None:
    """The day of a Unix time or of an ISO 8601 text, in UTC."""
    for key in rate.one_of(keys):
        found = _day(rate.at(key).value)
        if found is not None:
            return found
        rate.findings.warn(rate.at(key).pointer, "is neither Unix seconds nor an ISO 8601 date: not read")
    return None


def _day(value: object) -> date | None:
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value).date()
        seconds = decimal_of(value)
        return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC).date()
    except (ValueError, OverflowError, OSError):
        return None


def _text(document: Mapping[str, object], key: str) -> str | None:
    value = document.get(key)
    return value if isinstance(value, str) and value else None
