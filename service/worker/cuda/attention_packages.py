"""Attention by packages for PyTorch that engines use: flash-attn 3 and FlashInfer.

Matrices have the layout of the other back ends, heads before tokens; flash-attn reads them through strides,
and FlashInfer reads a cache as it is and prompts from a copy with tokens before heads.
"""

from contextlib import ExitStack
from typing import Any

import numpy as np
from pydantic import MISSING

from service.protocol.nodes import NodeGap
from service.protocol.work.arithmetic import AttentionWork
from service.worker.benchmark import Unsupported
from service.worker.cuda.attention_reference import build_page_table
from service.worker.cuda.bindings import DISTRIBUTIONS, list_versions, load_module
from service.worker.cuda.cudnn_graph import list_shapes
from service.worker.cuda.device import CudaDevice
from service.worker.errors import get_first_line

FLASHINFER_WORKSPACE_BYTES = 128 * 2**20
"""Size that the documentation of FlashInfer recommends."""


class PackageAttention:
    """Attention by one package, on the stream of the device; raises :class:`Unsupported` without it."""

    module = ""
    algorithm: str | None = None
    gaps: tuple[NodeGap, ...] = ()
    result_scale = 1.0

    def __init__(self, device: CudaDevice, work: AttentionWork, seed: int) -> None:
        if work.phase == "backward" or work.dtype not in ("bf16", "fp16") or work.value_size is not MISSING:
            raise Unsupported(f"{work.back_end} is used for results of 16 bits with heads of one size")
        self._torch = torch = load_module("torch")
        self._package = load_module(self.module)
        self._work, self._seed, self._where = work, seed, torch.device("cuda", device.ordinal)
        # Otherwise PyTorch returns to the context of its first device after each call.
        torch.cuda.set_device(self._where)
        self._type = {"bf16": torch.bfloat16, "fp16": torch.float16}[work.dtype]
        shapes = list_shapes(work)
        try:
            self._q, self._k, self._v = (
                torch.empty(shapes[name], dtype=self._type, device=self._where) for name in ("q", "k", "v")
            )
        except torch.cuda.OutOfMemoryError as error:
            raise Unsupported(get_first_line(error)) from None
        self.inputs = tuple(int(each.data_ptr()) for each in (self._q, self._k, self._v))
        self._stream = torch.cuda.ExternalStream(device.stream, device=self._where)
        self._out: Any = None
        names = "torch", DISTRIBUTIONS[self.module]
        self.library = " ".join(f"{each.name} {each.version}" for each in list_versions(names[1])) or names[1]
        self.software = (*device.list_software(), *list_versions(*names))

    def finish_setup(self) -> None:
        """Plans the call and runs it once; raises :class:`Unsupported` if the package refuses it."""
        try:
            with self.open_context():
                self.plan_call()
                self.queue()
        except (RuntimeError, ValueError, NotImplementedError, AssertionError) as error:
            raise Unsupported(f"{self.library}: {get_first_line(error)}") from None

    def plan_call(self) -> None:
        """Prepares what all calls share, once the matrices are filled."""

    def call_package(self) -> Any:  # noqa: ANN401
        """Returns the result with the heads of a token side by side."""
        raise NotImplementedError

    def open_context(self) -> ExitStack:
        """Returns the context in which it runs, with the stream set."""
        stack = ExitStack()
        stack.enter_context(self._torch.inference_mode())
        stack.enter_context(self._torch.cuda.stream(self._stream))
        return stack

    def queue(self) -> None:
        """Enqueues one execution on the stream."""
        self._out = self.call_package()

    def get_result_address(self) -> int:
        """Returns the address of the result as the other back ends leave it, heads before tokens."""
        work = self._work
        by_token = work.batch, work.queries, work.query_heads, work.head_size
        with self.open_context():
            self._out = self._out.reshape(by_token).transpose(1, 2).contiguous()
        return int(self._out.data_ptr())

    def invalidate_result(self) -> None:
        """Drops the result; the next may have another address."""
        self._out = None

    def send_integers(self, values: Any) -> Any:  # noqa: ANN401
        """Returns whole numbers on the device."""
        found = np.asarray(values, np.int32)
        return self._torch.tensor(found.tolist(), dtype=self._torch.int32, device=self._where)


class FlashAttention3(PackageAttention):
    """flash-attn 3, whose call for caches splits their contexts among multiprocessors."""

    module = "flash_attn_interface"

    def plan_call(self) -> None:
        """Sends the table of pages."""
        work = self._work
        self._table = None
        if work.page_tokens is not MISSING:
            self._table = self.send_integers(build_page_table(work, self._seed))
        self._lengths = self.send_integers([work.context_tokens] * work.batch)

    def call_package(self) -> Any:  # noqa: ANN401
        """Runs attention; the package may give the sums of the softmax, too."""
        q, k, v = (each.transpose(1, 2) for each in (self._q, self._k, self._v))
        if self._work.phase == "prefill":
            found = self._package.flash_attn_func(q, k, v, causal=True)
        else:
            found = self._package.flash_attn_with_kvcache(
                q, k, v, cache_seqlens=self._lengths, page_table=self._table, causal=False
            )
        return found[0] if isinstance(found, tuple) else found


class FlashInferAttention(PackageAttention):
    """FlashInfer, by a plan for all sequences; a cache in one piece is one page a sequence."""

    module = "flashinfer"

    def plan_call(self) -> None:
        """Makes a plan, as an engine does once for all layers."""
        work, torch = self._work, self._torch
        workspace = torch.empty((FLASHINFER_WORKSPACE_BYTES,), dtype=torch.uint8, device=self._where)
        heads = work.query_heads, work.kv_heads, work.head_size
        if work.phase == "prefill":
            ends = self.send_integers(np.arange(work.batch + 1) * work.context_tokens)
            self._wrapper = self._package.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD")
            self._wrapper.plan(ends, ends, *heads, causal=True, q_data_type=self._type)
            self._arguments = tuple(self._list_by_token(each) for each in (self._q, self._k, self._v))
            return
        size = work.context_tokens if work.page_tokens is MISSING else work.page_tokens
        pages = work.context_tokens // size
        table = np.arange(work.batch) if pages == 1 else build_page_table(work, self._seed).reshape(-1)
        self._wrapper = self._package.BatchDecodeWithPagedKVCacheWrapper(
            workspace, "HND", use_tensor_cores=work.query_heads // work.kv_heads > 1
        )
        self._wrapper.plan(
            self.send_integers(np.arange(work.batch + 1) * pages),
            self.send_integers(table),
            self.send_integers([size] * work.batch),
            *heads,
            size,
            q_data_type=self._type,
            kv_data_type=self._type,
        )
        of_query = self._q.reshape((work.batch, work.query_heads, work.head_size))
        self._arguments = of_query, (self._k, self._v)

    def call_package(self) -> Any:  # noqa: ANN401
        """Runs the plan."""
        return self._wrapper.run(*self._arguments)

    def _list_by_token(self, held: Any) -> Any:  # noqa: ANN401
        """Returns a copy with a row for each token of all sequences."""
        batch, heads, tokens, size = held.shape
        return held.transpose(1, 2).contiguous().reshape((batch * tokens, heads, size))
