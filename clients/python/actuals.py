"""Set what was billed beside what was quoted: import a bill in the columns of FOCUS, and read the ratio."""

import sys
from pathlib import Path

from connection import connected, expected, money
from ironlaw_client.api.actuals import get_quote_actuals, import_actuals
from ironlaw_client.models import Actuals, ActualsImportRequest, QuoteActuals
from ironlaw_client.types import Unset


def main(bill: Path, quote_id: str) -> None:
    """Look at the bill first, import it, and compare."""
    body = ActualsImportRequest(source=bill.stem, content=bill.read_text(), note="Monthly bill")
    with connected() as client:
        seen = expected(Actuals, import_actuals.sync(client=client, body=body, validate_only=True))
        for note in seen.notes:
            print(f"{note.row_count} rows: {note.detail}")
        imported = expected(Actuals, import_actuals.sync(client=client, body=body))
        print(f"{imported.matched_row_count} of {imported.row_count} rows belong to a quote or a cost centre")
        actuals = expected(QuoteActuals, get_quote_actuals.sync(quote_id, client=client))
    print(f"quoted {money(actuals.total)}, billed {money(actuals.billed)}")
    for service in actuals.services:
        print(f"{service.service_category or 'other'}: {money(service.billed)}")
    if isinstance(actuals.ratio, Unset):
        raise SystemExit("\n".join(gap.detail for gap in actuals.gaps))
    print(f"ratio {actuals.ratio:.3f}, within the interval: {actuals.is_within_interval}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
