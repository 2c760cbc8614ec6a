"""Notes of an answer beside its figures: warnings, gaps, and sources."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NotRequired, TypedDict


class AnswerWarning(TypedDict):
    """A remark about a question for the reader of its answer."""

    code: str
    pointer: str
    detail: str


class FigureGap(TypedDict):
    """An absent figure with the reason."""

    pointer: str
    code: str
    detail: str


class RowSource(TypedDict):
    """A catalog row or a reference curve that an answer rests on."""

    pointer: str
    kind: Literal[
        "model",
        "accelerator",
        "link",
        "offer",
        "tariff",
        "grid",
        "site",
        "exchange_rate",
        "token_price",
        "hardware_price",
        "reference_curve",
    ]
    id: str
    version: int
    origin: Literal["shipped", "tenant"]
    shadows_shipped_version: NotRequired[int]
    citation: str


class FilledDefault(TypedDict):
    """A member of a question that the question leaves open, and the value that the answer holds for."""

    pointer: str
    value: str
    rule: Literal["published", "reference_system", "framework", "engine", "search", "service"]
    detail: str


@dataclass(slots=True)
class AnswerNotes:
    """Warnings, gaps and sources of one answer, collected while it is computed.

    Pointers of warnings and sources are JSON Pointers into the question, those of gaps into the answer.
    """

    warnings: list[AnswerWarning] = field(default_factory=list)
    gaps: list[FigureGap] = field(default_factory=list)
    sources: list[RowSource] = field(default_factory=list)
    defaults: list[FilledDefault] = field(default_factory=list)
    """Members that the question leaves open, as the answer fills them."""
    calibration_ids: list[str] = field(default_factory=list)
    """Calibrations that changed a figure of the answer."""

    def warn(self, code: str, pointer: str, detail: str) -> None:
        """Adds a warning about the question."""
        self.warnings.append({"code": code, "pointer": pointer, "detail": detail})

    def fill(
        self,
        pointer: str,
        value: str,
        rule: Literal["published", "reference_system", "framework", "engine", "search", "service"],
        detail: str,
    ) -> None:
        """Adds a member that the question leaves open. The last value of a member counts."""
        self.defaults[:] = [each for each in self.defaults if each["pointer"] != pointer]
        self.defaults.append({"pointer": pointer, "value": value, "rule": rule, "detail": detail})

    def add_gap(self, pointer: str, code: str, detail: str) -> None:
        """Adds a gap for an absent figure of the answer."""
        self.gaps.append({"pointer": pointer, "code": code, "detail": detail})

    def copy(self) -> "AnswerNotes":
        """Returns a copy, to which others may be added."""
        return AnswerNotes(
            list(self.warnings),
            list(self.gaps),
            list(self.sources),
            list(self.defaults),
            list(self.calibration_ids),
        )

    def merge(self, notes: "AnswerNotes") -> None:
        """Adds the notes that are not present yet: one of a code for a member is enough."""
        said = {(note["code"], note["pointer"]) for note in (*self.warnings, *self.gaps)}
        self.warnings += [note for note in notes.warnings if (note["code"], note["pointer"]) not in said]
        self.gaps += [note for note in notes.gaps if (note["code"], note["pointer"]) not in said]
        self.sources += [source for source in notes.sources if source not in self.sources]
        filled = {each["pointer"] for each in self.defaults}
        self.defaults += [each for each in notes.defaults if each["pointer"] not in filled]
        self.record_calibrations(notes.calibration_ids)

    def cite(self, source: RowSource, pointer: str) -> None:
        """Cites a row that the answer rests on."""
        self.sources.append({**source, "pointer": pointer})

    def cite_reference(self, pointer: str, citation: str) -> None:
        """Cites the reference set for a member of the question."""
        self.sources.append(
            {
                "pointer": pointer,
                "kind": "reference_curve",
                "id": "reference",
                "version": 1,
                "origin": "shipped",
                "citation": citation,
            }
        )

    def record_calibrations(self, ids: Iterable[str]) -> None:
        """Records calibrations that changed a figure of the answer, each once."""
        self.calibration_ids += [one for one in dict.fromkeys(ids) if one not in self.calibration_ids]
