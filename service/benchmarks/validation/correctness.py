"""Correctness: whether what was computed is right, and follows from the seed of this run."""

from service.benchmarks.validation.case import Case, Said, known
from service.benchmarks.verdicts import Finding, Unchecked, Verdict

LOOSEST_TOLERANCE = 1.0
"""Zeros are off by the whole scale of the result: this tolerance would let them pass."""
ALWAYS_CHECKED = frozenset({"gemm", "fft", "stream", "strided_read"})
"""Kinds that the worker never leaves unchecked."""
NOTHING_COMPUTED = frozenset({"launch_latency", "power", "capacity", "context_memory", "external_tool"})


def check(case: Case) -> Said:
    """The comparison with the reference, and the checksum under other seeds."""
    found = known(case.measurement.correctness)
    kind = case.work.kind
    if found is None:
        if kind in ALWAYS_CHECKED:
            detail = "the worker checks every work of this kind; this record says nothing of it"
            yield Finding("correctness.missing", Verdict.REJECTED, detail)
        elif kind not in NOTHING_COMPUTED:
            yield Unchecked("correctness.wrong", "what was computed was compared with nothing")
        return
    if not found.passed or found.largest_error > found.tolerance:
        detail = "error over the scale of the result"
        yield Finding("correctness.wrong", Verdict.REJECTED, detail, found.largest_error, found.tolerance)
    if found.tolerance >= LOOSEST_TOLERANCE:
        detail = "tolerance over the scale of the result: zeros would pass"
        yield Finding("correctness.loose", Verdict.REJECTED, detail, found.tolerance, LOOSEST_TOLERANCE)
    if case.earlier.with_this_checksum is not None:
        detail = f"the checksum is that of result {case.earlier.with_this_checksum}, from another seed"
        yield Finding("correctness.seed_ignored", Verdict.REJECTED, detail)
    elif known(found.checksum) is None:
        yield Unchecked("correctness.seed_ignored", "the record has no checksum of what was computed")
