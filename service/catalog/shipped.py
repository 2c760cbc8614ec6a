"""The rows that ship with the service, read from the files beside each noun."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from service.catalog.nouns import MODELS, NOUNS
from service.catalog.rows import Document, Noun
from service.formats.huggingface import import_config
from service.planning import METHOD_VERSION
from service.schemas.architectures import from_planning


def _content(noun: Noun) -> bytes:
    return (files("service.catalog") / noun.name / "shipped.json").read_bytes()


def shipped_digest() -> str:
    """Digest of the shipped files and of the formulas that derive members from them."""
    digest = hashlib.sha256(METHOD_VERSION.encode())
    for noun in NOUNS.values():
        digest.update(_content(noun))
    return digest.hexdigest()


def _read(noun: Noun) -> list[Document]:
    rows: list[Document] = json.loads(_content(noun))
    if noun is MODELS:
        rows = [_with_architecture(row) for row in rows]
    # Validated like a row that a caller sends, so that what ships obeys the same rules.
    return [noun.created.model_validate_json(json.dumps(row)).model_dump(mode="json") for row in rows]


def _with_architecture(row: Document) -> Document:
    """A shipped model is a published configuration, from which its architecture follows, or a description."""
    if "config" not in row:
        return row
    imported = import_config(row.pop("config"))
    derived: Document = {"architecture": from_planning(imported.architecture)}
    if imported.context_tokens is not None:
        derived["context_tokens"] = imported.context_tokens
    return {**row, **derived}


@cache
def shipped_documents() -> Mapping[str, list[Document]]:
    """Every shipped row, by the name of its noun."""
    return {noun.name: _read(noun) for noun in NOUNS.values()}
