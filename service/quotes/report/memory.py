"""Does it fit? Memory of the fullest device against what it has."""

from service.quotes.report.charts import About, Bar, Mark, bars, stacked
from service.quotes.report.numbers import (
    BYTES,
    PERCENT,
    Scale,
    digits,
    figures,
    quantity_figure,
    scale_of,
    shown,
    with_unit,
    words,
)
from service.quotes.report.rounding import printed, printed_shares
from service.quotes.report.scaling import linear
from service.quotes.report.shapes import Figures, Picture, Remarks, Section, Table, shown_blocks
from service.schemas.answers import MemoryAnswer

_GB = Scale(1e9, "GB")
_LIMITS = {
    "max_micro_batch_size": "Largest micro-batch",
    "max_sequence_length": "Longest sequence, in tokens",
    "max_concurrency": "Most requests at a time",
    "kv_cache_tokens": "Tokens that the KV cache holds",
}


def memory_section(answer: MemoryAnswer) -> Section:
    """Verdict, parts of the memory, and how far each dimension goes."""
    limits = [(_LIMITS.get(name, words(name)), digits(float(str(n)))) for name, n in answer["limits"].items()]
    rest = figures(answer, without=frozenset({"fits"}))
    return Section(
        "memory",
        "Memory",
        _verdict(answer),
        shown_blocks(
            _picture(answer),
            Figures("Model and device", rest),
            Figures("Cache of one request", figures(answer.get("kv_cache", {}))),
            Figures("Outside of the device, for each", figures(answer.get("host", {}))),
            Table("How far it goes before the device is full", ("Limit", "Most"), limits, frozenset({1})),
            Remarks("What would make it fit", [advice["detail"] for advice in answer["advice"]]),
        ),
    )


def _verdict(answer: MemoryAnswer) -> str:
    memory = answer["per_device"]
    needed = shown(memory["known_bytes"], BYTES)
    if "total_bytes" not in memory:
        return f"Parts of the memory are not known; those that are take {needed} of the fullest device."
    if "fits" not in answer or "usable_bytes" not in answer:
        return f"The fullest device needs {needed}; what it has is not known."
    verdict = "It fits" if answer["fits"] else "It does not fit"
    text = f"{verdict}: the fullest device needs {needed} of {shown(answer['usable_bytes'], BYTES)} usable."
    if "fit_probability" in answer:
        text += f" Probability that it fits: {shown(answer['fit_probability'], PERCENT)}."
    return text


def _picture(answer: MemoryAnswer) -> Picture | None:
    memory = answer["per_device"]
    components = memory["components"]
    if not components:
        return None
    total = memory.get("total_bytes")
    reached = total["value"] if total else float(memory["known_bytes"])
    marks = _marks(answer)
    low, high = (total["low"], total["high"]) if total else (reached, reached)
    values = (reached, high, *(mark.value for mark in marks))
    scale = scale_of(BYTES, max(values))
    sizes = [float(part["bytes"]) for part in components]
    names = [words(part["name"]) for part in components]
    texts = printed([size / scale.factor for size in sizes], reached / scale.factor)
    parts = [
        (name, with_unit(text, scale), size)
        for name, text, size in zip(names, texts.parts, sizes, strict=True)
    ]
    name = "Total, with its 80% interval" if total else "What is known"
    last = Bar(name, with_unit(texts.whole, scale), 0.0, reached, low, high, is_total=True)
    caption = "Memory of the fullest device by component"
    description = (
        f"Bars of {len(components)} components, each from the end of the one before; together "
        f"{with_unit(texts.whole, scale)}. " + "; ".join(mark.name for mark in marks)
    )
    chart = bars(
        About("memory-chart", caption, description),
        [*stacked(parts), last],
        linear(*values, unit=scale.factor),
        scale,
        marks,
    )
    columns = (
        texts,
        printed([size / _GB.factor for size in sizes], reached / _GB.factor),
        printed_shares(sizes, reached),
    )
    rows = list(zip(names, *(column.parts for column in columns), strict=True))
    table = Table(
        caption,
        ("Component", scale.unit, "GB", "Share"),
        rows,
        frozenset({1, 2, 3}),
        (name.partition(",")[0], *(column.whole for column in columns)),
    )
    return Picture(caption, chart, table, "1 GiB is 1.074 GB. " + (_interval(answer) if total else ""))


def _marks(answer: MemoryAnswer) -> list[Mark]:
    """What the memory is to be compared with."""
    usable, capacity = answer.get("usable_bytes"), answer.get("capacity_bytes")
    if usable == capacity and usable is not None:
        return [Mark(f"capacity, all usable {shown(usable, BYTES)}", float(usable))]
    named = (("usable", usable), ("capacity", capacity))
    return [Mark(f"{name} {shown(size, BYTES)}", float(size)) for name, size in named if size is not None]


def _interval(answer: MemoryAnswer) -> str:
    figure = quantity_figure("total_bytes", answer["per_device"]["total_bytes"])
    return f"80% interval of the total: {figure.low} to {figure.high}." if figure.low else ""
