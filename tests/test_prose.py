"""Docstrings and the API document name their subject first."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUESTION = re.compile(r"(What|Whether|Who|Whose|Whom|Where|How|When|Which|Why)\b")
DOCSTRING = re.compile(r'^\s*"""(\w+[^\n]*)', re.MULTILINE)


def texts(value, pointer=""):
    """Pairs of pointer and text of the titles, summaries and descriptions of a document."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in {"summary", "description"} and isinstance(inner, str):
                yield f"{pointer}/{name}", inner
            else:
                yield from texts(inner, f"{pointer}/{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from texts(inner, f"{pointer}/{index}")


def test_no_docstring_opens_with_a_question_word():
    found = [
        (str(path.relative_to(ROOT)), text)
        for room in ("service", "accuracy", "bench", "migrations")
        for path in sorted((ROOT / room).rglob("*.py"))
        for text in DOCSTRING.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 10_000
    assert [pair for pair in found if QUESTION.match(pair[1])] == []


def test_no_description_of_the_document_opens_with_a_question_word():
    document = json.loads((ROOT / "docs/openapi.json").read_text(encoding="utf-8"))
    found = list(texts(document))
    assert len(found) > 5_000
    assert [pair for pair in found if QUESTION.match(pair[1])] == []
