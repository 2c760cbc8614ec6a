"""Fused attention by cuDNN, through its front end: prompts, caches in pages, 8 bits, and the backward pass.

The front end takes addresses of device memory, so that no framework is needed. The first plan of the
library's heuristics that can be built runs, as in frameworks.
"""

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from pydantic import MISSING

from service.protocol.nodes import NodeGap
from service.protocol.work.arithmetic import AttentionWork
from service.worker.benchmark import Unsupported
from service.worker.cuda.attention_reference import WIDTHS, build_page_table, compute_sizes
from service.worker.cuda.bindings import list_versions, load_module
from service.worker.cuda.cudnn_graph import (
    RESULT_SCALE,
    AttentionGraph,
    build_backward_graph,
    build_forward_graph,
    finalize_graph,
    list_scales,
)
from service.worker.cuda.device import CudaDevice, run_kernel
from service.worker.errors import get_first_line

DISTRIBUTIONS = ("nvidia-cudnn-frontend", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
_ALIGNMENT = 16
_SPOIL = 0xFFFFFFFF


class CudnnMissing(Unsupported):
    """The front end, or the library behind it, is not installed."""


class CudnnPlan(NamedTuple):
    """A plan that runs, with its workspace."""

    graph: AttentionGraph
    place: int
    workspace: int
    name: str


class CudnnAttention:
    """Attention by cuDNN; raises :class:`Unsupported` with its status for work that it does not cover."""

    gaps: tuple[NodeGap, ...] = ()

    def __init__(self, device: CudaDevice, work: AttentionWork, seed: int, stack: ExitStack) -> None:
        self._cudnn = cudnn = load_front_end()
        self._refusals = cudnn.cudnnGraphNotSupportedError, RuntimeError
        self._device, self._work = device, work
        self._handle = self._open_handle(stack)
        self.library = f"cuDNN {cudnn.backend_version_string()}"
        self.software = (*device.list_software(), *list_versions(*DISTRIBUTIONS))
        self._plan, forward = self._build_plans()
        self._addresses = self._allocate_matrices(seed)
        self.inputs = tuple(self._addresses[name] for name in _list_inputs(work))
        self._forward = forward
        self.algorithm: str | None = self._plan.name
        self.result_scale = RESULT_SCALE if work.dtype == "fp8_e4m3" else 1.0

    def finish_setup(self) -> None:
        """Runs the forward pass, whose result the backward pass needs; raises :class:`Unsupported`."""
        try:
            if self._forward:
                self._run_plan(self._forward)
            self.queue()
        except self._refusals as error:
            raise Unsupported(f"{self.library}: {get_first_line(error)}") from None

    def open_context(self) -> ExitStack:
        """Returns an empty context: the stream belongs to the handle."""
        return ExitStack()

    def queue(self) -> None:
        """Enqueues one execution on the stream."""
        self._run_plan(self._plan)

    def get_result_address(self) -> int:
        """Returns the address of the result of the forward pass."""
        return self._addresses["o"]

    def get_gradient_addresses(self) -> tuple[int, int, int]:
        """Returns the addresses of the gradients of queries, keys and values."""
        return self._addresses["dq"], self._addresses["dk"], self._addresses["dv"]

    def invalidate_result(self) -> None:
        """Invalidates what an execution writes."""
        results = ("dq", "dk", "dv") if self._work.phase == "backward" else ("o",)
        width, sizes = WIDTHS[self._work.dtype], compute_sizes(self._work)
        counts = {"o": sizes.result, "dq": sizes.query, "dk": sizes.key, "dv": sizes.value}
        for name in results:
            vectors = width * counts[name] // _ALIGNMENT
            run_kernel(self._device, ("flush.cu", "spoil"), self._addresses[name], vectors, _SPOIL)

    def _open_handle(self, stack: ExitStack) -> int:
        try:
            handle = int(self._cudnn.create_handle())
        except RuntimeError as error:
            raise Unsupported(f"cuDNN: {get_first_line(error)}") from None
        stack.callback(self._cudnn.destroy_handle, handle)
        self._cudnn.set_stream(handle=handle, stream=self._device.stream)
        return handle

    def _build_plans(self) -> tuple[CudnnPlan, CudnnPlan | None]:
        """Builds the plan that is timed, and that of the forward pass which a backward pass follows."""
        is_backward, options = self._work.phase == "backward", {"handle": self._handle}
        try:
            forward = self._build_plan(
                build_forward_graph(self._cudnn, self._work, gives_stats=is_backward, **options)
            )
            if not is_backward:
                return forward, None
            return self._build_plan(build_backward_graph(self._cudnn, self._work, **options)), forward
        except self._refusals as error:
            raise Unsupported(f"{self.library}: {get_first_line(error)}") from None

    def _build_plan(self, asked: AttentionGraph) -> CudnnPlan:
        """Builds the first plan that the library can build; raises its last error if there is none."""
        graph, refused = asked.graph, list[str]()
        for index in range(finalize_graph(self._cudnn, graph)):
            try:
                graph.build_plan_at_index(index)
            except self._refusals as error:
                refused.append(get_first_line(error))
                continue
            size = int(graph.get_workspace_size_plan_at_index(index))
            workspace = self._device.allocate(max(size, _ALIGNMENT))
            return CudnnPlan(asked, index, workspace, str(graph.get_plan_name_at_index(index)))
        raise RuntimeError(refused[-1] if refused else "no plan is proposed")

    def _run_plan(self, plan: CudnnPlan) -> None:
        addresses = {number: self._addresses[name] for name, number in plan.graph.tensors.items()}
        plan.graph.graph.execute_plan_at_index(addresses, plan.workspace, plan.place, handle=self._handle)

    def _allocate_matrices(self, seed: int) -> dict[str, int]:
        device, work = self._device, self._work
        width, sizes = WIDTHS[work.dtype], compute_sizes(work)
        found = {
            name: device.allocate(width * count) for name, count in (("q", sizes.query), ("k", sizes.key))
        }
        found["v"] = found["k"] if work.shares_latent else device.allocate(width * sizes.value)
        found["o"] = device.allocate(width * sizes.result)
        if work.phase == "backward":
            found["stats"] = device.allocate(4 * work.batch * work.query_heads * work.queries)
            found["do"] = device.allocate(width * sizes.result)
            for name, count in (("dq", sizes.query), ("dk", sizes.key), ("dv", sizes.value)):
                found[name] = device.allocate(width * count)
        if work.page_tokens is not MISSING:
            found |= self._upload_pages(seed)
        if work.dtype == "fp8_e4m3":
            found |= self._upload_scales()
        return found

    def _upload_pages(self, seed: int) -> dict[str, int]:
        """Uploads one table for keys and values, and the lengths of the sequences."""
        work = self._work
        table = self._upload(build_page_table(work, seed))
        lengths = [np.full(work.batch, count, np.int32) for count in (1, work.context_tokens)]
        return {
            "paged_attention_k_table": table,
            "paged_attention_v_table": table,
            "seq_len_q": self._upload(lengths[0]),
            "seq_len_kv": self._upload(lengths[1]),
        }

    def _upload_scales(self) -> dict[str, int]:
        """Uploads the factors of fp8, and makes room for the largest elements, which the graph writes."""
        scales = {name: self._upload(np.full(4, scale, np.float32)) for name, scale in list_scales().items()}
        return scales | {name: self._device.allocate(16) for name in ("largest_score", "largest_result")}

    def _upload(self, values: np.ndarray[Any, Any]) -> int:
        address = self._device.allocate(values.nbytes)
        self._device.to_device(address, np.ascontiguousarray(values))
        return address


def load_front_end() -> Any:  # noqa: ANN401  # none of these libraries is typed
    """Imports the front end of cuDNN; raises :class:`CudnnMissing` if it or the library is not there."""
    try:
        cudnn = load_module("cudnn")
        cudnn.backend_version()
    except Unsupported as error:
        raise CudnnMissing(str(error)) from None
    except RuntimeError as error:
        raise CudnnMissing(f"the library of cuDNN is not installed: {get_first_line(error)}") from None
    return cudnn


def _list_inputs(work: AttentionWork) -> tuple[str, ...]:
    names = ("q", "k") if work.shares_latent else ("q", "k", "v")
    return (*names, "do") if work.phase == "backward" else names
