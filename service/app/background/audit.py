"""The audit, regularly: where its chains end is told outside the database, and all of it is verified."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from service.app.recorded import HELD
from service.audit.exports import Exports, TimeStampFailed
from service.audit.service import Writes
from service.audit.verification import Head, Verification, Verifier, heads
from service.auth.repository import tenant_states
from service.kit.jobs.events import emit
from service.kit.jobs.kinds import Continue, Done, Job, JobError, Kind
from service.kit.jobs.schedules import Nothing, Schedule
from service.schemas.events import AuditHeadEvent, EventType
from service.webhooks.service import tenants_told

VERIFY: Final = "audit.verify"
"""The job whose last result the metrics show."""
_SHOWN_IN_LOG: Final = 20
log = logging.getLogger(__name__)


def exporting(exports: Exports) -> Schedule:
    """Every hour, tell where chains end: webhooks, the log, and a file where one is named."""

    def run(job: Job[Nothing]) -> Done:
        with job.database.reading() as session:
            found = [head for head in heads(session) if head.sequence]
            told = tenants_told(session, EventType.AUDIT_HEAD)
        for head in found:
            if head.tenant_id in told:
                with job.writing() as session:
                    once = f"{head.sequence} {head.hash}"
                    emit(session, head.tenant_id, EventType.AUDIT_HEAD, _event(head), once_for=once)
        try:
            exports.write(found)
        except TimeStampFailed as failed:
            raise JobError(
                "TIME_STAMP_FAILED", f"The heads are written without a time stamp: {failed}"
            ) from None
        return Done({"heads": len(found)})

    kind = Kind(name="audit.heads", arguments=Nothing, run=run, concurrency=1)
    return Schedule(name=kind.name, every=timedelta(hours=1), job=kind)


def _event(head: Head) -> AuditHeadEvent:
    return {"sequence": head.sequence, "hash": head.hash}


def verifying(writes: Writes) -> Schedule:
    """Every day, verify the record of one tenant after the other; each is a chunk of its own."""
    verifier = Verifier(writes, HELD)

    def run(job: Job[Nothing]) -> Continue | Done:
        after = job.progress.get("after", "")
        with job.database.reading() as session:
            known = [state.tenant_id for state in tenant_states(session)]
            left = [name for name in verifier.tenants(session, known) if name > after]
            found = verifier.tenant(session, left[0]) if left else None
        counts = {name: job.progress.get(name, 0) for name in ("tenants", "faults", "gaps")}
        if found is None:
            return Done(counts)
        _tell(found)
        counts["tenants"] += 1
        counts["faults"] += found.fault_count
        counts["gaps"] += len(found.gaps)
        return Continue({"after": left[0], **counts})

    kind = Kind(name=VERIFY, arguments=Nothing, run=run, concurrency=1, lease=timedelta(minutes=2))
    return Schedule(name=kind.name, every=timedelta(days=1), job=kind)


def _tell(found: Verification) -> None:
    """Write what is wrong to the log, the first of it."""
    tenant_id, fault = found.verdict.tenant_id, found.verdict.fault
    if fault is not None:
        log.error("audit of %s breaks at event %d: %s", tenant_id, fault.sequence, fault.code)
    wrong: Sequence[tuple[str, str]] = found.changed[:_SHOWN_IN_LOG]
    for resource, code in wrong:
        log.error("audit of %s: %s is not as it was recorded: %s", tenant_id, resource, code)
