"""Weights on one device: of the model, of its draft, companions and adapters."""

from typing import Any, NamedTuple

from service.planning.hardware.storage import WeightFormat
from service.planning.memory.caches import key_value_bytes
from service.planning.memory.stages import stage_share
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.workload import Adapters, InferenceWorkload

UNQUANTISED_FORMAT = NumberFormat.BF16
"""Format of embeddings, norms, routers and heads in quantised checkpoints."""
WIDE_BYTES = ELEMENT_BYTES[UNQUANTISED_FORMAT]


class WeightBytes(NamedTuple):
    """Bytes of weights on one device: of the token table, of routed experts and of all other tensors."""

    table: float
    experts: float
    rest: float

    @property
    def total(self) -> float:
        """Sum of the three."""
        return self.table + self.experts + self.rest


def inference_weight_bytes(profile: ModelProfile, stored: WeightFormat, layout: Parallelism) -> WeightBytes:
    """Returns the weights on one device of the fullest pipeline stage, as they are stored.

    A group wider than the heads of keys and values repeats them. A head that is tied to the table counts with
    the rest: it is read for every token, a table is not.
    """
    sizes, tensor = profile.weights.get_stored_weights(stored), layout.tensor
    if not profile.shapes_known:
        return WeightBytes(0.0, 0.0, sizes.split / (tensor * layout.pipeline))
    share = stage_share(profile, layout)
    tied = sizes.tied / tensor
    table = sizes.table_split / tensor + sizes.table_whole
    head = sizes.head_split / tensor + sizes.head_whole
    if layout.pipeline == 1:
        table -= tied
        head += tied
    elif table > head + tied:
        head = 0.0
    else:
        table, head = 0.0, head + tied
    heads = profile.weights.key_value_heads
    repeated = sizes.key_value * (1.0 / heads - 1.0 / tensor) if 0 < heads < tensor else 0.0
    return WeightBytes(
        table=table,
        experts=sizes.expert / (tensor * layout.expert) * share,
        rest=(sizes.split / tensor + sizes.whole + repeated) * share + head,
    )


def adapter_bytes(profile: ModelProfile, adapters: Adapters, tensor: int) -> float:
    """Returns low-rank pairs on every matrix inside blocks but experts', at 16 bit.

    rank x (inputs + outputs) for each; for a split matrix, the pair's half on the split side is split too.
    """
    elements = 0.0
    for matrix in profile.weights.matrices:
        copies = matrix.total_copies
        match matrix.split.value:
            case "expert":
                continue
            case "column":
                elements += copies * (matrix.inputs + matrix.outputs / tensor)
            case "row":
                elements += copies * (matrix.inputs / tensor + matrix.outputs)
            case _:
                elements += copies * (matrix.inputs + matrix.outputs)
    return adapters.loaded * adapters.rank * elements * WIDE_BYTES


def build_companion_parts(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> dict[str, Any]:
    """Returns draft model, adapters and companions of a workload that has them."""
    parts: dict[str, Any] = {}
    draft = workload.draft
    if draft is not None:
        # The draft lies on the same devices, split alike; it has fewer layers and no pipeline stages.
        alone = Parallelism(tensor=layout.tensor)
        parts["draft_weights"] = inference_weight_bytes(draft.profile, draft.stored, alone).total
        parts["draft_sequence_cache_bytes"] = key_value_bytes(
            draft.profile, workload.context_tokens, workload.cache_format, tensor=layout.tensor
        )
    parts["auxiliary_models"] = sum(
        inference_weight_bytes(other.profile, other.stored, Parallelism(tensor=layout.tensor)).total
        for other in workload.companions
    )
    if workload.adapters is not None:
        size = adapter_bytes(profile, workload.adapters, layout.tensor)
        parts["adapters"] = size * stage_share(profile, layout)
    return parts
