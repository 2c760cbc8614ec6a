"""Plans and their candidates in words."""

import operator
from collections.abc import Iterator, Mapping
from typing import Any, Final

from service.formats.providers import get_provider_name
from service.kit.locales import format_count, localize_number
from service.kit.reports.numbers import SECONDS, TIMES, UnitScale, format_number
from service.kit.reports.rounded import round_in_unit, round_value
from service.resolve.catalog import CatalogView
from service.resolve.titles import CatalogRows, get_title, list_titles

GOALS: Final[Mapping[str, str]] = {
    "cheapest": "the lowest cost",
    "fastest": "the shortest time",
    "cleanest": "the lowest emissions",
    "fewest_devices": "the fewest devices",
    "pareto": "the best trade-offs of cost, time and emissions",
}
PURCHASE_OPTIONS: Final[Mapping[str, str]] = {
    "on_demand": "on demand",
    "capacity_block": "capacity block",
}
_DEGREES: Final = (
    ("tensor", "tensor"),
    ("pipeline", "pipeline"),
    ("data", "data"),
    ("context", "context"),
    ("expert", "expert"),
)
_SHARDINGS: Final[Mapping[str, str]] = {
    "zero_1": "ZeRO-1",
    "zero_2": "ZeRO-2",
    "zero_3": "ZeRO-3 (fully sharded)",
    "hybrid": "hybrid sharding",
}
_SCHEDULES: Final[Mapping[str, str]] = {
    "gpipe": "GPipe schedule",
    "interleaved": "interleaved schedule",
    "zero_bubble": "zero-bubble schedule",
}
_ADAPTATIONS: Final[Mapping[str, str]] = {"lora": "LoRA adapters", "qlora": "QLoRA adapters"}


def describe_model(model: Mapping[str, Any], catalog: CatalogView) -> str:
    """Returns the name of the model of a question."""
    if model["source"] == "catalog":
        return get_title(catalog, "models", model["id"])
    if model["source"] == "parameter_count":
        return f"A model of {format_number(model['parameter_count'] / 1e9)} billion parameters"
    return f"A model by its {'config.json' if model['source'] == 'huggingface_config' else 'architecture'}"


def describe_work(workload: Mapping[str, Any]) -> str:
    """Returns the work of a question in words, such as “train on 10 billion tokens”."""
    return " ".join(_list_training(workload) if workload["kind"] == "training" else _list_serving(workload))


def _list_training(workload: Mapping[str, Any]) -> Iterator[str]:
    kind = workload.get("adaptation", {}).get("kind", "full")
    yield "train" if kind == "full" else f"train {_ADAPTATIONS.get(kind, 'adapters')}"
    for member, noun in (("total_tokens", "tokens"), ("total_steps", "steps"), ("total_samples", "samples")):
        if member in workload:
            yield f"on {_format_count(workload[member])} {noun}"
    if "sequence_length" in workload:
        yield f"in sequences of {format_count(workload['sequence_length'])}"


def _list_serving(workload: Mapping[str, Any]) -> Iterator[str]:
    yield "serve"
    if "request_rate_per_second" in workload:
        yield localize_number(f"{workload['request_rate_per_second']:,.4g} requests per second")
    else:
        count = workload.get("concurrency", 1)
        yield f"{format_count(count)} requests at a time" if count != 1 else "one request at a time"
    lengths = [
        f"{_format_length(workload[member])} {way}"
        for member, way in (("input_tokens", "tokens in"), ("output_tokens", "out"))
        if member in workload
    ]
    if lengths:
        yield f"of {' and '.join(lengths)}"
    horizon = workload.get("horizon", {})
    if "duration_seconds" in horizon:
        yield f"for {format_time(horizon['duration_seconds'])}"
    elif "total_requests" in horizon:
        yield f"for {_format_count(horizon['total_requests'])} requests in all"
    elif "total_output_tokens" in horizon:
        yield f"for {_format_count(horizon['total_output_tokens'])} output tokens"


def format_time(seconds: float) -> str:
    """Returns a time in the unit of its size."""
    text = round_in_unit(seconds, SECONDS)
    return text.removesuffix("s") if text == "1\N{NO-BREAK SPACE}days" else text


def _format_length(length: Any) -> str:  # noqa: ANN401
    if isinstance(length, int):
        return format_count(length)
    if length["distribution"] == "fixed":
        return format_count(length["tokens"])
    if length["distribution"] == "lognormal":
        return f"about {length['mean_tokens']:,.0f}"
    mean = sum(map(operator.mul, length["tokens"], length["weights"])) / sum(length["weights"])
    return f"about {mean:,.0f}"


def _format_count(count: float) -> str:
    """Returns a large count in millions, billions or trillions."""
    for size, noun in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= size:
            return f"{round_value(count, UnitScale(size, ''))} {noun}"
    return format_count(count)


def describe_devices(row: Mapping[str, Any], catalog: CatalogView) -> str:
    """Returns number and kind of the devices of a candidate."""
    title = get_title(catalog, "accelerators", row["accelerator_id"])
    return f"{format_count(row['accelerator_count'])} {TIMES} {title}"


def describe_supply(supply: Mapping[str, Any], catalog: CatalogView) -> str:
    """Returns who has the devices of a candidate, and on which terms."""
    if supply["kind"] != "offer":
        return str(supply["name"])
    option = supply.get("purchase_option", "")
    provider = get_provider_name(supply.get("provider", ""))
    known = [provider, supply.get("region"), PURCHASE_OPTIONS.get(option, option)]
    return ", ".join(filter(None, known)) or name_supply(supply["name"], catalog)


def name_supply(name: str, catalog: CatalogView) -> str:
    """Returns the title of an offer, an accelerator or a site, else the name itself."""
    nouns: tuple[CatalogRows, ...] = ("offers", "accelerators", "sites")
    for noun in nouns:
        title = list_titles(catalog, noun).get(name)
        if title is not None:
            return title
    return name


def describe_layout(row: Mapping[str, Any]) -> str:
    """Returns how a candidate spreads the model over its devices."""
    layout = row["parallelism"]
    parts = [f"{word} {layout[name]}" for name, word in _DEGREES if layout.get(name, 1) > 1]
    parts += ["sequence parallel"] if layout.get("sequence_parallel") else []
    parts += filter(None, [_SHARDINGS.get(layout.get("sharding", "none"))])
    schedule = _SCHEDULES.get(layout.get("pipeline_schedule", ""))
    if schedule and layout.get("pipeline", 1) > 1:
        stages = layout.get("virtual_stages", 1)
        parts.append(f"{schedule} of {stages} parts" if stages > 1 else schedule)
    return ", ".join(parts) or "one device"


def describe_settings(row: Mapping[str, Any]) -> str:
    """Returns precision and batch of a run, or formats and replicas of a service."""
    if "micro_batch_size" in row:
        again, repeats = row.get("recomputation", "none"), row.get("gradient_accumulation_steps", 1)
        parts = [
            row.get("precision", ""),
            f"micro-batch {format_count(row['micro_batch_size'])} {TIMES} {format_count(repeats)}",
            f"{again} recomputation" if again != "none" else "",
        ]
    else:
        count = row.get("replicas", 1)
        parts = [
            f"weights in {row['weight_format']}" if "weight_format" in row else "",
            f"KV cache in {row['kv_cache_precision']}" if "kv_cache_precision" in row else "",
            f"{format_count(count)} replicas" if count > 1 else "one replica",
        ]
    return ", ".join(filter(None, parts))


def describe_candidate(question: Mapping[str, Any], row: Mapping[str, Any], catalog: CatalogView) -> str:
    """Returns model, work and devices of a candidate in a phrase with plain spaces, to be a name."""
    model, work = describe_model(question["model"], catalog), describe_work(question["workload"])
    return f"{model}: {work}, on {describe_devices(row, catalog)}".replace("\N{NO-BREAK SPACE}", " ")
