"""What a device holds beside the tensors of a training step."""

from typing import NamedTuple


class DeviceOverhead(NamedTuple):
    """What a device holds beside tensors, in bytes, and the share that the allocator loses.

    ``communicator`` is of one group of devices that exchange with one another; ``fragmentation`` is a share
    of what is allocated and freed within a step.
    """

    context: float = 0.0
    communicator: float = 0.0
    matrix_workspace: float = 0.0
    fragmentation: float = 0.0


NO_OVERHEAD = DeviceOverhead()
