"""Who is who behind the names of approvals.

Whoever made a key can act by it, and so can who made the key that that was done with: its lineage. A person
is one, signed in, by a link or by any key of theirs: what follows `token:` or `person:` says who it is. Keys
in whose lineage there is no person, such as those of the command line, are somebody each.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from service.approvals.tables import ApprovalRow
from service.auth.service import lineage, named
from service.kit.database import Reader, Writer
from service.kit.subjects import SubjectKind

_PEOPLE: Final = (SubjectKind.TOKEN, SubjectKind.PERSON)


class Person(NamedTuple):
    """Somebody, by the name that they act under."""

    name: str
    lineage: frozenset[str]
    """All who can act by the name, whoever made the link that it is used by included."""
    humans: frozenset[str]
    """Who it is, if a person made the key."""

    def is_same(self, other: "Person") -> bool:
        """Whether one of the two can act by the other's name, or both are one person's."""
        return (
            self.name in other.lineage
            or other.name in self.lineage
            or not self.humans.isdisjoint(other.humans)
        )


def person(session: Reader | Writer, tenant_id: str, name: str, also: frozenset[str] = frozenset()) -> Person:
    """Who a name is; ``also`` are others who can act by it, as the maker of a link can."""
    own = lineage(session, named(tenant_id, name))
    return Person(name, own | also, _humans(own))


def _humans(names: Iterable[str]) -> frozenset[str]:
    """People among names; an issuer or a policy may write one in capitals."""
    split = (name.partition(":") for name in names)
    return frozenset(own_id.casefold() for kind, _, own_id in split if kind in _PEOPLE)


def is_barred(row: ApprovalRow, one: Person) -> bool:
    """Whether somebody is, or can act for, whoever has asked for any version of what is to be approved."""
    return (
        one.name in row.barred
        or not one.lineage.isdisjoint(row.asked_by)
        or not _humans(one.lineage).isdisjoint(_humans(row.barred))
    )
