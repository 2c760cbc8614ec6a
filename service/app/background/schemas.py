"""Requests and answers of background jobs."""

from typing import Annotated, Any, Literal

from pydantic import MISSING, AwareDatetime, Field, JsonValue
from typing_extensions import TypeAliasType

from service.kit.http.pages import NextPageToken, PageQuery
from service.schemas.base import Integer, StrictModel

JobId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
BackgroundJobState = TypeAliasType(
    "BackgroundJobState", Literal["waiting", "running", "done", "cancelled", "dead"]
)
KindName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[a-z._-]+$")]
JobDocument = Annotated[
    dict[str, JsonValue], Field(max_length=500, json_schema_extra={"additionalProperties": True})
]
ShortText = Annotated[str, Field(max_length=500)]


class BackgroundJob(StrictModel):
    """Work that the service does by itself, in short pieces, in any of its processes."""

    id: JobId
    kind: ShortText
    """Kind of the work."""
    state: BackgroundJobState
    """State of the job. A `dead` job has failed too often and waits for an operator; `:retry` runs it
    again."""
    attempt: Integer
    """Number of starts since the last progress."""
    cancel_requested: bool
    """True if the job ends after its present piece."""
    progress: JobDocument
    """Progress of the job, in members that depend on its kind."""
    result: JobDocument
    """Result of the job, once it is done."""
    created_at: AwareDatetime
    due_at: AwareDatetime | MISSING = MISSING
    """Time at which the job continues. While it runs, time at which another process may take it over. Absent
    once it has ended."""
    finished_at: AwareDatetime | MISSING = MISSING
    """Time at which the job ended."""
    error_code: ShortText | MISSING = MISSING
    """Code of the last failure."""
    error_summary: ShortText | MISSING = MISSING
    """Description of the last failure."""


class BackgroundJobPage(StrictModel):
    """A page of jobs."""

    items: list[BackgroundJob]
    """Jobs, newest first."""
    next_page_token: NextPageToken


class BackgroundJobQuery(PageQuery):
    """Filters of jobs."""

    kind: Annotated[list[KindName], Field(max_length=50)] = []
    """Kinds to list."""
    state: Annotated[list[BackgroundJobState], Field(max_length=5)] = []
    """States to list."""


def to_job_response(row: Any) -> dict[str, Any]:  # noqa: ANN401
    """Returns a job as callers see it."""
    members = {name: getattr(row, name) for name in BackgroundJob.model_fields}
    return {name: value for name, value in members.items() if value is not None}
