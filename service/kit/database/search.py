"""Search for words in columns, the same on both databases."""

from collections.abc import Iterable, Iterator
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, func, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_LIST_MARKS = '[]",'


def fold_case(text: str) -> str:
    """Returns a text with the letters A to Z in lower case, as searches compare it."""
    return text.translate(_LOWER)


class _LowerAscii(FunctionElement[str]):
    """A text with the letters A to Z in lower case. Other letters differ between databases and locales."""

    type = Text()
    inherit_cache = True


@compiles(_LowerAscii, "sqlite")
def _lower_on_sqlite(element: _LowerAscii, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    return f"lower({compiler.process(element.clauses, **options)})"


@compiles(_LowerAscii, "postgresql")
def _lower_on_postgresql(element: _LowerAscii, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    return f'lower(({compiler.process(element.clauses, **options)}) COLLATE "C")'


class _MemberTexts(FunctionElement[str]):
    """The texts of one member of the objects of a JSON list, as one text; NULL without any."""

    type = Text()
    inherit_cache = True


@compiles(_MemberTexts, "sqlite")
def _join_on_sqlite(element: _MemberTexts, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    column, member = (compiler.process(clause, **options) for clause in element.clauses)
    return f"(SELECT group_concat(json_extract(value, '$.' || {member}), ' ') FROM json_each({column}))"  # noqa: S608


@compiles(_MemberTexts, "postgresql")
def _join_on_postgresql(element: _MemberTexts, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    column, member = (compiler.process(clause, **options) for clause in element.clauses)
    return f"(SELECT string_agg(item ->> {member}, ' ') FROM jsonb_path_query({column}, '$[*]') AS item)"  # noqa: S608


def join_members(column: ColumnElement[Any], member: str) -> ColumnElement[str]:
    """Returns the texts of ``member`` of the objects of a JSON list as one text."""
    return _MemberTexts(column, literal(member, Text()))


def list_texts(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Returns the texts of a JSON list as one text, which they have no marks of JSON in."""
    joined: ColumnElement[str] = cast(column, Text)
    for mark in _LIST_MARKS:
        joined = func.replace(joined, mark, " ")
    return joined


def build_search(text: str, columns: Iterable[ColumnElement[Any]]) -> Iterator[ColumnElement[bool]]:
    """Yields a condition for every word of ``text``: one of the columns contains it, in any case."""
    joined: ColumnElement[str] | None = None
    for column in columns:
        part = func.coalesce(column, "")
        joined = part if joined is None else joined.op("||")(" ").op("||")(part)
    if joined is not None:
        for word in dict.fromkeys(fold_case(text).split()):
            yield _LowerAscii(joined).contains(word, autoescape=True)
