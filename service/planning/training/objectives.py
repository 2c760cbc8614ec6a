"""Further passes of an objective beside the forward and the backward pass of its model.

DPO scores every sequence with a frozen copy (Rafailov et al. 2023), SimPO and ORPO do without one (Meng et
al. 2024; Hong et al. 2024). A distillation runs its teacher (Hinton et al. 2015). A policy scores its
generated sequences once more, and so does a reference; PPO adds a reward model and a critic that is trained
as well (Ouyang et al. 2022; Schulman et al. 2017), GRPO a reward model where one is given (Shao et al. 2024).
"""

from typing import NamedTuple

from service.planning.memory.training import relative_size
from service.planning.models.profile import ModelProfile
from service.planning.workload import TrainingObjective, TrainingWorkload


class FurtherPass(NamedTuple):
    """A forward pass over the trained sequences, or a whole training pass.

    ``size`` is in parameters of the trained model, ``times`` the number of passes of a sequence for each time
    that it is trained on.
    """

    name: str
    size: float
    times: float = 1.0
    trained: bool = False


def list_further_passes(profile: ModelProfile, workload: TrainingWorkload) -> tuple[FurtherPass, ...]:
    """Returns the passes of the models beside the trained one, in their order."""
    match workload.objective:
        case TrainingObjective.DPO:
            return (FurtherPass("reference_forward", 1.0),)
        case TrainingObjective.DISTILLATION:
            return (FurtherPass("teacher_forward", relative_size(workload.teacher_parameters, profile)),)
        case TrainingObjective.PPO | TrainingObjective.GRPO:
            return _list_policy_passes(profile, workload)
        case _:
            return ()


def _list_policy_passes(profile: ModelProfile, workload: TrainingWorkload) -> tuple[FurtherPass, ...]:
    once = 1.0 / workload.rollout.epochs if workload.rollout else 1.0
    passes = [FurtherPass("policy_forward", 1.0, once), FurtherPass("reference_forward", 1.0, once)]
    critic = workload.objective is TrainingObjective.PPO
    if critic or workload.reward_parameters is not None:
        passes.append(FurtherPass("reward_forward", relative_size(workload.reward_parameters, profile), once))
    if critic:
        size = relative_size(workload.critic_parameters, profile)
        passes.append(FurtherPass("critic_forward", size, once))
        passes.append(FurtherPass("critic_training", size, trained=True))
    return tuple(passes)


def generated_share(workload: TrainingWorkload) -> float:
    """Returns the forward passes that generation amounts to, for each time that a sequence is trained on.

    A prompt is read once for all its samples.
    """
    rollout = workload.rollout
    if rollout is None:
        return 0.0
    prompts = rollout.prompt_tokens * (1.0 - 1.0 / rollout.samples)
    return (1.0 - prompts / workload.sequence_length) / rollout.epochs
