"""Matrix products by cuBLASLt, through the bindings of nvmath-python."""

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from service.protocol.work import DType, Gemm
from service.worker.benchmark import Unsupported
from service.worker.cuda.bindings import load
from service.worker.cuda.device import Device

WORKSPACE_BYTES = 32 * 2**20
"""As much as PyTorch gives it on Hopper, so that figures compare."""
MOST_ALGORITHMS = 16

# cudaDataType of library_types.h.
R_32F, R_64F, R_16F, R_8I, R_32I, R_16BF, R_8F_E4M3 = 0, 1, 2, 3, 10, 14, 28


class Kind(NamedTuple):
    """How a number format is multiplied; every mode is set, none is left to a default."""

    operand: int
    result: int
    scale: int
    compute: str
    accumulation: str
    capability: tuple[int, int]
    """The least that has it in hardware."""


KINDS: dict[DType, Kind] = {
    "fp64": Kind(R_64F, R_64F, R_64F, "COMPUTE_64F", "fp64", (7, 0)),
    "fp32": Kind(R_32F, R_32F, R_32F, "COMPUTE_32F", "fp32", (7, 0)),
    "tf32": Kind(R_32F, R_32F, R_32F, "COMPUTE_32F_FAST_TF32", "fp32", (8, 0)),
    "bf16": Kind(R_16BF, R_16BF, R_32F, "COMPUTE_32F", "fp32", (8, 0)),
    "fp16": Kind(R_16F, R_16F, R_32F, "COMPUTE_32F", "fp32", (7, 0)),
    "fp8_e4m3": Kind(R_8F_E4M3, R_16BF, R_32F, "COMPUTE_32F", "fp32, fast accumulation", (8, 9)),
    "int8": Kind(R_8I, R_32I, R_32I, "COMPUTE_32I", "int32", (7, 5)),
}
_SCALES = {R_64F: np.float64, R_32F: np.float32, R_32I: np.int32}


class Algorithm(NamedTuple):
    """One way to carry out a product."""

    address: int
    """Of the library's own description, kept by the :class:`Matmul` that found it."""
    name: str


class Matmul:
    """C = A B^T with A of m x k, B of n x k and C of m x n, rows one after the other in memory.

    cuBLAS counts by columns, so it is asked for C^T = B A^T with B transposed: the one layout that it has for
    every number format. Raises :class:`Unsupported` where device or library cannot do it.
    """

    def __init__(self, device: Device, work: Gemm, stack: ExitStack) -> None:
        self._kind = kind = KINDS[work.dtype]
        if device.capability < kind.capability:
            raise Unsupported(f"{work.dtype} needs compute capability {_dotted(kind.capability)} or newer")
        self._lt = lt = load("nvmath.bindings.cublasLt")
        cublas = load("nvmath.bindings.cublas")
        try:
            self._handle = lt.create()
            self.version = _version(lt)
        except (lt.cuBLASLtError, RuntimeError) as error:
            raise Unsupported(f"cuBLASLt: {_first_line(error)}") from None
        stack.callback(lt.destroy, self._handle)
        self.mode = f"CUBLAS_{kind.compute}"
        self._operation = lt.matmul_desc_create(getattr(cublas.ComputeType, kind.compute), kind.scale)
        stack.callback(lt.matmul_desc_destroy, self._operation)
        attribute = lt.MatmulDescAttribute
        self._set(attribute.TRANSA, np.int32(cublas.Operation.T))
        self._set(attribute.TRANSB, np.int32(cublas.Operation.N))
        if work.dtype == "fp8_e4m3":
            self._set(attribute.FAST_ACCUM, np.int8(1))
        self._layouts = [
            self._layout(stack, kind.operand, work.k, work.n),
            self._layout(stack, kind.operand, work.k, work.m),
            self._layout(stack, kind.result, work.n, work.m),
        ]
        self._one, self._none = np.ones(1, _SCALES[kind.scale]), np.zeros(1, _SCALES[kind.scale])
        self._workspace = device.allocate(WORKSPACE_BYTES)
        self._stream = device.stream
        self._found: Any = None

    def algorithms(self) -> list[Algorithm]:
        """What the library's heuristics propose, the one they think fastest first."""
        lt, count = self._lt, np.zeros(1, np.int32)
        preference = lt.matmul_preference_create()
        try:
            limit = np.array([WORKSPACE_BYTES], np.uint64)
            kind = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
            lt.matmul_preference_set_attribute(preference, kind, limit.ctypes.data, limit.nbytes)
            self._found = np.zeros(MOST_ALGORITHMS, lt.matmul_heuristic_result_dtype)
            first, second, result = self._layouts
            lt.matmul_algo_get_heuristic(
                self._handle,
                self._operation,
                first,
                second,
                result,
                result,
                preference,
                MOST_ALGORITHMS,
                self._found.ctypes.data,
                count.ctypes.data,
            )
        except (lt.cuBLASLtError, RuntimeError) as error:
            raise Unsupported(f"cuBLASLt: {_first_line(error)}") from None
        finally:
            lt.matmul_preference_destroy(preference)
        found = [place for place in range(int(count[0])) if not self._found[place]["state"]]
        if not found:
            raise Unsupported("cuBLASLt has no algorithm for this product")
        size = self._found.itemsize
        addresses = [self._found.ctypes.data + size * place for place in found]
        return [Algorithm(address, self._name(address)) for address in addresses]

    def queue(self, algorithm: Algorithm, a: int, b: int, c: int) -> None:
        """Put one product of the matrices at these addresses on the device's stream."""
        first, second, result = self._layouts
        self._lt.matmul(
            self._handle,
            self._operation,
            self._one.ctypes.data,
            b,
            first,
            a,
            second,
            self._none.ctypes.data,
            c,
            result,
            c,
            result,
            algorithm.address,
            self._workspace,
            WORKSPACE_BYTES,
            self._stream,
        )

    def _set(self, attribute: Any, value: np.generic) -> None:  # noqa: ANN401
        held = np.array([value])
        self._lt.matmul_desc_set_attribute(self._operation, attribute, held.ctypes.data, held.nbytes)

    def _layout(self, stack: ExitStack, kind: int, rows: int, columns: int) -> int:
        layout = self._lt.matrix_layout_create(kind, rows, columns, rows)
        stack.callback(self._lt.matrix_layout_destroy, layout)
        return int(layout)

    def _name(self, address: int) -> str:
        attribute = self._lt.MatmulAlgoConfigAttribute
        numbers = {
            "algorithm": self._number(address, attribute.ID),
            "tile": self._number(address, attribute.TILE_ID),
            "stages": self._number(address, attribute.STAGES_ID),
            "split-k": self._number(address, attribute.SPLITK_NUM),
        }
        return ", ".join(f"{name} {number}" for name, number in numbers.items())

    def _number(self, address: int, attribute: Any) -> int:  # noqa: ANN401
        value, written = np.zeros(1, np.uint32), np.zeros(1, np.uint64)
        self._lt.matmul_algo_config_get_attribute(
            address, attribute, value.ctypes.data, value.nbytes, written.ctypes.data
        )
        return int(value[0])


def _version(lt: Any) -> str:  # noqa: ANN401
    number = int(lt.get_version())
    return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
