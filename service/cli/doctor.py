"""The command that says what is misconfigured."""

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from service.app.doctor import Check


def doctor(
    *,
    online: Annotated[bool, typer.Option(help="Ask the issuer of tokens for its keys.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check the settings, files and services that `ironlaw serve` would use.

    The exit status is 1 if something is wrong. Secrets are never printed.
    """
    checks = _examine(is_online=online)
    if as_json:
        typer.echo(json.dumps({"checks": [check._asdict() for check in checks]}, indent=2))
    else:
        for name, state, detail, advice in checks:
            typer.echo(f"{state:<7} {name}: {detail}{': ' if advice else ''}{advice}")
    raise typer.Exit(any(check.state == "error" for check in checks))


def _examine(*, is_online: bool) -> "list[Check]":
    """Returns every check; settings that cannot be read at all are the only one."""
    from pydantic import ValidationError  # noqa: PLC0415  # needs the extra `server`

    from service.app.doctor import Check, examine  # noqa: PLC0415
    from service.app.settings import Settings  # noqa: PLC0415
    from service.cli.operator import describe_operator_error  # noqa: PLC0415

    try:
        settings = Settings()
    except ValidationError as error:
        return [Check("settings", "error", describe_operator_error(error) or "", "correct these variables")]
    return list(examine(settings, os.environ, is_online=is_online))
