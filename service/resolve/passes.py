"""Resolution of a request that is a forward pass into parts, in the order of execution."""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.inference.passes import (
    USUAL_STEPS,
    BlockFilter,
    HeadPositions,
    PartRole,
    PassPart,
    PassRuntime,
    RequestParts,
    Sampler,
    build_denoiser_parts,
    build_part,
    is_any_block,
    is_encoder_block,
    is_latent_decoder,
    select_pass_widths,
    select_runtime,
    split_tiles,
)
from service.planning.models.architecture import Architecture
from service.planning.models.positions import SampleShape
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.operators import PassFormats
from service.planning.precision import COMPUTE_FORMATS, ELEMENT_BITS, NumberFormat
from service.planning.workload import InferenceWorkload
from service.resolve.catalog import CatalogView
from service.resolve.model import resolve_model
from service.schemas.passes import AutoencoderInput, DiffusionInput, TextEncoderInput
from service.schemas.references import ModelReference
from service.schemas.workloads import InferenceWorkloadInput

_USUAL_TOKENS, _USUAL_T5_TOKENS = 77, 512
"""Usual padded lengths of a prompt: that of CLIP and that of T5."""
_SIXTEEN = (NumberFormat.BF16, NumberFormat.FP16)
PeakRatesByFormat = Mapping[NumberFormat, float]


def is_passed(given: InferenceWorkloadInput, profile: ModelProfile) -> bool:
    """Returns true if a request is a forward pass: on demand, or because the model generates nothing."""
    return given.passes is not MISSING or not profile.generates


def get_architecture(profile: ModelProfile) -> Architecture:
    """Returns the blocks that a pass runs through. For a decoder, its blocks over tokens."""
    whole = profile.sampled or profile.passed
    return whole or Architecture(layers=tuple(block.block for block in profile.blocks))


class _PassContext(NamedTuple):
    """Inputs that all parts of a request share."""

    given: InferenceWorkloadInput
    runtime: PassRuntime
    peaks: PeakRatesByFormat
    catalog: CatalogView
    notes: AnswerNotes

    def select_widths(self, *formats: NumberFormat, bits: float | None = None) -> PassFormats:
        """Returns the widths of a pass in the first of ``formats`` that the device has a dense rate for."""
        found = next((each for each in formats if each in self.peaks), None)
        if found is None:
            detail = f"no dense rate of {' or '.join(formats)} is known"
            raise PlanningError("PEAK_RATE_UNKNOWN", "/cluster/accelerator", detail)
        return select_pass_widths(found, bits or float(ELEMENT_BITS[found]), self.peaks)


def resolve_parts(
    given: InferenceWorkloadInput,
    profile: ModelProfile,
    workload: InferenceWorkload,
    sample: SampleShape | None,
    *,
    peaks: PeakRatesByFormat,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> RequestParts:
    """Returns the parts that a request of ``given`` passes through.

    Raises :class:`PlanningError` naming the field that contradicts the model, or a missing size.
    """
    engine = None if given.engine is MISSING else given.engine.name
    walk = _PassContext(given, select_runtime(engine), peaks, catalog, notes)
    architecture = get_architecture(profile)
    sample = sample or SampleShape(tokens=max(1, round(workload.input_tokens)))
    bits = workload.storage.mean_bits
    widths = walk.select_widths(*COMPUTE_FORMATS[workload.weight_format], bits=bits)
    if given.diffusion is not MISSING:
        return _build_diffusion_parts(walk, given.diffusion, architecture, sample, widths)
    heads, samples = HeadPositions.ALL, 1.0
    if given.passes is not MISSING:
        heads = HeadPositions.NONE if given.passes.task == "embedding" else HeadPositions.LAST
        samples = float(given.passes.sequences)
    part = _build_part(architecture, sample, walk.runtime, PartRole.FORWARD, heads=heads)
    return RequestParts(((part._replace(samples=samples), widths),), samples, walk.runtime)


def _build_part(  # noqa: PLR0917 - one argument a property of the part
    architecture: Architecture,
    sample: SampleShape,
    runtime: PassRuntime,
    role: PartRole,
    pointer: str = "/workload/sample",
    heads: HeadPositions = HeadPositions.NONE,
    chosen: BlockFilter = is_any_block,
) -> PassPart:
    try:
        part = build_part(architecture, sample, runtime, role, chosen=chosen, heads=heads)
    except PlanningError as error:
        raise PlanningError(error.code, f"{pointer}{error.pointer}", error.detail) from error
    if not part.blocks:
        raise PlanningError(
            "NOTHING_TO_PASS", pointer, "the model has no block that a request passes through"
        )
    return part


def _build_diffusion_parts(
    walk: _PassContext,
    given: DiffusionInput,
    architecture: Architecture,
    sample: SampleShape,
    widths: PassFormats,
) -> RequestParts:
    """Returns text encoders, the denoiser in all steps, and the decoder of its output."""
    if not any(item.kind == "latent" for item in architecture.inputs):
        detail = "the model does not denoise latents"
        raise PlanningError("NOT_A_DENOISER", "/workload/diffusion", detail)
    sampler = Sampler(given.sampler)
    steps = USUAL_STEPS[sampler] if given.steps is MISSING else given.steps
    guided = given.guided_share if given.guidance == "classifier_free" else 0.0
    samples = float(given.samples)
    denoiser = _build_part(architecture, sample, walk.runtime, PartRole.DENOISER)
    found: list[tuple[PassPart, PassFormats]] = []
    encoders = [] if given.text_encoders is MISSING else given.text_encoders
    for index, encoder in enumerate(encoders):
        pointer = f"/workload/diffusion/text_encoders/{index}"
        found.append(
            (
                _build_text_encoder(walk, encoder, 2.0 if guided else 1.0, pointer),
                walk.select_widths(*_SIXTEEN),
            )
        )
    found += [
        (part, widths)
        for part in build_denoiser_parts(denoiser, sampler, steps, samples=samples, guided_share=guided)
    ]
    if given.autoencoder is not MISSING:
        found.append(_build_decoder(walk, given.autoencoder, sample, samples))
    for name, absent in (("text_encoders", not encoders), ("autoencoder", given.autoencoder is MISSING)):
        if absent:
            detail = f"the time of {name.replace('_', ' ')} is left out: the question does not name one"
            walk.notes.warn("PART_LEFT_OUT", f"/workload/diffusion/{name}", detail)
    return RequestParts(tuple(found), samples, walk.runtime)


def _resolve_companion(walk: _PassContext, reference: ModelReference, pointer: str) -> ModelProfile:
    try:
        profile = resolve_model(reference, walk.catalog, AnswerNotes()).profile
    except PlanningError as error:
        raise PlanningError(error.code, f"{pointer}{error.pointer}", error.detail) from error
    if not profile.shapes_known:
        detail = "the time of a pass needs the shapes of the model"
        raise PlanningError("ARCHITECTURE_REQUIRED", f"{pointer}/model", detail)
    return profile


def _build_text_encoder(
    walk: _PassContext, given: TextEncoderInput, samples: float, pointer: str
) -> PassPart:
    """Returns the encoder over the prompt, and under guidance over an empty prompt too.

    Of T5, the encoder alone.
    """
    architecture = get_architecture(_resolve_companion(walk, given.model, pointer))
    kinds = {item.kind for item in architecture.inputs}
    read = "source_tokens" in kinds
    long = read or architecture.embeddings is None
    tokens = given.tokens
    if tokens is MISSING:
        tokens = _USUAL_T5_TOKENS if long else _USUAL_TOKENS
    sample = SampleShape(tokens=tokens, source_tokens=tokens)
    others = kinds - {"tokens", "source_tokens"}
    chosen = is_encoder_block if read else _is_over_tokens if others else is_any_block
    part = _build_part(architecture, sample, walk.runtime, PartRole.TEXT_ENCODER, pointer, chosen=chosen)
    return part._replace(samples=samples)


def _is_over_tokens(block: object, architecture: Architecture) -> bool:
    """Returns true if the block of a model of texts and images reads the text."""
    return not is_encoder_block(block, architecture)  # type: ignore[arg-type]


def _build_decoder(
    walk: _PassContext, given: AutoencoderInput, sample: SampleShape, samples: float
) -> tuple[PassPart, PassFormats]:
    pointer = "/workload/diffusion/autoencoder"
    architecture = get_architecture(_resolve_companion(walk, given.model, pointer))
    if not any(item.kind == "latent" for item in architecture.inputs):
        raise PlanningError("NOT_AN_AUTOENCODER", f"{pointer}/model", "the model does not decode latents")
    side = None if given.tile_pixels is MISSING else given.tile_pixels
    height, width = sample.height, sample.width
    count = 1
    if height is not None:
        count, height, width = split_tiles(height, width or height, side)
    pixels = sample._replace(tokens=None, source_tokens=None, height=height, width=width)
    part = _build_part(
        architecture, pixels, walk.runtime, PartRole.AUTOENCODER, pointer, chosen=is_latent_decoder
    )
    formats = _SIXTEEN if given.precision is MISSING else (NumberFormat(given.precision), NumberFormat.FP32)
    return part._replace(passes=float(count), samples=samples), walk.select_widths(*formats)
