"""What is expected of a figure: the limit of the data sheet, equal nodes, and earlier runs."""

import pytest

from service.benchmarks.expectations import compute_limit, list_last_figures
from service.benchmarks.schemas import RegressionQuery
from service.benchmarks.service import find_regressions
from service.protocol.nodes import NodeAccelerator
from tests.benchmarks.cases import COPY, GEMM, H100, HOST_TO_DEVICE, PART, POWER_GEMM, benchmark
from tests.benchmarks.measured_nodes import MeasuredNodes, inventory
from tests.benchmarks.planned import SUITE, Planned, device

USUAL = Planned(device()).figure
SLOW = Planned(device(), stream=0.8).figure
COPIES = tuple(one for one in SUITE if one[0] == "copy")
GATHERED = {"kind": "strided_read", "array_bytes": 2**32, "stride_bytes": 4096}


def all_reduce(devices):
    return {"kind": "collective", "operation": "all_reduce", "devices": devices, "payload_bytes": 2**30}


def matrix(pattern):
    return {"kind": "peer_matrix", "pattern": pattern, "devices": 4, "transfer_bytes": 2**25}


SCALED = {"kind": "block_scaled_gemm", "m": 8192, "n": 8192, "k": 8192}


def part(**members):
    return NodeAccelerator.model_validate({**PART, **members})


class TestLimit:
    @pytest.mark.parametrize(
        ("work", "limit"),
        [
            (GEMM, 989e12),
            ({**GEMM, "dtype": "fp8_e4m3"}, 1979e12),
            (COPY, 3.35e12),
            # A sector of 32 bytes is fetched for each element of 4.
            (GATHERED, 3.35e12 / 8),
            # 16 lanes of 32 GT/s in the coding of 128 in 130 bits.
            (HOST_TO_DEVICE, 16 * 32e9 * 128 / 130 / 8),
            ({**HOST_TO_DEVICE, "direction": "both"}, 2 * 16 * 32e9 * 128 / 130 / 8),
            # Switches add up, so that bus bytes of eight devices go beyond the link by 14 in 8.
            (all_reduce(8), 450e9 * 14 / 8),
            ({**all_reduce(8), "algorithm": "ring"}, 450e9),
            (POWER_GEMM, None),
            ({**SCALED, "number_format": "mxfp8"}, 1979e12),
            # An H100 has no unit for 4 bits.
            ({**SCALED, "number_format": "nvfp4"}, None),
            ({"kind": "grouped_gemm", "dtype": "bf16", "groups": 8, "m": 64, "n": 64, "k": 64}, 989e12),
            (matrix("all_to_one"), 450e9),
            (matrix("all_to_all"), 4 * 450e9),
        ],
    )
    def test_is_that_of_the_resource_which_bounds_the_work(self, work, limit):
        found = compute_limit(benchmark(work), part(), H100)
        assert found == (limit if limit is None else pytest.approx(limit))

    def test_few_rows_stream_their_weights(self):
        skinny = benchmark({**GEMM, "m": 16}, metric="bytes_per_second")
        assert compute_limit(skinny, part(), H100) == 3.35e12

    def test_a_time_has_none(self):
        small = benchmark(all_reduce(8), metric="seconds")
        assert compute_limit(small, part(), H100) is None

    def test_a_part_that_the_catalog_lacks_has_its_bus_only(self):
        bus = part(pcie_generation_maximum=4, pcie_width_maximum=8)
        assert compute_limit(benchmark(GEMM), bus, None) is None
        assert compute_limit(benchmark(COPY), bus, None) is None
        assert compute_limit(benchmark(HOST_TO_DEVICE), bus, None) == pytest.approx(15.754e9, rel=1e-4)


class TestLastFigures:
    @pytest.fixture
    def fleet(self, database):
        made = MeasuredNodes(database)
        for name in ("node", "equal", "also-equal", "other-power"):
            made.node(name, power=600.0 if name == "other-power" else 700.0)
        return made

    def last(self, fleet, node="node", tenant="default"):
        with fleet.database.open_reader() as session:
            return list_last_figures(session, tenant, node, inventory())

    def test_stand_beside_earlier_runs_and_equal_nodes(self, fleet):
        for name in ("equal", "also-equal", "other-power", "node"):
            fleet.run(name, USUAL, benchmarks=COPIES)
        fleet.run("equal", SLOW, benchmarks=COPIES)
        run_id = fleet.run("node", SLOW, benchmarks=COPIES)
        usual, slow = (planned(COPIES[0][1], "bytes_per_second") for planned in (USUAL, SLOW))
        (found,) = self.last(fleet)
        assert (found.run_id, found.runs, found.value) == (run_id, 2, pytest.approx(slow))
        assert found.datasheet == 3.35e12
        assert found.earlier_runs == (pytest.approx(usual), 1)
        # The lower one of two, as regressions have it.
        assert found.other_nodes == (pytest.approx(slow), 2)
        assert self.last(fleet, tenant="other") == []

    def test_agree_with_regressions(self, fleet):
        for name in ("equal", "also-equal", "node"):
            fleet.run(name, USUAL, benchmarks=COPIES)
        fleet.run("node", SLOW, benchmarks=COPIES)
        (found,) = self.last(fleet)
        with fleet.database.open_reader() as session:
            items = find_regressions(session, "default", RegressionQuery())["items"]
        baselines = {item["against"]: (item["baseline_value"], item["compared"]) for item in items}
        assert baselines == {"earlier_runs": found.earlier_runs, "other_nodes": found.other_nodes}

    def test_a_figure_that_is_rejected_is_shown_and_expected_of_nobody(self, fleet):
        fleet.run("node", USUAL, benchmarks=COPIES)
        fleet.run("equal", SLOW, benchmarks=COPIES, verdict="rejected")
        finding = {"rule": "physics.cache_resident", "verdict": "rejected", "detail": "in the cache"}
        fleet.run("node", SLOW, benchmarks=COPIES, verdict="rejected", findings=[finding])
        (found,) = self.last(fleet)
        assert (found.verdict, found.findings) == ("rejected", [finding])
        assert found.other_nodes is None
        assert found.earlier_runs.compared == 1
        (other,) = self.last(fleet, "equal")
        assert other.earlier_runs is None

    def test_of_two_works_under_one_name_the_later_counts(self, fleet):
        fleet.run("node", USUAL, benchmarks=COPIES)
        name, work, metric = COPIES[0]
        smaller = (name, work.model_copy(update={"array_bytes": 2**30}), metric)
        run_id = fleet.run("node", USUAL, benchmarks=[smaller])
        (found,) = self.last(fleet)
        assert (found.run_id, found.runs, found.earlier_runs) == (run_id, 1, None)
