"""Who has written what stands: they do not ask under it, by whatever credential."""

from collections.abc import Collection, Iterable

from service.approvals.people import resolve_person
from service.auth.service import build_named_subject, resolve_lineage
from service.kit.database.engine import Reader, Writer
from service.kit.security.identity import list_acting_subjects
from service.kit.security.principals import PrincipalKind

_NOBODY = f"{PrincipalKind.LOCAL}:"
"""In open mode and on the command line everybody is the same subject, so that it tells nobody from others."""


def resolve_authors(session: Writer, tenant_id: str, name: str, earlier: Collection[str] = ()) -> list[str]:
    """Names to keep of an author and those before, with whoever could act by theirs at that time."""
    behind = list_acting_subjects(resolve_lineage(session, build_named_subject(tenant_id, name)))
    return sorted({name, *behind, *earlier})


def is_author(
    session: Reader | Writer, tenant_id: str, written_by: Iterable[str], names: Iterable[str]
) -> bool:
    """Whether one of ``names`` is, or acts for, somebody who has written something."""
    askers = [resolve_person(session, tenant_id, name) for name in names if not name.startswith(_NOBODY)]
    writers = (
        resolve_person(session, tenant_id, name) for name in written_by if not name.startswith(_NOBODY)
    )
    return any(writer.is_same(asker) for writer in writers for asker in askers)
