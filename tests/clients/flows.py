"""What a live service tells the Python client; `typescript/flows.ts` asks the same."""

from tests.clients.package import client

QUESTION = {
    "model": {"source": "parameter_count", "parameter_count": 70_000_000_000},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 1000},
    "workload": {"kind": "training", "total_tokens": 2_000_000_000_000, "sequence_length": 4096},
    "efficiency": {"source": "assumed", "utilization": 0.5},
}
BILL = {
    **QUESTION,
    "rental": {"price_per_device_hour": {"amount": "3", "currency_code": "USD"}},
    "purchase": {"price_per_device": {"amount": "30000", "currency_code": "USD"}},
}
PLAN = {
    "model": {"source": "catalog", "id": "llama-3.1-8b"},
    "workload": {
        "kind": "training",
        "sequence_length": 8192,
        "global_batch_size": 64,
        "total_tokens": 1_000_000_000,
    },
    "goal": "cheapest",
    "search": {"accelerators": ["h100-sxm"], "accelerator_counts": [8]},
}


def told(asked, offer):
    """Every kind of call: an estimate, a change, pages, a refusal, a wait, and a quote to its approval."""
    return {
        **told_of_estimates(asked),
        **told_of_an_offer(asked, offer),
        "plan": told_of_a_plan(asked),
        "approval": told_of_an_approval(asked),
    }


def told_of_estimates(asked):
    run, ironlaw = asked.run, asked.client
    bill = run(ironlaw.estimates.utility_bill(BILL))
    table = run(
        ironlaw.estimates.cost_export(
            {**QUESTION, "rental": BILL["rental"], "starts_at": "2026-12-01T00:00:00Z"}
        )
    )
    try:
        run(ironlaw.estimates.utility_bill({**BILL, "model": {"source": "catalog", "id": "nothing"}}))
    except client.InvalidRequest as refused:
        (error,) = refused.errors
        refusal = [refused.status, refused.code, error["pointer"], error["code"]]
    return {
        "rent": bill["rent"]["total"]["amount"],
        "table": "BilledCost" in table.splitlines()[0],
        "refused": refusal,
        "ids": [row["id"] for row in asked.rows(ironlaw.accelerators.list(page_size=20, order_by="-id"))],
    }


def told_of_an_offer(asked, offer):
    run, offers = asked.run, asked.client.offers
    created = run(offers.create(offer))
    # The estimate sees the offer, because the client sends the revision of its write.
    rented = run(asked.client.estimates.cost({**QUESTION, "rental": {"offer_id": offer["id"]}}))
    price = {"price_per_instance_hour": {"amount": "48", "currency_code": "USD"}}
    changed = run(offers.update(offer["id"], price, if_match=client.etag_of(created)))
    try:
        run(offers.update(offer["id"], price, if_match=client.etag_of(created)))
    except client.VersionConflict as refused:
        stale = refused.code
    run(offers.delete(offer["id"], if_match=client.etag_of(changed)))
    try:
        run(offers.get(offer["id"]))
    except client.NotFound as refused:
        gone = refused.code
    return {
        "seen": rented["total"]["amount"],
        "changed": [changed["version"], changed["price_per_instance_hour"]["amount"]],
        "stale": stale,
        "gone": gone,
    }


def told_of_a_plan(asked):
    plans = asked.client.plans
    created = asked.run(plans.create(PLAN))
    plan = asked.run(plans.wait(created["id"], timeout_seconds=60))
    return [plan["state"], plan["answer"]["rows"][0]["rank"]]


def told_of_an_approval(asked):
    run, ironlaw = asked.run, asked.client
    request = {"operation": "utility-bill", "name": "Next quarter", "request": BILL}
    quote = run(ironlaw.quotes.create(request))
    submitted = run(ironlaw.quotes.submit(quote["id"], {"content_digest": quote["content_digest"]}))
    approval = run(ironlaw.approvals.wait(submitted["id"], timeout_seconds=60))
    return [quote["headlines"]["total"]["amount"], approval["state"]]
