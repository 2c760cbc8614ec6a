"""Section of the memory: the fullest device against its capacity."""

from service.kit.locales import localize_number
from service.kit.reports.charts.bars import ChartBar, render_bars, stack_bars
from service.kit.reports.charts.drawing import ChartLabel, ChartMark
from service.kit.reports.numbers import (
    BYTES,
    PERCENT,
    UnitScale,
    add_unit,
    build_quantity_figure,
    format_number,
    format_value,
    list_figures,
    select_scale,
    to_title,
)
from service.kit.reports.rounding import round_shares, round_to_sum
from service.kit.reports.scaling import build_linear_axis
from service.kit.reports.shapes import (
    FigureList,
    ReportChart,
    ReportRemarks,
    ReportSection,
    ReportTable,
    select_blocks,
)
from service.schemas.answers import MemoryEstimate

_GB = UnitScale(1e9, "GB")
_LIMITS = {
    "max_micro_batch_size": "Largest micro-batch",
    "max_sequence_length": "Longest sequence, in tokens",
    "max_concurrency": "Most requests at a time",
    "kv_cache_tokens": "Tokens that the KV cache holds",
}


def build_memory_section(answer: MemoryEstimate) -> ReportSection:
    """Returns the section with verdict, components of the memory, and limits of each dimension."""
    limits = [
        (_LIMITS.get(name, to_title(name)), format_number(float(str(n))))
        for name, n in answer["limits"].items()
    ]
    rest = list_figures(answer, without=frozenset({"fits"}))
    return ReportSection(
        "memory",
        "Memory",
        _format_verdict(answer),
        select_blocks(
            _build_picture(answer),
            FigureList("Model and device", rest),
            FigureList("Cache of one request", list_figures(answer.get("kv_cache", {}))),
            FigureList("Outside of the device, for each", list_figures(answer.get("host", {}))),
            ReportTable("Limits at which the device is full", ("Limit", "Most"), limits, frozenset({1})),
            ReportRemarks("Ways to make it fit", [advice["detail"] for advice in answer["advice"]]),
        ),
    )


def _format_verdict(answer: MemoryEstimate) -> str:
    memory = answer["per_device"]
    needed = format_value(memory["known_bytes"], BYTES)
    if "total_bytes" not in memory:
        return f"Parts of the memory are unknown; the known parts take {needed} of the fullest device."
    if "fits" not in answer or "usable_bytes" not in answer:
        return f"The fullest device needs {needed}; its capacity is unknown."
    verdict = "It fits" if answer["fits"] else "It does not fit"
    usable = format_value(answer["usable_bytes"], BYTES)
    text = f"{verdict}: the fullest device needs {needed} of {usable} usable."
    if "fit_probability" in answer:
        text += f" Probability that it fits: {format_value(answer['fit_probability'], PERCENT)}."
    return text


def _build_picture(answer: MemoryEstimate) -> ReportChart | None:
    memory = answer["per_device"]
    components = memory["components"]
    if not components:
        return None
    total = memory.get("total_bytes")
    reached = total["value"] if total else float(memory["known_bytes"])
    marks = _build_marks(answer)
    low, high = (total["low"], total["high"]) if total else (reached, reached)
    values = (reached, high, *(mark.value for mark in marks))
    scale = select_scale(BYTES, max(values))
    sizes = [float(part["bytes"]) for part in components]
    names = [to_title(part["name"]) for part in components]
    texts = round_to_sum([size / scale.factor for size in sizes], reached / scale.factor)
    parts = [
        (name, add_unit(text, scale), size)
        for name, text, size in zip(names, texts.parts, sizes, strict=True)
    ]
    name = "Total, with its 80% interval" if total else "Known parts"
    last = ChartBar(name, add_unit(texts.whole, scale), 0.0, reached, low, high, is_total=True)
    caption = "Memory of the fullest device by component"
    description = (
        f"Bars of {len(components)} components, each from the end of the one before; together "
        f"{add_unit(texts.whole, scale)}. " + "; ".join(mark.name for mark in marks)
    )
    chart = render_bars(
        ChartLabel("memory-chart", caption, description),
        [*stack_bars(parts), last],
        build_linear_axis(*values, unit=scale.factor),
        scale,
        marks,
    )
    columns = (
        texts,
        round_to_sum([size / _GB.factor for size in sizes], reached / _GB.factor),
        round_shares(sizes, reached),
    )
    rows = list(zip(names, *(column.parts for column in columns), strict=True))
    table = ReportTable(
        caption,
        ("Component", scale.unit, "GB", "Share"),
        rows,
        frozenset({1, 2, 3}),
        (name.partition(",")[0], *(column.whole for column in columns)),
    )
    note = f"1 GiB is {localize_number('1.074')} GB. "
    return ReportChart(caption, chart, table, note + (_format_interval(answer) if total else ""))


def _build_marks(answer: MemoryEstimate) -> list[ChartMark]:
    """Returns the capacities that the memory is compared with."""
    usable, capacity = answer.get("usable_bytes"), answer.get("capacity_bytes")
    if usable == capacity and usable is not None:
        return [ChartMark(f"capacity, all usable {format_value(usable, BYTES)}", float(usable))]
    named = (("usable", usable), ("capacity", capacity))
    return [
        ChartMark(f"{name} {format_value(size, BYTES)}", float(size))
        for name, size in named
        if size is not None
    ]


def _format_interval(answer: MemoryEstimate) -> str:
    figure = build_quantity_figure("total_bytes", answer["per_device"]["total_bytes"])
    return f"80% interval of the total: {figure.low} to {figure.high}." if figure.low else ""
