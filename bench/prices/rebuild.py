"""Makes the shipped offers and token prices from a folder of dated prices. ``make prices FOLDER=path``.

Rows are read as ``ironlaw offers refresh`` reads them. What is left out, and the rows that take the place of
older ones under another name, are in ``choices.json``. Older rows without a successor stay, by their id.
"""

import csv
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from service.app.price_folder import OFFERS_FILE, TOKENS_FILE, describe_offers, describe_token_prices
from service.catalog.offers import importing as offers
from service.catalog.rows import RowDocument
from service.catalog.shipped import list_shipped_documents
from service.catalog.token_prices import importing as token_prices
from service.formats.offers.listed import RefusedOffer

ROOT: Final = Path(__file__).resolve().parents[2]
CATALOG: Final = ROOT / "service" / "catalog"
CHOICES: Final[Mapping[str, Any]] = json.loads((Path(__file__).parent / "choices.json").read_text())
_NO_ADDRESS: Final = re.compile(r"public file \d+( \(repository unknown\))?(,? section [^,;]*|,? S\d+)?")


def main(folder: Path) -> None:
    """Writes the shipped files and tells what was left out."""
    made = make_offers((folder / OFFERS_FILE).read_text(encoding="utf-8-sig"))
    _write("offers", merge_rows(list_shipped_documents()["offers"], made, CHOICES["replaced"]))
    priced = make_token_prices((folder / TOKENS_FILE).read_text(encoding="utf-8-sig"))
    _write("token_prices", merge_rows(list_shipped_documents()["token_prices"], priced, {}))


def make_offers(content: str) -> list[RowDocument]:
    """Returns the offers of a file of dated prices, with the billing of their providers."""
    kept = [row for row in _read_rows(content) if _report_left_out(row) is None]
    known = offers.index_by_name(list_shipped_documents()["accelerators"])
    terms = describe_offers()
    listed = offers.read_list(terms, _to_csv(kept), known)
    _report_refused(OFFERS_FILE, listed.refused)
    return [_add_billing(offers.to_document(offer, terms)) for offer in listed.offers]


def make_token_prices(content: str) -> list[RowDocument]:
    """Returns the token prices of the chosen providers."""
    rows = [row for row in _read_rows(content) if row["provider"] in CHOICES["token_providers"]]
    text = _to_csv(rows)
    terms = describe_token_prices(text)
    models = {
        name.lower(): row["id"]
        for row in list_shipped_documents()["models"]
        for name in (*row.get("aliases", ()), row["id"])
    }
    listed = token_prices.read_list(terms, models)
    _report_refused(TOKENS_FILE, listed.refused)
    return [token_prices.to_document(price, terms) for price in listed.prices]


def _read_rows(content: str) -> Iterator[dict[str, str]]:
    for row in csv.DictReader(io.StringIO(content)):
        yield row | {"via": _clean_via(row["via"]), "licence": _find_licence(row["via"])}


def _clean_via(via: str) -> str:
    """Returns the way of a figure, without files whose address is not known."""
    return _NO_ADDRESS.sub("a transcription of this page", via.removeprefix("page ")).strip()


def _find_licence(via: str) -> str:
    return next((name for pattern, name in CHOICES["licences"].items() if re.search(pattern, via)), "")


def _report_left_out(row: Mapping[str, str]) -> str | None:
    """Returns the reason why a row does not ship, and prints it; None if it does."""
    for rule in CHOICES["left_out"]:
        if all(re.search(pattern, row[column]) for column, pattern in rule["where"].items()):
            sys.stdout.write(f"left out: {row['provider']} {row['product']}: {rule['reason']}\n")
            return str(rule["reason"])
    return None


def _report_refused(name: str, refused: Iterable[RefusedOffer]) -> None:
    for code, count in Counter(one.code for one in refused).most_common():
        sys.stdout.write(f"{name}: {count} rows {code}\n")


def _to_csv(rows: Sequence[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _add_billing(row: RowDocument) -> RowDocument:
    for fact in CHOICES["billing"]:
        if row["provider"] == fact["provider"] and row["purchase_option"] in fact["purchase_options"]:
            return {**row, **fact["members"], "sources": [*row["sources"], fact["source"]]}
    return row


def merge_rows(
    before: Iterable[RowDocument], made: Iterable[RowDocument], replaced: Mapping[str, str]
) -> list[RowDocument]:
    """Returns the new rows and the older ones without a successor; a replaced id becomes an alias."""
    rows = {row["id"]: row for row in made}
    for row in before:
        successor = rows.get(replaced.get(row["id"], row["id"]))
        if successor is None:
            rows[row["id"]] = row
        elif successor["id"] != row["id"]:
            successor["aliases"] = sorted({row["id"], *successor.get("aliases", ())})
        elif row.get("aliases"):
            successor["aliases"] = row["aliases"]
    return [rows[row_id] for row_id in sorted(rows)]


def _write(resource: str, rows: Sequence[RowDocument]) -> None:
    path = CATALOG / resource / "shipped.json"
    kept = [{name: value for name, value in row.items() if value != []} for row in rows]
    path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"wrote {len(rows)} rows to {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
