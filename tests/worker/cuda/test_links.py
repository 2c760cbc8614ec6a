"""Copies and collectives of several accelerators, on a driver whose devices are all this processor."""

import ctypes
import os
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import ValidationError

from service.protocol.suites import Benchmark
from service.protocol.work.links import CollectiveWork, PeerMatrixWork
from service.worker.benchmark import Unsupported
from service.worker.cuda import PREPARE, collective, nccl, numbers
from tests.worker.cuda.fake_nvml import EachDevice
from tests.worker.cuda.stand_in_rank import ForkedRank, build_nccl

MIB = 2**20
SEED = 20_261_122


def prepared(kind, index=0, **parameters):
    asked = Benchmark.model_validate({
        "name": "one",
        "work": {"kind": kind, **parameters},
        "metric": "bytes_per_second",
        "direction": "higher",
        "formula": "as the kind says",
    })  # fmt: skip
    return PREPARE[kind](asked, SEED, index)


@pytest.fixture
def devices(driver, fake_nvml):
    """Four devices of the fake driver."""
    addresses = [SimpleNamespace(busId=f"00000000:{17 + number}:00.0".encode()) for number in range(4)]
    fake_nvml.answers |= {"nvmlDeviceGetCount": 4, "nvmlDeviceGetPciInfo": EachDevice(addresses)}
    driver.fact("devices", 4)
    return driver


@pytest.fixture
def library(devices, monkeypatch):
    """An NCCL under the name by which the loader looks for it."""
    monkeypatch.delenv("NCCL_ALGO", raising=False)
    fake = build_nccl()
    yield fake
    assert fake.fake_nccl_alive() == 0


@pytest.mark.parametrize(("method", "name"), [("copy_engine", "peer"), ("kernel", "stream_copy")])
def test_a_copy_goes_from_the_accelerator_asked_for_to_the_next(devices, monkeypatch, method, name):
    with prepared("peer_link", 3, direction="one_way", method=method, transfer_bytes=MIB) as timed:
        devices.takes(name, 100)
        assert "accelerators 3 and 0, directly" in timed.facts.algorithm
        assert {"reach:30", "reach:03"} <= set(devices.journal)
        devices.forget()
        assert timed.execute(4) == 400_000
        assert devices.journal == ["record", *[name] * 4, "record"]
        assert timed.check().passed
        monkeypatch.setattr(timed, "execute", lambda _: 1)
        assert not timed.check().passed


@pytest.mark.parametrize("method", ["copy_engine", "kernel"])
def test_both_ways_go_at_once_and_both_are_compared(devices, monkeypatch, method):
    with prepared("peer_link", direction="both", method=method, transfer_bytes=MIB) as timed:
        devices.forget()
        timed.execute(2)
        copies = [entry for entry in devices.journal if entry in ("peer", "stream_copy")]
        assert len(copies) == 4
        assert devices.journal[:2] == ["record", "wait"]
        assert devices.journal[-3:] == ["record", "wait", "record"]
        assert timed.check().passed
        monkeypatch.setattr(timed._ways[1], "enqueue_copy", lambda: None)
        assert not timed.check().passed


def test_accelerators_that_cannot_reach_each_other_copy_by_way_of_the_host(devices):
    devices.fact("apart", 1)
    with prepared("peer_link", direction="one_way", method="copy_engine", transfer_bytes=MIB) as timed:
        assert timed.facts.algorithm == "copy engines, accelerators 0 and 1, by way of the host"
        assert timed.check().passed
    with (
        pytest.raises(Unsupported, match="accelerator 0 cannot reach the memory of accelerator 1"),
        prepared("peer_link", direction="one_way", method="kernel", transfer_bytes=MIB),
    ):
        pass


@pytest.mark.parametrize(("pattern", "pairs"), [("all_to_one", 3), ("one_to_all", 3), ("all_to_all", 12)])
def test_all_pairs_of_a_pattern_copy_at_once_and_each_is_compared(devices, monkeypatch, pattern, pairs):
    work = {"pattern": pattern, "devices": 4, "transfer_bytes": 4096}
    with prepared("peer_matrix", 1, **work) as timed:
        assert f"{pattern} of 4, {pairs} pairs, directly" in timed.facts.algorithm
        assert len({way.stream.getPtr() for way in timed._ways}) == pairs
        sources, targets = (
            {getattr(way, end).ordinal for way in timed._ways} for end in ("source", "target")
        )
        assert (len(sources), len(targets)) == {
            "all_to_one": (3, 1), "one_to_all": (1, 3), "all_to_all": (4, 4)
        }[pattern]  # fmt: skip
        devices.forget()
        timed.execute(2)
        assert devices.journal.count("peer") == 2 * pairs
        assert devices.journal[0] == devices.journal[-1] == "record"
        assert timed.check().passed
        monkeypatch.setattr(timed._ways[-1], "enqueue_copy", lambda: None)
        assert not timed.check().passed


def test_a_matrix_tells_pairs_that_go_by_way_of_the_host(devices):
    devices.fact("apart", 1)
    with prepared("peer_matrix", pattern="all_to_all", devices=3, transfer_bytes=4096) as timed:
        assert timed.facts.algorithm.endswith("6 pairs, 6 of them by way of the host")
        assert timed.check().passed


def test_a_matrix_counts_the_payload_of_all_pairs():
    work = {"kind": "peer_matrix", "devices": 8, "transfer_bytes": MIB}
    moved = [
        PeerMatrixWork(**work, pattern=each).count_work().moved_bytes for each in ("all_to_one", "all_to_all")
    ]
    assert moved == [7 * MIB, 56 * MIB]


def test_a_kernel_copies_whole_vectors_only(devices):
    with (
        pytest.raises(Unsupported, match="16-byte vectors"),
        prepared("peer_link", direction="one_way", method="kernel", transfer_bytes=MIB + 4),
    ):
        pass


OPERATIONS = {
    "all_reduce": "reduce", "all_gather": "gather", "reduce_scatter": "scatter",
    "all_to_all": "send", "broadcast": "broadcast", "send_receive": "send",
}  # fmt: skip
"""Collectives, and what the NCCL of the tests calls them."""


@pytest.mark.parametrize(("operation", "name"), OPERATIONS.items())
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_collective_is_compared_on_every_rank(library, monkeypatch, operation, name, ranks):
    work = {"operation": operation, "devices": ranks, "payload_bytes": 12 * 4096}
    with prepared("collective", 2, **work) as timed:
        before = library.fake_nccl_calls(name.encode())
        timed.execute(3)
        assert library.fake_nccl_calls(name.encode()) == before + 3
        assert timed.facts.library == "NCCL 2.27.3"
        correctness = timed.check()
        assert correctness.passed
        assert correctness.tolerance == 0
        target, queue = timed._buffers[-1].received, timed._enqueue_collective

        def wrong():
            queue()
            ctypes.c_float.from_address(target).value += 1.0

        monkeypatch.setattr(timed, "_enqueue_collective", wrong)
        assert not timed.check().passed
        monkeypatch.setattr(timed, "_enqueue_collective", lambda: None)
        assert not timed.check().passed


def test_the_time_of_a_collective_is_that_of_the_rank_that_ends_last(library, devices, monkeypatch):
    with prepared("collective", operation="all_reduce", devices=3, payload_bytes=MIB) as timed:
        monkeypatch.setattr(timed, "_enqueue_collective", lambda: devices.advance(40))
        devices.forget()
        assert timed.execute(5) == 200_000
        assert devices.journal == ["record", *["wait"] * 2, *["record", "wait"] * 2, "record"]


@pytest.fixture
def processes(library, monkeypatch):
    """Ranks are processes of their own, each with a driver and an NCCL of the tests."""
    monkeypatch.setattr(collective, "start_rank", ForkedRank)


IN_PLACE, GRAPH = {"in_place": True}, {"launch": "graph"}


@pytest.mark.parametrize("mode", [{}, IN_PLACE, GRAPH, IN_PLACE | GRAPH])
@pytest.mark.usefixtures("processes")
def test_a_process_for_each_accelerator_exchanges_and_every_result_is_compared(mode):
    for operation in OPERATIONS:
        if "in_place" in mode and operation in ("all_to_all", "send_receive"):
            continue
        work = {"operation": operation, "devices": 3, "payload_bytes": 12 * 1024, "processes": "per_device"}
        with prepared("collective", 1, **work, **mode) as timed:
            assert timed.facts.library == "NCCL 2.27.3"
            assert timed.facts.executions_per_launch == (32 if "launch" in mode else 1)
            assert timed.execute(65) > 0
            assert timed.check().passed, operation
            # Another input than the one that the result is compared with.
            timed._ask(timed._processes, "reset")
            assert max(answer["error"] for answer in timed._ask(timed._processes, "compare")) > 1e-3


@pytest.mark.usefixtures("processes")
def test_what_one_process_lacks_is_unsupported_and_what_ends_ends_all():
    work = {"operation": "all_reduce", "devices": 2, "payload_bytes": 4096, "processes": "per_device"}
    with pytest.raises(Unsupported, match="nvls: ncclCommInitRank: invalid usage"):
        prepared("collective", algorithm="nvls", **work).__enter__()
    with prepared("collective", **work) as timed:
        timed._processes[1].kill()
        timed._processes[1].wait()
        with pytest.raises((RuntimeError, BrokenPipeError)):
            timed.execute(1)
    assert all(process.poll() is not None for process in timed._processes)


@pytest.mark.usefixtures("devices")
def test_a_process_without_a_driver_says_so():
    """The processes are real here, and find no device of the tests."""
    work = {"operation": "all_reduce", "devices": 2, "payload_bytes": 4096, "processes": "per_device"}
    with pytest.raises(Unsupported, match="NVML"):
        prepared("collective", **work).__enter__()


def test_graphs_and_results_in_place_are_those_of_processes():
    work = {"kind": "collective", "operation": "all_reduce", "devices": 2, "payload_bytes": 4096}
    for mode in ({"launch": "graph"}, {"in_place": True}):
        with pytest.raises(ValidationError, match="process for each device"):
            CollectiveWork(**work, **mode)
    for operation in ("all_to_all", "send_receive"):
        with pytest.raises(ValidationError, match="no result in place"):
            CollectiveWork(**{**work, "operation": operation}, processes="per_device", in_place=True)
    assert CollectiveWork(**work).suite_form == 1
    assert CollectiveWork(**work, processes="per_device").suite_form == 2


def test_an_algorithm_is_asked_for_and_one_that_is_not_there_is_unsupported(library, monkeypatch):
    work = {"operation": "all_reduce", "devices": 2, "payload_bytes": MIB}
    with prepared("collective", algorithm="ring", **work) as timed:
        assert os.environ["NCCL_ALGO"] == "Ring"
        assert timed.facts.algorithm == "ring, one process for 2 accelerators"
    with pytest.raises(Unsupported, match="nvls: ncclGroupEnd: invalid usage"):
        prepared("collective", algorithm="nvls", **work).__enter__()
    monkeypatch.delenv("NCCL_ALGO")


@pytest.mark.parametrize(("kind", "parameters"), [
    ("peer_link", {"direction": "both", "method": "kernel", "transfer_bytes": MIB}),
    ("peer_matrix", {"pattern": "all_to_one", "devices": 2, "transfer_bytes": MIB}),
    ("collective", {"operation": "all_reduce", "devices": 2, "payload_bytes": MIB}),
])  # fmt: skip
def test_one_accelerator_has_nobody_to_talk_to(driver, kind, parameters):
    with pytest.raises(Unsupported, match="2 accelerators are required, 1 exist"):
        prepared(kind, **parameters).__enter__()


@pytest.mark.parametrize(("ranks", "tolerance"), [(4, 0.0), (5, 4 / 2**24)])
def test_sums_of_more_than_four_are_rounded(library, devices, fake_nvml, ranks, tolerance):
    addresses = [SimpleNamespace(busId=f"00000000:{17 + number}:00.0".encode()) for number in range(5)]
    fake_nvml.answers |= {"nvmlDeviceGetCount": 5, "nvmlDeviceGetPciInfo": EachDevice(addresses)}
    devices.fact("devices", 5)
    with prepared("collective", operation="all_reduce", devices=ranks, payload_bytes=MIB) as timed:
        correctness = timed.check()
    assert correctness.passed
    assert correctness.tolerance == tolerance


def test_a_payload_that_cannot_be_divided_is_unsupported(library):
    with pytest.raises(Unsupported, match="cannot be divided among 3"):
        prepared("collective", operation="all_gather", devices=3, payload_bytes=4096).__enter__()


def test_without_nccl_a_collective_is_unsupported(devices, monkeypatch):
    monkeypatch.setattr(nccl, "LIBRARY", "libnccl-of-nobody.so.2")
    with pytest.raises(Unsupported, match="is not installed"):
        prepared("collective", operation="all_reduce", devices=2, payload_bytes=MIB).__enter__()


def test_a_sum_of_many_may_be_off_by_as_much_as_its_order_allows():
    """Eight numbers below 2^22 add up beyond what fp32 counts in whole steps."""
    places, seeds = np.arange(4096), range(8)
    values = [numbers.generate_integers(seed, places) for seed in seeds]
    one_way = sum(values, start=np.zeros(4096, np.float32))
    other = sum(values[::-1], start=np.zeros(4096, np.float32))
    exact = np.sum(np.stack(values).astype(np.float64), axis=0)
    assert np.any(one_way != other)
    for found in (one_way, other):
        assert np.max(np.abs(found - exact)) / np.max(exact) <= 7 / 2**24
