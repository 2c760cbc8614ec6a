"""Constants fitted to rows of which it is known what made them, and the split that the fit is tried on."""

import copy
import json
import statistics
from dataclasses import replace
from functools import reduce
from itertools import islice
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from typer.testing import CliRunner

from accuracy import fitting
from accuracy.cli import app
from accuracy.fitting import (
    FitConstant,
    FittedConstants,
    FittingProblem,
    FitValidation,
    constants_of,
    fit,
    held_out,
    problem_of,
    with_fitted,
    with_values,
)
from accuracy.folds import FOLDS, committed_split, deal, fold_of, group_of
from accuracy.metrics import METRIC_UNITS
from accuracy.rows import read_rows
from accuracy.scoring import ask, percentile, score, score_held_out, score_row
from accuracy.spreads import FamilyRatios, residuals, rounded, tail
from service.estimates.service import ESTIMATES
from service.evidence.service import load_shipped_document, parse_curves
from service.evidence.snapshot import build_shipped_snapshot
from tests.accuracy.measured import write

CATALOG = build_shipped_snapshot()
ESTIMATORS = {name: estimate.estimator for name, estimate in ESTIMATES.items()}
SHARE = 1 / 3
"""Where in its range each constant of the made rows lies."""


def under(curves):
    return replace(CATALOG, curves=curves)


def cases():
    """Training runs of several models, layouts and batches on two devices."""
    for model in ("llama-2-7b", "llama-2-13b", "llama-3.1-8b", "qwen3-8b", "mistral-7b"):
        for tensor, micro, recomputation in ((1, 1, "full"), (2, 2, "none"), (4, 4, "full"), (8, 1, "none")):
            yield {
                "id": f"{model}-{tensor}",
                "run_id": f"{model}-{tensor}",
                "model_id": model,
                "accelerator_id": "a100-sxm-80gb" if tensor < 4 else "h100-sxm",
                "layout_json": json.dumps({"tensor": tensor, "data": 16 // tensor, "sharding": "zero_1"}),
                "batch_json": json.dumps({"micro_batch_size": micro, "gradient_accumulation_steps": 4}),
                "recomputation": recomputation,
            }


def made(path):
    """Rows as they would be measured if every constant lay at :data:`SHARE` of its range."""
    document = load_shipped_document()
    constants = list(constants_of(document))
    truth = [constant.low + SHARE * (constant.high - constant.low) for constant in constants]
    catalog = under(parse_curves(with_values(document, constants, truth)))
    asked = ask(read_rows(write(path / "cases.csv", *cases()), METRIC_UNITS).rows, catalog)
    rows = []
    for one, case in zip(asked, cases(), strict=True):
        size = score_row(one, catalog, ESTIMATORS).figure.value
        rows.append(case | {"value": str(size), "value_si": repr(size)})
    return write(path / "made.csv", *rows), dict(zip(constants, truth, strict=True))


def problem(path):
    rows = read_rows(path, METRIC_UNITS).rows
    return problem_of(load_shipped_document(), ask(rows, CATALOG), ESTIMATORS, under)


class Commanded(NamedTuple):
    """Made rows, what ``accuracy fit`` found of them, and the files that it wrote."""

    path: Path
    truth: dict[FitConstant, float]
    problem: FittingProblem
    fitted: FittedConstants
    tried: FitValidation
    document: Any
    split: dict[str, int]


@pytest.fixture(scope="module")
def commanded(tmp_path_factory):
    """The command is run once: its six fits take most of the time of these tests."""
    folder = tmp_path_factory.mktemp("fitted")
    path, truth = made(folder)
    out, split = folder / "curves.json", folder / "folds.json"
    with patch.object(fitting, "fitted_document", wraps=fitting.fitted_document) as written:
        result = CliRunner().invoke(app, ["fit", str(path), "--out", str(out), "--split", str(split)])
    assert result.exit_code == 0, result.output
    given, fitted, tried, _ = written.call_args.args
    return Commanded(
        path, truth, given, fitted, tried, json.loads(out.read_text()), json.loads(split.read_text())
    )


def test_known_constants_are_recovered(commanded):
    """Every constant that moves the made rows by itself comes back, and the rows with it."""
    given, fitted, truth = commanded.problem, commanded.fitted, commanded.truth
    everything = range(len(given.asked))
    assert fitted.rows == 20
    assert fitted.groups == 10
    errors = given.errors(fitted.values, everything)
    assert np.median(np.abs(errors)) < 0.005
    start = given.errors([constant.prior for constant in given.constants], everything)
    assert np.median(np.abs(errors)) < np.median(np.abs(start)) / 5
    weightiest = max(range(len(given.constants)), key=lambda place: pull(given, place, everything))
    constant = given.constants[weightiest]
    found = fitted.values[weightiest]
    assert found == pytest.approx(truth[constant], abs=0.1 * (constant.high - constant.low))


def pull(given, place, rows):
    """How far a constant moves the rows over its range."""
    ends = []
    for share in (0.01, 0.99):
        values = [constant.prior for constant in given.constants]
        constant = given.constants[place]
        values[place] = constant.low + share * (constant.high - constant.low)
        ends.append(given.errors(values, rows))
    return float(np.median(np.abs(ends[1] - ends[0])))


def test_a_fit_is_the_same_to_the_digit_each_time(commanded):
    again = fit(problem(commanded.path), range(20))
    assert again == commanded.fitted
    assert all(value == rounded(value) for value in again.values)


def test_no_constant_leaves_its_range(tmp_path):
    """Rows ten times as large as anything estimated pull every constant to its end, and no further."""
    few = islice(cases(), 8)
    given = problem(write(tmp_path / "rows.csv", *({**case, "value_si": "9e12"} for case in few)))
    fitted = fit(given, range(8))
    for constant, value in zip(given.constants, fitted.values, strict=True):
        assert constant.low <= value <= constant.high


def test_every_row_is_tried_by_constants_that_never_saw_its_group(commanded):
    given, split, tried = commanded.problem, commanded.split, commanded.tried
    assert len(tried.scored) == 20
    assert len(tried.folds) == FOLDS
    for place, fold in enumerate(tried.folds):
        inside = [one for one in given.asked if fold_of(group_of(one.row), split) != place]
        assert fold.rows == len(inside)
    assert np.median([abs(one.error) for one in tried.scored]) < 0.01
    spread = residuals(tried.scored)
    assert [residual.family for residual in spread] == ["training_memory"]
    assert spread[0].low <= 1.0 + 1e-3
    assert spread[0].high >= 1.0 - 1e-3


def test_groups_are_dealt_whole_and_evenly_and_stay_where_they_are(tmp_path):
    rows = read_rows(write(tmp_path / "rows.csv", *cases()), METRIC_UNITS).rows
    split = deal(rows, {})
    assert len(split) == 10
    assert sorted(list(split.values()).count(fold) for fold in range(FOLDS)) == [2, 2, 2, 2, 2]
    assert deal(reversed(rows), {}) == split
    known = {group_of(rows[0]): 4}
    assert deal(rows, known)[group_of(rows[0])] == 4
    assert all(len(group) == 16 for group in split)


def test_a_group_that_was_never_dealt_has_a_fold_all_the_same(tmp_path):
    row = read_rows(write(tmp_path / "rows.csv", {}), METRIC_UNITS).rows[0]
    group = group_of(row)
    assert fold_of(group, {}) == int(group, 16) % FOLDS
    assert fold_of(group, {group: 3}) == 3


def test_the_committed_split_holds_digests_and_folds_only():
    for group, fold in committed_split().items():
        assert len(group) == 16
        int(group, 16)
        assert fold in range(FOLDS)


def test_a_constant_states_its_range_and_what_it_serves():
    document = {
        "free": {"value": 1.0, "low": 0.5, "high": 2.0, "source": ""},
        "share": {"value": 0.3, "prior": 0.2, "range": [0, 1], "metrics": ["fits", "peak_memory_per_gpu"]},
        "training_memory": {
            "context": {"low": 1e8, "value": 2e8, "high": 3e8},
            "total": {"low": 1, "high": 2},
        },
        "list": [{"deep": {"value": 5, "range": [1, 9], "metrics": ["kv_cache_tokens"]}}],
    }
    served = frozenset({"peak_memory_per_gpu"})
    assert list(constants_of(document)) == [
        FitConstant(("share",), 0.2, 0.0, 1.0, served),
        FitConstant(("training_memory", "context"), 2e8, 1e8, 3e8, served),
        FitConstant(("list", 0, "deep"), 5.0, 1.0, 9.0, frozenset({"kv_cache_tokens"})),
    ]
    changed = with_values(document, list(constants_of(document)), [0.12345678, 2.5e8, 3.0])
    assert changed["share"]["value"] == 0.123457
    assert changed["share"]["prior"] == 0.2
    assert document["share"]["value"] == 0.3


def test_a_habit_of_software_names_it():
    document = {"steps": {"lost_share/fsdp": {"value": 0.1, "low": 0, "high": 1}}}
    (constant,) = constants_of(document)
    assert (constant.name, constant.software) == ("steps.lost_share/fsdp", "fsdp")


def test_a_constant_that_was_fitted_and_is_gone_is_not_judged_in_sample():
    document = copy.deepcopy(load_shipped_document())
    del document["calibration"]["steps"]["gather_overlap"]
    with pytest.raises(ValueError, match="gather_overlap"):
        held_out(document, 0)


def test_a_pooled_constant_is_the_median_of_those_of_frameworks():
    document = copy.deepcopy(load_shipped_document())
    steps = document["calibration"]["steps"]
    assert "calibration.steps.lost_share" not in {constant.name for constant in constants_of(document)}
    own = {name: entry["value"] for name, entry in steps.items() if name.startswith("lost_share/")}
    assert steps["lost_share"]["value"] == statistics.median(own.values())
    highest = max(own, key=own.get)
    changed = with_fitted(document, {f"calibration.steps.{highest}": 0.0})
    lower = sorted({**own, highest: 0.0}.values())
    assert changed["calibration"]["steps"]["lost_share"]["value"] == lower[len(lower) // 2]


def test_the_command_writes_values_that_say_where_they_came_from(commanded):
    document, split = commanded.document, commanded.split
    asked = (one.row for one in commanded.problem.asked)
    assert split == deal(asked, {})
    found = {
        constant.name: value
        for constant, value in zip(commanded.problem.constants, commanded.fitted.values, strict=True)
    }
    written = {constant.name: constant for constant in constants_of(document)}
    assert found
    for name, value in found.items():
        assert reduce(getitem, written[name].path, document)["value"] == value
    assert document["fitted"]["command"] == "make fit ROWS='made.csv'"
    digest = read_rows(commanded.path, METRIC_UNITS).sha256
    assert document["fitted"]["rows_sha256"] == {"made.csv": digest}
    assert (document["fitted"]["rows"], document["fitted"]["groups"]) == (20, 10)
    parse_curves(document)
    assert list(constants_of(held_out(document, 0))) == list(constants_of(load_shipped_document()))


@pytest.mark.parametrize("count", [9, 19, 99, 199])
def test_a_tenth_of_new_figures_lies_below_the_low_end(count):
    """Of the numbers 1 to n, the low end leaves a tenth of n + 1 below."""
    figures = list(range(1, count + 1))
    assert percentile(figures, tail(count)) == pytest.approx(0.1 * (count + 1))


def test_few_rows_give_their_extremes():
    assert tail(5) == 0.0


def test_the_spread_of_few_groups_is_drawn_towards_that_of_all(tmp_path):
    """One group of a framework says little of its next model, however many rows it has."""
    rows = read_rows(
        write(
            tmp_path / "rows.csv",
            *({"id": f"a{n}", "run_id": f"a{n}", "source": "torchtitan"} for n in range(20)),
            *(
                {"id": f"b{n}", "run_id": f"b{n}", "source": "made", "model_id": f"made-{n}"}
                for n in range(20)
            ),
        ),
        METRIC_UNITS,
    ).rows
    scored = []
    for one in score(rows, CATALOG, ESTIMATORS):
        own = one.row.source == "torchtitan"
        measured = one.figure.value * (1.0 if own else 1.2)
        scored.append(replace(one, row=replace(one.row, value=measured)))
    found = {residual.family: residual for residual in residuals(scored)}
    every, narrow = found["training_memory"], found["training_memory/torchtitan"]
    assert (every.low, every.high) == pytest.approx((1.0, 1.2))
    assert narrow.value == pytest.approx(1.0)
    assert narrow.high == pytest.approx(1.2 ** (4 / 5))


def test_many_rows_of_one_group_weigh_as_their_root():
    """Of 400 equal rows of one group and 10 groups off by 1.5 a third of the weight is the one group's."""
    alike = FamilyRatios([1.0] * 400 + [1.5] * 10, ["one"] * 400 + [f"other {n}" for n in range(10)])
    assert alike.ends == pytest.approx((1.0, 1.0))
    assert alike.ends_by_group == pytest.approx((1.0, 1.5))
    single = FamilyRatios([0.8], ["one"])
    assert single.ends_by_group == (0.8, 0.8)


def test_an_answer_takes_the_interval_of_rows_of_the_same_software(tmp_path):
    """Rows of torchtitan, 10% above their estimates, move the interval of its answers and of no other's."""
    rows = [{**case, "source": "torchtitan", "value_si": repr(1.1 * size)} for case, size in sized(tmp_path)]
    scored = score(read_rows(write(tmp_path / "more.csv", *rows), METRIC_UNITS).rows, CATALOG, ESTIMATORS)
    document = load_shipped_document() | {"residuals": [one._asdict() for one in residuals(scored)]}
    catalog = under(parse_curves(document))
    titan, other = (
        score(read_rows(write(tmp_path / "one.csv", cells), METRIC_UNITS).rows, catalog, ESTIMATORS)[0].figure
        for cells in ({"source": "torchtitan"}, {"source": "InternEvo"})
    )
    assert titan.low == titan.value
    assert titan.high == pytest.approx(1.1 * titan.value)
    assert other.high / other.value != pytest.approx(1.1)


def sized(path):
    """The cases as torchtitan's, with what is estimated for each."""
    cells = [case | {"source": "torchtitan"} for case in cases()]
    rows = read_rows(write(path / "sized.csv", *cells), METRIC_UNITS).rows
    return zip(cells, (one.figure.value for one in score(rows, CATALOG, ESTIMATORS)), strict=True)


def test_rows_are_scored_under_the_catalog_of_their_own_fold(tmp_path):
    row = read_rows(write(tmp_path / "rows.csv", {}), METRIC_UNITS).rows[0]
    document = load_shipped_document()
    constants = list(constants_of(document))
    highest = with_values(
        document, constants, [0.9 * constant.high + 0.1 * constant.low for constant in constants]
    )
    catalogs = [CATALOG] * FOLDS
    catalogs[3] = under(parse_curves(highest))
    ours, other = (
        score_held_out([row], catalogs, {group_of(row): fold}, ESTIMATORS)[0].figure.value for fold in (3, 1)
    )
    assert ours > other
