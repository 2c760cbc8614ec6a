"""Storage, preprocessing and transfer beside compute: the slowest sets the pace, or all of them add up."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.training.data_pipeline import (
    DataPipeline,
    StageSeconds,
    buffer_bytes,
    compute_exposed_seconds,
    compute_step_seconds,
    count_needed_workers,
    device_utilization,
    prefetched_batches,
    preprocessing_seconds,
)

SECONDS = st.floats(1e-6, 1e4)
STAGES = st.builds(StageSeconds, SECONDS, SECONDS, SECONDS)


class TestLoadingThatTakesFourTimesAsLongAsComputing:
    """50 ms of compute, 200 ms of loading."""

    LOAD = StageSeconds(preprocessing=0.2)

    def test_a_quarter_busy_where_they_overlap_a_fifth_where_they_do_not(self):
        assert device_utilization(
            0.05, compute_step_seconds(0.05, self.LOAD, prefetched=True)
        ) == pytest.approx(0.25)
        assert device_utilization(
            0.05, compute_step_seconds(0.05, self.LOAD, prefetched=False)
        ) == pytest.approx(0.2)

    def test_three_quarters_of_the_rent_buy_nothing(self):
        busy = device_utilization(0.05, compute_step_seconds(0.05, self.LOAD, prefetched=True))
        assert (3000 * busy, 3000 * (1 - busy)) == (750.0, 2250.0)

    def test_four_workers_make_it_four_times_as_fast(self):
        assert count_needed_workers(0.2, 0.05) == 4
        tuned = StageSeconds(preprocessing=preprocessing_seconds(1.0, 0.2, workers=4.0))
        before, after = (compute_step_seconds(0.05, stages, prefetched=True) for stages in (self.LOAD, tuned))
        assert before / after == pytest.approx(4.0)


def test_eight_workers_with_two_batches_each_hold_4096_samples():
    assert prefetched_batches(8, 2) * 256 == 4096
    assert buffer_bytes(256.0, prefetched=prefetched_batches(8, 2)) == 18 * 256


@given(SECONDS, STAGES)
def test_prefetching_never_slows_a_step(compute, stages):
    prefetched, serial = (compute_step_seconds(compute, stages, prefetched=way) for way in (True, False))
    assert compute <= prefetched <= serial
    for way, seconds in ((True, prefetched), (False, serial)):
        waited = compute_exposed_seconds(compute, stages, prefetched=way)
        assert compute + waited == pytest.approx(seconds, rel=1e-12)
        assert 0.0 < device_utilization(compute, seconds) <= 1.0


@given(
    st.integers(1, 10**6),
    st.integers(1, 64),
    st.integers(1, 64),
    st.floats(1.0, 16.0),
    st.sampled_from(["storage_rate", "node_rate", "access_factor", "workers", "link_rate"]),
    st.booleans(),
)
def test_more_workers_or_bandwidth_never_slow_a_step(samples, replicas, nodes, more, name, prefetched):  # noqa: PLR0917
    pipeline = DataPipeline(
        stored_bytes=1e5,
        storage_rate=1e9,
        node_rate=1e8,
        access_factor=0.05,
        worker_seconds=1e-3,
        workers=2.0,
        device_bytes=1e4,
        link_rate=1e10,
        prefetched=prefetched,
    )
    better = pipeline._replace(**{name: getattr(pipeline, name) * more})
    before, after = (
        p.compute_stage_seconds(samples, replicas=replicas, nodes=nodes) for p in (pipeline, better)
    )
    assert compute_step_seconds(0.1, after, prefetched=prefetched) <= compute_step_seconds(
        0.1, before, prefetched=prefetched
    )


def test_nodes_read_together_until_the_storage_bounds_them():
    pipeline = DataPipeline(storage_rate=10e9, node_rate=3.5e9, access_factor=0.1)
    assert [pipeline.compute_read_rate(nodes) for nodes in (1, 2, 3)] == pytest.approx([0.35e9, 0.7e9, 1e9])
    assert DataPipeline(node_rate=3.5e9).compute_read_rate(2) == 7e9
    assert DataPipeline().compute_read_rate(2) is None


def test_a_stage_without_its_figures_takes_no_time():
    assert (
        DataPipeline(stored_bytes=1e6).compute_stage_seconds(64.0, replicas=1.0, nodes=1.0) == StageSeconds()
    )


def test_many_layouts_take_the_same_arithmetic():
    pipeline = DataPipeline(
        stored_bytes=1e5, storage_rate=1e9, worker_seconds=1e-2, workers=4.0, device_bytes=1e4, link_rate=1e9
    )
    replicas, compute = np.array([1.0, 8.0, 64.0]), np.array([0.5, 0.1, 0.01])
    many = pipeline.compute_stage_seconds(64.0, replicas=replicas, nodes=1.0)
    for way in (True, False):
        together = compute_step_seconds(compute, many, prefetched=way)
        for index, (count, seconds) in enumerate(zip(replicas, compute, strict=True)):
            one = pipeline.compute_stage_seconds(64.0, replicas=float(count), nodes=1.0)
            assert together[index] == compute_step_seconds(float(seconds), one, prefetched=way)
            assert math.isclose(
                compute_exposed_seconds(compute, many, prefetched=way)[index],
                compute_exposed_seconds(float(seconds), one, prefetched=way),
            )
