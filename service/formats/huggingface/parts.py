"""Parts that towers are put together from: layers with their usual biases, and readers of nested parts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from service.formats.huggingface.reader import ConfigDefault, ConfigReader, build_invalid_error
from service.planning.errors import PlanningError
from service.planning.models.architecture import LayerBlock, ModelHead
from service.planning.models.layers import (
    Activation,
    ActivationFunction,
    Attention,
    Convolution,
    FeedForward,
    LearnedVectors,
    Linear,
    Normalization,
    Resampling,
    SimpleLayer,
    VectorPurpose,
)


def build_unsupported_error(name: str, detail: str) -> PlanningError:
    """The error for a setting that this importer does not know."""
    return PlanningError("CONFIG_FIELD_UNSUPPORTED", f"/{name}", detail)


@contextmanager
def read_nested(
    reader: ConfigReader, name: str, defaults: Mapping[str, ConfigDefault]
) -> Iterator[ConfigReader]:
    """Opens a reader of a nested configuration; refusals name the whole path."""
    value = reader.config.get(name)
    if value is None:
        reader.defaulted.append(name)
        value = {}
    if not isinstance(value, Mapping):
        raise build_invalid_error(name, f"{name} must be an object")
    inner = ConfigReader(value, defaults)
    try:
        yield inner
    except PlanningError as error:
        raise PlanningError(error.code, f"/{name}{error.pointer}", error.detail) from error
    reader.defaulted.extend(f"{name}/{field}" for field in inner.defaulted)


def read_choice(reader: ConfigReader, name: str, default: str, *known: str) -> str:
    """A setting by name; a field left out takes ``default``, one that is not ``known`` is refused."""
    value = reader.config.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise build_invalid_error(name, f"{name} must be a string")
    if known and value not in known:
        raise build_unsupported_error(name, f"known values of {name} are {', '.join(known)}")
    return value


def read_numbers(reader: ConfigReader, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
    """A list of positive integers; a field left out takes ``default``."""
    value = reader.config.get(name)
    if value is None:
        if not default:
            raise PlanningError("CONFIG_FIELD_MISSING", f"/{name}", f"{name} is missing")
        reader.defaulted.append(name)
        return default
    if not isinstance(value, list) or not value:
        raise build_invalid_error(name, f"{name} must be a list of positive integers")
    if not all(isinstance(item, int) and not isinstance(item, bool) and item > 0 for item in value):
        raise build_invalid_error(name, f"{name} must be a list of positive integers")
    return tuple(value)


def read_count_or_zero(reader: ConfigReader, name: str, default: int = 0) -> int:
    """A number that may be zero; a field left out takes ``default``."""
    value = reader.config.get(name, default)
    return 0 if value == 0 and not isinstance(value, bool) else reader.read_size_or(name, default)


def read_side(reader: ConfigReader, name: str, default: int | None = None) -> int | None:
    """The length of a square's side; a list of two equal numbers is one, too."""
    value = reader.config.get(name)
    if isinstance(value, list):
        both = read_numbers(reader, name)
        if len(set(both)) != 1:
            raise build_unsupported_error(name, f"{name} with unequal sides is not supported")
        return both[0]
    return reader.read_size(name) if value is not None or name in reader.defaults else default


def build_norm(
    size: int, kind: Literal["rms", "layer", "group", "batch"] = "layer", *, shift: bool = True
) -> Normalization:
    """A norm; a layer norm without a shift learns what a root-mean-square norm learns."""
    return Normalization(size=size, norm=kind if shift else "rms")


def build_plain_norm(size: int) -> Normalization:
    """A layer norm without parameters, as an adaptive norm modulates."""
    return Normalization(size=size, norm="layer", learned=False)


def build_attention(
    hidden: int,
    heads: int,
    *,
    head_size: int | None = None,
    key_value_heads: int | None = None,
    bias: bool = True,
    output_bias: bool = True,
    causal: bool = False,
    cross: int | None = None,
    window: int | None = None,
    query_key_norm: Literal["none", "head", "projection"] = "none",
    query_key_norm_shift: bool = False,
    dropout: bool = False,
    score_bias: bool = False,
    heads_field: str = "num_attention_heads",
) -> Attention:
    """Attention in both directions unless it is ``causal``; ``cross`` is the width of what is attended to."""
    if head_size is None:
        if hidden % heads:
            raise build_invalid_error(heads_field, f"{heads_field} does not divide the hidden size")
        head_size = hidden // heads
    return Attention(
        hidden_size=hidden,
        query_heads=heads,
        key_value_heads=key_value_heads or heads,
        head_size=head_size,
        causal=causal,
        window_tokens=window,
        cross_size=cross,
        query_key_value_bias=bias,
        output_bias=output_bias,
        query_key_norm=query_key_norm,
        query_key_norm_shift=query_key_norm_shift,
        dropout=dropout,
        score_bias=score_bias,
    )


def build_mlp(
    hidden: int,
    inner: int,
    *,
    gated: bool = False,
    bias: bool = True,
    function: ActivationFunction = "smooth",
    dropout: bool = False,
    inner_dropout: bool = False,
) -> FeedForward:
    """Feed-forward with biases unless said otherwise."""
    return FeedForward(
        hidden_size=hidden,
        inner_size=inner,
        gated=gated,
        bias=bias,
        activation=function,
        dropout=dropout,
        inner_dropout=inner_dropout,
    )


_FUNCTIONS: Mapping[str, ActivationFunction] = {
    "relu": "relu",
    "quick_gelu": "quick_gelu",
    "gelu_new": "gelu_new",
    "gelu_fast": "gelu_new",
}


def read_activation_function(reader: ConfigReader, name: str, default: str) -> ActivationFunction:
    """Returns the activation function by the tensors that it keeps; those of one operator are smooth."""
    return _FUNCTIONS.get(read_choice(reader, name, default), "smooth")


def build_activation(size: int) -> Activation:
    """A smooth function, such as SiLU."""
    return Activation(size=size)


def build_linear(columns: int, rows: int, *, bias: bool = True) -> Linear:
    """A matrix with a bias unless said otherwise."""
    return Linear(input_size=columns, output_size=rows, bias=bias)


def build_learned_vectors(purpose: VectorPurpose, size: int, rows: int = 1) -> LearnedVectors:
    """Learned vectors."""
    return LearnedVectors(purpose=purpose, rows=rows, size=size)


def build_query_value_bias(size: int) -> LearnedVectors:
    """The biases of queries and values where keys have none."""
    return build_learned_vectors("bias", size, 2)


def build_patch_embedding(
    channels: int, size: int, patch: int, *, bias: bool = True, frames: int = 1, frame_stride: int = 1
) -> Convolution:
    """The convolution that makes a vector of each patch."""
    return Convolution(
        input_channels=channels,
        output_channels=size,
        kernel_height=patch,
        kernel_width=patch,
        kernel_frames=frames,
        frame_stride=frame_stride,
        stride=patch,
        bias=bias,
        padded=False,
    )


def build_convolution(
    channels: int,
    output: int,
    kernel: int = 3,
    *,
    stride: int = 1,
    bias: bool = True,
    groups: int = 1,
    shortcut: bool = False,
) -> Convolution:
    """A square convolution that keeps the border."""
    return Convolution(
        input_channels=channels,
        output_channels=output,
        kernel_height=kernel,
        kernel_width=kernel,
        stride=stride,
        groups=groups,
        bias=bias,
        shortcut=shortcut,
    )


def build_time_convolution(channels: int, output: int, kernel: int, stride: int = 1) -> Convolution:
    """A convolution along a sequence."""
    return Convolution(
        input_channels=channels,
        output_channels=output,
        kernel_height=1,
        kernel_width=kernel,
        stride=stride,
        bias=True,
    )


def build_merge(factor: int, *, drops: bool = False) -> Resampling:
    """Neighbours along both axes become one position; ``drops`` leaves class tokens behind."""
    return Resampling(factor=float(factor), drops_extra_tokens=drops)


def build_pool(factor: int, channels: int) -> Resampling:
    """The largest of neighbours along both axes."""
    return Resampling(factor=float(factor), channels=channels)


def build_part(
    *layers: SimpleLayer,
    over: str = "",
    count: int = 1,
    reads: str = "",
    unit: bool = False,
    once: bool = False,
) -> LayerBlock:
    """Layers beside the depth of a model: stems, projectors, transforms; ``once`` a sample."""
    return LayerBlock(
        layers=layers,
        count=count,
        over=(over,) if over else (),
        reads=(reads,) if reads else (),
        per="sample" if once else "position",
        unit=unit,
    )


def build_classifier(size: int, outputs: int, *, per_token: bool = False) -> ModelHead:
    """Scores, for each token or once a sequence."""
    return ModelHead(
        kind="classifier",
        input_size=size,
        output_size=outputs,
        bias=True,
        per="token" if per_token else "sequence",
    )


def build_pooler(size: int, output: int | None = None) -> ModelHead:
    """A matrix on one token of a sequence."""
    return ModelHead(kind="pooler", input_size=size, output_size=output or size, bias=True, per="sequence")


def build_language_head(
    size: int, vocabulary: int, *, bias: bool = False, second_bias: bool = False
) -> ModelHead:
    """Logits over a vocabulary."""
    return ModelHead(
        kind="language_model", input_size=size, output_size=vocabulary, bias=bias, second_bias=second_bias
    )
