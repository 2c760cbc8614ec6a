"""Measures the time of a training step in process, on one core: one layout, 100,000 at once, whole answers.

``python -m bench.training``. Times are of the processor, so that a busy machine does not count.
"""

import json
import time
import timeit
from functools import partial
from typing import Any

import numpy as np

from bench.memory import WORKLOAD, deepseek_v3, llama_3_70b
from service.estimates.throughput import estimate_throughput
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.links import Link, LinkKind
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism, Sharding
from service.planning.training import estimate_step
from service.planning.workload import TrainingWorkload
from service.schemas.estimates import ThroughputEstimateRequest

LAYOUTS = 100_000
DEVICES = 1024


def _cluster() -> Cluster:
    accelerator = build_shipped_snapshot().accelerators["h100-sxm"].accelerator
    links = Link(LinkKind.NVLINK, 450e9, joined=8), Link(LinkKind.INFINIBAND, 50e9)
    return Cluster(accelerator, DEVICES, 8, None, *links)


def _layouts() -> tuple[Parallelism, TrainingWorkload]:
    # The physics takes arrays in the place of numbers: one element a layout.
    chosen = np.random.default_rng(0)
    tensor: Any = 2 ** chosen.integers(0, 4, LAYOUTS)
    pipeline: Any = 2 ** chosen.integers(0, 4, LAYOUTS)
    data: Any = DEVICES // (tensor * pipeline)
    one: Any = np.ones_like(tensor)
    layouts = Parallelism(tensor, pipeline, data, one, one, sharding=Sharding.ZERO_1)
    return layouts, WORKLOAD._replace(micro_batches=np.maximum(1, 4096 // data))


def measure(name: str, profile: ModelProfile) -> None:
    """Print milliseconds of one estimate and layouts a second."""
    cluster, calibration = _cluster(), build_shipped_snapshot().curves.calibration

    def step(layout: Parallelism, workload: TrainingWorkload) -> None:
        estimate_step(
            profile,
            workload,
            layout,
            cluster=cluster,
            calibration=calibration,
            compute_format=workload.recipe.compute,
        )

    one = Parallelism(8, 4, 32, sharding=Sharding.ZERO_1)
    step(one, WORKLOAD)
    single = (
        min(timeit.repeat(lambda: step(one, WORKLOAD), timer=time.process_time, number=20, repeat=5)) / 20
    )
    layouts, workload = _layouts()
    many = min(timeit.repeat(lambda: step(layouts, workload), timer=time.process_time, number=1, repeat=3))
    print(f"{name}: one estimate {single * 1e3:.2f} ms, {LAYOUTS / many:,.0f} layouts a second")


def measure_answers() -> None:
    """Print milliseconds of whole answers about a pipeline and about sharded replicas."""
    snapshot = build_shipped_snapshot()
    layouts: dict[str, dict[str, Any]] = {
        "pipeline": {"tensor": 8, "pipeline": 4, "data": 32, "sharding": "zero_1"},
        "sharded": {"data": DEVICES, "sharding": "zero_3"},
    }
    for name, layout in layouts.items():
        asked: dict[str, Any] = {
            "model": {"source": "catalog", "id": "llama-3.1-70b"},
            "cluster": {
                "accelerator": {"source": "catalog", "id": "h100-sxm"},
                "accelerator_count": DEVICES,
            },
            "workload": {"kind": "training", "sequence_length": 4096, "global_batch_size": DEVICES},
            "parallelism": layout,
        }

        def seconds(question: dict[str, Any]) -> float:
            shape = ThroughputEstimateRequest.model_validate_json(json.dumps(question))
            once = partial(estimate_throughput, shape, snapshot)
            return min(timeit.repeat(once, timer=time.process_time, number=10, repeat=5)) / 10

        plain, advised = seconds({**asked, "explain": False}), seconds(asked)
        scaled = seconds({**asked, "scaling": {}})
        figures = f"{plain * 1e3:.2f} ms, with advice {advised * 1e3:.2f} ms, scaling {scaled * 1e3:.1f} ms"
        print(f"Llama-3.1-70B, {name}: {figures}")


if __name__ == "__main__":
    measure_answers()
    measure("Llama-3-70B", llama_3_70b())
    measure("DeepSeek-V3", deepseek_v3())
