"""Builds the shape of a change to a row."""

from typing import Annotated, Any, Optional, Union

from pydantic import MISSING, BaseModel, Field, create_model

from service.schemas.base import StrictModel

_PATCHED: dict[type[BaseModel], type[BaseModel]] = {}


def build_patch_shape(shape: type[StrictModel], name: str) -> type[StrictModel]:
    """Returns the shape of a change: every member but the id, none required; null removes an optional one."""
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
    patch = create_model(name, __base__=StrictModel, __doc__=doc, **fields)
    _PATCHED[patch] = shape
    return patch


def get_patched(shape: type[BaseModel]) -> type[BaseModel]:
    """Returns the shape of the row that a shape changes; other shapes themselves."""
    return _PATCHED.get(shape, shape)
