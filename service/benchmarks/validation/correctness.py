"""Correctness: the result of the work is right and follows from the seed of this run."""

from service.benchmarks.validation.case import RuleOutcomes, ValidationCase, get_known
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule

LOOSEST_TOLERANCE = 1.0
"""Tolerance that would let zeros pass, which are off by the whole scale of the result."""


def check_correctness(case: ValidationCase) -> RuleOutcomes:
    """Checks the comparison with the reference, and the checksum under other seeds."""
    found = get_known(case.measurement.correctness)
    if found is None:
        if case.work.comparison == "always":
            detail = "the worker checks every work of this kind; this record says nothing of it"
            yield RuleFinding("correctness.missing", ResultVerdict.REJECTED, detail)
        elif case.work.comparison == "sometimes":
            yield UncheckedRule("correctness.wrong", "what was computed was compared with nothing")
        return
    if not found.passed or found.largest_error > found.tolerance:
        detail = "error over the scale of the result"
        yield RuleFinding(
            "correctness.wrong", ResultVerdict.REJECTED, detail, found.largest_error, found.tolerance
        )
    if found.tolerance >= LOOSEST_TOLERANCE:
        detail = "tolerance over the scale of the result: zeros would pass"
        yield RuleFinding(
            "correctness.loose", ResultVerdict.REJECTED, detail, found.tolerance, LOOSEST_TOLERANCE
        )
    if case.earlier.with_this_checksum is not None:
        detail = f"the checksum is that of result {case.earlier.with_this_checksum}, from another seed"
        yield RuleFinding("correctness.seed_ignored", ResultVerdict.REJECTED, detail)
    elif get_known(found.checksum) is None:
        yield UncheckedRule("correctness.seed_ignored", "the record has no checksum of what was computed")
