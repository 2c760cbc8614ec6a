"""Attention by heads that differs by layer."""

from dataclasses import replace

from service.formats.huggingface.decoders import DecoderFamily, Layers, build_attention, read_key_value_heads
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.layers import Attention


def build_mimo_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """MiMo: values narrower than keys; layers with a window have twice the key-value heads, and sinks."""
    del family
    windowed = kind == "window"
    heads = reader.read_size("num_attention_heads")
    return (
        Attention(
            hidden_size=reader.read_size("hidden_size"),
            query_heads=heads,
            key_value_heads=read_key_value_heads(reader, heads) * (2 if windowed else 1),
            head_size=reader.read_size("head_dim"),
            value_head_size=reader.read_size("v_head_dim"),
            window_tokens=reader.read_size("sliding_window") if windowed else None,
            query_key_value_bias=reader.read_flag("attention_bias"),
            sinks=windowed,
            dropout=reader.has_dropout("attention_dropout"),
        ),
    )


def build_laguna_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Laguna: layers with a window have more query heads than the others."""
    name, _, heads = kind.partition(" ")
    if heads:
        reader = replace(reader, config={**reader.config, "num_attention_heads": int(heads)})
    return build_attention(reader, family, name)


def build_last_bias_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """GPT-NeoX Japanese: only the last layer adds a learned vector to its output."""
    (plain,) = build_attention(reader, family, kind)
    return (replace(plain, output_bias=kind == "last"),) if isinstance(plain, Attention) else ()
