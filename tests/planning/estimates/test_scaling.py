"""Scaling of a run whose variants a script makes by hand, without a question."""

from dataclasses import replace

import pytest

from service.planning.estimates import estimate_run
from service.planning.estimates.scaling import BEYOND, MOST_POINTS, estimate_scaling
from service.planning.notes import AnswerNotes
from service.planning.training.scaling import RunScale
from service.resolve import resolve_run
from service.schemas.estimates import ThroughputEstimateRequest
from tests.asking import question, shipped

DEVICES = 8


@pytest.fixture(scope="module")
def run():
    body = question(
        "llama-3.1-8b", "h100-sxm", DEVICES, sequence_length=4096, global_batch_size=64, total_tokens=1e9
    )
    asked = ThroughputEstimateRequest.model_validate(body, strict=False)
    return estimate_run(resolve_run(asked, shipped(), AnswerNotes()))


def varied(run):
    """A function that lays the case out on other numbers of devices, and remembers which."""
    seen = []

    def vary(variant):
        seen.append(variant)
        if variant.layout is None:
            return None
        case = run.case
        batch = variant.global_batch_size // variant.layout.data // variant.micro_batch_size
        cluster = case.cluster._replace(accelerator_count=variant.accelerator_count)
        workload = case.workload._replace(micro_batch_size=variant.micro_batch_size, micro_batches=batch)
        return estimate_run(replace(case, cluster=cluster, layout=variant.layout, workload=workload))

    return vary, seen


def scaled(run, **changes):
    vary, seen = varied(run)
    given = {"counts": None, "per_node": 8, "time_limit_seconds": 1e9}
    return estimate_scaling(run, vary, **{**given, **changes}), seen


def test_open_curves_end_beyond_the_run_and_begin_at_its_first_point(run):
    found, _ = scaled(run)
    counts = [point.accelerator_count for point in found.strong.points]
    assert counts[-1] <= BEYOND * DEVICES
    assert len(counts) <= MOST_POINTS
    assert (found.strong.points[0].speedup, found.weak.points[0].efficiency) == (1.0, 1.0)


def test_a_strong_curve_keeps_the_batch_and_a_weak_one_that_of_a_device(run):
    found, _ = scaled(run, counts=[8, 16])
    assert [point.global_batch_size for point in found.strong.points] == [64, 64]
    assert [point.global_batch_size for point in found.weak.points] == [64, 128]


def test_a_count_that_does_not_divide_is_a_gap(run):
    found, _ = scaled(run._replace(notes=(notes := AnswerNotes())), counts=[8, 24])
    assert [point.accelerator_count for point in found.strong.points] == [8]
    assert ("/scaling/strong/points", "NOT_DIVISIBLE") in {
        (gap["pointer"], gap["code"]) for gap in notes.gaps
    }


def test_the_run_itself_is_an_option_and_the_least_that_is_enough_is_chosen(run):
    found, _ = scaled(run, counts=[8])
    options = {option.scale: option for option in found.decision.options}
    assert options[RunScale.SINGLE_NODE].duration_seconds == run.duration_seconds
    assert found.decision.scale is RunScale.SINGLE_NODE
    hurried, _ = scaled(run, counts=[8], time_limit_seconds=1e-9)
    assert hurried.decision.scale is None


def test_steps_of_a_curve_are_without_checkpoints_and_failures(run):
    _, seen = scaled(run, counts=[8, 16])
    assert {variant.has_interruptions for variant in seen if variant.layout is not None} == {False}
