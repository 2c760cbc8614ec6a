"""Says which shipped prices are older than a year today. ``make catalog-age``; no test calls it."""

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime

from service.catalog.rows import RowDocument
from service.catalog.shipped import list_shipped_documents
from service.planning.cost.prices import OLD_DAYS, is_old, parse_first_day


def describe_age(today: date) -> Iterator[str]:
    """Yields the old rows of each resource that has dated rows, the oldest first."""
    for name, rows in list_shipped_documents().items():
        dated = [row for row in rows if "as_of" in row]
        if dated:
            yield from _describe_resource(name, dated, today)


def _describe_resource(name: str, rows: list[RowDocument], today: date) -> Iterator[str]:
    old = [row for row in rows if is_old(row["as_of"], today)]
    yield f"{name}: {len(old)} of {len(rows)} are more than {OLD_DAYS} days old on {today.isoformat()}"
    yield from (f"  {row['as_of']:10}  {row['id']}" for row in _sort_by_day(old))


def _sort_by_day(rows: Iterable[RowDocument]) -> list[RowDocument]:
    return sorted(rows, key=lambda row: (parse_first_day(row["as_of"]), row["id"]))


if __name__ == "__main__":
    sys.stdout.write("\n".join([*describe_age(datetime.now(UTC).date()), ""]))
