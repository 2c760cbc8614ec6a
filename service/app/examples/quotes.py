"""Example of a quote."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from service.app.examples.catalog import WRITTEN_AT
from service.catalog.registry import KINDS
from service.catalog.shipped import list_shipped_documents
from service.evidence.snapshot import build_shipped_snapshot
from service.kit.security.principals import DEFAULT_TENANT, LOCAL
from service.quotes.compare import compare_quotes
from service.quotes.documents import build_row, compute_digest, to_detail, to_summary
from service.quotes.schemas import DAYS_VALID, UtilityBillQuoteRequest
from service.quotes.snapshot import QuoteSubject, build_quote, is_owning_devices, project_questions
from service.quotes.tables import QuoteRow
from service.schemas.base import EstimateSource

_ID: Final = "5c0e7b1f4d2a4e6f8a9b3c7d1e5f2a60"
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "create_quote": {
        "operation": "utility-bill",
        "name": "Summaries, next quarter",
        "cost_center_id": "research",
        "note": "The smallest cluster that ends within a week.",
        "request": {
            "model": {"source": "parameter_count", "parameter_count": 8_000_000_000},
            "workload": {"kind": "training", "sequence_length": 8192, "total_tokens": 10_000_000_000},
            "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 64},
            "efficiency": {"source": "assumed", "utilization": 0.45},
            # Terms of its own: those of the catalog's offers end some day, and a quote with them.
            "rental": {"price_per_device_hour": {"amount": "2.49", "currency_code": "USD"}},
            "site": {
                "pue": 1.12,
                "electricity": {"price_per_kwh": {"amount": "0.12", "currency_code": "USD"}},
                "carbon_intensity_kg_co2e_per_kwh": 0.429,
            },
            "starts_at": "2027-01-04T08:00:00Z",
        },
    },
    "reprice_quote": {"valid_for_days": 14},
}
IDS: Final = {"quotes": _ID}


def _build_rows(sources: Sequence[EstimateSource]) -> list[Mapping[str, Any]]:
    """Returns shipped rows as a fresh service shows them."""
    added = {"version": 1, "revision": 1, "origin": "shipped", "created_at": WRITTEN_AT}
    found: list[Mapping[str, Any]] = []
    for source in sources:
        resource = KINDS[source["kind"]]
        row = next(row for row in list_shipped_documents()[resource.name] if row["id"] == source["id"])
        found.append({"aliases": [], **row, **resource.derive(row), **added})
    return found


def build_example_quote(version: int, days: int) -> QuoteRow:
    """Returns a version of the example quote as a fresh service stores it."""
    body = UtilityBillQuoteRequest.model_validate_json(json.dumps(EXAMPLES["create_quote"]))
    asked = QuoteSubject(
        operation=body.operation,
        name=body.name,
        requests=project_questions("utility_bill", body.request),
        owns_devices=is_owning_devices(body.request),
        cost_center_id=str(body.cost_center_id),
        note=str(body.note),
    )
    frozen = build_quote(asked, build_shipped_snapshot(1), _build_rows)
    row = build_row(frozen, DEFAULT_TENANT, LOCAL.name, days=days, quote_id=_ID, version=version)
    row.created_at = datetime.fromisoformat(WRITTEN_AT)
    row.valid_until = row.created_at + timedelta(days=days)
    row.content_digest = compute_digest(row)
    return row


def build_answers() -> dict[str, Any]:
    """Returns the answers of a quote, and of its comparison under unchanged prices."""
    first = build_example_quote(1, DAYS_VALID)
    second = build_example_quote(2, EXAMPLES["reprice_quote"]["valid_for_days"])
    listed = {"items": [to_summary(first)], "next_page_token": None}
    return {
        "list_quotes": listed,
        "create_quote": to_detail(first),
        "get_quote": to_detail(first),
        "get_quote_versions": listed,
        "reprice_quote": to_detail(second),
        "compare_quote": compare_quotes(to_detail(first), to_detail(first)),
    }
