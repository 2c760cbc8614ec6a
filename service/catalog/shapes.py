"""Query parameters of a list."""

from typing import Annotated, Literal

from pydantic import MISSING, AfterValidator, Field
from typing_extensions import TypeAliasType

from service.kit.http.pages import NUMBER, PageQuery, build_number_validator
from service.schemas.base import ResourceId, StrictModel

AnyCaseId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", max_length=100), AfterValidator(str.lower)
]
"""The id of a row as callers write it. Ids are stored in lower case."""
IdentifierFilter = Annotated[list[AnyCaseId], Field(max_length=50)]
TextFilter = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]],
    Field(max_length=50),
]

LARGEST_BOUND = 1e30
NumberBound = Annotated[
    float,
    Field(ge=0, le=LARGEST_BOUND, allow_inf_nan=False),
    build_number_validator(NUMBER),
]
"""Bound of a filter. Rows without the figure match only if the bound is not given."""

CatalogRowOrder = TypeAliasType("CatalogRowOrder", Literal["id", "-id", "name", "-name"])


class ListQuery(PageQuery):
    """Paging, order and filters. A filter that is given several times matches any of its values."""

    order_by: CatalogRowOrder = "id"
    """Member to sort by. A leading minus sorts in descending order."""
    id: IdentifierFilter = []
    """Ids to list."""
    q: Annotated[str, Field(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    """Words to search for. A row matches if every word is part of its id, name, aliases or what else it is
    looked for by, such as provider, region or instance type. Case does not matter."""


class CatalogRowCopyRequest(StrictModel):
    """Id of the copy."""

    id: ResourceId | MISSING = MISSING
    """Id of the copy. Defaults to the id of the row: the copy of a shipped row then replaces it."""
