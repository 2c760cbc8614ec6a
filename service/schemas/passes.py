"""Requests that are forward passes: embedding, ranking and classification, and sampled images and videos."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, Field
from typing_extensions import TypedDict

from service.schemas.base import Degree, NotNegative, QuantityEstimate, Share, Size, StrictModel
from service.schemas.references import ModelReference

_INT64 = {"format": "int64"}


class ForwardPassesInput(StrictModel):
    """Requests that are each one pass over their sequences. Nothing is generated, even if the model could."""

    task: Literal["embedding", "reranking", "classification"] = "embedding"
    """Task of a pass. Embedding takes the hidden states; the others put one token of each sequence through
    the head."""
    sequences: Degree = 1
    """Sequences or pictures of a request, each of `input_tokens`: texts to embed, or a query with each of the
    documents to rank."""


class TextEncoderInput(StrictModel):
    """A model that encodes the prompt for the denoiser. It runs once a request."""

    model: ModelReference
    """The encoder, such as a CLIP text model or T5."""
    tokens: Size | MISSING = MISSING
    """Tokens that the encoder pads the prompt to. Defaults to 77, for T5 to 512."""


class AutoencoderInput(StrictModel):
    """The autoencoder whose decoder turns latents into pixels."""

    model: ModelReference
    """Model of encoder and decoder. Its decoder runs once a picture."""
    precision: Literal["fp32", "tf32", "fp16", "bf16"] | MISSING = MISSING
    """Format that the autoencoder multiplies in. Defaults to 16 bit. The autoencoder of Stable Diffusion XL
    overflows there and needs tf32."""
    tile_pixels: Annotated[int, Field(ge=8, le=65_536, json_schema_extra=_INT64)] | MISSING = MISSING
    """Side of the tiles that a picture is decoded in, to save memory. Defaults to the whole picture."""


class DiffusionInput(StrictModel):
    """Sampling of a picture or a video. The model of the request is the denoiser."""

    sampler: Literal["ddpm", "ddim", "dpm_solver", "euler", "heun"] = "ddim"
    """Sampler, which sets the usual number of steps. `heun` evaluates the denoiser twice in each step but the
    last."""
    steps: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=_INT64)] | MISSING = MISSING
    """Steps from noise to sample. Defaults to 1000 for ddpm, 50 for ddim, 20 for dpm_solver, 28 for euler and
    18 for heun."""
    guidance: Literal["classifier_free", "none"] = "classifier_free"
    """Guidance of the sampling. Classifier-free guidance evaluates the denoiser with and without the prompt.
    Use `none` for a model that guidance was distilled into, such as Flux."""
    guided_share: Share = 1.0
    """Share of the steps that are guided."""
    samples: Degree = 1
    """Pictures or videos of a request."""
    text_encoders: Annotated[list[TextEncoderInput], Field(max_length=4)] | MISSING = MISSING
    """Models that encode the prompt. Without them their time is left out."""
    autoencoder: AutoencoderInput | MISSING = MISSING
    """Autoencoder of the latents. Without it the time to decode them is left out."""


class BatchingInput(StrictModel):
    """Batching of requests that are forward passes."""

    max_requests: Degree | MISSING = MISSING
    """Most requests of one pass. Defaults to all that wait and that the memory holds."""
    delay_seconds: NotNegative = 0.0
    """Time that a pass waits for further requests."""


class ForwardPassEvaluations(TypedDict):
    """Evaluations of one model for a request."""

    phase: Literal["forward", "text_encoder", "denoiser", "autoencoder"]
    """Phase of the model."""
    evaluations: float
    """Passes of a request through the model, one after another."""
    samples: float
    """Samples of a request in each pass."""
    flops: float
    """Floating-point operations of all passes for one request, on one device."""


class ForwardPassEstimate(TypedDict):
    """Figures of requests that are forward passes."""

    models: list[ForwardPassEvaluations]
    """Models that a request passes, in order."""
    samples_per_second: QuantityEstimate
    """Sequences, pictures or videos that the whole cluster processes."""
    batch: float
    """Mean requests of a pass on one replica."""
    pass_seconds: QuantityEstimate
    """Time of a pass from start to end."""
    energy_per_sample_joules: NotRequired[QuantityEstimate]
    """Energy of all devices for one sample."""
