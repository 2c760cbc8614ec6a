"""Quote a run, ask for its approval and follow it until it is decided; 0 where it is approved."""

import sys
import time
import uuid

from connection import connected, expected, money, retried
from estimate import QUESTION
from ironlaw_client.api.approvals import get_approval
from ironlaw_client.api.quotes import create_quote, submit_quote
from ironlaw_client.models import (
    Approval,
    ApprovalState,
    Quote,
    QuoteSubmissionRequest,
    UtilityBillQuoteRequest,
)

POLL_SECONDS = 1.0
REQUEST = UtilityBillQuoteRequest(
    operation="utility-bill", name="Pre-training, next quarter", request=QUESTION, note="Rented, not bought."
)


def main() -> None:
    """Ask, wait and say what came of it."""
    with connected() as client:
        # A request whose key the service has seen gets the first answer again, and nothing is done twice.
        key = uuid.uuid4().hex
        made = retried(lambda: create_quote.sync(client=client, body=REQUEST, idempotency_key=key))
        quote = expected(Quote, made)
        seen = QuoteSubmissionRequest(content_digest=quote.content_digest)
        print(f"quote {quote.id}: {money(quote.headlines.total)}")
        asked = submit_quote.sync(quote.id, client=client, body=seen, validate_only=True)
        for step in expected(Approval, asked).steps:
            print(f"{step.name}: {step.quorum} of {', '.join(step.approvers)}")
        once = uuid.uuid4().hex
        submitted = retried(
            lambda: submit_quote.sync(quote.id, client=client, body=seen, idempotency_key=once)
        )
        approval = expected(Approval, submitted)
        print(f"approval {approval.id} waits", flush=True)
        while approval.state == ApprovalState.APPROVAL_STATE_PENDING:
            time.sleep(POLL_SECONDS)
            approval = expected(Approval, get_approval.sync(approval.id, client=client))
    for step in approval.steps:
        for decision in step.decisions:
            print(f"{decision.decided_by} says {decision.decision}")
    print(approval.state)
    sys.exit(0 if approval.state == ApprovalState.APPROVAL_STATE_APPROVED else 1)


if __name__ == "__main__":
    main()
