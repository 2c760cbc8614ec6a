"""Stretches of long runs: what each has counted, one to a line of a committed file, so that they add up."""

import json
from pathlib import Path
from typing import Any

Stretch = dict[str, Any]


def list_stretches(path: Path) -> list[Stretch]:
    """The stretches that were kept, the oldest first."""
    return json.loads(path.read_text()) if path.exists() else []


def keep_stretch(path: Path, stretch: Stretch) -> list[Stretch]:
    """Keep one more stretch; all of them."""
    kept = [*list_stretches(path), stretch]
    path.write_text("".join(["[\n", ",\n".join(map(json.dumps, kept)), "\n]\n"]))
    return kept
