"""Intermediates of one iteration, and of a pass over a whole request."""

from service.planning.memory.serving.components import IterationBytes
from service.planning.memory.serving.weights import WIDE_BYTES
from service.planning.memory.stages import stage_share
from service.planning.models.profile import ModelProfile
from service.planning.models.profile.iteration import STREAM_COPIES
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES
from service.planning.workload import InferenceWorkload


def pass_bytes(workload: InferenceWorkload) -> float:
    """Returns the memory of a forward pass over one request: at 16 bit, or in FP32 where the weights are.

    It is not divided by tensor parallelism.
    """
    return workload.pass_elements * max(WIDE_BYTES, ELEMENT_BYTES[workload.weight_format])


def compute_iteration_bytes(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> IterationBytes:
    """Returns the live intermediates of one iteration, or of a tower before it where they are more."""
    if not workload.pass_elements:
        return _compute_decoder_bytes(profile, workload, layout)
    if not profile.generates:
        return IterationBytes(0.0, request=pass_bytes(workload))
    decoded = _compute_decoder_bytes(profile, workload, layout)
    return decoded._replace(least=max(decoded.least, pass_bytes(workload)))


def _compute_decoder_bytes(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> IterationBytes:
    rules, tensor, tokens = workload.rules, layout.tensor, workload.batched_tokens
    if rules.name is None:
        wide = 2.0 * profile.widest_elements + profile.inner_elements / tensor
        return IterationBytes(wide * tokens * WIDE_BYTES)
    stream = STREAM_COPIES * profile.widest_elements * rules.element_bytes
    size = stream + profile.iteration_elements.count_device_elements(tensor) * rules.element_bytes
    if rules.logit_bytes:
        logits = profile.vocabulary_size / tensor * rules.logit_bytes
        size = max(size, profile.widest_elements * rules.element_bytes + logits)
    if not tokens:
        # Whole prompts of all requests pass at once.
        return IterationBytes(0.0, request=size * int(workload.input_tokens))
    if rules.keeps_reduced and layout.tensor > 1:
        # Outputs of attention and feed-forward of each layer, until the pass ends.
        size += 2.0 * stage_share(profile, layout) * profile.block_count * stream / STREAM_COPIES
    if rules.scores_kept:
        # Each head's scores against the whole context in FP32, and their mask.
        heads = max((work.query_heads for work in profile.attention), default=0)
        scores = (heads / tensor + 1.0) * workload.context_tokens * rules.element_bytes
        return IterationBytes(size * tokens, stream * tokens, scores * tokens)
    return IterationBytes(size * tokens)
