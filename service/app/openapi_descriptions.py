"""Descriptions of members by their docstrings, which are read when the document is built.

pydantic would read the source of every model when it is imported, a sixth of the time of a start.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, pairwise
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from service.kit.http.models import list_models
from service.schemas.patches import get_patched


def _list_classes(module: ModuleType) -> Iterator[ast.ClassDef]:
    tree = ast.parse(inspect.getsource(module))
    return (node for node in tree.body if isinstance(node, ast.ClassDef))


def _list_members(owner: ast.ClassDef) -> Iterator[tuple[str, str | None]]:
    """Yields the members that a class declares, with their docstrings."""
    for node, after in pairwise([*owner.body, ast.Pass()]):
        match node, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str(text))):
                yield name, inspect.cleandoc(text)
            case ast.AnnAssign(target=ast.Name(id=name)), _:
                yield name, None


def read_answer_docstrings(*modules: ModuleType) -> dict[str, dict[str, str]]:
    """Returns the docstrings of members by class, for answers, which are no models.

    A module comes after those whose classes its own classes extend.
    """
    documented: dict[str, dict[str, str]] = {}
    for node in chain.from_iterable(map(_list_classes, modules)):
        docs = documented[node.name] = {}
        for parent in node.bases:
            docs |= documented.get(ast.unparse(parent), {})
        docs |= {name: text for name, text in _list_members(node) if text is not None}
    return documented


@cache
def _read_model_docstrings(module: str) -> Mapping[str, Mapping[str, str | None]]:
    return {node.name: dict(_list_members(node)) for node in _list_classes(sys.modules[module])}


def _list_docstrings(model: type[BaseModel]) -> Mapping[str, str | None]:
    """Maps the members of a model to their docstrings, also those that it inherits."""
    docstrings: dict[str, str | None] = {}
    for owner in reversed(get_patched(model).__mro__):
        if owner.__module__.startswith("service."):
            docstrings |= _read_model_docstrings(owner.__module__).get(owner.__name__, {})
    return docstrings


_KEYWORDS_AFTER = ("default", "examples", "discriminator")
"""Keywords that follow the description of a member in the document."""


def describe_models(schemas: dict[str, Any]) -> None:
    """Describes the members of models that have no other description by their docstrings."""
    for model in list_models():
        long_name = f"{model.__module__}.{model.__qualname__}".replace(".", "__")
        schema = schemas.get(model.__name__) or schemas.get(long_name)
        if schema is None or "properties" not in schema:
            continue
        docstrings = _list_docstrings(model)
        for name, field in model.model_fields.items():
            text = docstrings.get(name)
            if field.description is None and text and name in schema["properties"]:
                _describe_member(schema["properties"][name], text, schemas)


def _describe_member(member: dict[str, Any], text: str, schemas: Mapping[str, Any]) -> None:
    shape = schemas.get(member.get("$ref", "").rpartition("/")[2], {})
    if shape.get("description") == text:  # said by the shape that the member has
        return
    member["description"] = text
    for keyword in _KEYWORDS_AFTER:
        if keyword in member:
            member[keyword] = member.pop(keyword)
