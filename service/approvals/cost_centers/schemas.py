"""Shapes of cost centres."""

from typing import TYPE_CHECKING, Annotated

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypedDict

from service.kit.http.pages import NextPageToken
from service.schemas.base import Integer, ResourceId, StrictModel, Text
from service.schemas.patches import build_patch_shape

BillName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class BillTagMatch(StrictModel):
    """A tag of a bill, key and value."""

    key: BillName
    """As the bill has it."""
    value: BillName
    """The whole value."""


class CostCenterRequest(StrictModel):
    """Who pays.

    A charge of a bill belongs to the cost centre of its quote (tag `quote_id`), else to the one that its tag
    `cost_center_id` names, else to the one that has its tag, its sub-account or its billing account.
    """

    id: ResourceId
    """Quotes and policies name it."""
    name: Text
    """What people call it."""
    note: Text | MISSING = MISSING
    """What to know of it."""
    accounts: Annotated[list[BillName], Field(max_length=100)] = []
    """Sub-accounts and billing accounts (SubAccountId, BillingAccountId) whose charges are its own."""
    tags: Annotated[list[BillTagMatch], Field(max_length=100)] = []
    """Tags whose charges are its own."""


class CostCenter(CostCenterRequest):
    """A cost centre."""

    version: Integer
    """Number of this version; the ETag of the resource."""
    created_at: AwareDatetime
    """Since when there is one."""


if TYPE_CHECKING:
    CostCenterPatch = CostCenterRequest
else:
    CostCenterPatch = build_patch_shape(CostCenterRequest, "CostCenterPatch")


class CostCenterPage(TypedDict):
    """A page of cost centres."""

    items: list[CostCenter]
    """In order of id."""
    next_page_token: NextPageToken
