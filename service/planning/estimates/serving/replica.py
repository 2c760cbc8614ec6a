"""One replica of a case: its server, its load, and the proposals of tokens."""

from service.planning.cases import InferenceCase, RequestLoad, TokenProposals
from service.planning.inference import (
    ArrivalProcess,
    Arrivals,
    BatchScheduler,
    LengthDistribution,
    ReplicaLoad,
    ReplicaServer,
    Speculation,
    build_fixed_lengths,
    build_iteration_model,
)
from service.planning.memory.capacity import compute_fitting_requests
from service.planning.memory.serving import estimate_inference_memory
from service.planning.workload import HorizonUnit


def build_server(case: InferenceCase, held: float | None) -> ReplicaServer:
    """Builds one replica of the engine: ``expert`` ranks, each with its own batch and cache."""
    workload, layout, asked = case.workload, case.layout, case.load
    rules, ranks = workload.rules, layout.expert
    most = workload.most_requests
    each = asked.inputs.mean + asked.outputs.mean + workload.block_tokens / 2.0
    static = workload.is_static
    return ReplicaServer(
        most_requests=None if most is None else most * ranks,
        batched_tokens=max(1, workload.batched_tokens or int(asked.inputs.values[-1]))
        * (1 if rules.ranks_share_tokens else ranks),
        cache_tokens=None if held is None or held < 1.0 else held * each,
        block_tokens=workload.block_tokens,
        chunked_prefill=workload.chunks_prefill,
        scheduler=BatchScheduler.STATIC if static else BatchScheduler.CONTINUOUS,
        pipeline=layout.pipeline,
        mixed_prefill=rules.mixes_prefill or (workload.chunks_prefill and not rules.chunks_prefill),
        reserved_output=1.0 if rules.admits_whole or not rules.paged else 0.0,
        ranks=ranks,
    )


def count_replica_requests(case: InferenceCase, limit_bytes: float) -> float:
    """Returns the requests of the mean length that a replica holds, with their memory beside tokens."""
    layout = case.layout
    workload = case.workload._replace(concurrency=layout.data)
    memory = estimate_inference_memory(case.profile, workload, layout)
    return compute_fitting_requests(memory, workload, limit_bytes) * layout.expert


def build_load(case: InferenceCase, replicas: int) -> ReplicaLoad:
    """Returns the load of one of ``replicas``: an even share."""
    workload, asked = case.workload, case.load
    horizon = workload.horizon
    burst = None
    if asked.concurrency is not None and horizon and horizon.unit is HorizonUnit.REQUESTS:
        burst = horizon.amount / replicas
    inputs = LengthDistribution(asked.inputs.mean, *asked.inputs)
    outputs = (
        LengthDistribution(asked.outputs.mean, *asked.outputs)
        if workload.output_tokens
        else build_fixed_lengths(0.0)
    )
    return ReplicaLoad(
        inputs=inputs,
        outputs=outputs,
        concurrency=None if asked.concurrency is None else asked.concurrency / replicas,
        rate_per_second=None if asked.rate_per_second is None else asked.rate_per_second / replicas,
        arrivals=_build_arrivals(asked, replicas),
        burst_requests=burst,
        prefix_hit_rate=asked.prefix_hit_rate,
    )


def _build_arrivals(load: RequestLoad, replicas: int) -> Arrivals:
    """Returns the arrivals at one replica; replicas take the requests of a trace in turn."""
    times = load.at_seconds[::replicas]
    if len(times) > 1 and times[-1] > times[0]:
        return Arrivals(ArrivalProcess.TRACE, times)
    return Arrivals(ArrivalProcess.UNIFORM if load.is_uniform else ArrivalProcess.POISSON)


def build_speculation(case: InferenceCase, proposals: TokenProposals) -> Speculation:
    """Builds the proposals of tokens: by a draft on the same devices, a layer of the model, or the text."""
    workload, layout = case.workload, case.layout
    draft, share = workload.draft, 0.0
    model = None
    if draft is not None:
        alongside = workload._replace(weight_format=draft.stored.compute, stored=draft.stored, draft=None)
        shared = layout._replace(pipeline=1, expert=1, expert_tensor=None)
        model = build_iteration_model(
            draft.profile, alongside, shared, cluster=case.cluster, calibration=case.curves.calibration
        )
    elif proposals.method == "mtp":
        share = 1.0 / max(case.profile.block_count, 1)
    return Speculation(proposals.tokens, proposals.acceptance_rate, model, share)
