"""Bytes that PyTorch holds of one sample of published models, counted under fake tensors in FP32.

Run by ``make oracles`` behind ``tower_flops.py``, whose cases it takes; writes ``tower_memory.json``. Of a
forward pass in training mode: the storages that autograd saves, each counted once, parameters and buffers not
at all, and the largest sum of storages alive on the way through backward, less that of gradients of
parameters. Of a forward pass without gradients: the largest sum of storages alive. Fake tensors have shapes
and no values; in FP32 no copy is made by a change of format, so bytes over four are elements.
"""

import json
import sys
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import diffusers
import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from tower_counts import IGNORED
from tower_flops import CASES, TEXT, Entering
from transformers import CONFIG_MAPPING

HERE = Path(__file__).parent
EAGER = {"resnet", "convnext", "swin"}
"""Without a choice of attention."""


class Live(TorchDispatchMode):
    """Bytes of the storages that are alive, and the most of them at a time."""

    def __init__(self, known: set[int]) -> None:
        """Storages of ``known`` are not counted."""
        super().__init__()
        self.known, self.bytes, self.most, self.where = known, 0, 0, ""
        self.held: dict[int, weakref.ref] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run, then count what came out."""
        found = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(found):
            if isinstance(leaf, torch.Tensor):
                self.add(leaf)
        if self.bytes > self.most:
            self.most, self.where = self.bytes, str(function)
        return found

    def add(self, tensor: torch.Tensor) -> None:
        """Count a storage until it is freed."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.known or key in self.held:
            return
        size = storage.nbytes()

        def gone(_: object) -> None:
            self.bytes -= size
            del self.held[key]

        self.held[key] = weakref.ref(storage, gone)
        self.bytes += size


def id_of(tensor: torch.Tensor) -> int:
    """What tells one storage from another."""
    return tensor.untyped_storage()._cdata


class Recommender(torch.nn.Module):
    """DLRM as facebookresearch/dlrm computes it (Naumov et al. 2019): dot interactions."""

    def __init__(self, config: dict) -> None:
        """From the options of its command line."""
        super().__init__()
        rows = [int(count) for count in config["arch_embedding_size"].split("-")]
        width = config["arch_sparse_feature_size"]
        bottom, top = (
            [int(size) for size in config[name].split("-")] for name in ("arch_mlp_bot", "arch_mlp_top")
        )
        pairs = len(rows) * (len(rows) + 1) // 2
        self.tables = torch.nn.ModuleList([torch.nn.EmbeddingBag(count, width, mode="sum") for count in rows])
        self.bottom, self.top = self.layers(bottom), self.layers([width + pairs, *top])

    @staticmethod
    def layers(sizes: list[int]) -> torch.nn.Sequential:
        """Matrices, each with an activation behind it."""
        made = []
        for columns, width in pairwise(sizes):
            made += [torch.nn.Linear(columns, width), torch.nn.ReLU()]
        return torch.nn.Sequential(*made)

    def forward(self, dense: torch.Tensor, sparse: list, offsets: list) -> dict:
        """A score for each sample."""
        first = self.bottom(dense)
        found = [table(i, o) for table, i, o in zip(self.tables, sparse, offsets, strict=True)]
        vectors = torch.cat([first, *found], dim=1).view(dense.shape[0], -1, first.shape[1])
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        rows, columns = torch.tril_indices(vectors.shape[1], vectors.shape[1], offset=-1)
        return {"scores": self.top(torch.cat([first, products[:, rows, columns]], dim=1))}


def without_dropout(config: dict) -> dict:
    """The configuration with every dropout at 0: the processor keeps other masks than a GPU does."""
    return {
        name: without_dropout(value)
        if isinstance(value, dict)
        else (0.0 if ("dropout" in name or name.endswith("_pdrop")) and isinstance(value, float) else value)
        for name, value in config.items()
    }


DROPOUTS = (
    "dropout",
    "attention_dropout",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout_rate",
)


def build(config: dict, attention: str) -> torch.nn.Module:
    """The class of a configuration."""
    if config.get("model_type") == "dlrm":
        return Recommender(config)
    if "_class_name" in config:
        given = {name: value for name, value in config.items() if not name.startswith("_")}
        return getattr(diffusers, config["_class_name"]).from_config(given)
    given = {name: value for name, value in config.items() if name not in IGNORED}
    chosen = "eager" if config["model_type"] in EAGER else attention
    built = CONFIG_MAPPING[config["model_type"]](**given, attn_implementation=chosen)
    for name in DROPOUTS:
        if isinstance(getattr(built, name, None), float):
            setattr(built, name, 0.0)
    return getattr(transformers, config["architectures"][0])(built)


def tensors(shapes: dict, kind: torch.dtype = torch.float32) -> dict:
    """Tensors of these shapes, nested as they are."""

    def made(shape: object) -> object:
        if isinstance(shape, dict):
            return tensors(shape, kind)
        if isinstance(shape, list):
            return [torch.zeros(each, dtype=kind) for each in shape]
        return torch.zeros(shape, dtype=kind)

    return {name: made(shape) for name, shape in shapes.items()}


def first_of(answer: object) -> torch.Tensor:
    """What a model answers with; all of a pair's vectors."""
    values = dict(answer).values()
    return next(leaf for leaf in tree_leaves(tuple(values)) if isinstance(leaf, torch.Tensor))


def placeholders(
    _: object, input_ids: torch.Tensor, inputs_embeds: torch.Tensor, **__: object
) -> torch.Tensor:
    """Where images stand in a text, without looking at values."""
    return (input_ids == 0).unsqueeze(-1).expand_as(inputs_embeds)


def made_fake(model: torch.nn.Module) -> None:
    """Give a model of the meta device tensors of the processor, under a mode that makes them fake ones."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    model._apply(lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype))
    if isinstance(model, transformers.LlavaForConditionalGeneration):
        type(model.model).get_placeholder_mask = placeholders


def measure(config: dict, case: Entering, attention: str = "sdpa", *, detail: bool = False) -> dict:
    """Saved by autograd, alive in a step, alive in a forward pass without gradients."""
    sizes: dict[int, int] = {}
    names: dict[int, str] = {}
    stack: list[str] = []
    config = without_dropout(config)
    with torch.device("meta"):
        model = build(config, attention).train()
    with FakeTensorMode():
        made_fake(model)
        own = {id_of(tensor) for tensor in (*model.parameters(), *model.buffers())}
        inputs = {**tensors(case.shapes), **tensors(case.tokens, torch.long)}
        alive = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            alive.append(tensor)
            key = id_of(tensor)
            sizes[key] = tensor.untyped_storage().nbytes()
            shape = f"{tuple(tensor.shape)} {str(tensor.dtype)[6:]}"
            names.setdefault(key, f"{stack[-1] if stack else ''} {shape}")
            return tensor

        if detail:
            for name, module in model.named_modules():
                text = f"{name}:{type(module).__name__}"
                module.register_forward_pre_hook(lambda *_, text=text: stack.append(text))
                module.register_forward_hook(lambda *_: stack.pop() and None)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            answer = model(**inputs)
        saved = {key: size for key, size in sizes.items() if key not in own}
        row = {"saved_bytes": sum(saved.values())}
        if detail:
            row["detail"] = [(names[key], size) for key, size in saved.items()]
        del answer
        alive.clear()
        for parameter in (parameter for parameter in model.parameters() if parameter.requires_grad):
            parameter.register_post_accumulate_grad_hook(lambda tensor: setattr(tensor, "grad", None))
        with Live(own) as live:
            first_of(model(**inputs)).sum().backward()
        row["step_live_bytes"] = live.most
        if detail:
            row["step_where"] = live.where
        for part in (
            getattr(model, "config", None),
            getattr(getattr(model, "config", None), "text_config", None),
        ):
            if isinstance(part, transformers.PretrainedConfig):
                part.use_cache = False
        model.eval()
        with Live(own) as live, torch.no_grad():
            model(**inputs)
        row["forward_live_bytes"] = live.most
        if detail:
            row["forward_where"] = live.where
    return row


BERT = {
    "architectures": ["BertForMaskedLM"],
    "model_type": "bert",
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "vocab_size": 30522,
}
MORE = {
    "clip-vit-large-patch14": Entering(
        {"pixel_values": (1, 3, 224, 224)}, {"height": 224}, {"input_ids": (1, 77)}
    ),
    "llava-1.5-7b": Entering(
        {"pixel_values": (1, 3, 336, 336)}, {"tokens": 700, "height": 336}, {"input_ids": (1, 700)}
    ),
    "flan-t5-base": Entering(
        {}, {"tokens": 114, "source_tokens": 512}, {"input_ids": (1, 512), "decoder_input_ids": (1, 114)}
    ),
    "dlrm-criteo-1tb": Entering({"dense": (64, 13)}, {}, {"sparse": [(64,)] * 26, "offsets": [(64,)] * 26}),
}
SAMPLES = {"dlrm-criteo-1tb": 64}
"""Samples that enter at a time where they are more than one."""
EAGERLY = ("vit-base-patch16-224", "t5-small")
"""Cases whose attention is measured written out too."""
INLINE = {"bert-base": (BERT, TEXT)}


def cases() -> Iterator[tuple[str, dict, Entering]]:
    """Name, configuration and sample."""
    for name, case in {**CASES, **MORE}.items():
        yield name, json.loads((HERE / "tower_configs" / f"{name}.json").read_text()), case
    for name, (config, case) in INLINE.items():
        yield name, config, case


def show(name: str, attention: str) -> None:
    """Every tensor that is saved for one case."""
    config, case = next((config, case) for known, config, case in cases() if known == name)
    row = measure(config, case, attention, detail=True)
    for text, size in row.pop("detail"):
        print(size, text)
    print(row)


def main() -> None:
    """Measure and write."""
    rows = []
    for name, config, case in cases():
        for attention in ("sdpa", "eager") if name in EAGERLY or name in INLINE else ("sdpa",):
            row = {"name": name, "attention": attention, "sample": case.sample}
            if name in INLINE:
                row["config"] = config
            row["samples"] = SAMPLES.get(name, 1)
            rows.append(row | measure(config, case, attention))
    document = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "diffusers": diffusers.__version__,
        "cases": rows,
    }
    (HERE / "tower_memory.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    diffusers.logging.set_verbosity_error()
    if len(sys.argv) > 1:
        show(sys.argv[1], *(sys.argv[2:] or ["sdpa"]))
    else:
        main()
