"""A copy of an array from the seed, and how it is checked, whichever kernel does it."""

import numpy as np

from service.worker.benchmark import Unsupported
from service.worker.cuda import numbers
from service.worker.cuda.device import Device, Launch, run
from service.worker.cuda.stream import SPOIL, checksum, elements, sample

VECTOR_BYTES = 16


class CopyArrays:
    """A source of whole numbers as fp32 and a target of the same size; raises where there is no room."""

    def __init__(self, device: Device, array_bytes: int, seed: int) -> None:
        if array_bytes % VECTOR_BYTES:
            raise Unsupported(f"arrays of whole {VECTOR_BYTES}-byte vectors only")
        if 2 * array_bytes > device.free_bytes():
            raise Unsupported(f"needs {2 * array_bytes} bytes, {device.free_bytes()} are free")
        self._device, self._seed = device, numbers.seed_of(seed, 0)
        self.count, self.vectors = array_bytes // 4, array_bytes // VECTOR_BYTES
        self.target, self.source = device.allocate(array_bytes), device.allocate(array_bytes)
        run(device, ("random.cu", "fill_whole"), self.source, self.count, self._seed)

    def wrong(self, launch: Launch) -> int:
        """How many elements and sums differ from the source after one launch into a spoilt target."""
        run(self._device, ("flush.cu", "flush"), self.target, self.vectors, SPOIL)
        launch()
        sums = [
            checksum(self._device, "weighted_sum", address, self.count)
            for address in (self.target, self.source)
        ]
        places = sample(self.count, self._seed)
        found = elements(self._device, self.target, places)
        return int(np.count_nonzero(found != numbers.whole(self._seed, places))) + (sums[0] != sums[1])
