"""cuBLASLt by NumPy: the names of its bindings, and a refusal of everything that the library would refuse."""

import ctypes
from enum import IntEnum
from itertools import count
from types import SimpleNamespace

import numpy as np

from service.worker.cuda import numbers

RESULT = np.dtype([
    ("algo", [("data_", "<u8", (8,))]),
    ("workspace_size", "<u8"),
    ("state", "<i4"),
    ("waves_count", "<f4"),
    ("reserved", "<i4", (4,)),
])  # fmt: skip
STORED = {0: "f4", 1: "f8", 2: "f2", 3: "i1", 10: "i4", 14: "u2", 28: "u1"}


class ComputeType(IntEnum):
    COMPUTE_32F = 68
    COMPUTE_64F = 70
    COMPUTE_32I = 72
    COMPUTE_32F_FAST_TF32 = 77


class Operation(IntEnum):
    N = 0
    T = 1


CUBLAS = SimpleNamespace(ComputeType=ComputeType, Operation=Operation)


def array(address, dtype, size):
    """What lies at an address."""
    raw = (ctypes.c_char * (np.dtype(dtype).itemsize * size)).from_address(address)
    return np.frombuffer(raw, dtype)


class FakeLt:
    """Products of column-major matrices; how long its algorithms take, and what it refuses, is a test's.

    ``refused`` has the status of proposals that do not run after all.
    """

    class cuBLASLtError(Exception):  # noqa: N801
        pass

    class MatmulDescAttribute(IntEnum):
        TRANSA = 3
        TRANSB = 4
        FAST_ACCUM = 25

    class MatrixLayoutAttribute(IntEnum):
        BATCH_COUNT = 5
        STRIDED_BATCH_OFFSET = 6

    class MatmulPreferenceAttribute(IntEnum):
        MAX_WORKSPACE_BYTES = 1

    class MatmulAlgoConfigAttribute(IntEnum):
        ID = 0
        TILE_ID = 1
        SPLITK_NUM = 2
        STAGES_ID = 6

    matmul_heuristic_result_dtype = RESULT

    def __init__(self, advance):
        self._ids = count(1000)
        self.objects = {}
        self._advance = advance
        self.microseconds = [100, 70, 90]
        self.states = [0, 0, 0]
        self.products = []
        self.refuses = False
        self.refused = {}
        self.supports = True
        self.spoils = lambda product: product
        self.queue = lambda _, work: work()

    def _new(self, **what):
        number = next(self._ids)
        self.objects[number] = SimpleNamespace(**what)
        return number

    def _gone(self, number):
        del self.objects[number]

    destroy = matmul_desc_destroy = matrix_layout_destroy = matmul_preference_destroy = _gone

    def create(self):
        if self.refuses:
            raise self.cuBLASLtError("the library was not initialized\nand more")
        return self._new(kind="handle")

    def get_version(self):
        return 130002

    def matmul_desc_create(self, compute, scale):
        return self._new(compute=ComputeType(compute), scale=scale, set={})

    def matmul_desc_set_attribute(self, operation, attribute, buffer, size):
        kinds = {"TRANSA": "i4", "TRANSB": "i4", "FAST_ACCUM": "i1"}
        kind = np.dtype(kinds[attribute.name])
        assert size == kind.itemsize
        self.objects[operation].set[attribute.name] = int(array(buffer, kind, 1)[0])

    def matrix_layout_create(self, kind, rows, columns, leading):
        assert leading == rows
        return self._new(kind=kind, rows=rows, columns=columns, count=1, offset=0)

    def matrix_layout_set_attribute(self, layout, attribute, buffer, size):
        name, kind = {5: ("count", "i4"), 6: ("offset", "i8")}[int(attribute)]
        assert size == np.dtype(kind).itemsize
        setattr(self.objects[layout], name, int(array(buffer, kind, 1)[0]))

    def matmul_preference_create(self):
        return self._new(limit=0)

    def matmul_preference_set_attribute(self, preference, attribute, buffer, size):
        assert attribute.name == "MAX_WORKSPACE_BYTES"
        assert size == 8
        self.objects[preference].limit = int(array(buffer, "u8", 1)[0])

    def matmul_algo_get_heuristic(self, handle, operation, a, b, c, d, preference, most, results, returned):
        for number in (handle, operation, a, b, c, d, preference):
            assert number in self.objects
        if not self.supports:
            raise self.cuBLASLtError("CUBLAS_STATUS_NOT_SUPPORTED (15)")
        found = array(results, RESULT, most)
        for place, state in enumerate(self.states):
            found[place]["algo"]["data_"][0] = place
            found[place]["state"] = state
        array(returned, "i4", 1)[0] = len(self.states)

    def matmul_algo_config_get_attribute(self, algorithm, attribute, buffer, size, written):
        assert size == 4
        array(buffer, "u4", 1)[0] = 10 * int(array(algorithm, "u8", 1)[0]) + int(attribute)
        array(written, "u8", 1)[0] = 4

    def matmul(
        self, handle, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
        algorithm, workspace, workspace_size, stream,
    ):  # fmt: skip
        assert handle in self.objects
        assert c_layout == d_layout
        assert workspace_size > 0 < workspace
        assert stream
        what, place = self.objects[operation], int(array(algorithm, "u8", 1)[0])
        if place in self.refused:
            raise self.cuBLASLtError(self.refused[place])
        factors = [array(each, STORED[what.scale], 1)[0] for each in (alpha, beta)]

        def work():
            for number in range(self.objects[d_layout].count):
                self._product(
                    what, factors, (a, a_layout), (b, b_layout), (c, c_layout), (d, d_layout), number
                )
            self.products.append((place, a, b, d))
            self._advance(self.microseconds[place])

        self.queue(stream, work)

    def _product(self, what, factors, a, b, c, d, number):
        left, right = self._matrix(*a, number), self._matrix(*b, number)
        left = left.T if what.set["TRANSA"] else left
        right = right.T if what.set["TRANSB"] else right
        if what.compute is ComputeType.COMPUTE_32F_FAST_TF32:
            left, right = _tf32(left), _tf32(right)
        # A trial may find anything in memory that nobody has written yet.
        with np.errstate(over="ignore", invalid="ignore"):
            product = factors[0] * (left.astype(np.float64) @ right.astype(np.float64))
            if factors[1]:
                product += factors[1] * self._matrix(*c, number)
        self._write(*d, number, self.spoils(product))

    def _held(self, address, layout, number):
        shape = self.objects[layout]
        kind = np.dtype(STORED[shape.kind])
        assert shape.count == 1 or shape.offset == shape.rows * shape.columns
        return array(address + number * shape.offset * kind.itemsize, kind, shape.rows * shape.columns)

    def _matrix(self, address, layout, number=0):
        shape, held = self.objects[layout], self._held(address, layout, number)
        if shape.kind == 14:
            held = numbers.decode_bf16(held)
        if shape.kind == 28:
            codes = numbers._list_fp8_e4m3_values()
            held = np.concatenate([codes, [np.nan], -codes, [np.nan]])[held]
        return held.reshape(shape.columns, shape.rows).T

    def _write(self, address, layout, number, product):
        shape, held = self.objects[layout], self._held(address, layout, number)
        assert product.shape == (shape.rows, shape.columns)
        values = product.T.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            if shape.kind == 14:
                held[:] = (numbers.round_to_bf16(values.astype(np.float32)).view(np.uint32) >> 16).astype(
                    np.uint16
                )
            else:
                held[:] = values.astype(held.dtype)


def _tf32(values):
    """fp32 rounded to 11 bits of mantissa."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
