"""Verification of audit chains, expected heads and stored rows."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from service.audit import repository
from service.audit.chain import GENESIS, ChainFault, ChainVerdict
from service.audit.records import GAPS, CheckedTables, Deviation
from service.audit.schemas import MOST_SHOWN
from service.audit.service import Writes
from service.kit.database.engine import Reader
from service.kit.http.cancellation import check_cancelled
from service.kit.security.principals import SYSTEM_TENANT

END_CUT_OFF: Final = "END_CUT_OFF"
NOT_AS_EXPORTED: Final = "NOT_AS_EXPORTED"
UNREADABLE: Final = "UNREADABLE"


class ChainHead(NamedTuple):
    """End of a chain at some time: number and hash of its last event."""

    tenant_id: str
    sequence: int
    hash: str


class Verification(NamedTuple):
    """Verdict on a tenant's chain, and the stored rows that deviate from it."""

    verdict: ChainVerdict
    changed: tuple[Deviation, ...]
    gaps: tuple[Deviation, ...]

    @property
    def is_valid(self) -> bool:
        """True if there is no fault."""
        return self.verdict.fault is None and not self.changed

    @property
    def fault_count(self) -> int:
        """Number of faults."""
        return len(self.changed) + (self.verdict.fault is not None)

    def count_gaps(self) -> list[dict[str, Any]]:
        """Returns the gaps of the verification by collection."""
        counted = Counter((resource.partition("/")[0], code) for resource, code in self.gaps)
        return [
            {"collection": collection, "code": code, "detail": GAPS[code], "resource_count": count}
            for (collection, code), count in sorted(counted.items())
        ]

    def to_response(self) -> dict[str, Any]:
        """Returns the representation of the verification."""
        verdict = self.verdict
        answer: dict[str, Any] = {
            "valid": self.is_valid,
            "events": verdict.events,
            "head_hash": verdict.head_hash,
        }
        if verdict.fault:
            answer["fault"] = verdict.fault._asdict()
        if self.changed:
            first = self.changed[:MOST_SHOWN]
            answer["changed"] = [{"resource": resource, "code": code} for resource, code in first]
            answer["changed_count"] = len(self.changed)
        if self.gaps:
            answer["gaps"] = self.count_gaps()
        return answer


class Verifier:
    """Verifier of one service's chains and of the rows in ``held``."""

    def __init__(self, writes: Writes, held: Sequence[CheckedTables]) -> None:
        self._writes = writes
        self._held = held

    def verify_tenant(
        self, session: Reader, tenant_id: str, expected: Iterable[ChainHead] = ()
    ) -> Verification:
        """Verifies the record of a tenant and the heads that are expected in it."""
        verdict = self._verify_chain(session, tenant_id)
        if verdict.fault is None:
            verdict = verdict._replace(fault=_find_unreached_head(session, tenant_id, expected))
        changed: dict[Deviation, None] = {}
        gaps: dict[Deviation, None] = {}
        for held in self._held:
            check_cancelled()
            for found in _find_deviations(held, session, tenant_id):
                (gaps if found[1] in GAPS else changed)[found] = None
        return Verification(verdict, tuple(changed), tuple(gaps))

    def _verify_chain(self, session: Reader, tenant_id: str) -> ChainVerdict:
        try:
            return self._writes.verify_chain(session, tenant_id)
        except ValueError:
            return ChainVerdict(
                tenant_id, 0, GENESIS, ChainFault(1, UNREADABLE, "an event or the head cannot be read")
            )

    def list_tenants(
        self, session: Reader, known: Iterable[str], expected: Iterable[ChainHead] = ()
    ) -> list[str]:
        """Returns every tenant to verify, including those that only the audit or an export has."""
        told = {head.tenant_id for head in expected}
        return sorted({*known, *repository.list_tenants(session), *told, SYSTEM_TENANT})

    def verify_all(
        self, session: Reader, known: Iterable[str], expected: Sequence[ChainHead] = ()
    ) -> list[Verification]:
        """Verifies the records of all tenants."""
        return [
            self.verify_tenant(session, name, [head for head in expected if head.tenant_id == name])
            for name in self.list_tenants(session, known, expected)
        ]


def _find_deviations(held: CheckedTables, session: Reader, tenant_id: str) -> Iterator[Deviation]:
    """Yields the deviations of a check. A row that the service cannot parse was not written by it."""
    try:
        yield from held.check(session, tenant_id)
    except ValueError:
        yield held.tables[0].__tablename__, UNREADABLE


def _find_unreached_head(session: Reader, tenant_id: str, expected: Iterable[ChainHead]) -> ChainFault | None:
    """Returns a fault for the first expected head that the chain does not contain, or None."""
    wanted = sorted(set(expected))
    hashes = repository.get_hashes(session, tenant_id, {head.sequence for head in wanted})
    for head in wanted:
        found = hashes.get(head.sequence)
        if found is None:
            return ChainFault(
                head.sequence, END_CUT_OFF, "an event with this number was exported as the head"
            )
        if found != head.hash:
            return ChainFault(head.sequence, NOT_AS_EXPORTED, "the head was exported with another hash")
    return None


def list_heads(session: Reader) -> list[ChainHead]:
    """Returns the current head of every chain."""
    return [ChainHead(row.tenant_id, row.sequence, row.hash) for row in repository.list_heads(session)]


def parse_head(tenant_id: str, text: str) -> ChainHead:
    """Parses a head in the form of the API, number and hash."""
    sequence, _, event_hash = text.partition(":")
    return ChainHead(tenant_id, int(sequence), event_hash)


def parse_exported_heads(lines: Iterable[str]) -> list[ChainHead]:
    """Parses the distinct heads of an export file.

    Raises :class:`ValueError` with an invalid line's number.
    """
    found: dict[ChainHead, None] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            for head in json.loads(line)["heads"]:
                found[ChainHead(str(head["tenant_id"]), int(head["sequence"]), str(head["hash"]))] = None
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"line {number} is not an export of heads") from None
    return list(found)
