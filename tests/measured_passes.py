"""Measured passes of public sources; each is asked as its source describes it.

TensorRT: demo/BERT/README.md of NVIDIA/TensorRT, FP16 on an A100 of 40 GB, average latency of an engine.
DeepLearningExamples: PyTorch/Classification/ConvNets/resnet50v1.5/README.md of NVIDIA, mixed precision,
pytorch 21.03. diffusers: benchmarks of huggingface/diffusers, one forward pass in bfloat16 on an L40S.
fal.ai: README of fal-ai/stable-diffusion-benchmarks, 50 steps with guidance on an A100, end to end.
Stability AI: model card of stable-diffusion-xl-1.0-tensorrt, 30 steps at 1024 x 1024, and the parts of 4
steps without guidance.
"""

from typing import NamedTuple

import numpy as np

from service.planning.hardware.collectives import build_fabric
from service.planning.inference.passes import (
    RUNTIMES,
    HeadPositions,
    PartRole,
    PassModel,
    PassPart,
    PassRuntime,
    Sampler,
    build_denoiser_parts,
    build_part,
    build_pass_machine,
    is_latent_decoder,
    select_pass_widths,
)
from service.planning.models.positions import SampleShape
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BITS, NumberFormat
from service.resolve.hardware import resolve_cluster
from service.schemas.references import CatalogAccelerator, ClusterInput
from tests.asking import shipped
from tests.shapes import catalog_architecture

FP16, TF32 = NumberFormat.FP16, NumberFormat.TF32
Widthed = tuple[PassPart, NumberFormat]


class Measured(NamedTuple):
    """A pass, or a whole request, and how long it took."""

    name: str
    accelerator: str
    runtime: str
    batch: float
    seconds: float
    parts: tuple[Widthed, ...]


def _text(model: str, tokens: int, runtime: PassRuntime) -> tuple[Widthed, ...]:
    architecture = catalog_architecture(model)
    return ((build_part(architecture, SampleShape(tokens=tokens), runtime, PartRole.FORWARD), FP16),)


def _picture(model: str, side: int, runtime: PassRuntime) -> tuple[Widthed, ...]:
    sample = SampleShape(height=side, width=side)
    return (
        (
            build_part(
                catalog_architecture(model), sample, runtime, PartRole.FORWARD, heads=HeadPositions.ALL
            ),
            FP16,
        ),
    )


def _steps(
    model: str, side: int, runtime: PassRuntime, *, steps: int = 1, guided: float = 0.0, text: int = 77
) -> tuple[Widthed, ...]:
    sample = SampleShape(height=side, width=side, source_tokens=text)
    denoiser = build_part(catalog_architecture(model), sample, runtime, PartRole.DENOISER)
    return tuple(
        (part, FP16) for part in build_denoiser_parts(denoiser, Sampler.DDIM, steps, guided_share=guided)
    )


def _decoder(side: int, runtime: PassRuntime, number_format: NumberFormat) -> tuple[Widthed, ...]:
    architecture = catalog_architecture("stable-diffusion-vae")
    sample = SampleShape(height=side, width=side)
    part = build_part(architecture, sample, runtime, PartRole.AUTOENCODER, chosen=is_latent_decoder)
    return ((part, number_format),)


def _bert() -> list[Measured]:
    tables = {
        ("bert-base", 128): {1: 0.67, 2: 0.83, 4: 1.02, 8: 1.38, 16: 2.18, 32: 4.10, 64: 8.05, 128: 16.14},
        ("bert-base", 384): {1: 1.31, 2: 1.64, 4: 2.31, 8: 3.62, 16: 6.72, 32: 13.51, 64: 26.11, 128: 51.26},
        ("bert-large", 128): {1: 1.64, 2: 2.05, 4: 2.97, 8: 4.51, 16: 7.75, 32: 13.85, 64: 26.2, 128: 51.61},
        ("bert-large", 384): {
            1: 3.12,
            2: 4.15,
            4: 5.96,
            8: 11.53,
            16: 21.92,
            32: 43.01,
            64: 83.63,
            128: 163.7,
        },
    }
    return [
        Measured(
            f"{model} {tokens}",
            "a100-sxm-40gb",
            "tensorrt",
            batch,
            1e-3 * ms,
            _text(model, tokens, RUNTIMES["tensorrt"]),
        )
        for (model, tokens), table in tables.items()
        for batch, ms in table.items()
    ]


def _resnet() -> list[Measured]:
    tables = {
        "v100-sxm2-16gb": {
            1: 12.78,
            2: 13.01,
            4: 13.41,
            8: 13.65,
            16: 14.0,
            32: 15.84,
            64: 23.18,
            128: 43.55,
            256: 84.14,
        },
        "t4": {
            1: 12.96,
            2: 13.18,
            4: 12.99,
            8: 12.82,
            16: 15.8,
            32: 29.54,
            64: 57.41,
            128: 114.24,
            256: 225.95,
        },
    }
    return [
        Measured(
            "resnet-50",
            accelerator,
            "pytorch",
            batch,
            1e-3 * ms,
            _picture("resnet-50", 224, RUNTIMES["pytorch"]),
        )
        for accelerator, table in tables.items()
        for batch, ms in table.items()
    ]


def _diffusion() -> list[Measured]:
    found = []
    for runtime, flux, unet in (("diffusers", 0.493, 0.071), ("torch_compile", 0.374, 0.054)):
        run = RUNTIMES[runtime]
        found += [
            Measured("flux.1-dev step", "l40s", runtime, 1, flux, _steps("flux.1-dev", 1024, run, text=512)),
            Measured("sdxl step", "l40s", runtime, 1, unet, _steps("sdxl-unet", 1024, run)),
        ]
    for runtime, small, large in (
        ("diffusers", 1.591, 5.933),
        ("torch_compile", 1.066, 5.132),
        ("tensorrt", 0.819, 4.102),
    ):
        run = RUNTIMES[runtime]
        for name, model, side, seconds, number_format in (
            ("sd 1.5, 50 steps", "stable-diffusion-1.5-unet", 512, small, FP16),
            ("sdxl, 50 steps", "sdxl-unet", 1024, large, TF32),
        ):
            parts = (*_steps(model, side, run, steps=50, guided=1.0), *_decoder(side, run, number_format))
            found.append(Measured(name, "a100-sxm-80gb", runtime, 1, seconds, parts))
    for accelerator, eager, built in (
        ("a10", 9.399, 8.160),
        ("a100-sxm-80gb", 3.704, 2.742),
        ("h100-sxm", 2.496, 1.471),
    ):
        for runtime, seconds in (("diffusers", eager), ("tensorrt", built)):
            run = RUNTIMES[runtime]
            parts = (*_steps("sdxl-unet", 1024, run, steps=30, guided=1.0), *_decoder(1024, run, TF32))
            found.append(Measured("sdxl, 30 steps", accelerator, runtime, 1, seconds, parts))
    for accelerator, steps, decoder in (("a100-sxm-80gb", 0.19202, 0.22834), ("h100-sxm", 0.1028, 0.12695)):
        run = RUNTIMES["tensorrt"]
        found += [
            Measured(
                "sdxl, 4 steps", accelerator, "tensorrt", 1, steps, _steps("sdxl-unet", 1024, run, steps=4)
            ),
            Measured("sdxl decoder", accelerator, "tensorrt", 1, decoder, _decoder(1024, run, TF32)),
        ]
    return found


def measured_passes() -> list[Measured]:
    """All of them."""
    return [*_bert(), *_resnet(), *_diffusion()]


def estimated_seconds(measured: Measured) -> float:
    """What the model of passes says."""
    reference = CatalogAccelerator(source="catalog", id=measured.accelerator)
    cluster = resolve_cluster(
        ClusterInput(accelerator=reference), shipped(), AnswerNotes(), communicates=False
    )
    calibration = shipped().curves.calibration
    machine = build_pass_machine(cluster.accelerator, calibration, RUNTIMES[measured.runtime])
    assert machine is not None
    peaks = cluster.accelerator.peak_flops_per_second
    parts = tuple(
        (part, select_pass_widths(number_format, float(ELEMENT_BITS[number_format]), peaks))
        for part, number_format in measured.parts
    )
    layout = Parallelism()
    fabric = build_fabric(cluster, calibration.links.value)
    model = PassModel(parts, layout, machine=machine, fabric=fabric)
    return float(model.compute_seconds(np.array([float(measured.batch)]))[0])
