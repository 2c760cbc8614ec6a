"""Benchmarks of an NVIDIA accelerator. No library of CUDA is imported before a benchmark is prepared."""

from service.worker.benchmark import BenchmarkPreparer
from service.worker.preparing import find_preparers

PREPARE: dict[str, BenchmarkPreparer] = find_preparers(__name__, __path__)
"""Preparer of each kind of work, in the module of its name."""
