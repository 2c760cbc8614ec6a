"""Decoders behind an encoder: pictures, sound or a text is encoded before the first token.

The blocks over tokens are the decoder that iterations run. What stands in front of it, a tower with its
projector or an encoder, is a pass of its own (``passes``) in the iteration that a prompt ends in.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from service.planning.inference.iteration import EncoderTime, IterationModel
from service.planning.inference.passes import PassModel, is_encoder_block
from service.planning.models.architecture import Architecture
from service.planning.models.profile import ModelProfile, build_profile


@lru_cache(maxsize=64)
def build_decoder_profile(architecture: Architecture) -> ModelProfile:
    """The blocks that run over tokens, with the heads."""
    rows = zip(architecture.layers, architecture.list_blocks(), strict=True)
    kept = tuple(layer for layer, block in rows if not is_encoder_block(block, architecture))
    return build_profile(replace(architecture, layers=kept))


def is_encoder_read(profile: ModelProfile) -> bool:
    """Whether cross-attention reads what an encoder gives."""
    return any(work.cross and work.caches for work in profile.attention)


def add_encoder_pass(decoder: IterationModel, encoder: PassModel) -> IterationModel:
    """The iterations of ``decoder`` with the encoder over a request's pictures, sound or text in front."""
    (part,) = encoder.compute_part_times(1.0)
    preceding = EncoderTime(
        seconds=float(np.asarray(part.seconds)),
        flops=float(part.work.flops),
        moved_bytes=float(part.work.moved_bytes),
        compute_bound_seconds=float(part.work.compute_bound_seconds),
    )
    return replace(decoder, preceding=preceding)
