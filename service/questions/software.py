"""The software that a question names."""

import re

from pydantic import MISSING

from service.questions.workloads import TrainingWorkloadInput, WorkloadInput


def software_of(workload: WorkloadInput) -> str:
    """The framework or engine that a workload names, in one spelling; empty where it names none."""
    named = workload.framework if isinstance(workload, TrainingWorkloadInput) else workload.engine
    return "" if named is MISSING else re.sub(r"[^a-z0-9]+", "_", named.name.lower()).strip("_")
