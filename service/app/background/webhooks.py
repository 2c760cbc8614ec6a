"""Events become deliveries, one for each webhook that wants them; another thread sends these."""

from service.kit.jobs.events import PUBLISH, EventToPublish
from service.kit.jobs.kinds import Done, Job, Kind
from service.webhooks import service


def _publish(job: Job[EventToPublish]) -> Done:
    with job.writing() as session:
        return Done({"deliveries": service.publish(session, job.tenant_id, job.arguments.event_id)})


PUBLISHING = Kind(name=PUBLISH.name, arguments=PUBLISH.arguments, run=_publish)
