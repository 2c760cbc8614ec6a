"""What the flows ask, as it is sent."""

RUNNING, PENDING, APPROVED = "running", "pending", "approved"
USD = "USD"


def devices(accelerator, count):
    """As many accelerators of a kind."""
    return {"accelerator": {"source": "catalog", "id": accelerator}, "accelerator_count": count}


def rental(amount):
    """A price of a device for an hour."""
    return {"price_per_device_hour": {"amount": amount, "currency_code": USD}}


QUESTION = {
    "model": {"source": "parameter_count", "parameter_count": 70_000_000_000},
    "cluster": devices("h100-sxm", 1000),
    "workload": {"kind": "training", "total_tokens": 2_000_000_000_000, "sequence_length": 4096},
    "efficiency": {"source": "assumed", "utilization": 0.5},
    "rental": rental("3"),
    "purchase": {"price_per_device": {"amount": "30000", "currency_code": USD}},
}
QUOTE = {"operation": "utility-bill", "name": "Pre-training, next quarter", "request": QUESTION}
SEARCH = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "training",
        "sequence_length": 8192,
        "global_batch_size": 64,
        "total_tokens": 1_000_000_000,
    },
    "goal": "cheapest",
    "rented": [
        {"name": "h100", "cluster": devices("h100-sxm", 16), "rental": rental("2.50")},
        {"name": "a100", "cluster": devices("a100-sxm-80gb", 16), "rental": rental("1.30")},
    ],
    "search": {"offers": False, "accelerator_counts": [8, 16]},
}
