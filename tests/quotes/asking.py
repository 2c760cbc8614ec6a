"""Questions to quote that take little time to answer."""

MODEL = {"source": "parameter_count", "parameter_count": 8_000_000_000}
RUN = {
    "model": MODEL,
    "workload": {"kind": "training", "total_tokens": 20_000_000_000, "sequence_length": 4096},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 64},
    "efficiency": {"source": "assumed", "utilization": 0.5},
}
RENTAL = {"price_per_device_hour": {"amount": "3", "currency_code": "USD"}}
PURCHASE = {
    "price_per_device": {"amount": "30000", "currency_code": "USD"},
    "ownership": {"years": 4.0},
}
SITE = {
    "pue": 1.2,
    "electricity": {"price_per_kwh": {"amount": "0.12", "currency_code": "USD"}},
    "carbon_intensity_kg_co2e_per_kwh": 0.4,
}
START = "2027-01-25T00:00:00Z"
RENTED = {**RUN, "rental": RENTAL, "site": SITE, "starts_at": START}
OWNED = {**RUN, "purchase": PURCHASE, "site": SITE, "starts_at": START}


def body(request, operation="utility-bill", **terms):
    """What asks for a quote."""
    return {"operation": operation, "name": "a run", "request": request, **terms}


def quoted(client, request=RENTED, operation="utility-bill", **terms):
    """A quote that was just made, of a cost centre that there is."""
    if "cost_center_id" in terms:
        center = client.post("/v1/cost-centers", {"id": terms["cost_center_id"], "name": "Who pays"})
        assert center.status_code in (201, 409), center.text
    response = client.post("/v1/quotes", body(request, operation, **terms))
    assert response.status_code == 201, response.text
    return response.json()


HALL = {"cluster": RUN["cluster"], "site": SITE}
"""Devices that are there."""
PLAN = {
    "model": {"source": "catalog", "id": "gpt2"},
    "workload": {
        "kind": "training",
        "sequence_length": 1024,
        "global_batch_size": 64,
        "total_tokens": 10_000_000_000,
    },
    "goal": "cheapest",
    "owned": [
        {"name": "hall", **HALL},
        {"name": "bought hall", **HALL, "purchase": PURCHASE},
    ],
    "rented": [
        {"name": "cloud", "cluster": RUN["cluster"], "rental": RENTAL},
        {
            "name": "spot",
            "cluster": RUN["cluster"],
            "rental": {
                "price_per_device_hour": {"amount": "1.1", "currency_code": "EUR"},
                "spot": {"interruptions_per_hour": 0.05},
            },
        },
    ],
    "storage": {
        "price_per_gigabyte_month": {"amount": "0.02", "currency_code": "USD"},
        "dataset_bytes": 1e12,
    },
    "currency_code": "USD",
    "search": {
        "offers": False,
        "accelerator_counts": [64],
        "rows": 8,
        "training": {
            "tensor": [1],
            "pipeline": [1],
            "shardings": ["zero_1"],
            "micro_batch_sizes": [1],
            "recomputations": [{"strategy": "none"}],
        },
    },
    "starts_at": START,
}
"""A search whose few candidates are had in every way."""
