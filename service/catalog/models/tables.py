"""The table of models."""

from typing import Any

from sqlalchemy import BigInteger, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow
from service.kit.database.engine import Json


class ModelRow(CatalogRow):
    """One version of a model; the counts follow from the architecture."""

    __tablename__ = "models"

    architecture: Mapped[dict[str, Any]] = mapped_column(Json)
    context_tokens: Mapped[int | None] = mapped_column(BigInteger)
    hub_id: Mapped[str | None] = mapped_column(Text)
    license: Mapped[str | None] = mapped_column(Text)
    quantization_config: Mapped[dict[str, Any] | None] = mapped_column(Json)
    parameter_count: Mapped[int] = mapped_column(BigInteger)
    active_parameter_count: Mapped[int] = mapped_column(BigInteger)
