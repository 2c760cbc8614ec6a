"""Counts, with PyTorch, the bytes that autograd saves in one block of published model classes, and the bytes
that optimizers keep; writes them beside this file. Run by ``make oracles`` in an environment of its own.

Blocks are built by transformers under fake tensors in bf16, which compute shapes and no values. Bytes of a
block are those of a model of two blocks less those of one, each storage counted once, parameters and
buffers not at all: what stands outside blocks and tables that all blocks share cancel.
"""

import json
from pathlib import Path

import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode

HERE = Path(__file__).parent
BATCH, LENGTH = 2, 256

DECODER = {
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
}
CONFIGS = {
    "llama": (transformers.LlamaConfig, DECODER),
    "llama-multi-head": (transformers.LlamaConfig, {**DECODER, "num_key_value_heads": 8}),
    "mistral": (transformers.MistralConfig, {**DECODER, "head_dim": 64, "sliding_window": None}),
    "qwen2": (transformers.Qwen2Config, DECODER),
    "qwen3": (transformers.Qwen3Config, {**DECODER, "head_dim": 64}),
    "gemma": (transformers.GemmaConfig, {**DECODER, "head_dim": 64, "hidden_activation": "gelu"}),
    "phi3": (transformers.Phi3Config, {**DECODER, "pad_token_id": 0}),
    "olmo2": (transformers.Olmo2Config, DECODER),
    "gpt2": (
        transformers.GPT2Config,
        {
            "n_embd": 512,
            "n_head": 8,
            "vocab_size": 1000,
            "n_positions": LENGTH,
            "activation_function": "gelu",
            "attn_pdrop": 0.0,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
        },
    ),
    "mixtral": (
        transformers.MixtralConfig,
        {**DECODER, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None},
    ),
}


def saved_bytes(config: transformers.PretrainedConfig, attention: str) -> int:
    """Bytes of all storages that autograd saves in a forward pass, parameters left out."""
    torch.set_default_dtype(torch.bfloat16)
    kept, sizes = [], {}
    with FakeTensorMode():
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
        model.train()
        own = {id_of(tensor) for tensor in (*model.parameters(), *model.buffers())}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            kept.append(tensor)
            sizes[id_of(tensor)] = tensor.untyped_storage().nbytes()
            return tensor

        tokens = torch.zeros(BATCH, LENGTH, dtype=torch.long)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model(input_ids=tokens, use_cache=False)
    torch.set_default_dtype(torch.float32)
    return sum(size for key, size in sizes.items() if key not in own)


def id_of(tensor: torch.Tensor) -> int:
    """What tells one storage from another."""
    return tensor.untyped_storage()._cdata


def activations() -> list[dict[str, object]]:
    """One entry for each class and attention implementation."""
    rows = []
    for name, (kind, shapes) in CONFIGS.items():
        for attention in ("sdpa", "eager"):
            one, two = (
                saved_bytes(kind(**shapes, **{key: layers}), attention)
                for layers in (1, 2)
                for key in ["n_layer" if name == "gpt2" else "num_hidden_layers"]
            )
            config = kind(**shapes).to_dict() | {"architectures": [architecture_of(kind)]}
            config["n_layer" if name == "gpt2" else "num_hidden_layers"] = 1
            config = {key: value for key, value in config.items() if plain(value)}
            rows.append(
                {
                    "name": name,
                    "attention": attention,
                    "batch": BATCH,
                    "sequence_length": LENGTH,
                    "block_bytes": two - one,
                    "config": config,
                }
            )
    return rows


def architecture_of(kind: type) -> str:
    """Name of the class for language modelling."""
    with torch.device("meta"):
        return type(transformers.AutoModelForCausalLM.from_config(kind())).__name__


def plain(value: object) -> bool:
    """Whether a value of a configuration is worth keeping."""
    return value not in (None, {}, [])


SHAPES = {"matrix": (512, 2048), "vector": (512,), "table": (1000, 512), "experts": (4, 64, 96)}
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {}),
    "momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "rmsprop": (torch.optim.RMSprop, {}),
    "adagrad": (torch.optim.Adagrad, {}),
    "adam": (torch.optim.Adam, {}),
    "adamw": (torch.optim.AdamW, {}),
    "adafactor": (torch.optim.Adafactor, {}),
    "muon": (torch.optim.Muon, {}),
}


def optimizer_states() -> list[dict[str, object]]:
    """Bytes that each optimizer keeps for a tensor of each shape after one step; counters left out."""
    rows = []
    for name, (kind, options) in OPTIMIZERS.items():
        for tensor, shape in SHAPES.items():
            if name == "muon" and len(shape) != 2:
                continue
            parameter = torch.nn.Parameter(torch.zeros(shape))
            optimizer = kind([parameter], lr=0.1, **options)
            parameter.grad = torch.ones(shape)
            optimizer.step()
            states = [
                state
                for state in optimizer.state[parameter].values()
                if isinstance(state, torch.Tensor) and state.numel() > 1
            ]
            size = sum(state.numel() * state.element_size() for state in states)
            rows.append({"optimizer": name, "tensor": tensor, "shape": shape, "bytes": size})
    return rows


if __name__ == "__main__":
    found = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "activations": activations(),
        "optimizers": optimizer_states(),
    }
    (HERE / "saved_activations.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(found['activations'])} blocks, {len(found['optimizers'])} optimizer states")
