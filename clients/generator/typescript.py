"""The generated modules of the TypeScript package."""

import json
import re
from collections.abc import Iterator
from textwrap import indent, wrap

from clients.generator.document import Document, Operation, Parameter, Schema, to_name

HEADER = "// {title} Written by `make client-sources`.\n\n"
RESOURCES = """import { Resource } from './core.js';
import type { Changing, Deciding, Estimating, Pages, Waiting } from './core.js';
import type * as t from './types.js';

"""
SCALARS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "Record<string, unknown>",
}
OPTIONS = {"Idempotency-Key": "Deciding", "If-Match": "Changing", "Catalog-Revision": "Estimating"}
"""Options of an operation, by the header that it takes."""


def write_typescript(document: Document) -> dict[str, str]:
    """Returns the text of each generated module by its name."""
    version = f"export const VERSION = '{document.version}';\n"
    return {
        "version.ts": HEADER.format(title="Version of the service that the types describe.") + version,
        "types.ts": HEADER.format(title="Requests and answers of the service.") + _write_types(document),
        "resources.ts": HEADER.format(title="Operations of the service.") + _write_resources(document),
    }


def _write_types(document: Document) -> str:
    shapes = [_write_shape(name, shape) for name, shape in document.shapes.items()]
    return "\n".join([*shapes, f"export type WebhookMessage = {' | '.join(document.messages)};\n"])


def _write_shape(name: str, shape: Schema) -> str:
    if "properties" not in shape:
        return f"{_doc(shape)}export type {name} = {to_type(shape)};\n"
    required = shape.get("required", ())
    members = "".join(
        indent(f"{_doc(schema)}{member}{'' if member in required else '?'}: {to_type(schema)};\n", "    ")
        for member, schema in shape["properties"].items()
    )
    return f"{_doc(shape)}export interface {name} {{\n{members}}}\n"


def _doc(schema: Schema) -> str:
    return _comment(str(schema.get("description", "")))


def _comment(text: str) -> str:
    paragraphs = text.strip().replace("*/", "* /").split("\n\n")
    lines = "\n\n".join("\n".join(wrap(each, 100)) for each in paragraphs).splitlines()
    if len(lines) > 1:
        body = "\n".join(f" * {line}".rstrip() for line in lines)
        return f"/**\n{body}\n */\n"
    return "".join(f"/** {line} */\n" for line in lines)


def to_type(schema: Schema, prefix: str = "") -> str:
    """Returns the type of a JSON value."""
    if "$ref" in schema:
        return prefix + to_name(schema)
    if choices := schema.get("oneOf", schema.get("anyOf")):
        return " | ".join(dict.fromkeys(to_type(choice, prefix) for choice in choices))
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return " | ".join(f"'{value}'" if isinstance(value, str) else json.dumps(value) for value in values)
    if schema["type"] == "array":
        return f"Array<{to_type(schema['items'], prefix)}>"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"Record<string, {to_type(schema['additionalProperties'], prefix)}>"
    return "Uint8Array" if schema.get("format") == "binary" else SCALARS[schema["type"]]


def to_camel_case(name: str) -> str:
    """Returns a name of the document as TypeScript writes names of methods."""
    return re.sub(r"_(.)", lambda found: found[1].upper(), name)


def _write_resources(document: Document) -> str:
    parts = [RESOURCES]
    for resource, operations in document.resources.items():
        methods = [text for operation in operations for text in _write_methods(document, operation)]
        parts.append(f"export class {to_class(resource)} extends Resource {{\n")
        parts.append(indent("\n".join(methods), "    ") + "}\n\n")
    members = [
        f"readonly {to_camel_case(resource)} = new {to_class(resource)}(this.transport);\n"
        for resource in document.resources
    ]
    parts.append(f"export class Resources extends Resource {{\n{indent(''.join(members), '    ')}}}\n")
    return "".join(parts)


def to_class(resource: str) -> str:
    """Returns the name of the class of a resource."""
    return resource.title().replace("_", "")


def _write_methods(document: Document, operation: Operation) -> Iterator[str]:
    item = document.page_item(operation)
    answer = " | ".join(
        "void" if each == {"type": "null"} else to_type(each, "t.") for each in operation.answers
    )
    signature = ", ".join(_arguments(operation))
    call = _write_call(operation)
    doc = _comment(operation.description)
    name = to_camel_case(operation.verb)
    if item is not None:
        returned = f"Pages<{answer}, {to_type(item, 't.')}>"
        yield f"{doc}{name}({signature}): {returned} {{\n    return this.pages({call});\n}}\n"
        return
    yield f"{doc}{name}({signature}): Promise<{answer}> {{\n    return this.ask({call});\n}}\n"
    if operation.pending_states:
        states = ", ".join(f"'{state}'" for state in operation.pending_states)
        said = " or ".join(f"`{state}`" for state in operation.pending_states)
        yield (
            _comment(
                f"Asks again until the state is no longer {said}; rejects with `WaitTimeout` before that."
            )
            + f"wait(id: string, options: Waiting = {{}}): Promise<{answer}> {{\n"
            f"    return this.waitFor({call}, [{states}], options);\n}}\n"
        )


def _arguments(operation: Operation) -> Iterator[str]:
    yield from (f"{each.name}: string" for each in operation.path_parameters)
    if operation.body is not None:
        yield f"request: {to_type(operation.body, 't.')}"
    given = [f"{each.name}{'' if each.is_required else '?'}: {_query_type(each)}" for each in operation.query]
    shapes = [OPTIONS[header] for header in OPTIONS if header in operation.headers]
    if given:
        shapes.append(f"{{ {'; '.join(given)} }}")
    if shapes:
        is_required = "If-Match" in operation.headers or any(each.is_required for each in operation.query)
        yield f"options: {' & '.join(shapes)}{'' if is_required else ' = {}'}"


def _query_type(parameter: Parameter) -> str:
    if not parameter.is_list:
        return to_type(parameter.schema, "t.")
    item = to_type(parameter.schema["items"], "t.")
    return f"{item} | Array<{item}>"


def _write_call(operation: Operation) -> str:
    path = operation.path
    for each in operation.path_parameters:
        path = path.replace(f"{{{each.name}}}", f"${{encodeURIComponent({each.name})}}")
    quote = "`" if operation.path_parameters else "'"
    parts = [f"method: '{operation.method}'", f"path: {quote}{path}{quote}"]
    if operation.body is not None:
        parts.append("body: request")
    if operation.query:
        pairs = ", ".join(f"{each.name}: options.{each.name}" for each in operation.query)
        parts.append(f"query: {{ {pairs} }}")
    if "If-Match" in operation.headers:
        parts.append("if_match: options.if_match")
    if "Idempotency-Key" in operation.headers:
        parts.append("idempotency_key: options.idempotency_key ?? crypto.randomUUID()")
    if "Catalog-Revision" in operation.headers:
        parts.append("is_estimate: true, catalog_revision: options.catalog_revision")
    if "Content-Digest" in operation.headers:
        parts.append("is_digested: true")
    return f"{{ {', '.join(parts)} }}"
