"""Order of the members of requests in the API document: the few that people use first come first."""

from typing import Any, Final

FIRST_MEMBERS: Final = "x-ironlaw-first"
"""Extension of a shape: names of the members that come first. A reader may fold the rest."""
FEW: Final = 8
"""Members of a shape that are read at a glance, in any order."""
_ROW: Final = ("id", "name")
_QUESTION: Final = ("model", "workload", "cluster")
_COST: Final = (*_QUESTION, "rental", "purchase", "efficiency", "parallelism")
_BILL: Final = (*_QUESTION, "site", "rental", "purchase", "starts_at")
_FIRST: Final[dict[str, tuple[str, ...]]] = {
    "Accelerator": (
        *_ROW,
        *("vendor", "memory_label_gb", "memory_bandwidth_bytes_per_second", "peak_flops_per_second"),
        *("power_limit_watts", "sources"),
    ),
    "ClusterInput": ("accelerator", "accelerator_count", "system", "node_id"),
    "CostEstimateRequest": _COST,
    "CostExportRequest": (*_COST, "starts_at", "billing_account_id"),
    "DataPipelineInput": (
        "stored_bytes_per_sample",
        "storage_bandwidth_bytes_per_second",
        "preprocessing_seconds_per_sample",
        "worker_count",
    ),
    "ElectricityPriceInput": ("price_per_kwh", "tariff_id"),
    "EvidenceImportRequest": ("format", "content", "model", "cluster", "workload"),
    "ExchangeRate": (*_ROW, "from_currency_code", "to_currency_code", "rate", "as_of", "sources"),
    "FleetPlanRequest": ("workloads", "owned", "rented", "starts_at", "ends_at", "budget"),
    "FrontierSearchInput": ("weight_precisions", "requests_per_replica", "tensor"),
    "Grid": (*_ROW, "code", "kind", "carbon_intensity_kg_co2e_per_kwh", "accounting", "sources"),
    "GridImportRequest": (*_ROW, "code", "kind", "format", "content", "time_zone", "sources"),
    "HardwarePrice": (*_ROW, "product", "accelerator_id", "accelerator_count", "price", "as_of", "sources"),
    "InferenceWorkloadInput": (
        *("kind", "input_tokens", "output_tokens", "concurrency", "request_rate_per_second"),
        *("weight_precision", "engine", "service_levels", "horizon"),
    ),
    "Link": (*_ROW, "kind", "scope", "bandwidth_bytes_per_second", "latency_seconds", "sources"),
    "MarketTariffImportRequest": (*_ROW, "format", "content", "time_zone", "adder", "sources"),
    "Model": (*_ROW, "architecture", "context_tokens", "sources"),
    "Offer": (
        *_ROW,
        *("provider", "region", "accelerator_id", "accelerator_count", "purchase_option"),
        *("price_per_instance_hour", "as_of", "sources"),
    ),
    "ParallelismInput": ("tensor", "pipeline", "data", "expert", "context", "sharding"),
    "PlanConstraints": ("budget", "finish_by", "duration_seconds", "accelerator_count"),
    "PlanRequest": ("model", "workload", "goal", "constraints", "owned", "rented", "search", "starts_at"),
    "PlanSearch": ("accelerators", "accelerator_counts", "offers", "rows"),
    "PowerCapEstimateRequest": (*_BILL, "power_caps_watts"),
    "Rental": ("price_per_device_hour", "offer_id", "purchase_option", "spot"),
    "RolloutInput": ("prompt_tokens", "response_tokens", "samples_per_prompt", "placement"),
    "RunSiteInput": (
        *("site_id", "pue", "electricity", "carbon_intensity_kg_co2e_per_kwh", "grid_id", "time_zone"),
    ),
    "ServingEngineInput": ("name", "version", "max_num_seqs", "max_batched_tokens"),
    "Site": (*_ROW, "pue", "grid_id", "tariff_id", "time_zone", "sources"),
    "SiteComparisonRequest": (*_QUESTION, "sites", "rental", "purchase", "starts_at"),
    "StartShiftEstimateRequest": (*_QUESTION, "site", "window", "rental"),
    "Tariff": (*_ROW, "utility", "currency_code", "time_zone", "revisions", "sources"),
    "TokenPrice": (
        *_ROW,
        *("provider", "model_name", "model_id", "input_price_per_million_tokens"),
        *("output_price_per_million_tokens", "as_of", "sources"),
    ),
    "TrainingSearch": ("tensor", "pipeline", "shardings", "micro_batch_sizes", "precisions"),
    "TrainingWorkloadInput": (
        *("kind", "sequence_length", "total_tokens", "global_batch_size", "micro_batch_size"),
        *("precision", "optimizer", "recomputation", "adaptation", "objective"),
    ),
    "UrdbTariffImportRequest": (*_ROW, "format", "urdb", "time_zone", "sources"),
    "UtilityBillExportRequest": (*_BILL, "billing_account_id"),
    "UtilityBillRequest": _BILL,
}
"""By shape. That of a row is also the order of its request and of its patch."""


def order_members(schemas: dict[str, Any]) -> None:
    """Puts the first members of shapes first: the listed ones, or the required ones of a large request."""
    for name, schema in schemas.items():
        members = schema.get("properties", {})
        listed = _FIRST.get(name) or _FIRST.get(name.removesuffix("Request").removesuffix("Patch"))
        if listed is None and (len(members) <= FEW or "additionalProperties" not in schema):
            continue
        required = schema.get("required", [])
        named = [member for member in listed or required if member in members]
        first = [*named, *(member for member in required if member not in named)]
        if 0 < len(first) < len(members):
            schema["properties"] = {member: members[member] for member in [*first, *members]}
            schema[FIRST_MEMBERS] = first
