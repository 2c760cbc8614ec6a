"""The questions that the benchmarks ask: 200 different bodies for each operation."""

import itertools
from collections.abc import Iterator
from typing import Any

MODELS = (
    "gpt2-xl",
    "bert-large",
    "llama-2-7b",
    "llama-3.1-8b",
    "llama-2-70b",
    "mixtral-8x7b",
    "qwen3-8b",
)
DEVICES = ("a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm")
COUNT = 200
PRICES = {
    "rental": {"price_per_device_hour": {"amount": "2.49", "currency_code": "USD"}},
    "purchase": {"price_per_device": {"amount": "30000", "currency_code": "USD"}},
}
SITE = {
    "pue": 1.12,
    "electricity": {"price_per_kwh": {"amount": "0.12", "currency_code": "USD"}},
    "carbon_intensity_kg_co2e_per_kwh": 0.429,
}


def _for_operation(operation: str, question: dict[str, Any]) -> dict[str, Any]:
    if operation == "memory":
        question.pop("efficiency", None)
    if operation in ("cost", "utility-bill"):
        question["rental"] = PRICES["rental"]
    if operation == "utility-bill":
        question["purchase"] = PRICES["purchase"]
        question["site"] = SITE
    return question


def parameter_count_questions(operation: str) -> list[dict[str, Any]]:
    """Back-of-the-envelope questions, each of another size."""
    return [
        _for_operation(
            operation,
            {
                "model": {"source": "parameter_count", "parameter_count": 10**9 + 347 * 10**6 * step},
                "cluster": {
                    "accelerator": {"source": "catalog", "id": DEVICES[step % len(DEVICES)]},
                    "accelerator_count": 64 + 8 * step,
                },
                "workload": {"kind": "training", "total_tokens": 10**12 + step, "sequence_length": 4096},
                "efficiency": {"source": "assumed", "utilization": 0.45},
            },
        )
        for step in range(COUNT)
    ]


def _workloads(step: int, *, decodes: bool) -> dict[str, Any]:
    if step % 2 and decodes:
        return {
            "kind": "inference",
            "input_tokens": 256 + 8 * step,
            "output_tokens": 64 + step,
            "concurrency": 1 + step % 48,
            "horizon": {"total_requests": 10_000 + step},
        }
    return {
        "kind": "training",
        "sequence_length": 128 + step,
        "micro_batch_size": 1 + step % 4,
        "total_tokens": 10**10 + step,
    }


def catalog_questions(operation: str) -> list[dict[str, Any]]:
    """Questions about seven models on four devices, training and serving, layouts given and left open."""
    return list(itertools.islice(_catalog_questions(operation), COUNT))


def _catalog_questions(operation: str) -> Iterator[dict[str, Any]]:
    for step, (model, device) in enumerate(itertools.cycle(itertools.product(MODELS, DEVICES))):
        question: dict[str, Any] = {
            "model": {"source": "catalog", "id": model},
            "cluster": {"accelerator": {"source": "catalog", "id": device}, "accelerator_count": 64},
            "workload": _workloads(step, decodes=model != "bert-large"),
        }
        if step % 3 == 0:
            question["parallelism"] = {"data": 64}
        yield _for_operation(operation, question)
