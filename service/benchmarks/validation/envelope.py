"""Envelope: whether the record is of this run. Schema, size and digest were checked when it came."""

from service.benchmarks.validation.case import Case, Said
from service.benchmarks.verdicts import Finding, Unchecked, Verdict


def check(case: Case) -> Said:
    """What the lease under which it says it was measured makes of it."""
    if case.lease == "unknown":
        detail = "no lease with this token and nonce was granted to the node"
        yield Finding("envelope.unknown_lease", Verdict.REJECTED, detail)
    if case.lease == "late":
        detail = "the lease had ended when the result came: whether the node was alone is unknown"
        yield Finding("envelope.late", Verdict.EVIDENCE_ONLY, detail)
    if case.is_displaced:
        detail = "another result came first for this repeat of this attempt"
        yield Finding("envelope.second_payload", Verdict.REJECTED, detail)
    if not case.is_inventory_known:
        yield Unchecked("envelope.hardware", "the inventory that the record names never came")
