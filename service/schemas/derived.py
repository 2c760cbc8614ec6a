"""Models of the wire that are derived from dataclasses of planning, and the way there and back.

A member keeps its name, its default and, as its description, its docstring. Its type follows from the type of
the dataclass: None becomes an absent member, an enumeration its values. Numbers, texts and lists have bounds
on the wire, which are given by type or by name.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache, singledispatch
from itertools import pairwise
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import MISSING, Field, create_model
from pydantic_core import to_jsonable_python
from typing_extensions import TypeAliasType

from service.schemas.base import StrictModel

_PLANNED: dict[type[StrictModel], type[Any]] = {}


def derive_model(
    name: str, planned: type[Any], *, types: Mapping[Any, Any], members: Mapping[str, Any]
) -> type[StrictModel]:
    """Returns the model of a dataclass of planning, and registers it for :func:`build_planned`.

    ``types`` and ``members`` are the annotations on the wire by planning's type and by name. A member whose
    annotation admits ``MISSING`` is absent by default. A ``ClassVar`` is the discriminator.
    """
    defaults = {field.name: field.default for field in fields(planned)}
    definitions: dict[str, Any] = {}
    for member, hint in get_type_hints(planned).items():
        if get_origin(hint) is ClassVar:
            definitions[member] = (*get_args(hint), ...)
            continue
        annotation = members[member] if member in members else _derive_type(hint, types)
        default = to_jsonable_python(defaults[member]) if defaults[member] is not NO_DEFAULT else ...
        if MISSING in get_args(annotation):
            default = MISSING
        if description := _find_docstring(planned, member):
            annotation = Annotated[annotation, Field(description=description)]
        definitions[member] = (annotation, default)
    summary = _to_markdown(str(planned.__doc__)).split("\n\n")[0]
    model = create_model(name, __base__=StrictModel, __doc__=summary, **definitions)
    _PLANNED[model] = planned
    return model


def unite_models(name: str, models: Iterable[type[StrictModel]]) -> Any:  # noqa: ANN401
    """Returns a named union of models that are told apart by their ``kind``."""
    return TypeAliasType(name, Annotated[Union[*models], Field(discriminator="kind")])


def name_choices(choices: type[StrEnum]) -> Any:  # noqa: ANN401
    """Returns the values of an enumeration under its name."""
    return TypeAliasType(choices.__name__, _list_choices(choices))


def _list_choices(choices: type[StrEnum]) -> Any:  # noqa: ANN401
    return Literal[tuple(choice.value for choice in choices)]


def list_of(item: Any, *, least: int = 0, most: int) -> Any:  # noqa: ANN401
    """Returns the annotation of a list with bounds."""
    return Annotated[list[item], Field(min_length=least or None, max_length=most)]


def _derive_type(hint: Any, types: Mapping[Any, Any]) -> Any:  # noqa: ANN401
    if hint in types:
        return types[hint]
    if NoneType in get_args(hint):
        return _derive_type(get_args(hint)[0], types) | MISSING
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _list_choices(hint)
    return hint


def _find_docstring(planned: type[Any], member: str) -> str | None:
    found = (
        _read_docstrings(owner.__module__).get((owner.__name__, member)) for owner in planned.__mro__[:-1]
    )
    return next(filter(None, found), None)


@cache
def _read_docstrings(module: str) -> Mapping[tuple[str, str], str]:
    """Docstrings of the members of a module's classes, by the names of class and member."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    found = {}
    for owner in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for pair in pairwise(owner.body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[owner.name, name] = _to_markdown(text)
    return found


def _to_markdown(docstring: str) -> str:
    return inspect.cleandoc(docstring).replace("``", "`")


@singledispatch
def build_planned(shape: StrictModel) -> Any:  # noqa: ANN401
    """Returns planning's value of a derived model; other models are registered with their own function."""
    return build_members(_PLANNED[type(shape)], shape)


def build_members(planned: type[Any], shape: StrictModel) -> Any:  # noqa: ANN401
    """Returns an object of planning by the members of its shape that are given."""
    readers = _list_readers(planned)  # type: ignore[arg-type]  # mypy takes no class for hashable
    given = {
        name: read(value) if (read := readers[name]) else value
        for name, value in shape
        if name in readers and value is not MISSING
    }
    return planned(**given)


_Reader = Callable[[Any], Any]


@cache
def _list_readers(planned: type[Any]) -> Mapping[str, _Reader | None]:
    hints = get_type_hints(planned)
    return {field.name: _find_reader(hints[field.name]) for field in fields(planned)}


def _find_reader(hint: Any) -> _Reader | None:  # noqa: ANN401
    """Returns the function that makes planning's value of a member of the wire, None if both are the same."""
    if NoneType in get_args(hint):
        return _find_reader(get_args(hint)[0])
    collection = get_origin(hint)
    if collection is Literal or hint in (bool, int, float, str, datetime):
        return None
    if collection in (tuple, frozenset):
        read = _find_reader(get_args(hint)[0])
        return (lambda values: collection(map(read, values))) if read else collection
    if isinstance(hint, type) and issubclass(hint, Decimal | StrEnum):
        return hint
    return build_planned


@singledispatch
def write_document(value: Any) -> Any:  # noqa: ANN401
    """Returns the JSON document of a value of planning; members at their default are left out."""
    if not hasattr(value, "__dataclass_fields__"):
        return value
    document = {"kind": value.kind} if hasattr(value, "kind") else {}
    for field in fields(value):
        member = getattr(value, field.name)
        if member is not None and (field.default is NO_DEFAULT or member != field.default):
            document[field.name] = write_document(member)
    return document


@write_document.register
def _(value: tuple) -> list[Any]:  # type: ignore[type-arg]
    return [write_document(item) for item in value]


@write_document.register
def _(value: frozenset) -> list[Any]:  # type: ignore[type-arg]
    return sorted(write_document(item) for item in value)


@write_document.register
def _(value: Decimal) -> str:
    return f"{value:f}"


@write_document.register
def _(value: StrEnum) -> str:
    return value.value


@write_document.register
def _(value: date) -> str:
    return value.isoformat()
