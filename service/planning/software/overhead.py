"""Memory of a device beside the tensors of a training step."""

from typing import NamedTuple


class DeviceOverhead(NamedTuple):
    """Memory of a device beside tensors, in bytes, and the share that the allocator loses.

    ``communicator`` is of one group of communicating devices; ``fragmentation`` is a share of the memory that
    is allocated and freed within a step. ``eager_context`` is the context where all kernels are loaded at
    once, as CUDA did before 11.7.
    """

    context: float = 0.0
    communicator: float = 0.0
    matrix_workspace: float = 0.0
    fragmentation: float = 0.0
    eager_context: float = 0.0

    def apply_eager_context(self, *, eager: bool) -> "DeviceOverhead":
        """Returns the overhead with an eager context where ``eager`` is true."""
        return self._replace(context=self.eager_context) if eager else self


NO_OVERHEAD = DeviceOverhead()
