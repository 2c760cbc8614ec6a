"""Identity of people: one person, whichever name, mail address or key they act by.

An issuer knows people by its own ids (`token:<sub>`), policies name them by mail addresses and the like
(`person:<mail>`), and keys are made by either. The service remembers the verified identity of a token when it
first writes something, so that names that were stored earlier are understood later.
"""

import unicodedata
from collections.abc import Iterable
from typing import Final

from service.kit.security.principals import PrincipalKind

PEOPLE: Final = frozenset({PrincipalKind.TOKEN, PrincipalKind.PERSON})
_NOBODY: Final = frozenset({PrincipalKind.LOCAL, PrincipalKind.SERVICE})
_ALIASES: Final = {"googlemail.com": "gmail.com"}


def normalize_person(identity: str) -> str:
    """Returns the form in which two spellings of one person are equal.

    Capitals, a tag behind a plus and the dots of a mail address do not make another person. Where a mail
    server distinguishes `j.doe` from `jdoe`, the two count as one: that bars too many people and never too
    few.
    """
    folded = unicodedata.normalize("NFKC", identity).casefold().strip()
    local, at, domain = folded.rpartition("@")
    if not at or not local:
        return folded
    untagged = local.partition("+")[0].replace(".", "") or local
    domain = domain.rstrip(".")
    return f"{untagged}@{_ALIASES.get(domain, domain)}"


def list_people(names: Iterable[str]) -> frozenset[str]:
    """Returns the people among names of subjects, each in one spelling."""
    split = (name.partition(":") for name in names)
    return frozenset(normalize_person(own_id) for kind, _, own_id in split if kind in PEOPLE)


def list_acting_subjects(names: Iterable[str]) -> frozenset[str]:
    """Returns the names that identify an actor: neither the command line, nor open mode, nor the service."""
    return frozenset(name for name in names if name.partition(":")[0] not in _NOBODY)
