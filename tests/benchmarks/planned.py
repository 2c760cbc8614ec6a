"""What each benchmark would read on a device of which planning's estimates are true."""

from pydantic import TypeAdapter

from service.calibrations.fitting import BenchmarkObservation, FittedDevice
from service.calibrations.fitting.operators import build_operator
from service.evidence.service import load_reference_curves
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.energy.power import DeviceWork, device_watts
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.collectives import Collective, build_fabric, collective_seconds
from service.planning.models.profile import FusedAttention
from service.planning.operators import OperatorKind, OperatorWork, operator_seconds
from service.planning.precision import NumberFormat
from service.protocol.work import BenchmarkWork

WORK: TypeAdapter[BenchmarkWork] = TypeAdapter(BenchmarkWork)
CALIBRATION = load_reference_curves().calibration


def known(accelerator_id):
    """An accelerator of the catalog with its own link, as the service finds it."""
    snapshot = build_shipped_snapshot()
    found = snapshot.accelerators[accelerator_id]
    return found.accelerator, snapshot.links[found.usual_links.intra_node_link_id].link


def device(accelerator_id="h100-sxm", reference=CALIBRATION):
    """A device of the catalog at its own power limit."""
    accelerator, link = known(accelerator_id)
    return FittedDevice(reference, accelerator, accelerator.power_limit_watts, link)


class Planned:
    """Reads benchmarks off planning, each factor of slowness applied to what it slows."""

    def __init__(self, measured, matrix=1.0, stream=1.0):
        self.device, self.machine = measured, measured.machine
        rates = self.machine.rates
        peaks = {each: share * matrix for each, share in rates.matrix_peak.items()}
        attention = {
            name: getattr(rates, name) * matrix for name in ("attention_peak", "attention_native_peak")
        }
        changed = rates._replace(matrix_peak=peaks, bandwidth=rates.bandwidth * stream, **attention)
        self.machine = self.machine._replace(rates=changed)
        self.serving = measured.reference.serving.get_rates(None)
        self.power = measured.reference.power.get_rates(measured.accelerator.generation)

    def seconds(self, work):
        """Time of one execution."""
        match work.kind:
            case "gemm" | "grouped_gemm" | "block_scaled_gemm":
                return self._product(work)
            case "stream":
                return self._streamed(work.count_work().moved_bytes)
            case "attention" if work.phase == "decode":
                return self._read(work.count_work().moved_bytes, self.serving.cache_bandwidth)
            case "attention":
                return self._attention(work)
            case "collective":
                return self._collective(work)
        return None

    def _streamed(self, moved):
        operator = OperatorWork("stream", OperatorKind.MEMORY, NumberFormat.BF16, 0.0, float(moved))
        return operator_seconds(operator, self.machine).seconds

    def _read(self, moved, share):
        rate = self.machine.bandwidth_bytes_per_second * self.machine.rates.bandwidth * share
        return moved / rate + self.machine.rates.kernel_seconds

    def _product(self, work):
        if work.kind == "block_scaled_gemm":
            return self._scaled(work)
        if work.m <= 16:
            share = (
                self.serving.expert_bandwidth
                if work.kind == "grouped_gemm"
                else self.serving.weight_bandwidth
            )
            return self._read(work.count_work().moved_bytes, share)
        return operator_seconds(build_operator(work), self.machine).seconds

    def _scaled(self, work):
        formats = {"nvfp4": NumberFormat.FP4}
        number_format = formats.get(work.number_format, NumberFormat.FP8)
        rate = (
            self.machine.peak_flops_per_second[number_format] * self.machine.rates.matrix_peak[number_format]
        )
        return work.count_work().flops / rate + self.machine.rates.kernel_seconds

    def _attention(self, work):
        amount, tokens = work.count_work(), work.batch * work.context_tokens
        fused = FusedAttention.NATIVE if work.back_end == "cudnn" else FusedAttention.SECOND
        operator = OperatorWork(
            "attention",
            OperatorKind.ATTENTION,
            NumberFormat.BF16,
            float(amount.flops),
            float(tokens),
            columns=float(work.head_size),
            context=work.context_tokens / 2.0,
            fused=fused,
            backward=work.phase == "backward",
        )
        return operator_seconds(operator, self.machine).seconds

    def _collective(self, work):
        cluster = Cluster(self.device.accelerator, work.devices, work.devices, None, self.device.link)
        fabric = build_fabric(cluster, self.device.reference.links.value)
        return collective_seconds(
            Collective(work.operation),
            float(work.payload_bytes),
            devices=float(work.devices),
            per_domain=float(work.devices),
            fabric=fabric,
        )

    def watts(self, work):
        """Draw under a load."""
        bandwidth = self.machine.bandwidth_bytes_per_second * self.machine.rates.bandwidth
        peak = self.machine.peak_flops_per_second[NumberFormat.BF16]
        rate = peak * self.machine.rates.matrix_peak[NumberFormat.BF16]
        of_load = {
            "context": DeviceWork(1.0, 0.0),
            "stream": DeviceWork(1.0, 1.0, 0.0, bandwidth),
            "gemm": DeviceWork(1.0, 1.0, 1.0, 6 * 8192**2 * rate / (2 * 8192**3)),
        }
        return device_watts(of_load[work.load], self.device.power_limit_watts, self.power)

    def figure(self, work, metric):
        """The figure of a benchmark."""
        if metric == "watts":
            return self.watts(work)
        seconds, amount = self.seconds(work), work.count_work()
        if metric == "seconds":
            return seconds
        return (amount.flops if metric == "flops_per_second" else amount.moved_bytes) / seconds


def work(kind, **members):
    """Work of a kind."""
    return WORK.validate_python({"kind": kind, **members})


def gemm(rows, columns, depth, dtype="bf16"):
    """A product."""
    return work("gemm", dtype=dtype, m=rows, n=columns, k=depth)


def prompt(back_end, context=4096, head=128):
    """Attention of prompts."""
    return attention("prefill", back_end, 4, context, head)


def cached(back_end, context=8192):
    """Attention over a cache."""
    return attention("decode", back_end, 16, context, 128)


def attention(phase, back_end, batch, context, head, **more):
    """Attention as Llama 3 has it."""
    shape = {"batch": batch, "query_heads": 32, "kv_heads": 8, "head_size": head, "context_tokens": context}
    return work("attention", phase=phase, back_end=back_end, dtype="bf16", **shape, **more)


def together(operation, devices, size):
    """A collective."""
    return work("collective", operation=operation, devices=devices, payload_bytes=size)


def power(load):
    """A load for its power."""
    return work("power", load=load, window_seconds=10.0, settle_seconds=1.0)


def observed(name, of_work, metric, *figures, warmup=2.0, **conditions):
    """An observation of one run for each figure."""
    runs = tuple(f"run-{place}" for place, _ in enumerate(figures))
    results = tuple(f"{name}-{run}" for run in runs)
    return BenchmarkObservation(
        name, of_work, metric, warmup, figures, min(figures), max(figures), results, runs, conditions
    )


SIDES = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (1536, 1536, 1536),
    (256, 256, 2048),
    (640, 1152, 4096),
    (1152, 1152, 2048),
)
"""Shapes of the suites that tiles bound."""
SUITE = (
    *((f"gemm.{dtype}", gemm(8192, 8192, 8192, dtype), "flops_per_second") for dtype in ("bf16", "fp8_e4m3")),
    *((f"shape.{m}x{n}x{k}", gemm(m, n, k), "flops_per_second") for m, n, k in SIDES),
    ("skinny", gemm(16, 14336, 8192), "bytes_per_second"),
    ("experts", work("grouped_gemm", dtype="bf16", groups=64, m=4, n=4096, k=2048), "bytes_per_second"),
    ("copy", work("stream", pattern="copy", array_bytes=2**32), "bytes_per_second"),
    ("triad", work("stream", pattern="triad", array_bytes=2**32), "bytes_per_second"),
    ("prefill.flash", prompt("flash"), "flops_per_second"),
    ("prefill.cudnn", prompt("cudnn"), "flops_per_second"),
    ("backward.cudnn", attention("backward", "cudnn", 4, 4096, 128), "flops_per_second"),
    ("decode.flash", cached("flash"), "bytes_per_second"),
    *((f"power.{load}", power(load), "watts") for load in ("context", "stream", "gemm")),
)
COLLECTIVES = tuple(
    (f"{operation}.{devices}.{size}", together(operation, devices, size), "seconds")
    for operation in ("all_reduce", "all_gather")
    for devices, sizes in ((2, (2**16, 2**30)), (8, (2**16, 2**20, 2**26, 2**33)))
    for size in sizes
)


def observations(planned, suite=SUITE, **options):
    """Every benchmark of a suite as it would read."""
    return [
        observed(name, of_work, metric, planned.figure(of_work, metric), **options)
        for name, of_work, metric in suite
    ]
