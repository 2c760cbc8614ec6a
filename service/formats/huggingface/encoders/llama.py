"""Llama whose tokens see those behind them too, as NVIDIA's models for retrieval make of it."""

from dataclasses import replace

from service.formats.huggingface import families
from service.formats.huggingface.decoders import DecoderFamily, build_architecture
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import Architecture, LayerBlock, ModelLayer
from service.planning.models.layers import Attention


def _look_both_ways(layer: ModelLayer) -> ModelLayer:
    if not isinstance(layer, LayerBlock):
        return layer
    seeing = (replace(each, causal=False) if isinstance(each, Attention) else each for each in layer.layers)
    return replace(layer, layers=tuple(seeing))


def _build_bidirectional_llama(reader: ConfigReader, suffix: str) -> Architecture:
    plain = build_architecture(reader, suffix, DecoderFamily())
    return replace(plain, layers=tuple(_look_both_ways(layer) for layer in plain.layers))


LLAMA = families.FAMILIES["llama"]._replace(
    prefix="LlamaBidirectional",
    build=_build_bidirectional_llama,
    classes=("Model", "ForSequenceClassification"),
    unnamed_class="Model",
)
