"""Calibrations drawn from what nodes have measured, under the reference set that ships."""

from service.benchmarks.calibrations import service
from service.benchmarks.calibrations.jobs import DRAW, LEASE, NodeToDraw
from service.evidence.service import reference_curves
from service.kit.jobs.kinds import Done, Job, Kind


def _draw(job: Job[NodeToDraw]) -> Done:
    # Computed outside the write transaction: an embedded database has one writer.
    with job.database.reading() as session:
        reference = reference_curves().calibration
        prepared = service.prepare(session, job.tenant_id, job.arguments.node_id, reference)
    with job.writing() as session:
        drawn = service.store(session, job.tenant_id, prepared)
    return Done({"calibration_ids": list(drawn)})


DRAWING = Kind(name=DRAW.name, arguments=DRAW.arguments, run=_draw, concurrency=1, lease=LEASE)
"""One at a time: of two drawings of a node the later one stands."""
