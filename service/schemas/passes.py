"""Requests that are forward passes: embedding, ranking, pictures and videos that are sampled in steps."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, Field
from typing_extensions import TypedDict

from service.schemas.base import Degree, NotNegative, QuantityEstimate, Share, Size, StrictModel
from service.schemas.references import ModelReference

_INT64 = {"format": "int64"}


class ForwardPassesInput(StrictModel):
    """Each request is one pass over its sequences; nothing is generated, whatever the model could."""

    task: Literal["embedding", "reranking", "classification"] = "embedding"
    """Embedding takes the hidden states; the others pass one token of each sequence through the head."""
    sequences: Degree = 1
    """Sequences or pictures of a request, each of input_tokens: texts that are embedded, or a query with each
    of the documents that are ranked."""


class TextEncoderInput(StrictModel):
    """A model that turns the prompt into what the denoiser reads; it runs once a request."""

    model: ModelReference
    """The encoder, such as a CLIP text model or T5."""
    tokens: Size | MISSING = MISSING
    """Tokens that it pads the prompt to; defaults to 77, for T5 to 512."""


class AutoencoderInput(StrictModel):
    """The autoencoder whose decoder turns latents into pixels."""

    model: ModelReference
    """Encoder and decoder; the decoder's half runs once a picture."""
    precision: Literal["fp32", "tf32", "fp16", "bf16"] | MISSING = MISSING
    """What it multiplies in; defaults to 16 bit. That of Stable Diffusion XL overflows there: give tf32."""
    tile_pixels: Annotated[int, Field(ge=8, le=65_536, json_schema_extra=_INT64)] | MISSING = MISSING
    """Side of the tiles that a picture is decoded in, for less memory; whole when left out."""


class DiffusionInput(StrictModel):
    """How a picture or a video is sampled; the model of the question is the denoiser."""

    sampler: Literal["ddpm", "ddim", "dpm_solver", "euler", "heun"] = "ddim"
    """Sets how many steps are usual; heun evaluates the denoiser twice in all steps but the last."""
    steps: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=_INT64)] | MISSING = MISSING
    """Steps from noise to sample; defaults to 1000 of ddpm, 50 of ddim, 20 of dpm_solver, 28 of euler and 18
    of heun."""
    guidance: Literal["classifier_free", "none"] = "classifier_free"
    """Classifier-free guidance evaluates the denoiser with and without the prompt. None of a model that
    guidance was distilled into, such as Flux."""
    guided_share: Share = 1.0
    """Share of the steps that are guided."""
    samples: Degree = 1
    """Pictures or videos of a request."""
    text_encoders: Annotated[list[TextEncoderInput], Field(max_length=4)] | MISSING = MISSING
    """Models that read the prompt; without them their time is left out."""
    autoencoder: AutoencoderInput | MISSING = MISSING
    """Without it, decoding the latents is left out."""


class BatchingInput(StrictModel):
    """How a server of passes fills a batch."""

    max_requests: Degree | MISSING = MISSING
    """Most requests of one pass; defaults to all that wait and that the memory holds."""
    delay_seconds: NotNegative = 0.0
    """How long a pass waits for more requests than are there."""


class ForwardPassEvaluations(TypedDict):
    """How often a request passes one of its models, and what one pass takes."""

    phase: Literal["forward", "text_encoder", "denoiser", "autoencoder"]
    """Which model."""
    evaluations: float
    """Passes of a request, one after the other."""
    samples: float
    """Samples of a request in each of them."""
    flops: float
    """Floating-point operations of all of them for one request, on one device."""


class ForwardPassEstimate(TypedDict):
    """Requests that are passes."""

    models: list[ForwardPassEvaluations]
    """What a request walks through, in order."""
    samples_per_second: QuantityEstimate
    """Sequences, pictures or videos of the whole cluster."""
    batch: float
    """Requests of a pass on one replica, on average."""
    pass_seconds: QuantityEstimate
    """Time of a pass from end to end."""
    energy_per_sample_joules: NotRequired[QuantityEstimate]
    """Energy of all devices over the samples that they take."""
