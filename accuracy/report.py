"""Scores as a document and as tables."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from accuracy import facts
from accuracy.fitting import FittedConstants, FittingProblem
from accuracy.metrics import METRICS, MetricFamily
from accuracy.scoring import (
    LEAST_ESTIMATED,
    ErrorStatistics,
    ScoredRow,
    is_targeted,
    percentile,
    reasons,
    short_sources,
    statistics_of,
)
from accuracy.spreads import MeasuredRatio


def grouped(scored: Iterable[ScoredRow], key: Callable[[ScoredRow], str]) -> dict[str, list[ScoredRow]]:
    """Returns rows grouped by a key, in its order."""
    groups: dict[str, list[ScoredRow]] = {}
    for one in scored:
        groups.setdefault(key(one), []).append(one)
    return dict(sorted(groups.items()))


def document(scored: Sequence[ScoredRow]) -> dict[str, Any]:
    """Returns the scores as JSON: by metric, by source over its targeted metrics, and by row."""
    metrics = grouped((one for one in scored if one.row.metric in METRICS), lambda one: one.row.metric)
    targeted = [one for one in scored if is_targeted(one.row)]
    sources = grouped(targeted, lambda one: one.row.source)
    return {
        "metrics": {name: statistics_of(group)._asdict() for name, group in metrics.items()},
        "sources": {name: statistics_of(group)._asdict() for name, group in sources.items()},
        "rows": [_row(one) for one in scored],
    }


def _row(one: ScoredRow) -> dict[str, Any]:
    figure = one.figure
    return {
        "id": one.row.id,
        "run_id": one.row.run_id,
        "metric": one.row.metric,
        "measured": one.row.value,
        "estimated": figure.value if figure else None,
        "low": figure.low if figure else None,
        "high": figure.high if figure else None,
        "skipped": one.skipped.value if one.skipped else None,
    }


class FitVerdicts(NamedTuple):
    """Confusion table of the probabilities of fitting."""

    fits_said_fits: int
    fits_said_not: int
    not_said_fits: int
    not_said_not: int
    brier: float
    decided: float
    """Share of the cases with a probability below 10% or above 90%."""


_LIKELY, _SURE = 0.5, 0.9


FitVerdict = tuple[bool, float]
"""Result of a run, true if it fitted, and the probability of fitting in the answer."""


def stated_verdicts(scored: Iterable[ScoredRow]) -> list[FitVerdict]:
    """Returns the verdicts of rows that state if something fits."""
    rows = [one for one in scored if one.row.metric == "fits"]
    return [(one.row.value == 1.0, one.figure.value) for one in rows if one.figure is not None]


def measured_verdicts(scored: Iterable[ScoredRow]) -> list[FitVerdict]:
    """Returns the verdicts of runs with a measured peak on a known device, all of which fitted."""
    rows = [one for one in scored if one.row.metric == "peak_memory_per_gpu"]
    return [(True, one.chance) for one in rows if one.chance is not None]


def verdicts(cases: Sequence[FitVerdict]) -> FitVerdicts | None:
    """Returns the confusion table, or None without cases."""
    if not cases:
        return None

    def count(happened: bool, said: bool) -> int:  # noqa: FBT001
        return sum(fits is happened and (chance >= _LIKELY) is said for fits, chance in cases)

    return FitVerdicts(
        fits_said_fits=count(happened=True, said=True),
        fits_said_not=count(happened=True, said=False),
        not_said_fits=count(happened=False, said=True),
        not_said_not=count(happened=False, said=False),
        brier=statistics.fmean((chance - fits) ** 2 for fits, chance in cases),
        decided=statistics.fmean(max(chance, 1.0 - chance) > _SURE for _, chance in cases),
    )


def constant_width(scored: Iterable[ScoredRow]) -> float | None:
    """Returns high over low of the constant interval that covers as many rows as the estimated ones."""
    ratios, covered = [], 0
    for one in scored:
        if one.figure is None or one.figure.value <= 0.0 or one.row.value <= 0.0 or one.width is None:
            continue
        ratio = one.row.value / one.figure.value
        ratios.append(max(ratio, 1.0 / ratio))
        covered += one.is_covered
    if not ratios:
        return None
    return percentile(ratios, covered / len(ratios)) ** 2


HEAD = ("rows", "skipped", "median", "p90", "bias", "coverage", "width")


def _share(value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.1%}" if signed else f"{value:.1%}"


def cells(found: ErrorStatistics) -> list[str]:
    """Returns the statistics as cells of a table."""
    return [
        str(found.rows),
        str(found.skipped),
        _share(found.median_error),
        _share(found.p90_error),
        _share(found.bias, signed=True),
        "-" if found.coverage is None else f"{found.coverage:.0%}",
        "-" if found.median_width is None else f"{found.median_width:.2f}",
    ]


class TextTable(NamedTuple):
    """A title, a head and lines of text."""

    title: str
    head: tuple[str, ...]
    lines: list[list[str]]

    def text(self) -> str:
        """Returns the table in aligned columns."""
        rows = [list(self.head), *self.lines]
        widths = [max(len(row[place]) for row in rows) for place in range(len(self.head))]
        shown = [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([self.title, *(f"  {line}" for line in shown), ""])

    def markdown(self) -> str:
        """Returns the table in Markdown."""
        rule = "|".join("---" if place == 0 else "---:" for place in range(len(self.head)))
        lines = [f"| {' | '.join(row)} |" for row in (list(self.head), *self.lines)]
        return "\n".join([lines[0], f"|{rule}|", *lines[1:], ""])


def tables(scored: Sequence[ScoredRow]) -> list[TextTable]:
    """Returns every table of the report, in order."""
    made = []
    for family in MetricFamily:
        own = [
            one for one in scored if one.row.metric in METRICS and METRICS[one.row.metric].family is family
        ]
        if own:
            made.append(_by("metric", family, own, lambda one: one.row.metric))
            made.append(
                _by("source and metric", family, own, lambda one: f"{one.row.source}: {one.row.metric}")
            )
    targeted = [one for one in scored if is_targeted(one.row)]
    if targeted:
        made.append(_by("source", "metrics with a target", targeted, lambda one: one.row.source))
        made.append(_widths(targeted))
    if any(one.row.metric in _CACHE for one in targeted):
        made.append(_cache_tokens(targeted))
    made.append(_reasons(scored))
    stated = stated_verdicts(scored)
    for title, cases in (
        ("does it fit, as rows say", stated),
        ("does it fit, with the runs whose peak was measured", [*stated, *measured_verdicts(scored)]),
    ):
        found = verdicts(cases)
        if found and (cases is stated or len(cases) > len(stated)):
            made.append(_verdicts(title, found))
    return made


class StepTimeErrors(NamedTuple):
    """Median and 90th percentile of relative errors of the time of steps."""

    rows: int
    median: float
    p90: float

    def cells(self) -> list[str]:
        """Returns the cells of a table."""
        return [str(self.rows), _share(self.median), _share(self.p90)]


def _speeds(errors: Sequence[float]) -> StepTimeErrors:
    sized = [abs(error) for error in errors]
    return StepTimeErrors(len(sized), statistics.median(sized), percentile(sized, 0.9))


def _time_ratio(one: ScoredRow) -> float:
    """Returns estimated over measured seconds, for metrics of time and of rates."""
    return 1.0 + one.error if METRICS[one.row.metric].counts_time else 1.0 / (1.0 + one.error)


def iron_law_errors(scored: Iterable[ScoredRow]) -> list[float]:
    """Returns errors of the Iron Law with the one utilization that minimises their median.

    The same FLOPs at the same peak: its time is the estimate's by the ratio of utilizations.
    """
    rows = [one for one in scored if one.utilization]
    reached = [one.utilization * _time_ratio(one) for one in rows if one.utilization]

    def errors(utilization: float) -> list[float]:
        off = [share / utilization - 1.0 for share in reached]
        return [
            error if METRICS[one.row.metric].counts_time else 1.0 / (1.0 + error) - 1.0
            for one, error in zip(rows, off, strict=True)
        ]

    best = min(reached, key=lambda share: statistics.median(map(abs, errors(share))), default=1.0)
    return errors(best)


def step_table(scored: Sequence[ScoredRow], pooled: Sequence[ScoredRow]) -> TextTable | None:
    """Returns training rows by method, separately with and without stated recomputation.

    The model, the model without the constants of frameworks (``pooled``), and the Iron Law with the one
    utilization that is best for the rows of its line.
    """
    lines = []
    for name, stated in (("recomputation stated", True), ("not stated", False)):
        for title, rows in (("model", scored), ("without constants of frameworks", pooled)):
            own = _trained(rows, stated=stated)
            if own:
                lines.append([f"{name}: {title}", *_speeds([one.error for one in own]).cells()])
        own = _trained(scored, stated=stated)
        if own:
            law = _speeds(iron_law_errors(own))
            lines.append([f"{name}: Iron Law, one best utilization", *law.cells()])
    title = "throughput of training beside the Iron Law and without constants of frameworks"
    return TextTable(title, ("rows and method", "rows", "median", "p90"), lines) if lines else None


def _trained(scored: Iterable[ScoredRow], *, stated: bool) -> list[ScoredRow]:
    return [
        one
        for one in scored
        if one.figure is not None
        and one.row.kind == "training"
        and METRICS[one.row.metric].family is MetricFamily.THROUGHPUT
        and one.error > -1.0
        and (one.row.recomputation != "unknown") is stated
    ]


def _by(what: str, family: str, own: Sequence[ScoredRow], key: Callable[[ScoredRow], str]) -> TextTable:
    lines = [[name, *cells(statistics_of(group))] for name, group in grouped(own, key).items()]
    lines.append(["overall", *cells(statistics_of(own))])
    return TextTable(f"{family} by {what}", (what, *HEAD), lines)


def _reasons(scored: Sequence[ScoredRow]) -> TextTable:
    metrics = grouped((one for one in scored if one.skipped is not None), lambda one: one.row.metric)
    lines = [
        [reason, metric, str(count)]
        for metric, group in metrics.items()
        for reason, count in sorted(reasons(group).items())
    ]
    return TextTable("rows skipped by reason", ("reason", "metric", "rows"), sorted(lines))


def _verdicts(title: str, found: FitVerdicts) -> TextTable:
    return TextTable(
        f"{title}: Brier score {found.brier:.4f}, {found.decided:.0%} below 10% or above 90%",
        ("what happened", "said to fit", "said not to fit"),
        [
            ["fits", str(found.fits_said_fits), str(found.fits_said_not)],
            ["does not fit", str(found.not_said_fits), str(found.not_said_not)],
        ],
    )


def shortfalls(scored: Sequence[ScoredRow]) -> list[str]:
    """Returns the reasons for which the command fails, one line each."""
    return [
        f"{source}: {share:.0%} of the eligible rows of its targeted metrics are estimated, "
        f"{LEAST_ESTIMATED:.0%} are needed"
        for source, share in sorted(short_sources(scored).items())
    ]


def details(scored: Iterable[ScoredRow]) -> TextTable:
    """Returns a table of the details behind rows that are not modelled yet."""
    counts: dict[tuple[str, str], int] = {}
    for one in scored:
        if one.skipped is not None and one.detail:
            key = (one.skipped.value, f"{one.row.source}: {one.detail[:100]}")
            counts[key] = counts.get(key, 0) + 1
    lines = [[reason, detail, str(count)] for (reason, detail), count in sorted(counts.items())]
    return TextTable("why rows were skipped", ("reason", "detail", "rows"), lines)


def fit_table(
    problem: FittingProblem, fitted: FittedConstants, folds: Sequence[FittedConstants]
) -> TextTable:
    """Returns the prior, the fitted value and the range over the folds of each constant."""
    lines = []
    for place, constant in enumerate(problem.constants):
        values = [fold.values[place] for fold in folds]
        lines.append(
            [
                constant.name,
                f"{constant.low:g} to {constant.high:g}",
                f"{constant.prior:g}",
                f"{fitted.values[place]:g}",
                f"{min(values):g} to {max(values):g}",
            ]
        )
    title = f"constants fitted to {fitted.rows} rows of {fitted.groups} groups"
    return TextTable(title, ("constant", "range", "prior", "fitted", "over the folds"), lines)


def residual_table(spread: Sequence[MeasuredRatio]) -> TextTable:
    """Returns measured over estimated, of rows outside of the fit."""
    return TextTable(
        "measured over estimated, rows outside of the fit",
        ("family", "level", "10%", "median", "90%", "rows"),
        [[r.family, r.level, f"{r.low:g}", f"{r.value:g}", f"{r.high:g}", str(r.rows)] for r in spread],
    )


OWN_RUNS = "own runs beside the estimates"
"""Title of the table of local evidence."""


class PageProvenance(NamedTuple):
    """Provenance of a page: the command, and each file with its digest and number of rows."""

    command: str
    files: tuple[tuple[str, str, int], ...]
    held_out: bool


def _prose(name: str) -> str:
    """Returns a static part of the page."""
    return (files("accuracy") / "page" / f"{name}.md").read_text()


def page(scored: Sequence[ScoredRow], made: PageProvenance, beside: Sequence[TextTable] = ()) -> str:
    """Returns the page about accuracy. ``beside`` are tables of further estimates."""
    parts = [_prose("introduction"), "## Made from\n", f"Command: `{made.command}`\n"]
    lines = [[name, str(rows), f"`{digest}`"] for name, digest, rows in made.files]
    parts.append(TextTable("", ("rows of", "rows", "sha256"), lines).markdown())
    if made.held_out:
        parts.append(
            "Each row is estimated with constants fitted without its group (source, model, device): "
            "`accuracy/folds.json` is the split.\n"
        )
    for table in tables(scored):
        parts.append(f"## {table.title[0].upper()}{table.title[1:]}\n")
        parts.append(table.markdown())
        if table.head[0] == "reason":
            parts.append(_prose("reasons"))
    for table in beside:
        parts += [f"## {table.title[0].upper()}{table.title[1:]}\n", table.markdown()]
        if table.title == OWN_RUNS:
            parts.append(_prose("local"))
    if any(
        METRICS[one.row.metric].family is MetricFamily.SERVING for one in scored if one.row.metric in METRICS
    ):
        parts.append(_prose("serving"))
    parts.append(_prose("columns"))
    return "\n".join(parts)


def _widths(scored: Sequence[ScoredRow]) -> TextTable:
    """Returns a table that compares the intervals with one constant width of equal coverage."""
    own = [one for one in scored if is_targeted(one.row)]
    lines = []
    for name, group in {**grouped(own, lambda one: one.row.source), "overall": own}.items():
        constant, median = constant_width(group), statistics_of(group).median_width
        if constant is not None and median is not None:
            lines.append([name, f"{median:.2f}", f"{constant:.2f}"])
    title = "median width of intervals beside one constant width that covers as many rows"
    return TextTable(title, ("source", "width", "constant width"), lines)


_CACHE = ("kv_cache_blocks", "kv_cache_tokens")
_BLOCK_TOKENS, _CLOSE = 16, 0.05


def _cache_tokens(scored: Sequence[ScoredRow]) -> TextTable:
    """Returns a table of the errors in the tokens of engine logs."""
    logged = {one.row.run_id for one in scored if one.row.metric == "kv_cache_memory_per_gpu"}
    rows = [one for one in scored if one.row.metric in _CACHE and one.figure is not None]
    lines = []
    for name, own in (
        ("logged", [one for one in rows if one.row.run_id in logged]),
        ("estimated", [one for one in rows if one.row.run_id not in logged]),
    ):
        off = [abs(one.figure.value - one.row.value) for one in own if one.figure]
        blocks = sum(
            tokens <= (facts.setting(one.row, "block_size") or _BLOCK_TOKENS)
            for tokens, one in zip(off, own, strict=True)
        )
        close = sum(abs(one.error) <= _CLOSE for one in own)
        covered = sum(one.is_covered for one in own)
        lines.append([name, str(len(own)), str(blocks), str(covered), str(close)])
    head = ("memory of the cache", "rows", "within a block", "within the interval", "within 5%")
    return TextTable("tokens of the KV cache in engine logs", head, lines)
