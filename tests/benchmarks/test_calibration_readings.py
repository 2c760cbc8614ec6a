"""What several runs, attempts, repeats and devices say of one benchmark."""

from types import SimpleNamespace

import pytest

from service.calibrations.readings import RUNS_READ, build_observations
from tests.benchmarks.measured_nodes import suite_of
from tests.benchmarks.planned import gemm

SUITE = suite_of([("gemm.bf16", gemm(8192, 8192, 8192), "flops_per_second")])


def row(run, figure, *, repeat=1, token=1, index=0, work_sha256="w", **conditions):
    return SimpleNamespace(
        id=f"{run}-{token}-{repeat}-{index}",
        run_id=run,
        fencing_token=token,
        repeat=repeat,
        benchmark="gemm.bf16",
        work_sha256=work_sha256,
        metric="flops_per_second",
        figure=figure,
        conditions={"accelerator_index": index, **conditions},
    )


def observed(*rows):
    (found,) = build_observations(rows, dict.fromkeys({each.run_id for each in rows}, SUITE))
    return found


def test_of_several_sizes_the_largest_counts():
    full, smaller, smallest, *_ = SUITE.benchmarks[0].map_sizes()
    reduced = [row("a", 5.0, work_sha256=smallest), row("b", 6.0, work_sha256=smaller)]
    found = observed(*reduced)
    assert (found.figures, found.work.m, found.work.n) == ((6.0,), 4096, 8192)
    found = observed(*reduced, row("c", 7.0, work_sha256=full))
    assert (found.figures, found.work.m) == ((7.0,), 8192)


def test_of_a_run_the_middle_repeat_counts():
    found = observed(row("a", 7.0), row("a", 8.0, repeat=2), row("a", 3.0, repeat=3), row("b", 6.0))
    assert (found.figures, found.low, found.high) == ((7.0, 6.0), 3.0, 8.0)
    assert found.ends == (3.0, 6.5, 8.0)


def test_of_devices_at_once_the_slowest_counts():
    found = observed(row("a", 7.0), row("a", 5.0, index=1))
    assert found.figures == (5.0,)
    assert len(found.result_ids) == 2


def test_of_attempts_the_last_counts():
    found = observed(row("a", 7.0), row("a", 8.0, repeat=2), row("a", 5.0, token=2))
    assert found.figures == (5.0,)


def test_the_last_runs_count():
    runs = [row(str(number), float(number)) for number in range(RUNS_READ + 2)]
    assert observed(*runs).run_ids == tuple(str(number) for number in range(2, RUNS_READ + 2))


def test_conditions_are_the_middle_or_the_word_that_all_agree_in():
    found = observed(
        row("a", 7.0, sm_clock_hz=1.0e9, library="cublasLt 13", timer="cuda_event", uses_graph=False),
        row("b", 7.0, sm_clock_hz=2.0e9, library="cublasLt 12", timer="cuda_event", uses_graph=False),
    )
    assert found.conditions == {
        "sm_clock_hz": pytest.approx(1.5e9),
        "timer": "cuda_event",
        "uses_graph": "false",
    }
