"""Operations on background jobs."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query, Response

from service.app.background.schemas import (
    BackgroundJob,
    BackgroundJobPage,
    BackgroundJobQuery,
    JobId,
    to_job_response,
)
from service.audit.service import Read, Write, WriteOutcome, WriteRequest
from service.kit.database.engine import Writer
from service.kit.http.pages import NEWEST_FIRST
from service.kit.http.web import api_router, json_response
from service.kit.jobs import repository
from service.kit.jobs.tables import JobRow

router = api_router("/v1/background-jobs", tag="background-jobs")
JobPath = Annotated[JobId, Path(description="Id of the job.")]


@router.get("", summary="List background jobs", response_model=BackgroundJobPage)
def list_background_jobs(read: Read, query: Annotated[BackgroundJobQuery, Query()]) -> Response:
    """Lists the tenant's background jobs, the newest first."""
    page = read.page(query, NEWEST_FIRST, "background-jobs", query.kind, query.state)
    with read.session() as session:
        rows = repository.list_page(
            session,
            read.tenant_id,
            kinds=query.kind,
            states=query.state,
            after=page.after,
            limit=page.limit,
        )
        return json_response(page.to_response([to_job_response(row) for row in rows]))


@router.get("/{id:name}", summary="Get a background job", response_model=BackgroundJob)
def get_background_job(read: Read, id: JobPath) -> Response:
    """Returns a job with its progress."""
    with read.session() as session:
        return json_response(to_job_response(repository.get_job(session, read.tenant_id, id)))


@router.post("/{id:name}:cancel", summary="Cancel a background job", response_model=BackgroundJob)
def cancel_background_job(write: Write, id: JobPath) -> Response:
    """Cancels a job. A running job ends after its present piece, any other at once."""
    return _change(write, id, repository.cancel_job)


@router.post("/{id:name}:retry", summary="Retry a dead background job", response_model=BackgroundJob)
def retry_background_job(write: Write, id: JobPath) -> Response:
    """Runs a dead job again, from the point that it reached."""
    return _change(write, id, repository.retry_job)


def _change(write: WriteRequest, job_id: str, do: Callable[[Writer, str, str], JobRow]) -> Response:
    def change(session: Writer) -> WriteOutcome:
        before = to_job_response(repository.get_job(session, write.tenant_id, job_id))
        after = to_job_response(do(session, write.tenant_id, job_id))
        return WriteOutcome(resource=f"background-jobs/{job_id}", body=after, before=before, after=after)

    return write.run(None, change)
