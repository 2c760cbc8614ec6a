"""The commands of a worker: join, run, say how it is, measure without a service."""

import typer

app = typer.Typer(no_args_is_help=True, help="Work for the service.")
