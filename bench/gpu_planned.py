"""Figures that each benchmark would have on a device of which planning's estimates are true."""

from typing import Any, Final

from service.calibrations.fitting import FittedDevice
from service.calibrations.fitting.operators import build_operator
from service.evidence.service import load_reference_curves
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.energy.power import DeviceWork, device_watts
from service.planning.hardware.calibration import Calibration
from service.planning.hardware.cluster import Accelerator, Cluster
from service.planning.hardware.collectives import Collective, build_fabric, collective_seconds
from service.planning.hardware.links import Link
from service.planning.inference.attention import TILE_ROWS
from service.planning.models.profile import FusedAttention
from service.planning.operators import OperatorKind, OperatorWork, operator_seconds
from service.planning.precision import NumberFormat
from service.protocol.work.arithmetic import AttentionWork
from service.protocol.work.links import CollectiveWork
from service.protocol.work.products import BlockScaledGemmWork

CALIBRATION: Final = load_reference_curves().calibration
SKINNY_ROWS: Final = 16
"""Most rows of a product that streams its weights."""
COLLECTIVES: Final = {"send_receive": Collective.POINT_TO_POINT}
READ_BYTES: Final = 1e9
"""Reading of memory, which no formula gives."""


def known(accelerator_id: str) -> tuple[Accelerator, Link]:
    """Returns an accelerator of the catalog with its own link, as the service finds it."""
    snapshot = build_shipped_snapshot()
    found = snapshot.accelerators[accelerator_id]
    link_id = found.usual_links.intra_node_link_id
    if link_id is None:
        raise ValueError(f"{accelerator_id} has no link")
    return found.accelerator, snapshot.links[link_id].link


def device(accelerator_id: str = "h100-sxm", reference: Calibration = CALIBRATION) -> FittedDevice:
    """Returns a device of the catalog at its own power limit."""
    accelerator, link = known(accelerator_id)
    return FittedDevice(reference, accelerator, accelerator.power_limit_watts, link)


def find_scaled_format(work: BlockScaledGemmWork) -> NumberFormat:
    """Returns the format in which a product with scales of blocks is multiplied."""
    return NumberFormat.FP4 if work.number_format == "nvfp4" else NumberFormat.FP8


class Planned:
    """Reads benchmarks off planning, each factor of slowness applied to what it slows."""

    def __init__(self, measured: FittedDevice, matrix: float = 1.0, stream: float = 1.0) -> None:
        accelerator, machine = measured.accelerator, measured.machine
        if accelerator is None or machine is None or measured.link is None:
            raise ValueError("the catalog lacks data of the device")
        self.device, self.accelerator, self.link = measured, accelerator, measured.link
        rates = machine.rates
        peaks = {each: share * matrix for each, share in rates.matrix_peak.items()}
        attention = {
            name: getattr(rates, name) * matrix for name in ("attention_peak", "attention_native_peak")
        }
        changed = rates._replace(matrix_peak=peaks, bandwidth=rates.bandwidth * stream, **attention)
        self.machine = machine._replace(rates=changed)
        self.serving = measured.reference.serving.get_rates(None)
        self.power = measured.reference.power.get_rates(accelerator.generation)

    def seconds(self, work: Any) -> float:  # noqa: ANN401  # any kind of work
        """Returns the time of one execution, or a second if planning has no formula."""
        match work.kind:
            case "gemm" | "grouped_gemm" | "block_scaled_gemm" | "weight_only_gemm":
                return self._product(work)
            case "stream":
                return self._streamed(work.count_work().moved_bytes)
            case "attention" if work.phase == "decode":
                return self._decoded(work)
            case "attention":
                return self._attention(work)
            case "collective":
                return self._collective(work)
        return 1.0

    def _streamed(self, moved: float) -> float:
        operator = OperatorWork("stream", OperatorKind.MEMORY, NumberFormat.BF16, 0.0, float(moved))
        return operator_seconds(operator, self.machine).seconds

    def _read(self, moved: float, share: float) -> float:
        rate = self.machine.bandwidth_bytes_per_second * self.machine.rates.bandwidth * share
        return moved / rate + self.machine.rates.kernel_seconds

    def _product(self, work: Any) -> float:  # noqa: ANN401  # of any of four kinds
        if work.kind == "block_scaled_gemm":
            return self._scaled(work)
        if work.m <= SKINNY_ROWS:
            rates = self.serving
            share = rates.expert_bandwidth if work.kind == "grouped_gemm" else rates.weight_bandwidth
            share *= rates.widened_bandwidth if work.kind == "weight_only_gemm" else 1.0
            return self._read(work.count_work().moved_bytes, share)
        return operator_seconds(build_operator(work), self.machine).seconds

    def _scaled(self, work: BlockScaledGemmWork) -> float:
        number_format = find_scaled_format(work)
        share = self.machine.rates.matrix_peak[number_format]
        rate = self.machine.peak_flops_per_second[number_format] * share
        # Planning's rate of 4 bits is that of products with scales.
        rate *= 1.0 if number_format is NumberFormat.FP4 else self.serving.scaled_share
        return work.count_work().flops / rate + self.machine.rates.kernel_seconds

    def _decoded(self, work: AttentionWork) -> float:
        amount, peak = work.count_work(), self.machine.peak_flops_per_second[NumberFormat.BF16]
        filled = max(1.0, TILE_ROWS * work.kv_heads / work.query_heads)
        computed = amount.flops * filled / (peak * self.serving.decode_attention)
        read = self._read(amount.moved_bytes, self.serving.cache_bandwidth)
        return max(read, computed + self.machine.rates.kernel_seconds)

    def _attention(self, work: AttentionWork) -> float:
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

    def _collective(self, work: CollectiveWork) -> float:
        cluster = Cluster(self.accelerator, work.devices, work.devices, None, self.link)
        fabric = build_fabric(cluster, self.device.reference.links.value)
        return collective_seconds(
            COLLECTIVES.get(work.operation) or Collective(work.operation),
            float(work.payload_bytes),
            devices=float(work.devices),
            per_domain=float(work.devices),
            fabric=fabric,
        )

    def watts(self, load: str) -> float:
        """Returns the draw under a load, or of an idle device if planning has no formula of the load."""
        limit = self.device.power_limit_watts or 0.0
        bandwidth = self.machine.bandwidth_bytes_per_second * self.machine.rates.bandwidth
        peak = self.machine.peak_flops_per_second[NumberFormat.BF16]
        rate = peak * self.machine.rates.matrix_peak[NumberFormat.BF16]
        of_load = {
            "context": DeviceWork(1.0, 0.0),
            "stream": DeviceWork(1.0, 1.0, 0.0, bandwidth),
            "gemm": DeviceWork(1.0, 1.0, 1.0, 6 * 8192**2 * rate / (2 * 8192**3)),
        }
        return device_watts(of_load.get(load, DeviceWork(1.0, 0.0)), limit, self.power)

    def figure(self, work: Any, metric: str) -> float:  # noqa: ANN401
        """Returns the figure of a benchmark."""
        if metric == "watts":
            return self.watts(work.load)
        if metric == "bytes":
            return READ_BYTES
        seconds, amount = self.seconds(work), work.count_work()
        if metric == "seconds":
            return seconds
        return float(amount.flops if metric == "flops_per_second" else amount.moved_bytes) / seconds
