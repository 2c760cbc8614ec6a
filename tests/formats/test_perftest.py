"""What the programs of perftest print, by published outputs: bits and bytes, tens and twos, glued columns."""

import json

import pytest

from service.formats.measurements.perftest import BANDWIDTH, LATENCY, measurements_from_perftest
from service.planning.errors import PlanningError

LINE = "-" * 87
GBITS = f"""                    RDMA_Write BW Test
 Link type       : Ethernet
{LINE}
 local address: LID 0000 QPN 0x008a PSN 0xfffb6d RKey 0x238f86 VAddr 0x007dd5a3cfd000
{LINE}
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 1500.000000 != 3300.016000. CPU Frequency is not max.
 65536      560845           0.00               98.02                0.186950
{LINE}
"""
"""100 Gb/s, by duration, which has no peak; a person's notes of their network."""
MEBIBYTES = """ #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
 65536      5000             11030.78            11030.45\t\t     0.176487
"""
MEGABYTES = """ #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      1000             46567.34            46557.03\t\t     0.744912
"""
"""The head that older releases have over the same figures: 46,557.03 x 2^20 = 0.744912e6 x 65,536."""
SIZES = """ #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 2          5000           0.142947            0.012281            0.767588
 4          5000             0.28               0.26               8.255475
 4096       5000             188.76             188.56             5.754307
"""
LATENCIES = """ #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 2       1000          1.10           2.05         1.11     \t       1.12        \t0.00   \t\t1.19    \t\t2.05   
"""  # noqa: E501, W291
GLUED = LATENCIES.partition("\n")[0] + (
    "\n 2       1000          453.06         37330.73     692.41            928.05           "
    "2465.901216.65                 37330.73\n"
)
"""A deviation that fills its column; of an emulated adapter."""
RESULTS = {
    "MsgSize": 65536,
    "n_iterations": 5000,
    "BW_peak": 5293.52,
    "BW_average": 2229.27,
    "MsgRate": 0.035668,
}
DOCUMENT = {
    "test_info": {"test": "RDMA_Write BW Test", "Device": "mlx5_11", "Link_type": "Ethernet", "Mtu": 1024},
    "results": RESULTS,
}
"""``--out_json`` without ``--report_gbits``; a comment in the source of a person's tests of a cluster."""


def readings(content):
    read = measurements_from_perftest(content)
    assert read.refused == []
    (run,) = read.runs
    return run


def values(run, metric):
    return {one.statistic: one.value for one in run.readings if one.metric == metric}


@pytest.mark.parametrize(("content", "expected"), [
    (GBITS, {"mean": 98.02e9 / 8}),
    (MEBIBYTES, {"max": 11030.78 * 2**20, "mean": 11030.45 * 2**20}),
    (MEGABYTES, {"max": 46567.34 * 2**20, "mean": 46557.03 * 2**20}),
    (json.dumps(DOCUMENT), {"max": 5293.52 * 2**20, "mean": 2229.27 * 2**20}),
    (json.dumps({"results": {**RESULTS, "BW_average": 18.7, "BW_peak": 0.0}}), {"mean": 18.7e9 / 8}),
])  # fmt: skip
def test_a_bandwidth_is_in_bits_of_ten_or_bytes_of_two(content, expected):
    """98.02 Gb/s are 12.25 GB/s and 0.18695 million messages of 65,536 bytes; a peak of 0 is none."""
    run = readings(content)
    assert values(run, BANDWIDTH) == pytest.approx(expected, rel=1e-12)
    assert {one.of["bytes"] for one in run.readings} == {65536}


def test_a_latency_is_in_microseconds_and_the_typical_one_is_the_median():
    run = readings(LATENCIES)
    assert values(run, LATENCY) == pytest.approx(
        {"min": 1.1e-6, "max": 2.05e-6, "p50": 1.11e-6, "mean": 1.12e-6, "p99": 1.19e-6, "p99.9": 2.05e-6}
    )
    assert {tuple(one.of.items()) for one in run.readings} == {(("bytes", 2), ("iterations", 1000))}
    found = {"results": {"MsgSize": 64, "n_iterations": 1000, "t_typical": 3, "t_avg": 4}}
    assert values(readings(json.dumps(found)), LATENCY) == pytest.approx({"p50": 3e-6, "mean": 4e-6})


def test_every_size_is_a_reading():
    sizes = [(one.of["bytes"], one.value) for one in readings(SIZES).readings if one.statistic == "mean"]
    assert sizes == [(2, pytest.approx(0.012281e9 / 8)), (4, pytest.approx(0.26e9 / 8)), (4096, 188.56e9 / 8)]


@pytest.mark.parametrize(("content", "codes"), [
    (GLUED, ["COLUMNS_DIFFER"]),
    (GBITS.replace("[Gb/sec]", "[MiB/sec]"), ["UNIT_UNKNOWN"]),
    (MEBIBYTES.replace("[MiB/sec]", "[Gb/sec]"), ["UNIT_UNKNOWN"]),
    (MEBIBYTES.replace("[MiB/sec]", "[GiB/sec]"), ["UNIT_UNKNOWN"]),
    (MEBIBYTES.replace("65536 ", "4096  "), ["UNIT_UNKNOWN"]),
    (GBITS.replace("0.186950", "0.000000"), ["NOT_POSITIVE"]),
    (LATENCIES.replace("usec", "cycles"), ["UNIT_UNKNOWN"]),
    (LATENCIES.replace("1.11 ", "nan "), ["NOT_A_NUMBER"]),
    (json.dumps({"results": {**RESULTS, "BW_average": 223.0}}), ["UNIT_UNKNOWN"]),
    (json.dumps({"results": {**RESULTS, "MsgRate": "fast"}}), ["NOT_A_NUMBER"]),
    (json.dumps({"results": {"BW_average": 1.0, "MsgRate": 1.0}}), ["SIZE_UNKNOWN"]),
])  # fmt: skip
def test_what_does_not_agree_with_itself_is_refused(content, codes):
    read = measurements_from_perftest(content)
    assert [one.code for one in read.refused] == codes
    assert not any(one.value for run in read.runs for one in run.readings if one.metric == BANDWIDTH)


@pytest.mark.parametrize("content", ["", "Couldn't listen to port 18515", "{}", '{"results": []}', "{"])
def test_other_files_are_refused(content):
    with pytest.raises(PlanningError):
        measurements_from_perftest(content)
