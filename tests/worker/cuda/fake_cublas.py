"""The grouped products of cuBLAS by NumPy, on plain lists of the host and addresses of the device."""

from itertools import count

import numpy as np

from service.worker.cuda import numbers
from tests.worker.cuda.fake_cublaslt import ComputeType, Operation, array


class FakeCublas:
    """A handle, its stream and its workspace; ``refuses`` is why nothing runs."""

    ComputeType, Operation = ComputeType, Operation

    class cuBLASError(Exception):  # noqa: N801
        pass

    def __init__(self, advance):
        self._advance, self._ids = advance, count(700)
        self.handles, self.calls = {}, 0
        self.refuses = None
        self.spoils = lambda product: product
        self.queue = lambda _, work: work()

    def create(self):
        handle = next(self._ids)
        self.handles[handle] = {}
        return handle

    def destroy(self, handle):
        del self.handles[handle]

    def get_version(self, handle):
        assert handle in self.handles
        return 130002

    def set_stream(self, handle, stream):
        self.handles[handle]["stream"] = stream

    def set_workspace(self, handle, address, size):
        assert address > 0 < size
        self.handles[handle]["workspace"] = address

    def gemm_grouped_batched_ex(
        self, handle, turned_a, turned_b, rows, columns, depth, alpha, a, a_kind, a_leading,
        b, b_kind, b_leading, beta, c, c_kind, c_leading, groups, sizes, compute,
    ):  # fmt: skip
        if self.refuses:
            raise self.cuBLASError(self.refuses)
        assert a_kind == b_kind == c_kind
        assert a_kind in (2, 14)
        assert compute == ComputeType.COMPUTE_32F
        lists = turned_a, turned_b, rows, columns, depth, a_leading, b_leading, c_leading, sizes
        assert all(len(each) == groups for each in lists)
        assert set(sizes) == {1}
        assert (set(turned_a), set(turned_b)) == ({1}, {0})
        assert list(a_leading) == list(b_leading) == list(depth)
        assert list(c_leading) == list(rows)
        assert set(array(alpha, "f4", groups)) == {1.0}
        assert set(array(beta, "f4", groups)) == {0.0}

        def work():
            pointers = [array(each, "u8", groups) for each in (a, b, c)]
            for group, (m, n, k) in enumerate(zip(rows, columns, depth, strict=True)):
                first, second, result = (int(each[group]) for each in pointers)
                left, right = (
                    self._read(address, a_kind, count, k) for address, count in ((first, m), (second, n))
                )
                self._write(result, c_kind, self.spoils(right @ left.T))
            self.calls += 1
            self._advance(80)

        self.queue(self.handles[handle]["stream"], work)

    def _read(self, address, kind, rows, columns):
        held = array(address, "u2" if kind == 14 else "f2", rows * columns)
        values = numbers.decode_bf16(held) if kind == 14 else held
        return values.reshape(rows, columns).astype(np.float64)

    def _write(self, address, kind, product):
        held = array(address, "u2" if kind == 14 else "f2", product.size)
        single = product.reshape(-1).astype(np.float32)
        if kind == 14:
            held[:] = (numbers.round_to_bf16(single).view(np.uint32) >> 16).astype(np.uint16)
        else:
            held[:] = single
