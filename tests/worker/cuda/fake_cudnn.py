"""The front end of cuDNN by NumPy: its graphs and plans, and a refusal of what the library would refuse."""

import ctypes
from enum import Enum
from itertools import count

import numpy as np

from service.worker.cuda import numbers

HELD = {"BFLOAT16": "u2", "HALF": "f2", "FP8_E4M3": "u1", "FLOAT": "f4", "INT32": "i4"}
Kind = Enum("Kind", [*HELD, "NOT_SET"])
Alignment = Enum("Alignment", ["TOP_LEFT", "BOTTOM_RIGHT"])
Heuristic = Enum("Heuristic", ["A", "B"])
ORDER = ("new", "validated", "operations", "proposed", "supported", "built")


class GraphNotSupported(Exception):
    """No RuntimeError, as in the front end."""


class FakeTensor:
    def __init__(self, name="", dim=None, stride=None, data_type=Kind.NOT_SET, uid=-1):
        self.name, self.dim, self.stride, self.data_type, self.uid = name, dim, stride, data_type, uid
        self.is_output = False

    def set_uid(self, uid):
        self.uid = uid
        return self

    def set_output(self, value):
        self.is_output = value
        return self

    def set_data_type(self, kind):
        self.data_type = kind
        return self

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self

    def view(self, address):
        """The matrix at an address, with the distances of the tensor."""
        kind = np.dtype(HELD[self.data_type.name])
        size = 1 + sum((length - 1) * step for length, step in zip(self.dim, self.stride, strict=True))
        raw = (ctypes.c_char * (size * kind.itemsize)).from_address(address)
        steps = [step * kind.itemsize for step in self.stride]
        return np.lib.stride_tricks.as_strided(np.frombuffer(raw, kind), self.dim, steps)

    def read(self, address):
        held = self.view(address)
        match self.data_type:
            case Kind.BFLOAT16:
                held = numbers.decode_bf16(held)
            case Kind.FP8_E4M3:
                held = numbers.decode_fp8_e4m3(held)
        return held.astype(np.float64)

    def write(self, address, values):
        held = self.view(address)
        match self.data_type:
            case Kind.BFLOAT16:
                rounded = numbers.round_to_bf16(values.astype(np.float32)).view(np.uint32)
                held[...] = (rounded >> 16).astype(np.uint16)
            case Kind.FP8_E4M3:
                codes = np.arange(256)
                table = numbers.decode_fp8_e4m3(codes[:127])
                nearest = numbers.round_to_fp8_e4m3(values)
                held[...] = np.searchsorted(table, np.abs(nearest)) + 128 * (nearest < 0)
            case _:
                held[...] = values


class FakeGraph:
    """One operation. Steps have to be taken in their order; tensors need shapes, types and numbers."""

    def __init__(self, library, io_data_type, intermediate_data_type, compute_data_type, handle=None):
        assert intermediate_data_type is compute_data_type is Kind.FLOAT
        library.require_handle(handle)
        self._library, self._handle, self._io = library, handle, io_data_type
        self._state, self._inputs, self._results = "new", [], {}
        self.plans = {}

    def tensor(self, name, dim, stride, data_type, uid):
        made = FakeTensor(name, dim, stride, data_type, uid)
        self._inputs.append(made)
        return made

    def sdpa(self, q, k, v, generate_stats, **asked):
        self._forward(q, k, v, generate_stats, asked, "diagonal_band_right_bound")
        return self._results["o"], self._results["stats"] if generate_stats else None

    def sdpa_fp8(
        self, q, k, v, descale_q, descale_k, descale_v, descale_s, scale_s, scale_o, generate_stats, **asked
    ):
        self._forward(q, k, v, generate_stats, asked, "right_bound")
        self._factors = [descale_q, descale_k, descale_v, descale_s, scale_s, scale_o]
        self._results |= {"largest_score": FakeTensor(), "largest_result": FakeTensor()}
        return self._results["o"], None, self._results["largest_score"], self._results["largest_result"]

    def _forward(self, q, k, v, generate_stats, asked, bound):
        names = {"diagonal_alignment", bound} if bound in asked else set()
        pages = {name for name in asked if name.startswith(("paged_", "seq_len", "use_padding"))}
        assert len(pages) in (0, 6)
        assert set(asked) == {"attn_scale"} | names | pages
        assert asked.get(bound, 0) == 0
        self._matrices, self._asked, self._causal = (q, k, v), asked, bound in asked
        self._factors = []
        self._results = {"o": FakeTensor()} | ({"stats": FakeTensor()} if generate_stats else {})
        self._run = self._run_forward

    def sdpa_backward(self, q, k, v, o, stats, **asked):
        assert asked.pop("diagonal_band_right_bound") == 0
        assert asked.pop("diagonal_alignment") is Alignment.TOP_LEFT
        self._before = o, asked.pop("dO"), stats
        assert set(asked) == {"attn_scale"}
        self._matrices, self._asked, self._causal = (q, k, v), asked, True
        self._results = {name: FakeTensor() for name in ("dq", "dk", "dv")}
        self._run = self._run_backward
        return tuple(self._results.values())

    def _step(self, to):
        assert ORDER.index(to) == ORDER.index(self._state) + 1
        self._state = to

    def validate(self):
        self._step("validated")
        tensors = [*self._inputs, *self._results.values()]
        assert all(each.dim and each.stride and each.uid > 0 for each in tensors)
        assert all(each.data_type is not Kind.NOT_SET for each in tensors)
        assert all(each.is_output for each in self._results.values())
        assert len({each.uid for each in tensors}) == len(tensors)
        q, k, v = self._matrices
        if self._library.refuses:
            raise GraphNotSupported(self._library.refuses)
        if q.dim[3] != k.dim[3] or q.dim[1] % k.dim[1] or k.dim[:3] != v.dim[:3]:
            raise GraphNotSupported("shapes of Q, K and V do not fit")
        if self._results.get("o") and self._results["o"].dim != [*q.dim[:3], v.dim[3]]:
            raise GraphNotSupported("the shape of the result does not fit")

    def build_operation_graph(self):
        self._step("operations")

    def create_execution_plans(self, modes):
        self._step("proposed")
        assert modes == [Heuristic.A]

    def check_support(self):
        self._step("supported")

    def get_execution_plan_count(self):
        return len(self._library.plans)

    def build_plan_at_index(self, index):
        name = self._library.plans[index]
        if name is None:
            raise GraphNotSupported("CUDNN_STATUS_NOT_SUPPORTED: plan\nand more")
        self.plans[index] = name

    def get_workspace_size_plan_at_index(self, index):
        return 4096 if index in self.plans else 0

    def get_plan_name_at_index(self, index):
        return self._library.plans[index]

    def execute_plan_at_index(self, addresses, workspace, index, handle):
        assert index in self.plans
        assert workspace
        self._library.require_handle(handle)
        tensors = [*self._inputs, *self._results.values()]
        assert set(addresses) == {each.uid for each in tensors}
        at = {id(each): addresses[each.uid] for each in tensors}

        def work():
            self._run(at)
            self._library.executed.append(self.plans[index])
            self._library.advance(self._library.microseconds)

        self._library.queue(self._library.handles[handle], work)

    def _read(self, at, tensor):
        return tensor.read(at[id(tensor)])

    def _cache(self, at, tensor, table, lengths):
        held = self._read(at, tensor)
        if table is None:
            return held
        assert set(self._read(at, lengths).ravel()) == {self._asked["paged_attention_max_seq_len_kv"]}
        pages = self._read(at, table).astype(int)[:, 0, :, 0]
        found = held[pages].transpose(0, 2, 1, 3, 4)
        return found.reshape(*found.shape[:2], -1, found.shape[-1])

    def _weigh(self, at):
        """Queries, keys and values with a head each, and the softmax of the scores."""
        q, k, v = self._matrices
        tables = [self._asked.get(f"paged_attention_{name}_table") for name in "kv"]
        lengths = self._asked.get("seq_len_kv")
        queries = self._read(at, q)
        keys, values = (
            self._cache(at, each, table, lengths) for each, table in zip((k, v), tables, strict=True)
        )
        group = queries.shape[1] // keys.shape[1]
        keys, values = keys.repeat(group, 1), values.repeat(group, 1)
        scores = queries @ keys.transpose(0, 1, 3, 2) * self._asked["attn_scale"]
        if self._causal:
            scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return queries, keys, values, weights, group

    def _run_forward(self, at):
        *_, values, weights, _ = self._weigh(at)
        sums = weights.sum(-1, keepdims=True)
        scale = 1.0
        if self._factors:
            *_, of_scores, scores, scale = (float(self._read(at, each).ravel()[0]) for each in self._factors)
            weights = numbers.round_to_fp8_e4m3(weights * scores) * of_scores
        result = self._library.spoils(weights @ values / sums) * scale
        outputs = {"o": result, "stats": np.log(sums), "largest_score": 1.0, "largest_result": 1.0}
        for name, tensor in self._results.items():
            tensor.write(at[id(tensor)], outputs[name])

    def _run_backward(self, at):
        queries, keys, values, weights, group = self._weigh(at)
        sums = weights.sum(-1, keepdims=True)
        before, change, stats = (self._read(at, each) for each in self._before)
        assert np.allclose(stats, np.log(sums), rtol=1e-5, atol=1e-5)
        assert np.abs(before - weights / sums @ values).max() < 0.1
        weights = weights / sums
        of_weights = change @ values.transpose(0, 1, 3, 2)
        along = (weights * of_weights).sum(-1, keepdims=True)
        of_scores = weights * (of_weights - along) * self._asked["attn_scale"]
        found = {
            "dq": of_scores @ keys,
            "dk": of_scores.transpose(0, 1, 3, 2) @ queries,
            "dv": weights.transpose(0, 1, 3, 2) @ change,
        }
        for name, tensor in self._results.items():
            whole = found[name]
            if name != "dq":
                batch, heads, *rest = whole.shape
                whole = whole.reshape(batch, heads // group, group, *rest).sum(2)
            tensor.write(at[id(tensor)], self._library.spoils(whole))


class FakeCudnn:
    """The module ``cudnn``; ``refuses`` is why it takes no graph, a plan of None cannot be built."""

    __version__ = "1.20.0"
    data_type, diagonal_alignment, heur_mode = Kind, Alignment, Heuristic
    cudnnGraphNotSupportedError = GraphNotSupported  # noqa: N815

    def __init__(self, advance):
        self._numbers = count(500)
        self.advance = advance
        self.handles, self.executed = {}, []
        self.plans, self.microseconds = ["eng2_k3", "eng1_k1"], 50
        self.refuses, self.is_missing = None, False
        self.spoils = lambda result: result
        self.queue = lambda _, work: work()

    def backend_version(self):
        if self.is_missing:
            raise RuntimeError("Unable to find symbol cudnnGetVersion")
        return 92801

    def backend_version_string(self):
        return "9.28.1"

    def create_handle(self):
        number = next(self._numbers)
        self.handles[number] = None
        return number

    def destroy_handle(self, handle):
        del self.handles[handle]

    def set_stream(self, handle, stream):
        assert stream
        self.handles[handle] = stream

    def require_handle(self, handle):
        assert self.handles[handle]

    def pygraph(self, **options):
        return FakeGraph(self, **options)
