"""Storage of one matrix: packed elements, scales and zero points; and the matrices that a format packs."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

from service.planning.precision import NumberFormat


class MatrixScheme(NamedTuple):
    """Storage of a matrix with ``inputs`` rows and ``outputs`` columns.

    A scale (and a zero point) belongs to ``group_inputs`` x ``group_outputs`` elements; 0 stands for the
    whole side. ``input_bytes`` are stored for every input (the order of activations in GPTQ),
    ``matrix_bytes`` once. ``padded_inputs`` is the multiple that a kernel pads the packed inputs to.
    """

    element_bits: float
    scale_bits: float = 0.0
    zero_bits: float = 0.0
    group_inputs: int = 0
    group_outputs: int = 1
    input_bytes: float = 0.0
    matrix_bytes: float = 0.0
    padded_inputs: int = 1

    def compute_bytes(self, inputs: int, outputs: int) -> float:
        """Returns the bytes of one matrix."""
        packed = -(-inputs // self.padded_inputs) * self.padded_inputs
        groups = math.ceil(inputs / (self.group_inputs or inputs)) * math.ceil(
            outputs / (self.group_outputs or outputs)
        )
        bits = packed * outputs * self.element_bits + groups * (self.scale_bits + self.zero_bits)
        return bits / 8.0 + inputs * self.input_bytes + self.matrix_bytes


class MatrixPath(NamedTuple):
    """Position of a matrix: its module, such as ``attention.query``, and its layer of ``depth``."""

    module: str
    layer: int
    depth: int
    inputs: int


class ModelFacts(NamedTuple):
    """Properties of a model that mixed formats depend on."""

    query_heads_per_key_value_head: float
    expert_count: int
    depth: int
    tied: bool


SchemeOf = Callable[[MatrixPath, ModelFacts], MatrixScheme]


@dataclass(frozen=True, slots=True, eq=False)
class WeightFormat:
    """A way to store the weights of a model.

    ``scheme_of`` gives the scheme of each matrix inside blocks. Where it depends on the layer, ``layer_key``
    maps a layer to a key: layers with the same key are stored alike. ``head`` and ``table`` give the schemes
    of the language-model head and of the token table, ``lookups`` that of other tables where it differs from
    the token table's, ``wide_bits`` the width of tensors that are no matrices. Formats are compared by
    identity.
    """

    name: str
    compute: NumberFormat
    mean_bits: float
    """Bits per parameter of a large model, for models of unknown shapes."""
    scheme_of: SchemeOf
    head: Callable[[ModelFacts, int], MatrixScheme]
    table: Callable[[ModelFacts, int], MatrixScheme]
    lookups: MatrixScheme | None = None
    wide_bits: float = 16.0
    layer_key: Callable[[int, ModelFacts], Hashable] | None = None
    source: str = ""
    copies_tied_head: bool = False
    """True if the tool that packs it writes a head that is tied to the table as a separate tensor."""
    cache: NumberFormat | None = None
    """Format of the KV cache that the checkpoint states, with scales for it; None if it states none."""
