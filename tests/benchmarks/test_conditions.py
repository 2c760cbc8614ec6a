"""Conditions: what a record says, flat; and which hardware is equal."""

import pytest

from service.benchmarks.conditions import build_conditions, resolve_hardware
from service.benchmarks.schemas import MeasurementConditions
from service.protocol.nodes import NodeAccelerator, NodeHost, NodeInventory
from tests.benchmarks.records import SUITE, record

CUDA = SUITE.model_copy(update={"device": "cuda"})
HOST = NodeHost(operating_system="Linux", kernel="6.12", architecture="x86_64", cpu_count=8, cpu_model="Xeon")
H100 = NodeAccelerator(
    index=0,
    uuid_sha256="a" * 64,
    name="NVIDIA H100 80GB HBM3",
    memory_bytes=85_028_765_696,
    power_limit_watts=700.0,
    sm_clock_maximum_hz=1_980_000_000,
)


def measured_on(accelerator=H100, host=HOST, *, suite=CUDA, **members):
    inventory = NodeInventory(device="cuda", host=host, accelerators=[accelerator])
    return resolve_hardware(inventory, record(1, suite=suite, **members))


def changed(shape, **members):
    return shape.model_copy(update=members)


class TestHardware:
    def test_is_called_as_its_driver_calls_it(self):
        assert measured_on(accelerator_index=0).name == "NVIDIA H100 80GB HBM3"
        assert measured_on(suite=SUITE).name == "Xeon"

    @pytest.mark.parametrize(
        "other", [{"memory_bytes": 96 * 2**30}, {"power_limit_watts": 500.0}, {"sm_clock_maximum_hz": 10**9}]
    )
    def test_of_one_name_and_other_numbers_is_other_hardware(self, other):
        one, two = (measured_on(card, accelerator_index=0) for card in (H100, changed(H100, **other)))
        assert one.name == two.name
        assert one.sha256 != two.sha256

    @pytest.mark.parametrize("other", [{"uuid_sha256": "b" * 64}, {"pci_bus_id": "0000:1b:00.0"}])
    def test_is_the_same_whichever_card_of_a_kind_it_is(self, other):
        cards = (H100, changed(H100, **other))
        assert len({measured_on(card, accelerator_index=0) for card in cards}) == 1

    def test_of_a_processor(self):
        hosts = (HOST, changed(HOST, kernel="6.13"), changed(HOST, cpu_count=4))
        same, updated, smaller = (measured_on(host=host, suite=SUITE) for host in hosts)
        assert same == updated != smaller

    def test_is_unknown_where_nobody_says(self):
        assert measured_on() is None
        assert measured_on(accelerator_index=1) is None
        nameless = NodeHost(operating_system="Linux", kernel="6.12", architecture="x86_64", cpu_count=8)
        assert measured_on(host=nameless, suite=SUITE) is None


class TestConditions:
    def test_of_a_measurement(self):
        found = build_conditions(record(1, clock_hz=1.98e9, accelerator_index=3, suite=CUDA))
        assert (found["sm_clock_hz"], found["accelerator_index"], found["timer"]) == (1.98e9, 3, "host_clock")
        assert (found["correctness_passed"], found["largest_relative_error"]) == (True, 1e-7)
        assert MeasurementConditions.model_validate(found).model_dump() == found

    def test_what_is_unknown_is_absent(self):
        found = build_conditions(record(1))
        assert not {"power_watts", "sm_clock_hz", "accelerator_index", "energy_joules"} & found.keys()
        assert None not in found.values()

    def test_of_a_failure(self):
        failed = record(1, status="failed", failure={"reason": "CRASHED"})
        assert build_conditions(failed) == {"worker_version": "0.3.0", "concurrent_accelerators": 0}
