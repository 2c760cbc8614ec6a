"""What all examples share: the service of the environment, and answers that are what they should be."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

import httpx
from ironlaw_client.client import AuthenticatedClient
from ironlaw_client.models import MoneyAmount, MoneyQuantity, Problem
from ironlaw_client.types import Unset

Shape = TypeVar("Shape")
PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0)
BUSY = (429, 503)


def connected() -> AuthenticatedClient:
    """A client of IRONLAW_URL, with the key in IRONLAW_API_KEY; in open mode the service asks for none."""
    address = os.environ.get("IRONLAW_URL", "http://127.0.0.1:8000")
    key = os.environ.get("IRONLAW_API_KEY", "none")
    return AuthenticatedClient(address, key, raise_on_unexpected_status=True)


def expected(shape: type[Shape], answer: object) -> Shape:
    """An answer of this shape; a problem ends the program with its code and the fields at fault."""
    if isinstance(answer, Problem):
        fields = (f"\n  {field.pointer}: {field.detail}" for field in answer.errors)
        raise SystemExit(f"{answer.code}: {answer.detail}{''.join(fields)}")
    if not isinstance(answer, shape):
        raise TypeError(f"the service answers with a {type(answer).__name__}")
    return answer


def retried(call: Callable[[], Shape]) -> Shape:
    """The answer of a call that may be made again: one that only reads, or that has an Idempotency-Key.

    It is made again where no answer came, and where the service is busy.
    """
    for pause in PAUSES_SECONDS:
        try:
            answer = call()
        except httpx.TransportError:
            time.sleep(pause)
            continue
        if not isinstance(answer, Problem) or answer.status not in BUSY:
            return answer
        time.sleep(pause)
    return call()


def money(amount: MoneyAmount | MoneyQuantity | Unset) -> str:
    """An amount to read; what the service does not know is absent."""
    return "not known" if isinstance(amount, Unset) else f"{amount.amount} {amount.currency_code}"
