"""Every rule of validation, on records with one fault each: what it says, and that it says nothing else."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from service.benchmarks.validation.case import EarlierResults
from service.benchmarks.validation.fleet import compute_baseline
from service.benchmarks.validation.rules import validate_case
from service.benchmarks.verdicts import ResultVerdict
from service.protocol.nodes import NodeGap
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import shipped_suites
from tests.benchmarks.cases import (
    BEGAN,
    COPY,
    GEMM,
    HOST_TO_DEVICE,
    POWER_GEMM,
    POWER_IDLE,
    READ,
    benchmark,
    beside,
    case,
    found,
    recorded,
    sibling,
    unchecked,
)

RECORDS = Path(__file__).parents[1] / "data/records/cpu"
SCALED = {"kind": "block_scaled_gemm", "number_format": "mxfp8", "m": 8192, "n": 8192, "k": 8192}
GROUPED = {"kind": "grouped_gemm", "dtype": "bf16", "groups": 8, "m": 2048, "n": 14336, "k": 4096}
SKINNY = {"kind": "gemm", "dtype": "bf16", "m": 1, "n": 14336, "k": 8192}
THROTTLE = ("sw_power_cap", "sw_thermal", "hw_thermal", "hw_power_brake", "sync_boost")


def throttled(**seconds):
    return {"throttle_seconds": {**dict.fromkeys(THROTTLE, 0.0), **seconds}}


def clock(hertz):
    return {"sm_clock_hz": dict.fromkeys(("minimum", "median", "maximum"), hertz)}


def work_of(document):
    return benchmark(document).work


@pytest.mark.parametrize("work", [GEMM, COPY, READ, HOST_TO_DEVICE, POWER_GEMM])
def test_a_sound_result_is_accepted(work):
    sound = case(work)
    assert validate_case(beside(sound, sibling(sound))).verdict is ResultVerdict.ACCEPTED
    assert found(sound) == {}


class TestPlantedFaults:
    """The faults that the issue names, each caught by the check that is there for it."""

    def test_zeros_as_data(self):
        """Zeros are 13% faster on H200 (pitfall 1); a checksum of zeros is the same under every seed."""
        said = found(case(measurement={"data": "zeros"}))
        assert said == {"conditions.constant_data": "evidence_only"}
        kept_silent = case(earlier=EarlierResults(with_this_checksum="another"))
        assert found(kept_silent) == {"correctness.seed_ignored": "rejected"}

    def test_buffers_that_stay_in_the_cache(self):
        """16 MiB in a cache of 50 MiB; the arrays are named as small as they are, or the rate tells."""
        resident = {"working_set_bytes": 2**24, "flush_bytes": 0}
        small = {**COPY, "array_bytes": 2**23}
        assert found(case(small, measurement=resident)) == {"physics.cache_resident": "rejected"}
        assert found(case(COPY, rate=5.5e12)) == {"physics.above_memory_bandwidth": "rejected"}
        control = case(COPY)
        cached = work_of({"kind": "cache_stream", "pattern": "copy", "array_bytes": 2**23, "passes": 100})
        slower = sibling(control, benchmark="l2", work=cached, figure=control.figure)
        assert found(beside(control, slower)) == {"cross_metric.cache_not_faster": "suspect"}

    def test_throttled_clocks(self):
        hot = case(telemetry=throttled(hw_thermal=0.1))
        assert found(hot) == {"conditions.throttled": "suspect"}
        assert found(case(telemetry=clock(1.2e9))) == {"conditions.low_clock": "suspect"}

    def test_a_record_that_is_sent_again(self):
        copied = case(earlier=EarlierResults(with_these_samples="another"))
        assert found(copied) == {"replay.samples_seen": "rejected"}

    @pytest.mark.parametrize("factor", [1e-3, 1e-6])
    def test_samples_in_another_unit(self, factor):
        """Micro- and milliseconds where nanoseconds are meant: they do not fill their window."""
        sound = case()
        swapped = [max(round(one * factor), 1) for one in sound.measurement.samples_ns]
        window = sound.telemetry.window_seconds
        said = found(case(samples_ns=swapped, telemetry={"window_seconds": window}))
        assert said["physics.swapped_units"] == "rejected"

    def test_readings_in_another_unit(self):
        """Kilowatts against the sensor of the same record, megahertz against the maximum of the driver."""
        watts = {"power_watts": dict.fromkeys(("minimum", "median", "maximum"), 650.0)}
        assert found(case(POWER_GEMM, rate=0.65, telemetry=watts))["physics.swapped_units"] == "rejected"
        assert found(case(telemetry=clock(1980.0)))["physics.swapped_units"] == "rejected"
        mebibytes = case({"kind": "capacity"}, rate=79_000.0)
        assert found(mebibytes)["physics.swapped_units"] == "rejected"

    def test_a_record_that_somebody_made_up(self):
        """Times that did not pass, samples that no clock gives, and no product that could be compared."""
        made_up = case(
            samples_ns=[1_600_000] * 30,
            measurement={"correctness": None, "timer": "host_clock"},
            result={"finished_monotonic_seconds": 100.5, "finished_at": BEGAN + timedelta(seconds=0.5)},
        )
        assert {
            "replay.time_not_passed": "rejected",
            "quality.identical_samples": "rejected",
            "correctness.missing": "rejected",
        }.items() <= found(made_up).items()

    def test_a_sparse_figure(self):
        """1979 TFLOP/s are printed for bf16, with a star: the dense rate is half of it."""
        assert found(case(rate=1.6e15)) == {"physics.above_dense_peak": "rejected"}
        (finding,) = validate_case(case(rate=1.6e15)).findings
        # 989e12 x 1.98 GHz / 1.829 GHz x 1.02, by 132 multiprocessors of 4096 FLOP a clock.
        assert finding.limit == pytest.approx(1.98e9 * 132 * 4096 * 1.02)


class TestEnvelopeAndReplay:
    def test_the_lease(self):
        assert found(case(lease="unknown", granted_at=None)) == {"envelope.unknown_lease": "rejected"}
        assert found(case(lease="late")) == {"envelope.late": "evidence_only"}
        assert found(case(is_displaced=True)) == {"envelope.second_payload": "rejected"}
        assert "envelope.hardware" in unchecked(case(is_inventory_known=False))

    def test_times_outside_of_the_lease(self):
        early = case(granted_at=BEGAN + timedelta(minutes=1))
        assert found(early) == {"replay.before_lease": "suspect"}
        assert found(case(received_at=BEGAN - timedelta(minutes=1))) == {"replay.after_receipt": "suspect"}
        # The same record of a node whose clock is a minute behind.
        behind = case(granted_at=BEGAN + timedelta(minutes=1), result={"clock_offset_seconds": 61.0})
        assert "replay.before_lease" not in found(behind)

    def test_without_an_offset_nobody_knows(self):
        sound = case()
        unsaid = replace(sound, result=sound.result.model_copy(update={"clock_offset_seconds": None}))
        assert found(unsaid) == {}
        assert {"replay.before_lease", "replay.after_receipt"} <= unchecked(unsaid)

    def test_two_results_of_a_device_at_the_same_time(self):
        one = case()
        assert found(beside(one, sibling(one, after_seconds=-5))) == {"replay.overlap": "suspect"}
        elsewhere = sibling(one, after_seconds=-5, accelerator_index=1)
        assert found(beside(one, elsewhere)) == {}

    def test_a_clock_that_was_set(self):
        set_back = case(result={"finished_at": BEGAN - timedelta(seconds=3)})
        assert found(set_back) == {"replay.clock_set": "suspect"}

    def test_samples_that_say_too_little_are_no_copy(self):
        coarse = case(samples_ns=[1_600_000, 1_600_500] * 3)
        assert "replay.samples_seen" in unchecked(coarse)


class TestPhysics:
    def test_the_clock_raises_the_peak_and_an_unknown_one_a_little(self):
        boosted, unknown = case(rate=1.05e15), case(rate=1.05e15, telemetry={"sm_clock_hz": None})
        assert found(boosted) == {}
        assert found(unknown) == {}
        assert found(case(rate=1.05e15, telemetry=clock(1.75e9))) == {"physics.above_dense_peak": "rejected"}
        assert found(case(rate=1.2e15, telemetry={"sm_clock_hz": None})) == {
            "physics.above_dense_peak": "rejected"
        }

    def test_without_a_data_sheet_it_says_so(self):
        assert found(case(rate=5e15, datasheet=None)) == {}
        assert "physics.above_dense_peak" in unchecked(case(datasheet=None))
        assert "physics.above_memory_bandwidth" in unchecked(case(COPY, datasheet=None))

    def test_reads_far_apart_fetch_whole_sectors(self):
        """0.5 TB/s of words that are 128 bytes apart fetch 4 TB/s."""
        strided = {"kind": "strided_read", "stride_bytes": 128, "array_bytes": 2**32}
        assert found(case(strided, rate=0.3e12)) == {}
        assert found(case(strided, rate=0.5e12)) == {"physics.above_memory_bandwidth": "rejected"}

    def test_scaled_products_have_the_peak_of_their_elements(self):
        """1.98 PFLOP/s of 8 bits, half of that of 16."""
        assert found(case(SCALED, rate=1.6e15)) == {}
        assert found(case(SCALED, rate=3.2e15)) == {"physics.above_dense_peak": "rejected"}
        assert found(case(GROUPED, rate=1.6e15)) == {"physics.above_dense_peak": "rejected"}

    def test_links(self):
        """63 GB/s are one direction of 16 lanes of generation 5; NVSwitch reaches 480 of 450."""
        assert found(case(HOST_TO_DEVICE, rate=66e9)) == {"physics.above_link": "rejected"}
        assert found(case({**HOST_TO_DEVICE, "direction": "both"}, rate=100e9)) == {}
        adapters = {"kind": "rdma_link", "operation": "write", "path": "loopback", "message_bytes": 2**20}
        read = {"kind": "storage_to_device", "method": "cufile", "file_bytes": 2**30, "block_bytes": 2**22}
        for work in ({**adapters, "memory": "device"}, read):
            assert found(case(work, rate=66e9)) == {"physics.above_link": "rejected"}
            assert found(case(work, rate=49e9)) == {}
        assert found(case({**adapters, "memory": "host"}, rate=66e9)) == {}
        peer = {"kind": "peer_link", "direction": "one_way", "method": "copy_engine", "transfer_bytes": 2**29}
        assert found(case(peer, rate=672e9)) == {"physics.above_link": "rejected"}
        reduced = {"kind": "collective", "operation": "all_reduce", "devices": 8, "payload_bytes": 2**33}
        assert found(case(reduced, rate=480e9)) == {}
        assert found(case({**reduced, "algorithm": "ring"}, rate=480e9)) == {"physics.above_link": "rejected"}

    def test_power_memory_and_launches(self):
        assert found(case(POWER_GEMM, rate=760.0)) == {"physics.above_power_limit": "rejected"}
        assert found(case({"kind": "capacity"}, rate=86e9)) == {"physics.above_memory": "rejected"}
        small = {"kind": "gemm", "dtype": "bf16", "m": 8, "n": 8, "k": 8}
        at_once = case(small, samples_ns=[300 + place for place in range(30)])
        assert found(at_once)["physics.below_launch_floor"] == "rejected"

    def test_a_clock_above_the_highest(self):
        assert "physics.clock_above_maximum" in found(case(telemetry=clock(2.4e9)))


class TestConditions:
    def test_the_power_limit_is_a_label(self):
        capped = case(telemetry={**throttled(sw_power_cap=0.4), **clock(1.3e9)})
        assert found(capped) == {"conditions.power_capped": "accepted"}
        assert validate_case(capped).verdict is ResultVerdict.ACCEPTED

    def test_a_smaller_size_is_a_label(self):
        sound = case(COPY)
        gap = NodeGap(pointer="/benchmark/work", code="reduced-size", detail="needs 9 bytes, 8 are free")
        smaller = replace(sound, result=sound.result.model_copy(update={"gaps": [gap]}))
        assert found(smaller) == {"conditions.reduced_size": "accepted"}

    @pytest.mark.parametrize(
        ("telemetry", "rule"),
        [
            ({"other_processes": 2}, "conditions.other_processes"),
            ({"ecc_uncorrected": 1}, "conditions.memory_errors"),
        ],
    )
    def test_not_alone_or_not_well(self, telemetry, rule):
        assert found(case(telemetry=telemetry)) == {rule: "evidence_only"}

    def test_a_part_of_a_device_and_a_narrow_link(self):
        assert found(case(part={"mig_mode": True})) == {"conditions.partitioned": "evidence_only"}
        assert found(case(part={"mig_mode": True, "mig_profile": "1g.10gb"})) == {}
        narrow = case(HOST_TO_DEVICE, rate=25e9, telemetry={"pcie_width": 8})
        assert found(narrow) == {"conditions.narrow_link": "evidence_only"}
        assert found(case(COPY, telemetry={"pcie_width": 8})) == {}

    def test_what_the_driver_does_not_say_is_no_pass(self):
        silent = dict.fromkeys(("sm_clock_hz", "throttle_seconds", "other_processes", "ecc_uncorrected"))
        blind = case(telemetry=silent, part={"mig_mode": None})
        assert found(blind) == {}
        assert {
            "conditions.throttled",
            "conditions.low_clock",
            "conditions.other_processes",
            "conditions.memory_errors",
            "conditions.partitioned",
        } <= unchecked(blind)
        seen = case(telemetry={**silent, "throttle_reasons": ["hw-thermal"]})
        assert found(seen) == {"conditions.throttled": "suspect"}
        assert "conditions.telemetry" in unchecked(case(measurement={"telemetry": None}))


class TestQuality:
    def test_samples(self):
        few = case(samples_ns=[1_600_000, 1_610_000, 1_590_000])
        assert found(few) == {"quality.few_samples": "suspect"}
        wide = case(samples_ns=[1_500_000 + 60_000 * ((7 * place) % 30 % 5) for place in range(30)])
        assert found(wide) == {"quality.sample_spread": "suspect"}
        rising = case(samples_ns=[1_500_000 + 4_000 * place for place in range(30)])
        assert found(rising) == {"quality.drift": "suspect"}

    def test_repeats(self):
        one = case()
        assert found(beside(one, sibling(one, figure=1.02 * one.figure))) == {}
        assert found(beside(one, sibling(one, figure=1.05 * one.figure))) == {
            "quality.repeat_spread": "suspect"
        }
        assert "quality.repeat_spread" in unchecked(one)

    def test_energy(self):
        apart = {"power_watts": dict.fromkeys(("minimum", "median", "maximum"), 500.0)}
        assert found(case(POWER_GEMM, rate=600.0, telemetry=apart)) == {"quality.energy_disagrees": "suspect"}
        short = case(POWER_GEMM, telemetry={"window_seconds": 2.0})
        assert found(short) == {"quality.short_window": "evidence_only"}


class TestCorrectness:
    @pytest.mark.parametrize(
        ("members", "rule"),
        [
            ({"largest_error": 0.1, "passed": True}, "correctness.wrong"),
            ({"passed": False}, "correctness.wrong"),
            ({"tolerance": 2.0}, "correctness.loose"),
        ],
    )
    def test_wrong_or_not_compared(self, members, rule):
        sound = {"method": "tiles", "largest_error": 1e-3, "tolerance": 1e-2, "passed": True}
        assert found(case(measurement={"correctness": {**sound, **members}})) == {rule: "rejected"}

    def test_what_need_not_be_compared(self):
        launches = {"kind": "launch_latency", "method": "stream", "launches": 1000}
        silent = case(
            launches, samples_ns=[2_000_000 + place for place in range(30)], measurement={"correctness": None}
        )
        assert found(silent) == {}
        assert not any(rule.startswith("correctness") for rule in unchecked(silent))


class TestFleet:
    WINDOWS = {
        "windows": [{"accelerator_id": "h100-sxm", "low": 600e12, "high": 820e12, "source": "ml-engineering"}]
    }

    def test_while_peers_are_few_what_is_published_counts(self):
        assert found(case(asked=self.WINDOWS)) == {}
        assert found(case(rate=400e12, asked=self.WINDOWS)) == {"fleet.outside_window": "suspect"}
        assert found(case(rate=400e12, asked=self.WINDOWS, peers=[400e12] * 5)) == {}
        assert "fleet.outside_window" in unchecked(case(asked=self.WINDOWS, datasheet=None))

    def test_an_outlier_among_five(self):
        peers = [700e12, 702e12, 698e12, 705e12, 695e12]
        assert found(case(peers=peers)) == {}
        assert found(case(rate=500e12, peers=peers)) == {"fleet.outlier": "suspect"}

    def test_a_baseline_leaves_outliers_out(self):
        """One of six is at half: the middle and the scale are those of the five."""
        assert compute_baseline(
            [100.0, 101.0, 99.0, 100.5, 99.5, 50.0], least_spread=0.0
        ) == compute_baseline([100.0, 101.0, 99.0, 100.5, 99.5], least_spread=0.0)


class TestCrossMetric:
    def test_copies_are_below_reads(self):
        copy = case(COPY)
        read = sibling(copy, benchmark="read", work=work_of(READ), figure=2.7e12)
        assert found(beside(copy, read)) == {"cross_metric.above_read": "suspect"}
        assert found(beside(copy, read._replace(figure=3.1e12))) == {}
        assert "cross_metric.above_read" in unchecked(copy)

    def test_streamed_weights_are_below_reads(self):
        skinny = case(SKINNY, rate=3.2e12, asked={"metric": "bytes_per_second"})
        read = sibling(skinny, benchmark="read", work=work_of(READ), metric="bytes_per_second", figure=2.9e12)
        assert found(beside(skinny, read)) == {"cross_metric.above_read": "suspect"}

    @pytest.mark.parametrize("product", [GEMM, SCALED, GROUPED])
    def test_what_is_warm_is_no_faster(self, product):
        sustained = case(product, rate=6e14, measurement={"warmup_seconds": 30.0})
        cold = sibling(sustained, benchmark="cold", warmup_seconds=0.5, figure=0.95 * sustained.figure)
        assert found(beside(sustained, cold)) == {"cross_metric.sustained_above_cold": "suspect"}
        assert found(beside(sustained, cold._replace(figure=1.1 * sustained.figure))) == {}

    def test_power(self):
        loaded = case(POWER_GEMM, rate=600.0)
        idle = sibling(loaded, benchmark="idle", work=work_of(POWER_IDLE), figure=100.0)
        assert found(beside(loaded, idle)) == {}
        assert found(beside(loaded, idle._replace(figure=650.0))) == {"cross_metric.power_order": "suspect"}
        below = beside(case(telemetry={"energy_power_watts": 70.0}), idle)
        assert found(below) == {"cross_metric.below_idle": "rejected"}

    def test_a_link_at_less_than_half_of_its_generation(self):
        assert found(case(HOST_TO_DEVICE, rate=26e9)) == {"cross_metric.slow_link": "suspect"}


class TestProcessors:
    """What only accelerators have is not asked of a processor."""

    def test_a_record_of_a_busy_one_is_accepted(self):
        busy = case(
            {**GEMM, "dtype": "fp32", "m": 512, "n": 512, "k": 512},
            samples_ns=[3_000_000 + 200_000 * ((7 * place) % 30 % 5) for place in range(30)],
            device="cpu",
            measurement={"data": "normal(0, 1)", "timer": "host_clock"},
        )
        assert found(beside(busy, sibling(busy, figure=1.2 * busy.figure))) == {}
        assert unchecked(beside(busy, sibling(busy))) == set()

    def test_what_holds_everywhere_is_asked(self):
        copied = case(COPY, device="cpu", earlier=EarlierResults(with_these_samples="another"))
        assert found(copied) == {"replay.samples_seen": "rejected"}
        zeros = case(COPY, device="cpu", measurement={"data": "zeros"})
        assert found(zeros) == {"conditions.constant_data": "evidence_only"}

    def test_the_host_beside_accelerators_is_asked_no_more(self):
        copied = {"kind": "host_stream", "pattern": "copy", "array_bytes": 2**30}
        host = case(copied, rate=2e10, part={"mig_mode": True}, telemetry=throttled(hw_thermal=1.0))
        assert found(beside(host, sibling(host, figure=1.2 * host.figure))) == {}

    def test_a_cache_that_nobody_knows(self):
        gaps = [{"pointer": "/measurement/rotated_buffers", "code": "cache-unknown", "detail": "not said"}]
        assert "physics.cache_resident" in unchecked(case(COPY, device="cpu", result={"gaps": gaps}))


def test_real_records_of_two_busy_cores():
    """Load four to seven: products are accepted; strided reads were 1.7 apart, and that is what is said."""
    verdicts = {}
    for path in sorted(RECORDS.glob("*.json")):
        record = BenchmarkResultReport.model_validate_json(path.read_bytes())
        alike = [
            BenchmarkResultReport.model_validate_json(other.read_bytes())
            for other in RECORDS.glob(f"{record.benchmark.name}-*.json")
            if other != path
        ]
        verdicts[path.stem] = found(beside(recorded(record), *(sibling(recorded(one)) for one in alike)))
    products = [said for name, said in verdicts.items() if name.startswith("gemm")]
    strided = [said for name, said in verdicts.items() if name.startswith("dram")]
    assert products == [{}] * 3
    assert all("suspect" in said.values() and "rejected" not in said.values() for said in strided)


BYTES_PER_SECOND = {
    "cache_stream": 6e12,
    "bank_conflict": 1e13,
    "strided_read": 2e11,
    "host_stream": 5e10,
    "storage": 2e9,
    "storage_to_device": 2e9,
}
LINKS = {"host_link", "peer_link", "peer_matrix", "collective", "external_tool", "rdma_link"}


def plausible(of, device):
    """A figure as this benchmark may well have on an H100, or on a processor."""
    window = next((one for one in of.windows if one.accelerator_id == "h100-sxm"), None)
    if device == "cuda" and window is not None:
        low = window.low if isinstance(window.low, float) else 0.8 * window.high
        return (low + window.high) / 2
    match of.metric:
        case "flops_per_second":
            return 2e13 if device == "cuda" else 5e10
        case "bytes_per_second":
            slow = 4e10 if of.work.kind in LINKS else 1.5e12
            return BYTES_PER_SECOND.get(of.work.kind, slow) if device == "cuda" else 5e9
        case "watts":
            return 90.0 if of.work.load == "idle" else 120.0
        case _:
            return 5e8 if of.work.kind == "context_memory" else 79e9


@pytest.mark.parametrize("suite", shipped_suites().values(), ids=lambda suite: suite.id)
def test_what_suites_measure_can_be_accepted(suite):
    """No benchmark that ships has a rule against what it may well be."""
    for of in suite.benchmarks:
        asked = {**of.model_dump(exclude={"work"}), "repeats": 1}
        taken = {}
        if of.metric == "seconds":
            amount = of.work.count_work()
            each = max(20e3 * amount.parts, amount.moved_bytes / 1.5e3, amount.flops / 2e5)
            taken = {"samples_ns": [round(each * (1 + 0.001 * ((7 * place) % 30))) for place in range(30)]}
        else:
            taken = {"rate": plausible(of, suite.device)}
        made = case(of.work.model_dump(), asked=asked, device=suite.device, **taken)
        assert found(made) == {}, of.name
