"""Tables of n-grams (Qwen3.8-Flash-Next): hashed pairs and triples of tokens, injected into some layers."""

from itertools import count, islice

from service.formats.huggingface.decoders import DecoderFamily, Layers
from service.formats.huggingface.patterns import build_periodic_kinds
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.models.architecture import ModelLayer
from service.planning.models.layers import EmbeddingTable, LearnedVectors, Linear, Normalization

_MOST_TABLES = 1024
"""Tables of all layers together beyond which a configuration is refused; the released model has 16."""
_WITNESSES = (2, 3, 5, 7)
"""Bases by which Miller and Rabin's test is exact below 3,215,031,751."""


def _is_prime(number: int) -> bool:
    if number <= _WITNESSES[-1] or any(number % base == 0 for base in _WITNESSES):
        return number in _WITNESSES
    odd = number - 1
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    for base in _WITNESSES:
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


def list_ngram_layers(reader: ConfigReader, depth: int) -> list[int]:
    """The layers with tables of n-grams, from 1, which have to be linear."""
    layers = sorted(reader.read_indexes("ple_layer_ids"))
    kinds = build_periodic_kinds("full_attention_interval", 4, "linear")(reader, depth)
    if any(not 0 < layer <= depth or kinds[layer - 1] != "linear" for layer in layers):
        raise build_invalid_error("ple_layer_ids", "ple_layer_ids must number linear layers, from 1")
    return layers


def list_ngram_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Full attention in every fourth layer, and tables of n-grams in the layers that a field numbers."""
    kinds = build_periodic_kinds("full_attention_interval", 4, "linear")(reader, depth)
    for layer in list_ngram_layers(reader, depth):
        kinds[layer - 1] = "linear ngram"
    return kinds


def _count_heads(reader: ConfigReader) -> int:
    return (reader.read_size("ngram_size") - 1) * reader.read_size("heads_per_ngram")


def _read_width(reader: ConfigReader) -> int:
    return reader.read_size_or("ple_embed_dim", reader.read_size("hidden_size"))


def build_ngram_tables(reader: ConfigReader) -> tuple[ModelLayer, ...]:
    """A table for each layer with n-grams, whose heads have as many rows as successive primes."""
    layers = list_ngram_layers(reader, reader.read_depth("num_hidden_layers"))
    if not layers:
        return ()
    heads, width = _count_heads(reader), _read_width(reader)
    if not 0 < heads * len(layers) <= _MOST_TABLES:
        raise build_invalid_error(
            "heads_per_ngram", f"all n-grams must have 1 to {_MOST_TABLES} tables together"
        )
    if width % heads:
        raise build_invalid_error("heads_per_ngram", "the tables of a layer do not divide ple_embed_dim")
    primes = filter(_is_prime, count(reader.read_size("ngram_vocab_size_base")))
    step = reader.read_size("make_ngram_vocab_size_divisible_by")
    return tuple(
        EmbeddingTable(
            rows=-(-sum(islice(primes, heads)) // step) * step,
            size=width // heads,
            lookups_per_sample=float(heads),
        )
        for _ in layers
    )


def build_ngram_injection(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Keys of all streams and a value from the n-grams, their norms, and a convolution over what is added.

    The convolution is by channel: a few factors for each, whose work is left out.
    """
    del family, kind
    hidden, width = reader.read_size("hidden_size"), _read_width(reader)
    streams = reader.read_size("hc_count") * hidden
    return (
        Linear(input_size=width, output_size=streams),
        Linear(input_size=width, output_size=hidden),
        Normalization(size=streams, count=3),
        LearnedVectors(purpose="scale", rows=reader.read_size("ple_conv_kernel_size"), size=streams),
    )


def build_gated_residual(
    reader: ConfigReader, family: DecoderFamily, kind: str, *, injects: bool = True
) -> Layers:
    """Hyper-connection of low rank: weights of the elements of all streams, and of what each stream takes."""
    del family, kind
    count_of_streams = reader.read_size("hc_count")
    streams, rank = count_of_streams * reader.read_size("hidden_size"), reader.read_size("hc_lowrank")
    mixed = (
        Normalization(size=streams),
        Linear(input_size=streams, output_size=rank),
        Linear(input_size=rank, output_size=streams),
    )
    return (*mixed, Linear(input_size=streams, output_size=count_of_streams)) if injects else mixed
