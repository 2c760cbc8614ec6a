"""Publication of events as deliveries, one for each subscribed webhook; another thread sends these."""

from service.kit.jobs.events import PUBLISH, EventToPublish
from service.kit.jobs.kinds import CompletedJob, JobChunk, RunnableJobType
from service.webhooks import service


def _publish_event(job: JobChunk[EventToPublish]) -> CompletedJob:
    with job.open_writer() as session:
        return CompletedJob(
            {"deliveries": service.publish_event(session, job.tenant_id, job.arguments.event_id)}
        )


PUBLISHING = RunnableJobType(name=PUBLISH.name, arguments=PUBLISH.arguments, run=_publish_event)
