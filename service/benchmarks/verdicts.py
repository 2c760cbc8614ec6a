"""What validation says of a result: a verdict, and every finding behind it."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class ResultVerdict(StrEnum):
    """What a result may be used for. Only what is accepted enters a calibration."""

    ACCEPTED = "accepted"
    SUSPECT = "suspect"
    """Run again: something is unlikely, nothing is proven."""
    REJECTED = "rejected"
    """It cannot be true, or is none of this run."""
    EVIDENCE_ONLY = "evidence_only"
    """True, but not of the device alone: kept to look at."""


class RuleFinding(NamedTuple):
    """One check that did not pass; ``verdict`` is the best that the result can still get.

    ``rule`` is the name of the check, such as ``physics.above_peak``; ``observed`` and ``limit`` are in the
    unit that the detail names.
    """

    rule: str
    verdict: ResultVerdict
    detail: str
    observed: float | None = None
    limit: float | None = None


class UncheckedRule(NamedTuple):
    """A check that could not be made: what it looks at is unknown. Neither a pass nor a finding."""

    rule: str
    detail: str


_WORST = (ResultVerdict.REJECTED, ResultVerdict.EVIDENCE_ONLY, ResultVerdict.SUSPECT)


def compute_verdict(findings: Iterable[RuleFinding]) -> ResultVerdict:
    """The verdict of all findings: the worst of them."""
    return select_worst(finding.verdict for finding in findings)


def select_worst(verdicts: Iterable[ResultVerdict]) -> ResultVerdict:
    """The worst verdict; accepted where there is none."""
    found = set(verdicts)
    return next((verdict for verdict in _WORST if verdict in found), ResultVerdict.ACCEPTED)
