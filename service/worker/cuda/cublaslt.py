"""Matrix products by cuBLASLt, through the bindings of nvmath-python."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from service.protocol.work.arithmetic import GemmWork
from service.protocol.work.base import DType
from service.worker.benchmark import Unsupported
from service.worker.cuda.bindings import CudaError, load_module
from service.worker.cuda.device import CudaDevice
from service.worker.errors import get_first_line

WORKSPACE_BYTES = 32 * 2**20
"""Workspace as large as PyTorch's on Hopper, so that figures compare."""
MOST_ALGORITHMS = 16

# cudaDataType of library_types.h.
R_32F, R_64F, R_16F, R_8I, R_32I, R_16BF, R_8F_E4M3, R_4F_E2M1 = 0, 1, 2, 3, 10, 14, 28, 33


class MultiplyMode(NamedTuple):
    """Multiplication of a number format; every mode is set, none is left to a default."""

    operand: int
    result: int
    scale: int
    compute: str
    accumulation: str
    capability: tuple[int, int]
    """Lowest compute capability that has it in hardware."""


KINDS: dict[DType, MultiplyMode] = {
    "fp64": MultiplyMode(R_64F, R_64F, R_64F, "COMPUTE_64F", "fp64", (7, 0)),
    "fp32": MultiplyMode(R_32F, R_32F, R_32F, "COMPUTE_32F", "fp32", (7, 0)),
    "tf32": MultiplyMode(R_32F, R_32F, R_32F, "COMPUTE_32F_FAST_TF32", "fp32", (8, 0)),
    "bf16": MultiplyMode(R_16BF, R_16BF, R_32F, "COMPUTE_32F", "fp32", (8, 0)),
    "fp16": MultiplyMode(R_16F, R_16F, R_32F, "COMPUTE_32F", "fp32", (7, 0)),
    "fp8_e4m3": MultiplyMode(R_8F_E4M3, R_16BF, R_32F, "COMPUTE_32F", "fp32, fast accumulation", (8, 9)),
    "int8": MultiplyMode(R_8I, R_32I, R_32I, "COMPUTE_32I", "int32", (7, 5)),
}
_SCALES = {R_64F: np.float64, R_32F: np.float32, R_32I: np.int32}


class MatrixProduct(NamedTuple):
    """C = alpha A B + beta C of row-major matrices, ``batch`` of each in sequence."""

    dtype: DType
    m: int
    n: int
    k: int
    batch: int = 1
    a_is_turned: bool = False
    """True if A is stored as k x m."""
    b_is_turned: bool = True
    """True if B is stored as n x k, as weights are."""
    alpha: float = 1.0
    beta: float = 0.0
    gives_fp32: bool = False
    """True if the result of bf16 is not rounded to bf16."""
    mode: MultiplyMode | None = None
    """Multiplication, if it is not that of the type."""


class MatmulAlgorithm(NamedTuple):
    """One algorithm of a product."""

    address: int
    """Address of the library's own description, kept by the :class:`Matmul` that found it."""
    name: str


class CublasLtLibrary(NamedTuple):
    """cuBLASLt as one or several products use it."""

    handle: int
    version: str
    workspace: int
    """Address of the workspace."""


def _open_library(lt: Any, device: CudaDevice, stack: ExitStack) -> CublasLtLibrary:  # noqa: ANN401
    try:
        handle, version = lt.create(), _read_version(lt)
    except (lt.cuBLASLtError, RuntimeError) as error:
        raise Unsupported(f"cuBLASLt: {get_first_line(error)}") from None
    stack.callback(lt.destroy, handle)
    return CublasLtLibrary(handle, version, device.allocate(WORKSPACE_BYTES))


class ProductRefused(RuntimeError):
    """A product that cuBLASLt does not start; the message is its status."""


def time_proposals(
    device: CudaDevice, matmul: "Matmul", time_algorithm: Callable[[MatmulAlgorithm], int], seconds: float
) -> tuple[list[tuple[int, MatmulAlgorithm]], list[str]]:
    """Times the library's proposals in order, and skips those that it or the driver refuses.

    Args:
        device: Device of the product.
        matmul: Product whose proposals are timed.
        time_algorithm: Returns the nanoseconds of an algorithm.
        seconds: Time after which no more are tried, once one has run.

    Returns:
        Nanoseconds and algorithm of each that ran, and the status of each that did not.

    Raises:
        Unsupported: None of them runs.
        CudaError: The device does not work any more.
    """
    times, refused, started = list[tuple[int, MatmulAlgorithm]](), list[str](), time.monotonic()
    for algorithm in matmul.list_algorithms():
        try:
            times.append((time_algorithm(algorithm), algorithm))
        except (ProductRefused, CudaError) as error:
            device.synchronize()
            refused.append(str(error))
        if times and time.monotonic() - started > seconds:
            break
    if not times:
        raise Unsupported(f"cuBLASLt refuses all {len(refused)} of its proposals: {refused[0]}")
    return times, refused


def describe_proposals(tried: int, refused: list[str]) -> str:
    """Returns how many proposals were timed, and why others were not."""
    text = f"fastest of {tried} proposed"
    return f"{text}, {len(refused)} refused ({', '.join(sorted(set(refused)))})" if refused else text


class Matmul:
    """Products of row-major matrices; a plain :class:`GemmWork` is C = A B^T with A of m x k and B of n x k.

    cuBLAS counts by columns, so it is asked for C^T = B^T A^T; B of n x k is the one layout that it has for
    every number format. Raises :class:`Unsupported` if device or library do not support it. A product that is
    ``like`` another shares its handle and its workspace, and has to be used on the same stream.
    """

    def __init__(
        self,
        device: CudaDevice,
        work: GemmWork | MatrixProduct,
        stack: ExitStack,
        like: "Matmul | None" = None,
    ) -> None:
        shape = work if isinstance(work, MatrixProduct) else MatrixProduct(work.dtype, work.m, work.n, work.k)
        self._kind = kind = shape.mode or KINDS[shape.dtype]
        if device.capability < kind.capability:
            raise Unsupported(
                f"{work.dtype} needs compute capability {_format_version(kind.capability)} or newer"
            )
        self._lt = lt = load_module("nvmath.bindings.cublasLt")
        cublas = load_module("nvmath.bindings.cublas")
        self.library: CublasLtLibrary = like.library if like else _open_library(lt, device, stack)
        self._handle, self.version, self._workspace = self.library
        self.mode = f"CUBLAS_{kind.compute}"
        self._operation = lt.matmul_desc_create(getattr(cublas.ComputeType, kind.compute), kind.scale)
        stack.callback(lt.matmul_desc_destroy, self._operation)
        attribute, turned, as_it_is = lt.MatmulDescAttribute, cublas.Operation.T, cublas.Operation.N
        self._set_attribute(attribute.TRANSA, np.int32(turned if shape.b_is_turned else as_it_is))
        self._set_attribute(attribute.TRANSB, np.int32(turned if shape.a_is_turned else as_it_is))
        if shape.dtype == "fp8_e4m3" and shape.mode is None:
            self._set_attribute(attribute.FAST_ACCUM, np.int8(1))
        # Rows of cuBLAS are contiguous in memory.
        b = (shape.k, shape.n) if shape.b_is_turned else (shape.n, shape.k)
        a = (shape.m, shape.k) if shape.a_is_turned else (shape.k, shape.m)
        result = R_32F if shape.gives_fp32 else kind.result
        self._layouts = [
            self._create_layout(stack, number, *sides, shape.batch)
            for number, sides in ((kind.operand, b), (kind.operand, a), (result, (shape.n, shape.m)))
        ]
        scale = _SCALES[kind.scale]
        self._alpha, self._beta = np.full(1, shape.alpha, scale), np.full(1, shape.beta, scale)
        self._stream = device.stream
        self._found: Any = None

    def list_algorithms(self) -> list[MatmulAlgorithm]:
        """Returns the proposals of the library's heuristics, the presumably fastest first."""
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
            raise Unsupported(f"cuBLASLt: {get_first_line(error)}") from None
        finally:
            lt.matmul_preference_destroy(preference)
        found = [place for place in range(int(count[0])) if not self._found[place]["state"]]
        if not found:
            raise Unsupported("cuBLASLt has no algorithm for this product")
        size = self._found.itemsize
        addresses = [self._found.ctypes.data + size * place for place in found]
        return [MatmulAlgorithm(address, self._describe_algorithm(address)) for address in addresses]

    def enqueue_product(
        self, algorithm: MatmulAlgorithm, a: int, b: int, c: int, added: int | None = None
    ) -> None:
        """Enqueues one product of the matrices at these addresses on the device's stream.

        Beta applies to the matrix at ``added``, or to the previous result. Raises :class:`ProductRefused`.
        """
        first, second, result = self._layouts
        try:
            self._lt.matmul(
                self._handle,
                self._operation,
                self._alpha.ctypes.data,
                b,
                first,
                a,
                second,
                self._beta.ctypes.data,
                c if added is None else added,
                result,
                c,
                result,
                algorithm.address,
                self._workspace,
                WORKSPACE_BYTES,
                self._stream,
            )
        except (self._lt.cuBLASLtError, RuntimeError) as error:
            raise ProductRefused(get_first_line(error)) from None

    def _set_attribute(self, attribute: Any, value: np.generic) -> None:  # noqa: ANN401
        held = np.array([value])
        self._lt.matmul_desc_set_attribute(self._operation, attribute, held.ctypes.data, held.nbytes)

    def _create_layout(self, stack: ExitStack, kind: int, rows: int, columns: int, count: int) -> int:
        lt = self._lt
        layout = lt.matrix_layout_create(kind, rows, columns, rows)
        stack.callback(lt.matrix_layout_destroy, layout)
        if count > 1:
            attribute = lt.MatrixLayoutAttribute
            for which, value in (
                (attribute.BATCH_COUNT, np.array([count], np.int32)),
                (attribute.STRIDED_BATCH_OFFSET, np.array([rows * columns], np.int64)),
            ):
                lt.matrix_layout_set_attribute(layout, which, value.ctypes.data, value.nbytes)
        return int(layout)

    def _describe_algorithm(self, address: int) -> str:
        attribute = self._lt.MatmulAlgoConfigAttribute
        numbers = {
            "algorithm": self._read_attribute(address, attribute.ID),
            "tile": self._read_attribute(address, attribute.TILE_ID),
            "stages": self._read_attribute(address, attribute.STAGES_ID),
            "split-k": self._read_attribute(address, attribute.SPLITK_NUM),
        }
        return ", ".join(f"{name} {number}" for name, number in numbers.items())

    def _read_attribute(self, address: int, attribute: Any) -> int:  # noqa: ANN401
        value, written = np.zeros(1, np.uint32), np.zeros(1, np.uint64)
        self._lt.matmul_algo_config_get_attribute(
            address, attribute, value.ctypes.data, value.nbytes, written.ctypes.data
        )
        return int(value[0])


def _read_version(lt: Any) -> str:  # noqa: ANN401
    number = int(lt.get_version())
    return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"


def _format_version(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
