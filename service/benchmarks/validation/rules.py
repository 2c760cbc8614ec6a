"""Stages of validation in their order, and the verdict of all of them on one result."""

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

RULES_VERSION = 2
"""Version of the rules, which a verdict names. It rises when a rule or a limit changes."""
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
"""Stages of suspicions by statistics, which are lifted if runs agree. Findings on conditions never are."""


class RuleVerdict(NamedTuple):
    """Findings of all rules on one result."""

    findings: list[RuleFinding]
    unchecked: list[UncheckedRule]

    @property
    def verdict(self) -> ResultVerdict:
        """Verdict of all findings."""
        return compute_verdict(self.findings)


def validate_case(case: ValidationCase) -> RuleVerdict:
    """Applies every rule to one result."""
    said = [one for stage in STAGES for one in stage(case)]
    return RuleVerdict(
        [one for one in said if isinstance(one, RuleFinding)],
        [one for one in said if isinstance(one, UncheckedRule)],
    )


def compute_confirmed_verdict(findings: list[RuleFinding]) -> ResultVerdict:
    """Returns the verdict once two of three runs agree, without suspicions by statistics."""
    return compute_verdict(one for one in findings if not is_confirmable(one))


def is_confirmable(finding: RuleFinding) -> bool:
    """Returns true if agreement of another run lifts a finding."""
    return finding.verdict is ResultVerdict.SUSPECT and finding.rule.startswith(CONFIRMABLE)
