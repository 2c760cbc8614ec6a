"""Who is who behind the names of approvals.

Whoever made a key can act by it, and so can who made the key that that was done with, and who was handed its
secret: its lineage. Names whose lineages meet are one voice, and so are all names of one person: signed in,
by a link or by any key of theirs. Keys of the command line are somebody each.
"""

from typing import NamedTuple

from service.approvals.tables import ApprovalRow
from service.auth.service import build_named_subject, resolve_lineage
from service.kit.database.engine import Reader, Writer
from service.kit.security.identity import list_acting_subjects, list_people


class Person(NamedTuple):
    """Somebody, by the name that they act under."""

    name: str
    lineage: frozenset[str]
    """All who can act by the name, whoever made the link that it is used by included."""
    somebody: frozenset[str]
    """Those of them who are not the command line, open mode or the service."""
    people: frozenset[str]
    """Who of them is a person."""

    def is_same(self, other: "Person") -> bool:
        """Returns true where somebody can act by the names of both, or both are one person's."""
        return not (self.somebody.isdisjoint(other.somebody) and self.people.isdisjoint(other.people))


def resolve_person(
    session: Reader | Writer, tenant_id: str, name: str, also: frozenset[str] = frozenset()
) -> Person:
    """Who a name is; ``also`` are others who can act by it, as the maker of a link can."""
    own = resolve_lineage(session, build_named_subject(tenant_id, name)) | also
    return Person(name, own, list_acting_subjects(own), list_people(own))


def is_barred(row: ApprovalRow, one: Person) -> bool:
    """Returns true where somebody is, or acts for, whoever has asked for any version of what is decided."""
    return (
        not one.lineage.isdisjoint(row.asked_by)
        or not one.somebody.isdisjoint(row.barred)
        or not one.people.isdisjoint(list_people(row.barred))
    )
