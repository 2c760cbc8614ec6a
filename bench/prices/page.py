"""Writes docs/prices.md: how old the price of every accelerator and provider is, and where it comes from.

``make price-page``. Ages count from the newest offer of the shipped catalog, not from today.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

from service.catalog.rows import RowDocument
from service.catalog.shipped import list_shipped_documents
from service.evidence.snapshot import build_shipped_snapshot
from service.formats.providers import get_provider_name
from service.planning.cost.prices import OLD_DAYS, is_old, parse_first_day
from service.resolve.price_age import find_newest_day
from service.resolve.rental import TERM_OPTIONS

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "prices.md"
GAPS: Final = ROOT / "service" / "catalog" / "offers" / "gaps.json"
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "on_demand": ("on_demand",),
    "committed": TERM_OPTIONS,
    "spot": ("spot",),
}
"""Columns of the table of providers, with the purchase options of each."""


def load_gaps() -> Sequence[Mapping[str, Any]]:
    """Returns the stated gaps of the shipped offers."""
    gaps: Sequence[Mapping[str, Any]] = json.loads(GAPS.read_text())["gaps"]
    return gaps


def find_newest(rows: Iterable[RowDocument]) -> RowDocument | None:
    """Returns the newest row, of equals the first by id; None of none."""
    ordered = sorted(rows, key=lambda row: (-parse_first_day(row["as_of"]).toordinal(), row["id"]))
    return ordered[0] if ordered else None


def write_page() -> str:
    """Returns the page."""
    newest = find_newest_day(build_shipped_snapshot())
    shipped = list_shipped_documents()
    offers = shipped["offers"]
    lines = [_INTRODUCTION.format(newest=newest.isoformat(), count=len(offers))]
    lines += ["## Accelerators", "", "| accelerator | newest price | days | offers | by id only | source |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [_describe_accelerator(name, offers, newest) for name in _list_named("accelerator_id", offers)]
    lines += ["", "## Providers", "", "| provider | on demand | term | spot | offers | by id only |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [_describe_provider(name, offers, newest) for name in _list_named("provider", offers)]
    lines += ["", "## Token prices", "", "| provider | newest price | prices | source |", "|---|---|---|---|"]
    lines += list(_describe_tokens(shipped["token_prices"]))
    return "\n".join([*lines, ""])


def _list_named(member: str, offers: Iterable[RowDocument]) -> list[str]:
    """Returns what has an offer or a stated gap."""
    return sorted({row[member] for row in offers} | {gap[member] for gap in load_gaps() if member in gap})


def _describe_accelerator(name: str, offers: Iterable[RowDocument], newest: date) -> str:
    mine = [row for row in offers if row["accelerator_id"] == name]
    found = find_newest(mine)
    old = sum(is_old(row["as_of"], newest) for row in mine)
    cells = [f"`{name}`", "-", "-", str(len(mine)), str(old), _find_reason("accelerator_id", name, "price")]
    if found is not None:
        cells[1:3] = [found["as_of"], str((newest - parse_first_day(found["as_of"])).days)]
        if not is_old(found["as_of"], newest):
            cells[5] = _cite(found)
    return f"| {' | '.join(cells)} |"


def _describe_provider(name: str, offers: Iterable[RowDocument], newest: date) -> str:
    mine = [row for row in offers if row["provider"] == name]
    cells = [_name_provider(name)]
    for column, options in _COLUMNS.items():
        found = find_newest(row for row in mine if row["purchase_option"] in options)
        if found is None or is_old(found["as_of"], newest):
            cells.append(_find_reason("provider", name, column))
        else:
            days = (newest - parse_first_day(found["as_of"])).days
            cells.append(f"{found['as_of']}, {days} days: {_cite(found)}")
    old = sum(is_old(row["as_of"], newest) for row in mine)
    return f"| {' | '.join([*cells, str(len(mine)), str(old)])} |"


def _name_provider(provider: str) -> str:
    return f"{get_provider_name(provider)} (`{provider}`)"


def _describe_tokens(prices: Sequence[RowDocument]) -> Iterator[str]:
    for provider in sorted({row["provider"] for row in prices}):
        mine = [row for row in prices if row["provider"] == provider]
        found = find_newest(mine)
        if found is not None:
            yield f"| {_name_provider(provider)} | {found['as_of']} | {len(mine)} | {_cite(found)} |"


def _find_reason(member: str, name: str, missing: str) -> str:
    gaps = (gap for gap in load_gaps() if gap.get(member) == name and gap["missing"] == missing)
    return next((str(gap["reason"]) for gap in gaps), "-")


def _cite(row: RowDocument) -> str:
    """Returns the source of a row: its address, else its citation."""
    source = row["sources"][0]
    return f"[`{row['id']}`]({source['url']})" if "url" in source else f"`{row['id']}`: {source['citation']}"


_INTRODUCTION: Final = f"""# Age of prices

The newest of the {{count}} shipped offers is of {{newest}}: that is the date of the catalog, from which ages
count. An offer that is more than {OLD_DAYS} days older is used by its id only
([decision 80](decisions/0080-an-old-offer-is-used-by-its-id.md)). `make price-page` writes this page from the
catalog, `make catalog-age` says what is older than a year today, and `ironlaw offers refresh FOLDER` keeps a
tenant's own prices fresh ([guide](guides/prices-quotes-and-budgets.md#keep-prices-fresh)).

The source of a price is the page that the newest offer cites; the offer has the way of the figure beside it.
A reason in place of a source is a gap. A term is a reservation, a commitment or a capacity block.
"""


def main() -> None:
    """Writes the page."""
    PAGE.write_text(write_page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
