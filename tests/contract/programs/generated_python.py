"""The three flows with the Python client of openapi-generator."""

import os
import sys
import time

import openapi_client as made
from question import APPROVED, PENDING, QUOTE, RUNNING, SEARCH

configuration = made.Configuration(host=os.environ["IRONLAW_URL"], access_token=os.environ["IRONLAW_API_KEY"])


def estimate(client):
    """Rent or buy."""
    asked = made.UtilityBillRequest.from_dict(QUOTE["request"])
    bill = made.EstimatesApi(client).estimate_utility_bill(asked)
    rent, purchase = bill.rent.total, bill.purchase.total
    print(f"rent {rent.amount} {rent.currency_code}, purchase {purchase.amount} {purchase.currency_code}")
    print(f"the purchase pays itself back after {bill.break_even_runs.value:.2f} runs")


def plan(client):
    """The best rows of a search."""
    plans = made.PlansApi(client)
    found = plans.create_plan(made.PlanRequest.from_dict(SEARCH))
    while found.state == RUNNING:
        time.sleep(0.5)
        found = plans.get_plan(found.id)
    for row in found.answer.rows[:3]:
        print(f"{row.rank}. {row.supply.name}")


def approval(client):
    """A quote until somebody has approved it."""
    quotes = made.QuotesApi(client)
    body = made.QuoteRequest(made.UtilityBillQuoteRequest.from_dict(QUOTE))
    quote = quotes.create_quote(body)
    seen = made.QuoteSubmissionRequest(content_digest=quote.content_digest)
    asked = quotes.submit_quote(quote.id, seen)
    while asked.state == PENDING:
        time.sleep(0.5)
        asked = made.ApprovalsApi(client).get_approval(asked.id)
    for step in asked.steps:
        for decision in step.decisions:
            print(f"{decision.decided_by} says {decision.decision.value}")
    print(asked.state.value)
    sys.exit(asked.state != APPROVED)


with made.ApiClient(configuration) as opened:
    {"estimate": estimate, "plan": plan, "approval": approval}[sys.argv[1]](opened)
