"""Files of measurements of other programs: text in, runs with readings in SI units and refused parts out.

Every format is read as its program writes it, in any version that is known; a figure is never guessed.
"""

from collections.abc import Callable, Mapping
from typing import Final

from service.formats.measurements.aiperf import (
    measurements_from_aiperf_csv,
    measurements_from_aiperf_json,
)
from service.formats.measurements.dcgm import (
    measurements_from_dcgm_diagnostics,
    measurements_from_dcgm_dmon,
    measurements_from_dcgm_exporter,
)
from service.formats.measurements.engine_logs import measurements_from_engine_log
from service.formats.measurements.guidellm import measurements_from_guidellm
from service.formats.measurements.llama_bench import measurements_from_llama_bench
from service.formats.measurements.loadgen import measurements_from_mlperf_inference
from service.formats.measurements.nccl_tests import measurements_from_nccl_tests
from service.formats.measurements.nsight_compute import measurements_from_nsight_compute
from service.formats.measurements.nvbandwidth import measurements_from_nvbandwidth
from service.formats.measurements.own_csv import measurements_from_own_csv
from service.formats.measurements.readings import FileMeasurements
from service.formats.measurements.superbench import measurements_from_superbench
from service.formats.measurements.torch_profiler import measurements_from_torch_profiler
from service.formats.measurements.training_logs import measurements_from_training_log
from service.formats.measurements.vllm_bench import (
    measurements_from_inferencex,
    measurements_from_vllm_bench,
)

READERS: Final[Mapping[str, Callable[[str], FileMeasurements]]] = {
    "guidellm": measurements_from_guidellm,
    "aiperf_json": measurements_from_aiperf_json,
    "aiperf_csv": measurements_from_aiperf_csv,
    "vllm_bench": measurements_from_vllm_bench,
    "inferencex": measurements_from_inferencex,
    "llama_bench": measurements_from_llama_bench,
    "mlperf_inference": measurements_from_mlperf_inference,
    "engine_log": measurements_from_engine_log,
    "training_log": measurements_from_training_log,
    "nvbandwidth": measurements_from_nvbandwidth,
    "nccl_tests": measurements_from_nccl_tests,
    "superbench": measurements_from_superbench,
    "dcgm_diagnostics": measurements_from_dcgm_diagnostics,
    "dcgm_dmon": measurements_from_dcgm_dmon,
    "dcgm_exporter": measurements_from_dcgm_exporter,
    "nsight_compute": measurements_from_nsight_compute,
    "torch_profiler": measurements_from_torch_profiler,
    "own_csv": measurements_from_own_csv,
}
"""The reader of each format: content as text."""
