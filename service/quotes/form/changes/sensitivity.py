"""Tornadoes of the main figures of an answer, with each assumption a fifth less and a fifth more."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from service.kit.http.problems import Problem
from service.kit.locales import localize_number
from service.kit.reports.charts.bars import TornadoBar, render_tornado
from service.kit.reports.charts.drawing import ChartLabel
from service.kit.reports.numbers import UnitScale, format_in_scale, select_ladder, select_scale
from service.kit.reports.rounded import round_amount
from service.kit.reports.scaling import build_linear_axis
from service.kit.reports.shapes import ReportChart, ReportTable
from service.quotes.form.changes.variants import OUT_OF_TIME, Answers, WorkTime, ask_estimate, explain_refusal
from service.quotes.form.fields import FIELDS
from service.resolve.catalog import CatalogView
from service.resolve.form_fields import TRAINING

_COST, _BILL, _SPEED, _MEMORY = "cost", "utility_bill", "throughput", "memory"
_ALL: Final = frozenset({_COST, _BILL, _SPEED, _MEMORY})
STEP: Final = 0.2
_STEPS: Final = (1 - STEP, 1 + STEP)
_LEAST_CHANGE: Final = 5e-4
Question = Mapping[str, Any]
_PERCENT: Final = UnitScale(0.01, "% change")
_ENDS: Final = (f"{STEP:.0%} less", f"{STEP:.0%} more")
_CELL: Final = Markup('{}<span class="hint">{}</span>')
_SPACE: Final = "\N{NO-BREAK SPACE}"


class Assumption(NamedTuple):
    """An assumption: its place in the question, and its value there by the factor that it is varied by."""

    name: str
    pointer: str
    compute_value: Callable[[float], object]
    moves: frozenset[str]
    """Estimates that depend on it."""


class MovedFigure(NamedTuple):
    """A figure of an answer that assumptions move: the estimate that has it, and its place there."""

    title: str
    estimate: str
    path: tuple[str, ...]

    def find_value(self, answers: Answers) -> Any:  # noqa: ANN401  # a quantity, or money
        """Returns the figure, or None if the answers lack it."""
        found: Any = answers.get(self.estimate, {})
        for member in self.path:
            found = found.get(member) if isinstance(found, Mapping) else None
        return found

    def format_values(self, base: Mapping[str, Any], *others: Mapping[str, Any]) -> list[str]:
        """Returns values of the figure in the unit of the first of them."""
        if "amount" in base:
            code = base["currency_code"]
            return [f"{round_amount(one['amount'])}{_SPACE}{code}" for one in (base, *others)]
        scale = select_scale(select_ladder(self.path[-1]), base["value"])
        return [format_in_scale(one["value"], scale) for one in (base, *others)]


_BILLED = MovedFigure("Electricity", _BILL, ("electricity", "total"))
_SIZE = MovedFigure("Memory of the fullest device", _MEMORY, ("per_device", "total_bytes"))
_OF_TRAINING: Final = (
    MovedFigure("Price of the run", _COST, ("total",)),
    MovedFigure("Time of the run", _SPEED, ("duration_seconds",)),
    MovedFigure("Tokens per second", _SPEED, ("tokens_per_second",)),
    _SIZE,
)
_OF_SERVING: Final = (
    MovedFigure("Price of a million tokens", _COST, ("cost_per_million_tokens",)),
    MovedFigure("Price", _COST, ("total",)),
    MovedFigure("Tokens per second", _SPEED, ("output_tokens_per_second",)),
    MovedFigure("Requests per second", _SPEED, ("requests_per_second",)),
    _SIZE,
)
"""Main figures, of which the first that an answer has is shown."""
_AMOUNTS: Final = (
    "concurrency",
    "requests_per_second",
    "input_tokens",
    "output_tokens",
    "total_tokens_billions",
    "sequence_length",
    "utilization_percent",
    "years",
)
"""Fields of the form with a number that is varied itself."""
_FACTORS: Final = (
    ("Rent of one device", "/rental", "/rental/price_factor"),
    ("Price of one device", "/purchase", "/purchase/price_factor"),
)
"""Prices with a factor in the question: name, the member that has them, and the factor."""


def build_sensitivity_charts(
    question: Question, answers: Answers, catalog: CatalogView, left: WorkTime
) -> list[ReportChart]:
    """Returns tornadoes of the main figure of an answer, and of its electricity if it is billed."""
    is_training = question["workload"]["kind"] == TRAINING
    figures = _OF_TRAINING if is_training else _OF_SERVING
    main = next((one for one in figures if one.find_value(answers) is not None), None)
    if main is None:
        return []
    shown = [main, *([_BILLED] if _BILLED.find_value(answers) is not None else [])]
    moved = [
        _MovedAnswers(one, (), OUT_OF_TIME)
        if left.is_over()
        else _move_assumption(question, one, shown, catalog)
        for one in _list_assumptions(question, catalog)
    ]
    charts = (
        _build_tornado(f"sensitivity-{place}", figure, answers, moved) for place, figure in enumerate(shown)
    )
    return [chart for chart in charts if chart is not None]


def _list_assumptions(question: Question, catalog: CatalogView) -> Iterator[Assumption]:
    for name, holder, pointer in _FACTORS:
        if _find_member(question, holder) is not None:
            yield Assumption(name, pointer, float, frozenset({_COST}))
    if question.get("efficiency") is None and question["workload"]["kind"] == TRAINING:
        name = FIELDS["utilization_percent"].label
        yield Assumption(name, "/efficiency", _build_efficiency, _ALL - {_MEMORY})
    yield from _list_site_assumptions(question, catalog)
    for field in map(FIELDS.__getitem__, _AMOUNTS):
        found = _find_member(question, field.pointer)
        if found is not None:
            yield Assumption(field.label, field.pointer, partial(_scale_number, found), _ALL)


def _list_site_assumptions(question: Question, catalog: CatalogView) -> Iterator[Assumption]:
    asked = question.get("site")
    if asked is None:
        return
    site = catalog.sites.get(asked.get("site_id", ""))
    if "electricity" in asked or (site is not None and site.tariff_id is not None):
        yield Assumption("Price of electricity", "/site/electricity/price_factor", float, frozenset({_BILL}))
    pue = asked.get("pue", site.pue if site is not None else 1.0)
    if pue > 1:
        name = "PUE above 1"
        yield Assumption(name, "/site/pue", partial(_scale_overhead, pue), frozenset({_BILL}))


def _build_efficiency(factor: float) -> Mapping[str, object]:
    """Returns a modelled efficiency times a factor, which divides the time."""
    return {"source": "modelled", "time_factor": 1 / factor}


def _scale_number(value: float, factor: float) -> float:
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def _scale_overhead(pue: float, factor: float) -> float:
    return 1 + (pue - 1) * factor


def _find_member(question: Question, pointer: str) -> Any:  # noqa: ANN401  # any member of a question
    found: Any = question
    for part in pointer[1:].split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _set_member(question: Question, pointer: str, value: object) -> Question:
    """Returns the question with a member replaced."""
    name, _, rest = pointer[1:].partition("/")
    inner = _set_member(question.get(name, {}), f"/{rest}", value) if rest else value
    return {**question, name: inner}


class _TornadoRow(NamedTuple):
    """Changes of a figure, as shares of it, with less and with more of an assumption."""

    name: str
    less: float
    more: float
    shown_less: str
    shown_more: str


class _MovedAnswers(NamedTuple):
    """Answers with less and with more of an assumption; none, and the reason, where one has no answer."""

    assumption: Assumption
    ends: Sequence[Answers]
    refusal: str = ""


def _move_assumption(
    question: Question, assumption: Assumption, figures: Sequence[MovedFigure], catalog: CatalogView
) -> _MovedAnswers:
    names = {figure.estimate for figure in figures} & assumption.moves
    try:
        ends = [
            {name: ask_estimate(name, varied, catalog) for name in sorted(names)}
            for varied in (
                _set_member(question, assumption.pointer, assumption.compute_value(step)) for step in _STEPS
            )
        ]
    except Problem as problem:
        return _MovedAnswers(assumption, (), explain_refusal(problem))
    return _MovedAnswers(assumption, ends)


def _build_tornado(
    key: str, figure: MovedFigure, answers: Answers, moved: Sequence[_MovedAnswers]
) -> ReportChart | None:
    base = figure.find_value(answers)
    rows: list[_TornadoRow] = []
    unmoved: list[str] = []
    concerned = [each for each in moved if figure.estimate in each.assumption.moves]
    for assumption, found, _ in concerned:
        name = assumption.name
        ends = [end for end in (figure.find_value(each) for each in found) if end is not None]
        if len(ends) < len(_STEPS) or not _get_size(base):
            continue
        less, more = (_get_size(end) / _get_size(base) - 1 for end in ends)
        if max(abs(less), abs(more)) < _LEAST_CHANGE:
            unmoved.append(name)
        else:
            rows.append(_TornadoRow(name, less, more, *figure.format_values(base, *ends)[1:]))
    if not rows:
        return None
    rows.sort(key=lambda row: -max(abs(row.less), abs(row.more)))
    (shown,) = figure.format_values(base)
    note = _build_note(shown, unmoved, [each for each in concerned if each.refusal])
    return _draw_tornado(key, f"{figure.title}: what moves it most", rows, note)


def _draw_tornado(key: str, caption: str, rows: Sequence[_TornadoRow], note: str) -> ReportChart:
    axis = build_linear_axis(*(end for row in rows for end in (row.less, row.more)), unit=_PERCENT.factor)
    bars = [TornadoBar(row.name, f"{row.shown_less} to {row.shown_more}", row.less, row.more) for row in rows]
    description = "; ".join(f"{bar.name} {bar.shown}" for bar in bars)
    chart = render_tornado(ChartLabel(key, caption, description), bars, axis, _PERCENT, _ENDS)
    cells = [
        (
            row.name,
            _CELL.format(row.shown_less, _format_change(row.less)),
            _CELL.format(row.shown_more, _format_change(row.more)),
        )
        for row in rows
    ]
    table = ReportTable(caption, ("Assumption", *_ENDS), cells, frozenset({1, 2}))
    return ReportChart(caption, chart, table, note)


def _build_note(shown: str, unmoved: Sequence[str], refused: Sequence[_MovedAnswers]) -> str:
    note = f"Each assumption is varied alone. The upright line is the answer, {shown}."
    if unmoved:
        note += f" It does not change with: {', '.join(unmoved)}."
    for reason in dict.fromkeys(each.refusal for each in refused):
        names = ", ".join(each.assumption.name for each in refused if each.refusal == reason)
        note += f" Not varied: {names}, because {reason}."
    return note


def _get_size(figure: Mapping[str, Any]) -> float:
    """Returns the value of a quantity, or the amount of money."""
    return float(figure["amount"] if "amount" in figure else figure["value"])


def _format_change(share: float) -> str:
    return localize_number(f"{share:+.1%}").replace("-", "\N{MINUS SIGN}")
