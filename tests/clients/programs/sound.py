"""What users write, checked by mypy in its strictest mode; nothing of it is run."""

from ironlaw_client import AsyncIronlaw, Ironlaw, NotFound, RateLimited, etag_of, verify_webhook
from ironlaw_client.types import Model, Plan, PlanRequest, UtilityBillRequest

QUESTION: UtilityBillRequest = {
    "model": {"source": "parameter_count", "parameter_count": 70_000_000_000},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1000},
    "workload": {"kind": "training", "total_tokens": 2_000_000_000_000, "sequence_length": 4096},
    "rental": {"price_per_device_hour": {"amount": "3", "currency_code": "USD"}},
}
SEARCH: PlanRequest = {
    "goal": "cheapest",
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {"kind": "training", "total_tokens": 50_000_000_000},
    "search": {"accelerators": ["h100-sxm"], "accelerator_counts": [8]},
}


def ask(client: Ironlaw) -> list[str]:
    """Every kind of call."""
    bill = client.estimates.utility_bill(QUESTION)
    if "total" in bill["rent"]:
        print(bill["rent"]["total"]["amount"].rjust(12))
    plan: Plan = client.plans.wait(client.plans.create(SEARCH)["id"], timeout_seconds=60)
    models: list[Model] = [model for model in client.models.list(q="llama") if model["parameter_count"] > 1]
    try:
        row = client.offers.get("one")
        client.offers.delete("one", if_match=etag_of(row))
    except (NotFound, RateLimited) as problem:
        print(problem.code, problem.errors[0]["pointer"], problem.retry_after_seconds)
    return [plan["state"], *(model["id"] for model in models)]


async def ask_asynchronously(client: AsyncIronlaw) -> list[str]:
    """The same, awaited."""
    bill = await client.estimates.utility_bill(QUESTION)
    plan: Plan = await client.plans.wait((await client.plans.create(SEARCH))["id"])
    ids = [model["id"] async for model in client.models.list(q="llama")]
    return [plan["state"], bill["evidence"]["method_version"], *ids]


def read(secret: str, headers: dict[str, str], body: bytes) -> str:
    """A message, by its type."""
    message = verify_webhook(secret, headers, body)
    return message["data"]["approval_id"] if message["type"] == "approval.approved" else message["timestamp"]
