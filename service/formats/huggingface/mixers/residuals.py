"""Parts around the others of a layer: hyper-connections, and residuals of earlier blocks."""

from service.formats.huggingface.decoders import DecoderFamily, Layers
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.layers import LearnedVectors, Linear, Normalization


def build_hyper_connection(
    reader: ConfigReader, family: DecoderFamily, kind: str, *, mixes: bool = True
) -> Layers:
    """Hyper-connection: weights of the streams in front of a layer and behind it, and of each for each other.

    DeepSeek-V4 mixes its streams (manifold-constrained, mHC), Hy4 leaves them independent (iHC).
    """
    del family, kind
    streams = reader.read_size("hc_mult")
    weights = (2 + streams if mixes else 2) * streams
    return (
        Linear(input_size=streams * reader.read_size("hidden_size"), output_size=weights, bias=True),
        LearnedVectors(purpose="scale", rows=1, size=3 if mixes else 2),
    )


def build_attention_residual(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """The norm and the scores by which a part weighs what earlier blocks have added up."""
    del family, kind
    hidden = reader.read_size("hidden_size")
    return Normalization(size=hidden), Linear(input_size=hidden, output_size=1)
