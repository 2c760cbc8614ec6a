"""Longest sequence of a training step whose blocks run over different positions."""

from collections.abc import Callable

from service.planning.memory.training import estimate_training_memory
from service.planning.models.positions import SampleShape
from service.planning.models.profile import ModelProfile
from service.planning.models.profile.sampled import training_profile
from service.planning.parallelism import Parallelism
from service.planning.software.overhead import DeviceOverhead
from service.planning.workload import TrainingWorkload

LONGEST = 2**24
"""Maximum tokens of a sequence that is searched."""


def has_variable_length(profile: ModelProfile) -> bool:
    """Returns true if one of the inputs is a sequence of tokens whose length the model does not set."""
    inputs = profile.sampled.inputs if profile.sampled else ()
    return any(item.kind == "tokens" and item.length is None for item in inputs)


def find_longest_sampled_sequence(
    profile: ModelProfile,
    sample: SampleShape,
    workload: TrainingWorkload,
    layout: Parallelism,
    *,
    usable_bytes: float,
    overhead: DeviceOverhead,
) -> int:
    """Returns the most tokens of a sequence that every stage holds in ``usable_bytes``, all else equal.

    Tokens that an encoder reads stay as many as the decoder's where they are equal. No closed form sums over
    blocks of different positions.
    """
    architecture = profile.sampled
    if architecture is None:
        return 0
    follows = sample.source_tokens == sample.tokens

    def compute_excess(tokens: int) -> float:
        longer = sample._replace(tokens=tokens, source_tokens=tokens if follows else sample.source_tokens)
        found = training_profile(profile, architecture, longer)
        return estimate_training_memory(found, workload, layout, overhead)[0].total_bytes - usable_bytes

    return _find_last_fitting(compute_excess)


def _find_last_fitting(excess: Callable[[int], float]) -> int:
    """Returns the largest count whose ``excess`` is not above 0; 0 if none.

    ``excess`` grows and is nearly a parabola. Regula falsi between the two counts that enclose it, bisection
    where that is slow.
    """
    low, high = 1, LONGEST
    below, above = excess(low), excess(high)
    if below > 0.0:
        return 0
    if above <= 0.0:
        return high
    halves = False
    while high - low > 1:
        middle = (low + high) // 2
        if not halves:
            share = (-below / (above - below)) ** 0.5 if high > 2 * low else -below / (above - below)
            middle = min(max(low + int((high - low) * share), low + 1), high - 1)
        found, width = excess(middle), high - low
        if found <= 0.0:
            low, below = middle, found
        else:
            high, above = middle, found
        halves = not halves and high - low > width // 2
    return low
