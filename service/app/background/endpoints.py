"""Operations on background jobs."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from service.app.background.schemas import (
    BackgroundJob,
    BackgroundJobPage,
    BackgroundJobQuery,
    JobId,
    shown_job,
)
from service.audit.service import Call, Caller, Change, WriteCall, Writes
from service.kit.database.engine import Database, Writer
from service.kit.http.pages import PageTokens
from service.kit.http.web import api_router, json_response
from service.kit.jobs import repository
from service.kit.jobs.tables import JobRow

router = api_router("/v1/background-jobs", tag="background-jobs")


class JobsFace:
    """Reads and writes of the jobs of one database, as responses."""

    def __init__(self, database: Database, *, writes: Writes, tokens: PageTokens) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens

    def list(self, tenant_id: str, query: BackgroundJobQuery) -> Response:
        """A page of a tenant's jobs."""
        filters = json.dumps(["background-jobs", tenant_id, query.kind, query.state])
        after = self._tokens.decode(query.page_token, filters) if query.page_token else None
        with self._database.reading() as session:
            rows = repository.page(
                session,
                tenant_id,
                kinds=query.kind,
                states=query.state,
                after=(datetime.fromisoformat(after[0]), after[1]) if after else None,
                limit=query.limit + 1,
            )
        shown = [shown_job(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def get(self, tenant_id: str, job_id: str) -> Response:
        """One job of a tenant."""
        with self._database.reading() as session:
            return json_response(shown_job(repository.get(session, tenant_id, job_id)))

    def change(self, call: Call, job_id: str, do: Callable[[Writer, str, str], JobRow]) -> Response:
        """A job that is told to end, or to run again."""
        tenant_id = call.subject.tenant_id

        def changed(session: Writer) -> Change:
            before = shown_job(repository.get(session, tenant_id, job_id))
            after = shown_job(do(session, tenant_id, job_id))
            return Change(resource=f"background-jobs/{job_id}", body=after, before=before, after=after)

        return self._writes.run(call, None, changed)


def _face(request: Request) -> JobsFace:
    face: JobsFace = request.app.state.jobs
    return face


Face = Annotated[JobsFace, Depends(_face)]
JobPath = Annotated[JobId, Path(description="Id of the job.")]


@router.get("", response_model=BackgroundJobPage)
def list_background_jobs(
    face: Face, caller: Caller, query: Annotated[BackgroundJobQuery, Query()]
) -> Response:
    """A page of the tenant's jobs, the newest first."""
    return face.list(caller.tenant_id, query)


@router.get("/{id:name}", response_model=BackgroundJob)
def get_background_job(face: Face, caller: Caller, id: JobPath) -> Response:
    """A job, with its progress."""
    return face.get(caller.tenant_id, id)


@router.post("/{id:name}:cancel", response_model=BackgroundJob)
def cancel_background_job(face: Face, call: WriteCall, id: JobPath) -> Response:
    """Let a job end: one that runs at the end of its piece, any other at once."""
    return face.change(call, id, repository.cancel)


@router.post("/{id:name}:retry", response_model=BackgroundJob)
def retry_background_job(face: Face, call: WriteCall, id: JobPath) -> Response:
    """Let a dead job run again, from where it stands."""
    return face.change(call, id, repository.retry)
