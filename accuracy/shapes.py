"""Model of a row as a reference in a question: a row of the catalog, else the row's own shape.

Open members of the shape (head size, gate, tying, inner width, vocabulary, layers) are chosen so that the
parameters add up to the count that the source states. Shapes that add up equally well are alternatives.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from accuracy.rows import MeasuredRow, stated_count
from service.planning.errors import PlanningError
from service.planning.models.profile import build_profile
from service.schemas.architectures import Architecture, to_planning

ModelReference = Mapping[str, Any]

SWEPT = re.compile(r"bloom-proto-")
"""Ids that stand for several shapes: the row's own counts are used."""

_PROXY = re.compile(r"(?P<model>.+)-proxy-l(?P<layers>\d+)")
"""Id of a model that was cut to its first layers. The row states the parameters of the whole model."""

MOST_ALTERNATIVES = 4
_HEAD_SIZES = (128, 64, 256, 80, 96)
_ROUNDING = 256
_EXPERTS = re.compile(r"MoE (\d+)x(\d+) top-(\d+)")
_WINDOW = re.compile(r"sliding window (\d+)")
_UNGATED = re.compile(r"(bloom|gpt|mpt|opt|pythia|stablelm-alpha|falcon|bert|megatron)")
_EXACT_COUNT = 1e-4
_PUBLISHED_VOCABULARIES = {"internlm-20b": 103168}
"""Vocabularies of models outside the catalog whose rows leave it out: InternEvo,
configs/_base_/models/internlm_20B.py.
"""


BACKBONES: Mapping[str, str] = {
    "qwen3-vl-235b-a22b": "qwen3-235b-a22b",
    "qwen3-vl-30b-a3b": "qwen3-30b-a3b",
    "qwen3-vl-32b": "qwen3-32b",
    "qwen3-omni-30b-a3b": "qwen3-30b-a3b",
    "nemotron-nano-12b-v2-vl": "nemotron-nano-12b-v2",
}
"""Models with towers for pictures or sound before a decoder of the catalog (text_config of their
configurations): towers of 0.5 to 0.7 billion parameters run once for a prompt and are left out.
"""


class _DecoderShape(NamedTuple):
    """A decoder with equal blocks."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    vocabulary: int
    gated: bool
    tied: bool
    experts: tuple[int, int] | None
    window: int | None

    def architecture(self) -> dict[str, Any]:
        norm = {"kind": "normalization", "size": self.hidden, "norm": "rms" if self.gated else "layer"}
        attention: dict[str, Any] = {
            "kind": "attention",
            "hidden_size": self.hidden,
            "query_heads": self.heads,
            "key_value_heads": self.kv_heads,
            "head_size": self.head_size,
        }
        feed: dict[str, Any] = {"kind": "feed_forward", "inner_size": self.inner, "gated": self.gated}
        if self.experts:
            count, chosen = self.experts
            feed = {
                "kind": "mixture_of_experts",
                "expert_count": count,
                "experts_per_token": chosen,
                "expert_inner_size": self.inner,
            }
        if not self.gated:
            attention |= {"query_key_value_bias": True, "output_bias": True}
            feed["bias"] = True
        feed["hidden_size"] = self.hidden
        windows = [{"window_tokens": self.window}, {}] if self.window else [{}]
        blocks = [
            {
                "kind": "block",
                "count": self.layers // len(windows),
                "layers": [norm, attention | window, norm, feed],
            }
            for window in windows
        ]
        head = {"kind": "language_model", "input_size": self.hidden, "output_size": self.vocabulary}
        return {
            "layers": [*blocks, norm],
            "embeddings": {"size": self.hidden, "vocabulary_size": self.vocabulary},
            "heads": [head],
            **({"tied": ["language_model"]} if self.tied else {}),
        }

    def parameters(self) -> int:
        return build_profile(to_planning(Architecture.model_validate(self.architecture()))).parameter_count


def _inner(row: MeasuredRow, hidden: int, *, gated: bool) -> int:
    stated = stated_count(row.text.get("ffn", ""))
    if stated:
        return stated
    return math.ceil(8 * hidden / 3 / _ROUNDING) * _ROUNDING if gated else 4 * hidden


def _heads(row: MeasuredRow, hidden: int) -> int:
    """Returns heads if the source names none: divisible by tensor parallelism, of size 128 if possible."""
    tensor = int(row.layout.get("tensor") or 1)
    counts = [n for n in range(tensor, hidden // 32 + 1, tensor) if hidden % n == 0]
    return min(counts, key=lambda n: abs(hidden / n - _HEAD_SIZES[0]), default=0)


def _head_sizes(hidden: int, heads: int) -> list[int]:
    sizes = [hidden // heads] if hidden % heads == 0 else []
    return sizes + [size for size in _HEAD_SIZES if size not in sizes]


def _vocabularies(row: MeasuredRow) -> list[int]:
    stated = stated_count(row.text.get("vocab", "")) or _PUBLISHED_VOCABULARIES.get(row.model_id)
    return [stated] if stated else [32000, 50304, 128256]


def _shapes(row: MeasuredRow) -> Iterator[_DecoderShape]:
    hidden = stated_count(row.text.get("hidden", ""))
    if not hidden:
        return
    heads = stated_count(row.text.get("heads", "")) or _heads(row, hidden)
    kv_heads = stated_count(row.text.get("kv_heads", "")) or heads
    ffn = row.text.get("ffn", "")
    experts = _EXPERTS.search(ffn)
    if not heads or row.text.get("kv_heads") == "MLA" or (ffn.startswith("MoE") and not experts):
        return
    window = _WINDOW.search(ffn)
    # A stated width of the feed-forward leaves open whether it is gated, which the parameter count decides.
    counted = bool(row.parameter_count and stated_count(ffn))
    gates = (False,) if _UNGATED.match(row.model_id) else (True, False) if counted else (True,)
    choices = itertools.product(gates, _head_sizes(hidden, heads), (False, True), _vocabularies(row))
    for gated, head_size, tied, vocabulary in choices:
        shape = _DecoderShape(
            layers=stated_count(row.text.get("layers", "")) or 0,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_size=head_size,
            inner=int(experts[2]) if experts else _inner(row, hidden, gated=gated),
            vocabulary=vocabulary,
            gated=gated,
            tied=tied or not gated,
            experts=(int(experts[1]), int(experts[3])) if experts else None,
            window=int(window[1]) if window else None,
        )
        if shape.layers:
            yield shape
        elif row.parameter_count:
            one, two = (shape._replace(layers=n).parameters() for n in (1, 2))
            most = (row.parameter_count - one) / (two - one) + 1
            yield from (shape._replace(layers=n) for n in {math.floor(most), math.ceil(most)} if n > 0)


def _rounding(count: int) -> float:
    """Returns half a unit of the last digit that is not zero, the possible rounding of the source."""
    digits = str(count)
    zeros = len(digits) - len(digits.rstrip("0"))
    return 0.5 * 10.0**zeros if zeros else count * _EXACT_COUNT


def _alternatives(row: MeasuredRow) -> list[_DecoderShape]:
    shapes = list(dict.fromkeys(_shapes(row)))
    if not row.parameter_count:
        return shapes[:MOST_ALTERNATIVES]
    count = row.parameter_count
    off = {shape: abs(shape.parameters() - count) for shape in shapes}
    within = [shape for shape in shapes if off[shape] <= _rounding(count)]
    return (within or sorted(shapes, key=lambda shape: off[shape])[:1])[:MOST_ALTERNATIVES]


def _first_layers(architecture: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Returns the architecture with its first ``count`` blocks alone."""
    layers = []
    for layer in architecture["layers"]:
        if layer["kind"] != "block":
            layers.append(layer)
        elif kept := min(layer["count"], count):
            layers.append({**layer, "count": kept})
            count -= kept
    return {**architecture, "layers": layers}


def model_references(row: MeasuredRow, known: Mapping[str, Any]) -> list[ModelReference]:
    """Returns references of the row's model, the likeliest first, or none if its shape is unknown."""
    proxy = _PROXY.fullmatch(row.model_id)
    if proxy and proxy["model"] in known:
        architecture = _first_layers(known[proxy["model"]].architecture, int(proxy["layers"]))
        return [{"source": "architecture", "architecture": architecture}]
    name = row.model_id if row.model_id in known else BACKBONES.get(row.model_id, row.model_id)
    if name in known and not SWEPT.match(name):
        return [{"source": "catalog", "id": name}]
    try:
        shapes = _alternatives(row)
    except (PlanningError, ValueError):
        return []
    return [{"source": "architecture", "architecture": shape.architecture()} for shape in shapes]
