"""Shapes of cost centres."""

from typing import TYPE_CHECKING, Annotated

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypedDict

from service.kit.http.pages import NextPageToken
from service.schemas.base import Input, Integer, ResourceId, Text
from service.schemas.patches import patch_of

BillName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class TagMatch(Input):
    """A tag of a bill, key and value."""

    key: BillName
    """As the bill has it."""
    value: BillName
    """The whole value."""


class CostCenterInput(Input):
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
    tags: Annotated[list[TagMatch], Field(max_length=100)] = []
    """Tags whose charges are its own."""


class CostCenter(CostCenterInput):
    """A cost centre."""

    version: Integer
    """Number of this version; the ETag of the resource."""
    created_at: AwareDatetime
    """Since when there is one."""


if TYPE_CHECKING:
    CostCenterPatch = CostCenterInput
else:
    CostCenterPatch = patch_of(CostCenterInput, "CostCenterPatch")


class CostCenterPage(TypedDict):
    """A page of cost centres."""

    items: list[CostCenter]
    """In order of id."""
    next_page_token: NextPageToken
