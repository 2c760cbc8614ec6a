"""Every stage of validation in order, and what all of them make of one result."""

from collections.abc import Callable
from typing import NamedTuple

from service.benchmarks.validation import (
    conditions,
    correctness,
    cross_metric,
    envelope,
    fleet,
    physics,
    quality,
    replay,
)
from service.benchmarks.validation.case import Case, Said
from service.benchmarks.verdicts import Finding, Unchecked, Verdict, verdict_of

RULES_VERSION = 1
"""Rises when a rule or a limit changes: a verdict is of its version."""
STAGES: tuple[Callable[[Case], Said], ...] = (
    envelope.check,
    replay.check,
    physics.check,
    conditions.check,
    quality.check,
    correctness.check,
    fleet.check,
    cross_metric.check,
)
CONFIRMABLE = ("quality.", "fleet.", "cross_metric.")
"""Suspicions by statistics: they fall where runs agree. What is wrong with the conditions is not cured so."""


class Validation(NamedTuple):
    """What the rules say of one result."""

    findings: list[Finding]
    unchecked: list[Unchecked]

    @property
    def verdict(self) -> Verdict:
        """The verdict of all findings."""
        return verdict_of(self.findings)


def validate(case: Case) -> Validation:
    """Apply every rule to one result."""
    said = [one for stage in STAGES for one in stage(case)]
    return Validation(
        [one for one in said if isinstance(one, Finding)], [one for one in said if isinstance(one, Unchecked)]
    )


def confirmed(findings: list[Finding]) -> Verdict:
    """The verdict once two of three runs agree: suspicions by statistics do not count."""
    return verdict_of(one for one in findings if not is_confirmable(one))


def is_confirmable(finding: Finding) -> bool:
    """Whether agreement of another run lifts it."""
    return finding.verdict is Verdict.SUSPECT and finding.rule.startswith(CONFIRMABLE)
