"""Graphs of fused attention for cuDNN, through its front end, from the shape of the work alone.

A graph is built with a handle on a device, or, for a look without one, with the properties of a device.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from pydantic import MISSING

from service.protocol.work.arithmetic import AttentionWork

FrontEnd: TypeAlias = Any
"""The front end and its objects, which are not typed."""
SCORE_SCALE = 256.0
"""Factor of weights that are kept as fp8: the largest becomes 256, and one of 2^-14 is no zero."""
RESULT_SCALE = 64.0
"""Factor of a result that is kept as fp8. Of 4,096 keys its elements are about 0.03, and 3.5 at most."""

_TYPES = {"bf16": "BFLOAT16", "fp16": "HALF", "fp8_e4m3": "FP8_E4M3"}
_FORWARD, _BACKWARD = ("q", "k", "v"), ("q", "k", "v", "o", "do", "stats")


class AttentionGraph(NamedTuple):
    """A graph, and the number of each tensor that has to have an address when it runs."""

    graph: FrontEnd
    tensors: dict[str, int]


def list_shapes(work: AttentionWork) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each matrix: sequences or pages, heads, queries or tokens, elements."""
    batch, heads, tokens = work.batch, work.kv_heads, work.context_tokens
    if work.page_tokens is not MISSING:
        batch, tokens = batch * (tokens // work.page_tokens), work.page_tokens
    of_query = (work.batch, work.query_heads, work.queries)
    return {
        "q": (*of_query, work.head_size),
        "k": (batch, heads, tokens, work.head_size),
        "v": (batch, heads, tokens, work.values),
        "o": (*of_query, work.values),
        "stats": (*of_query, 1),
    }


def build_forward_graph(
    cudnn: FrontEnd, work: AttentionWork, *, gives_stats: bool, **options: FrontEnd
) -> AttentionGraph:
    """Builds the forward pass; ``gives_stats`` keeps what the backward pass needs of the softmax."""
    builder = _GraphBuilder(cudnn, work, options)
    is_fp8 = work.dtype == "fp8_e4m3"
    inputs = {name: builder.add_matrix(name) for name in _FORWARD}
    asked = {**builder.mask(is_fp8=is_fp8), **builder.add_pages(), "generate_stats": gives_stats}
    if is_fp8:
        scales = {name: builder.add_scalar(name) for name in list_scales()}
        result, _, *largest = builder.graph.sdpa_fp8(**inputs, **scales, **asked)
        for name, tensor in zip(("largest_score", "largest_result"), largest, strict=True):
            builder.add_output(name, tensor, (1, 1, 1, 1), cudnn.data_type.FLOAT)
    else:
        result, stats = builder.graph.sdpa(**inputs, **asked)
        if gives_stats:
            builder.add_output("stats", stats, builder.shapes["stats"], cudnn.data_type.FLOAT)
    builder.add_output("o", result, builder.shapes["o"], builder.type)
    return AttentionGraph(builder.graph, builder.tensors)


def build_backward_graph(cudnn: FrontEnd, work: AttentionWork, **options: FrontEnd) -> AttentionGraph:
    """Builds the backward pass, from the result, its gradient and what is kept of the softmax."""
    builder = _GraphBuilder(cudnn, work, options)
    inputs = {name: builder.add_matrix(name) for name in _BACKWARD}
    inputs["dO"] = inputs.pop("do")
    gradients = builder.graph.sdpa_backward(**inputs, **builder.mask(is_fp8=False))
    for name, tensor in zip(_FORWARD, gradients, strict=True):
        builder.add_output(f"d{name}", tensor, builder.shapes[name], builder.type)
    return AttentionGraph(builder.graph, builder.tensors)


def list_scales() -> dict[str, float]:
    """Returns the factors of fp8: inputs are taken as they are, weights and result are scaled."""
    return {
        "descale_q": 1.0,
        "descale_k": 1.0,
        "descale_v": 1.0,
        "descale_s": 1.0 / SCORE_SCALE,
        "scale_s": SCORE_SCALE,
        "scale_o": RESULT_SCALE,
    }


def finalize_graph(cudnn: FrontEnd, graph: FrontEnd) -> int:
    """Lets the library check a graph and propose plans for it; returns the number of plans."""
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A])
    graph.check_support()
    return int(graph.get_execution_plan_count())


class _GraphBuilder:
    """A graph as it grows. Tensors are numbered, so that no object is needed to run it."""

    def __init__(self, cudnn: FrontEnd, work: AttentionWork, options: dict[str, FrontEnd]) -> None:
        self._cudnn, self._work = cudnn, work
        self.type = getattr(cudnn.data_type, _TYPES[work.dtype])
        self.shapes = list_shapes(work)
        single = cudnn.data_type.FLOAT
        self.graph = cudnn.pygraph(
            io_data_type=self.type, intermediate_data_type=single, compute_data_type=single, **options
        )
        self.tensors: dict[str, int] = {}

    def add_matrix(self, name: str) -> FrontEnd:
        """Adds an input of the shape of its name."""
        shape = self.shapes["o" if name == "do" else name]
        strides = _list_strides(shape)
        if name == "v" and self._work.shares_latent:
            strides = _list_strides(self.shapes["k"])
        kind = self._cudnn.data_type.FLOAT if name == "stats" else self.type
        return self._add_input(name, shape, strides, kind)

    def add_scalar(self, name: str) -> FrontEnd:
        """Adds a factor of fp32 on the device."""
        return self._add_input(name, (1, 1, 1, 1), (1, 1, 1, 1), self._cudnn.data_type.FLOAT)

    def add_pages(self) -> dict[str, FrontEnd]:
        """Adds the tables of pages and the lengths of sequences; empty if the cache is in one piece."""
        work = self._work
        if work.page_tokens is MISSING:
            return {}
        pages = work.context_tokens // work.page_tokens
        table, length = (work.batch, 1, pages, 1), (work.batch, 1, 1, 1)
        whole = self._cudnn.data_type.INT32
        found = {
            name: self._add_input(name, shape, _list_strides(shape), whole)
            for name, shape in (
                ("paged_attention_k_table", table),
                ("paged_attention_v_table", table),
                ("seq_len_q", length),
                ("seq_len_kv", length),
            )
        }
        return {**found, "use_padding_mask": True, "paged_attention_max_seq_len_kv": work.context_tokens}

    def mask(self, *, is_fp8: bool) -> dict[str, FrontEnd]:
        """Returns the scale of the scores, and the bounds of a causal mask."""
        scale = {"attn_scale": self._work.head_size**-0.5}
        if self._work.phase == "decode":
            return scale
        bound = "right_bound" if is_fp8 else "diagonal_band_right_bound"
        return {**scale, "diagonal_alignment": self._cudnn.diagonal_alignment.TOP_LEFT, bound: 0}

    def add_output(self, name: str, tensor: FrontEnd, shape: Sequence[int], kind: FrontEnd) -> None:
        """Makes a tensor of the graph a result that is written row by row."""
        number = self._number(name)
        tensor.set_uid(number).set_output(True).set_data_type(kind)
        tensor.set_dim(list(shape)).set_stride(_list_strides(shape))

    def _add_input(self, name: str, shape: Sequence[int], strides: Sequence[int], kind: FrontEnd) -> FrontEnd:
        return self.graph.tensor(
            name=name, dim=list(shape), stride=list(strides), data_type=kind, uid=self._number(name)
        )

    def _number(self, name: str) -> int:
        self.tensors[name] = len(self.tensors) + 1
        return self.tensors[name]


def _list_strides(shape: Sequence[int]) -> list[int]:
    """Returns the distances of a matrix of rows without gaps."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return strides
