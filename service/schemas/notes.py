"""What an answer says beside its figures, and references that must exist."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from service.planning.errors import PlanningError
from service.schemas.base import AnswerWarning, Gap, Source


@dataclass(slots=True)
class Notes:
    """What an answer says beside its figures."""

    warnings: list[AnswerWarning] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    calibration_ids: list[str] = field(default_factory=list)
    """Calibrations that moved a figure of the answer."""

    def warn(self, code: str, pointer: str, detail: str) -> None:
        """Tell the reader of the answer about the question."""
        self.warnings.append({"code": code, "pointer": pointer, "detail": detail})

    def gap(self, pointer: str, code: str, detail: str) -> None:
        """Name a figure of the answer that is absent."""
        self.gaps.append({"pointer": pointer, "code": code, "detail": detail})

    def copy(self) -> "Notes":
        """The same notes, to which others may be added."""
        return Notes(list(self.warnings), list(self.gaps), list(self.sources), list(self.calibration_ids))

    def take(self, notes: "Notes") -> None:
        """What ``notes`` say that is not said yet: one of a code for a member of the question is enough."""
        said = {(note["code"], note["pointer"]) for note in (*self.warnings, *self.gaps)}
        self.warnings += [note for note in notes.warnings if (note["code"], note["pointer"]) not in said]
        self.gaps += [note for note in notes.gaps if (note["code"], note["pointer"]) not in said]
        self.sources += [source for source in notes.sources if source not in self.sources]
        self.calibrated(notes.calibration_ids)

    def cite(self, source: Source, pointer: str) -> None:
        """Name a row that the answer rests on."""
        self.sources.append({**source, "pointer": pointer})

    def calibrated(self, ids: Iterable[str]) -> None:
        """Name calibrations that moved a figure of the answer, each once."""
        self.calibration_ids += [one for one in dict.fromkeys(ids) if one not in self.calibration_ids]


_Row = TypeVar("_Row")


def lookup(rows: Mapping[str, _Row], name: str, pointer: str) -> _Row:
    """The row called ``name``; an unknown name is refused."""
    row = rows.get(name)
    if row is None:
        raise PlanningError("UNKNOWN_REFERENCE", pointer, "the catalog has no row of this id or alias")
    return row
