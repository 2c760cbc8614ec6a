"""Fields that an import or an export could not take over."""

from dataclasses import dataclass, field
from typing import NamedTuple


class ImportFinding(NamedTuple):
    """A field by its name, its place (JSON Pointer), and the outcome."""

    name: str
    pointer: str
    detail: str


def build_child_pointer(pointer: str, part: str | int) -> str:
    """The JSON Pointer of a member or a place."""
    return f"{pointer}/{str(part).replace('~', '~0').replace('/', '~1')}"


def _get_field_name(pointer: str) -> str:
    """The last member of a pointer that is not a place in a list."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return next((part for part in reversed(parts) if not part.isdigit()), "")


@dataclass(slots=True)
class ImportFindings:
    """Findings of an import."""

    refused: list[ImportFinding] = field(default_factory=list)
    approximated: list[ImportFinding] = field(default_factory=list)
    warnings: list[ImportFinding] = field(default_factory=list)

    def record_refusal(self, pointer: str, detail: str) -> None:
        """Records a field that the tariff lacks: a bill without it is of another tariff."""
        self.refused.append(ImportFinding(_get_field_name(pointer), pointer, detail))

    def record_approximation(self, pointer: str, detail: str) -> None:
        """Records a field that is in the tariff under an assumption."""
        self.approximated.append(ImportFinding(_get_field_name(pointer), pointer, detail))

    def record_warning(self, pointer: str, detail: str) -> None:
        """Records a field that has no effect on a bill and may matter to a reader."""
        self.warnings.append(ImportFinding(_get_field_name(pointer), pointer, detail))
