"""Shapes and table mixin that every catalog row shares.

Rows are append-only versions: a change inserts the next version, a deletion inserts a tombstone, and the
highest version of an id is the current one. A tenant sees its own rows and, where it has none of the same id,
those that ship with the service. One revision number counts the changes that a tenant sees.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import MISSING, AwareDatetime, Field
from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Index,
    String,
    Text,
    cast,
    column,
    func,
    literal_column,
)
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime
from service.schemas.base import CatalogName, Integer, ResourceId, StrictModel
from service.schemas.base import Text as TextInput

REVISION_HEADER = "Catalog-Revision"
REVISED: dict[str, Any] = {
    REVISION_HEADER: {
        "description": "Revision of the catalog after the write.",
        "schema": {"type": "integer", "format": "int64"},
    }
}
DateText = Annotated[
    str,
    Field(pattern=r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$", max_length=10, examples=["2026-11-20"]),
]
"""A year, a month or a day."""


class Citation(StrictModel):
    """Source of values of a row."""

    pointers: Annotated[
        list[Annotated[str, Field(max_length=200, pattern=r"^(/[A-Za-z0-9_]{1,100})*$", examples=["/name"])]],
        Field(min_length=1, max_length=50),
    ]
    """JSON Pointers of the values; the empty pointer is the whole row."""
    citation: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]
    """Document, publisher and way of access."""
    url: Annotated[str, Field(max_length=500, pattern=r"^https://[!-~]+$")] | MISSING = MISSING
    licence: TextInput | MISSING = MISSING
    as_of: DateText
    """Date of the document, or of its reading."""


class RowInput(StrictModel):
    """Members of every row that callers create."""

    id: ResourceId
    name: TextInput
    aliases: Annotated[list[CatalogName], Field(max_length=50)] = []
    """Other names by which a request may refer to the row."""
    note: TextInput | MISSING = MISSING
    sources: Annotated[list[Citation], Field(min_length=1, max_length=50)]


class Versioned(StrictModel):
    """Members that the service adds to every row."""

    version: Integer
    """Number of this version of the row; the ETag of the resource."""
    revision: Integer
    """Catalog revision of this version."""
    origin: Literal["shipped", "tenant"]
    """`shipped` if the row ships with the service, `tenant` if it is a row of the tenant."""
    created_at: AwareDatetime


def build_letters(row_id: Any) -> ColumnElement[str]:  # noqa: ANN401
    """Returns the letters and digits of an id, which its spellings share. An index computes the same."""
    letters: ColumnElement[str] = row_id
    for separator in "-._":
        letters = func.replace(letters, literal_column(f"'{separator}'"), literal_column("''"))
    return letters


def build_aliases_condition(aliases: Any) -> ColumnElement[bool]:  # noqa: ANN401
    """Returns the condition that a row has aliases, as an index has it."""
    return cast(aliases, Text) != literal_column("'[]'")


class CatalogRow(Base):
    """One version of one row."""

    __abstract__ = True

    @declared_attr.directive
    def __table_args__(cls) -> tuple[Index, ...]:  # noqa: N805  # of a class
        """Indexes by which a write finds what it needs among many rows."""
        name = cls.__tablename__
        named = build_aliases_condition(column("aliases", Json))
        return (
            Index(f"ix_{name}_changed", "tenant_id", "revision"),
            Index(f"ix_{name}_letters", build_letters(column("id")), "tenant_id"),
            Index(f"ix_{name}_aliased", "tenant_id", sqlite_where=named, postgresql_where=named),
        )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    revision: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    deleted: Mapped[bool] = mapped_column(Boolean)
    name: Mapped[str] = mapped_column(Text)
    aliases: Mapped[list[str]] = mapped_column(Json)
    note: Mapped[str | None] = mapped_column(Text)
    sources: Mapped[list[dict[str, Any]]] = mapped_column(Json)


VERSION_COLUMNS = ("tenant_id", "version", "revision", "created_at")
VERSION_MEMBERS = ("version", "revision", "origin", "created_at")
RowDocument = dict[str, Any]
"""A row as JSON, without the members that the service adds."""
EXAMPLE_SOURCES: list[RowDocument] = [
    {"pointers": [""], "citation": "Quotation of the provider", "as_of": "2026-11-20"}
]
"""Sources of example rows."""
