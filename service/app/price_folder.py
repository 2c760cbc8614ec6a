"""A folder of dated prices that its keeper fills: offers and token prices, read and stored together."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from service.catalog import repository
from service.catalog.imports import store_import
from service.catalog.offers import importing as offers
from service.catalog.offers.schemas import PriceList
from service.catalog.registry import OFFERS, TOKEN_PRICES, Resource
from service.catalog.token_prices import importing as token_prices
from service.catalog.token_prices.schemas import TokenPriceImportRequest
from service.formats.offers.listed import ReadOffers
from service.formats.token_prices import ReadTokenPrices
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import Unprocessable

OFFERS_FILE: Final = "gpu-offers.csv"
TOKENS_FILE: Final = "token-prices.csv"
FILES: Final = (OFFERS_FILE, TOKENS_FILE)
_FORMAT: Final = "dated_csv"


class PriceFolderRefused(Exception):  # an answer, not an error
    """The folder has no file of prices, or one that cannot be read as such."""


class ReadPrices(NamedTuple):
    """The files of a folder as they were read; None for a file that it lacks."""

    offers: ReadOffers | None
    token_prices: ReadTokenPrices | None


def load_files(folder: Path) -> dict[str, str]:
    """Returns the text of the files of prices in a folder."""
    found = dict(_list_texts(folder))
    if not found:
        raise PriceFolderRefused(f"the folder has neither of {' and '.join(FILES)}")
    return found


def list_unread(folder: Path) -> list[str]:
    """Returns the names of other tables in a folder, which are left as they are."""
    return sorted(path.name for path in folder.glob("*.csv") if path.name not in FILES)


def _list_texts(folder: Path) -> Iterator[tuple[str, str]]:
    for name in FILES:
        if (folder / name).is_file():
            try:
                yield name, (folder / name).read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                raise PriceFolderRefused(f"{name}: the file is not UTF-8") from error


def read_prices(session: Reader, tenant_id: str, files: dict[str, str]) -> ReadPrices:
    """Reads the files against the accelerators and models that a tenant sees."""
    known = offers.list_known_accelerators(session, tenant_id)
    models = token_prices.list_known_models(session, tenant_id)
    found: ReadOffers | None = None
    tokens: ReadTokenPrices | None = None
    name = OFFERS_FILE
    try:
        if name in files:
            found = offers.read_list(describe_offers(), files[name], known)
        name = TOKENS_FILE
        if name in files:
            tokens = token_prices.read_list(describe_token_prices(files[name]), models)
    except Unprocessable as problem:
        details = "; ".join(field.detail for field in problem.errors)
        raise PriceFolderRefused(f"{name}: {details}") from problem
    return ReadPrices(found, tokens)


def describe_offers() -> PriceList:
    """Returns the description of a file whose rows state the rest themselves."""
    return PriceList.model_validate(_describe())


def describe_token_prices(content: str) -> TokenPriceImportRequest:
    """Returns the request for a file of any size, whose rows state the rest themselves."""
    body = TokenPriceImportRequest.model_validate({**_describe(), "content": "-"})
    return body.model_copy(update={"content": content})


def _describe() -> dict[str, Any]:
    day = now().date().isoformat()
    return {"format": _FORMAT, "as_of": day, "source": {"citation": "A file of dated prices"}}


def store_prices(session: Writer, tenant_id: str, read: ReadPrices) -> dict[str, Any]:
    """Creates or versions the rows of a tenant, and returns the outcome of each file."""
    told: dict[str, Any] = {}
    if read.offers is not None:
        stored = store_import(session, offers.list_rows(tenant_id, describe_offers(), read.offers))
        left = _list_left(session, OFFERS, tenant_id, {offer.id for offer in read.offers.offers})
        told[OFFERS_FILE] = {**offers.to_response(read.offers, stored), "left": left}
    if read.token_prices is not None:
        body = describe_token_prices("-")
        stored = store_import(session, token_prices.list_rows(tenant_id, body, read.token_prices))
        left = _list_left(session, TOKEN_PRICES, tenant_id, {one.id for one in read.token_prices.prices})
        told[TOKENS_FILE] = {**token_prices.to_response(read.token_prices, stored), "left": left}
    return told


def _list_left(session: Writer, resource: Resource, tenant_id: str, ids: set[str]) -> list[str]:
    """Returns the ids of a tenant's rows that a file lacks, which stay with their dates."""
    own = repository.list_own_rows(session, resource, tenant_id)
    return sorted(row["id"] for row in own if row["id"] not in ids)
