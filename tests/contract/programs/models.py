"""The three flows with the pydantic models of datamodel-code-generator, sent by httpx."""

import os
import sys
import time

import generated as made
import httpx
from question import APPROVED, PENDING, QUOTE, RUNNING, SEARCH

key = os.environ["IRONLAW_API_KEY"]
client = httpx.Client(
    base_url=os.environ["IRONLAW_URL"], headers={"authorization": f"Bearer {key}"}, trust_env=False
)


def post(path, model, value, shape):
    """What the service answers to a request that its model has read."""
    body = model.model_validate(value).model_dump_json(exclude_unset=True)
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    return shape.model_validate_json(answer.raise_for_status().text)


def get(path, shape):
    """What the service answers."""
    return shape.model_validate_json(client.get(path).raise_for_status().text)


def estimate():
    """Rent or buy."""
    bill = post("/v1/estimates/utility-bill", made.UtilityBillRequest, QUOTE["request"], made.UtilityBill)
    rent, purchase = bill.rent.total, bill.purchase.total
    print(f"rent {rent.amount} {rent.currency_code}, purchase {purchase.amount} {purchase.currency_code}")
    print(f"the purchase pays itself back after {bill.break_even_runs.value:.2f} runs")


def plan():
    """The best rows of a search."""
    found = post("/v1/plans", made.PlanRequest, SEARCH, made.Plan)
    while found.state.value == RUNNING:
        time.sleep(0.5)
        found = get(f"/v1/plans/{found.id}", made.Plan)
    for row in found.answer.rows[:3]:
        print(f"{row.rank}. {row.supply.name}")


def approval():
    """A quote until somebody has approved it."""
    quote = post("/v1/quotes", made.UtilityBillQuoteRequest, QUOTE, made.Quote)
    seen = {"content_digest": quote.content_digest}
    asked = post(f"/v1/quotes/{quote.id}:submit", made.QuoteSubmissionRequest, seen, made.Approval)
    while asked.state.value == PENDING:
        time.sleep(0.5)
        asked = get(f"/v1/approvals/{asked.id}", made.Approval)
    for step in asked.steps:
        for decision in step.decisions:
            print(f"{decision.decided_by} says {decision.decision.value}")
    print(asked.state.value)
    sys.exit(asked.state.value != APPROVED)


{"estimate": estimate, "plan": plan, "approval": approval}[sys.argv[1]]()
