"""Calibrations drawn from what nodes have measured, under the reference set that ships."""

from service.audit.service import Writes
from service.benchmarks.calibration_jobs import DRAW, LEASE, NodeToDraw
from service.calibrations import service
from service.evidence.service import reference_curves
from service.kit.jobs.kinds import Done, Job, Kind


def drawing(writes: Writes) -> Kind[NodeToDraw]:
    """One at a time: of two drawings of a node the later one stands. What changes by it is recorded."""

    def run(job: Job[NodeToDraw]) -> Done:
        # Computed outside the write transaction: an embedded database has one writer.
        with job.database.reading() as session:
            reference = reference_curves().calibration
            prepared = service.prepare(session, job.tenant_id, job.arguments.node_id, reference)
        with job.writing() as session:
            drawn = service.store(session, job.tenant_id, prepared)
            for change in drawn.changes:
                writes.note(session, job.tenant_id, "draw_calibration", change)
        return Done({"calibration_ids": list(drawn.ids)})

    return Kind(name=DRAW.name, arguments=DRAW.arguments, run=run, concurrency=1, lease=LEASE)
