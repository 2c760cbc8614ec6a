"""Resolution of the rollouts of a policy: defaults applied, contradictions refused."""

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.notes import AnswerNotes
from service.planning.training.rollout import training_cluster
from service.planning.workload import GENERATING, Rollout, TrainingObjective
from service.schemas.rollouts import RolloutInput

GROUP_SAMPLES = 8
"""Default number of sequences in a group of grpo, as in TRL (`num_generations`)."""
_BESIDE_TRAINING, _ALONE = 0.5, 0.9


def _resolve_prompt_tokens(asked: RolloutInput, sequence_length: int) -> float:
    given, response = asked.prompt_tokens, asked.response_tokens
    if given is MISSING:
        prompt = sequence_length / 2 if response is MISSING else sequence_length - response
    else:
        prompt = given
    rest = sequence_length - prompt
    if prompt <= 0 or rest <= 0 or (response is not MISSING and response != rest):
        detail = (
            f"prompt and response must add up to sequence_length {sequence_length}, one token each at least"
        )
        raise PlanningError("ROLLOUT_LENGTH", "/workload/rollout", detail)
    return float(prompt)


def resolve_rollout(
    given: RolloutInput | MISSING, objective: TrainingObjective, sequence_length: int, notes: AnswerNotes
) -> Rollout | None:
    """Returns the rollouts of a policy, or None for objectives that generate nothing."""
    if objective not in GENERATING:
        if given is not MISSING:
            notes.warn("NOT_USED", "/workload/rollout", f"{objective.value} generates nothing")
        return None
    asked = RolloutInput() if given is MISSING else given
    separate = asked.placement == "separate"
    if separate != (asked.accelerator_count is not MISSING):
        detail = "accelerator_count must be given with placement separate, and only with it"
        raise PlanningError("ROLLOUT_PLACEMENT", "/workload/rollout/accelerator_count", detail)
    if asked.asynchronous and not separate:
        detail = "devices that train cannot generate at the same time: asynchronous needs placement separate"
        raise PlanningError("ROLLOUT_PLACEMENT", "/workload/rollout/asynchronous", detail)
    samples, fraction = asked.samples_per_prompt, asked.memory_fraction
    if samples is MISSING:
        samples = GROUP_SAMPLES if objective is TrainingObjective.GRPO else 1
    if fraction is MISSING:
        fraction = _ALONE if separate else _BESIDE_TRAINING
    prompt, longest = _resolve_prompt_tokens(asked, sequence_length), asked.longest_response_tokens
    if longest is not MISSING and longest < sequence_length - prompt:
        detail = f"the longest response must not be shorter than the mean of {sequence_length - prompt:.0f}"
        raise PlanningError("ROLLOUT_LENGTH", "/workload/rollout/longest_response_tokens", detail)
    return Rollout(
        prompt_tokens=prompt,
        samples=samples,
        steps=asked.steps_per_rollout,
        epochs=asked.epochs,
        devices=0 if asked.accelerator_count is MISSING else asked.accelerator_count,
        ahead=asked.asynchronous,
        tensor=None if asked.tensor is MISSING else asked.tensor,
        memory_fraction=fraction,
        longest_tokens=None if longest is MISSING else float(longest),
    )


def select_training_cluster(
    given: RolloutInput | MISSING, objective: TrainingObjective, cluster: Cluster
) -> Cluster:
    """Returns the devices that train. Refuses rollouts that need more devices than the cluster has."""
    if given is MISSING or objective not in GENERATING:
        return cluster
    total = cluster.accelerator_count
    apart = given.accelerator_count if given.placement == "separate" else MISSING
    devices = total if apart is MISSING else apart
    if given.tensor is not MISSING and devices % given.tensor:
        detail = f"tensor {given.tensor} does not divide the {devices} accelerators that generate"
        raise PlanningError("PARALLELISM_MISMATCH", "/workload/rollout/tensor", detail)
    if apart is MISSING:
        return cluster
    if apart >= total:
        detail = f"none of the {total} accelerators is left to train"
        raise PlanningError("ROLLOUT_PLACEMENT", "/workload/rollout/accelerator_count", detail)
    return training_cluster(cluster, Rollout(0.0, devices=apart))
