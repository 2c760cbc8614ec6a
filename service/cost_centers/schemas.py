"""Requests and answers of cost centres."""

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
    """Key as it stands in the bill."""
    value: BillName
    """Value in full."""


class CostCenterRequest(StrictModel):
    """A cost centre, which pays for quotes.

    A charge of a bill belongs to the cost centre of its quote (tag `quote_id`), else to the one named by its
    tag `cost_center_id`, else to the one that has its tag, its sub-account or its billing account.
    """

    id: ResourceId
    """Id of the cost centre, used in quotes and policies."""
    name: Text
    """Display name of the cost centre."""
    note: Text | MISSING = MISSING
    """Note on the cost centre."""
    accounts: Annotated[list[BillName], Field(max_length=100)] = []
    """Sub-accounts and billing accounts (SubAccountId, BillingAccountId) whose charges belong to the cost
    centre."""
    tags: Annotated[list[BillTagMatch], Field(max_length=100)] = []
    """Tags whose charges belong to the cost centre."""


class CostCenter(CostCenterRequest):
    """A cost centre."""

    version: Integer
    """Number of this version; the ETag of the resource."""
    created_at: AwareDatetime
    """Time at which the cost centre was created."""


if TYPE_CHECKING:
    CostCenterPatch = CostCenterRequest
else:
    CostCenterPatch = build_patch_shape(CostCenterRequest, "CostCenterPatch")


class CostCenterPage(TypedDict):
    """A page of cost centres."""

    items: list[CostCenter]
    """Cost centres in order of id."""
    next_page_token: NextPageToken
