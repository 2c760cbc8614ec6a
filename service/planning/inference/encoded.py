"""Decoders with an encoder: pictures, sound or a text is encoded before the first token.

The blocks over tokens are the decoder, which iterations run. The tower with its projector, or the encoder,
before it is a separate pass (``passes``) in the iteration that a prompt ends in.
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
    """Builds the profile of the blocks that run over tokens, with the heads."""
    rows = zip(architecture.layers, architecture.list_blocks(), strict=True)
    kept = tuple(layer for layer, block in rows if not is_encoder_block(block, architecture))
    return build_profile(replace(architecture, layers=kept))


def is_encoder_read(profile: ModelProfile) -> bool:
    """Returns true if cross-attention reads the output of an encoder."""
    return any(work.cross and work.caches for work in profile.attention)


def add_encoder_pass(decoder: IterationModel, encoder: PassModel) -> IterationModel:
    """Adds the encoder pass over a request's pictures, sound or text to the iterations of ``decoder``."""
    (part,) = encoder.compute_part_times(1.0)
    preceding = EncoderTime(
        seconds=float(np.asarray(part.seconds)),
        flops=float(part.work.flops),
        moved_bytes=float(part.work.moved_bytes),
        compute_bound_seconds=float(part.work.compute_bound_seconds),
    )
    return replace(decoder, preceding=preceding)
