"""Constants of a device, measured ones among them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.curves import ReferenceCurves
from service.planning.hardware.links import Link
from service.planning.hardware.nearest import MeasuredConstant
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, Quantity


class DeviceConstants(NamedTuple):
    """Constants of a question's device; ``held`` are the measured ones by name."""

    curves: ReferenceCurves
    held: Mapping[str, MeasuredConstant] = {}
    above_limit: tuple[str, ...] = ()
    """Constants that were measured above the data sheet, and count as its full value."""
    power_limit_watts: float | None = None
    """Power limit of the requested node."""
    bandwidth_bytes_per_second: float | None = None
    peak_flops_per_second: Mapping[NumberFormat, float] = {}
    """Measured rates that the question leaves to the node."""
    generation: str | None = None
    """Generation of a measured processor; None for accelerators, whose generation the question has."""

    def list_calibration_ids(self, prefixes: Iterable[str]) -> tuple[str, ...]:
        """Returns the sets behind the constants whose names start with any of ``prefixes``, each once."""
        wanted = tuple(prefixes)
        found = (held.ids for name, held in self.held.items() if name.startswith(wanted))
        return tuple(dict.fromkeys(each for ids in found for each in ids))

    def get_value(self, name: str) -> float | None:
        """Returns the measured constant of a name, or None."""
        held = self.held.get(name)
        return held and held.share.value

    def apply_to_accelerator(self, accelerator: Accelerator) -> Accelerator:
        """Returns the accelerator with the memory, power limit, rates and generation that were measured.

        The memory is the sum of the allocatable memory and of the context. A rate that the question gives
        stays.
        """
        memory, context = self.held.get("memory_bytes"), self.held.get("context_bytes")
        given = (
            accelerator.capacity_bytes is not None
            and accelerator.capacity_bytes.basis is EvidenceBasis.ASSUMED
        )
        own = memory is not None and memory.basis is not EvidenceBasis.CALIBRATED_GENERATION
        if memory is not None and context is not None and own and not given:
            both = (one + other for one, other in zip(memory.share.ends, context.share.ends, strict=True))
            low, value, high = both
            accelerator = replace(accelerator, capacity_bytes=Quantity(value, low, high, memory.basis))
        if self.generation is not None:
            accelerator = replace(accelerator, generation=self.generation)
        if self.power_limit_watts is not None:
            accelerator = replace(accelerator, power_limit_watts=self.power_limit_watts)
        if accelerator.bandwidth_bytes_per_second is None:
            accelerator = replace(accelerator, bandwidth_bytes_per_second=self.bandwidth_bytes_per_second)
        if self.peak_flops_per_second:
            rates = {**self.peak_flops_per_second, **accelerator.peak_flops_per_second}
            accelerator = replace(accelerator, peak_flops_per_second=rates)
        return accelerator

    def apply_to_link(self, link: Link) -> Link:
        """Returns the link without the latency of its data sheet, where a hop was measured."""
        if f"links.{link.kind}.hop_seconds" in self.held:
            return link._replace(latency_seconds=None)
        return link
