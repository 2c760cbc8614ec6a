"""Usual pictures and samplings of denoisers, for questions that leave them open."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class _Sampling(NamedTuple):
    """Sampling that the pipeline of a denoiser defaults to."""

    steps: int
    height: int | None = None
    width: int | None = None
    frames: int | None = None
    is_guided: bool = True
    """False for a model that guidance was distilled into."""


_WAN: Final = _Sampling(50, 480, 832, 81)
_USUAL: Final[Mapping[str, _Sampling]] = {
    "cogvideox-2b": _Sampling(50, 480, 720, 49),
    "cogvideox-5b": _Sampling(50, 480, 720, 49),
    "flux.1-dev": _Sampling(28, 1024, 1024, is_guided=False),
    "flux.1-schnell": _Sampling(4, 1024, 1024, is_guided=False),
    "flux.2-dev": _Sampling(50, 1024, 1024, is_guided=False),
    "hunyuan-video": _Sampling(50, 720, 1280, 129, is_guided=False),
    "ltx-video": _Sampling(50, 512, 704, 161),
    "mochi-1": _Sampling(64, 480, 848, 19),
    "qwen-image": _Sampling(50, 1024, 1024),
    "sdxl-unet": _Sampling(50),
    "stable-diffusion-1.5-unet": _Sampling(50),
    "stable-diffusion-2.1-unet": _Sampling(50),
    "stable-diffusion-3-medium": _Sampling(28),
    "stable-diffusion-3.5-large": _Sampling(28),
    "wan-2.1-1.3b": _WAN,
    "wan-2.1-14b": _WAN,
    "wan-2.2-i2v-a14b": _WAN,
    "wan-2.2-t2v-a14b": _WAN,
    "wan-2.2-ti2v-5b": _WAN,
}
"""Arguments of the pipelines of diffusers, commit 007f2770 (Apache-2.0), or those of a model card."""


def build_usual_sampling(model_id: str) -> dict[str, Any]:
    """Returns the picture and the sampling of a denoiser as members of a workload; none for other models."""
    usual = _USUAL.get(model_id)
    if usual is None:
        return {}
    sizes = ("height", "width", "frames")
    sample = {name: value for name in sizes if (value := getattr(usual, name)) is not None}
    guidance = "classifier_free" if usual.is_guided else "none"
    found: dict[str, Any] = {"diffusion": {"steps": usual.steps, "guidance": guidance}}
    return found | ({"sample": sample} if sample else {})
