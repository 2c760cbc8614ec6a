"""Shapes of background jobs."""

from typing import Annotated, Any, Literal

from pydantic import MISSING, AwareDatetime, Field, JsonValue
from typing_extensions import TypeAliasType

from service.kit.http.pages import NextPageToken, PageQuery
from service.schemas.base import Input, Integer

JobId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
JobState = TypeAliasType("JobState", Literal["waiting", "running", "done", "cancelled", "dead"])
KindName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[a-z._-]+$")]
Document = Annotated[
    dict[str, JsonValue], Field(max_length=500, json_schema_extra={"additionalProperties": True})
]
Word = Annotated[str, Field(max_length=500)]


class BackgroundJob(Input):
    """Work that the service does by itself, in short pieces, by any of its processes."""

    id: JobId
    kind: Word
    """What kind of work it is."""
    state: JobState
    """A `dead` job has failed too often and waits for somebody to look; `:retry` lets it run again."""
    attempt: Integer
    """Starts since the last progress."""
    cancel_requested: bool
    """Whether it ends at the end of its piece."""
    progress: Document
    """How far it is, in terms of its kind."""
    result: Document
    """What it brought about, once it is done."""
    created_at: AwareDatetime
    due_at: AwareDatetime | MISSING = MISSING
    """When it goes on: while it runs, when another process may take it over; absent once it has ended."""
    finished_at: AwareDatetime | MISSING = MISSING
    """When it ended."""
    error_code: Word | MISSING = MISSING
    """What failed the last time."""
    error_summary: Word | MISSING = MISSING
    """What failed the last time, in words."""


class BackgroundJobPage(Input):
    """A page of jobs."""

    items: list[BackgroundJob]
    """Jobs, the newest first."""
    next_page_token: NextPageToken


class BackgroundJobQuery(PageQuery):
    """Filters of jobs."""

    kind: Annotated[list[KindName], Field(max_length=50)] = []
    """Kinds to list."""
    state: Annotated[list[JobState], Field(max_length=5)] = []
    """States to list."""


def shown_job(row: Any) -> dict[str, Any]:  # noqa: ANN401
    """A job as callers see it."""
    members = {name: getattr(row, name) for name in BackgroundJob.model_fields}
    return {name: value for name, value in members.items() if value is not None}
