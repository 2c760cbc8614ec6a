"""cuFFT by NumPy: the names of its bindings, and a refusal of what the library would refuse."""

from types import SimpleNamespace

import numpy as np

from tests.worker.cuda.fake_cublaslt import array

PARTS = {4: "f4", 5: "f8", 6: "f2"}


class FakeCufft:
    """Transforms take 40 microseconds on the clock of the driver's events."""

    class cuFFTError(Exception):  # noqa: N801
        pass

    def __init__(self, advance):
        self._advance = advance
        self.plans = {}
        self.buffers = []
        self.spoils = lambda spectrum: spectrum

    def get_version(self):
        return 12500

    def create(self):
        self.plans[7] = SimpleNamespace(area=None)
        return 7

    def destroy(self, plan):
        del self.plans[plan]

    def set_auto_allocation(self, plan, allocates):
        assert plan in self.plans
        assert not allocates

    def set_stream(self, plan, stream):
        self.plans[plan].stream = stream

    def set_work_area(self, plan, area):
        self.plans[plan].area = area

    def xt_make_plan_many(
        self, plan, rank, n, inembed, istride, idist, inputtype, onembed, ostride, odist, outputtype, batch,
        executiontype,
    ):  # fmt: skip
        assert (inembed, onembed) == (n, n)
        assert len(n) == rank
        assert (istride, ostride) == (1, 1)
        assert idist == odist == np.prod(n)
        assert inputtype == outputtype == executiontype
        if inputtype == 6 and any(points & (points - 1) for points in n):
            raise self.cuFFTError("INVALID_SIZE (8): the user specified an invalid transform size\nand more")
        self.plans[plan].shape = (batch, *n)
        self.plans[plan].kind = PARTS[inputtype]
        return 4096

    def xt_exec(self, plan, source, spectrum, direction):
        what = self.plans[plan]
        assert what.area
        assert what.stream
        assert direction == -1
        reals = 2 * int(np.prod(what.shape))
        signal = array(source, what.kind, reals).astype(np.float64).view(np.complex128).reshape(what.shape)
        exact = self.spoils(np.fft.fftn(signal, axes=range(1, len(what.shape))))
        array(spectrum, what.kind, reals)[:] = exact.reshape(-1).view(np.float64)
        self.buffers.append((source, spectrum))
        self._advance(40)
