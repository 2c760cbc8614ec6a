"""The questions that the documentation, the README and the first start ask."""

from typing import Any, Final

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
