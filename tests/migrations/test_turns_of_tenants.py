"""What migration 0034 makes of jobs that an older version has asked for."""

from alembic import command
from sqlalchemy import insert, select

from service.app.storage import build_alembic_config
from service.kit.jobs import leases, repository
from service.kit.jobs.kinds import CompletedJob, RunnableJobType
from service.kit.jobs.schedules import NoArguments
from service.kit.jobs.tables import JobRow

WORK = RunnableJobType(name="work", arguments=NoArguments, run=lambda _: CompletedJob())


def ask(database, tenant_id, number):
    """Ask for a job as an older version does, which knows no column of turns."""
    with database.open_writer() as session:
        at = leases.read_database_time(session)
        values = {
            "tenant_id": tenant_id, "id": f"{tenant_id} {number}", "kind": "work", "effect_key": str(number),
            "arguments": {}, "progress": {}, "result": {}, "cancel_requested": False, "created_at": at,
            "state": "waiting", "due_at": at, "attempt": 0, "fencing_token": 0,
        }  # fmt: skip
        session.execute(insert(JobRow.__table__).values(**values))


def claim(database):
    with database.open_writer() as session:
        return repository.claim_job(session, WORK).tenant_id


def test_jobs_of_an_older_version_are_claimed_in_turns(databases):
    database = databases.loaded()
    command.downgrade(build_alembic_config(database), "0033")
    for number in range(4):
        ask(database, "a", number)
    command.upgrade(build_alembic_config(database), "head")
    assert claim(database) == "a"
    ask(database, "b", 0)
    assert [claim(database) for _ in range(3)] == ["b", "a", "a"]
    command.downgrade(build_alembic_config(database), "0033")
    with database.open_reader() as session:
        assert len(session.scalars(select(JobRow.id).where(JobRow.kind == "work")).all()) == 5
