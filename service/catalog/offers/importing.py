"""Import of price lists in other formats as offers of the catalog."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from pydantic import MISSING

from service.catalog import repository
from service.catalog.imports import ImportResult, RowImport
from service.catalog.offers.schemas import (
    ImportedOffers,
    OfferRequest,
    PriceList,
    PriceListSource,
    RefusedRow,
    RefusedRowCount,
)
from service.catalog.registry import ACCELERATORS, OFFERS
from service.catalog.rows import RowDocument
from service.formats.offers import PROVIDERS, READERS, SELF_CONTAINED
from service.formats.offers.listed import ListedOffer, ListedSource, ReadOffers, RefusedOffer
from service.formats.offers.names import ListedAccelerators, PriceListContext, build_accelerators
from service.formats.providers import get_provider_name
from service.kit.clock import now
from service.kit.database.engine import Reader
from service.kit.http.problems import FieldError, Unprocessable
from service.planning.cost.prices import CommitmentTerm, format_price, is_old, parse_first_day, parse_last_day
from service.planning.errors import PlanningError

MOST_OFFERS: Final = 20_000
REFUSED_LISTED: Final = 1000
_NAME_LENGTH: Final = 500


def list_known_accelerators(session: Reader, tenant_id: str) -> ListedAccelerators:
    """Returns the accelerators that a tenant sees, by every name."""
    return index_by_name(repository.list_visible_rows(session, ACCELERATORS, tenant_id))


def index_by_name(rows: Iterable[RowDocument]) -> ListedAccelerators:
    """Returns accelerators by every name."""
    return build_accelerators(
        {row["id"]: (row.get("memory_label_gb"), (row["name"], *row.get("aliases", ()))) for row in rows}
    )


def read_list(body: PriceList, content: str, accelerators: ListedAccelerators) -> ReadOffers:
    """Returns the offers of a price list. Raises a 422 problem if the content is no such list."""
    check_as_of(body.as_of)
    provider = _find_provider(body)
    accelerator = None if body.accelerator_id is MISSING else body.accelerator_id
    try:
        listed = READERS[body.format](content, PriceListContext(provider, accelerators, accelerator))
    except PlanningError as error:
        raise _build_refusal(error.pointer, error.code, error.detail) from error
    if len(listed.offers) > MOST_OFFERS:
        detail = f"the list has more than {MOST_OFFERS} offers; send it in parts"
        raise _build_refusal("/content", "TOO_MANY_OFFERS", detail)
    return _refuse_future(listed, now().date() + timedelta(days=1))


def _find_provider(body: PriceList) -> str:
    provider = PROVIDERS.get(body.format, "") if body.provider is MISSING else body.provider
    if body.format in SELF_CONTAINED and provider:
        raise _build_refusal("/provider", "PROVIDER_NOT_EXPECTED", "the rows of this format name providers")
    if body.format not in SELF_CONTAINED and not provider:
        raise _build_refusal(
            "/provider", "PROVIDER_REQUIRED", "this format does not name the provider of its prices"
        )
    return provider


def _refuse_future(listed: ReadOffers, last: date) -> ReadOffers:
    """Refuses prices that are dated after ``last``: the age of all offers counts from the newest."""
    kept: list[ListedOffer] = []
    refused = list(listed.refused)
    for offer in listed.offers:
        if offer.as_of and parse_first_day(offer.as_of) > last:
            detail = "the date of the price is still to come"
            refused.append(RefusedOffer(f"{offer.pointer}/as_of", "DATE_IN_FUTURE", detail))
        else:
            kept.append(offer)
    return ReadOffers(tuple(kept), tuple(refused), listed.rows)


def check_as_of(as_of: str) -> None:
    """Raises a 422 problem for a date that no calendar has."""
    try:
        parse_last_day(as_of)
    except ValueError as error:
        raise _build_refusal("/as_of", "DATE_INVALID", "there is no such day") from error


def _build_refusal(pointer: str, code: str, detail: str) -> Unprocessable:
    return Unprocessable("The price list cannot be imported", FieldError(pointer, code, detail))


def list_rows(tenant_id: str, body: PriceList, listed: ReadOffers) -> RowImport:
    """Returns the offers of a list as rows. An offer with a later date in the catalog stays."""
    return RowImport(
        resource=OFFERS,
        tenant_id=tenant_id,
        list_documents=lambda: (to_document(offer, body) for offer in listed.offers),
        is_older=is_older,
    )


def is_older(sent: RowDocument, seen: RowDocument) -> bool:
    """Returns true if the stored price stands before the one that is sent.

    Of a price with a doubt and one without that is at most a year older, the one without stands; of others,
    the newer.
    """
    try:
        newest = max(parse_first_day(row["as_of"]) for row in (sent, seen))
        doubted, plain = (sent, seen) if "doubt" in sent else (seen, sent)
        if "doubt" in doubted and "doubt" not in plain and not is_old(plain["as_of"], newest):
            return doubted is sent
        return bool(parse_last_day(sent["as_of"]) < parse_last_day(seen["as_of"]))
    except ValueError:
        # Rows of earlier versions may hold a day that no calendar has.
        return False


def to_document(offer: ListedOffer, body: PriceList) -> RowDocument:
    """Returns an offer as a row, checked like a row that a caller sends."""
    as_of = offer.as_of or body.as_of
    row = {
        "id": offer.id,
        "name": _build_name(offer),
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "instance_type": offer.instance_type,
        "accelerator_id": offer.accelerator_id,
        "accelerator_count": offer.accelerator_count,
        "purchase_option": offer.purchase_option,
        "price_per_instance_hour": to_money(offer.price, offer.currency_code),
        "commitment": _to_commitment(offer.term, offer.currency_code),
        "includes": None if offer.includes is None else list(offer.includes),
        "as_of": as_of,
        "valid_until": None if body.valid_until is MISSING else body.valid_until,
        "doubt": offer.doubt,
        "note": offer.note,
        "sources": [to_citation(offer.source, body.source, as_of)],
    }
    given = {name: value for name, value in row.items() if value is not None}
    return OfferRequest.model_validate(given).model_dump(mode="json")


def _build_name(offer: ListedOffer) -> str:
    what = offer.instance_type or f"{offer.accelerator_count} x {offer.accelerator_id}"
    option = offer.purchase_option.replace("_", " ")
    return f"{get_provider_name(offer.provider)} {what}, {option}"[:_NAME_LENGTH]


def to_citation(own: ListedSource | None, of_list: PriceListSource, as_of: str) -> RowDocument:
    """Returns the citation of a whole row: its own source if it names one, otherwise that of its list."""
    source = of_list.model_dump(mode="json") if own is None else own._asdict()
    given = {name: value for name, value in source.items() if value is not None}
    return {**given, "pointers": [""], "as_of": as_of}


def to_money(amount: Decimal | None, code: str) -> RowDocument | None:
    """Returns an amount as a row has it; None for an unknown one."""
    return None if amount is None else {"amount": format_price(amount), "currency_code": code}


def _to_commitment(term: CommitmentTerm | None, code: str) -> RowDocument | None:
    if term is None:
        return None
    parts = {
        "upfront_per_instance": to_money(term.upfront, code),
        "hourly_per_instance": to_money(term.hourly, code),
    }
    return {"term_days": term.days} | {name: part for name, part in parts.items() if part is not None}


def to_response(listed: ReadOffers, imported: ImportResult) -> ImportedOffers:
    """Returns the outcome of every row of a list."""
    refused, reasons = list_refusals([*listed.refused, *_list_not_stored(listed, imported)])
    return {
        "created": imported.created,
        "changed": imported.changed,
        "unchanged": imported.unchanged,
        "refused": refused,
        "refused_reasons": reasons,
        "row_count": listed.rows,
    }


def list_refusals(refused: Sequence[RefusedOffer]) -> tuple[list[RefusedRow], list[RefusedRowCount]]:
    """Returns the first refusals with their reasons, and the number of refusals for each reason."""
    first: list[RefusedRow] = [
        {"pointer": one.pointer, "code": one.code, "detail": one.detail} for one in refused[:REFUSED_LISTED]
    ]
    counted = Counter(one.code for one in refused)
    return first, [{"code": code, "row_count": count} for code, count in counted.most_common()]


def _list_not_stored(listed: ReadOffers, imported: ImportResult) -> Iterator[RefusedOffer]:
    older, clashing = set(imported.older), set(imported.clashing)
    for offer in listed.offers:
        if offer.id in older:
            detail = "the catalog has a newer price of this offer, or one of the year without a doubt"
            yield RefusedOffer(offer.pointer, "OLDER_THAN_CATALOG", detail)
        elif offer.id in clashing:
            yield RefusedOffer(offer.pointer, "ID_TAKEN", "the id of this offer is an alias of another")
