"""Memory habits of training frameworks, which a recipe alone does not determine.

Sources: the table of bytes per parameter in Megatron Core's page on the distributed optimizer (bf16
parameters with FP32 gradients 18, fp16 ones 20); the BF16 optimizer of DeepSpeed as BLOOM trained with it
(an FP32 gradient beside the 16-bit one); Zhao et al. 2023 for FSDP, whose shards stay in FP32 and are
gathered in the compute format; PyTorch's autocast, which multiplies from cached 16-bit copies; He and Yu
2023 for selective recomputation by operator in PyTorch. LitGPT: its modules of October 2023 (LoRA,
adapters, RMSNorm), autograd's formula of ``index_copy``, ``MatMul4Bit`` of bitsandbytes 0.41, which saves
inputs of frozen weights and casts what it unpacks, and PyTorch's page on FSDP (``no_sync`` keeps whole
gradients; flat tensors with frozen and trained weights have gradients for both). InternEvo: the step of its
FSDP and hybrid ZeRO optimizers.
"""

from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from service.planning.parallelism import Sharding
from service.planning.precision import NumberFormat, TrainingRecipe


class Framework(StrEnum):
    """Frameworks with distinct memory; ``generic`` holds the tensors of the recipe only."""

    GENERIC = "generic"
    MEGATRON_LM = "megatron_lm"
    MEGATRON_CORE = "megatron_core"
    MEGATRON_DEEPSPEED = "megatron_deepspeed"
    DEEPSPEED = "deepspeed"
    DDP = "ddp"
    FSDP = "fsdp"
    TORCHTITAN = "torchtitan"
    TORCHTUNE = "torchtune"
    LITGPT = "litgpt"
    INTERNEVO = "internevo"
    TRANSFORMERS = "transformers"
    MAXTEXT = "maxtext"
    NEURONX_DISTRIBUTED = "neuronx_distributed"


LAUNCHES_EACH_EXPERT = {each: each in (Framework.MEGATRON_CORE, Framework.TRANSFORMERS) for each in Framework}
"""Frameworks that multiply with the matrix of each expert in a kernel of its own.

These are the grouped layers of Transformer Engine, and the loop of Transformers.
"""


class RecipeState(StrEnum):
    """Storage of the state of a 16-bit recipe."""

    NARROW = "narrow"
    MEGATRON = "megatron"
    ACCUMULATED = "accumulated"
    WIDE = "wide"


class FrameworkTraits(NamedTuple):
    """Handling of state and activations by a framework.

    ``eager_norms`` and ``eager_scores`` save FP32 copies that fused kernels do not; ``fused_gates`` computes
    the product of a gated feed-forward in one kernel; ``recomputes_attention`` means that selective
    recomputation is that of the attention core (Korthikanti et al. 2022, section 5), else that of every
    second matrix multiplication; ``scales_inputs`` means that FP8 inputs are saved. The optimizer's step
    takes ``step_copies`` of a state and ``step_gradient_bytes`` per parameter whose state is held.
    ``keeps_outputs`` means that a stage holds its sent output until the backward pass.

    Of adaptations: ``fused_projection`` gives query, key and value by one multiplication, ``wide_norms``
    multiplies a norm's weight in FP32 too, ``low_rank_dropout`` drops out inputs of low-rank matrices,
    ``gated_prefixes`` attends to virtual tokens separately, ``keeps_packed_inputs`` saves inputs of packed
    weights, ``packs_head`` packs the head too, ``unpacked_bytes`` is the size of a packed weight at work.
    ``sums_unsharded`` means that gradients of micro-batches are summed before they are sharded, frozen
    weights in the same flat tensors included, ``frees_gradients`` that none are held between steps.

    ``loss_parallel_bytes`` are additional bytes of a logit where tensor parallelism divides the vocabulary.
    ``gathers_inputs`` means that the whole input of a divided matrix is saved, where Megatron gathers it
    again; ``keeps_all_outputs`` that a stage holds its sent outputs, and memory for their gradients, for all
    micro-batches of a step.

    ``eager_context`` is a context with all kernels loaded at once, ``own_groups`` means that a second engine
    creates communicators in addition to those of the degrees.
    """

    state: RecipeState = RecipeState.NARROW
    eager_norms: bool = False
    eager_scores: bool = False
    fused_gates: bool = False
    recomputes_attention: bool = False
    scales_inputs: bool = True
    step_copies: float = 0.0
    step_gradient_bytes: float = 0.0
    gradient_buckets: bool = False
    bucket_elements: float = 0.0
    logit_bytes: float = 8.0
    keeps_outputs: bool = False
    fused_projection: bool = False
    wide_norms: bool = False
    low_rank_dropout: bool = False
    gated_prefixes: bool = False
    keeps_packed_inputs: bool = True
    packs_head: bool = False
    unpacked_bytes: float = 2.0
    sums_unsharded: bool = False
    frees_gradients: bool = False
    loss_parallel_bytes: float = 0.0
    gathers_inputs: bool = False
    keeps_all_outputs: bool = False
    eager_context: bool = False
    own_groups: bool = False


_PYTORCH = FrameworkTraits(
    state=RecipeState.WIDE, scales_inputs=False, step_copies=1.0, logit_bytes=10.0, frees_gradients=True
)
_ZERO_STEP_BYTES = 6.0

TRAITS = {
    Framework.GENERIC: FrameworkTraits(),
    Framework.MEGATRON_LM: FrameworkTraits(
        state=RecipeState.MEGATRON, fused_gates=True, recomputes_attention=True, logit_bytes=4.0
    ),
    Framework.MEGATRON_CORE: FrameworkTraits(fused_gates=True, recomputes_attention=True, logit_bytes=4.0),
    Framework.MEGATRON_DEEPSPEED: FrameworkTraits(
        state=RecipeState.ACCUMULATED,
        fused_gates=True,
        recomputes_attention=True,
        logit_bytes=4.0,
        step_gradient_bytes=_ZERO_STEP_BYTES,
        bucket_elements=1e9,
        keeps_outputs=True,
        eager_context=True,
        own_groups=True,
    ),
    Framework.DEEPSPEED: FrameworkTraits(
        eager_norms=True,
        eager_scores=True,
        step_gradient_bytes=_ZERO_STEP_BYTES,
        bucket_elements=1e9,
        logit_bytes=12.0,
    ),
    Framework.DDP: _PYTORCH._replace(gradient_buckets=True),
    Framework.FSDP: _PYTORCH,
    Framework.TORCHTITAN: _PYTORCH._replace(
        loss_parallel_bytes=4.0, gathers_inputs=True, keeps_all_outputs=True
    ),
    Framework.TORCHTUNE: _PYTORCH._replace(eager_norms=True, step_copies=0.0, keeps_packed_inputs=False),
    Framework.LITGPT: _PYTORCH._replace(
        eager_norms=True,
        fused_projection=True,
        wide_norms=True,
        low_rank_dropout=True,
        gated_prefixes=True,
        packs_head=True,
        unpacked_bytes=4.0,
        sums_unsharded=True,
    ),
    Framework.INTERNEVO: FrameworkTraits(step_copies=2.0, step_gradient_bytes=4.0),
    Framework.TRANSFORMERS: _PYTORCH._replace(
        eager_norms=True, eager_scores=True, gradient_buckets=True, logit_bytes=12.0
    ),
    Framework.MAXTEXT: FrameworkTraits(state=RecipeState.WIDE, fused_gates=True, scales_inputs=False),
    Framework.NEURONX_DISTRIBUTED: FrameworkTraits(fused_gates=True, recomputes_attention=True),
}
"""Logits: Megatron exponentiates and differentiates FP32 logits in place (4 bytes beside the narrow ones);
the cross-entropy of PyTorch holds log-probabilities, their gradient and that of the logits (12), beside the
narrow logits only where the caller keeps those; divided over the vocabulary its backward pass holds the
exponentials as well (4 more). DeepSpeed's ZeRO flattens 16-bit gradients and widens them
for its step (2 + 4); its buckets are 5e8 elements to reduce and 5e8 to gather by default. PyTorch's
Adam takes the root of the second moment as a copy; fused, as torchtune does it, it does not. Before
PyTorch 2.1 it takes a second one for the denominator, and InternEvo widens the 16-bit gradients beside them.
MaxText keeps FP32 weights (``weight_dtype``) and computes in ``dtype``; its blocks are compiled. NeuronX
Distributed follows Megatron-LM: its ZeRO-1 optimizer keeps FP32 master weights, and its selective
checkpointing recomputes the attention core.
"""


class FrameworkLayouts(NamedTuple):
    """Layouts that a framework can run. A replica alone is never sharded."""

    shardings: tuple[Sharding, ...]
    tensor: bool = False
    pipeline: bool = False
    interleaved: bool = False
    overlaps_experts: bool = False
    """True if tokens can travel to their experts while another micro-batch computes."""


_STATES_ONLY = (Sharding.NONE, Sharding.ZERO_1)
_ALL_STATE = (Sharding.ZERO_3,)
LAYOUTS = {
    Framework.GENERIC: FrameworkLayouts(
        (*_STATES_ONLY, *_ALL_STATE), tensor=True, pipeline=True, interleaved=True, overlaps_experts=True
    ),
    Framework.MEGATRON_LM: FrameworkLayouts(_STATES_ONLY, tensor=True, pipeline=True, interleaved=True),
    Framework.MEGATRON_CORE: FrameworkLayouts(
        _STATES_ONLY, tensor=True, pipeline=True, interleaved=True, overlaps_experts=True
    ),
    Framework.MEGATRON_DEEPSPEED: FrameworkLayouts(_STATES_ONLY, tensor=True, pipeline=True),
    Framework.DEEPSPEED: FrameworkLayouts((Sharding.ZERO_1, Sharding.ZERO_2, Sharding.ZERO_3)),
    Framework.DDP: FrameworkLayouts((Sharding.NONE,)),
    Framework.FSDP: FrameworkLayouts(_ALL_STATE),
    Framework.TORCHTITAN: FrameworkLayouts(_ALL_STATE, tensor=True, pipeline=True, interleaved=True),
    Framework.TORCHTUNE: FrameworkLayouts(_ALL_STATE, tensor=True),
    Framework.LITGPT: FrameworkLayouts(_ALL_STATE),
    Framework.INTERNEVO: FrameworkLayouts(_STATES_ONLY, tensor=True, pipeline=True, interleaved=True),
    Framework.TRANSFORMERS: FrameworkLayouts((Sharding.NONE, *_ALL_STATE)),
    Framework.MAXTEXT: FrameworkLayouts(_ALL_STATE, tensor=True, pipeline=True, interleaved=True),
    Framework.NEURONX_DISTRIBUTED: FrameworkLayouts(
        _STATES_ONLY, tensor=True, pipeline=True, interleaved=True
    ),
}
"""The documentation of each framework: the distributed optimizer of Megatron Core (ZeRO 1) and its
``overlap_moe_expert_parallel_comm``; the stages of DeepSpeed without its pipeline engine, which takes ZeRO 1
only; DistributedDataParallel, which keeps all state on every device; FSDP, which shards all of it;
``parallel_dims`` of torchtitan; the recipes of torchtune; ``fsdp`` and DDP of the Trainer of transformers;
``ici_fsdp_parallelism``, ``ici_tensor_parallelism`` and ``ici_pipeline_parallelism`` of MaxText, whose
pipelines are circular; tensor and pipeline parallelism and the ZeRO-1 optimizer of NeuronX Distributed, whose
pipelines have ``virtual_pipeline_size``."""


def resolve_recipe(recipe: TrainingRecipe, framework: Framework) -> TrainingRecipe:
    """Returns the recipe as ``framework`` stores it; unchanged without master weights."""
    if recipe.master is None:
        return recipe
    wide = NumberFormat.FP32
    match TRAITS[framework].state:
        case RecipeState.MEGATRON if recipe.weights is NumberFormat.FP16:
            return replace(recipe, main_gradients=wide)
        case RecipeState.MEGATRON:
            return replace(recipe, gradients=wide)
        case RecipeState.ACCUMULATED if recipe.weights is not NumberFormat.FP16:
            return replace(recipe, accumulated_gradients=wide)
        case RecipeState.WIDE:
            return replace(recipe, weights=wide, gradients=wide, master=None, casts=True)
        case _:
            return recipe
