"""Named requests of the API document, of more than one kind where an operation takes several.

The first of an operation is that of its answer.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from service.app.examples import (
    access,
    approvals,
    budgets,
    catalog,
    estimates,
    evidence,
    plans,
    quotes,
    webhooks,
)
from service.catalog.registry import KINDS, Resource
from service.catalog.rows import EXAMPLE_SOURCES, RowDocument

NamedExamples = Mapping[str, dict[str, dict[str, Any]]]
"""By operation and name: a summary and the value."""

_TEXT: Final = {"citation": "Price list, as sent on 20 November 2026"}
_FULLER: Final[Mapping[str, RowDocument]] = {
    "model": {
        "aliases": ["example/decoder"],
        "context_tokens": 32768,
        "hub_id": "example/decoder",
        "license": "apache-2.0",
        "note": "Trained by the research team.",
    },
    "accelerator": {
        "aliases": ["Example X 96GB"],
        "generation": "x1",
        "form_factor": "SXM",
        "launched_on": "2026-03",
        "memory_label_reading": "binary",
        "memory_kind": "HBM3e",
        "intra_node_link_id": "nvlink-4",
        "systems": [{"name": "Example server", "accelerators_per_node": 8}],
        "embodied_kg_co2e": {"value": 200.0, "low": 150.0, "high": 300.0},
    },
    "link": {
        "aliases": ["Example 400G"],
        "bidirectional_bandwidth_bytes_per_second": 1e11,
        "latency_seconds": 5e-6,
        "in_network_reduction": False,
    },
    "offer": {
        "zone": "eu-north-1a",
        "instance_type": "gpu-8x-h100",
        "commitment": {"term_days": 365},
        "billing_increment_seconds": 60,
        "minimum_billed_seconds": 3600,
        "includes": ["host", "local_storage"],
        "valid_from": "2026-11-20",
        "valid_until": "2099-12-31",
    },
    "token_price": {
        "cached_input_price_per_million_tokens": {"amount": "0.29", "currency_code": "USD"},
        "note": "Without the discount of the batch interface.",
    },
    "hardware_price": {"note": "Quoted for delivery in the first quarter."},
    "tariff": {"secondary_loss_factor": 1.02, "note": "Agreed for three years."},
    "exchange_rate": {"note": "Closing rate of the treasury."},
    "grid": {
        "data_year": 2025,
        "emission_rate": "average",
        "greenhouse_gases": "co2e",
        "series": {
            "kind": "month_hours",
            "time_zone": "Europe/Stockholm",
            "kg_co2e_per_kwh": ([0.22] * 8 + [0.14] * 8 + [0.24] * 8) * 12,
        },
        "water_liters_per_kwh": 1.8,
    },
    "site": {
        "water_usage_effectiveness_liters_per_kwh": 0.4,
        "tariff_id": "pge-e20-secondary-2017",
        "time_zone": "America/Los_Angeles",
        "grid_id": "egrid-us-camx",
    },
}
"""Members of a full row beside those of the example."""

_PRICES: Final = {"price_per_instance_hour", "price"}
"""Members of which a row needs one of several."""


def _name_rows(kind: str, resource: Resource) -> NamedExamples:
    usual = resource.example
    required = {name for name, field in resource.input.model_fields.items() if field.is_required()}
    minimal = {name: value for name, value in usual.items() if name in required | _PRICES}
    row = kind.replace("_", " ")
    created = {
        "usual": {"summary": f"The members of the {row} that estimates read", "value": usual},
        "minimal": {"summary": "Only what is required", "value": minimal},
        "full": {"summary": "With most of what can be said", "value": {**usual, **_FULLER.get(kind, {})}},
    }
    if kind not in _FULLER:
        del created["full"]
    if minimal == usual:
        del created["usual"]
        created["minimal"] = {"summary": "Only what is required", "value": usual}
    return {
        f"create_{kind}": created,
        f"update_{kind}": {
            "newer_figure": {"summary": "A newer figure", "value": resource.example_patch},
            "note": {
                "summary": "A note, and another name",
                "value": {"note": "Checked.", "aliases": ["Own"]},
            },
        },
        f"copy_{kind}": {
            "another_id": {"summary": "Under another id", "value": {"id": f"{usual['id']}-copy"}},
        },
    }


_ROWS: Final = {
    name: named for kind, resource in KINDS.items() for name, named in _name_rows(kind, resource).items()
}
_MOE: Final[dict[str, Any]] = {
    "id": "example-experts",
    "name": "Example of experts",
    "config": {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "hidden_size": 2048,
        "intermediate_size": 7168,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "vocab_size": 32000,
        "max_position_embeddings": 8192,
    },
    "sources": EXAMPLE_SOURCES,
}
_MARKET: Final = """<?xml version="1.0" encoding="utf-8"?>
<Publication_MarketDocument xmlns="urn:iec62325.351:tc57wg16:451-3:publicationdocument:7:3">
 <type>A44</type>
 <TimeSeries>
  <mRID>1</mRID><in_Domain.mRID codingScheme="A01">10YES-REE------0</in_Domain.mRID>
  <currency_Unit.name>EUR</currency_Unit.name><price_Measure_Unit.name>MWH</price_Measure_Unit.name>
  <curveType>A03</curveType>
  <Period>
   <timeInterval><start>2026-11-19T23:00Z</start><end>2026-11-20T23:00Z</end></timeInterval>
   <resolution>PT60M</resolution>
   <Point><position>1</position><price.amount>61.2</price.amount></Point>
   <Point><position>9</position><price.amount>118.4</price.amount></Point>
   <Point><position>22</position><price.amount>74.0</price.amount></Point>
  </Period>
 </TimeSeries>
</Publication_MarketDocument>
"""
_DATED_OFFERS: Final = """provider,product,catalog_accelerator_id,accelerator_count,region,purchase_option,\
commitment_note,price_per_hour,currency,as_of,source_url,via,licence
example-cloud,gpu-8x-h100,h100-sxm,8,eu-north-1,on_demand,,23.92,USD,2026-11-20,https://prices.example,,
"""
_EVENING: Final = range(16, 22)
_MONTH_HOURS: Final = "month,hour,co2_eq_kg_per_MWh\n" + "".join(
    f"{month},{hour},{310 if hour in _EVENING else 180}\n" for month in range(1, 13) for hour in range(24)
)
_IMPORTS: Final[NamedExamples] = {
    "import_model": {
        "dense": {"summary": "A dense decoder", "value": catalog.EXAMPLES["import_model"]},
        "experts": {"summary": "A mixture of experts", "value": _MOE},
    },
    "import_offers": {
        "gpuhunt": {"summary": "A list of one provider", "value": catalog.EXAMPLES["import_offers"]},
        "dated_csv": {
            "summary": "Rows with their own dates and sources",
            "value": {
                "format": "dated_csv",
                "content": _DATED_OFFERS,
                "as_of": "2026-11-20",
                "source": _TEXT,
            },
        },
    },
    "import_token_prices": {
        "litellm": {"summary": "A list of litellm", "value": catalog.EXAMPLES["import_token_prices"]},
        "one_provider": {
            "summary": "The prices of one provider of the list",
            "value": {**catalog.EXAMPLES["import_token_prices"], "provider": "example"},
        },
    },
    "import_tariff": {
        "urdb": {
            "summary": "A rate of the utility rate database",
            "value": catalog.EXAMPLES["import_tariff"],
        },
        "market": {
            "summary": "The prices of a market, hour by hour",
            "value": {
                "format": "entsoe_a44_xml",
                "id": "example-day-ahead",
                "name": "Example, day ahead",
                "time_zone": "Europe/Madrid",
                "content": _MARKET,
                "adder": "0.01",
                "sources": EXAMPLE_SOURCES,
            },
        },
    },
    "import_grid": {
        "marginal": {"summary": "Marginal emissions by the hour", "value": catalog.EXAMPLES["import_grid"]},
        "average": {
            "summary": "Average emissions by month and hour",
            "value": {
                **catalog.EXAMPLES["import_grid"],
                "id": "example-average",
                "name": "Example region, average",
                "format": "month_hour_csv",
                "content": _MONTH_HOURS,
            },
        },
    },
    "import_evidence": {
        "own_csv": {"summary": "A table of a load test", "value": evidence.EXAMPLES["import_evidence"]},
        "vllm_bench": {
            "summary": "The result of a benchmark of vLLM",
            "value": {
                **evidence.EXAMPLES["import_evidence"],
                "format": "vllm_bench",
                "content": json.dumps(
                    {
                        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
                        "num_prompts": 100,
                        "completed": 100,
                        "max_concurrency": 16,
                        "total_input_tokens": 102_400,
                        "total_output_tokens": 25_600,
                        "duration": 16.9,
                        "request_throughput": 5.92,
                        "output_throughput": 1514.8,
                        "mean_ttft_ms": 83.0,
                        "median_ttft_ms": 81.0,
                        "mean_tpot_ms": 9.3,
                        "median_tpot_ms": 9.2,
                    }
                ),
                "workload": {
                    **evidence.EXAMPLES["import_evidence"]["workload"],
                    "input_tokens": 1024,
                    "output_tokens": 256,
                },
            },
        },
    },
    "import_actuals": {
        "month": {"summary": "The bill of a month", "value": budgets.EXAMPLES["import_actuals"]},
    },
}
_PLANNED: Final = plans.EXAMPLES["create_plan"]
_QUOTED: Final = quotes.EXAMPLES["create_quote"]
_RUN: Final[dict[str, Any]] = _QUOTED["request"]
_POLICY: Final = approvals.EXAMPLES["create_approval_policy"]
_FEATURES: Final[NamedExamples] = {
    "create_plan": {
        "training": {"summary": "The cheapest way to train within a week", "value": _PLANNED},
        "serving": {
            "summary": "The fewest devices that serve a chat",
            "value": {
                "model": {"source": "catalog", "id": "llama-3.1-8b"},
                "workload": {
                    "kind": "inference",
                    "input_tokens": 1000,
                    "output_tokens": 300,
                    "request_rate_per_second": 2.0,
                    "service_levels": {"time_to_first_token_seconds": 1.0},
                },
                "goal": "fewest_devices",
                "rented": _PLANNED["rented"],
                "search": {"offers": False, "serving": {"tensor": [1, 2]}, "rows": 3},
            },
        },
        "pareto": {
            "summary": "Every trade of cost against time",
            "value": {**_PLANNED, "goal": "pareto"},
        },
    },
    "plan_fleet": {
        "training_and_serving": {
            "summary": "A training run beside a chat",
            "value": plans.EXAMPLES["plan_fleet"],
        },
    },
    "create_quote": {
        "utility_bill": {"summary": "All four questions", "value": _QUOTED},
        "cost": {
            "summary": "Cost alone, without a building",
            "value": {
                "operation": "cost",
                "name": "Summaries, rented",
                "request": {name: _RUN[name] for name in _RUN if name not in ("site", "starts_at")},
            },
        },
        "memory": {
            "summary": "Memory alone, for a chat on one device",
            "value": {
                "operation": "memory",
                "name": "Chat on one device",
                "request": estimates.EXAMPLES["estimate_memory"],
            },
        },
    },
    "reprice_quote": {
        "two_weeks": {"summary": "Valid for two weeks", "value": quotes.EXAMPLES["reprice_quote"]},
        "default": {"summary": "Valid as long as the version before", "value": {}},
    },
    "create_approval_policy": {
        "above_an_amount": {"summary": "One approver above an amount", "value": _POLICY},
        "everything": {
            "summary": "One approver of every quote",
            "value": {
                "id": "everything",
                "name": "Everything",
                "conditions": {},
                "steps": [{"name": "Head of research", "approvers": ["person:carol@example.com"]}],
            },
        },
        "automatic": {
            "summary": "Nobody, for the quotes of one cost centre",
            "value": {
                "id": "own-purse",
                "name": "Own purse",
                "conditions": {"cost_center_ids": ["research"]},
                "steps": [],
                "automatic": True,
            },
        },
    },
    "create_budget": {
        "blocking": {
            "summary": "A year that refuses what it cannot pay",
            "value": budgets.EXAMPLES["create_budget"],
        },
        "minimal": {
            "summary": "Only what is required",
            "value": {
                "id": "research-2028",
                "name": "Research 2028",
                "cost_center_id": "research",
                "starts_on": "2028-01-01",
                "ends_on": "2028-12-31",
                "amount": {"amount": "1500000", "currency_code": "USD"},
            },
        },
    },
    "create_cost_center": {
        "billed": {
            "summary": "With the accounts and tags of its bills",
            "value": budgets.EXAMPLES["create_cost_center"],
        },
        "minimal": {
            "summary": "Only what is required",
            "value": {"id": "applications", "name": "Applications"},
        },
    },
    "create_webhook": {
        "some_events": {"summary": "Some kinds of events", "value": webhooks.EXAMPLES["create_webhook"]},
        "every_event": {
            "summary": "Every event",
            "value": {"url": "https://hooks.example.com/all"},
        },
    },
    "update_webhook": {
        "every_event": {"summary": "Every event from now on", "value": webhooks.EXAMPLES["update_webhook"]},
        "pause": {"summary": "No events for now", "value": {"enabled": False}},
    },
    "create_api_key": {
        "dashboard": {
            "summary": "A program that only asks",
            "value": access.EXAMPLES["create_api_key"],
        },
        "expiring": {
            "summary": "A key that expires",
            "value": {
                "name": "Pipeline of releases",
                "scopes": ["estimates:read", "plans:write", "quotes:write"],
                "expires_at": "2099-12-31T00:00:00Z",
            },
        },
    },
}
_ONE_KIND: Final[Mapping[str, tuple[str, str]]] = {
    "rotate_api_key": ("one_day", "Both secrets work for a day"),
    "end_sessions": ("everywhere", "Every session and key of a person"),
    "create_tenant": ("team", "A team"),
    "create_enrolment_token": ("named", "A token for one node with a name"),
    "enrol_node": ("processor", "A node without accelerators"),
    "put_node_inventory": ("processor", "The inventory of a node without accelerators"),
    "heartbeat_node": ("idle", "A node that waits for work"),
    "claim_lease": ("waiting", "Wait half a minute for a run"),
    "renew_lease": ("running", "A suite of which a benchmark runs"),
    "complete_lease": ("completed", "A suite that is done"),
    "create_benchmark_run": ("quick", "A short suite on any node"),
    "report_benchmark_result": ("measured", "One repeat that was measured"),
    "withdraw_calibration": ("reason", "A host that was not as usual"),
    "withdraw_node_calibrations": ("broken_node", "A node that proved bad"),
    "withdraw_evidence": ("reason", "A measurement that proved wrong"),
    "withdraw_actuals": ("preliminary", "A bill that was not final"),
    "submit_quote": ("newest_version", "The version that was read"),
    "amend_quote": ("another_request", "Another request in its place"),
    "cancel_quote": ("newest_version", "The version that was submitted"),
    "approve_approval": ("comment", "With a comment"),
    "reject_approval": ("comment", "With a comment"),
    "comment_approval": ("question", "A question to the requester"),
    "link_approval": ("person", "A link for one approver"),
    "update_approval_policy": ("name", "Another name"),
    "update_approval_settings": ("two_days", "Changes wait for two days"),
    "create_approval_delegation": ("absence", "An absence"),
    "update_cost_center": ("name", "Another name"),
    "update_budget": ("larger", "A larger amount"),
    "rotate_webhook": ("one_day", "Messages have both signatures for a day"),
    "replay_webhook": ("one_delivery", "One delivery"),
    "recover_webhook": ("outage", "Everything since an outage began"),
}


def name_requests(requests: Mapping[str, dict[str, Any]]) -> NamedExamples:
    """Returns the named requests of every operation, of which ``requests`` has one each."""
    alone = {
        operation: {name: {"summary": summary, "value": requests[operation]}}
        for operation, (name, summary) in _ONE_KIND.items()
    }
    return {**estimates.NAMED, **_ROWS, **_IMPORTS, **_FEATURES, **alone}
