"""Identities behind the names of approvals.

The lineage of a key contains its maker, the maker of the key that was used to make it, and everyone who was
handed its secret; all of them can act by the key. Names with overlapping lineages count as one, and so do all
names of one person: signed in, by a link, or by any of their keys. Each key of the command line counts as a
separate subject.
"""

from typing import NamedTuple

from service.approvals.tables import ApprovalRow
from service.auth.service import build_named_subject, resolve_lineage
from service.kit.database.engine import Reader, Writer
from service.kit.security.identity import list_acting_subjects, list_people


class Person(NamedTuple):
    """A subject, with the name that it acts under."""

    name: str
    lineage: frozenset[str]
    """All subjects who can act by the name, including the maker of a link."""
    somebody: frozenset[str]
    """Members of the lineage other than the command line, open mode and the service."""
    people: frozenset[str]
    """Members of the lineage that are people."""

    def is_same(self, other: "Person") -> bool:
        """Returns true if one subject can act by both names, or both belong to one person."""
        return not (self.somebody.isdisjoint(other.somebody) and self.people.isdisjoint(other.people))


def resolve_person(
    session: Reader | Writer, tenant_id: str, name: str, also: frozenset[str] = frozenset()
) -> Person:
    """Returns the identity behind a name.

    ``also`` are further subjects who can act by it, such as link makers.
    """
    own = resolve_lineage(session, build_named_subject(tenant_id, name)) | also
    return Person(name, own, list_acting_subjects(own), list_people(own))


def is_barred(row: ApprovalRow, one: Person) -> bool:
    """Returns true if somebody is, or acts for, a requester of any version."""
    return (
        not one.lineage.isdisjoint(row.asked_by)
        or not one.somebody.isdisjoint(row.barred)
        or not one.people.isdisjoint(list_people(row.barred))
    )
