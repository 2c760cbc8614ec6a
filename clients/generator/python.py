"""The generated modules of the Python package."""

import keyword
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent, wrap

from clients.generator.document import Document, Operation, Parameter, Schema, to_name

HEADER = '"""{title} Written by `make client-sources`."""\n\n'
TYPES = """# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

"""
RESOURCES = """# ruff: noqa: A002, D205, E501
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

{imports}

if TYPE_CHECKING:
    from . import types as t

"""
SCALARS = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
}


def write_python(document: Document) -> dict[str, str]:
    """Returns the text of each generated module by its name."""
    version = f'__version__ = "{document.version}"\n'
    sources = {
        "version.py": HEADER.format(title="Version of the service that the types describe.") + version,
        "types.py": HEADER.format(title="Requests and answers of the service.") + _write_types(document),
        "resources.py": HEADER.format(title="Operations of the service.") + _write_resources(document, ""),
        "async_resources.py": HEADER.format(title="Operations of the service, awaited.")
        + _write_resources(document, "Async"),
    }
    return {name: _format(source) for name, source in sources.items()}


def _format(source: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    options = ("--isolated", "--line-length", "110", "--stdin-filename", "generated.py", "-")
    done = subprocess.run(  # noqa: S603
        [ruff, "format", *options], input=source, capture_output=True, text=True, check=True
    )
    return done.stdout


def _write_types(document: Document) -> str:
    shapes = [_write_shape(name, shape) for name, shape in document.shapes.items()]
    messages = " | ".join(document.messages)
    return "\n".join([TYPES, *shapes, f'WebhookMessage: TypeAlias = "{messages}"\n'])


def _write_shape(name: str, shape: Schema) -> str:
    if "properties" in shape:
        return _write_typed_dict(name, shape)
    return f'{name}: TypeAlias = "{to_type(shape)}"\n{_doc(shape)}'


def _write_typed_dict(name: str, shape: Schema) -> str:
    lines = [f"class {name}(TypedDict):", indent(_doc(shape), "    ")]
    for member, schema in shape["properties"].items():
        type_ = to_type(schema)
        required = member in shape.get("required", ())
        lines += [
            f"    {member}: {type_ if required else f'NotRequired[{type_}]'}",
            indent(_doc(schema), "    "),
        ]
    if not shape["properties"]:
        lines.append("    pass")
    return "\n".join([*lines, ""])


def _doc(schema: Schema) -> str:
    """Returns the description as a docstring, or nothing."""
    text = str(schema.get("description", "")).strip()
    return f"{_quote(text)}\n" if text else ""


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"""', "'''").replace('"', '\\"')
    paragraphs = ["\n".join(wrap(each, 100)) for each in escaped.split("\n\n")]
    joined = "\n\n".join(paragraphs)
    return f'"""{joined}\n"""' if "\n" in joined else f'"""{joined}"""'


def to_type(schema: Schema, prefix: str = "") -> str:
    """Returns the type of a JSON value."""
    if "$ref" in schema:
        return prefix + to_name(schema)
    if choices := schema.get("oneOf", schema.get("anyOf")):
        return " | ".join(dict.fromkeys(to_type(choice, prefix) for choice in choices))
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return f"Literal[{', '.join(map(repr, values))}]"
    if schema["type"] == "array":
        return f"list[{to_type(schema['items'], prefix)}]"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {to_type(schema['additionalProperties'], prefix)}]"
    return "bytes" if schema.get("format") == "binary" else SCALARS[schema["type"]]


def _write_resources(document: Document, prefix: str) -> str:
    imports = [
        "from .core import Call, new_key, quoted",
        "from .aio import AsyncPages, AsyncResource" if prefix else "from .sync import Pages, Resource",
    ]
    parts = [RESOURCES.format(imports="\n".join(sorted(imports)))]
    for resource, operations in document.resources.items():
        parts.append(f"class {to_class(resource, prefix)}({prefix}Resource):")
        parts.append(f'    """Operations of `{resource}`."""\n')
        for operation in operations:
            parts.append(indent(_write_method(document, operation, prefix), "    "))
            if operation.pending_states:
                parts.append(indent(_write_wait(operation, prefix), "    "))
    parts.append(f"class {prefix}Resources({prefix}Resource):")
    parts.append('    """Resources of the service."""\n')
    for resource in document.resources:
        class_ = to_class(resource, prefix)
        parts.append(f"    @property\n    def {resource}(self) -> {class_}:")
        parts.append(f'        """Operations of `{resource}`."""\n        return {class_}(self._client)\n')
    return "\n".join(parts)


def to_class(resource: str, prefix: str = "") -> str:
    """Returns the name of the class of a resource."""
    return prefix + resource.title().replace("_", "")


def to_method(operation: Operation) -> str:
    """Returns the name of the method of an operation."""
    return f"{operation.verb}_" if keyword.iskeyword(operation.verb) else operation.verb


def _write_method(document: Document, operation: Operation, prefix: str) -> str:
    item = document.page_item(operation)
    answer = " | ".join(to_type(each, "t.") for each in operation.answers)
    call = _write_call(operation)
    if item is not None:
        returns = f"{prefix}Pages[{answer}, {to_type(item, 't.')}]"
        begin, body = "def", f"return self._pages({call})"
    else:
        returns = answer
        begin, asked = ("async def", f"await self._ask({call})") if prefix else ("def", f"self._ask({call})")
        body = asked if answer == "None" else f"return {asked}"
    signature = ", ".join(["self", *_arguments(operation)])
    doc = indent(_quote(operation.description), "    ")
    return f"{begin} {to_method(operation)}({signature}) -> {returns}:\n{doc}\n    {body}\n"


def _arguments(operation: Operation) -> Iterator[str]:
    yield from (f"{each.name}: str" for each in operation.path_parameters)
    if operation.body is not None:
        yield f"request: {to_type(operation.body, 't.')}"
    keywords = [*_keywords(operation)]
    if keywords:
        yield "*"
    yield from keywords


def _keywords(operation: Operation) -> Iterator[str]:
    for each in operation.query:
        type_ = _query_type(each)
        yield f"{each.name}: {type_}" if each.is_required else f"{each.name}: {type_} | None = None"
    if "If-Match" in operation.headers:
        yield "if_match: str"
    if "Idempotency-Key" in operation.headers:
        yield "idempotency_key: str | None = None"
    if "Catalog-Revision" in operation.headers:
        yield "catalog_revision: int | None = None"


def _query_type(parameter: Parameter) -> str:
    if not parameter.is_list:
        return to_type(parameter.schema, "t.")
    item = to_type(parameter.schema["items"], "t.")
    return f"{item} | Sequence[{item}]"


def _write_call(operation: Operation) -> str:
    path = operation.path
    for each in operation.path_parameters:
        path = path.replace(f"{{{each.name}}}", f"{{quoted({each.name})}}")
    parts = [repr(operation.method), f"{'f' if operation.path_parameters else ''}{path!r}"]
    if operation.query:
        pairs = ", ".join(f"{each.name!r}: {each.name}" for each in operation.query)
        parts.append(f"query={{{pairs}}}")
    if operation.body is not None:
        parts.append("body=request")
    if "If-Match" in operation.headers:
        parts.append("if_match=if_match")
    if "Idempotency-Key" in operation.headers:
        parts.append("idempotency_key=idempotency_key or new_key()")
    if "Catalog-Revision" in operation.headers:
        parts.append("is_estimate=True, catalog_revision=catalog_revision")
    if "Content-Digest" in operation.headers:
        parts.append("is_digested=True")
    return f"Call({', '.join(parts)})"


def _write_wait(operation: Operation, prefix: str) -> str:
    states = " or ".join(f"`{state}`" for state in operation.pending_states)
    call = f"self._wait({_write_call(operation)}, {operation.pending_states!r}, timeout_seconds)"
    begin, returned = ("async def", f"await {call}") if prefix else ("def", call)
    signature = "self, id: str, *, timeout_seconds: float = 600.0"
    doc = f'"""Asks again until the state is no longer {states}; raises `WaitTimeout` before that."""'
    head = f"{begin} wait({signature}) -> {to_type(operation.answers[0], 't.')}:"
    return f"{head}\n    {doc}\n    return {returned}\n"
