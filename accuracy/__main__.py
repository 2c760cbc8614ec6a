"""``python -m accuracy``: the commands of measured rows."""

from accuracy.cli import app

app(prog_name="python -m accuracy")
