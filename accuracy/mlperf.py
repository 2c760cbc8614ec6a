"""Recipes of submissions to MLPerf Inference, which its results do not state.

Tasks are those of the rules: the data set fixes the prompts, greedy or beam search the outputs. Layouts and
formats are those of the public configurations of submissions (closed/NVIDIA and closed/AMD of v4.1 to v5.1):
2,048 requests a replica, an FP8 cache beside weights of 8 bits or fewer, and a replica on few devices.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from accuracy.rows import MeasuredRow


class MlperfTask(NamedTuple):
    """Lengths of a task in tokens, the model that it serves, and limits of the rules."""

    prompt_tokens: int
    output_tokens: int
    parameters: float
    server_seconds: float | None = None
    """Most seconds of an output token in the server scenario, at the 99th percentile."""
    interactive_seconds: float | None = None
    beams: int = 1
    shares_requests: bool = False
    """True if the devices of a replica share requests and spread experts, instead of cutting heads."""


_TASKS: Final = {
    "gpt-j-6b": MlperfTask(870, 69, 6.05e9, beams=4),
    "llama-2-70b": MlperfTask(294, 294, 69e9, 0.2, 0.04),
    "mixtral-8x7b": MlperfTask(230, 145, 46.7e9, 0.2),
    "llama-3.1-8b": MlperfTask(778, 128, 8.03e9, 0.1, 0.03),
    "llama-3.1-405b": MlperfTask(9400, 680, 405.9e9, 0.175, 0.08),
    "deepseek-r1": MlperfTask(800, 3880, 671e9, 0.08, shares_requests=True),
}
"""Articles of CNN/DailyMail, with summaries of 128 tokens at most (GPT-J, Llama 3.1 8B); OpenOrca; a third
each of OpenOrca, GSM8K and MBXP; LongBench, RULER and GovReport (Llama 3.1 405B); exams and programs with
reasoning (DeepSeek-R1). Outputs are those of the reference runs (GPT-J: 4,016,878 characters of 13,368
summaries; Llama 3.1 8B: 8,167,644)."""

_GIGABYTES: Final = {
    "l40s": 48.0,
    "h100-nvl": 94.0,
    "h100": 80.0,
    "gh200-144gb": 144.0,
    "gh200": 96.0,
    "h200": 141.0,
    "b200": 180.0,
    "gb200": 186.0,
    "b300": 288.0,
    "gb300": 288.0,
    "rtx-pro-6000": 96.0,
    "mi300x": 192.0,
    "mi325x": 256.0,
    "mi355x": 288.0,
}
"""Memory of accelerators by the beginning of their id, the most specific first."""

_FOUR_BITS: Final = {"b200": "fp4", "gb200": "fp4", "b300": "fp4", "gb300": "fp4", "mi355x": "mxfp4"}
_BYTES: Final = {"fp8": 1.0, "int8": 1.0, "fp4": 0.5625, "nvfp4": 0.5625, "mxfp4": 0.53125, "int4": 0.5625}
_MOST_WEIGHTS: Final = 0.55
"""Share of the memory of a replica that weights take at most, so that as much remains for the cache."""

_REQUESTS: Final = (2048, 1024, 512, 256, 128, 64, 32)
"""Requests of a replica: gpu_batch_size of the configurations, and fewer to keep to a limit."""

_Value = TypeVar("_Value")


def get_task(row: MeasuredRow) -> MlperfTask | None:
    """Returns the task of a row of MLPerf, or None for other sources and tasks."""
    return _TASKS.get(row.model_id) if row.source.startswith("MLPerf") else None


def _find_by_accelerator(row: MeasuredRow, known: Mapping[str, _Value]) -> _Value | None:
    device = row.accelerator_id.removeprefix("?")
    return next((value for start, value in known.items() if device.startswith(start)), None)


def get_weights(row: MeasuredRow) -> str | None:
    """Returns the format of weights: the narrowest of the accelerator, FP8 if the division is open."""
    if not row.source.startswith("MLPerf"):
        return None
    narrow = _find_by_accelerator(row, _FOUR_BITS)
    if narrow and not row.text.get("notes", "").startswith("open division"):
        return narrow
    return "fp8" if _find_by_accelerator(row, _GIGABYTES) else "fp16"


def get_cache(row: MeasuredRow) -> str | None:
    """Returns the format of the KV cache."""
    stated = row.precision.get("weights") or get_weights(row)
    return "fp8" if row.source.startswith("MLPerf") and stated in _BYTES else None


def count_devices(row: MeasuredRow, devices: int) -> int | None:
    """Returns the devices of a replica: the smallest power of two that holds weights and as large a cache."""
    task, memory = get_task(row), _find_by_accelerator(row, _GIGABYTES)
    if task is None or memory is None:
        return None
    weights = task.parameters * _BYTES.get(row.precision.get("weights") or get_weights(row) or "", 2.0)
    count = 1
    while weights > _MOST_WEIGHTS * memory * 1e9 * count and 2 * count <= devices:
        count *= 2
    return count


def get_token_seconds(row: MeasuredRow) -> float | None:
    """Returns the most seconds of an output token that the scenario of a row allows, if it has a limit."""
    task, scenario = get_task(row), row.batch.get("scenario")
    if task is None or scenario not in ("server", "interactive"):
        return None
    return task.interactive_seconds if scenario == "interactive" else task.server_seconds


def list_requests(row: MeasuredRow, devices: int) -> tuple[int, ...]:
    """Returns the concurrent requests of all replicas, most first, and fewer if the scenario has a limit."""
    if get_task(row) is None or not row.batch.get("scenario"):
        return ()
    replicas = max(1, devices // (count_devices(row, devices) or 1))
    return tuple(each * replicas for each in (_REQUESTS if get_token_seconds(row) else _REQUESTS[:1]))


def get_limits(row: MeasuredRow) -> dict[str, int]:
    """Returns the most requests of an iteration; only vLLM has fewer by default."""
    return {"max_num_seqs": _REQUESTS[0]} if get_task(row) else {}
