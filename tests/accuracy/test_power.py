"""Constants of power from rows: what was put in is found again, whole groups and generations stay outside."""

import copy
import dataclasses
import math

import numpy as np
import pytest

from accuracy.metrics import METRIC_UNITS
from accuracy.power import (
    MeasuredPowerRow,
    by_fold,
    drawn,
    fit_constants,
    fit_power,
    lines,
    power_held_out,
    ratios,
    spreads,
)
from accuracy.rows import read_rows
from service.evidence.service import load_shipped_document, parse_power_calibration
from service.planning.energy.power import DeviceWork, device_watts
from tests.accuracy.measured import SERVED, write
from tests.asking import shipped

TRUTH = {"active_share": 0.2, "unpacking_share": 0.1, "matrix_share": 0.8, "byte_joules": 6e-11}


@pytest.fixture(scope="module")
def document():
    return load_shipped_document()["calibration"]["power"]


@pytest.fixture
def row(tmp_path):
    run = SERVED | {
        "model": "Llama-3.1-8B",
        "model_id": "llama-3.1-8b",
        "gpu": "H100",
        "accelerator_id": "h100-sxm",
        "n_gpus": "1",
        "layout_json": '{"tensor":1,"data":1}',
        "precision_json": '{"weights":"bf16","compute":"bf16"}',
        "batch_json": '{"average_batch":16,"max_num_seqs":16}',
        "length_json": '{"input_tokens":200,"output_tokens":600}',
        "notes": "",
        "parameter_count": "8030261248",
        "per": "system",
    }
    power = run | {"metric": "gpu_power_mean", "value": "450", "value_si": "450", "unit_si": "W"}
    rate = run | {
        "id": "made-0002",
        "metric": "output_tokens_per_s",
        "value": "1600",
        "value_si": "1600",
        "unit_si": "tokens/s",
    }
    return read_rows(write(tmp_path / "rows.csv", power, rate), METRIC_UNITS).rows


def made(row, document, seed=0):
    """Rows of three models on two generations, drawn as the truth has it."""
    truth = copy.deepcopy(document)
    for name, value in TRUTH.items():
        truth["constants"][name]["value"] = value
    calibration, random = parse_power_calibration(truth), np.random.default_rng(seed)
    accelerators = shipped().accelerators
    for device in ("h100-sxm", "b200-sxm"):
        accelerator = accelerators[device].accelerator
        for model in ("a", "b", "c"):
            for _ in range(12):
                busy = random.uniform(0.5, 1.0)
                narrow = float(model == "c")
                work = DeviceWork(
                    1.0,
                    busy,
                    busy * random.uniform(0.0, 0.15),
                    busy * random.uniform(0.0, 0.4) * accelerator.bandwidth_bytes_per_second,
                    0.0,
                    busy * narrow,
                )
                of = dataclasses.replace(row, model_id=model, accelerator_id=device)
                limit = accelerator.power_limit_watts
                rates = calibration.get_rates(accelerator.generation)
                yield MeasuredPowerRow(of, device_watts(work, limit, rates), accelerator, work)


def test_a_row_becomes_work_at_its_measured_rate(row):
    """16 requests at 1,600 tokens/s: 10 ms an iteration that moves the weights and the cache once."""
    (found,) = drawn(row, shipped())
    assert found.watts == 450.0
    assert found.work.seconds == found.work.busy_seconds == pytest.approx(0.01)
    weights = 2 * 8.03e9
    assert weights < found.work.moved_bytes < 1.2 * weights
    assert found.work.unpacking_seconds == 0.0
    assert ratios([found], shipped().curves.calibration.power)[0] == pytest.approx(1.0, abs=0.2)


def test_a_row_without_rate_or_batch_is_no_work(row):
    power, rate = row
    assert list(drawn([power], shipped())) == []
    assert list(drawn([dataclasses.replace(one, batch={}) for one in (power, rate)], shipped())) == []


def test_constants_are_found_again(row, document):
    found = list(made(row[0], document))
    fitted = fit_constants(document, found)
    for name, value in TRUTH.items():
        low, high = document["constants"][name]["range"]
        assert fitted["constants"][name]["value"] == pytest.approx(value, abs=0.05 * (high - low))
    assert max(abs(ratio - 1.0) for ratio in ratios(found, parse_power_calibration(fitted))) < 0.03


def test_constants_stay_in_their_range_and_others_as_they_are(row, document):
    found = [one._replace(watts=2.0 * one.watts) for one in made(row[0], document)]
    fitted = fit_constants(document, found)["constants"]
    for name, entry in fitted.items():
        if "range" in entry:
            assert entry["range"][0] <= entry["value"] <= entry["range"][1]
        else:
            assert entry == document["constants"][name]


def test_rows_of_pictures_are_judged_and_not_fitted_to(row, document):
    """A row whose work is not known does not move the constants, however far off it is."""
    found = list(made(row[0], document))
    of_pictures = dataclasses.replace(row[0], text={**row[0].text, "notes": "task video-chat; of GPUs"})
    strange = [one._replace(row=of_pictures, watts=3.0 * one.watts) for one in found[:20]]
    with_them = fit_constants(document, [*found, *strange])
    assert with_them == fit_constants(document, found)
    own, strange_ones = (ratios(rows, parse_power_calibration(with_them)) for rows in (found[:20], strange))
    assert strange_ones == pytest.approx([ratio / 3.0 for ratio in own])


def test_a_group_is_judged_by_constants_that_never_saw_it(row, document):
    """Rows of one model that draw twice what others do pull its own fit, not the one that judges it."""
    found = [
        one._replace(watts=1.3 * one.watts) if one.row.model_id == "b" else one
        for one in made(row[0], document)
    ]
    tried = fit_power(document, found)
    odd = [place for place, one in enumerate(found) if one.row.model_id == "b"]
    fitted = np.abs(np.array(tried.fitted)[odd] - 1.0).mean()
    assert np.abs(np.array(tried.held_out)[odd] - 1.0).mean() > fitted
    by_name = {line.group: line for line in lines(found, tried)}
    assert by_name["all"].rows == 72
    assert by_name["h100-sxm b"].held_out > by_name["h100-sxm a"].held_out
    assert "held out" in by_name["all"].text()


def test_one_generation_alone_has_no_other_to_be_judged_by(row, document):
    found = [one for one in made(row[0], document) if one.accelerator.generation == "hopper"]
    tried = fit_power(document, found)
    assert all(math.isnan(ratio) for ratio in tried.elsewhere)
    assert math.isnan(lines(found, tried)[-1].elsewhere)
    shipped_ = load_shipped_document()
    made_of = spreads(shipped_, tried)
    assert made_of["device_power"]["low"] <= 1.0 <= made_of["device_power"]["high"]
    assert made_of["device_power_elsewhere"]["low"] <= shipped_["device_power_elsewhere"]["low"]


def test_a_fold_is_judged_by_constants_without_it(row, document):
    """The groups of model "b" draw more: the constants of the fold that has them out are the others'."""
    found = [
        one._replace(watts=1.3 * one.watts) if one.row.model_id == "b" else one
        for one in made(row[0], document)
    ]
    split = {one.group: "abc".index(one.row.model_id) for one in found}
    folds = by_fold(document, found, split)
    plain = fit_constants(document, [one for one in found if one.row.model_id != "b"])["constants"]
    assert folds[1] == {name: plain[name]["value"] for name in TRUTH}
    assert folds[1] != folds[0]
    whole = {**load_shipped_document(), "calibration": {"power": {**document, "fitted": {"folds": folds}}}}
    constants = power_held_out(whole, 1)["calibration"]["power"]["constants"]
    assert {name: constants[name]["value"] for name in TRUTH} == folds[1]
    assert whole["calibration"]["power"]["constants"] == document["constants"]
    gone = {name: entry for name, entry in document["constants"].items() if name != "byte_joules"}
    whole["calibration"]["power"]["constants"] = gone
    with pytest.raises(KeyError):
        power_held_out(whole, 1)
