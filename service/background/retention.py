"""What is deleted by its age, and when; docs/retention.md says why it was kept."""

from collections.abc import Callable
from datetime import timedelta

from service.auth.service import expire_keys
from service.kit import idempotency
from service.kit.database import Writer
from service.kit.jobs.kinds import Done, Job, Kind
from service.kit.jobs.schedules import Nothing, Schedule
from service.nodes.service import expire_tokens
from service.plans.stored import expire as expire_plans


def _expiry(name: str, every: timedelta, expire: Callable[[Writer], int]) -> Schedule:
    def run(job: Job[Nothing]) -> Done:
        with job.writing() as session:
            return Done({"deleted": expire(session)})

    kind = Kind(name=name, arguments=Nothing, run=run, concurrency=1)
    return Schedule(name=name, every=every, job=kind)


EXPIRIES = (
    _expiry("idempotency-keys.expire", timedelta(hours=1), idempotency.expire),
    _expiry("api-keys.expire", timedelta(days=1), expire_keys),
    _expiry("enrolment-tokens.expire", timedelta(days=1), expire_tokens),
    _expiry("plans.expire", timedelta(days=1), expire_plans),
)
