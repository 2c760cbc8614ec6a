"""What a run is of, as a tenant's own measured runs are told apart."""

import math

from service.planning.hardware.cluster import Cluster
from service.planning.hardware.distance import System
from service.planning.hardware.local_evidence import Group, Setting
from service.planning.models.profile import Profile
from service.planning.parallelism import Parallelism
from service.planning.workload import InferenceWorkload, TrainingWorkload


def load_of(*amounts: float) -> tuple[float, ...]:
    """Logarithms of what a load is made of; less than one counts as one."""
    return tuple(math.log(max(amount, 1.0)) for amount in amounts)


def trained_setting(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, cluster: Cluster | None
) -> Setting:
    """A model in training."""
    device, count = (
        (None, layout.devices) if cluster is None else (cluster.accelerator.id, cluster.accelerator_count)
    )
    return Setting(
        group=Group("training", workload.framework.value, device, profile.parameter_count),
        system=(
            workload.recipe,
            workload.optimizer,
            workload.adaptation,
            workload.objective,
            workload.offload,
            workload.kernel,
        ),
        layout=(layout, workload.recomputation, workload.interval, workload.fusion),
        load=load_of(workload.micro_batch_size, workload.sequence_length, count),
    )


def held_setting(
    system: System, profile: Profile, workload: InferenceWorkload, layout: Parallelism
) -> Setting:
    """What a served model holds in memory."""
    requests = workload.mean_requests(int(layout.data))
    return Setting(
        group=Group("held", system.engine, system.accelerator, profile.parameter_count),
        system=(system.release, workload.storage.name, workload.cache_format, workload.cuda_graphs),
        layout=layout._replace(data=layout.expert),
        load=load_of(requests, workload.input_tokens, workload.output_tokens),
    )
