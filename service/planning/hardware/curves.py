"""Measured shares of the physical limits, and the search for the nearest one.

A share is stored, never a time: time follows from the limit of the device at hand. The values are given as a
frozen set; ``service/evidence`` ships the reference set with its sources.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from service.planning.hardware.calibration import AchievedShare, Calibration, LinkCurves
from service.planning.hardware.calibration.facility import FacilityCurves
from service.planning.hardware.distance import ServingEvidence
from service.planning.hardware.local_evidence import LocalEvidence, LogDeviations
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, IntervalFactors, Quantity
from service.planning.software.engines import EngineBuffers, EngineName
from service.planning.software.overhead import DeviceOverhead

_OLDER = "older_"

__all__ = [
    "AchievedShare",
    "Efficiency",
    "ReferenceCurves",
    "TrainingMemoryCurves",
    "build_assumed_efficiency",
]


class TrainingMemoryCurves(NamedTuple):
    """Memory that a training device holds beside tensors, in bytes, and the error of the total.

    ``context`` is the memory of driver and libraries, ``communicator`` the buffers of one group of
    communicating devices, ``matrix_workspace`` that of matrix multiplication; ``fragmentation`` is the share
    of the transient memory of a step that the allocator cannot use. ``total`` is measured over estimated
    peak.
    """

    context: AchievedShare
    eager_context: AchievedShare
    communicator: AchievedShare
    matrix_workspace: AchievedShare
    fragmentation: AchievedShare
    total: IntervalFactors

    @property
    def overhead(self) -> DeviceOverhead:
        """Values of the constants, as the formulas take them."""
        return DeviceOverhead(
            self.context.value,
            self.communicator.value,
            self.matrix_workspace.value,
            self.fragmentation.value,
            self.eager_context.value,
        )


class Efficiency(NamedTuple):
    """Achieved shares of peak rate and bandwidth.

    ``source`` gives their origin; ``runs`` is the number of measured runs behind them.
    """

    utilization: Quantity
    source: str
    runs: int = 0
    bandwidth_utilization: Quantity | None = None
    """Share of the bandwidth; None for training runs, which are measured as a whole."""

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of the peak rate and of the bandwidth; the latter defaults to the former."""
        return self.utilization.value, (self.bandwidth_utilization or self.utilization).value


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCurves:
    """The shipped reference set.

    Keys of ``training`` are an accelerator generation, a compute format and the recomputation strategy:
    shares of all FLOPs that a step executes, attention counted whole. ``training_pooled`` is the spread over
    generations and formats, for one without measurements. ``training_memory`` is the memory that a device
    holds beside tensors. ``device_mtbf_hours`` counts a device with its share of node and network,
    ``checkpoint_bytes_per_device_second`` is a device's share of the storage's sustained writes.
    ``serving_memory`` gives, by engine, each quantity of :class:`EngineBuffers`, measured on
    ``serving_generations``.
    """

    training: Mapping[tuple[str, NumberFormat, str], AchievedShare]
    training_pooled: Mapping[str, AchievedShare]
    serving_generations: frozenset[str]
    device_mtbf_hours: AchievedShare
    restart_seconds: AchievedShare
    checkpoint_bytes_per_device_second: AchievedShare
    silent_corruptions_per_device_hour: AchievedShare
    accelerator_power: IntervalFactors
    """Draw over the limit of a device whose work is not known; the limit bounds it."""
    device_power: IntervalFactors
    """Measured over estimated draw at a known rate, for generations whose draw was measured."""
    served_power: IntervalFactors
    """Measured over estimated draw at the estimated rate of serving."""
    device_power_elsewhere: IntervalFactors
    """Measured over estimated draw of other generations."""
    facility: FacilityCurves
    """Power of the machines around accelerators."""
    reported_memory: AchievedShare
    training_memory: TrainingMemoryCurves
    inference_memory: IntervalFactors
    serving_memory: Mapping[EngineName, Mapping[str, AchievedShare]]
    inference_latency: IntervalFactors
    pass_latency: IntervalFactors
    """Measured over modelled seconds of a forward pass over pictures or texts."""
    training_step: IntervalFactors
    """Measured over modelled seconds of a step, for software without rows of its own."""
    calibration: Calibration
    """Constants of operators, links and steps."""
    residuals: Mapping[tuple[str, str], IntervalFactors] = field(default_factory=dict)
    """Measured over estimated figures by kind of answer and level of evidence.

    The kind is followed by a slash and the software where rows of it exist.
    """
    serving_evidence: ServingEvidence = field(default_factory=ServingEvidence)
    """Systems and models whose serving was measured."""
    deviations: Mapping[str, LogDeviations] = field(default_factory=dict)
    """Deviations of the parts that a tenant's own runs share, by kind of answer."""
    local: LocalEvidence | None = None
    """Runs that the tenant measured; None where there are none."""

    @property
    def links(self) -> LinkCurves:
        """Achieved performance of collectives."""
        return self.calibration.links

    def find_training_efficiency(
        self, generation: str, compute: NumberFormat, recomputation: str
    ) -> Efficiency:
        """Returns the hardware FLOPs utilization of the nearest measured training runs."""
        share = self.training.get((generation, compute, recomputation))
        basis = EvidenceBasis.REFERENCE if share else EvidenceBasis.DATASHEET
        nearest = share or self.training_pooled[recomputation]
        return Efficiency(
            utilization=nearest.to_quantity(basis),
            source=nearest.source,
            runs=nearest.runs,
        )

    def find_serving_buffers(
        self, engine: EngineName, generation: str | None
    ) -> tuple[EngineBuffers, EngineBuffers, EngineBuffers]:
        """Returns the memory of an engine beside weights and cache on a generation: low, value and high.

        Quantities named ``older_`` apply to generations other than those that the rest was measured on.
        """
        known = dict(self.serving_memory[engine])
        older = {name: known.pop(name) for name in tuple(known) if name.startswith(_OLDER)}
        if generation is not None and generation not in self.serving_generations:
            known |= {name.removeprefix(_OLDER): share for name, share in older.items()}
        return (
            EngineBuffers(**{name: share.low for name, share in known.items()}),
            EngineBuffers(**{name: share.value for name, share in known.items()}),
            EngineBuffers(**{name: share.high for name, share in known.items()}),
        )


def build_assumed_efficiency(utilization: float, bandwidth_utilization: float | None) -> Efficiency:
    """Returns an assumed efficiency; the bandwidth defaults to the same share."""
    bandwidth = utilization if bandwidth_utilization is None else bandwidth_utilization
    return Efficiency(
        utilization=Quantity(utilization, utilization, utilization, EvidenceBasis.ASSUMED),
        bandwidth_utilization=Quantity(bandwidth, bandwidth, bandwidth, EvidenceBasis.ASSUMED),
        source="given with the question",
    )
