"""Which accelerator of the shipped catalog a node has: by its name, unless memory or power say otherwise."""

import pytest

from service.benchmarks.datasheets import build_datasheet
from service.calibrations.devices import DeviceCatalog, _build_accelerator, resolve_device
from service.catalog.shipped import list_shipped_documents
from service.planning.hardware.nearest import RequestedDevice, resolve_basis
from service.protocol.nodes import NodeAccelerator, NodeHost, NodeInventory
from tests.benchmarks.cases import PART


def sheet(**members):
    documents = list_shipped_documents()
    part = NodeAccelerator.model_validate({**PART, **members})
    return build_datasheet(part, documents["accelerators"], documents["links"])


def test_of_a_driver_s_name():
    """84.93e9 bytes are in the catalog; dense 989e12 in bf16, 3.35 TB/s, NVLink 4 with 450 GB/s one way."""
    found = sheet()
    assert found.accelerator_id == "h100-sxm"
    assert (found.find_peak("bf16"), found.find_peak("fp8_e4m3"), found.find_peak("fp64")) == (
        989e12,
        1979e12,
        67e12,
    )
    assert (found.memory_bytes_per_second, found.link_bytes_per_second) == (3.35e12, 450e9)


@pytest.mark.parametrize(
    "members",
    [
        {"name": "NVIDIA X900"},
        {"memory_bytes": 96 * 10**9},
        {"power_limit_default_watts": 500.0},
        # A slice, whatever else its driver calls by the name of the whole device.
        {"mig_mode": True, "mig_profile": "7g.80gb"},
    ],
)
def test_of_another_part_nothing_is_known(members):
    """One name is sold with 96 GB and 500 W too (pitfall 23)."""
    assert sheet(**members) is None


@pytest.mark.parametrize(
    ("name", "found"),
    [(PART["name"], "h100-sxm-mig-1g.10gb-me"), ("NVIDIA X900", "unknown-mig-1g.10gb-me")],
)
def test_figures_of_a_slice_are_of_no_device_of_the_catalog(name, found):
    part = NodeAccelerator.model_validate(
        {**PART, "name": f"{name} MIG 1g.10gb+me", "memory_bytes": 10 * 2**30, "mig_profile": "1g.10gb+me"}
    )
    documents = list_shipped_documents()
    known = DeviceCatalog(documents["accelerators"], {link["id"]: link for link in documents["links"]})
    host = NodeHost(operating_system="Linux", kernel="6.1", architecture="x86_64", cpu_count=2)
    inventory = NodeInventory(device="cuda", host=host, accelerators=[part])
    measured = resolve_device("node-1", inventory, part, known, None)
    assert (measured.scope.accelerator_id, measured.scope.generation) == (found, None)
    assert measured.device.accelerator is None
    whole = next(row for row in documents["accelerators"] if row["id"] == "h100-sxm")
    asked = RequestedDevice(_build_accelerator(whole), node_id="node-1")
    assert resolve_basis(measured.scope, asked) is None


def test_a_lowered_limit_is_the_same_part():
    assert sheet(power_limit_watts=500.0, power_limit_default_watts=700.0).accelerator_id == "h100-sxm"
