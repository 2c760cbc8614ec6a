"""A copy of an array from the seed, and its check, for any kernel."""

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.worker.benchmark import Unsupported
from service.worker.cuda import numbers
from service.worker.cuda.device import CudaDevice, KernelLaunch, run_kernel
from service.worker.cuda.stream import SPOIL, read_elements, run_checksum, select_positions

VECTOR_BYTES = 16


class CopyArrays:
    """A source of whole numbers as fp32 and a target of the same size; raises if there is no room."""

    def __init__(self, device: CudaDevice, array_bytes: int, seed: int) -> None:
        if array_bytes % VECTOR_BYTES:
            raise Unsupported(f"arrays must consist of whole {VECTOR_BYTES}-byte vectors")
        device.demand_room(2 * array_bytes)
        self._device, self._seed = device, numbers.derive_seed(seed, 0)
        self.count, self.vectors = array_bytes // 4, array_bytes // VECTOR_BYTES
        self.target, self.source = device.allocate(array_bytes), device.allocate(array_bytes)
        run_kernel(device, ("random.cu", "fill_whole"), self.source, self.count, self._seed)

    def check_copy(self, launch: KernelLaunch) -> CorrectnessCheck:
        """Spoils the target, copies once, and compares sums over all and a sample of elements."""
        wrong = self._count_errors(launch)
        return CorrectnessCheck(
            method="sample of elements against NumPy, checksum over all",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )

    def _count_errors(self, launch: KernelLaunch) -> int:
        run_kernel(self._device, ("flush.cu", "spoil"), self.target, self.vectors, SPOIL)
        launch()
        sums = [
            run_checksum(self._device, "weighted_sum", address, self.count)
            for address in (self.target, self.source)
        ]
        places = select_positions(self.count, self._seed)
        found = read_elements(self._device, self.target, places)
        return int(np.count_nonzero(found != numbers.generate_integers(self._seed, places))) + (
            sums[0] != sums[1]
        )
