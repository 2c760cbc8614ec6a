"""Example of imported measurements."""

from typing import Any, Final

from service.app.examples.catalog import WRITTEN_AT
from service.estimates.service import ESTIMATES
from service.evidence.imports import service
from service.evidence.imports.schemas import EvidenceImportRequest
from service.evidence.snapshot import build_shipped_snapshot

_TABLE: Final = """metric,value,statistic,workload.concurrency,workload.input_tokens,workload.output_tokens
time_per_output_token_seconds,0.0092,mean,16,1024,256
time_to_first_token_seconds,0.081,p50,16,1024,256
"""
_ID: Final = "5d2c8e0f4b7a41c6923fe1a07b8c9d34"
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "import_evidence": {
        "format": "own_csv",
        "content": _TABLE,
        "model": {"source": "catalog", "id": "llama-3.1-8b"},
        "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1},
        "workload": {"kind": "inference", "weight_precision": "bf16", "engine": {"name": "vllm"}},
        "note": "Load test of the chat service",
    },
    "withdraw_evidence": {"reason": "The client was the bottleneck"},
}
IDS: Final = {"evidence": _ID}


def build_answers() -> dict[str, Any]:
    """Returns the answers of an import and of its withdrawal."""
    body = EvidenceImportRequest.model_validate(EXAMPLES["import_evidence"])
    estimators = {name: estimate.estimator for name, estimate in ESTIMATES.items()}
    outcome = service.read_evidence(body, build_shipped_snapshot(), estimators)
    shown = {
        "id": _ID,
        "state": "active",
        "calibration_id": "8f1e2d3c4b5a69788796a5b4c3d2e1f0",
        "created_at": WRITTEN_AT,
        **service.outcome_to_response(body, outcome),
    }
    listed = {name: value for name, value in shown.items() if name != "readings"}
    reason = EXAMPLES["withdraw_evidence"]["reason"]
    return {
        "list_evidence": {"items": [listed], "next_page_token": None},
        "import_evidence": shown,
        "get_evidence": shown,
        "withdraw_evidence": {**shown, "state": "withdrawn", "reason": reason, "withdrawn_at": WRITTEN_AT},
    }
