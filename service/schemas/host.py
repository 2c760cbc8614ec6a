"""The host of a node in requests."""

from pydantic import MISSING

from service.schemas.base import Positive, StrictModel


class HostInput(StrictModel):
    """Host resources that the accelerators of a node share. They matter if state is offloaded."""

    link_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Bandwidth of copies between one accelerator and its host, in each direction. Defaults to the PCI
    Express of the accelerator, 16 lanes, else to generation 4."""
    memory_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Data-sheet bandwidth of all memory channels of the node. Defaults to that of the DGX with the same
    generation of PCI Express."""
    drive_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Bandwidth of all NVMe drives of the node together, reading or writing. Defaults to 25e9."""
