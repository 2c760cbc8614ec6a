"""One verification for everybody who asks: the chain, where it has to reach, and what is stored beside it."""

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
from service.kit.security.principals import SYSTEM_TENANT

END_CUT_OFF: Final = "END_CUT_OFF"
NOT_AS_EXPORTED: Final = "NOT_AS_EXPORTED"
UNREADABLE: Final = "UNREADABLE"


class ChainHead(NamedTuple):
    """The end of a chain at some time: number and hash of its last event then."""

    tenant_id: str
    sequence: int
    hash: str


class Verification(NamedTuple):
    """Whether the chain of a tenant holds, and what is stored otherwise than it says."""

    verdict: ChainVerdict
    changed: tuple[Deviation, ...]
    gaps: tuple[Deviation, ...]

    @property
    def is_valid(self) -> bool:
        """Whether nothing is wrong."""
        return self.verdict.fault is None and not self.changed

    @property
    def fault_count(self) -> int:
        """How much is wrong."""
        return len(self.changed) + (self.verdict.fault is not None)

    def count_gaps(self) -> list[dict[str, Any]]:
        """What cannot be said, by collection."""
        counted = Counter((resource.partition("/")[0], code) for resource, code in self.gaps)
        return [
            {"collection": collection, "code": code, "detail": GAPS[code], "resource_count": count}
            for (collection, code), count in sorted(counted.items())
        ]

    def to_response(self) -> dict[str, Any]:
        """The verification as callers see it."""
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
    """Verifies the record of one service: chains, and all that ``held`` holds against them."""

    def __init__(self, writes: Writes, held: Sequence[CheckedTables]) -> None:
        self._writes = writes
        self._held = held

    def verify_tenant(
        self, session: Reader, tenant_id: str, expected: Iterable[ChainHead] = ()
    ) -> Verification:
        """Whether the record of a tenant holds, and reaches the heads that are expected of it."""
        verdict = self._verify_chain(session, tenant_id)
        if verdict.fault is None:
            verdict = verdict._replace(fault=_find_unreached_head(session, tenant_id, expected))
        changed: dict[Deviation, None] = {}
        gaps: dict[Deviation, None] = {}
        for held in self._held:
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
        """Every tenant that is to be verified, those included that only the audit or an export knows."""
        told = {head.tenant_id for head in expected}
        return sorted({*known, *repository.list_tenants(session), *told, SYSTEM_TENANT})

    def verify_all(
        self, session: Reader, known: Iterable[str], expected: Sequence[ChainHead] = ()
    ) -> list[Verification]:
        """Whether the records of all tenants hold."""
        return [
            self.verify_tenant(session, name, [head for head in expected if head.tenant_id == name])
            for name in self.list_tenants(session, known, expected)
        ]


def _find_deviations(held: CheckedTables, session: Reader, tenant_id: str) -> Iterator[Deviation]:
    """What a check finds; a row that the service cannot read was not written by it."""
    try:
        yield from held.check(session, tenant_id)
    except ValueError:
        yield held.tables[0].__tablename__, UNREADABLE


def _find_unreached_head(session: Reader, tenant_id: str, expected: Iterable[ChainHead]) -> ChainFault | None:
    """The first exported head that the chain does not have any more."""
    wanted = sorted(set(expected))
    hashes = repository.get_hashes(session, tenant_id, {head.sequence for head in wanted})
    for head in wanted:
        found = hashes.get(head.sequence)
        if found is None:
            return ChainFault(head.sequence, END_CUT_OFF, "an event of this number was exported as the head")
        if found != head.hash:
            return ChainFault(head.sequence, NOT_AS_EXPORTED, "the head was exported with another hash")
    return None


def list_heads(session: Reader) -> list[ChainHead]:
    """Where every chain ends now."""
    return [ChainHead(row.tenant_id, row.sequence, row.hash) for row in repository.list_heads(session)]


def parse_head(tenant_id: str, text: str) -> ChainHead:
    """A head as callers of the API write it: number and hash."""
    sequence, _, event_hash = text.partition(":")
    return ChainHead(tenant_id, int(sequence), event_hash)


def parse_exported_heads(lines: Iterable[str]) -> list[ChainHead]:
    """The heads of a file of exports, each once; a :class:`ValueError` names the line that is none."""
    found: dict[ChainHead, None] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            for head in json.loads(line)["heads"]:
                found[ChainHead(str(head["tenant_id"]), int(head["sequence"]), str(head["hash"]))] = None
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"line {number} is no export of heads") from None
    return list(found)
