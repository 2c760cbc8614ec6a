"""Conditional changes of a version of a row: ETag and If-Match."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Header, Response

from service.kit.http.problems import PreconditionFailed, PreconditionRequired
from service.kit.http.web import LOCATED, json_response


class VersionRequired(PreconditionRequired):
    """A change must name the version of the row that it is based on."""

    code, title = "VERSION_REQUIRED", "Send the ETag of the row as If-Match"


class VersionConflict(PreconditionFailed):
    """The row has a newer version."""

    code, title = "VERSION_CONFLICT", "The row has changed since it was read"


IfMatch = Annotated[
    str, Header(max_length=200, description="ETag of the version that the change is based on.")
]
ETAG: dict[str, Any] = {
    "ETag": {
        "description": "Strong validator of the version that is returned.",
        "schema": {"type": "string", "maxLength": 200},
    }
}
"""Header of an answer that contains a row that can be changed."""
VERSIONED: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG}}
CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": ETAG | LOCATED[201]["headers"]}}
"""OpenAPI responses of operations on such a row."""


def build_etag(version: int) -> str:
    """Returns the strong validator of a version."""
    return f'"{version}"'


def versioned_response(document: Mapping[str, Any]) -> Response:
    """Returns a row as JSON, with the validator of its version."""
    return json_response(document, headers={"ETag": build_etag(document["version"])})


def check_version_match(if_match: str, current: str) -> None:
    """Refuses a change that is based on another version than ``current``, or on none."""
    if not if_match:
        raise VersionRequired
    if if_match.strip() not in ("*", current):
        raise VersionConflict
