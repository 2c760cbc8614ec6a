"""FLOPs of one sample's forward pass as PyTorch's counter takes them, on the meta device.

Run by ``make oracles`` beside ``tower_counts.py``; writes ``tower_flops.json``. Each case is a file of
``tower_configs``, what enters the model, and the same sample in words of
``service.planning.models.positions``.
"""

import json
from pathlib import Path
from typing import NamedTuple

import diffusers
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode
from tower_counts import IGNORED
from transformers import CONFIG_MAPPING

HERE = Path(__file__).parent
TOKENS = torch.long


class Entering(NamedTuple):
    """Shapes of the inputs by name, those of tokens, and the sample that they are."""

    shapes: dict
    sample: dict
    tokens: dict = {}


IMAGE = Entering({"pixel_values": (1, 3, 224, 224)}, {"height": 224, "width": 224})
SEQUENCES = Entering(
    {}, {"tokens": 20, "source_tokens": 70}, {"input_ids": (1, 70), "decoder_input_ids": (1, 20)}
)
TEXT = Entering({}, {"tokens": 100}, {"input_ids": (1, 100)})


def diffusion(
    latent: tuple, text: tuple, sample: dict, name: str = "hidden_states", **more: tuple
) -> Entering:
    """A noisy latent, a time and a text."""
    shapes = {name: latent, "encoder_hidden_states": text, "timestep": (1,), **more}
    return Entering(shapes, {**sample, "source_tokens": text[1]})


CASES = {
    "vit-base-patch16-224": IMAGE,
    "dinov2-base": Entering({"pixel_values": (1, 3, 518, 518)}, {"height": 518}),
    "resnet-50": IMAGE,
    "resnet-18": IMAGE,
    "convnext-tiny": IMAGE,
    "swin-base": IMAGE,
    "clip-text-large": Entering({}, {}, {"input_ids": (1, 77)}),
    "siglip-so400m-patch14-384": Entering({"pixel_values": (1, 3, 384, 384)}, {}, {"input_ids": (1, 64)}),
    "roberta-base": TEXT,
    "albert-base": TEXT,
    "t5-small": SEQUENCES,
    "bart-base": SEQUENCES,
    "whisper-tiny": Entering(
        {"input_features": (1, 80, 3000)}, {"tokens": 20}, {"decoder_input_ids": (1, 20)}
    ),
    "stable-diffusion-1.5-unet": diffusion((1, 4, 64, 64), (1, 77, 768), {"height": 512}, "sample"),
    "sdxl-unet": diffusion(
        (1, 4, 128, 128),
        (1, 77, 2048),
        {"height": 1024},
        "sample",
        added_cond_kwargs={"text_embeds": (1, 1280), "time_ids": (1, 6)},
    ),
    "stable-diffusion-vae": Entering({"sample": (1, 3, 256, 256)}, {"height": 256}),
    "dit-xl-2": Entering({"hidden_states": (1, 4, 32, 32), "timestep": (1,)}, {}, {"class_labels": (1,)}),
    "pixart-alpha-xl-2": diffusion(
        (1, 4, 128, 128),
        (1, 120, 4096),
        {},
        added_cond_kwargs={"resolution": (1, 2), "aspect_ratio": (1, 1)},
    ),
    "stable-diffusion-3-medium": diffusion(
        (1, 16, 128, 128), (1, 333, 4096), {}, pooled_projections=(1, 2048)
    ),
    "flux.1-dev": diffusion(
        (1, 4096, 64),
        (1, 512, 4096),
        {"height": 1024},
        pooled_projections=(1, 768),
        img_ids=(4096, 3),
        txt_ids=(512, 3),
        guidance=(1,),
    ),
    "flux.2-dev": diffusion(
        (1, 4096, 128),
        (1, 512, 15360),
        {"height": 1024},
        img_ids=(4096, 4),
        txt_ids=(512, 4),
        guidance=(1,),
    ),
    "wan-2.1-1.3b": diffusion(
        (1, 16, 21, 60, 104), (1, 512, 4096), {"height": 480, "width": 832, "frames": 81}
    ),
    "cogvideox-2b": diffusion(
        (1, 13, 16, 60, 90), (1, 226, 4096), {"height": 480, "width": 720, "frames": 49}
    ),
    "hunyuan-video": diffusion(
        (1, 16, 3, 60, 90),
        (1, 256, 4096),
        {"height": 480, "width": 720, "frames": 9},
        encoder_attention_mask=(1, 256),
        pooled_projections=(1, 768),
        guidance=(1,),
    ),
}


def build(config: dict) -> torch.nn.Module:
    """The class of a configuration, with attention written out as matrix products."""
    with torch.device("meta"):
        if "_class_name" in config:
            given = {name: value for name, value in config.items() if not name.startswith("_")}
            return getattr(diffusers, config["_class_name"]).from_config(given)
        given = {name: value for name, value in config.items() if name not in IGNORED}
        built = CONFIG_MAPPING[config["model_type"]](**given, attn_implementation="eager")
        return getattr(transformers, config["architectures"][0])(built)


def tensors(shapes: dict, kind: torch.dtype = torch.float32) -> dict:
    """Empty tensors of these shapes, nested as they are."""
    return {
        name: tensors(shape, kind) if isinstance(shape, dict) else torch.zeros(shape, dtype=kind)
        for name, shape in shapes.items()
    }


def count(config: dict, case: Entering) -> int:
    """FLOPs of one forward pass."""
    model = build(config).eval()
    with torch.no_grad(), torch.device("meta"), FlopCounterMode(display=False) as counter:
        model(**tensors(case.shapes), **tensors(case.tokens, TOKENS))
    return counter.get_total_flops()


def main() -> None:
    """Count and write."""
    transformers.logging.set_verbosity_error()
    diffusers.logging.set_verbosity_error()
    cases = []
    for name, case in CASES.items():
        config = json.loads((HERE / "tower_configs" / f"{name}.json").read_text())
        cases.append({"name": name, "sample": case.sample, "flops": count(config, case)})
    document = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "diffusers": diffusers.__version__,
        "cases": cases,
    }
    (HERE / "tower_flops.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
