"""Query parameters of a list, and the patch shape of a row shape."""

from typing import Annotated, Any, Literal, Optional, Union

from pydantic import MISSING, BaseModel, ConfigDict, Field, create_model
from typing_extensions import TypeAliasType

from service.questions.base import Input, ResourceId

PAGE_SIZE_LIMIT = 500

Identifiers = Annotated[list[ResourceId], Field(max_length=50)]
Words = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]],
    Field(max_length=50),
]

LARGEST_BOUND = 1e30
Bound = Annotated[float, Field(ge=0, le=LARGEST_BOUND, allow_inf_nan=False)]
"""A bound of a filter; rows without the figure pass only while the bound is not given."""

_ORDER_NAMES = {"x-enum-varnames": ["ID", "ID_DESCENDING", "NAME", "NAME_DESCENDING"]}
RowOrder = TypeAliasType(
    "RowOrder", Annotated[Literal["id", "-id", "name", "-name"], Field(json_schema_extra=_ORDER_NAMES)]
)
NextPageToken = Annotated[
    str | None,
    Field(max_length=1000, description="Sent as `page_token`, gives the next page; null on the last."),
]


class ListQuery(BaseModel):
    """Paging, order and filters; a filter given several times matches any of its values."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    page_size: Annotated[int, Field(ge=1, le=2**31 - 1, json_schema_extra={"format": "int64"})] = 50
    """Rows per page; a page has 500 at most."""
    page_token: Annotated[str, Field(max_length=1000, pattern=r"^[A-Za-z0-9_-]*$")] = ""
    """`next_page_token` of the page before, with the same filters and order."""
    order_by: RowOrder = "id"
    """A leading minus is descending."""
    id: Identifiers = []
    """Ids to list."""


def patch_of(shape: type[Input], name: str) -> type[Input]:
    """The shape of a change: every member but the id, none required, null where one may be absent."""
    fields: dict[str, Any] = {}
    for member, info in shape.model_fields.items():
        if member != "id":
            allowed: Any = info.annotation
            if info.default is MISSING:
                allowed = Optional[allowed]  # noqa: UP045
            else:
                extra = Field(json_schema_extra=info.json_schema_extra)
                allowed = Annotated[info.rebuild_annotation(), extra]
            kept = Field(MISSING, description=info.description)
            fields[member] = (Union[allowed, MISSING], kept)  # noqa: UP007
    doc = "Members to change, each as a whole; the others stay. Null removes a member that may be absent."
    return create_model(name, __base__=Input, __doc__=doc, **fields)
