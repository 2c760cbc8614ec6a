"""Devices of a case: their rate, their usable memory, and the settings that an engine starts with."""

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Accelerator, Cluster
from service.planning.precision import COMPUTE_FORMATS, NumberFormat
from service.planning.software.engines import EngineSettings
from service.planning.workload import InferenceWorkload, TrainingWorkload


def get_usable_bytes(cluster: Cluster, workload: TrainingWorkload | InferenceWorkload) -> float | None:
    """Returns the bytes of one device that the workload may use; None where the capacity is unknown."""
    capacity = cluster.accelerator.capacity_bytes
    if capacity is None:
        return None
    fraction = workload.memory_fraction if isinstance(workload, InferenceWorkload) else 1.0
    return capacity.value * fraction


def compute_peak(
    cluster: Cluster, workload: TrainingWorkload | InferenceWorkload
) -> tuple[NumberFormat, float]:
    """Returns the format in which the workload multiplies on the accelerator, and its dense rate in FLOP/s.

    Raises :class:`PlanningError` where the accelerator has no known rate of such a format, or where nothing
    here describes how it runs.
    """
    if cluster.accelerator.is_on_chip:
        raise PlanningError(
            "NOT_MODELLED",
            "/cluster/accelerator",
            f"{cluster.accelerator.id} has memory on its chips only: a model lies on as many as hold it, and"
            " a compiler schedules what passes between them, which is not modelled",
        )
    if isinstance(workload, TrainingWorkload):
        formats: tuple[NumberFormat, ...] = (workload.recipe.compute,)
        pointer = "/workload/precision"
    else:
        formats = COMPUTE_FORMATS[workload.weight_format]
        pointer = "/workload/weight_precision"
    peak = cluster.accelerator.find_peak(*formats)
    if peak is None:
        rates = cluster.accelerator.peak_flops_per_second
        known = ", ".join(rates) if rates else "none"
        raise PlanningError(
            "PEAK_RATE_UNKNOWN",
            pointer,
            f"no dense {' or '.join(formats)} rate is known for {cluster.accelerator.id}; known: {known}",
        )
    return peak


def start_engine(
    workload: InferenceWorkload,
    engine: EngineSettings | None,
    context_tokens: int | None,
    accelerator: Accelerator,
    devices: int,
) -> InferenceWorkload:
    """Returns the workload within the bounds of its engine, as given or as the engine sets them.

    ``context_tokens`` is the length that the model was built for, ``devices`` the number of one replica.
    """
    if engine is None:
        return workload
    rules, capacity, length = engine.rules, accelerator.capacity_bytes, engine.max_model_len
    bounds = engine.defaults_on(
        capacity_bytes=capacity.value if capacity else 0.0,
        device=accelerator.id,
        model_tokens=context_tokens,
        devices=devices,
    )
    tokens, requests, block = engine.max_batched_tokens, engine.max_num_seqs, engine.block_tokens
    fraction = engine.memory_fraction
    return workload._replace(
        batched_tokens=bounds.batched_tokens if tokens is None else tokens,
        most_requests=bounds.most_requests if requests is None else requests,
        block_tokens=rules.block_tokens if block is None else block,
        memory_fraction=bounds.memory_fraction if fraction is None else fraction,
        cuda_graphs=engine.cuda_graphs,
        warmed_up=engine.warmed_up,
        graph_requests=bounds.graph_requests,
        position_tokens=(context_tokens or 0) if rules.rotary_tables else 0,
        reserved_tokens=0 if length is None or rules.paged else length,
        device_layers=engine.device_layers,
    )
