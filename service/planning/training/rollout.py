"""Time in which a policy generates the sequences that it is trained on.

All sequences of a rollout begin at a time. As many as the cache holds run on each replica; a prompt is read
once for all its samples, then each step gives every sequence a token, until all sequences of a replica are
done:

    rollout = sequences / replicas x (prefill / samples + (responses - 1) x step of held / held)
    + (longest - responses) x step of one

Prefill and steps are iterations of a serving engine, steps half-way through the response. The last term is
the tail of uneven responses: a step is the time of its weights and of each sequence, and the sequences add
the same however they are spread over steps.
"""

from typing import NamedTuple

from service.planning.figures import larger
from service.planning.hardware.calibration import Calibration
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.collectives import build_fabric
from service.planning.inference import IterationBatch, IterationModel, IterationTime, build_iteration_model
from service.planning.memory.capacity import count_fitting_requests
from service.planning.memory.layout import select_inference_layout
from service.planning.models.profile import ModelProfile
from service.planning.operators import TimeBound
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES
from service.planning.quantity import IntervalFactors, Quantity
from service.planning.training import FurtherPhase, StepSeconds
from service.planning.workload import InferenceWorkload, Rollout, TrainingWorkload

BATCHED_TOKENS = 8192
"""Tokens of one iteration of the engine, vLLM's default on a device of a data centre."""
BLOCK_TOKENS = 16
MOST_REQUESTS = 1024
"""Maximum sequences of a replica at a time, verl's default (`rollout.max_num_seqs`)."""
_LEAST_REQUESTS = 16
"""Sequences that a replica holds per device, if there are as many."""


class RolloutGeneration(NamedTuple):
    """One rollout: its seconds, its replicas and the sequences that each holds at a time.

    ``held`` is 0 where not one fits.
    """

    seconds: Quantity
    bound: TimeBound
    layout: Parallelism
    held: int


def _build_inference_workload(
    workload: TrainingWorkload, rollout: Rollout, requests: int
) -> InferenceWorkload:
    width = workload.recipe.activations
    return InferenceWorkload(
        weight_format=width,
        cache_format=width,
        input_tokens=rollout.prompt_tokens,
        output_tokens=workload.sequence_length - rollout.prompt_tokens,
        concurrency=max(1, requests),
        batched_tokens=BATCHED_TOKENS,
        block_tokens=BLOCK_TOKENS,
        memory_fraction=rollout.memory_fraction,
        most_requests=MOST_REQUESTS,
    )


def _select_replica_layout(
    profile: ModelProfile, workload: TrainingWorkload, rollout: Rollout, sequences: int, cluster: Cluster
) -> Parallelism:
    devices = rollout.devices or cluster.accelerator_count
    if rollout.tensor is not None:
        return Parallelism(tensor=rollout.tensor, data=max(1, devices // rollout.tensor))
    capacity = cluster.accelerator.capacity_bytes
    return select_inference_layout(
        profile,
        _build_inference_workload(workload, rollout, min(sequences, _LEAST_REQUESTS * devices)),
        devices=devices,
        per_node=cluster.accelerators_per_node,
        usable_bytes=None if capacity is None else capacity.value * rollout.memory_fraction,
    )


def estimate_generation(
    profile: ModelProfile,
    workload: TrainingWorkload,
    sequences: int,
    *,
    cluster: Cluster,
    calibration: Calibration,
    spread: IntervalFactors,
) -> RolloutGeneration | None:
    """Estimates one rollout of ``sequences``; None without generation or known rates of the device.

    ``spread`` is the residual interval of serving.
    """
    rollout, capacity = workload.rollout, cluster.accelerator.capacity_bytes
    if rollout is None:
        return None
    layout = _select_replica_layout(profile, workload, rollout, sequences, cluster)
    each = max(1, -(-sequences // layout.data))
    engine = _build_inference_workload(workload, rollout, each * layout.data)
    model = build_iteration_model(profile, engine, layout, cluster=cluster, calibration=calibration)
    if model is None:
        return None
    held = min(each, MOST_REQUESTS)
    if capacity is not None:
        limit = capacity.value * rollout.memory_fraction
        held = min(held, count_fitting_requests(profile, engine, layout, limit))
    running = max(1, held)
    found = _estimate_rollout_seconds(model, rollout, engine, each=each, running=running)
    basis = model.machine.rates.get_work_basis(model.narrow)
    return RolloutGeneration(spread.around(found.seconds, basis), found.bound, layout, held)


class _GeneratedTokens(NamedTuple):
    seconds: float
    bound: TimeBound


def _estimate_rollout_seconds(
    model: IterationModel, rollout: Rollout, engine: InferenceWorkload, *, each: int, running: int
) -> _GeneratedTokens:
    """Returns the seconds in which a replica generates ``each`` sequences, ``running`` of them at a time."""
    prompt, outputs = engine.input_tokens, engine.output_tokens
    computed = each * prompt / rollout.samples
    full = IterationBatch(0.0, 0.0, BATCHED_TOKENS, prompt / 2.0, BATCHED_TOKENS * rollout.samples / prompt)
    prefill = computed / BATCHED_TOKENS * model.compute_time(full).seconds
    context = prompt + outputs / 2.0

    def time_decode_step(requests: float) -> IterationTime:
        return model.compute_time(IterationBatch(requests, requests * context))

    decode, steps = time_decode_step(running), larger(0.0, outputs - 1.0)
    beyond = (rollout.longest_tokens or outputs) - outputs
    seconds = prefill + each / running * steps * decode.seconds + beyond * time_decode_step(1).seconds
    if prefill > each / running * steps * decode.seconds:
        return _GeneratedTokens(seconds, TimeBound.COMPUTE)
    shares = {
        TimeBound.HOST: decode.host + decode.launch,
        TimeBound.COMMUNICATION: decode.collectives,
        TimeBound.COMPUTE: decode.compute_bound_seconds,
    }
    shares[TimeBound.MEMORY] = decode.seconds - sum(shares.values())
    return _GeneratedTokens(seconds, max(shares, key=lambda bound: shares[bound]))


def synchronization_seconds(
    profile: ModelProfile,
    workload: TrainingWorkload,
    generated: RolloutGeneration,
    *,
    training: Parallelism,
    cluster: Cluster,
    calibration: Calibration,
) -> float:
    """Returns the seconds in which every device of a replica gets its part of the weights, per rollout.

    They pass over the network where the training devices hold them in several domains, or are others.
    """
    fabric = build_fabric(cluster, calibration.links.value)
    width = ELEMENT_BYTES[workload.recipe.activations]
    part = profile.parameter_count * width / (generated.layout.tensor * generated.layout.pipeline)
    apart = workload.rollout is not None and workload.rollout.devices > 0
    across = cluster.accelerator_count > cluster.domain and (apart or training.devices > cluster.domain)
    return part / (fabric.inter if across else fabric.intra).bytes_per_second


def add_generation(step: StepSeconds, rollout: Rollout, of: RolloutGeneration, sent: float) -> StepSeconds:
    """Adds to a step its share of a rollout; ``sent`` are the seconds in which the engine gets new weights.

    Generation ahead is waited for where it takes longer than all the rest.
    """
    shared = rollout.steps * rollout.epochs
    passing = of.seconds.value / shared
    sending = FurtherPhase("weight_synchronization", sent / shared, TimeBound.COMMUNICATION)
    waited = larger(0.0, passing - step.total - sending.seconds) if rollout.ahead else passing
    return step.prepend_phases(FurtherPhase("generation", waited, of.bound), sending)


def training_cluster(cluster: Cluster, rollout: Rollout | None) -> Cluster:
    """Returns the devices that train."""
    if rollout is None or not rollout.devices:
        return cluster
    count = cluster.accelerator_count - rollout.devices
    per_node = min(cluster.accelerators_per_node, count)
    return cluster._replace(accelerator_count=count, accelerators_per_node=per_node)
