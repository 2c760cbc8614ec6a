"""What a run is of, as measured runs of one's own are told apart."""

import math

from service.planning.cases import InferenceCase, TrainingCase
from service.planning.hardware.local_evidence import Group, Setting
from service.planning.models.profile import Profile
from service.planning.parallelism import Parallelism
from service.planning.workload import TrainingWorkload


def load_of(*amounts: float) -> tuple[float, ...]:
    """Logarithms of what a load is made of; less than one counts as one."""
    return tuple(math.log(max(amount, 1.0)) for amount in amounts)


def training_setting(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, device: str | None, device_count: int
) -> Setting:
    """A model in training; ``device`` is None where the question names none."""
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
        load=load_of(workload.micro_batch_size, workload.sequence_length, device_count),
    )


def case_setting(case: TrainingCase) -> Setting:
    """What a case of training is of."""
    device, count = case.accelerator_id, case.cluster.accelerator_count
    return training_setting(case.profile, case.workload, case.layout, device, count)


def memory_setting(case: InferenceCase) -> Setting:
    """What a served model is of whose memory is asked for."""
    profile, workload = case.resident
    system, layout = case.system, case.layout
    requests = workload.mean_requests(int(layout.data))
    return Setting(
        group=Group("held", system.engine, system.accelerator, profile.parameter_count),
        system=(system.release, workload.storage.name, workload.cache_format, workload.cuda_graphs),
        layout=layout._replace(data=layout.expert),
        load=load_of(requests, workload.input_tokens, workload.output_tokens),
    )
