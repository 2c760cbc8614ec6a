"""As much of PyTorch as attention takes: tensors in this process's memory, back ends that may refuse."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from service.worker.cuda import numbers
from tests.worker.cuda.test_attention_kernels import attention, values_of


class Tensor:
    def __init__(self, held):
        self.held = held

    def data_ptr(self):
        return self.held.ctypes.data

    @property
    def shape(self):
        return self.held.shape

    def contiguous(self):
        return Tensor(np.ascontiguousarray(self.held))

    def transpose(self, one, other):
        return Tensor(self.held.swapaxes(one, other))

    def reshape(self, shape):
        return Tensor(self.held.reshape(shape))


class FakeTorch:
    """``refuses`` names the back ends that have no kernel; ``seen`` is what was asked for."""

    __version__ = "2.9.0"
    float32, bfloat16, float16, int32, uint8 = "fp32", "bf16", "fp16", "int32", "uint8"

    def __init__(self, advance):
        self._advance = advance
        self.refuses, self.seen, self.active = set(), [], []
        self.spoils = lambda result: result
        self.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)))
        self.cuda = SimpleNamespace(
            OutOfMemoryError=MemoryError,
            set_device=self.seen.append,
            ExternalStream=lambda stream, device: ("stream", stream, device),
            stream=self._active,
        )
        self.nn = SimpleNamespace(functional=self)
        self.attention = SimpleNamespace(
            SDPBackend=SimpleNamespace(
                FLASH_ATTENTION="flash", EFFICIENT_ATTENTION="efficient", CUDNN_ATTENTION="cudnn", MATH="math"
            ),
            sdpa_kernel=self._active,
        )

    def inference_mode(self):
        return self._active("inference")

    @contextmanager
    def _active(self, what):
        self.active.append(what)
        yield
        self.active.remove(what)

    def device(self, kind, ordinal):
        return kind, ordinal

    def empty(self, shape, dtype, device):
        assert device == ("cuda", 0)
        stored = {"fp32": np.float32, "bf16": np.uint16, "fp16": np.float16, "uint8": np.uint8}[dtype]
        self.dtype = self.dtype if dtype == "uint8" else dtype
        return Tensor(np.zeros(shape, stored))

    def tensor(self, values, dtype, device):
        assert (dtype, device) == ("int32", ("cuda", 0))
        return Tensor(np.array(values, np.int32))

    def attend(self, q, k, v, *, is_causal):
        """Heads of a token side by side, from heads before tokens."""
        exact = attention(*(values_of(self.dtype, held) for held in (q, k, v)), is_causal=is_causal)
        held = self.spoils(exact).astype(np.float32)
        if self.dtype == "bf16":
            held = (numbers.round_to_bf16(held).view(np.uint32) >> 16).astype(np.uint16)
        self._advance(50)
        return Tensor(np.ascontiguousarray(held.astype(q.dtype, copy=False).transpose(0, 2, 1, 3)))

    def scaled_dot_product_attention(self, q, k, v, *, is_causal, enable_gqa):
        _, stream, back_end = self.active
        assert stream[1]
        if back_end in self.refuses:
            raise RuntimeError("No available kernel. Aborting execution.\nand more")
        self.seen.append((back_end, is_causal, enable_gqa))
        exact = self.spoils(
            attention(*(values_of(self.dtype, t.held) for t in (q, k, v)), is_causal=is_causal)
        )
        held = exact.astype(np.float32)
        if self.dtype == "bf16":
            held = (numbers.round_to_bf16(held).view(np.uint32) >> 16).astype(np.uint16)
        # As flash attention leaves it: heads of a token side by side.
        turned = np.ascontiguousarray(held.astype(q.held.dtype, copy=False).transpose(0, 2, 1, 3))
        self._advance(50)
        return Tensor(turned.transpose(0, 2, 1, 3))
