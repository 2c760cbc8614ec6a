"""Who has written what stands: they do not ask under it, by whatever credential."""

from collections.abc import Collection, Iterable

from service.approvals.people import person
from service.auth.service import lineage, named
from service.kit.database.engine import Reader, Writer
from service.kit.security.identity import somebody_among
from service.kit.security.subjects import SubjectKind

_NOBODY = f"{SubjectKind.LOCAL}:"
"""In open mode and on the command line everybody is the same subject, so that it tells nobody from others."""


def authors(session: Writer, tenant_id: str, name: str, earlier: Collection[str] = ()) -> list[str]:
    """Names to keep of an author and those before, with whoever could act by theirs at that time."""
    behind = somebody_among(lineage(session, named(tenant_id, name)))
    return sorted({name, *behind, *earlier})


def is_author(
    session: Reader | Writer, tenant_id: str, written_by: Iterable[str], names: Iterable[str]
) -> bool:
    """Whether one of ``names`` is, or acts for, somebody who has written something."""
    askers = [person(session, tenant_id, name) for name in names if not name.startswith(_NOBODY)]
    writers = (person(session, tenant_id, name) for name in written_by if not name.startswith(_NOBODY))
    return any(writer.is_same(asker) for writer in writers for asker in askers)
