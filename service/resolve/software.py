"""Resolution of the software that a question names."""

import re

from pydantic import MISSING

from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.distance import EvidenceSystem, parse_release
from service.schemas.workloads import InferenceWorkloadInput, TrainingWorkloadInput, WorkloadInput


def get_software_name(workload: WorkloadInput) -> str:
    """Returns the framework or engine of a workload, normalised; empty if it names none."""
    named = workload.framework if isinstance(workload, TrainingWorkloadInput) else workload.engine
    return "" if named is MISSING else re.sub(r"[^a-z0-9]+", "_", named.name.lower()).strip("_")


def resolve_system(workload: InferenceWorkloadInput, accelerator: Accelerator | None) -> EvidenceSystem:
    """Returns the system that evidence is compared with: the engine of a workload on an accelerator."""
    engine = workload.engine
    device = (None, None) if accelerator is None else (accelerator.id, accelerator.generation)
    if engine is MISSING:
        return EvidenceSystem(None, None, *device)
    version = None if engine.version is MISSING else engine.version
    return EvidenceSystem(get_software_name(workload), parse_release(version), *device)
