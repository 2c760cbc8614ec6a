"""Envelope: the record belongs to this run. Schema, size and digest are checked at receipt."""

from service.benchmarks.validation.case import RuleOutcomes, ValidationCase
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule


def check_envelope(case: ValidationCase) -> RuleOutcomes:
    """Checks the lease that the record names, and that it is the first of its repeat."""
    if case.lease == "unknown":
        detail = "no lease with this token and nonce was granted to the node"
        yield RuleFinding("envelope.unknown_lease", ResultVerdict.REJECTED, detail)
    if case.lease == "late":
        detail = "the lease had ended when the result came, or another attempt counts for the run"
        yield RuleFinding("envelope.late", ResultVerdict.EVIDENCE_ONLY, detail)
    if case.is_displaced:
        detail = "another result came first for this repeat of this attempt"
        yield RuleFinding("envelope.second_payload", ResultVerdict.REJECTED, detail)
    if not case.is_inventory_known:
        yield UncheckedRule("envelope.hardware", "the inventory that the record names never came")
