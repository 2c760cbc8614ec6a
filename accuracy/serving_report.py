"""Tables of serving rows: against targets, with whole hold-outs, and against a plain roofline."""

from collections.abc import Sequence
from typing import Final

from accuracy.holdouts import TriedHoldOut, by_kind
from accuracy.metrics import METRICS, SERVING_TARGETS
from accuracy.report import HEAD, TextTable, cells, grouped
from accuracy.rows import MeasuredRow
from accuracy.scoring import AskedRow, ScoredRow, statistics_of
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.references import AssumedEfficiency

ROOFLINE_SHARE: Final = 0.8
"""Share of peak and of bandwidth in the better of the two plain rooflines that reference figures exist
for.
"""

_LEFT_OPEN: Final = frozenset({"accelerator", "layout", "batch", "lengths"})


def is_stated(row: MeasuredRow) -> bool:
    """Returns true if the row states device, layout, batch and lengths; its model is in row or catalog."""
    return not (_LEFT_OPEN & row.missing)


def _family(one: ScoredRow) -> str:
    metric = METRICS.get(one.row.metric)
    spread = metric.spread if metric else None
    return spread if spread and spread in SERVING_TARGETS else ""


def _aim(family: str) -> list[str]:
    target = SERVING_TARGETS[family]
    return [f"{target.median:.0%}", "-" if target.p90 is None else f"{target.p90:.0%}"]


def target_table(scored: Sequence[ScoredRow]) -> TextTable:
    """Returns each kind of answer against its target, for rows that state all facts and for others."""
    lines = []
    for family in SERVING_TARGETS:
        own = [one for one in scored if _family(one) == family]
        for title, stated in (("stated", True), ("something left open", False)):
            rows = [one for one in own if is_stated(one.row) is stated]
            if rows:
                lines.append([f"{family}: {title}", *cells(statistics_of(rows)), *_aim(family)])
    head = ("kind of answer", *HEAD, "aim: median", "aim: p90")
    return TextTable("serving beside what is aimed at", head, lines)


def hold_out_table(tried: Sequence[TriedHoldOut], family: str = "serving_tpot") -> TextTable:
    """Returns a kind of answer for whole groups, devices, models, releases and engines outside of the fit."""
    lines = []
    for kind, group in by_kind(tried):
        pooled: list[ScoredRow] = []
        for one in group:
            own = [scored for scored in one.scored if _family(scored) == family and is_stated(scored.row)]
            pooled += own
            if any(scored.figure for scored in own):
                lines.append([f"{kind} {one.held.name}", *cells(statistics_of(own))])
        lines.append([f"every {kind}", *cells(statistics_of(pooled))])
    return TextTable(f"{family}, held out whole (rows that state all)", ("held out", *HEAD), lines)


def as_roofline(asked: Sequence[AskedRow]) -> list[AskedRow]:
    """Returns the likeliest question of each row under an assumed share of peak and bandwidth."""
    share = AssumedEfficiency(
        source="assumed", utilization=ROOFLINE_SHARE, bandwidth_utilization=ROOFLINE_SHARE
    )
    return [
        one._replace(shapes=tuple(shape.model_copy(update={"efficiency": share}) for shape in one.shapes[:1]))
        for one in asked
        if all(isinstance(shape, ThroughputEstimateRequest) for shape in one.shapes)
    ]


def roofline_table(scored: Sequence[ScoredRow], roofline: Sequence[ScoredRow]) -> TextTable:
    """Returns the estimate and the plain roofline on the rows that both answer."""
    plain = {one.row.id: one for one in roofline if one.figure is not None}
    lines = []
    for family in SERVING_TARGETS:
        own = [one for one in scored if _family(one) == family and one.figure and one.row.id in plain]
        for name, rows in {**grouped(own, lambda one: one.row.source), "every source": own}.items():
            if not rows:
                continue
            mine, theirs = statistics_of(rows), statistics_of([plain[one.row.id] for one in rows])
            lines.append([f"{family}: {name}", cells(mine)[0], *cells(mine)[2:5], *cells(theirs)[2:5]])
    head = ("kind of answer and source", "rows", "median", "p90", "bias")
    wide = (*head, "roofline: median", "roofline: p90", "roofline: bias")
    return TextTable(f"serving beside a plain roofline at {ROOFLINE_SHARE:.0%}", wide, lines)
