"""Measures searches over configurations of a served model: in process on one core, and as one HTTP call.

``python -m bench.frontier``. Times in process are of the processor, so that a busy machine does not count.
"""

import json
import tempfile
import time
import timeit
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import httpx
from pydantic import TypeAdapter

from service.estimates.frontier import estimate_frontier
from service.evidence.snapshot import build_shipped_snapshot
from service.schemas.frontier import ThroughputFrontier, ThroughputFrontierRequest

PATH = "/v1/estimates/throughput:frontier"
QUESTION: Final[dict[str, Any]] = {
    "model": {"source": "catalog", "id": "llama-3.1-70b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h200-sxm"}, "accelerator_count": 8},
    "workload": {
        "kind": "inference",
        "input_tokens": 4000,
        "output_tokens": 500,
        "service_levels": {"time_to_first_token_seconds": 1.0, "time_per_output_token_seconds": 0.03},
    },
}
"""The best configuration of Llama-3.1-70B on 8 H200 within a second and 30 ms."""

_BOTH = ["bf16", "fp8"]
_SIZES = list(range(1, 251))
MANY: Final[dict[str, dict[str, Any]]] = {
    "Llama-3.1-70B on 8 H200, within the levels": {
        **QUESTION,
        "search": {
            "requests_per_replica": _SIZES,
            "weight_precisions": _BOTH,
            "kv_cache_precisions": _BOTH,
        },
    },
    "the same without levels": {
        **QUESTION,
        "workload": {"kind": "inference", "input_tokens": 4000, "output_tokens": 500},
        "search": {
            "requests_per_replica": _SIZES,
            "weight_precisions": _BOTH,
            "kv_cache_precisions": _BOTH,
        },
    },
    "DeepSeek-V3 on 16 H200, experts spread over replicas": {
        "model": {"source": "catalog", "id": "deepseek-v3"},
        "cluster": {"accelerator": {"source": "catalog", "id": "h200-sxm"}, "accelerator_count": 16},
        "workload": {"kind": "inference", "input_tokens": 4000, "output_tokens": 500},
        "search": {
            "requests_per_replica": list(range(1, 183, 2)),
            "weight_formats": ["fp8_block_128"],
            "kv_cache_precisions": _BOTH,
        },
    },
}
"""Questions with 10,000 configurations."""


class SearchCost(NamedTuple):
    """Processor seconds of a search, with its counts and its result."""

    seconds: float
    considered: int
    points: int


def searched(question: dict[str, Any]) -> SearchCost:
    """Returns the least of three times, from the bytes of the question to those of the answer."""
    catalog, body = build_shipped_snapshot(), json.dumps(question).encode()
    write = TypeAdapter(ThroughputFrontier).serializer.to_json

    def ask() -> bytes:
        return write(estimate_frontier(ThroughputFrontierRequest.model_validate_json(body), catalog))

    seconds = min(timeit.repeat(ask, timer=time.process_time, number=1, repeat=3))
    answer = json.loads(ask())
    return SearchCost(seconds, answer["configurations"]["considered"], len(answer["points"]))


def http_seconds(address: str, key: str) -> tuple[float, float]:
    """Returns seconds of the question as one call: the first of a new service, and the median of nine."""
    with httpx.Client(
        base_url=address, trust_env=False, headers={"Authorization": f"Bearer {key}"}
    ) as client:

        def call() -> float:
            started = time.perf_counter()
            client.post(PATH, json=QUESTION).raise_for_status()
            return time.perf_counter() - started

        first, *rest = (call() for _ in range(10))
    return first, sorted(rest)[len(rest) // 2]


def report(first: float, median: float) -> Iterator[str]:
    """Returns the section of the page as lines. The arguments come from :func:`http_seconds`."""
    yield "## Frontiers of a served model\n"
    yield (
        "`python -m bench.frontier`. The question is the best configuration of Llama-3.1-70B on 8 H200 for\n"
        "4,000 tokens in, 500 out, a first token within 1 s and others within 30 ms, as one HTTP call, by\n"
        "the clock. Searches are processor time in one process on one core, from the bytes of a question to\n"
        "those of its answer.\n"
    )
    yield "| | target | measured | configurations | points |\n|---|---:|---:|---:|---:|"
    one = searched(QUESTION)
    yield f"| the question, first call of a fresh service | 0.3 s | {first:.3f} s | | |"
    yield f"| the same, processor time in one process | | {one.seconds:.3f} s | | |"
    yield f"| the next nine, median | 0.3 s | {median:.3f} s | {one.considered:,} | {one.points} |"
    for name, question in MANY.items():
        many = searched(question)
        yield f"| {name} | 1 s | {many.seconds:.2f} s | {many.considered:,} | {many.points} |"


def main() -> None:
    """Prints the section."""
    from bench.run import new_key, served  # noqa: PLC0415  # the whole page prints this section too

    with tempfile.TemporaryDirectory() as data_dir:
        key = new_key(data_dir)
        with served(data_dir) as service:
            seconds = http_seconds(service.address, key)
    print("\n".join(report(*seconds)))


if __name__ == "__main__":
    main()
