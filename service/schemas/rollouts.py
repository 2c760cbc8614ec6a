"""How a policy generates what it is trained on: the question, and what it comes to."""

from typing import Literal

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.workload import GENERATING, Objective, Rollout
from service.schemas.base import Degree, Input, Share, Size
from service.schemas.notes import Notes


class RolloutInput(Input):
    """How ppo and grpo generate their sequences; prompt and response together are sequence_length."""

    prompt_tokens: Size | MISSING = MISSING
    """Tokens of a sequence that are given. Defaults to what response_tokens leave, else to half of it."""
    response_tokens: Size | MISSING = MISSING
    """Tokens of a sequence that are generated, on average. Defaults to what prompt_tokens leave."""
    longest_response_tokens: Size | MISSING = MISSING
    """Tokens of the longest response of a rollout, until whose end engines work. Defaults to
    response_tokens."""
    samples_per_prompt: Degree | MISSING = MISSING
    """Sequences that begin with the same prompt: the group of grpo. Defaults to 8 for grpo, else to 1."""
    steps_per_rollout: Degree = 1
    """Optimizer steps that a rollout has sequences for: its sequences over the global batch."""
    epochs: Degree = 1
    """How often each sequence of a rollout is trained on."""
    placement: Literal["colocated", "separate"] = "colocated"
    """Whether the devices that train generate as well, in turn, or others of the cluster do."""
    accelerator_count: Degree | MISSING = MISSING
    """Devices of the cluster that generate and do not train; belongs to separate, and that needs it."""
    asynchronous: bool = False
    """Whether a rollout is generated while the one before is trained on; belongs to separate."""
    tensor: Degree | MISSING = MISSING
    """Devices of one replica of the engine. Defaults to as few as hold the model and some sequences."""
    memory_fraction: Share | MISSING = MISSING
    """Share of a device that the engine takes; defaults to 0.5 beside training (verl), else to 0.9 (vLLM)."""


GROUP_SAMPLES = 8
"""Sequences of a group of grpo where they are not given, as in TRL (`num_generations`)."""
_BESIDE_TRAINING, _ALONE = 0.5, 0.9


def _prompt_tokens(asked: RolloutInput, sequence_length: int) -> float:
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


def rollout_of(
    given: RolloutInput | MISSING, objective: Objective, sequence_length: int, notes: Notes
) -> Rollout | None:
    """The rollouts of a policy; None for objectives that generate nothing."""
    if objective not in GENERATING:
        if given is not MISSING:
            notes.warn("NOT_USED", "/workload/rollout", f"{objective.value} generates nothing")
        return None
    asked = RolloutInput() if given is MISSING else given
    separate = asked.placement == "separate"
    if separate != (asked.accelerator_count is not MISSING):
        detail = "accelerator_count belongs to placement separate, and that needs it"
        raise PlanningError("ROLLOUT_PLACEMENT", "/workload/rollout/accelerator_count", detail)
    if asked.asynchronous and not separate:
        detail = "devices that train cannot generate at the same time: placement separate can"
        raise PlanningError("ROLLOUT_PLACEMENT", "/workload/rollout/asynchronous", detail)
    samples, fraction = asked.samples_per_prompt, asked.memory_fraction
    if samples is MISSING:
        samples = GROUP_SAMPLES if objective is Objective.GRPO else 1
    if fraction is MISSING:
        fraction = _ALONE if separate else _BESIDE_TRAINING
    prompt, longest = _prompt_tokens(asked, sequence_length), asked.longest_response_tokens
    if longest is not MISSING and longest < sequence_length - prompt:
        detail = f"the longest response is not shorter than {sequence_length - prompt:.0f}, their mean"
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


def training_cluster(cluster: Cluster, rollout: Rollout | None) -> Cluster:
    """The devices that train."""
    if rollout is None or not rollout.devices:
        return cluster
    count = cluster.accelerator_count - rollout.devices
    per_node = min(cluster.accelerators_per_node, count)
    return cluster._replace(accelerator_count=count, accelerators_per_node=per_node)


def left_to_train(given: RolloutInput | MISSING, objective: Objective, cluster: Cluster) -> Cluster:
    """The devices of the question that train; refuses rollouts that its cluster has not the devices for."""
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
        detail = f"of {total} accelerators none is left to train"
        raise PlanningError("ROLLOUT_PLACEMENT", "/workload/rollout/accelerator_count", detail)
    return training_cluster(cluster, Rollout(0.0, devices=apart))
