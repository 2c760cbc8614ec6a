"""Messages between RDMA adapters, by stand-ins of perftest's programs that listen, connect and print."""

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.protocol.results import DeviceTelemetry
from service.worker.cuda import process_pair, rdma_adapters, rdma_link
from service.worker.measure import MeasuredDevice, measure_repeat
from tests.worker.cuda.fake_nvml import EachDevice
from tests.worker.machines import FakeWatch, benchmark, task

pytestmark = pytest.mark.enable_socket
MIB = 2**20
PROGRAM = Path(__file__).with_name("stand_in_perftest.py").read_text()
INTERPRETER = f"""#!/bin/sh
'''exec' "{sys.executable}" -S "$0" "$@"
' '''
"""
"""Starts Python by the shell: the first line of a script takes no path with a space."""
BANDWIDTH = """---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_1
 Link type       : IB
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 1500.000000 != 3300.016000. CPU Frequency is not max.
 1048576    117421           0.00               393.98                0.046966
---------------------------------------------------------------------------------------
"""
LATENCY = """                    Send Latency Test
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 8       10000          1.42           12.93        1.47                1.51             0.10            1.57                    4.93
"""  # noqa: E501
NDR = "400 Gb/sec (4X NDR)"
BRIDGE = "devices/pci0000:15/0000:15:01.0/0000:16:00.0"


class Node:
    """The devices of a node as the kernel lists them, and perftest with its behaviour."""

    def __init__(self, folder):
        self.system, self.programs = folder / "sys", folder / "bin"
        (self.system / "class" / "infiniband").mkdir(parents=True)
        for number in (17, 18):
            self._link(f"bus/pci/devices/0000:{number}:00.0", f"{BRIDGE}/0000:{number}:00.0")
        self.programs.mkdir()
        self.behaves(built_with=["cuda", "dmabuf"], printed=BANDWIDTH)
        for name in ("ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat"):
            program = self.programs / name
            program.write_text(INTERPRETER + PROGRAM)
            program.chmod(0o700)

    def _link(self, name, target):
        (self.system / target).mkdir(parents=True, exist_ok=True)
        (self.system / name).parent.mkdir(parents=True, exist_ok=True)
        (self.system / name).symlink_to(self.system / target)

    def behaves(self, **how):
        file = self.programs / "behaviour.json"
        before = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**before, **how}))

    def adapter(self, name, place, *, rate=NDR, layer="InfiniBand", state="4: ACTIVE", driver=None):
        port = self.system / "class" / "infiniband" / name / "ports" / "1"
        port.mkdir(parents=True)
        for file, text in (("state", state), ("rate", rate), ("link_layer", layer)):
            (port / file).write_text(f"{text}\n")
        if place:
            self._link(f"class/infiniband/{name}/device", place)
        if driver:
            self._link(f"{place}/driver", f"bus/pci/drivers/{driver}")

    @property
    def told(self):
        return (self.programs / "told").read_text().splitlines()


@pytest.fixture
def node(driver, fake_nvml, monkeypatch, tmp_path):
    """Two accelerators, and four adapters of which mlx5_1 is nearest to both, mlx5_2 next."""
    addresses = [SimpleNamespace(busId=f"00000000:{17 + number}:00.0".encode()) for number in range(2)]
    fake_nvml.answers |= {
        "nvmlDeviceGetCount": 2,
        "nvmlDeviceGetPciInfo": EachDevice(addresses),
        "nvmlDeviceGetUUID": EachDevice(["GPU-a", "GPU-b"]),
    }
    driver.fact("devices", 2)
    made = Node(tmp_path)
    made.adapter("mlx5_0", "devices/pci0000:aa/0000:aa:01.0/0000:ab:00.0")
    made.adapter("mlx5_1", f"{BRIDGE}/0000:19:00.0")
    made.adapter("mlx5_2", "devices/pci0000:15/0000:15:03.0/0000:1c:00.0")
    made.adapter("mlx5_3", f"{BRIDGE}/0000:1a:00.0", state="1: DOWN")
    made.adapter("mlx5_4", f"{BRIDGE}/0000:1b:00.0", rate="25 Gb/sec (1X EDR)", layer="Ethernet")
    made.adapter("rxe0", None)
    monkeypatch.setattr(rdma_adapters, "SYSTEM", made.system)
    monkeypatch.setenv("PATH", f"{made.programs}:{os.environ['PATH']}")
    monkeypatch.setattr(rdma_link, "SECONDS", 5.0)
    monkeypatch.setattr(process_pair, "ENDING_SECONDS", 1.0)
    monkeypatch.setattr(process_pair, "STARTING_SECONDS", 5.0)
    return made


def measured(metric="bytes_per_second", index=1, **changes):
    parts = {"operation": "write", "path": "between_adapters", "memory": "device", "message_bytes": MIB}
    work = {"kind": "rdma_link", **parts, **changes}
    made = task(benchmark(work, metric), device="cuda", accelerator_index=index)
    watch = type("Watch", (FakeWatch,), {"telemetry": DeviceTelemetry(window_seconds=1.0)})
    kinds = {"rdma_link": rdma_link.prepare}
    return measure_repeat(made, find=lambda _: MeasuredDevice(kinds, lambda _: watch()))


def figure(result):
    assert result.status == "ok", result.failure
    return result.benchmark.compute_figure(result.measurement.values, inner_iterations=1)


def words(line):
    """What a program was told, without the port."""
    found = line.split()
    at = found.index("-p")
    return [*found[:at], *found[at + 2 :]]


def test_bandwidth_goes_from_the_nearest_adapter_to_the_next_of_its_kind(node):
    """393.98 Gb/s are 49.2475 GB/s, of 10^9 bits and bytes."""
    result = measured()
    assert figure(result) == pytest.approx(49.2475e9, rel=1e-4)
    told = "-s 1048576 -F -D 5 --report_gbits --use_cuda=0 --use_cuda_dmabuf"
    server, client = node.told
    assert words(server) == f"GPU-b ib_write_bw -d mlx5_2 -i 1 {told}".split()
    assert words(client) == f"GPU-b ib_write_bw -d mlx5_1 -i 1 {told} 127.0.0.1".split()
    measurement = result.measurement
    assert measurement.algorithm == (
        f"ib_write_bw -d mlx5_1 -i 1 {told}, device memory by DMA-BUF, "
        f"mlx5_1 port 1 (InfiniBand, {NDR}) to mlx5_2 port 1 (InfiniBand, {NDR})"
    )
    assert measurement.library == "ib_write_bw of perftest, as installed here"
    assert {"name": "perftest", "version": "6.24"} in [one.model_dump() for one in result.software]


def test_both_programs_are_of_the_group_that_the_worker_kills(node):
    assert figure(measured()) > 0
    assert [file.read_text() for file in node.programs.glob("group-*")] == [str(os.getpgid(0))] * 2


def test_a_latency_is_the_typical_one_and_no_message_of_a_device_is_inline(node):
    node.behaves(printed=LATENCY)
    result = measured("seconds", operation="send", message_bytes=8)
    assert figure(result) == pytest.approx(1.47e-6)
    told = "ib_send_lat -d mlx5_2 -i 1 -s 8 -F -n 10000 -I 0 --use_cuda=0 --use_cuda_dmabuf"
    assert " ".join(words(node.told[0])[1:]) == told


def test_messages_of_host_memory_and_within_an_adapter(node):
    node.behaves(built_with=[], printed=LATENCY)
    result = measured("seconds", memory="host", path="loopback", message_bytes=8)
    assert figure(result) == pytest.approx(1.47e-6)
    assert "host memory, mlx5_1 port 1" in result.measurement.algorithm
    assert result.measurement.algorithm.endswith(" to itself")
    assert [line.split()[3] for line in node.told] == ["mlx5_1", "mlx5_1"]
    assert not any("cuda" in line for line in node.told)


def test_mebibytes_are_read_as_such_and_reads_are_asked_for(node):
    """46,966.1 MiB/s are 49.25 GB/s: without --report_gbits perftest counts in 2^20 bytes."""
    node.behaves(printed=BANDWIDTH.replace("Gb/sec", "MiB/sec").replace("393.98 ", "46966.1"))
    result = measured(operation="read", path="loopback")
    assert figure(result) == pytest.approx(46966.1 * MIB, rel=1e-4)
    assert words(node.told[1])[1] == "ib_read_bw"


def test_adapters_without_reliable_connections_have_those_of_their_own(node):
    for number in range(2):
        place = f"{BRIDGE}/0000:17:00.0/0000:2{number}:00.0"
        node.adapter(f"rdmap{number}", place, rate="100 Gb/sec (4X EDR)", layer="Unspecified", driver="efa")
    node.behaves(printed=BANDWIDTH.replace("393.98 ", "93.98  ").replace("0.046966", "0.011203"))
    assert figure(measured(index=0)) == pytest.approx(93.98e9 / 8, rel=1e-4)
    assert all("-d rdmap" in line and "-c SRD" in line for line in node.told)


def test_memory_that_one_way_cannot_register_goes_another(node):
    node.behaves(refuses=["--use_cuda_dmabuf"])
    result = measured()
    assert figure(result) > 0
    assert "device memory by peer memory of the driver" in result.measurement.algorithm
    assert len(node.told) == 4
    assert "--use_cuda_dmabuf" not in node.told[-1]


def test_memory_that_no_way_can_register_is_unsupported_and_never_that_of_the_host(node):
    node.behaves(refuses=["--use_cuda_dmabuf", "--use_cuda=0"])
    result = measured()
    assert (result.status, result.failure.detail) == (
        "unsupported",
        "adapters cannot register device memory by DMA-BUF nor device memory by peer memory of the driver",
    )
    assert all("--use_cuda=0" in line for line in node.told)


@pytest.mark.parametrize(("how", "detail"), [
    ({"client": "fails"}, "ib_write_bw: the client ended with status 3: "),
    ({"client": "fails"}, "Failed status 12"),
    ({"server": "fails"}, "ib_write_bw: the server ended with status 3: "),
    ({"server": "deaf"}, "ib_write_bw: the server did not listen in time"),
    ({"taken": 9}, "ib_write_bw: the server ended with status 1: Couldn't listen to port"),
    ({"printed": "nothing of this kind"}, "ib_write_bw printed unexpected output"),
    ({"printed": BANDWIDTH.replace("1048576 ", "65536   ")}, "not that of the messages"),
    ({"printed": BANDWIDTH.replace("0.046966", "")}, "more or fewer figures than its header"),
    ({"printed": "x" * 2 * MIB}, "1048576 bytes were printed"),
    ({"printed": BANDWIDTH.replace("393.98 ", "419.43 ").replace("0.046966", "0.050000")},
     "5.243e+10 bytes per second are above the rate of the port, 5e+10"),
])  # fmt: skip
def test_what_fails_or_is_not_understood_is_a_failure_and_no_figure(node, monkeypatch, how, detail):
    monkeypatch.setattr(process_pair, "STARTING_SECONDS", 1.0 if "server" in how else 5.0)
    node.behaves(**how)
    result = measured()
    assert (result.status, result.failure.reason) == ("failed", "BENCHMARK_ERROR")
    assert detail in result.failure.detail
    assert not any(" --use_cuda=0 -p" in line for line in node.told), "no other way was tried"


@pytest.mark.parametrize("hanging", ["client", "server"])
def test_programs_that_hang_are_killed_in_time(node, monkeypatch, hanging):
    monkeypatch.setattr(rdma_link, "SECONDS", 1.0)
    node.behaves(**{hanging: "hangs"})
    began = time.monotonic()
    result = measured()
    assert (result.status, result.failure.reason) == ("failed", "BENCHMARK_ERROR")
    assert "did not end within 1 s" in result.failure.detail
    assert time.monotonic() - began < 10
    assert not running(node.programs)


def running(folder):
    """Processes of a program of a folder."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes() if process.name.isdigit() else b""
        except OSError:
            continue
        found += [process.name] if str(folder).encode() in words else []
    return found


def test_a_port_that_is_taken_meanwhile_is_no_failure(node):
    node.behaves(taken=2)
    assert figure(measured()) > 0
    ports = {line.split()[line.split().index("-p") + 1] for line in node.told[:3]}
    assert len(node.told) == 4
    assert len(ports) > 1


@pytest.mark.parametrize(("change", "asked", "detail"), [
    (lambda node: (node.programs / "ib_write_bw").unlink(), {}, "ib_write_bw of perftest is not installed"),
    (lambda node: node.behaves(built_with=[]), {}, "ib_write_bw is built without CUDA"),
    (lambda _: None, {"metric": "seconds"}, "no latency of writes to device memory"),
    (lambda _: None, {"index": 2}, "accelerator 2 does not exist"),
])  # fmt: skip
def test_what_is_not_there_is_unsupported(node, monkeypatch, change, asked, detail):
    change(node)
    monkeypatch.setenv("PATH", str(node.programs))
    result = measured(**asked)
    assert result.status == "unsupported"
    assert detail in result.failure.detail


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(("adapters", "detail"), [
    ((), "no RDMA adapter has an active port"),
    (("rxe0",), "no RDMA adapter has an active port"),
    (("mlx5_0",), f"no other RDMA adapter has an active port as mlx5_0 port 1 (InfiniBand, {NDR})"),
])  # fmt: skip
def test_a_node_without_two_adapters_is_unsupported(monkeypatch, tmp_path, adapters, detail):
    bare = Node(tmp_path)
    for name in adapters:
        bare.adapter(name, None if name == "rxe0" else f"{BRIDGE}/0000:19:00.0")
    monkeypatch.setattr(rdma_adapters, "SYSTEM", bare.system)
    monkeypatch.setenv("PATH", f"{bare.programs}:{os.environ['PATH']}")
    result = measured(index=0)
    assert (result.status, result.failure.detail) == ("unsupported", detail)
