"""Correctness: whether what was computed is right, and follows from the seed of this run."""

from service.benchmarks.validation.case import RuleOutcomes, ValidationCase, get_known
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule

LOOSEST_TOLERANCE = 1.0
"""Zeros are off by the whole scale of the result: this tolerance would let them pass."""
ALWAYS_CHECKED = frozenset({"gemm", "fft", "stream", "strided_read"})
"""Kinds that the worker never leaves unchecked."""
NOTHING_COMPUTED = frozenset({"launch_latency", "power", "capacity", "context_memory", "external_tool"})


def check_correctness(case: ValidationCase) -> RuleOutcomes:
    """The comparison with the reference, and the checksum under other seeds."""
    found = get_known(case.measurement.correctness)
    kind = case.work.kind
    if found is None:
        if kind in ALWAYS_CHECKED:
            detail = "the worker checks every work of this kind; this record says nothing of it"
            yield RuleFinding("correctness.missing", ResultVerdict.REJECTED, detail)
        elif kind not in NOTHING_COMPUTED:
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
