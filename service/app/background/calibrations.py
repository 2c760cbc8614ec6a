"""Calibrations fitted to the measurements of nodes, under the reference set that ships."""

from service.audit.service import Writes
from service.benchmarks.calibration_jobs import DRAW, LEASE, NodeToDraw
from service.calibrations import service
from service.evidence.service import load_reference_curves
from service.kit.jobs.kinds import CompletedJob, JobChunk, RunnableJobType


def build_calibration_kind(writes: Writes) -> RunnableJobType[NodeToDraw]:
    """Builds the kind of job that calibrates a node. One runs at a time; changes are recorded in the audit.

    Of two calibrations of a node the later one stands.
    """

    def calibrate_node(job: JobChunk[NodeToDraw]) -> CompletedJob:
        # Computed outside the write transaction: an embedded database has one writer.
        with job.database.open_reader() as session:
            reference = load_reference_curves().calibration
            prepared = service.prepare_calibrations(session, job.tenant_id, job.arguments.node_id, reference)
        with job.open_writer() as session:
            drawn = service.store_calibrations(session, job.tenant_id, prepared)
            for change in drawn.changes:
                writes.record_own_change(session, job.tenant_id, "draw_calibration", change)
        return CompletedJob({"calibration_ids": list(drawn.ids)})

    return RunnableJobType(
        name=DRAW.name, arguments=DRAW.arguments, run=calibrate_node, concurrency=1, lease=LEASE
    )
