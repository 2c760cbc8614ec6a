"""Authors of policies and budgets, who may not submit quotes under them with any credential."""

from collections.abc import Collection, Iterable

from service.approvals.people import resolve_person
from service.auth.service import build_named_subject, resolve_lineage
from service.kit.database.engine import Reader, Writer
from service.kit.security.identity import list_acting_subjects
from service.kit.security.principals import PrincipalKind

_NOBODY = f"{PrincipalKind.LOCAL}:"
"""Prefix of the subject of open mode and of the command line, which does not identify a person."""


def resolve_authors(session: Writer, tenant_id: str, name: str, earlier: Collection[str] = ()) -> list[str]:
    """Returns the names of an author and earlier ones, with all who could act by the author's name."""
    behind = list_acting_subjects(resolve_lineage(session, build_named_subject(tenant_id, name)))
    return sorted({name, *behind, *earlier})


def is_author(
    session: Reader | Writer, tenant_id: str, written_by: Iterable[str], names: Iterable[str]
) -> bool:
    """Returns true if one of ``names`` is, or acts for, one of the writers."""
    askers = [resolve_person(session, tenant_id, name) for name in names if not name.startswith(_NOBODY)]
    writers = (
        resolve_person(session, tenant_id, name) for name in written_by if not name.startswith(_NOBODY)
    )
    return any(writer.is_same(asker) for writer in writers for asker in askers)
