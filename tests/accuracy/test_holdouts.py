"""Constants of serving fitted to made rows, and tried on devices, models, releases and engines left out."""

import json
from dataclasses import replace

import numpy as np
import pytest

from accuracy import holdouts
from accuracy.fitting import constants_of, held_out, with_values
from accuracy.folds import FOLDS, deal, fold_of, group_of
from accuracy.holdouts import (
    FOLD,
    again,
    evidence_inside,
    hold_outs,
    served_document,
    serving_problem,
    spreads,
    systems_of,
    thinned,
    validate,
)
from accuracy.metrics import METRIC_UNITS
from accuracy.rows import read_rows
from accuracy.scoring import ask, score_row
from accuracy.serving_report import as_roofline, hold_out_table, roofline_table, target_table
from service.estimates.service import ESTIMATES
from service.evidence.service import load_shipped_document, parse_curves
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.hardware.distance import EvidenceDistance, format_level
from tests.accuracy.measured import SERVED, write

CATALOG = build_shipped_snapshot()
ESTIMATORS = {name: estimate.estimator for name, estimate in ESTIMATES.items()}
FITTED = "calibration.serving.weight_bandwidth"
TRUTH = 0.8


def under(curves):
    return replace(CATALOG, curves=curves)


def document():
    """The shipped set in which one constant of serving may move, and no row was seen."""
    shipped = load_shipped_document()
    for name, entry in shipped["calibration"]["serving"].items():
        if name == FITTED.rpartition(".")[2]:
            entry |= {"value": 0.95, "low": 0.5, "high": 1.0}
            entry.pop("prior", None)
        else:
            entry["metrics"] = []
    shipped.pop("fitted_serving", None)
    return shipped


def cases():
    """Time per output token of two engines and four models on two devices."""
    for model in ("llama-3.1-8b", "qwen3-14b", "qwen3-32b", "llama-3.1-70b"):
        for device in ("h100-sxm", "b200-sxm"):
            for engine, version in (("vLLM", "0.11.0"), ("SGLang", "0.5.9")):
                for concurrency in (2, 8, 32):
                    yield SERVED | {
                        "id": f"{model}-{device}-{engine}-{concurrency}",
                        "run_id": f"{model}-{device}-{engine}-{concurrency}",
                        "metric": "tpot",
                        "unit": "s",
                        "unit_si": "s",
                        "per": "user",
                        "notes": "",
                        "model_id": model,
                        "accelerator_id": device,
                        "engine": engine,
                        "engine_version": version,
                        "layout_json": '{"tensor":4}',
                        "n_gpus": "4",
                        "batch_json": json.dumps({"concurrency": concurrency}),
                        "length_json": '{"input_tokens":512,"output_tokens":256}',
                    }


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """Rows as they would be measured if the constant had another value."""
    path = tmp_path_factory.mktemp("rows")
    constant = next(one for one in constants_of(document()) if one.name == FITTED)
    catalog = under(parse_curves(with_values(document(), [constant], [TRUTH])))
    asked = ask(read_rows(write(path / "cases.csv", *cases()), METRIC_UNITS).rows, catalog)
    rows = []
    for one, case in zip(asked, cases(), strict=True):
        seconds = score_row(one, catalog, ESTIMATORS).figure.value
        rows.append(case | {"value": str(seconds), "value_si": repr(seconds)})
    made = read_rows(write(path / "made.csv", *rows), METRIC_UNITS).rows
    return serving_problem(document(), ask(made, CATALOG), ESTIMATORS, under)


@pytest.fixture(scope="module")
def found(problem):
    return validate(problem, deal((one.row for one in problem.asked), {}))


def test_a_constant_is_recovered_from_all_rows_and_from_each_part(problem, found):
    assert [constant.name for constant in problem.constants] == [FITTED]
    assert found.fitted.values[0] == pytest.approx(TRUTH, abs=0.01)
    for one in found.tried:
        assert one.fitted.values[0] == pytest.approx(TRUTH, abs=0.02)
        errors = [abs(scored.error) for scored in one.scored]
        assert np.median(errors) < 0.01


def test_whole_devices_models_releases_and_engines_are_held_out(problem, found):
    kinds = {one.held.kind: set() for one in found.tried}
    for one in found.tried:
        kinds[one.held.kind].add(one.held.name)
    assert kinds["accelerator"] == {"h100-sxm", "b200-sxm"}
    assert kinds["engine"] == {"vllm", "sglang"}
    assert kinds["release"] == {"vllm 0.11", "sglang 0.5"}
    assert len(kinds["model"]) == 4
    assert kinds[FOLD] == {str(fold) for fold in range(FOLDS)}
    for one in found.tried:
        outside = {place for place, asked in enumerate(problem.asked) if _is_of(asked, one, found, place)}
        assert set(one.held.outside) == outside


def _is_of(asked, one, found, place):
    system, count = found.served[place]
    split = deal((each.row for each in asked_of(found)), {}) if one.held.kind == FOLD else {}
    names = {
        "accelerator": system.accelerator,
        "engine": system.engine,
        "release": f"{system.engine} {system.release}",
        "model": f"{count / 1e9:.4g}B",
        FOLD: str(fold_of(group_of(asked.row), split)) if split else "",
    }
    return names[one.held.kind] == one.held.name


def asked_of(found):
    return [scored for one in found.folds for scored in one.scored]


def test_levels_say_what_is_left_without_a_hold_out(found):
    by_kind = {one.held.kind: {scored.basis for scored in one.scored} for one in found.tried}
    assert by_kind["engine"] == {format_level(EvidenceDistance.DEVICE, known=True)}
    assert by_kind["accelerator"] == {format_level(EvidenceDistance.ENGINE, known=True)}
    assert by_kind["release"] == {format_level(EvidenceDistance.DEVICE, known=True)}
    assert by_kind["model"] == {format_level(EvidenceDistance.SYSTEM, known=False)}


def test_spreads_leave_out_the_rows_that_they_are_for(found):
    everything = {one.level: one.rows for one in spreads(found.tried)}
    outside = found.folds[0].held.outside
    left = {one.level: one.rows for one in spreads(found.tried, outside)}
    assert sum(left.values()) < sum(everything.values())
    assert {one.family for one in spreads(found.tried)} == {"serving_tpot"}


def test_what_was_fitted_is_found_again_in_the_reference_set(problem, found):
    written = json.loads(served_document(problem, found, {"command": "made"}))
    assert written["calibration"]["serving"]["weight_bandwidth"]["value"] == found.fitted.values[0]
    without = held_out(written, 0)
    entry = without["calibration"]["serving"]["weight_bandwidth"]
    assert entry["value"] == found.folds[0].fitted.values[0]
    curves = parse_curves(without)
    assert curves.serving_evidence == evidence_inside(found.served, found.folds[0].held.outside)
    assert any(family == "serving_tpot" for family, _ in curves.residuals)
    tried = again(replace(problem, document=written), deal((one.row for one in problem.asked), {}))
    whole = [one for one in found.tried if one.held.kind != FOLD]
    assert [one.held for one in tried] == [one.held for one in whole]
    for first, second in zip(whole, tried, strict=True):
        assert [one.error for one in first.scored] == pytest.approx([one.error for one in second.scored])


def test_large_groups_are_thinned_evenly(problem):
    groups = {group_of(one.row) for one in problem.asked}
    assert len(thinned(problem.asked, 10)) == len(problem.asked)
    assert len(thinned(problem.asked, 2)) == 2 * len(groups)
    assert thinned(problem.asked[:6], 2) == [0, 3]


def test_few_rows_are_not_held_out_alone(problem, monkeypatch):
    served = systems_of(problem.asked, CATALOG)
    monkeypatch.setattr(holdouts, "FEWEST_HELD_OUT", 20)
    kinds = {one.kind for one in hold_outs(problem.asked, served, {})}
    assert kinds == {FOLD, "accelerator", "engine", "release"}


def test_tables_stand_beside_aims_and_a_roofline(problem, found):
    scored = found.scored()
    (line,) = target_table(scored).lines
    assert line[0] == "serving_tpot: stated"
    assert line[-2:] == ["12%", "40%"]
    roofline = [score_row(one, CATALOG, ESTIMATORS) for one in as_roofline(problem.asked)]
    assert roofline_table(scored, roofline).lines[-1][1] == str(len(scored))
    assert hold_out_table(found.tried).lines[-1][0] == "every release"
