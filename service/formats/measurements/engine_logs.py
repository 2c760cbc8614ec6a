"""Memory that serving engines log at their start: vLLM (V0 and V1), SGLang, TensorRT-LLM and llama.cpp.

All of them mean 2^30 bytes where they print GB (and 2^20 by MB). Lines of several ranks differ; the device
with the largest weights and the smallest cache binds. Blocks of vLLM's cache have the logged number of
tokens, else 16, which must agree with the printed largest concurrency if there is one.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from service.formats.measurements.readings import (
    NUMBER,
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    build_facts,
    parse_printed_number,
    read_lines,
    require_results,
)
from service.formats.offers.listed import RowError
from service.planning.units import GIBIBYTE_BYTES, MEBIBYTE_BYTES

WEIGHTS: Final = "weights_bytes"
ACTIVATIONS: Final = "activation_peak_bytes"
OUTSIDE: Final = "non_torch_bytes"
CACHE: Final = "kv_cache_bytes"
TOKENS: Final = "kv_cache_tokens"
GRAPHS: Final = "cuda_graph_bytes"
DEVICE: Final = "device_memory_bytes"

_N: Final = rf"({NUMBER})"
_UNITS: Final = {"": 1.0, "B": 1.0, "MB": MEBIBYTE_BYTES, "GB": GIBIBYTE_BYTES, "TB": 1024 * GIBIBYTE_BYTES}
_SIZE: Final = rf"{_N}\s?([MGT])i?B"


def _build_first_pattern(head: str) -> str:
    """Builds a pattern for the first occurrence of ``head``: a later one never matches more."""
    return rf"\A(?>.*?{head})"


def _parse_size(amount: str, prefix: str) -> float:
    return parse_printed_number(amount) * _UNITS[f"{prefix}B"]


class _LineRule(NamedTuple):
    """A line of one engine, with the readings in the groups of its pattern.

    ``mark`` is a text that the line must contain; searching it is far cheaper than the pattern.
    """

    engine: str
    mark: str
    pattern: re.Pattern[str]
    read: Callable[[re.Match[str]], Iterator[tuple[str, float]]]


def _build_sizes_reader(*metrics: str) -> Callable[[re.Match[str]], Iterator[tuple[str, float]]]:
    """Sizes in the order of their groups."""

    def read_sizes(match: re.Match[str]) -> Iterator[tuple[str, float]]:
        for place, metric in enumerate(metrics):
            yield metric, _parse_size(match[2 * place + 1], match[2 * place + 2])

    return read_sizes


def _build_number_reader(metric: str) -> Callable[[re.Match[str]], Iterator[tuple[str, float]]]:
    def read_metric(match: re.Match[str]) -> Iterator[tuple[str, float]]:
        yield metric, parse_printed_number(match[1])

    return read_metric


def _read_two_sizes(match: re.Match[str]) -> Iterator[tuple[str, float]]:
    """Tokens, and keys and values for themselves."""
    yield TOKENS, parse_printed_number(match[1])
    yield CACHE, _parse_size(match[2], match[3]) + _parse_size(match[4], match[5])


def _read_one_size(match: re.Match[str]) -> Iterator[tuple[str, float]]:
    yield TOKENS, parse_printed_number(match[1])
    yield CACHE, _parse_size(match[2], match[3])


def _read_block_tokens(match: re.Match[str]) -> Iterator[tuple[str, float]]:
    yield TOKENS, parse_printed_number(match[1]) * parse_printed_number(match[2])


def _read_allocation(match: re.Match[str]) -> Iterator[tuple[str, float]]:
    yield CACHE, _parse_size(match[1], match[2])
    yield TOKENS, parse_printed_number(match[3])


_BLOCKS: Final = "kv_cache_blocks"
_RULES: Final = tuple(
    _LineRule(engine, mark, re.compile(pattern), read)
    for engine, mark, pattern, read in (
        ("vllm", "took ", rf"[Ll]oading (?:model )?(?:weights )?took {_SIZE}", _build_sizes_reader(WEIGHTS)),
        ("vllm", "model weights take ", rf"model weights take {_SIZE}", _build_sizes_reader(WEIGHTS)),
        ("vllm", "non_torch_memory takes ", rf"non_torch_memory takes {_SIZE}", _build_sizes_reader(OUTSIDE)),
        (
            "vllm",
            "activation peak memory takes ",
            rf"PyTorch activation peak memory takes {_SIZE}",
            _build_sizes_reader(ACTIVATIONS),
        ),
        (
            "vllm",
            "reserved for KV Cache is ",
            rf"memory reserved for KV Cache is {_SIZE}",
            _build_sizes_reader(CACHE),
        ),
        (
            "vllm",
            "Available KV cache memory: ",
            rf"Available KV cache memory: {_SIZE}",
            _build_sizes_reader(CACHE),
        ),
        ("vllm", "GPU KV cache size: ", rf"GPU KV cache size: {_N} tokens", _build_number_reader(TOKENS)),
        ("vllm", " blocks: ", rf"# (?:cuda|CUDA|GPU) blocks: {_N}", _build_number_reader(_BLOCKS)),
        ("vllm", "total_gpu_memory (", rf"total_gpu_memory \({_SIZE}\)", _build_sizes_reader(DEVICE)),
        (
            "vllm",
            "Estimated CUDA graph memory: ",
            rf"Estimated CUDA graph memory: {_SIZE}",
            _build_sizes_reader(GRAPHS),
        ),
        (
            "vllm",
            "Graph capturing finished in ",
            rf"{_build_first_pattern('Graph capturing finished in ')}.*? took {_SIZE}",
            _build_sizes_reader(GRAPHS),
        ),
        (
            "sglang",
            "Load weight end.",
            rf"{_build_first_pattern('Load weight end[.]')}.*mem usage={_SIZE}",
            _build_sizes_reader(WEIGHTS),
        ),
        ("sglang", "V size: ", rf"#tokens: {_N}, K size: {_SIZE}, V size: {_SIZE}", _read_two_sizes),
        ("sglang", "KV size: ", rf"#tokens: {_N}, KV size: {_SIZE}", _read_one_size),
        ("sglang", "max_total_num_tokens=", rf"max_total_num_tokens={_N}", _build_number_reader(TOKENS)),
        (
            "sglang",
            "Capture cuda graph end.",
            rf"{_build_first_pattern('Capture cuda graph end[.]')}.*?mem usage={_SIZE}",
            _build_sizes_reader(GRAPHS),
        ),
        (
            "tensorrt-llm",
            "Loaded engine size: ",
            rf"Loaded engine size: {_SIZE}",
            _build_sizes_reader(WEIGHTS),
        ),
        (
            "tensorrt-llm",
            " for execution context memory",
            rf"Allocated {_SIZE} for execution context memory",
            _build_sizes_reader(ACTIVATIONS),
        ),
        (
            "tensorrt-llm",
            " bytes for k/v cache",
            rf"Allocate {_N} bytes for k/v cache",
            _build_number_reader(CACHE),
        ),
        (
            "tensorrt-llm",
            " tokens in paged KV cache",
            rf"Using {_N} tokens in paged KV cache",
            _build_number_reader(TOKENS),
        ),
        (
            "tensorrt-llm",
            "tokens per block=",
            rf"tokens per block={_N}, primary blocks={_N}",
            _read_block_tokens,
        ),
        (
            "tensorrt-llm",
            " for max tokens in paged KV cache ",
            rf"Allocated {_SIZE} for max tokens in paged KV cache \({_N}\)",
            _read_allocation,
        ),
        (
            "llama.cpp",
            "load_tensors:",
            rf"load_tensors:\s+[A-Z][A-Za-z]*+\d++ (?:model )?buffer size =\s+{_SIZE}",
            _build_sizes_reader(WEIGHTS),
        ),
        (
            "llama.cpp",
            " KV buffer size =",
            rf"\s[A-Z][A-Za-z]*+\d++ KV buffer size =\s+{_SIZE}",
            _build_sizes_reader(CACHE),
        ),
        (
            "llama.cpp",
            " compute buffer size =",
            rf"\s[A-Z][A-Za-z]*+\d++ compute buffer size =\s+{_SIZE}",
            _build_sizes_reader(ACTIVATIONS),
        ),
        ("llama.cpp", "n_ctx", rf"\bn_ctx\s+= {_N}", _build_number_reader(TOKENS)),
    )
)
_WORKER: Final = re.compile(r"\(\w*?Worker(\w*+)")
_PLACE: Final = re.compile(r"(?:_(?:TP|PP|DP|EP)\d++)++")
_RANKS: Final = (
    re.compile(r"\(((?:VllmWorker|RayWorker)\w*(?: rank=\d+)?(?: pid=\d+)?)"),
    re.compile(r"\b((?:DP\d++ )?(?:PP\d++ )?TP\d++)\]"),
    re.compile(r"\[RANK (\d++)\]"),
    re.compile(r"\b((?:CUDA|ROCm|Vulkan|SYCL)\d++) "),
)


def _find_rank(line: str) -> str:
    """Returns the rank of a line; empty if it names none."""
    for word in _WORKER.finditer(line):
        # Such as (Worker_TP0_EP0: what the word ends in, found from the front as runs that do not overlap.
        places = list(_PLACE.finditer(word[1]))
        if places and places[-1].end() == len(word[1]):
            return places[-1][0].lstrip("_")
    return next((match[1].lstrip("_") for each in _RANKS if (match := each.search(line))), "")


_CONCURRENCY = re.compile(rf"Maximum concurrency for {_N} tokens per request: {_N}x")
_BLOCK_SIZE = re.compile(r"\bblock_size[=:]\s*(\d+)")
_UTILIZATION = re.compile(r"(?:gpu_memory_utilization \(|gpu_memory_utilization[=:]\s*+)([\d.]++)")
_VLLM_BLOCK: Final = 16
_PRINTED_SHARE: Final = 0.006
"""Half a unit of a concurrency of 1, printed to two digits, and a block of rounding."""


def measurements_from_engine_log(content: str) -> FileMeasurements:
    """Reads the memory that an engine logs, ``of`` engine and rank; raises PlanningError if nothing is known.

    Lines of several engines are several runs; facts name the engine.
    """
    read = FileMeasurements()
    found: dict[str, list[FigureReading]] = {}
    block, concurrency, share = None, None, None
    for pointer, line in read_lines(content):
        if match := _CONCURRENCY.search(line):
            concurrency = (parse_printed_number(match[1]), parse_printed_number(match[2]))
        if match := _BLOCK_SIZE.search(line):
            block = int(match[1])
        if match := _UTILIZATION.search(line):
            share = float(match[1])
        for reading in _parse_line(pointer, line):
            found.setdefault(str(reading.of["engine"]), []).append(reading)
    for engine, readings in found.items():
        counted = [_convert_to_tokens(reading, block, concurrency, read) for reading in readings]
        kept = tuple(reading for reading in counted if reading is not None)
        said = build_facts(workload__engine__name=engine, workload__memory_fraction=share)
        if kept:
            read.runs.append(MeasuredFileRun("", kept, said))
    return require_results(read, "lines of a serving engine that this reader knows")


def _parse_line(pointer: str, line: str) -> Iterator[FigureReading]:
    for rule in _RULES:
        match = rule.pattern.search(line) if rule.mark in line else None
        if match is not None:
            of: dict[str, str | int | float] = {"engine": rule.engine, "rank": _find_rank(line)}
            yield from (FigureReading(pointer, metric, value, of=of) for metric, value in rule.read(match))


def _convert_to_tokens(
    reading: FigureReading, block: int | None, concurrency: tuple[float, float] | None, read: FileMeasurements
) -> FigureReading | None:
    """Converts blocks of vLLM's cache to tokens; None if other lines of the log contradict them."""
    if reading.metric != _BLOCKS:
        return reading
    tokens = reading.value * (block or _VLLM_BLOCK)
    if concurrency is not None and block is None:
        length, times = concurrency
        if abs(tokens - length * times) > _PRINTED_SHARE * max(length, tokens / times):
            detail = "blocks of 16 tokens do not give the printed concurrency: the log must say block_size"
            read.record_refusal(reading.pointer, RowError("BLOCK_SIZE_UNKNOWN", detail))
            return None
    return reading._replace(metric=TOKENS, value=tokens)
