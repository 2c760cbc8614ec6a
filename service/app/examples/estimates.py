"""Example estimates, as requests and as answers."""

import json
from typing import Any, Final

from service.app.examples.catalog import TERMS
from service.app.reference_question import REFERENCE_QUESTION, REFERENCE_SITE
from service.estimates.comparison import compare_costs
from service.estimates.frontier import estimate_frontier
from service.estimates.power_cap import estimate_power_cap
from service.estimates.service import ESTIMATES
from service.estimates.shift import estimate_shift
from service.estimates.site_comparison import compare_sites
from service.estimates.summary import estimate_summary
from service.estimates.tariff_bill import bill_tariff
from service.evidence.snapshot import build_shipped_snapshot
from service.schemas.estimates import CostComparisonRequest
from service.schemas.frontier import ThroughputFrontierRequest
from service.schemas.summary import SummaryRequest
from service.schemas.tariff_bills import TariffBillRequest
from service.schemas.what_if import PowerCapEstimateRequest, SiteComparisonRequest, StartShiftEstimateRequest

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
"""A chat service with random arrivals, and the share of its requests within the service levels."""
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
"""Configurations for users who wait a second at most and read 33 tokens a second."""
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
"""The same run in whole instances and hours, and on a cluster with all costs of ownership."""
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
"""Prices by the time of day, and a demand charge that looks back two months."""
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
_SUMMED: Final[dict[str, Any]] = {
    "model": "Qwen/Qwen3-32B",
    "hardware": "2xl40s",
    "goal": {"kind": "serve", "context_tokens": 32768},
}
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "estimate_summary": _SUMMED,
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
    "bill_tariff": {
        "tariff": {"source": "terms", "terms": TERMS},
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
}

_PUBLISHED: Final[dict[str, Any]] = {
    "source": "huggingface_config",
    "config": {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": False,
    },
}
"""A model by its config.json."""
_TRAINED_FULLY: Final[dict[str, Any]] = {name: _TUNED[name] for name in ("model", "workload", "cluster")}
_COUNTED: Final[dict[str, Any]] = {"source": "parameter_count", "parameter_count": 8_000_000_000}
_MONTH: Final[dict[str, Any]] = {
    **_SERVED,
    "workload": {**_SERVED["workload"], "horizon": {"duration_seconds": 2_628_000.0}},
    "rental": _TUNED["rental"],
}
"""A served model for a month."""
_BILLED_MONTH: Final[dict[str, Any]] = {**_MONTH, "site": REFERENCE_SITE}
_CAPPED_FLAT: Final[dict[str, Any]] = {**_TUNED, "site": REFERENCE_SITE, "power_caps_watts": [500.0]}
NAMED: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "estimate_summary": {
        "serving": {"summary": "Serve a model with its whole context", "value": _SUMMED},
        "training": {
            "summary": "Train a model on some tokens",
            "value": {
                "model": "meta-llama/Llama-3.1-8B",
                "hardware": "64xh100-sxm",
                "goal": {"kind": "train", "total_tokens": 100_000_000_000},
            },
        },
        "adapters": {
            "summary": "Fine-tune low-rank adapters of a quantised model",
            "value": {
                "model": "llama-3.1-8b",
                "hardware": "h100-sxm",
                "goal": {"kind": "train", "adaptation": "qlora", "total_tokens": 50_000_000},
            },
        },
    },
    "estimate_memory": {
        "serving": {"summary": "Serve a model of the catalog", "value": _SERVED},
        "fine_tuning": {"summary": "Fine-tune low-rank adapters on one device", "value": _TRAINED},
        "published_config": {
            "summary": "Serve a model by its Hugging Face config.json",
            "value": {**_SERVED, "model": _PUBLISHED},
        },
        "parameter_count": {
            "summary": "Train a model of which only the size is known",
            "value": {
                "model": _COUNTED,
                "workload": {"kind": "training", "sequence_length": 4096},
                "cluster": _TUNED["cluster"],
            },
        },
    },
    "estimate_memory_batch": {
        "serving_and_training": {
            "summary": "Serve a model and fine-tune it",
            "value": {"requests": [_SERVED, _TRAINED]},
        },
        "lengths": {
            "summary": "Compare two lengths of prompts",
            "value": {
                "requests": [
                    {**_SERVED, "workload": {**_SERVED["workload"], "input_tokens": tokens}}
                    for tokens in (2000, 32_000)
                ]
            },
        },
    },
    "estimate_throughput": {
        "serving": {"summary": "Serve a model of the catalog", "value": _SERVED},
        "training": {"summary": "Train a model", "value": _TRAINED_FULLY},
        "random_arrivals": {"summary": "Serve a chat whose requests arrive at random", "value": _LOADED},
        "disaggregated": {"summary": "Serve with prefill and decode apart", "value": _APART},
        "pictures": {"summary": "Generate pictures by diffusion", "value": _PICTURED},
        "reinforcement_learning": {"summary": "Train by reinforcement learning", "value": _ALIGNED},
        "large_run": {
            "summary": "Train with storage, checkpoints and failures, at several sizes",
            "value": _OPERATED,
        },
    },
    "estimate_throughput_batch": {
        "every_kind": {
            "summary": "Serve and train in six ways",
            "value": {"requests": [_SERVED, _LOADED, _APART, _PICTURED, _OPERATED, _ALIGNED]},
        },
        "sizes": {
            "summary": "Compare two numbers of devices",
            "value": {
                "requests": [
                    {
                        "model": _TUNED["model"],
                        "workload": _TUNED["workload"],
                        "cluster": {**_TUNED["cluster"], "accelerator_count": count},
                    }
                    for count in (32, 64)
                ]
            },
        },
    },
    "estimate_throughput_frontier": {
        "service_levels": {"summary": "Search within limits of latency", "value": _SEARCHED},
        "published_config": {
            "summary": "Search for a model by its Hugging Face config.json",
            "value": {
                "model": _PUBLISHED,
                "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 2},
                "workload": {"kind": "inference", "input_tokens": 2000, "output_tokens": 500},
                "search": {"requests_per_replica": [1, 8, 32]},
            },
        },
    },
    "estimate_cost": {
        "rented": {"summary": "Train on rented devices", "value": _COST},
        "owned": {"summary": "Train on a cluster with all costs of ownership", "value": _PLANNED},
        "serving": {"summary": "Serve a model for a month", "value": _MONTH},
        "spot": {"summary": "Train on devices that may be taken away", "value": _SPOT},
    },
    "estimate_cost_batch": {
        "rented_and_owned": {
            "summary": "Rent or own the same devices",
            "value": {"requests": [_COST, _PLANNED]},
        },
        "training_and_serving": {"summary": "Train and serve", "value": {"requests": [_TUNED, _MONTH]}},
    },
    "estimate_cost_comparison": {
        "spot": {"summary": "On-demand devices or spot devices", "value": _COMPARED},
        "accelerators": {
            "summary": "Two kinds of accelerators",
            "value": {
                "baseline": _TUNED,
                "alternatives": [
                    {
                        **_TUNED,
                        "cluster": {
                            "accelerator": {"source": "catalog", "id": "h200-sxm"},
                            "accelerator_count": 32,
                        },
                        "rental": {"price_per_device_hour": {"amount": "3.49", "currency_code": "USD"}},
                    }
                ],
            },
        },
    },
    "estimate_cost_export": {
        "training": {
            "summary": "Charges of a training run",
            "value": EXAMPLES["estimate_cost_export"],
        },
        "serving": {
            "summary": "Charges of a served model for a month",
            "value": {**_MONTH, "starts_at": "2026-12-01T00:00:00Z", "billing_account_id": "products"},
        },
    },
    "estimate_utility_bill": {
        "flat_price": {"summary": "Rent or buy, at one price of electricity", "value": _BILL},
        "tariff": {"summary": "Train under a tariff by time of use", "value": _METERED_BILL},
        "serving": {"summary": "Serve a model for a month", "value": _BILLED_MONTH},
        "reference_question": {
            "summary": "Rent or buy, without a building",
            "value": REFERENCE_QUESTION,
        },
    },
    "estimate_utility_bill_batch": {
        "prices": {
            "summary": "One price, and a tariff by time of use",
            "value": {"requests": [_BILL, _METERED_BILL]},
        },
        "training_and_serving": {
            "summary": "Train and serve in one building",
            "value": {"requests": [{**_TUNED, "site": REFERENCE_SITE}, _BILLED_MONTH]},
        },
    },
    "estimate_utility_bill_export": {
        "tariff": {"summary": "Electricity of a training run under a tariff", "value": _METERED_BILL},
        "serving": {
            "summary": "Electricity of a served model for a month",
            "value": {**_BILLED_MONTH, "starts_at": "2026-12-01T00:00:00Z"},
        },
    },
    "estimate_utility_bill_shift": {
        "two_days": {"summary": "Start within two days", "value": _SHIFTED},
        "one_day": {
            "summary": "Start within a day, every two hours",
            "value": {
                **_SHIFTED,
                "window": {
                    "earliest_start_at": "2026-11-20T08:00:00Z",
                    "latest_start_at": "2026-11-21T08:00:00Z",
                    "step_minutes": 120,
                },
            },
        },
    },
    "estimate_utility_bill_comparison": {
        "training": {"summary": "Train in California or in Virginia", "value": _SITED},
        "serving": {
            "summary": "Serve for a month in California or in Virginia",
            "value": {**_MONTH, "starts_at": "2026-12-01T00:00:00Z", "sites": _SITED["sites"]},
        },
    },
    "estimate_utility_bill_power_cap": {
        "tariff": {"summary": "Three limits under a tariff", "value": _CAPPED},
        "flat_price": {"summary": "One limit at one price of electricity", "value": _CAPPED_FLAT},
    },
    "bill_tariff": {
        "terms": {"summary": "Bill by terms that the request states", "value": EXAMPLES["bill_tariff"]},
        "catalog": {
            "summary": "Bill a constant load by a tariff of the catalog",
            "value": {
                "tariff": {"source": "catalog", "id": "pge-e20-secondary-2017"},
                "load": {
                    "kind": "constant",
                    "starts_at": "2026-12-01T00:00",
                    "ends_at": "2027-01-01T00:00",
                    "kw": 1000.0,
                },
            },
        },
    },
}
"""Requests of more than one kind, with a name and a summary; the first is that of `EXAMPLES`."""


def build_answers() -> dict[str, Any]:
    """Returns the answers under the shipped catalog."""
    catalog = build_shipped_snapshot(1)
    answered: dict[str, Any] = {}
    for name, (question, estimate) in ESTIMATES.items():
        operation = f"estimate_{name.replace('-', '_')}"
        asked = [EXAMPLES[operation], *EXAMPLES[f"{operation}_batch"]["requests"]]
        answer, *batch = (estimate(question.model_validate_json(json.dumps(one)), catalog) for one in asked)
        answered |= {operation: answer, f"{operation}_batch": {"results": batch}}
    searched = ThroughputFrontierRequest.model_validate_json(json.dumps(_SEARCHED))
    compared = CostComparisonRequest.model_validate_json(json.dumps(_COMPARED))
    charged = TariffBillRequest.model_validate_json(json.dumps(EXAMPLES["bill_tariff"]))
    shifted = StartShiftEstimateRequest.model_validate_json(json.dumps(_SHIFTED))
    sited = SiteComparisonRequest.model_validate_json(json.dumps(_SITED))
    summed = SummaryRequest.model_validate_json(json.dumps(_SUMMED))
    held = PowerCapEstimateRequest.model_validate_json(json.dumps(_CAPPED))
    return answered | {
        "estimate_summary": estimate_summary(summed, catalog),
        "estimate_utility_bill_shift": estimate_shift(shifted, catalog),
        "estimate_utility_bill_comparison": compare_sites(sited, catalog),
        "estimate_utility_bill_power_cap": estimate_power_cap(held, catalog),
        "estimate_throughput_frontier": estimate_frontier(searched, catalog),
        "estimate_cost_comparison": compare_costs(compared, catalog),
        "bill_tariff": bill_tariff(charged, catalog),
    }
