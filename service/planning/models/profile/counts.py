"""Parameters and FLOPs of a whole model, summed over its parts."""

from collections.abc import Iterable

from service.planning.models.architecture import Architecture
from service.planning.models.layers import LayerTensor, MixtureOfExperts, TensorSplit
from service.planning.models.profile.activations import block_activations
from service.planning.models.profile.parts import ModelParts


def count_sizes(counted: Iterable[tuple[LayerTensor, int]]) -> tuple[int, int, int]:
    """Returns the elements of tensors that tensor parallelism splits, of the whole ones, and of experts."""
    split = whole = expert = 0
    for tensor, count in counted:
        if tensor.split is TensorSplit.EXPERT:
            expert += tensor.size * count
        elif tensor.split is TensorSplit.NONE:
            whole += tensor.size * count
        else:
            split += tensor.size * count
    return split, whole, expert


def count_fixed_parameters(parts: ModelParts) -> int:
    """Returns the parameters of embeddings and heads, a tied tensor once."""
    return sum(tensor.size for tensor in (*parts.table_tensors, *parts.own_tensors))


def count_parameters(parts: ModelParts) -> int:
    """Returns the parameters, as PyTorch counts those of the class of the model."""
    return count_fixed_parameters(parts) + sum(tensor.size * n for tensor, n in parts.tensors)


def count_active_parameters(parts: ModelParts) -> int:
    """Returns the parameters that a token uses."""
    active = round(sum(tensor.size * tensor.active * n for tensor, n in parts.tensors))
    return count_fixed_parameters(parts) + active


def count_quantisable_parameters(parts: ModelParts) -> int:
    """Returns the weights of matrices inside blocks, which quantised checkpoints store narrow."""
    return sum(
        tensor.size * n * block.count
        for block in parts.deep
        for tensor, n in block.list_tensors()
        if tensor.multiplied and tensor.name != "router"
    )


def count_expert_blocks(parts: ModelParts) -> int:
    """Returns the blocks with routed experts."""
    return sum(
        block.count
        for block in parts.deep
        if any(isinstance(layer, MixtureOfExperts) for layer in block.layers)
    )


def get_vocabulary_size(parts: ModelParts) -> int:
    """Returns the tokens that the head of a language model tells apart; 0 without one."""
    return parts.language_heads[0].output_size if parts.language_heads else 0


def compute_embedding_mask_bytes(architecture: Architecture) -> float:
    """Returns the bytes per token of the mask of dropout behind the embeddings."""
    table = architecture.embeddings
    return float(table.size) if table and table.dropout else 0.0


def count_matmul_flops(parts: ModelParts) -> float:
    """Returns the forward FLOPs per token of all matrix multiplications with weights."""
    heads = sum(2.0 * tensor.size * tensor.multiplied for tensor, _ in parts.head_tensors)
    return heads + sum(2.0 * tensor.elements * tensor.multiplied_by_text * n for tensor, n in parts.tensors)


def compute_image_expert_share(parts: ModelParts) -> float:
    """Returns the share of the weights of routed experts that positions of images alone multiply."""
    routed = [(tensor, n) for tensor, n in parts.tensors if tensor.split is TensorSplit.EXPERT]
    whole = sum(tensor.size * n for tensor, n in routed)
    return sum(tensor.size * n for tensor, n in routed if tensor.of_images) / max(whole, 1)


def count_head_saved_elements(parts: ModelParts) -> float:
    """Returns the elements per token that the backward pass needs after the last block."""
    heads = parts.language_heads
    own = heads[0].input_size if heads else 0
    return own + sum(block_activations(block).whole_elements * block.count for block in parts.loose)
