"""Settings of runs, by which a tenant's own measured runs are told apart."""

import math

from service.planning.cases import InferenceCase, TrainingCase
from service.planning.hardware.local_evidence import RunGroup, RunSetting
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.workload import TrainingWorkload


def build_load_logarithms(*amounts: float) -> tuple[float, ...]:
    """Returns the logarithms of the amounts of a load; amounts below one count as one."""
    return tuple(math.log(max(amount, 1.0)) for amount in amounts)


def build_training_setting(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    device: str | None,
    device_count: int,
) -> RunSetting:
    """Returns the setting of a model in training; ``device`` is None where the question names none."""
    return RunSetting(
        group=RunGroup("training", workload.framework.value, device, profile.parameter_count),
        system=(
            workload.recipe,
            workload.optimizer,
            workload.adaptation,
            workload.objective,
            workload.offload,
            workload.kernel,
        ),
        layout=(layout, workload.recomputation, workload.interval, workload.fusion),
        load=build_load_logarithms(workload.micro_batch_size, workload.sequence_length, device_count),
    )


def build_case_setting(case: TrainingCase) -> RunSetting:
    """Returns the setting of a training case."""
    device, count = case.accelerator_id, case.cluster.accelerator_count
    return build_training_setting(case.profile, case.workload, case.layout, device, count)


def build_memory_setting(case: InferenceCase) -> RunSetting:
    """Returns the setting of a served model whose memory is estimated."""
    profile, workload = case.resident
    system, layout = case.system, case.layout
    requests = workload.mean_requests(int(layout.data))
    return RunSetting(
        group=RunGroup("held", system.engine, system.accelerator, profile.parameter_count),
        system=(system.release, workload.storage.name, workload.cache_format, workload.cuda_graphs),
        layout=layout._replace(data=layout.expert),
        load=build_load_logarithms(requests, workload.input_tokens, workload.output_tokens),
    )
