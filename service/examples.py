"""The questions that the documentation, the README and the first start ask, and their answers."""

import json
from typing import Any, Final

from service.catalog.models.schemas import ModelImport
from service.catalog.models.service import read_config
from service.catalog.nouns import MODELS, NOUNS
from service.catalog.rows import Document, Noun
from service.catalog.shipped import shipped_documents
from service.estimates.service import ESTIMATES
from service.snapshot.service import build_snapshot

REFERENCE_QUESTION: Final[dict[str, Any]] = {
    "model": {"source": "parameter_count", "parameter_count": 70_000_000_000},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1000},
    "workload": {"kind": "training", "total_tokens": 2_000_000_000_000, "sequence_length": 4096},
    "efficiency": {"source": "assumed", "utilization": 0.5},
    "rental": {"price_per_device_hour": {"amount": "3", "currency_code": "USD"}},
    "purchase": {"price_per_device": {"amount": "30000", "currency_code": "USD"}},
}
"""A 70-billion-parameter model on two trillion tokens: rent or buy a thousand H100?"""

REFERENCE_SITE: Final[dict[str, Any]] = {
    "pue": 1.12,
    "electricity": {"price_per_kwh": {"amount": "0.12", "currency_code": "USD"}},
    "carbon_intensity_kg_co2e_per_kwh": 0.429,
}

_SERVED: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}},
    "workload": {"kind": "inference", "input_tokens": 2000, "output_tokens": 500, "concurrency": 16},
}
_COST: Final[dict[str, Any]] = {key: value for key, value in REFERENCE_QUESTION.items() if key != "purchase"}
_BILL: Final[dict[str, Any]] = {**REFERENCE_QUESTION, "site": REFERENCE_SITE}
_WRITTEN_AT: Final = "2026-11-20T12:00:00Z"
_SOURCES: Final = [{"pointers": [""], "citation": "Quotation of the provider", "as_of": "2026-11-20"}]

EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "estimate_memory": _SERVED,
    "estimate_memory_batch": {"requests": [_SERVED]},
    "estimate_throughput": _SERVED,
    "estimate_throughput_batch": {"requests": [_SERVED]},
    "estimate_cost": _COST,
    "estimate_cost_batch": {"requests": [_COST]},
    "estimate_utility_bill": _BILL,
    "estimate_utility_bill_batch": {"requests": [_BILL]},
    "create_offer": {
        "id": "example-cloud-h100-8x",
        "name": "Example Cloud, 8 x H100",
        "provider": "example-cloud",
        "region": "eu-north-1",
        "accelerator_id": "h100-sxm",
        "accelerator_count": 8,
        "purchase_option": "reserved",
        "price_per_instance_hour": {"amount": "19.92", "currency_code": "USD"},
        "as_of": "2026-11-20",
        "sources": _SOURCES,
    },
    "update_offer": {
        "price_per_instance_hour": {"amount": "18.80", "currency_code": "USD"},
        "as_of": "2026-11-21",
    },
    "create_accelerator": {
        "id": "example-96gb",
        "name": "Example 96GB",
        "vendor": "example",
        "memory_label_gb": 96.0,
        "memory_bandwidth_bytes_per_second": 4e12,
        "peak_flops_per_second": {"bf16": 5e14},
        "power_limit_watts": 600.0,
        "sources": _SOURCES,
    },
    "update_accelerator": {"power_limit_watts": 550.0},
    "create_link": {
        "id": "example-fabric",
        "name": "Example fabric",
        "kind": "ethernet",
        "scope": "inter_node",
        "bandwidth_bytes_per_second": 5e10,
        "sources": _SOURCES,
    },
    "update_link": {"latency_seconds": 5e-6},
    "create_model": {
        "id": "example-decoder",
        "name": "Example decoder",
        "architecture": {
            "embeddings": {"size": 1024, "vocabulary_size": 32000},
            "layers": [
                {
                    "kind": "block",
                    "count": 24,
                    "layers": [
                        {"kind": "normalization", "size": 1024},
                        {
                            "kind": "attention",
                            "hidden_size": 1024,
                            "query_heads": 16,
                            "key_value_heads": 4,
                            "head_size": 64,
                        },
                        {"kind": "normalization", "size": 1024},
                        {"kind": "feed_forward", "hidden_size": 1024, "inner_size": 2816, "gated": True},
                    ],
                },
                {"kind": "normalization", "size": 1024},
            ],
            "heads": [{"kind": "language_model", "input_size": 1024, "output_size": 32000}],
        },
        "context_tokens": 8192,
        "sources": _SOURCES,
    },
    "update_model": {"context_tokens": 16384},
    "import_model": {
        "id": "example-imported",
        "name": "Example, imported",
        "config": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "num_hidden_layers": 22,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "vocab_size": 32000,
            "max_position_embeddings": 2048,
        },
        "sources": _SOURCES,
    },
    "create_grid": {
        "id": "example-grid",
        "name": "Example grid",
        "code": "EX",
        "kind": "other",
        "carbon_intensity_kg_co2e_per_kwh": 0.2,
        "accounting": "generation",
        "sources": _SOURCES,
    },
    "update_grid": {"carbon_intensity_kg_co2e_per_kwh": 0.19},
    "create_site": {
        "id": "example-site",
        "name": "Example site",
        "pue": 1.2,
        "grid_id": "egrid-us-rfce",
        "sources": _SOURCES,
    },
    "update_site": {"pue": 1.18},
}
"""A request body for each operation that takes one."""


def answers() -> dict[str, Any]:
    """What a fresh service answers to each example, by operation."""
    return _estimates() | _rows()


def _estimates() -> dict[str, Any]:
    catalog = build_snapshot(1, shipped_documents())
    answered: dict[str, Any] = {}
    for name, (question, estimate) in ESTIMATES.items():
        operation = f"estimate_{name.replace('-', '_')}"
        answer = estimate(question.model_validate_json(json.dumps(EXAMPLES[operation])), catalog)
        answered |= {operation: answer, f"{operation}_batch": {"results": [answer]}}
    return answered


def _rows() -> dict[str, Any]:
    answered: dict[str, Any] = {}
    for noun in NOUNS.values():
        singular = noun.name.removesuffix("s")
        sent = EXAMPLES[f"create_{singular}"]
        created = _row(noun, _complete(noun, sent), version=1)
        changed = _complete(noun, {**sent, **EXAMPLES[f"update_{singular}"]})
        answered |= {
            f"list_{noun.name}": {"items": [created], "next_page_token": None},
            f"create_{singular}": created,
            f"get_{singular}": created,
            f"update_{singular}": _row(noun, changed, version=2),
        }
    imported = read_config(ModelImport.model_validate(EXAMPLES["import_model"]))
    return answered | {"import_model": imported.answer(_row(MODELS, imported.document, version=1))}


def _complete(noun: Noun, sent: Document) -> Document:
    """A row as sent, with the members that were left out at their defaults."""
    return noun.created.model_validate_json(json.dumps(sent)).model_dump(mode="json")


def _row(noun: Noun, document: Document, *, version: int) -> Document:
    added = {"version": version, "revision": version + 1, "origin": "user", "created_at": _WRITTEN_AT}
    return {**document, **noun.derived(document), **added}
