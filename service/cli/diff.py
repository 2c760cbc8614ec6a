"""The `diff` command: effects of changed question files, for reviewers at a terminal or of a pull request."""

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, cast

import typer

from service.cli import plan as plan_cli

if TYPE_CHECKING:
    from service.cli.diff_figures import AnsweredQuestion, AnswerQuestion
    from service.cli.diff_questions import FileQuestion

REFUSED: Final = 1
ABOVE_LIMIT: Final = 3
_LIMIT: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?(%|[A-Z]{3})")


class DiffFormat(StrEnum):
    """Format of the comparison."""

    MARKDOWN = "markdown"
    JSON = "json"


class CostLimit(NamedTuple):
    """The limit of `--fail-above`: the most that all files together may cost more."""

    amount: Decimal
    unit: str
    """A currency code, or %."""


def diff(
    base: Annotated[Path, typer.Argument(help="Question as JSON, or directory of them, before.")],
    head: Annotated[Path, typer.Argument(help="The same after the change; either may be absent.")],
    *,
    url: Annotated[
        str | None,
        typer.Option(help=f"Address of a running service; its key is read from {plan_cli.KEY_VARIABLE}."),
    ] = None,
    as_format: Annotated[DiffFormat, typer.Option("--format", help="Output format.")] = DiffFormat.MARKDOWN,
    fail_above: Annotated[
        str | None,
        typer.Option(help='Exit with 3 if the total cost rises by more, such as "10%" or "5000 USD".'),
    ] = None,
) -> None:
    """Compare the figures of changed questions before and after, and attribute each difference to settings.

    The figures are cost, time, energy, power, emissions and others. A file is a question of an estimate, a
    body of POST /v1/quotes with operation and request, or the question of a plan. Exits with 1 if a question
    has no answer after the change, and with 3 above the limit.
    """
    from service.cli.diff_figures import compare_pair, list_unknown, sum_totals  # noqa: PLC0415  # others start faster without
    from service.cli.diff_markdown import render_markdown  # noqa: PLC0415
    from service.cli.diff_questions import UnreadableFileError, list_pairs  # noqa: PLC0415

    limit = _parse_limit(fail_above)
    try:
        changed = list(list_pairs(base, head))
    except UnreadableFileError as error:
        typer.echo(f"ironlaw: {error}", err=True)
        raise typer.Exit(REFUSED) from None
    ask = (_build_remote_ask(url) if url else _build_local_ask()) if changed else None
    files = [compare_pair(pair, ask) for pair in changed] if ask else []
    found: dict[str, Any] = {"files": files, "totals": sum_totals(files), "unknown": list_unknown(files)}
    if limit is not None:
        found["exceeds"] = _is_exceeded(limit, found)
        found["limit"] = (
            f"{'Above' if found['exceeds'] else 'Within'} the limit of {limit.amount} {limit.unit} more."
        )
    typer.echo(
        json.dumps(found, indent=2) if as_format == DiffFormat.JSON else render_markdown(found), nl=False
    )
    if any("after" in file.get("refused", {}) for file in files):
        raise typer.Exit(REFUSED)
    if found.get("exceeds"):
        raise typer.Exit(ABOVE_LIMIT)


def _parse_limit(text: str | None) -> CostLimit | None:
    if text is None:
        return None
    found = _LIMIT.fullmatch(text.strip())
    if not found:
        raise typer.BadParameter('--fail-above takes a share or an amount, such as "10%" or "5000 USD"')
    return CostLimit(Decimal(found[1]), found[2])


def _is_exceeded(limit: CostLimit, found: Mapping[str, Any]) -> bool:
    """Returns true if the files cost more than the limit allows. An unknown cost exceeds it."""
    if found["unknown"]:
        return True
    sums: Sequence[Mapping[str, str]] = found["totals"]
    for each in sums:
        more, old = Decimal(each["difference"]), Decimal(each["before"])
        if limit.unit == "%":
            if more > limit.amount / 100 * old:
                return True
        elif each["currency_code"] != limit.unit:
            if more > 0:  # amounts in another currency cannot be converted here
                return True
        elif more > limit.amount:
            return True
    return False


def _build_local_ask() -> "AnswerQuestion":
    """Builds a function that answers from the catalog of the data directory, or from the shipped one."""
    from service.cli.diff_figures import QuestionRefusedError, extract_plan_figures, extract_quote_figures  # noqa: PLC0415

    catalog = plan_cli.load_local_catalog()

    def ask_local(asked: "FileQuestion") -> "AnsweredQuestion":
        text = json.dumps(asked.question).encode()
        try:
            if asked.operation == "plan":
                return extract_plan_figures(plan_cli.search_locally(text, None, _ignore_progress))
            return extract_quote_figures(_quote_question(asked, catalog))
        except plan_cli.PlanRefusedError as refused:
            raise QuestionRefusedError(
                *(line.removeprefix("ironlaw: ") for line in refused.lines)
            ) from refused

    return ask_local


def _ignore_progress(_done: int, _total: int) -> None:
    """Ignores the progress, which is not shown here."""


def _quote_question(asked: "FileQuestion", catalog: Any) -> Mapping[str, Any]:  # noqa: ANN401  # the snapshot, which needs the server
    """Returns the quote of a question, without storing it."""
    from pydantic import ValidationError  # noqa: PLC0415
    from pydantic_core import from_json, to_json  # noqa: PLC0415

    from service.kit.http.problems import FieldError, Problem, Unprocessable  # noqa: PLC0415
    from service.kit.http.shapes import load_shape  # noqa: PLC0415
    from service.kit.http.validation import build_body_problem  # noqa: PLC0415
    from service.quotes.schemas import QuotedOperation  # noqa: PLC0415
    from service.quotes.snapshot import (  # noqa: PLC0415
        QUESTIONS,
        QuoteSubject,
        build_quote,
        is_owning_devices,
        project_questions,
    )

    name = asked.operation.replace("-", "_")
    text = json.dumps(asked.question).encode()
    try:
        if name not in QUESTIONS:
            wrong = FieldError("/operation", "UNKNOWN_OPERATION", f"must be one of {', '.join(QUESTIONS)}")
            raise Unprocessable("", wrong)
        try:
            question = QUESTIONS[name].model_validate_json(text)
        except ValidationError as error:
            raise build_body_problem(error, text, load_shape(QUESTIONS[name])) from error
        operation = cast("QuotedOperation", asked.operation)
        asks = QuoteSubject(operation, "", project_questions(name, question), is_owning_devices(question))
        frozen = build_quote(asks, catalog, lambda sources: [{} for _ in sources])
    except Problem as problem:
        raise plan_cli.to_refusal(problem) from problem
    quote: Mapping[str, Any] = from_json(
        to_json(
            {
                **frozen.summary,
                **frozen.document,
                "catalog_revision": frozen.catalog_revision,
                "method_version": frozen.method_version,
            }
        )
    )
    return quote


def _build_remote_ask(url: str) -> "AnswerQuestion":
    """Builds a function that asks a running service, which stores nothing of it."""
    from service.cli.diff_figures import QuestionRefusedError, extract_plan_figures, extract_quote_figures  # noqa: PLC0415

    def ask_remote(asked: "FileQuestion") -> "AnsweredQuestion":
        text = json.dumps(asked.question).encode()
        try:
            if asked.operation == "plan":
                return extract_plan_figures(plan_cli.ask_service(url, text, _ignore_progress, is_kept=False))
            body = {"operation": asked.operation, "name": "ironlaw diff", "request": asked.question}
            with plan_cli.open_client(url) as client:
                response = client.post("/v1/quotes", params={"validate_only": "true"}, json=body)
            return extract_quote_figures(plan_cli.read_answer(response))
        except plan_cli.PlanRefusedError as refused:
            raise QuestionRefusedError(
                *(line.removeprefix("ironlaw: ") for line in refused.lines)
            ) from refused

    return ask_remote
