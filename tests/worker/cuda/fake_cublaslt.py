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
STORED = {0: "f4", 1: "f8", 2: "f2", 3: "i1", 10: "i4", 14: "u2", 28: "u1", 33: "u1"}


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
        A_SCALE_POINTER = 17
        B_SCALE_POINTER = 18
        FAST_ACCUM = 25
        A_SCALE_MODE = 31
        B_SCALE_MODE = 32

    class MatmulMatrixScale(IntEnum):
        VEC16_UE4M3 = 1
        VEC32_UE8M0 = 2
        VEC128_32F = 4
        BLK128x128_32F = 5

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
        kinds = {"FAST_ACCUM": "i1", "A_SCALE_POINTER": "u8", "B_SCALE_POINTER": "u8"}
        kind = np.dtype(kinds.get(attribute.name, "i4"))
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
        self._require_scales(self.objects[operation].set, self.objects[a].kind, self.objects[b].kind)
        found = array(results, RESULT, most)
        for place, state in enumerate(self.states):
            found[place]["algo"]["data_"][0] = place
            found[place]["state"] = state
        array(returned, "i4", 1)[0] = len(self.states)

    def _require_scales(self, found, *kinds):
        """Formats of scales go with types of elements and with one another; 4 bits need scales."""
        modes = found.get("A_SCALE_MODE"), found.get("B_SCALE_MODE")
        possible = {(2, 2): 28, (1, 1): 33, (5, 4): 28, (4, 4): 28, (None, None): None}
        if modes not in possible or (modes[0] is None) != (33 not in kinds and modes[1] is None):
            raise self.cuBLASLtError("CUBLAS_STATUS_NOT_SUPPORTED (15)")
        if modes[0] is not None:
            assert set(kinds) == {possible[modes]}
            assert (found["TRANSA"], found["TRANSB"]) == (1, 0)
            assert "FAST_ACCUM" not in found
            assert found["A_SCALE_POINTER"] % 16 == found["B_SCALE_POINTER"] % 16 == 0
            assert found["A_SCALE_POINTER"] > 0 < found["B_SCALE_POINTER"]

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
        # Pointers are read when a product is started, so that the next one may have others.
        asked = dict(what.set)
        if place in self.refused:
            raise self.cuBLASLtError(self.refused[place])
        factors = [array(each, STORED[what.scale], 1)[0] for each in (alpha, beta)]

        def work():
            for number in range(self.objects[d_layout].count):
                self._product(
                    what, asked, factors, (a, a_layout), (b, b_layout), (c, c_layout), (d, d_layout), number
                )
            self.products.append((place, a, b, d))
            self._advance(self.microseconds[place])

        self.queue(stream, work)

    def _product(self, what, asked, factors, a, b, c, d, number):
        left, right = self._matrix(*a, number), self._matrix(*b, number)
        left = left.T if asked["TRANSA"] else left
        right = right.T if asked["TRANSB"] else right
        if "A_SCALE_MODE" in asked:
            left = left * _scales(asked["A_SCALE_MODE"], asked["A_SCALE_POINTER"], *left.shape)
            right = right * _scales(asked["B_SCALE_MODE"], asked["B_SCALE_POINTER"], *right.T.shape).T
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
        count = shape.rows * shape.columns // (2 if shape.kind == 33 else 1)
        return array(address + number * shape.offset * kind.itemsize, kind, count)

    def _matrix(self, address, layout, number=0):
        shape, held = self.objects[layout], self._held(address, layout, number)
        if shape.kind == 14:
            held = numbers.decode_bf16(held)
        if shape.kind == 28:
            codes = numbers._list_fp8_e4m3_values()
            held = np.concatenate([codes, [np.nan], -codes, [np.nan]])[held]
        if shape.kind == 33:
            codes = np.stack([held & 15, held >> 4], axis=1).reshape(-1)
            held = np.where(codes & 8, -1.0, 1.0) * numbers.FP4_E2M1[codes & 7]
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


def _scales(mode, address, rows, depth):
    """A scale for each element of a factor, from how the library keeps them."""
    if mode in (1, 2):
        blocks = depth // (16 if mode == 1 else 32)
        tiles = -(-rows // 128), -(-blocks // 4)
        codes = array(address, "u1", 512 * tiles[0] * tiles[1]).reshape(*tiles, 32, 4, 4)
        codes = codes.transpose(0, 3, 2, 1, 4).reshape(128 * tiles[0], 4 * tiles[1])[:rows, :blocks]
        found = 2.0 ** (codes.astype(int) - 127) if mode == 2 else numbers.decode_fp8_e4m3(codes)
        return found.repeat(depth // blocks, axis=1)
    blocks = depth // 128
    if mode == 4:
        return array(address, "f4", blocks * rows).reshape(blocks, rows).T.repeat(128, axis=1)
    padded = -(-blocks // 4) * 4
    squares = array(address, "f4", rows // 128 * padded).reshape(-1, padded)[:, :blocks]
    return squares.repeat(128, axis=0).repeat(128, axis=1)


def _tf32(values):
    """fp32 rounded to 11 bits of mantissa."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
