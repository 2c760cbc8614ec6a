"""The recipes: every command is run, and every figure lies in its published range."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli.main import app
from service.estimates.service import ESTIMATES
from service.plans.service import estimate_plan
from service.schemas.plans import PlanRequest
from tests.asking import shipped

PAGE = (Path(__file__).parents[1] / "docs" / "recipes.md").read_text()
RECIPE = re.compile(r"^## (.+?)\n\n```sh\n(.+?)\n```\n\n(\| figure .+?)\n(?:\n|\Z)", re.MULTILINE | re.DOTALL)
RECIPES = RECIPE.findall(PAGE)
FIGURE = re.compile(r"^\| `([a-z0-9_.]+)` \| (\S+)(?: to (\S+))? \| (.+) \|$", re.MULTILINE)


def answer_command(command, data_dir, monkeypatch):
    if command.startswith("curl "):
        operation = re.search(r"/v1/(\S+)", command)[1]
        body = json.loads(command.split(" -d '", 1)[1].removesuffix("'"))
        if operation == "plans":
            return estimate_plan(PlanRequest.model_validate_json(json.dumps(body)), shipped())
        asked, estimator = ESTIMATES[operation.removeprefix("estimates/")]
        return estimator(asked.model_validate_json(json.dumps(body)), shipped())
    monkeypatch.setenv("IRONLAW_DATA_DIR", str(data_dir))
    monkeypatch.delenv("IRONLAW_DATABASE_URL", raising=False)
    run = CliRunner().invoke(app, [*shlex.split(command)[1:], "--json"])
    answer = json.loads(run.stdout)
    assert run.exit_code == (0 if answer["fit"].get("fits", True) else 3)
    return answer


def read_figure(answer, path):
    value = answer
    for name in path.split("."):
        value = value[int(name)] if name.isdigit() else value[name]
    if isinstance(value, dict):
        value = value["value"] if "value" in value else value["amount"]
    return value if isinstance(value, bool) else float(value)


def test_thirty_questions_have_a_recipe():
    assert len(RECIPES) == PAGE.count("\n## ") >= 30
    assert f"\n{len(RECIPES)} common questions" in PAGE


@pytest.mark.parametrize(("title", "command", "table"), RECIPES, ids=[recipe[0] for recipe in RECIPES])
def test_a_recipe_is_answered_within_the_published_range(title, command, table, tmp_path, monkeypatch):
    answer = answer_command(command, tmp_path, monkeypatch)
    figures = FIGURE.findall(table)
    assert len(figures) == table.count("\n") - 1, title
    for path, low, high, _ in figures:
        found = read_figure(answer, path)
        if low in ("true", "false"):
            assert found is (low == "true"), path
        else:
            assert float(low) <= found <= float(high), f"{path}: {found}"
