"""The host of a node, as a request names it."""

from pydantic import MISSING

from service.schemas.base import Positive, StrictModel


class HostInput(StrictModel):
    """What the accelerators of a node share; it counts where state is offloaded."""

    link_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """What one accelerator copies from its host or to it. Defaults to the PCI Express of the accelerator, 16
    lanes, else to generation 4."""
    memory_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Data-sheet bandwidth of all memory channels of the node. Defaults to that of the DGX of the generation
    of PCI Express."""
    drive_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """What all NVMe drives of the node read or write together; 25e9 when left out."""
