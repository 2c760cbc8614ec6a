"""Verdicts of validation on a result, and the findings behind them."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class ResultVerdict(StrEnum):
    """Permitted use of a result. Only accepted results enter a calibration."""

    ACCEPTED = "accepted"
    SUSPECT = "suspect"
    """Unlikely but not disproven; the benchmark is run again."""
    REJECTED = "rejected"
    """Impossible, or not a result of this run."""
    EVIDENCE_ONLY = "evidence_only"
    """True, but not of the device alone; stored for inspection."""


class RuleFinding(NamedTuple):
    """One failed check; ``verdict`` is the best that the result can still get.

    ``rule`` is the name of the check, such as ``physics.above_peak``; ``observed`` and ``limit`` are in the
    unit that the detail names.
    """

    rule: str
    verdict: ResultVerdict
    detail: str
    observed: float | None = None
    limit: float | None = None


class UncheckedRule(NamedTuple):
    """A check that could not be made because its input is unknown. It neither passes nor fails."""

    rule: str
    detail: str


_WORST = (ResultVerdict.REJECTED, ResultVerdict.EVIDENCE_ONLY, ResultVerdict.SUSPECT)


def compute_verdict(findings: Iterable[RuleFinding]) -> ResultVerdict:
    """Returns the worst verdict of all findings."""
    return select_worst(finding.verdict for finding in findings)


def select_worst(verdicts: Iterable[ResultVerdict]) -> ResultVerdict:
    """Returns the worst verdict; accepted if there is none."""
    found = set(verdicts)
    return next((verdict for verdict in _WORST if verdict in found), ResultVerdict.ACCEPTED)
