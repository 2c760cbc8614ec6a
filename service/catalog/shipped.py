"""Rows that ship with the service, read from the files beside the schemas of each resource."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from service.catalog.registry import RESOURCES, Resource
from service.catalog.rows import RowDocument
from service.planning import METHOD_VERSION


def _read_content(resource: Resource) -> bytes:
    return (files("service.catalog") / resource.name / "shipped.json").read_bytes()


def compute_shipped_digest() -> str:
    """Returns the digest of the shipped files and of the formulas that derive members from them."""
    digest = hashlib.sha256(METHOD_VERSION.encode())
    for resource in RESOURCES.values():
        digest.update(_read_content(resource))
    return digest.hexdigest()


def _read_documents(resource: Resource) -> list[RowDocument]:
    rows = map(resource.read, json.loads(_read_content(resource)))
    # Validated like a row that a caller sends, so that shipped rows obey the same rules.
    return [resource.input.model_validate_json(json.dumps(row)).model_dump(mode="json") for row in rows]


@cache
def list_shipped_documents() -> Mapping[str, list[RowDocument]]:
    """Returns every shipped row, by the name of its resource."""
    return {resource.name: _read_documents(resource) for resource in RESOURCES.values()}
