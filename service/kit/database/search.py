"""Search for words in columns, the same on both databases."""

from collections.abc import Iterable, Iterator
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, func
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
