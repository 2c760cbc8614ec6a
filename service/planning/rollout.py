"""How long a policy generates the sequences that it is trained on.

All sequences of a rollout begin at a time. As many as the cache holds run on each replica; a prompt is read
once for all its samples, then each step gives every sequence a token. Replicas that have more to do go
through as many rounds:

    rollout = sequences / (replicas x held) x (prefill / samples + (responses - 1) x step of held)
              + (longest - responses) x step of one

Prefill and decode steps are those of serving. The last term is the tail of uneven responses: a step is what
its weights take and what each sequence adds, and the sequences add the same however they are spread over
steps.
"""

from typing import NamedTuple

from service.planning.calibration import Calibration
from service.planning.cluster import Cluster
from service.planning.collectives import fabric_of
from service.planning.curves import Efficiency
from service.planning.inference import serving_time
from service.planning.layout import inference_layout
from service.planning.memory.capacity import requests_that_fit
from service.planning.operators import Bound, Phase
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES
from service.planning.profile import Profile
from service.planning.quantity import Quantity, Spread, combine, scaled
from service.planning.training import FurtherPhase, StepSeconds
from service.planning.workload import InferenceWorkload, Rollout, TrainingWorkload

BATCHED_TOKENS = 8192
"""Tokens of one iteration of the engine, as vLLM takes them on a device of a data centre."""
BLOCK_TOKENS = 16
MOST_REQUESTS = 1024
"""Sequences of a replica at a time, verl's default (`rollout.max_num_seqs`)."""
_LEAST_REQUESTS = 16
"""For each of its devices a replica holds this many sequences, if there are as many."""


class Generation(NamedTuple):
    """One rollout: its seconds, the replicas that make it and the sequences that each holds at a time.

    ``held`` is 0 where not one fits.
    """

    seconds: Quantity
    bound: Bound
    layout: Parallelism
    held: int


def _engine(workload: TrainingWorkload, rollout: Rollout, requests: int) -> InferenceWorkload:
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


def _replicas(
    profile: Profile, workload: TrainingWorkload, rollout: Rollout, sequences: int, cluster: Cluster
) -> Parallelism:
    devices = rollout.devices or cluster.accelerator_count
    if rollout.tensor is not None:
        return Parallelism(tensor=rollout.tensor, data=max(1, devices // rollout.tensor))
    capacity = cluster.accelerator.capacity_bytes
    return inference_layout(
        profile,
        _engine(workload, rollout, min(sequences, _LEAST_REQUESTS * devices)),
        devices=devices,
        per_node=cluster.accelerators_per_node,
        usable_bytes=None if capacity is None else capacity.value * rollout.memory_fraction,
    )


def generation(
    profile: Profile,
    workload: TrainingWorkload,
    sequences: int,
    *,
    cluster: Cluster,
    peak_flops_per_second: float,
    efficiency: Efficiency,
    spread: Spread,
) -> Generation | None:
    """One rollout of ``sequences``; None where nothing is generated or the device's bandwidth is unknown."""
    rollout, bandwidth = workload.rollout, cluster.accelerator.bandwidth_bytes_per_second
    if rollout is None or bandwidth is None:
        return None
    layout = _replicas(profile, workload, rollout, sequences, cluster)
    each = max(1, -(-sequences // layout.data))
    engine = _engine(workload, rollout, each * layout.data)
    capacity = cluster.accelerator.capacity_bytes
    held = min(each, MOST_REQUESTS)
    if capacity is not None:
        limit = capacity.value * rollout.memory_fraction
        held = min(held, requests_that_fit(profile, engine, layout, limit))
    running = max(1, held)

    def phases(requests: int) -> tuple[Phase, ...]:
        served = serving_time(
            profile,
            engine._replace(concurrency=requests * layout.data),
            layout,
            peak_flops_per_second=peak_flops_per_second,
            bandwidth_bytes_per_second=bandwidth,
            efficiency=efficiency,
            spread=spread,
        )
        return served.phases

    prefill, *decode = phases(running)
    rounds = each / running
    parts = [scaled(prefill.seconds, rounds / rollout.samples)]
    parts += [scaled(phase.seconds, rounds) for phase in decode]
    beyond = (rollout.longest_tokens or engine.output_tokens) - engine.output_tokens
    if beyond and decode:
        parts.append(scaled(phases(1)[1].seconds, beyond / (engine.output_tokens - 1.0)))
    bound = max((prefill, *decode), key=lambda phase: phase.seconds.value).bound
    return Generation(combine(lambda *each: sum(each), *parts), bound, layout, held)


def synchronization_seconds(
    profile: Profile,
    workload: TrainingWorkload,
    generated: Generation,
    *,
    training: Parallelism,
    cluster: Cluster,
    calibration: Calibration,
) -> float:
    """Seconds in which every device of a replica gets its part of the trained weights, once a rollout.

    They come over the network where the devices that train hold them in several domains, or are others.
    """
    fabric = fabric_of(cluster, calibration.links.value)
    width = ELEMENT_BYTES[workload.recipe.activations]
    part = profile.parameter_count * width / (generated.layout.tensor * generated.layout.pipeline)
    apart = workload.rollout is not None and workload.rollout.devices > 0
    across = cluster.accelerator_count > cluster.domain and (apart or training.devices > cluster.domain)
    return part / (fabric.inter if across else fabric.intra).bytes_per_second


def generated_step(step: StepSeconds, rollout: Rollout, of: Generation, sent: float) -> StepSeconds:
    """A step with its share of a rollout; ``sent`` are the seconds in which the engine gets new weights.

    What is generated ahead is waited for where it takes longer than all the rest.
    """
    shared = rollout.steps * rollout.epochs
    passing = of.seconds.value / shared
    sending = FurtherPhase("weight_synchronization", sent / shared, Bound.COMMUNICATION)
    waited = max(0.0, passing - step.total - sending.seconds) if rollout.ahead else passing
    return step.beside(FurtherPhase("generation", waited, of.bound), sending)
