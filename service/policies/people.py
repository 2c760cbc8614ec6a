"""Identities behind the names of approvers, requesters and authors.

The lineage of a key contains its maker, the maker of the key that was used to make it, and everyone who was
handed its secret; all of them can act by the key. Names with overlapping lineages count as one, and so do all
names of one person: signed in, by a link, or by any of their keys. Each key of the command line counts as a
separate subject. Authors of policies and budgets may not submit quotes under them with any credential.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from service.auth.service import build_named_subject, resolve_lineage
from service.kit.database.engine import Reader, Writer
from service.kit.security.identity import list_acting_subjects, list_people
from service.kit.security.principals import PrincipalKind

_NOBODY = f"{PrincipalKind.LOCAL}:"
"""Prefix of the subject of open mode and of the command line, which does not identify a person."""


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


def count_distinct_people(people: Iterable[Person]) -> int:
    """Returns the number of distinct people. Several names of one person count once."""
    counted: list[Person] = []
    # Keys come before their maker: two keys of one maker may belong to two people.
    for one in sorted(people, key=lambda each: (-len(each.lineage), each.name)):
        if not any(one.is_same(other) for other in counted):
            counted.append(one)
    return len(counted)


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
