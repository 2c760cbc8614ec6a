"""The questions that the documentation, the README and the first start ask, and their answers."""

import json
from typing import Any, Final

from service import __version__
from service.benchmarks.conditions import conditions
from service.benchmarks.figures import measured
from service.catalog.grids.schemas import GridImport
from service.catalog.grids.service import read_table
from service.catalog.models.schemas import ModelImport
from service.catalog.models.service import read_config
from service.catalog.nouns import GRIDS, MODELS, NOUNS, TARIFFS
from service.catalog.offers import importing
from service.catalog.offers.schemas import ImportedOffers, OfferImport
from service.catalog.rows import Document, Noun
from service.catalog.service import Imported
from service.catalog.shipped import shipped_documents
from service.catalog.tariffs.schemas import RateImport
from service.catalog.tariffs.service import exported, read_rate
from service.catalog.token_prices import importing as token_price_importing
from service.catalog.token_prices.schemas import ImportedTokenPrices, TokenPriceImport
from service.estimates.comparison import compare_costs
from service.estimates.frontier import estimate_frontier
from service.estimates.power_cap import estimate_power_cap
from service.estimates.service import ESTIMATES
from service.estimates.shift import estimate_shift
from service.estimates.site_comparison import compare_sites
from service.estimates.tariff_bill import bill_tariff
from service.protocol.canonical import digest
from service.protocol.nodes import Inventory
from service.protocol.results import Result
from service.protocol.suites import shipped_suites
from service.questions.estimates import CostComparison
from service.questions.frontier import FrontierQuestion
from service.questions.tariff_bills import TariffBillQuestion
from service.questions.tariffs import TariffTerms
from service.questions.what_if import PowerCapQuestion, ShiftQuestion, SiteComparison
from service.snapshot.service import shipped_snapshot

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
_LOADED: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "llama-3.1-70b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h200-sxm"}, "accelerator_count": 8},
    "parallelism": {"tensor": 4},
    "workload": {
        "kind": "inference",
        "input_tokens": {"distribution": "lognormal", "mean_tokens": 2000.0, "p95_tokens": 6000.0},
        "output_tokens": {"distribution": "histogram", "tokens": [50, 300, 1000], "weights": [2.0, 5.0, 1.0]},
        "request_rate_per_second": 4.0,
        "arrivals": {"process": "poisson"},
        "prefix_cache_hit_rate": 0.2,
        "engine": {"name": "vllm", "version": "0.11.0", "max_num_seqs": 256},
        "service_levels": {"time_to_first_token_seconds": 1.0, "time_per_output_token_seconds": 0.05},
    },
}
"""Chats that arrive by chance, and how many of them are served within what their users put up with."""

_SEARCHED: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "llama-3.1-70b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h200-sxm"}, "accelerator_count": 8},
    "workload": {
        "kind": "inference",
        "input_tokens": 4000,
        "output_tokens": 500,
        "engine": {"name": "vllm"},
        "service_levels": {
            "time_to_first_token_seconds": 1.0,
            "time_per_output_token_seconds": 0.03,
        },
    },
    "search": {"weight_precisions": ["bf16", "fp8"], "requests_per_replica": [1, 8, 16, 24, 32, 48, 64]},
}
"""The best configuration for users who wait a second at most and read 33 tokens a second."""

_APART: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "llama-3.1-70b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h200-sxm"}, "accelerator_count": 16},
    "workload": {
        "kind": "inference",
        "weight_precision": "fp8",
        "input_tokens": 4000,
        "output_tokens": 500,
        "concurrency": 64,
        "engine": {"name": "vllm"},
        "disaggregated": {
            "prefill": {"parallelism": {"tensor": 4}, "replicas": 2},
            "decode": {"parallelism": {"tensor": 8}},
        },
    },
}
_PICTURED: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "sdxl-unet"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}},
    "workload": {
        "kind": "inference",
        "sample": {"height": 1024},
        "engine": {"name": "tensorrt"},
        "diffusion": {
            "steps": 30,
            "text_encoders": [{"model": {"source": "catalog", "id": "clip-vit-large-patch14"}}],
            "autoencoder": {
                "model": {"source": "catalog", "id": "stable-diffusion-vae"},
                "precision": "tf32",
            },
        },
        "batching": {"max_requests": 4},
        "request_rate_per_second": 0.5,
    },
}
_TRAINED: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}},
    "workload": {
        "kind": "training",
        "sequence_length": 4096,
        "optimizer": "paged_adamw_8bit",
        "recomputation": {"strategy": "full"},
        "adaptation": {"kind": "qlora", "rank": 16},
        "framework": {"name": "transformers"},
    },
}
_OPERATED: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 512},
    "workload": {
        "kind": "training",
        "sequence_length": 8192,
        "global_batch_size": 1024,
        "total_tokens": 1_000_000_000_000,
        "data_pipeline": {
            "stored_bytes_per_sample": 32_768.0,
            "storage_bandwidth_bytes_per_second": 5e9,
            "access_factor": 0.1,
            "preprocessing_seconds_per_sample": 0.02,
            "host_to_device_bandwidth_bytes_per_second": 52e9,
            "dataset_bytes": 4e12,
        },
        "checkpointing": {"storage_bandwidth_bytes_per_second": 20e9},
        "reliability": {},
        "learning_rate": {"base": 3e-4, "base_batch_size": 256},
    },
    "scaling": {"accelerator_counts": [128, 256, 512, 1024]},
}
_ALIGNED: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "cluster": {
        "accelerator": {"source": "catalog", "id": "h100-sxm"},
        "accelerator_count": 16,
        "host": {"memory_bandwidth_bytes_per_second": 614.4e9},
    },
    "workload": {
        "kind": "training",
        "sequence_length": 2048,
        "global_batch_size": 512,
        "total_steps": 500,
        "objective": "grpo",
        "rollout": {
            "prompt_tokens": 512,
            "longest_response_tokens": 4096,
            "samples_per_prompt": 16,
            "placement": "separate",
            "accelerator_count": 8,
        },
        "offload": {"optimizer": "cpu"},
    },
    "parallelism": {"data": 8, "sharding": "zero_3"},
}
_COST: Final[dict[str, Any]] = {key: value for key, value in REFERENCE_QUESTION.items() if key != "purchase"}
_PLANNED: Final[dict[str, Any]] = {
    **REFERENCE_QUESTION,
    "rental": {
        "price_per_device_hour": {"amount": "3", "currency_code": "USD"},
        "devices_per_instance": 8,
        "billing": {"increment_seconds": 3600.0},
    },
    "purchase": {
        "price_per_device": {"amount": "30000", "currency_code": "USD"},
        "hosts": {"price_per_host": {"amount": "50000", "currency_code": "USD"}},
        "network_per_device": {"amount": "3000", "currency_code": "USD"},
        "ownership": {
            "years": 4.0,
            "residual_share": 0.1,
            "interest_rate": 0.06,
            "maintenance_share": 0.05,
            "utilization": 0.7,
            "staff_per_year": {"amount": "500000", "currency_code": "USD"},
        },
    },
    "storage": {
        "price_per_gigabyte_month": {"amount": "0.023", "currency_code": "USD"},
        "dataset_bytes": 8e12,
    },
}
"""The same run in whole instances and hours, against a cluster with all that owning it costs."""

_SPOT: Final[dict[str, Any]] = {
    **_COST,
    "workload": {
        **REFERENCE_QUESTION["workload"],
        "checkpointing": {"stall_seconds": 20.0},
    },
    "rental": {
        "price_per_device_hour": {"amount": "1.6", "currency_code": "USD"},
        "devices_per_instance": 8,
        "spot": {"interruptions_per_hour": 0.002},
    },
}
_COMPARED: Final[dict[str, Any]] = {"baseline": _COST, "alternatives": [_SPOT]}
_BILL: Final[dict[str, Any]] = {**REFERENCE_QUESTION, "site": REFERENCE_SITE}
_TIMED: Final[dict[str, Any]] = {
    "currency_code": "USD",
    "time_zone": "America/Los_Angeles",
    "revisions": [
        {
            "effective_from": "2026-01-01",
            "charges": [
                {"kind": "fixed", "name": "customer", "price": "1200"},
                {
                    "kind": "energy",
                    "name": "energy",
                    "periods": [
                        {
                            "name": "peak",
                            "tiers": [{"price": "0.19"}],
                            "windows": [{"from_time": "16:00", "to_time": "21:00"}],
                        },
                        {
                            "name": "other",
                            "tiers": [{"price": "0.11"}],
                            "windows": [{"from_time": "21:00", "to_time": "16:00"}],
                        },
                    ],
                },
                {
                    "kind": "demand",
                    "name": "demand",
                    "periods": [{"name": "all", "tiers": [{"price": "18.50"}]}],
                    "billing_demand": {
                        "ratchets": [{"preceding_months": 2, "share_by_billing_month": [0.5] * 12}]
                    },
                },
            ],
        }
    ],
}
"""Prices by the time of day, and a demand that two months look back on."""
_METERED: Final[dict[str, Any]] = {
    "pue": 1.12,
    "time_zone": "America/Los_Angeles",
    "electricity": {"tariff": _TIMED},
    "baseline_load": {"kind": "constant", "kw": 2500.0},
    "carbon_intensity_kg_co2e_per_kwh": 0.429,
}
_TUNED: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 64},
    "workload": {
        "kind": "training",
        "sequence_length": 8192,
        "global_batch_size": 512,
        "total_tokens": 10_000_000_000,
    },
    "rental": {"price_per_device_hour": {"amount": "2.49", "currency_code": "USD"}},
}
"""A run of five hours."""
_METERED_BILL: Final[dict[str, Any]] = {
    **REFERENCE_QUESTION,
    "starts_at": "2026-11-20T08:00:00Z",
    "site": _METERED,
}
_SHIFTED: Final[dict[str, Any]] = {
    **_TUNED,
    "site": {
        **{name: value for name, value in _METERED.items() if not name.startswith("carbon")},
        "carbon_intensity_series": {
            "kind": "month_hours",
            "time_zone": "America/Los_Angeles",
            "kg_co2e_per_kwh": ([0.28] * 9 + [0.14] * 8 + [0.34] * 5 + [0.30] * 2) * 12,
        },
    },
    "window": {
        "earliest_start_at": "2026-11-20T08:00:00Z",
        "latest_start_at": "2026-11-22T08:00:00Z",
        "step_minutes": 60,
    },
}
_SITED: Final[dict[str, Any]] = {
    **_TUNED,
    "starts_at": "2026-11-20T08:00:00Z",
    "sites": [
        {"name": "California", "site": _METERED},
        {
            "name": "Virginia",
            "site": {
                "site_id": "google-cloud-us-east4",
                "electricity": {"price_per_kwh": {"amount": "0.09", "currency_code": "USD"}},
            },
        },
    ],
}
_CAPPED: Final[dict[str, Any]] = {
    **_TUNED,
    "starts_at": "2026-11-20T08:00:00Z",
    "site": _METERED,
    "power_caps_watts": [600.0, 500.0, 400.0],
}
_WRITTEN_AT: Final = "2026-11-20T12:00:00Z"
_SOURCES: Final = [{"pointers": [""], "citation": "Quotation of the provider", "as_of": "2026-11-20"}]

_TARIFF: Final[dict[str, Any]] = {
    "id": "example-large-power",
    "name": "Example Utility, large power by time of use",
    "utility": "Example Utility",
    "currency_code": "USD",
    "time_zone": "America/Los_Angeles",
    "holidays": ["2026-12-25"],
    "revisions": [
        {
            "effective_from": "2026-01-01",
            "charges": [
                {"kind": "fixed", "name": "customer", "price": "1200", "per": "month"},
                {
                    "kind": "energy",
                    "name": "energy",
                    "periods": [
                        {
                            "name": "peak",
                            "tiers": [{"price": "0.16"}],
                            "windows": [
                                {
                                    "weekdays": [1, 2, 3, 4, 5],
                                    "from_time": "16:00",
                                    "to_time": "21:00",
                                    "holidays": "excluded",
                                }
                            ],
                        },
                        {
                            "name": "off_peak",
                            "tiers": [{"price": "0.09"}],
                            "windows": [
                                {"weekdays": [1, 2, 3, 4, 5], "from_time": "00:00", "to_time": "16:00"},
                                {"weekdays": [1, 2, 3, 4, 5], "from_time": "21:00", "to_time": "24:00"},
                                {"weekdays": [6, 7], "holidays": "included"},
                            ],
                        },
                    ],
                },
                {
                    "kind": "demand",
                    "name": "demand",
                    "window_minutes": 15,
                    "periods": [{"name": "all_hours", "tiers": [{"price": "21.5", "unit": "kw"}]}],
                    "billing_demand": {
                        "ratchets": [{"share_by_peak_month": [0.5] * 12, "preceding_months": 11}]
                    },
                },
                {"kind": "percentage", "name": "state tax", "percent": "2.9", "tax": True},
            ],
        }
    ],
    "sources": _SOURCES,
}
"""Energy by time of use, demand with a ratchet, a customer charge and a tax."""

_TERMS: Final = {name: _TARIFF[name] for name in TariffTerms.model_fields if name in _TARIFF}
_RATE: Final[dict[str, Any]] = {
    "utility": "Example Utility",
    "name": "Large power by time of use",
    "startdate": 1767225600,
    "fixedchargefirstmeter": 1200,
    "fixedchargeunits": "$/month",
    "energyratestructure": [[{"rate": 0.09, "unit": "kWh"}], [{"rate": 0.16, "unit": "kWh"}]],
    "energyweekdayschedule": [[0] * 16 + [1] * 5 + [0] * 3] * 12,
    "energyweekendschedule": [[0] * 24] * 12,
    "flatdemandstructure": [[{"rate": 21.5}]],
    "flatdemandmonths": [0] * 12,
    "flatdemandunit": "kW",
    "x_power_quality_rider": 3,
}
"""A rate as the database writes it, with a key that nothing explains."""

_INVENTORY: Final[dict[str, Any]] = {
    "device": "cpu",
    "host": {
        "operating_system": "Linux",
        "kernel": "6.8.0",
        "architecture": "x86_64",
        "cpu_model": "Example 9000",
        "cpu_count": 8,
        "memory_bytes": 68_719_476_736,
    },
    "accelerators": [],
    "software": [{"name": "numpy", "version": "2.3.4"}],
    "gaps": [],
}
_INVENTORY_SHA256: Final = digest(Inventory.model_validate(_INVENTORY))
_RUN_ID: Final = "8c1f0a6b2d7e4c5f9a3b6d8e0f1a2b3c"
_NODE_ID: Final = "n5r8k1m4p7s0v3ya"
_SUITE: Final = shipped_suites()["cpu-first"]
_BENCHMARK: Final = _SUITE.benchmarks[0]
_RECORD: Final[dict[str, Any]] = {
    "result_id": "019aa6f2-7c31-7b5e-9d04-3f8a61c2e7b9",
    "run_id": _RUN_ID,
    "fencing_token": 1,
    "attempt": 1,
    "nonce": "6" * 32,
    "node_id": _NODE_ID,
    "boot_id_sha256": "7" * 64,
    "inventory_sha256": _INVENTORY_SHA256,
    "worker_version": __version__,
    "suite_id": _SUITE.id,
    "suite_version": _SUITE.version,
    "seed": 20261120,
    "repeat": 1,
    "benchmark": _BENCHMARK.model_dump(mode="json"),
    "device": "cpu",
    "started_at": "2026-11-20T12:00:00Z",
    "finished_at": "2026-11-20T12:00:02Z",
    "started_monotonic_seconds": 5000.0,
    "finished_monotonic_seconds": 5002.0,
    "status": "ok",
    "measurement": {
        "library": "numpy 2.4.6, OpenBLAS 0.3.30",
        "data": "normal(0, 1)",
        "timer": "host_clock",
        "warmup_seconds": 0.3,
        "warmup_iterations": 12,
        "samples_ns": [23_415_870, 23_390_114, 23_544_902],
        "stop_reason": "spread",
    },
}
"""One repeat of a product of matrices, in three samples."""

_WRITTEN: Final[dict[str, dict[str, Any]]] = {
    "estimate_memory": _SERVED,
    "estimate_memory_batch": {"requests": [_SERVED, _TRAINED]},
    "estimate_throughput": _SERVED,
    "estimate_throughput_batch": {"requests": [_SERVED, _LOADED, _APART, _PICTURED, _OPERATED, _ALIGNED]},
    "estimate_throughput_frontier": _SEARCHED,
    "estimate_cost": _COST,
    "estimate_cost_batch": {"requests": [_COST, _PLANNED]},
    "estimate_cost_comparison": _COMPARED,
    "estimate_cost_export": {
        **_PLANNED,
        "starts_at": "2026-12-01T00:00:00Z",
        "billing_account_id": "research",
    },
    "estimate_utility_bill": _BILL,
    "estimate_utility_bill_batch": {"requests": [_BILL, _METERED_BILL]},
    "estimate_utility_bill_export": _METERED_BILL,
    "estimate_utility_bill_shift": _SHIFTED,
    "estimate_utility_bill_comparison": _SITED,
    "estimate_utility_bill_power_cap": _CAPPED,
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
    "import_offers": {
        "format": "gpuhunt",
        "content": (
            "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size\n"
            "gpu-8x-h200,eu-north-1,28.4,128,1600,8,H200,141,False,\n"
            "gpu-8x-h200,eu-north-1,31.2,128,1600,8,H200,141,True,\n"
            "cpu-32,eu-north-1,0.79,32,128,0,,,False,\n"
        ),
        "provider": "example-cloud",
        "as_of": "2026-11-20",
        "source": {"citation": "Price list of Example Cloud, as sent on 20 November 2026"},
    },
    "create_token_price": {
        "id": "example-cloud-example-decoder",
        "name": "Example Cloud, example decoder",
        "provider": "example-cloud",
        "model_name": "example/decoder",
        "model_id": "llama-3.3-70b",
        "input_price_per_million_tokens": {"amount": "0.59", "currency_code": "USD"},
        "output_price_per_million_tokens": {"amount": "0.79", "currency_code": "USD"},
        "as_of": "2026-11-20",
        "sources": _SOURCES,
    },
    "update_token_price": {
        "output_price_per_million_tokens": {"amount": "0.75", "currency_code": "USD"},
        "as_of": "2026-11-21",
    },
    "import_token_prices": {
        "format": "litellm",
        "content": (
            '{"example/decoder-large": {"litellm_provider": "example", "mode": "chat", '
            '"input_cost_per_token": 5.9e-07, "output_cost_per_token": 7.9e-07}, '
            '"example/painter": {"litellm_provider": "example", "mode": "image_generation", '
            '"output_cost_per_image": 0.04}}'
        ),
        "as_of": "2026-11-20",
        "source": {"citation": "Example list of token prices, 20 November 2026"},
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
    "import_grid": {
        "id": "example-marginal",
        "name": "Example region, marginal",
        "code": "CA",
        "kind": "other",
        "format": "avert_csv",
        "content": "Month,Timestamp,CA\n1,0,1.11\n1,1,0.94\n",
        "time_zone": "America/Los_Angeles",
        "data_year": 2023,
        "sources": _SOURCES,
    },
    "create_tariff": _TARIFF,
    "update_tariff": {"holidays": ["2026-12-25", "2027-01-01"]},
    "import_tariff": {
        "format": "urdb_json",
        "id": "example-imported-rate",
        "name": "Example, imported",
        "time_zone": "America/Los_Angeles",
        "urdb": _RATE,
        "excluded_keys": ["x_power_quality_rider"],
        "sources": _SOURCES,
    },
    "bill_tariff": {
        "tariff": {"source": "terms", "terms": _TERMS},
        "load": {
            "kind": "rule",
            "starts_at": "2026-11-01T00:00",
            "ends_at": "2027-01-01T00:00",
            "interval_minutes": 15,
            "base_kw": 400.0,
            "add": [{"kw": 600.0, "months": [11], "from_time": "18:00", "to_time": "06:00"}],
        },
        "monthly_peaks": [{"month": "2026-10", "peak_kw": 1200.0}],
    },
    "create_exchange_rate": {
        "id": "example-eur-usd-2026-11-20",
        "name": "Example rate, euro in US dollars",
        "from_currency_code": "EUR",
        "to_currency_code": "USD",
        "rate": "1.1512",
        "as_of": "2026-11-20",
        "sources": _SOURCES,
    },
    "update_exchange_rate": {"rate": "1.1521"},
    "create_site": {
        "id": "example-site",
        "name": "Example site",
        "pue": 1.2,
        "grid_id": "egrid-us-rfce",
        "time_zone": "America/New_York",
        "sources": _SOURCES,
    },
    "update_site": {"pue": 1.18},
    "create_api_key": {"name": "Capacity dashboard", "scopes": ["estimates:read", "models:read"]},
    "rotate_api_key": {"overlap_seconds": 86400},
    "create_tenant": {"id": "research", "name": "Research"},
    "create_benchmark_run": {"suite_id": "cpu-first", "note": "Before the new memory"},
    "report_benchmark_result": _RECORD,
    "complete_lease": {
        "fencing_token": 1,
        "outcome": "completed",
        "results": [{"result_id": _RECORD["result_id"], "content_sha256": "5" * 64}],
    },
    "create_enrolment_token": {"lifetime_seconds": 900, "node_name": "rack-7"},
    "enrol_node": {
        "token": "ironlawenrol_t4b7n2w9q5z1x8ce_" + "0" * 49,  # no token: its checksum is wrong
        "installation_id": "6f2d0c9b8a7e4f13a5c6d7e8f9012345",
        "name": "rack-7",
        "device": "cpu",
        "worker_version": "1.0.0",
    },
    "put_node_inventory": _INVENTORY,
    "heartbeat_node": {
        "boot_id_sha256": "b" * 64,
        "worker_version": "1.0.0",
        "inventory_sha256": _INVENTORY_SHA256,
        "activity": "idle",
        "spool": {"waiting_count": 0, "waiting_bytes": 0, "free_bytes": 53_687_091_200},
    },
    "claim_lease": {
        "request_id": "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "wait_seconds": 30.0,
        "inventory_sha256": _INVENTORY_SHA256,
    },
    "renew_lease": {
        "fencing_token": 1,
        "progress": {"steps": [{"benchmark": "gemm.fp64", "state": "running", "repeat": 1}]},
    },
}
_COPIED = ("offer", "token_price", "accelerator", "link", "model", "tariff", "exchange_rate", "grid", "site")
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    **_WRITTEN,
    **{f"copy_{noun}": {"id": f"{_WRITTEN[f'create_{noun}']['id']}-copy"} for noun in _COPIED},
}
"""A request body for each operation that takes one."""


def answers() -> dict[str, Any]:
    """What a fresh service answers to each example, by operation."""
    return _estimates() | _rows() | _TRUST | _NODES | _benchmarks()


def _estimates() -> dict[str, Any]:
    catalog = shipped_snapshot(1)
    answered: dict[str, Any] = {}
    for name, (question, estimate) in ESTIMATES.items():
        operation = f"estimate_{name.replace('-', '_')}"
        asked = [EXAMPLES[operation], *EXAMPLES[f"{operation}_batch"]["requests"]]
        answer, *batch = (estimate(question.model_validate_json(json.dumps(one)), catalog) for one in asked)
        answered |= {operation: answer, f"{operation}_batch": {"results": batch}}
    searched = FrontierQuestion.model_validate_json(json.dumps(_SEARCHED))
    compared = CostComparison.model_validate_json(json.dumps(_COMPARED))
    charged = TariffBillQuestion.model_validate_json(json.dumps(EXAMPLES["bill_tariff"]))
    shifted = ShiftQuestion.model_validate_json(json.dumps(_SHIFTED))
    sited = SiteComparison.model_validate_json(json.dumps(_SITED))
    held = PowerCapQuestion.model_validate_json(json.dumps(_CAPPED))
    return answered | {
        "estimate_utility_bill_shift": estimate_shift(shifted, catalog),
        "estimate_utility_bill_comparison": compare_sites(sited, catalog),
        "estimate_utility_bill_power_cap": estimate_power_cap(held, catalog),
        "estimate_throughput_frontier": estimate_frontier(searched, catalog),
        "estimate_cost_comparison": compare_costs(compared, catalog),
        "bill_tariff": bill_tariff(charged, catalog),
    }


def _rows() -> dict[str, Any]:
    answered: dict[str, Any] = {}
    for noun in NOUNS.values():
        singular = noun.singular
        sent = EXAMPLES[f"create_{singular}"]
        created = _row(noun, _complete(noun, sent), version=1)
        changed = _complete(noun, {**sent, **EXAMPLES[f"update_{singular}"]})
        copied = _complete(noun, {**sent, **EXAMPLES[f"copy_{singular}"], "aliases": []})
        answered |= {
            f"list_{noun.name}": {"items": [created], "next_page_token": None},
            f"create_{singular}": created,
            f"get_{singular}": created,
            f"update_{singular}": _row(noun, changed, version=2),
            f"copy_{singular}": _row(noun, copied, version=1),
        }
    imported = read_config(ModelImport.model_validate(EXAMPLES["import_model"]))
    table = read_table(GridImport.model_validate(EXAMPLES["import_grid"]))
    rate = read_rate(RateImport.model_validate(EXAMPLES["import_tariff"]))
    return answered | {
        "import_model": imported.answer(_row(MODELS, imported.document, version=1)),
        "import_grid": table.answer(_row(GRIDS, table.document, version=1)),
        "import_offers": _imported_offers(),
        "import_token_prices": _imported_token_prices(),
        "import_tariff": rate.answer(_row(TARIFFS, rate.document, version=1)),
        "export_tariff": exported(answered["create_tariff"], ""),
    }


def _imported_offers() -> ImportedOffers:
    """What becomes of the rows of a price list in a catalog that has none of them."""
    body = OfferImport.model_validate(EXAMPLES["import_offers"])
    listed = importing.read_list(body, body.content, importing.by_name(shipped_documents()["accelerators"]))
    created = [offer.id for offer in listed.offers]
    return importing.answer(listed, Imported(created, [], [], [], [], revision=2))


def _imported_token_prices() -> ImportedTokenPrices:
    """What becomes of the models of a list of token prices in a catalog that has none of them."""
    body = TokenPriceImport.model_validate(EXAMPLES["import_token_prices"])
    listed = token_price_importing.read_list(body, {})
    created = [price.id for price in listed.prices]
    return token_price_importing.answer(listed, Imported(created, [], [], [], [], revision=2))


_KEY: Final[dict[str, Any]] = {
    **EXAMPLES["create_api_key"],
    "id": "k3q8v1x7m2c9d4ha",
    "tenant_id": "default",
    "version": 1,
    "created_at": _WRITTEN_AT,
}
_ROTATING: Final = {**_KEY, "version": 2, "rotation_ends_at": "2026-11-21T12:00:00Z"}
_SECRET: Final = "ironlaw_k3q8v1x7m2c9d4ha_" + "0" * 49  # no key: its checksum is wrong
_JOB: Final[dict[str, Any]] = {
    "id": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "kind": "plans.search",
    "state": "waiting",
    "attempt": 0,
    "cancel_requested": False,
    "progress": {"scored": 120000},
    "result": {},
    "created_at": _WRITTEN_AT,
    "due_at": _WRITTEN_AT,
}
_TENANT: Final = {**EXAMPLES["create_tenant"], "version": 1, "created_at": _WRITTEN_AT}
_EVENT: Final = {
    "sequence": 2,
    "occurred_at": _WRITTEN_AT,
    "operation": "create_tenant",
    "resource": "tenants/research",
    "subject_kind": "local",
    "subject_id": "local",
    "request_id": "5c1a9e7702b4d3f8",
    "after_digest": "4" * 64,
    "previous_hash": "a" * 64,
    "hash": "b" * 64,
}
_TOKEN: Final[dict[str, Any]] = {
    "id": "t4b7n2w9q5z1x8ce",
    "node_name": "rack-7",
    "created_at": _WRITTEN_AT,
    "expires_at": "2026-11-20T12:15:00Z",
}
_NODE: Final[dict[str, Any]] = {
    "id": _NODE_ID,
    "name": "rack-7",
    "device": "cpu",
    "state": "active",
    "reachable": True,
    "last_seen_at": _WRITTEN_AT,
    "activity": "idle",
    "spool": {**EXAMPLES["heartbeat_node"]["spool"], "rejected_count": 0, "is_full": False},
    "worker_version": "1.0.0",
    "inventory_sha256": _INVENTORY_SHA256,
    "rotation_requested": False,
    "version": 2,
    "created_at": _WRITTEN_AT,
}
_CREDENTIAL: Final = "ironlawnode_n5r8k1m4p7s0v3ya_" + "0" * 49  # no credential: its checksum is wrong
_NODES: Final[dict[str, Any]] = {
    "list_enrolment_tokens": {"items": [_TOKEN], "next_page_token": None},
    "create_enrolment_token": {"enrolment_token": _TOKEN, "token": EXAMPLES["enrol_node"]["token"]},
    "get_enrolment_token": _TOKEN,
    "enrol_node": {"node_id": _NODE["id"], "credential": _CREDENTIAL, "server_time": _WRITTEN_AT},
    "list_nodes": {"items": [_NODE], "next_page_token": None},
    "get_node": {**_NODE, "inventory": _INVENTORY},
    "drain_node": {**_NODE, "state": "draining", "version": 3},
    "resume_node": {**_NODE, "version": 4},
    "request_node_rotation": {**_NODE, "rotation_requested": True, "version": 5},
    "quarantine_node": {**_NODE, "state": "quarantined", "reason": "OPERATOR", "version": 6},
    "revoke_node": {**_NODE, "state": "revoked", "version": 7, "revoked_at": _WRITTEN_AT},
    "rotate_node_credential": {"credential": _CREDENTIAL, "generation": 2},
    "put_node_inventory": {"inventory_sha256": _INVENTORY_SHA256},
    "heartbeat_node": {
        "state": "active",
        "rotate": False,
        "send_inventory": False,
        "missing": [],
        "heartbeat_seconds": 30.0,
        "server_time": _WRITTEN_AT,
    },
    "claim_lease": {
        "id": _RUN_ID,
        "fencing_token": 1,
        "nonce": "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
        "attempt": 1,
        "lease_seconds": 90.0,
        "renew_seconds": 30.0,
        "runtime_seconds": 540.0,
        "seed": 7,
        "suite": {
            "id": "cpu-example",
            "version": 1,
            "title": "One matrix product",
            "device": "cpu",
            "benchmarks": [
                {
                    "name": "gemm.fp64",
                    "work": {"kind": "gemm", "dtype": "fp64", "m": 2048, "n": 2048, "k": 2048},
                    "metric": "flops_per_second",
                    "direction": "higher",
                    "formula": "2 m n k",
                }
            ],
        },
        "server_time": _WRITTEN_AT,
    },
    "renew_lease": {"lease_seconds": 90.0, "cancel": False},
}
_TRUST: Final[dict[str, Any]] = {
    "list_api_keys": {"items": [_KEY], "next_page_token": None},
    "create_api_key": {"key": _KEY, "secret": _SECRET},
    "get_api_key": _KEY,
    "rotate_api_key": {"key": _ROTATING, "secret": _SECRET},
    "retire_api_key": {**_KEY, "version": 3},
    "list_tenants": {"items": [_TENANT], "next_page_token": None},
    "create_tenant": _TENANT,
    "get_tenant": _TENANT,
    "disable_tenant": {**_TENANT, "version": 2, "disabled_at": _WRITTEN_AT},
    "enable_tenant": {**_TENANT, "version": 3},
    "list_background_jobs": {"items": [_JOB], "next_page_token": None},
    "get_background_job": _JOB,
    "cancel_background_job": {
        **{name: value for name, value in _JOB.items() if name != "due_at"},
        "state": "cancelled",
        "cancel_requested": True,
        "finished_at": _WRITTEN_AT,
    },
    "retry_background_job": _JOB,
    "list_audit_events": {"items": [_EVENT], "next_page_token": None},
    "verify_audit_events": {"valid": True, "events": 2, "head_hash": "b" * 64},
}


def _benchmarks() -> dict[str, Any]:
    run = {
        **EXAMPLES["create_benchmark_run"],
        "id": _RUN_ID,
        "suite_version": _SUITE.version,
        "device": _SUITE.device,
        "seed": _RECORD["seed"],
        "state": "waiting",
        "attempt": 0,
        "cancel_requested": False,
        "progress": [],
        "created_at": _WRITTEN_AT,
    }
    ended = {"cancel_requested": True, "state": "cancelled", "finished_at": _WRITTEN_AT}
    suite = _SUITE.model_dump(mode="json")
    suite["benchmarks"] = suite["benchmarks"][:1]
    result = _result()
    figures = {name: result[name] for name in ("benchmark", "metric", "direction")}
    value = dict.fromkeys(("value", "lowest", "highest"), result["figure"])
    compared = {
        "run_id": _RUN_ID,
        "node_id": _NODE_ID,
        "suite_version": _SUITE.version,
        "received_at": _WRITTEN_AT,
        **value,
        "repeats": 1,
        **{f"sample_{name}": result["summary"][name] for name in ("minimum", "median", "q3")},
        "has_clocks": False,
        "verdict": "same",
        "relative_change": 0.0,
    }
    shared = {name: result[name] for name in ("work_sha256", "hardware", "hardware_sha256")}
    return {
        "list_benchmark_suites": {"items": [suite], "next_page_token": None},
        "get_benchmark_suite": suite,
        "list_benchmark_runs": {"items": [run], "next_page_token": None},
        "create_benchmark_run": run,
        "get_benchmark_run": {**run, "figures": [{**figures, **value, "repeats": 1}]},
        "cancel_benchmark_run": {**run, **ended},
        "list_benchmark_results": {"items": [result], "next_page_token": None},
        "get_benchmark_result": {**result, "record": _RECORD},
        "compare_benchmark_results": {**figures, **shared, "baseline": compared, "runs": [compared]},
        "report_benchmark_result": {
            "result_id": _RECORD["result_id"],
            "content_sha256": "5" * 64,
            "lease": "current",
        },
        "complete_lease": {"state": "completed"},
    }


def _result() -> dict[str, Any]:
    record = Result.model_validate_json(json.dumps(_RECORD))
    found = measured(record)
    assert found is not None  # noqa: S101
    copied = (
        "run_id",
        "attempt",
        "fencing_token",
        "repeat",
        "node_id",
        "suite_id",
        "suite_version",
        "device",
    )
    return {
        "id": _RECORD["result_id"],
        "content_sha256": "5" * 64,
        **{name: _RECORD[name] for name in (*copied, "status", "started_at", "finished_at")},
        "benchmark": _BENCHMARK.name,
        "lease": "current",
        "is_counted": True,
        "hardware": _INVENTORY["host"]["cpu_model"],
        "hardware_sha256": "9" * 64,
        "work_sha256": digest(_BENCHMARK.work),
        "metric": _BENCHMARK.metric,
        "direction": _BENCHMARK.direction,
        "figure": found.figure,
        "summary": found.summary._asdict(),
        "conditions": conditions(record),
        "received_at": _WRITTEN_AT,
    }


EXAMPLE_IDS: Final[dict[str, str]] = {
    **{noun.path: EXAMPLES[f"create_{noun.singular}"]["id"] for noun in NOUNS.values()},
    "api-keys": _KEY["id"],
    "tenants": _TENANT["id"],
    "background-jobs": _JOB["id"],
    "benchmark-suites": _SUITE.id,
    "benchmark-runs": _RUN_ID,
    "benchmark-results": _RECORD["result_id"],
    "enrolment-tokens": _TOKEN["id"],
    "nodes": _NODE["id"],
    "leases": _RUN_ID,
}
"""An id for the path of each collection."""


def _complete(noun: Noun, sent: Document) -> Document:
    """A row as sent, with the members that were left out at their defaults."""
    return noun.created.model_validate_json(json.dumps(sent)).model_dump(mode="json")


def _row(noun: Noun, document: Document, *, version: int) -> Document:
    added = {"version": version, "revision": version + 1, "origin": "tenant", "created_at": _WRITTEN_AT}
    return {**document, **noun.derived(document), **added}
