"""Measured collectives beside the estimates, and the constants fitted to them.

`links.csv` holds 21 rows of the Azure AI benchmarking guide, cited there, of those that the constants came
from.
"""

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from accuracy.cli import app
from accuracy.hardware import is_hardware, read_hardware
from accuracy.links import (
    estimated,
    fit_all_links,
    fit_links,
    link_lines,
    link_probes,
    score_links,
)
from service.evidence.service import load_shipped_document, parse_link_curves
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.hardware.collectives import Collective, CollectiveAlgorithm
from service.planning.hardware.links import LinkKind
from service.resolve.hardware import find_catalog_cluster
from service.resolve.host import find_host_link

DATA = Path(__file__).parents[1] / "data" / "evidence"
CATALOG = build_shipped_snapshot()
ROWS = read_hardware(DATA / "links.csv").rows
SHIPPED = load_shipped_document()["links"]


def probes(rows):
    return link_probes(
        rows,
        lambda name, count, per_node: find_catalog_cluster(CATALOG, name, count, per_node),
        lambda name: find_host_link(CATALOG, name),
    )


def changed(row, **columns):
    text = {**row.text, "notes": columns.pop("notes", ""), "shape_or_size": columns.pop("size", "8GiB")}
    return replace(row, text=text, **columns)


REDUCED = next(row for row in ROWS if row.metric == "busbw")


def test_published_rates_are_met():
    """Sections 2 and 3 of the worker's notes: 8 devices at 8 GB, A100 232, H100 479 and H200 480 GB/s."""
    tried = score_links(SHIPPED, probes(ROWS))
    assert len(tried) == len(ROWS) - 1
    large = {
        one.probe.row.accelerator_id: one for one in tried if "8GB" in one.probe.row.text["shape_or_size"]
    }
    for name, printed in (("a100-sxm-80gb", 231.58e9), ("h100-sxm", 478.87e9), ("h200-sxm", 479.98e9)):
        assert large[name].probe.row.value == pytest.approx(printed)
        assert large[name].held_out == pytest.approx(1.0, abs=0.08)
    errors = sorted(abs(one.held_out - 1.0) for one in tried)
    assert errors[len(errors) // 2] < 0.08
    assert sum(one.is_covered for one in tried) >= 0.8 * len(tried)


def test_implausible_rows_and_unknown_devices_are_left_out():
    implausible = [row for row in ROWS if "implausible" in row.text["notes"]]
    assert len(implausible) == 1
    assert probes(implausible) == []
    assert probes([changed(REDUCED, accelerator_id="?unknown")]) == []
    assert probes([changed(REDUCED, operation="gossip")]) == []


def test_what_a_row_says_of_its_collective():
    (ring,) = probes([changed(REDUCED, notes="algorithm Ring")])
    (plain,) = probes([changed(REDUCED, notes="NVLS disabled")])
    assert ring.setting.algorithm is CollectiveAlgorithm.RING
    assert not plain.setting.switched
    (far,) = probes(
        [changed(REDUCED, devices=32, nodes=4, notes="EFA v4 8x50 GB/s per node", operation="all_gather")]
    )
    assert far.setting.collective is Collective.ALL_GATHER
    assert far.setting.cluster.inter_node_link[:2] == (LinkKind.EFA, 50e9)
    assert far.setting.cluster.domain == 8


def test_pairs_and_hosts_have_links_of_their_own():
    copies = {probe.row.operation: probe for probe in probes(row for row in ROWS if row.kind == "transfer")}
    assert copies["Host to Device"].setting.cluster.intra_node_link.kind is LinkKind.PCIE
    assert copies["Device to Device read"].setting.directions == 2.0


def simulated(document):
    """Rows as a machine with these constants would give them, over sizes and devices."""
    rows = []
    for name in ("a100-sxm-80gb", "h100-sxm", "h200-sxm"):
        for size in ("16KiB", "1MiB", "16MiB", "256MiB", "8GiB"):
            rows.extend(
                changed(REDUCED, id=f"{name} {size} {notes}", accelerator_id=name, notes=notes, size=size)
                for notes in ("", "NVLS disabled")
            )
    found = probes(rows)
    rates = estimated(found, parse_link_curves(document).value)
    return [
        probe._replace(row=replace(probe.row, value=float(rate)))
        for probe, rate in zip(found, rates, strict=True)
    ]


@pytest.fixture(scope="module")
def known():
    document = copy.deepcopy(SHIPPED)
    document["launch_seconds"]["value"] = 2e-5
    document["chunk_seconds"]["value"] = 3e-6
    document["rate"]["nvlink"]["value"] = 0.75
    document["in_network"]["hopper"]["value"] = 0.65
    return document


def test_constants_are_found_again(known):
    fitted = fit_links(SHIPPED, simulated(known))
    for path in (("rate", "nvlink"), ("in_network", "hopper")):
        wanted, found = (document[path[0]][path[1]]["value"] for document in (known, fitted))
        assert found == pytest.approx(wanted, rel=0.01), path
    for name in ("launch_seconds", "chunk_seconds"):
        assert fitted[name]["value"] == pytest.approx(known[name]["value"], rel=0.15), name
    # No row has an EFA.
    assert fitted["rate"]["efa"]["value"] == SHIPPED["rate"]["efa"]["prior"]


def test_a_group_is_predicted_by_the_others(known):
    fitted = fit_all_links(SHIPPED, simulated(known))
    assert max(abs(one.held_out - 1.0) for one in fitted.tried) < 0.05
    assert {line.group.split()[0] for line in link_lines(fitted.tried)} == {"busbw"}
    constant = fitted.document["rate"]["nvlink"]
    assert constant["low"] <= constant["value"] <= constant["high"]
    assert constant["runs"] == 30
    assert fitted.document["rate"]["pcie"]["runs"] == 0


def test_accuracy_takes_files_of_either_kind(tmp_path):
    assert is_hardware(DATA / "links.csv")
    assert not is_hardware(DATA / "measured.csv")
    assert not is_hardware(tmp_path / "nothing.csv")
    run = CliRunner().invoke(app, ["score", str(DATA / "links.csv")])
    assert run.exit_code == 0
    assert "busbw Azure AI benchmarking guide on h100-sxm" in run.output
    assert "covered" in run.output
    assert "held out" not in run.output


def test_the_command_writes_what_it_fitted(tmp_path):
    out = tmp_path / "curves.json"
    run = CliRunner().invoke(app, ["links", str(DATA / "links.csv"), "--out", str(out)])
    assert run.exit_code == 0
    written = json.loads(out.read_text())["links"]
    assert written["fitted"]["rows"] == 20
    assert list(written["fitted"]["rows_sha256"]) == ["links.csv"]
    assert written["rate"]["nvlink"]["range"] == SHIPPED["rate"]["nvlink"]["range"]
