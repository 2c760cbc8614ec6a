"""What runs of one tenant have in common: fitted to sources, tried on runs outside."""

import math

import numpy as np
import pytest

from accuracy import local
from accuracy.local import SourceRun, fit, local_document, local_table, try_out
from service.evidence.service import known_rows, load_reference_curves
from service.planning.hardware.local_evidence import (
    FINGERPRINT_DIGITS,
    LogDeviations,
    MeasuredRun,
    RunGroup,
    RunSetting,
)
from service.planning.quantity import IntervalFactors

TRUE = LogDeviations(model=0.3, system=0.02, layout=0.02, load=0.02, layout_load=0.02, run=0.1)
PRIOR = IntervalFactors(0.6, 1.6, "made up")


@pytest.fixture(scope="module")
def rows():
    """Rows of two sources: models far apart, runs of one of them close together."""
    random, found = np.random.default_rng(7), []
    for source in ("one", "other"):
        for model in range(12):
            group = RunGroup("serving", "vllm", "h100-sxm", 1000 + model)
            shared = random.normal(0.0, TRUE.model)
            for k in range(4):
                setting = RunSetting(group, "0.11", 1, (k / 2.0, 6.0, 5.0))
                ratio = shared + random.normal(0.0, TRUE.run)
                run = MeasuredRun(setting, ratio, source)
                found.append(SourceRun(source, f"{1000 + model:x}", run, PRIOR))
    return found


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch, rows):
    """As many rows of a source are enough as these have."""
    monkeypatch.setattr(local, "_FEWEST_OTHERS", len(rows) // 2)
    monkeypatch.setattr(local, "_ELSEWHERE", frozenset())


def test_the_fit_finds_what_the_rows_were_made_with(rows):
    found = fit(rows)
    # Each model is of one system in one layout: what these have in common is not told apart.
    assert math.hypot(found.model, found.system, found.layout) == pytest.approx(TRUE.model, rel=0.3)
    assert math.hypot(found.run, found.load, found.layout_load) == pytest.approx(TRUE.run, rel=0.3)


def test_each_source_is_tried_under_what_the_others_teach(rows):
    [entry] = local_document({"serving_tpot": rows}).values()
    assert set(entry["held_out"]) == {"one", "other"}
    assert entry["held_out"]["one"] != entry["held_out"]["other"]
    assert entry["counts"]
    table = local_table({"serving_tpot": rows}, {"serving_tpot": entry})
    assert any(line[0].startswith("serving_tpot: 3 of the same model") for line in table.lines)


def test_own_runs_help_where_runs_have_something_in_common(rows):
    entry = {"held_out": {}, "values": TRUE._asdict(), "sources": []}
    errors = [np.median([one.errors() for one in try_out(rows, entry, count)], axis=0) for count in (1, 3)]
    for before, after in errors:
        assert after < 0.6 * before
    covered = np.mean([one.covered() for one in try_out(rows, entry, 3)])
    assert covered > 0.7


def test_a_kind_of_answer_that_own_runs_do_not_help_is_left_alone(rows):
    random = np.random.default_rng(3)
    alone = [
        point._replace(run=point.run._replace(log_ratio=float(random.normal(0.0, 0.2)))) for point in rows
    ]
    entry = {"held_out": {}, "values": TRUE._asdict(), "sources": []}
    assert not local._helps(try_out(alone, entry, 3))


def test_what_ships_is_plausible_and_knows_the_rows_of_its_fit():
    shipped = load_reference_curves().deviations
    assert {"serving_tpot", "serving_ttft", "serving_throughput", "training_step"} <= shipped.keys()
    for deviations in shipped.values():
        assert all(0.0 < each < 1.0 for each in deviations)
        assert math.hypot(*deviations[:-1]) > deviations.run / 2.0
    known = known_rows()
    assert len(known) > 1000
    assert {len(one) for one in known} == {FINGERPRINT_DIGITS}
