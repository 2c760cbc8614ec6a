"""Rates of a training run, and the rollouts of a policy."""

from typing import NamedTuple

from service.planning.estimates.runs import TrainingRun
from service.planning.quantity import Quantity, combine, inverted, scaled
from service.planning.training import ModelledTime, TrainingTime, unmasked_flops_per_token


class TrainingRates(NamedTuple):
    """Rates of a training run; None for those of a model that takes no tokens, or of an unknown step."""

    samples_per_second: Quantity
    model_flops_utilization: Quantity
    hardware_flops_utilization: Quantity
    hardware_flops_per_second_per_device: Quantity
    model_flops_per_second_per_device: Quantity
    unmasked_flops_per_second_per_device: Quantity
    """FLOPs that count attention without its mask, as many publications do."""
    tokens_per_second: Quantity | None = None
    tokens_per_second_per_device: Quantity | None = None
    step_seconds: Quantity | None = None


def estimate_training_rates(run: TrainingRun, time: TrainingTime | ModelledTime) -> TrainingRates:
    """Returns the rates of a run of a known time; a gap in its notes where its step is not known."""
    case = run.case
    profile, workload, devices = case.profile, case.workload, float(case.cluster.accelerator_count)
    rate = combine(lambda s: 1.0 / s, inverted(time.seconds_per_token))
    found = TrainingRates(
        scaled(rate, 1.0 / workload.sample_tokens),
        time.model_flops_utilization,
        time.hardware_flops_utilization,
        scaled(rate, time.flops.hardware / devices),
        scaled(rate, time.flops.model / devices),
        scaled(rate, unmasked_flops_per_token(profile, workload) / devices),
    )
    tokens_each = run.tokens_of_sample
    if tokens_each is not None:
        found = found._replace(
            tokens_per_second=scaled(rate, tokens_each),
            tokens_per_second_per_device=scaled(rate, tokens_each / devices),
        )
    if case.batch_known:
        return found._replace(step_seconds=scaled(time.seconds_per_token, case.step_tokens))
    detail = "the sequences of a step do not follow from the question"
    run.notes.add_gap("/step_seconds", "BATCH_REQUIRED", detail)
    return found


class RolloutRates(NamedTuple):
    """One rollout of a policy, and the replicas that generate it."""

    seconds: Quantity
    sequences: int
    generated_tokens_per_second: Quantity
    replicas: int
    devices_per_replica: int
    sequences_per_replica: int


def estimate_rollout_rates(run: TrainingRun) -> RolloutRates | None:
    """Returns the rates of a run's rollouts; None for a run without any."""
    generated, rollout, case = run.generated, run.case.workload.rollout, run.case
    if not generated or rollout is None:
        return None
    workload, engines = case.workload, generated.layout
    sequences = workload.sequences * workload.micro_batches * case.layout.data * rollout.steps
    responses = sequences * (workload.sequence_length - rollout.prompt_tokens)
    return RolloutRates(
        generated.seconds,
        sequences,
        combine(lambda seconds: responses / seconds, inverted(generated.seconds)),
        engines.data,
        engines.tensor * engines.pipeline,
        generated.held,
    )
