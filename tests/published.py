"""Published configurations, as the shipped catalog holds them."""

import json
from functools import cache
from pathlib import Path

import service

_SHIPPED = Path(service.__file__).parent / "catalog" / "models" / "shipped.json"


@cache
def _configs():
    return {row["id"]: row["config"] for row in json.loads(_SHIPPED.read_text()) if "config" in row}


def published_config(model_id):
    """The config.json of a model of the catalog."""
    return dict(_configs()[model_id])
