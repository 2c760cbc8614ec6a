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
from service.benchmarks.validation.case import RuleOutcomes, ValidationCase
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule, compute_verdict

RULES_VERSION = 1
"""Rises when a rule or a limit changes: a verdict is of its version."""
STAGES: tuple[Callable[[ValidationCase], RuleOutcomes], ...] = (
    envelope.check_envelope,
    replay.check_replay,
    physics.check_physics,
    conditions.check_conditions,
    quality.check_quality,
    correctness.check_correctness,
    fleet.check_fleet,
    cross_metric.check_cross_metric,
)
CONFIRMABLE = ("quality.", "fleet.", "cross_metric.")
"""Suspicions by statistics: they fall where runs agree. What is wrong with the conditions is not cured so."""


class RuleVerdict(NamedTuple):
    """What the rules say of one result."""

    findings: list[RuleFinding]
    unchecked: list[UncheckedRule]

    @property
    def verdict(self) -> ResultVerdict:
        """The verdict of all findings."""
        return compute_verdict(self.findings)


def validate_case(case: ValidationCase) -> RuleVerdict:
    """Apply every rule to one result."""
    said = [one for stage in STAGES for one in stage(case)]
    return RuleVerdict(
        [one for one in said if isinstance(one, RuleFinding)],
        [one for one in said if isinstance(one, UncheckedRule)],
    )


def compute_confirmed_verdict(findings: list[RuleFinding]) -> ResultVerdict:
    """The verdict once two of three runs agree: suspicions by statistics do not count."""
    return compute_verdict(one for one in findings if not is_confirmable(one))


def is_confirmable(finding: RuleFinding) -> bool:
    """Whether agreement of another run lifts it."""
    return finding.verdict is ResultVerdict.SUSPECT and finding.rule.startswith(CONFIRMABLE)
