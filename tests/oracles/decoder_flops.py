"""FLOPs of every decoder type of the walk, as PyTorch's own counter takes them.

Run by ``make oracles`` after ``decoder_walk.py``, whose configurations it takes: those of causal language
models and of bare models. One sequence of as many tokens as the windows of the walk, so that no window is
shorter. Attention and experts in plain PyTorch: the counter sees matrix multiplications and convolutions, not
products of elements.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from parameter_counts import IGNORED
from torch.utils.flop_counter import FlopCounterMode
from transformers import CONFIG_MAPPING

HERE = Path(__file__).parent
TOKENS = 32
HEADS = ("ForCausalLM", "LMHeadModel", "Model")
CASES_PER_TYPE = 2


LATENT = {
    "axk1",
    "bailing_hybrid",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "glm4_moe_lite",
    "glm_moe_dsa",
}
GROUPED = frozenset(LATENT)
LATENT |= {"kimi_linear", "longcat_flash", "minicpm3", "youtu"}


def runnable(config: dict[str, Any]) -> dict[str, Any]:
    """What a drawn configuration needs so that its class not only builds but runs."""
    changed = {}
    if config["model_type"] in LATENT:
        changed["num_key_value_heads"] = config["num_attention_heads"]
    if config["model_type"] in GROUPED:
        changed |= {"n_group": 1, "topk_group": 1}
    if config["model_type"] == "longcat_flash":
        # A router that was never trained does not take its experts alike, so that none computes nothing.
        changed |= {"head_dim": config["qk_rope_head_dim"], "zero_expert_num": 0}
    if config["model_type"] in ("codegen", "gptj"):
        changed["rotary_dim"] = 4
    if config["model_type"] == "dbrx":
        changed["attn_config"] = {**config["attn_config"], "clip_qkv": 8.0}
    return changed


def counted(config: dict[str, Any]) -> dict[str, int]:
    """FLOPs by operator of one forward pass."""
    fields = {name: value for name, value in config.items() if name not in IGNORED}
    built = CONFIG_MAPPING[config["model_type"]](**fields)
    built._attn_implementation = "eager"
    built._experts_implementation = "eager"
    torch.manual_seed(0)
    model = getattr(transformers, config["architectures"][0])(built).eval()
    tokens = torch.randint(1, config["vocab_size"], (1, TOKENS))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(tokens, use_cache=False)
    operators = counter.get_flop_counts()["Global"]
    return {str(operator).removeprefix("aten."): flops for operator, flops in operators.items()}


def main() -> None:
    """Count and write."""
    transformers.logging.set_verbosity_error()
    cases, of_type = {}, {}
    for case in json.loads((HERE / "decoder_walk.json").read_text())["cases"]:
        changed = runnable(case["config"])
        config = case["config"] | changed
        done = of_type.setdefault(config["model_type"], [])
        if len(done) == CASES_PER_TYPE or not config["architectures"][0].endswith(HEADS):
            continue
        try:
            cases[case["name"]] = {"changed": changed, "operators": counted(config)}
        except Exception as error:  # noqa: BLE001  # whatever a class makes of a drawn configuration
            sys.stdout.write(f"{case['name']}: {type(error).__name__}: {str(error)[:160]}\n")
            continue
        done.append(case["name"])
    document = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tokens": TOKENS,
        "cases": cases,
    }
    (HERE / "decoder_flops.json").write_text(json.dumps(document, indent=1) + "\n")
    bare = sorted(name for name, done in of_type.items() if not done)
    sys.stdout.write(f"{len(cases)} configurations of {len(of_type) - len(bare)} types; none of {bare}\n")


if __name__ == "__main__":
    main()
