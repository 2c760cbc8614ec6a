"""Names of providers, as people know them."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def load_provider_names() -> Mapping[str, str]:
    """Returns the names of ``providers.json`` by the ids of offers and token prices."""
    rows = json.loads((files(__package__) / "providers.json").read_bytes())
    return {row["id"]: row["name"] for row in rows}


def get_provider_name(provider: str) -> str:
    """Returns the name of a provider. One that a tenant's own price names is called as written there."""
    return load_provider_names().get(provider, provider)
