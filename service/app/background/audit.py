"""Regular audit jobs: export of the chain heads outside the database, and verification of all chains."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from service.app.recorded import HELD
from service.audit.exports import HeadExports, TimeStampFailed
from service.audit.service import Writes
from service.audit.verification import ChainHead, Verification, Verifier, list_heads
from service.auth.repository import list_tenant_states
from service.kit.jobs.events import emit_event
from service.kit.jobs.kinds import CompletedJob, ContinueJob, JobChunk, JobError, RunnableJobType
from service.kit.jobs.schedules import JobSchedule, NoArguments
from service.schemas.events import AuditHeadEvent, WebhookEventType
from service.webhooks.service import list_subscribed_tenants

VERIFY: Final = "audit.verify"
"""Name of the job whose last result the metrics show."""
_SHOWN_IN_LOG: Final = 20
log = logging.getLogger(__name__)


def build_audit_export(exports: HeadExports) -> JobSchedule:
    """Builds the schedule that exports chain heads hourly to webhooks, the log, and a file if one is set."""

    def export_heads(job: JobChunk[NoArguments]) -> CompletedJob:
        with job.database.open_reader() as session:
            found = [head for head in list_heads(session) if head.sequence]
            told = list_subscribed_tenants(session, WebhookEventType.AUDIT_HEAD)
        for head in found:
            if head.tenant_id in told:
                with job.open_writer() as session:
                    once = f"{head.sequence} {head.hash}"
                    emit_event(
                        session, head.tenant_id, WebhookEventType.AUDIT_HEAD, _to_event(head), once_for=once
                    )
        try:
            exports.write(found)
        except TimeStampFailed as failed:
            raise JobError(
                "TIME_STAMP_FAILED", f"The heads are written without a time stamp: {failed}"
            ) from None
        return CompletedJob({"heads": len(found)})

    kind = RunnableJobType(name="audit.heads", arguments=NoArguments, run=export_heads, concurrency=1)
    return JobSchedule(name=kind.name, every=timedelta(hours=1), job=kind)


def _to_event(head: ChainHead) -> AuditHeadEvent:
    return {"sequence": head.sequence, "hash": head.hash}


def build_audit_verification(writes: Writes) -> JobSchedule:
    """Builds the schedule that verifies every audit chain daily, one tenant a chunk."""
    verifier = Verifier(writes, HELD)

    def verify_next_tenant(job: JobChunk[NoArguments]) -> ContinueJob | CompletedJob:
        after = job.progress.get("after", "")
        with job.database.open_reader() as session:
            known = [state.tenant_id for state in list_tenant_states(session)]
            left = [name for name in verifier.list_tenants(session, known) if name > after]
            found = verifier.verify_tenant(session, left[0]) if left else None
        counts = {name: job.progress.get(name, 0) for name in ("tenants", "faults", "gaps")}
        if found is None:
            return CompletedJob(counts)
        _log_fault(found)
        counts["tenants"] += 1
        counts["faults"] += found.fault_count
        counts["gaps"] += len(found.gaps)
        return ContinueJob({"after": left[0], **counts})

    kind = RunnableJobType(
        name=VERIFY, arguments=NoArguments, run=verify_next_tenant, concurrency=1, lease=timedelta(minutes=2)
    )
    return JobSchedule(name=kind.name, every=timedelta(days=1), job=kind)


def _log_fault(found: Verification) -> None:
    """Logs the first faults of a verification."""
    tenant_id, fault = found.verdict.tenant_id, found.verdict.fault
    if fault is not None:
        log.error("audit chain of %s is broken at event %d: %s", tenant_id, fault.sequence, fault.code)
    wrong: Sequence[tuple[str, str]] = found.changed[:_SHOWN_IN_LOG]
    for resource, code in wrong:
        log.error("audit of %s: %s differs from its audit record: %s", tenant_id, resource, code)
