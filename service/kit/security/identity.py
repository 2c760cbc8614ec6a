"""Who a person is: one, by whichever name, mail address or key they act.

An issuer knows people by its own ids (`token:<sub>`), policies name them by what others call them
(`person:<mail>`), and keys are made by either. The service remembers which verified identity a token had
when it first wrote something, so that names that were stored earlier are understood later.
"""

import unicodedata
from collections.abc import Iterable
from typing import Final

from service.kit.security.principals import PrincipalKind

PEOPLE: Final = frozenset({PrincipalKind.TOKEN, PrincipalKind.PERSON})
_NOBODY: Final = frozenset({PrincipalKind.LOCAL, PrincipalKind.SERVICE})
_ALIASES: Final = {"googlemail.com": "gmail.com"}


def normalize_person(identity: str) -> str:
    """The form in which two spellings of one person are equal.

    Capitals, a tag behind a plus and the dots of a mail address make nobody another person. Where a mail
    server keeps `j.doe` and `jdoe` apart, the two count as one: that bars too many and never too few.
    """
    folded = unicodedata.normalize("NFKC", identity).casefold().strip()
    local, at, domain = folded.rpartition("@")
    if not at or not local:
        return folded
    untagged = local.partition("+")[0].replace(".", "") or local
    domain = domain.rstrip(".")
    return f"{untagged}@{_ALIASES.get(domain, domain)}"


def list_people(names: Iterable[str]) -> frozenset[str]:
    """The people among names of subjects, each in one spelling."""
    split = (name.partition(":") for name in names)
    return frozenset(normalize_person(own_id) for kind, _, own_id in split if kind in PEOPLE)


def list_acting_subjects(names: Iterable[str]) -> frozenset[str]:
    """Names that say who acts: neither the command line, nor open mode, nor the service itself."""
    return frozenset(name for name in names if name.partition(":")[0] not in _NOBODY)
