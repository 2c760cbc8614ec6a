"""Kernel efficiencies of a device: constants by generation and number format.

Every constant is a physical quantity with a plausible range. Shares of the peak rate are below 1 mainly
because of power: at the data sheet's clock a large multiplication of random operands would draw more than the
device's limit, so that the clock falls (an H100 at 700 W sustains 80% of 989 TFLOP/s, and 13% more where the
operands are zeros). Shares of the bandwidth are below 1 because of refresh, of bank conflicts and of
turnarounds from reads to writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from service.planning.errors import PlanningError
from service.planning.hardware.calibration.shares import AchievedShare
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, weakest_basis


class OperatorQuantity(StrEnum):
    """Constants of a device's operators."""

    MATRIX_PEAK = "matrix_peak"
    """Share of the dense rate that a large multiplication sustains under the power limit."""
    MATRIX_FILL = "matrix_fill"
    """Bytes of depth that a tile could multiply while its pipeline fills and drains."""
    WAVE_TAIL = "wave_tail"
    """Share of the idle places of the last wave that is lost; split depths use the rest."""
    KERNEL_SECONDS = "kernel_seconds"
    """Seconds of a kernel in addition to its work: its start, its first loads, its last stores."""
    BANDWIDTH = "bandwidth"
    """Share of the bandwidth that streaming kernels reach."""
    GATHER_ROW = "gather_row"
    """Bytes of a row at which reading rows in random order reaches half of the streaming rate."""
    ATTENTION_PEAK = "attention_peak"
    """Share of the dense rate of a fused attention kernel for long rows and wide heads."""
    ATTENTION_FIRST_PEAK = "attention_first_peak"
    """``attention_peak`` of the first fused kernels (FlashAttention, and Triton's of 2022)."""
    ATTENTION_NATIVE_PEAK = "attention_native_peak"
    """``attention_peak`` of a kernel written for the generation's own instructions."""
    ATTENTION_BACKWARD = "attention_backward"
    """Rate of the backward kernel over that of the forward one."""
    ATTENTION_CONTEXT = "attention_context"
    """Tokens of context at which a fused attention kernel reaches half of its rate."""
    ATTENTION_HEAD = "attention_head"
    """Elements of a head at which a fused attention kernel reaches half of its rate."""
    SCAN_PEAK = "scan_peak"
    """Share of the dense rate of scans over states in chunks."""
    EXPERT_VARIATION = "expert_variation"
    """Standard deviation of the tokens of an expert, over their mean."""


class MachineFacts(NamedTuple):
    """Multiprocessors of a device and the tile of a result that one of them computes, with the source.

    ``bounds_streams`` is true if each multiprocessor loads for itself, so that the bytes that it has in
    flight bound a stream; matrix units are fed by copies of the whole device. ``peak_scales`` are, by number
    format, the share of its peak that a part sustains over that of the part that stands for its generation:
    parts are sold with more or less power for the same peak.
    """

    multiprocessors: int
    tile_rows: int
    tile_columns: int
    source: str
    bounds_streams: bool = True
    peak_scales: Mapping[NumberFormat, float] = MappingProxyType({})


class OperatorRates(NamedTuple):
    """Constants of one generation as numbers."""

    matrix_peak: Mapping[NumberFormat, float]
    matrix_fill: float
    wave_tail: float
    kernel_seconds: float
    bandwidth: float
    gather_row: float
    attention_peak: float
    attention_first_peak: float
    attention_native_peak: float
    attention_backward: float
    attention_context: float
    attention_head: float
    scan_peak: float
    expert_variation: float
    basis: EvidenceBasis
    """Evidence behind constants that were not measured on the device itself."""
    bases: Mapping[tuple[OperatorQuantity, NumberFormat | None], EvidenceBasis] = {}
    """Evidence behind constants that were measured on the device itself."""

    def get_basis(
        self, quantity: OperatorQuantity, number_format: NumberFormat | None = None
    ) -> EvidenceBasis:
        """Returns the evidence behind one constant."""
        same = number_format and get_unit_format(number_format)
        return self.bases.get((quantity, same), self.basis)

    def scale_peaks(self, scales: Mapping[NumberFormat, float]) -> "OperatorRates":
        """Returns the constants of a part of the generation; peaks that were measured on the device stay."""
        if not scales:
            return self
        peaks = {
            each: peak
            if (OperatorQuantity.MATRIX_PEAK, get_unit_format(each)) in self.bases
            else peak * scales.get(get_unit_format(each), 1.0)
            for each, peak in self.matrix_peak.items()
        }
        return self._replace(matrix_peak=peaks)

    def get_work_basis(self, number_format: NumberFormat) -> EvidenceBasis:
        """Returns the evidence behind work that multiplies in a format and streams: the weaker of both."""
        if not self.bases:
            return self.basis
        matrices = self.get_basis(OperatorQuantity.MATRIX_PEAK, number_format)
        return weakest_basis(matrices, self.get_basis(OperatorQuantity.BANDWIDTH))


_SAME_UNIT = {NumberFormat.FP16: NumberFormat.BF16, NumberFormat.INT8: NumberFormat.FP8}
"""Formats that the same units multiply at the same rate."""


def get_unit_format(number_format: NumberFormat) -> NumberFormat:
    """Returns the format that stands for the units which multiply this one."""
    return _SAME_UNIT.get(number_format, number_format)


OperatorKey = tuple[OperatorQuantity, str | None, NumberFormat | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCalibration:
    """Constants by quantity, generation and format; None stands for any of them.

    ``machines`` are facts by the id of an accelerator, or by generation for accelerators without their own. A
    set with measured constants of a device names the ``reference`` set that they replace, and has the
    evidence of each measured constant in ``bases``.
    """

    constants: Mapping[OperatorKey, AchievedShare]
    machines: Mapping[str, MachineFacts]
    bases: Mapping[OperatorKey, EvidenceBasis] = field(default_factory=dict)
    reference: "OperatorCalibration | None" = None
    _known: dict[tuple[str, str], OperatorRates] = field(default_factory=dict, repr=False, compare=False)

    def find_share(
        self, quantity: OperatorQuantity, generation: str, number_format: NumberFormat | None = None
    ) -> AchievedShare:
        """Returns the nearest constant: of the generation and format, of one of them, of any device."""
        same = number_format and get_unit_format(number_format)
        for key in (
            (quantity, generation, same),
            (quantity, generation, None),
            (quantity, None, same),
            (quantity, None, None),
        ):
            share = self.constants.get(key)
            if share is not None:
                return share
        raise PlanningError("CALIBRATION_INCOMPLETE", "/calibration", f"{quantity} is not known")

    def get_rates(self, generation: str, end: str = "value") -> OperatorRates:
        """Returns the constants of a generation; ``end`` is ``low``, ``value`` or ``high`` of each."""
        known = self._known.get((generation, end))
        if known is None:
            known = self._known[generation, end] = self._build_rates(generation, end)
        return known

    def _build_rates(self, generation: str, end: str) -> OperatorRates:
        def read_constant(quantity: OperatorQuantity, number_format: NumberFormat | None = None) -> float:
            share = self.find_share(quantity, generation, number_format)
            return float(getattr(share, end))

        known = (self.reference or self).constants
        own = any(key[0] is OperatorQuantity.MATRIX_PEAK and key[1] == generation for key in known)
        single = {
            quantity.value: read_constant(quantity)
            for quantity in OperatorQuantity
            if quantity is not OperatorQuantity.MATRIX_PEAK
        }
        return OperatorRates(
            matrix_peak={each: read_constant(OperatorQuantity.MATRIX_PEAK, each) for each in NumberFormat},
            basis=EvidenceBasis.REFERENCE if own else EvidenceBasis.DATASHEET,
            bases={(key[0], key[2]): basis for key, basis in self.bases.items() if key[1] == generation},
            **single,
        )

    def list_bases(self, quantity: OperatorQuantity) -> frozenset[EvidenceBasis]:
        """Returns the evidence behind a constant in every format in which it was measured on a device."""
        return frozenset(basis for key, basis in self.bases.items() if key[0] is quantity)

    def find_machine(self, accelerator_id: str, generation: str) -> MachineFacts:
        """Returns the facts of an accelerator, or of its generation."""
        for name in (accelerator_id, generation, ""):
            if name in self.machines:
                return self.machines[name]
        raise PlanningError("CALIBRATION_INCOMPLETE", "/calibration", "no machine is known")
