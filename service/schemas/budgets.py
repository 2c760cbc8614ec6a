"""Terms of a budget, in its own requests and in a change that waits."""

from typing import Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType

from service.schemas.base import CurrencyCode, Share, StrictModel, Text

BudgetEnforcement = TypeAliasType("BudgetEnforcement", Literal["warn", "block"])


class BudgetAmount(StrictModel):
    """An amount of one currency."""

    amount: Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,6})?$", max_length=19)]
    """Decimal number as text, such as "250000"."""
    currency_code: CurrencyCode
    """ISO 4217 code."""


class BudgetTerms(StrictModel):
    """Members of a budget that can change."""

    name: Text
    """Display name of the budget."""
    note: Text | MISSING = MISSING
    """Note on the budget."""
    amount: BudgetAmount
    """Amount of the budget. Its currency cannot change."""
    thresholds: Annotated[list[Share], Field(max_length=10)] = [0.5, 0.8, 1.0]
    """Shares of the amount. When so much is committed or spent, an event is sent once."""
    enforcement: BudgetEnforcement = "warn"
    """Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning."""
