"""Global batch of a training question that states none."""

from typing import Final, NamedTuple

from pydantic import MISSING

from service.planning.models.layers import Interaction
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism, list_divisors
from service.planning.workload import GENERATING, AdaptationKind, TrainingObjective, TrainingWorkload
from service.resolve.configuration import TrainingSite
from service.resolve.sample import SampledWorkload
from service.schemas.workloads import TrainingWorkloadInput


class PublishedBatch(NamedTuple):
    """Batch of published runs of a kind: sequences or samples of a step, or its tokens."""

    practice: str
    sequences: int = 0
    tokens: int = 0


_PRETRAINING: Final = (
    (1e9, PublishedBatch("0.5 million tokens below 1e9 parameters (Brown et al. 2020)", tokens=2**19)),
    (6e9, PublishedBatch("1 million tokens below 6e9 parameters (Brown et al. 2020)", tokens=2**20)),
    (1e11, PublishedBatch("4 million tokens below 1e11 parameters (Touvron et al. 2023)", tokens=2**22)),
)
_LARGEST: Final = PublishedBatch(
    "16 million tokens from 1e11 parameters on (Grattafiori et al. 2024)", tokens=2**24
)
_TUNING: Final = PublishedBatch("64 sequences of fine-tuning (Touvron et al. 2023)", sequences=64)
_ROLLOUT: Final = PublishedBatch("512 generated sequences (Touvron et al. 2023)", sequences=512)
_SAMPLES: Final = PublishedBatch("4,096 samples (Dosovitskiy et al. 2021)", sequences=4096)
_CLICKS: Final = PublishedBatch("65,536 samples of a recommender (MLPerf Training)", sequences=2**16)
"""GPT-3, table 2.1: 0.5 million tokens to 760M parameters, 1 million to 2.7B. Llama and Llama 2, 7B to 70B:
4 million. Llama 3 405B, section 3.4.1: 16 million after the first 2.87e12 tokens. Llama 2, section 3: 64
sequences of supervised fine-tuning, 512 of PPO; DPO, appendix B: 64 pairs. ViT, table 3: 4,096 pictures.
MLPerf Training, DLRM-DCNv2: 65,536 samples."""


def fill_global_batch(
    given: TrainingWorkloadInput,
    sampled: SampledWorkload[TrainingWorkload],
    site: TrainingSite,
    notes: AnswerNotes,
) -> TrainingWorkloadInput:
    """Returns the workload with the batch of published runs of its kind, where it states no batch at all.

    A stated micro-batch or number of micro-batches is kept as it is, and so is a question without devices or
    without shapes, whose answer does not depend on a batch.
    """
    stated = (given.global_batch_size, given.gradient_accumulation_steps, given.micro_batch_size)
    if any(each is not MISSING for each in stated) or given.optimizer_in_backward or site.cluster is None:
        return given
    if not sampled.profile.shapes_known or sampled.unknown is not None:
        return given
    published = find_published_batch(sampled.profile, sampled.workload)
    sequences = published.sequences or published.tokens // given.sequence_length
    limited = _limit_batch(sequences, given, site)
    layout = site.layout
    batch = divide_batch(limited, site.devices) if layout is None else divide_stated_batch(limited, layout)
    reason = f"a step of published runs: {published.practice}, and at least a sequence for each node"
    notes.fill("/workload/global_batch_size", str(batch), "service", reason)
    return given.model_copy(update={"global_batch_size": batch})


def find_published_batch(profile: ModelProfile, workload: TrainingWorkload) -> PublishedBatch:
    """Returns the batch of published runs of a kind: by objective, sample or size of the model."""
    if workload.objective in GENERATING:
        return _ROLLOUT
    if (
        workload.objective is not TrainingObjective.PRETRAINING
        or workload.adaptation.kind is not AdaptationKind.FULL
    ):
        return _TUNING
    if profile.sample is not None and not profile.generates:
        return _CLICKS if _is_recommender(profile) else _SAMPLES
    return next((batch for most, batch in _PRETRAINING if profile.parameter_count < most), _LARGEST)


def divide_batch(sequences: int, devices: int) -> int:
    """Returns the batch next to ``sequences`` that devices divide, whatever their layout.

    A batch with fewer sequences than devices is the next divisor of their number, so that devices can share
    sequences.
    """
    if sequences >= devices:
        return round(sequences / devices) * devices
    return next(each for each in list_divisors(devices) if each >= sequences)


def divide_stated_batch(sequences: int, layout: Parallelism) -> int:
    """Returns the batch next to ``sequences`` of whole micro-batches, in whole groups of stages if it can."""
    share = layout.data * layout.pipeline
    if sequences < share:
        share = layout.data
    return max(1, round(sequences / share)) * share


def _limit_batch(sequences: int, given: TrainingWorkloadInput, site: TrainingSite) -> int:
    """Returns at least a sequence for each node, and at most the sequences of the whole run."""
    most = sequences = max(sequences, site.devices // site.per_node)
    if given.total_samples is not MISSING:
        most = given.total_samples
    if given.total_tokens is not MISSING:
        most = given.total_tokens // given.sequence_length
    return max(1, min(sequences, most))


def _is_recommender(profile: ModelProfile) -> bool:
    """Returns true for a model that multiplies the features of a sample with each other."""
    return profile.sampled is not None and any(
        isinstance(layer, Interaction) for block in profile.sampled.list_blocks() for layer in block.layers
    )
