"""Names of matrices in published checkpoints."""

from collections.abc import Iterable, Mapping

_EXPERTS = ("mlp.experts", "block_sparse_moe.experts", "feed_forward.experts", "mixer.experts")
_SHARED = ("mlp.shared_experts", "mlp.shared_expert", "feed_forward.shared_expert", "mixer.shared_experts")
_FORWARD = ("mlp", "feed_forward", "ffn", "mixer")
_LINEAR = ("linear_attn", "self_attn")
_SELF = ("self_attn", "attn", "attention", "self_attention")


def _join_names(parents: Iterable[str], *names: str) -> tuple[str, ...]:
    return tuple(f"{parent}.{name}" for parent in parents for name in names)


MODULE_NAMES: Mapping[str, tuple[str, ...]] = {
    "attention.query": _join_names(_SELF, "q_proj", "qkv_proj", "c_attn", "query_key_value", "wq"),
    "attention.query_down": _join_names(_SELF, "q_proj"),
    "attention.query_up": _join_names(_SELF, "wq"),
    "attention.key": _join_names(_SELF, "k_proj", "qkv_proj", "c_attn", "query_key_value", "wk"),
    "attention.value": _join_names(_SELF, "v_proj", "qkv_proj", "c_attn", "query_key_value", "wv"),
    "attention.output": _join_names(_SELF, "o_proj", "out_proj", "c_proj", "dense", "wo"),
    "attention.index_query": _join_names(_SELF, "indexer.q_proj", "index_q_proj"),
    "attention.index_key": _join_names(_SELF, "indexer.k_proj", "index_k_proj"),
    "latent_attention.query": _join_names(_SELF, "q_proj"),
    "latent_attention.query_down": _join_names(_SELF, "q_a_proj", "fused_qkv_a_proj"),
    "latent_attention.query_up": _join_names(_SELF, "q_b_proj"),
    "latent_attention.key_value_down": _join_names(_SELF, "kv_a_proj_with_mqa", "fused_qkv_a_proj"),
    "latent_attention.key_value_up": _join_names(_SELF, "kv_b_proj"),
    "latent_attention.output": _join_names(_SELF, "o_proj"),
    "attention.gate": _join_names(_SELF, "q_proj", "g_proj", "gate_proj"),
    "latent_attention.gate": _join_names(_SELF, "g_proj", "gate_proj"),
    "latent_attention.index_query": _join_names(_SELF, "indexer.wq_b"),
    "latent_attention.index_key": _join_names(_SELF, "indexer.wk"),
    "latent_attention.index_weight": _join_names(_SELF, "indexer.weights_proj"),
    "compressed_attention.query_down": _join_names(_SELF, "q_a_proj", "wq_a"),
    "compressed_attention.query_up": _join_names(_SELF, "q_b_proj", "wq_b"),
    "compressed_attention.key_value": _join_names(_SELF, "kv_proj", "wkv"),
    "compressed_attention.output_down": _join_names(_SELF, "o_a_proj", "wo_a"),
    "compressed_attention.output_up": _join_names(_SELF, "o_b_proj", "wo_b"),
    "compressed_attention.index_query": _join_names(
        _SELF, "compressor.indexer.q_b_proj", "indexer.q_b_proj", "indexer.wq_b"
    ),
    "linear_attention.query_key_value": _join_names(_LINEAR, "in_proj_qkvz", "in_proj_qkv", "q_proj"),
    "linear_attention.gate": _join_names(_LINEAR, "in_proj_qkvz", "in_proj_z", "g_proj"),
    "linear_attention.step": _join_names(_LINEAR, "b_proj"),
    "linear_attention.forget_down": _join_names(_LINEAR, "f_a_proj"),
    "linear_attention.forget_up": _join_names(_LINEAR, "f_b_proj"),
    "linear_attention.gate_down": _join_names(_LINEAR, "g_a_proj"),
    "linear_attention.gate_up": _join_names(_LINEAR, "g_b_proj"),
    "linear_attention.step_and_decay": _join_names(
        _LINEAR, "in_proj_ba", "in_proj_a", "in_proj_b", "in_proj"
    ),
    "linear_attention.output": _join_names(_LINEAR, "out_proj", "o_proj"),
    "state_space.input": _join_names(("mixer", "mamba"), "in_proj"),
    "state_space.output": _join_names(("mixer", "mamba"), "out_proj"),
    "state_space.state_projection": _join_names(("mixer", "mamba"), "x_proj"),
    "state_space.step": _join_names(("mixer", "mamba"), "dt_proj"),
    "feed_forward.gate": _join_names(_FORWARD, "gate_proj", "gate_up_proj", "w1"),
    "feed_forward.up": _join_names(_FORWARD, "up_proj", "gate_up_proj", "w3", "c_fc", "fc1", "dense_h_to_4h"),
    "feed_forward.down": _join_names(_FORWARD, "down_proj", "w2", "c_proj", "fc2", "dense_4h_to_h"),
    "mixture_of_experts.router": ("mlp.gate", "mlp.router", "block_sparse_moe.gate", "feed_forward.router"),
    "mixture_of_experts.expert_gate": _join_names(_EXPERTS, "0.gate_proj", "gate_up_proj", "0.w1"),
    "mixture_of_experts.expert_up": _join_names(_EXPERTS, "0.up_proj", "gate_up_proj", "0.w3"),
    "mixture_of_experts.expert_down": _join_names(_EXPERTS, "0.down_proj", "down_proj", "0.w2"),
    "mixture_of_experts.shared_router": ("mlp.shared_expert_gate",),
    **{
        f"mixture_of_experts.shared_{name}": _join_names(_SHARED, f"{name}_proj")
        for name in ("gate", "up", "down")
    },
}
"""Names of the matrices of a layer in published checkpoints, below the layer's own name."""
HEAD_NAMES = ("lm_head",)
