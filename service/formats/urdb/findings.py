"""What an import or an export could not take over, by field."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Finding(NamedTuple):
    """A field by its name, where it stands (JSON Pointer), and what became of it."""

    name: str
    pointer: str
    detail: str


def child(pointer: str, part: str | int) -> str:
    """The JSON Pointer of a member or a place."""
    return f"{pointer}/{str(part).replace('~', '~0').replace('/', '~1')}"


def _name(pointer: str) -> str:
    """The last member of a pointer that is not a place in a list."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return next((part for part in reversed(parts) if not part.isdigit()), "")


@dataclass(slots=True)
class Findings:
    """What an import found on its way."""

    refused: list[Finding] = field(default_factory=list)
    approximated: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def refuse(self, pointer: str, detail: str) -> None:
        """The field says what the tariff does not: a bill without it is of another tariff."""
        self.refused.append(Finding(_name(pointer), pointer, detail))

    def approximate(self, pointer: str, detail: str) -> None:
        """The field is in the tariff under an assumption."""
        self.approximated.append(Finding(_name(pointer), pointer, detail))

    def warn(self, pointer: str, detail: str) -> None:
        """The field has no effect on a bill and may matter to a reader."""
        self.warnings.append(Finding(_name(pointer), pointer, detail))
