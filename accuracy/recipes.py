"""Published recipes of rows: settings that a source states beside its table, as a list of possible ones.

A list of one entry is a fact; several entries are revisions that differ and are equally possible.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from accuracy.rows import MeasuredRow

Recipe = Mapping[str, Any]


def list_recipes(row: MeasuredRow) -> list[Recipe]:
    """Returns the possible recipes of a row; none where its source states none."""
    try:
        listed = json.loads(row.text.get("recipe_json") or "[]")
    except ValueError:
        return []
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def list_readings(row: MeasuredRow) -> list[MeasuredRow]:
    """Returns the row under each of its recipes of serving, those without speculation first, or itself."""
    serving = [recipe for recipe in list_recipes(row) if _states_workers(recipe)]
    serving.sort(key=lambda recipe: bool(recipe.get("speculative")))
    return [_apply(row, recipe) for recipe in serving] or [row]


def _states_workers(recipe: Recipe) -> bool:
    """True if the recipe says of each side that it has how many workers of how many ranks."""
    sides = [recipe[name] for name in ("prefill", "decode") if recipe.get(name)]
    return "decode" in recipe and all(side.get("workers") and side.get("ranks") for side in sides)


def _apply(row: MeasuredRow, recipe: Recipe) -> MeasuredRow:
    sides = {name: _read_side(recipe[name]) for name in ("prefill", "decode") if recipe.get(name)}
    text = {**row.text, "recipe_json": json.dumps([recipe])}
    return replace(row, layout={**row.layout, **sides}, text=text)


def _read_side(stated: Mapping[str, Any]) -> dict[str, int]:
    """Returns the workers of one side: ranks share requests, or else the heads of attention."""
    ranks, experts = int(stated["ranks"]), int(stated.get("expert_parallel") or 1)
    side = {"workers": int(stated["workers"]), "expert": experts}
    if stated.get("attention_data_parallel"):
        return side | {"tensor": 1, "attention_data": ranks, "moe_tensor": max(1, ranks // experts)}
    return side | {"tensor": ranks, "attention_data": 1}


def get_speculation(row: MeasuredRow) -> tuple[str | None, int | None] | None:
    """Returns method and tokens of speculative decoding if one recipe of serving states them, else None."""
    found = [recipe for recipe in list_recipes(row) if "decode" in recipe]
    if len(found) != 1 or "speculative" not in found[0]:
        return None
    tokens = found[0].get("speculative_tokens")
    return found[0]["speculative"], int(tokens) if tokens else None


def get_recomputation(row: MeasuredRow) -> str | None:
    """Returns the recomputation on which all recipes of training agree, in the terms of questions, or None.

    Recipes that recompute single modules (projections, norms, activations) are nearest to none, those that
    recompute the attention core are selective.
    """
    read = {_read_recomputation(recipe) for recipe in list_recipes(row) if "recomputation" in recipe}
    return next(iter(read)) if len(read) == 1 else None


def _read_recomputation(recipe: Recipe) -> str:
    modules = str(recipe.get("recompute_modules") or "").split(";")
    if recipe["recomputation"] == "selective":
        return "selective" if "core_attn" in modules else "none"
    return str(recipe["recomputation"])
