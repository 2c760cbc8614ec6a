"""Benchmarks of a node without an accelerator: NumPy does the same kinds of work on its processor."""

from service.worker.benchmark import BenchmarkPreparer
from service.worker.preparing import find_preparers

PREPARE: dict[str, BenchmarkPreparer] = find_preparers(__name__, __path__)
"""Preparer of each kind of work, in the module of its name. Other kinds cannot be measured on a processor."""
