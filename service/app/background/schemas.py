"""Shapes of background jobs."""

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
    """Work that the service does by itself, in short pieces, by any of its processes."""

    id: JobId
    kind: ShortText
    """What kind of work it is."""
    state: BackgroundJobState
    """A `dead` job has failed too often and waits for somebody to look; `:retry` lets it run again."""
    attempt: Integer
    """Starts since the last progress."""
    cancel_requested: bool
    """Whether it ends at the end of its piece."""
    progress: JobDocument
    """How far it is, in terms of its kind."""
    result: JobDocument
    """What it brought about, once it is done."""
    created_at: AwareDatetime
    due_at: AwareDatetime | MISSING = MISSING
    """When it goes on: while it runs, when another process may take it over; absent once it has ended."""
    finished_at: AwareDatetime | MISSING = MISSING
    """When it ended."""
    error_code: ShortText | MISSING = MISSING
    """What failed the last time."""
    error_summary: ShortText | MISSING = MISSING
    """What failed the last time, in words."""


class BackgroundJobPage(StrictModel):
    """A page of jobs."""

    items: list[BackgroundJob]
    """Jobs, the newest first."""
    next_page_token: NextPageToken


class BackgroundJobQuery(PageQuery):
    """Filters of jobs."""

    kind: Annotated[list[KindName], Field(max_length=50)] = []
    """Kinds to list."""
    state: Annotated[list[BackgroundJobState], Field(max_length=5)] = []
    """States to list."""


def to_job_response(row: Any) -> dict[str, Any]:  # noqa: ANN401
    """A job as callers see it."""
    members = {name: getattr(row, name) for name in BackgroundJob.model_fields}
    return {name: value for name, value in members.items() if value is not None}
