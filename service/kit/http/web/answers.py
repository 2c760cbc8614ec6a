"""Answers that are serialized from their type."""

from collections.abc import Mapping
from typing import Any

from fastapi import Response
from pydantic_core import to_json

LOCATED: dict[int | str, dict[str, Any]] = {
    201: {
        "headers": {
            "Location": {
                "description": "Address of the resource that was created.",
                "schema": {"type": "string", "maxLength": 200},
            }
        }
    }
}
"""OpenAPI response of an operation that creates a resource."""


class RenderedJson(bytes):
    """An answer that its endpoint has already serialized as JSON."""


def json_response(content: object, *, headers: Mapping[str, str] | None = None) -> Response:
    """Returns an answer as JSON, by pydantic's serializer."""
    return Response(to_json(content), headers=dict(headers or {}), media_type="application/json")


CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
"""OpenAPI response of an operation that returns a table."""


def csv_response(table: str, name: str) -> Response:
    """Returns a table as a CSV file of the given name."""
    return Response(
        table, media_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}.csv"'}
    )
