"""Requests and answers of stored plans."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType, TypedDict

from service.kit.http.pages import NextPageToken, PageQuery
from service.schemas.stored_plans import Plan, StoredPlanGoal

PlanId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
PlanState = TypeAliasType("PlanState", Literal["running", "done", "cancelled", "failed"])


class PlanPage(TypedDict):
    """A page of plans, without their answers."""

    items: list[Plan]
    next_page_token: NextPageToken


class PlanQuery(PageQuery):
    """Filters of plans."""

    state: Annotated[list[PlanState], Field(max_length=4)] = []
    """States to list."""
    goal: Annotated[list[StoredPlanGoal], Field(max_length=6)] = []
    """Goals to list."""
