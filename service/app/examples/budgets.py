"""Examples of cost centres, budgets and actuals."""

from hashlib import sha256
from typing import Any, Final

from service.app.examples.approvals import build_change
from service.app.examples.catalog import WRITTEN_AT
from service.app.examples.quotes import IDS as QUOTE_IDS

_QUOTE_ID: Final = QUOTE_IDS["quotes"]
_BILL: Final = f"""BilledCost,EffectiveCost,BillingCurrency,BillingAccountId,BillingPeriodStart,\
BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceCategory,Tags
371.88,371.88,USD,123456789012,2027-01-01T00:00:00Z,2027-02-01T00:00:00Z,\
2027-01-04T08:00:00Z,2027-01-04T16:00:00Z,Usage,Compute,"{{""quote_id"": ""{_QUOTE_ID}""}}"
18.40,18.40,USD,123456789012,2027-01-01T00:00:00Z,2027-02-01T00:00:00Z,\
2027-01-01T00:00:00Z,2027-02-01T00:00:00Z,Usage,Storage,
"""
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "create_cost_center": {
        "id": "research",
        "name": "Research",
        "accounts": ["123456789012"],
        "tags": [{"key": "team", "value": "research"}],
    },
    "update_cost_center": {"name": "Research and applications"},
    "create_budget": {
        "id": "research-2027",
        "name": "Research 2027",
        "cost_center_id": "research",
        "starts_on": "2027-01-01",
        "ends_on": "2027-12-31",
        "amount": {"amount": "2000000", "currency_code": "USD"},
        "thresholds": [0.5, 0.8, 1.0],
        "enforcement": "block",
    },
    "update_budget": {"amount": {"amount": "2500000", "currency_code": "USD"}},
    "import_actuals": {"source": "cloud", "content": _BILL, "note": "January"},
    "withdraw_actuals": {"reason": "Not the final bill"},
}
_CENTER: Final[dict[str, Any]] = {**EXAMPLES["create_cost_center"], "version": 1, "created_at": WRITTEN_AT}


def _build_usd(amount: str) -> dict[str, str]:
    return {"amount": amount, "currency_code": "USD"}


_LISTED: Final[dict[str, Any]] = {
    **EXAMPLES["create_budget"],
    "amount": _build_usd("2000000.00"),
    "committed": _build_usd("1415571.28"),
    "spent": _build_usd("18.40"),
    "outstanding": _build_usd("1415571.28"),
    "remaining": _build_usd("584410.32"),
    "gaps": [],
    "version": 1,
    "created_at": WRITTEN_AT,
}
_COMMITMENT: Final[dict[str, Any]] = {
    "approval_id": "b9d03c5f8e7a4126a1c4e9f07d52b836",
    "quote_id": _QUOTE_ID,
    "quote_version": 1,
    "quoted": _build_usd("1415571.28"),
    "amount": _build_usd("1415571.28"),
    "rate": "1",
    "rate_on": "2026-11-22",
    "committed_at": WRITTEN_AT,
}
_BUDGET: Final = {**_LISTED, "commitments": [_COMMITMENT]}
_UNTOUCHED: Final = {
    "committed": _build_usd("0.00"),
    "spent": _build_usd("0.00"),
    "outstanding": _build_usd("0.00"),
    "remaining": _build_usd("2000000.00"),
    "commitments": [],
}
_RAISED: Final = {"amount": _build_usd("2500000.00"), "remaining": _build_usd("1084410.32"), "version": 2}
_PERIOD: Final = {
    "starts_at": "2027-01-01T00:00:00+00:00",
    "ends_at": "2027-02-01T00:00:00+00:00",
    "covered_until": "2027-02-01T00:00:00+00:00",
    "row_count": 2,
    "matched_row_count": 2,
    "billed": [_build_usd("390.28")],
    "effective": [_build_usd("390.28")],
}
_IMPORT: Final[dict[str, Any]] = {
    "id": "e7a1c05d9b3f48268d4c2b7f6a1e9053",
    "source": "cloud",
    "state": "active",
    "note": "January",
    "content_sha256": sha256(_BILL.encode()).hexdigest(),
    "row_count": 2,
    "matched_row_count": 2,
    "periods": [_PERIOD],
    "notes": [],
    "created_at": WRITTEN_AT,
}
_TOTAL: Final = {"amount": "365.10", "low": "322.41", "high": "419.87", "currency_code": "USD"}
_OF_QUOTE: Final = {
    "quote_id": _QUOTE_ID,
    "quote_version": 1,
    "state": "approved",
    "total": {**_TOTAL, "basis": "assumed"},
    "starts_at": "2027-01-04T08:00:00Z",
    "ends_at": "2027-01-04T15:17:52Z",
    "covered_share": 1.0,
    "expected": _TOTAL,
    "billed": _build_usd("371.88"),
    "effective": _build_usd("371.88"),
    "compared": _build_usd("371.88"),
    "left_out": [],
    "ratio": 1.018570254724733,
    "is_within_interval": True,
    "services": [
        {
            "service_category": "Compute",
            "expected": _build_usd("365.10"),
            "billed": _build_usd("371.88"),
            "effective": _build_usd("371.88"),
        }
    ],
    "import_ids": [_IMPORT["id"]],
    "gaps": [],
}
_ERRORS: Final = {
    "quote_count": 1,
    "median_absolute_error": 0.018570254724733,
    "bias": 0.018570254724733,
    "interval_coverage": 1.0,
}
_ACCURACY: Final = {
    **_ERRORS,
    "partly_billed_count": 0,
    "without_figure_count": 1,
    "without_figure": [{"code": "DURATION_UNKNOWN", "quote_count": 1}],
    "by_operation": [{"name": "utility-bill", **_ERRORS}],
    "by_accelerator": [{"name": "h100-sxm", **_ERRORS}],
}
ANSWERED: Final[dict[str, Any]] = {
    "list_cost_centers": {"items": [_CENTER], "next_page_token": None},
    "create_cost_center": _CENTER,
    "get_cost_center": _CENTER,
    "update_cost_center": {**_CENTER, **EXAMPLES["update_cost_center"], "version": 2},
    "list_budgets": {"items": [_LISTED], "next_page_token": None},
    "create_budget": {**_BUDGET, **_UNTOUCHED},
    "get_budget": _BUDGET,
    "update_budget": {**_BUDGET, **_RAISED},
    "update_budget 202": build_change(
        f"budgets/{_BUDGET['id']}",
        budget={
            "name": _BUDGET["name"],
            "thresholds": _BUDGET["thresholds"],
            "enforcement": _BUDGET["enforcement"],
            **EXAMPLES["update_budget"],
        },
    ),
    "delete_budget 202": build_change(f"budgets/{_BUDGET['id']}"),
    "list_actuals": {"items": [_IMPORT], "next_page_token": None},
    "import_actuals": _IMPORT,
    "get_actuals": _IMPORT,
    "withdraw_actuals": {
        **_IMPORT,
        **EXAMPLES["withdraw_actuals"],
        "state": "withdrawn",
        "withdrawn_at": WRITTEN_AT,
    },
    "get_quote_actuals": _OF_QUOTE,
    "get_actuals_accuracy": _ACCURACY,
}
IDS: Final = {"cost-centers": _CENTER["id"], "budgets": _BUDGET["id"], "actuals": _IMPORT["id"]}
