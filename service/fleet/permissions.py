"""Parts of the pages that a visitor may read, by the read operations of the API."""

from typing import NamedTuple

from service.kit.security.principals import Principal, build_permission


class ReadableParts(NamedTuple):
    """Resources beside nodes that a visitor may read."""

    results: bool
    runs: bool
    calibrations: bool

    @property
    def lacking(self) -> list[str]:
        """Scopes that the visitor lacks."""
        named = zip(_RESOURCES, self, strict=True)
        return [f"{resource}:read" for resource, is_readable in named if not is_readable]


_RESOURCES = ("benchmark-results", "benchmark-runs", "calibrations")


def resolve_parts(subject: Principal) -> ReadableParts:
    """Returns the parts that a subject may read."""
    return ReadableParts(
        *(subject.has_permission(build_permission(resource, "read")) for resource in _RESOURCES)
    )
