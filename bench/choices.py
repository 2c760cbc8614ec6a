"""Holds the configurations that estimates would choose against those that measurements would.

``python -m bench.choices measured-inference.csv``. Runs of one model, device, engine, precision and lengths
that differ in layout and requests at a time are a search over what was measured: of those whose time per
output token is estimated to keep a level the one with most estimated tokens per device is chosen, and held
against the one that the measurements would choose.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from accuracy.metrics import METRIC_UNITS
from accuracy.rows import MeasuredRow, by_run, read_rows
from accuracy.scoring import ask
from service.estimates.throughput import estimate_throughput
from service.evidence.snapshot import build_shipped_snapshot
from service.resolve.catalog import CatalogView
from service.schemas.estimates import ThroughputEstimateRequest

LEVELS = (0.25, 0.5, 0.75)
"""Service levels, as quantiles of the measured times per output token."""


class MeasuredConfiguration(NamedTuple):
    """A measured configuration: seconds per output token and tokens per second and device, twice."""

    layout: str
    measured_seconds: float
    measured_rate: float
    seconds: float
    rate: float


class LevelChoice(NamedTuple):
    """Result of a level: rate of the choice over the best, time over the level, agreement of layouts."""

    rate_share: float
    time_share: float
    same: bool


def _run(
    rows: Sequence[MeasuredRow], question: ThroughputEstimateRequest, catalog: CatalogView
) -> MeasuredConfiguration | None:
    first, each = (next((row for row in rows if row.metric == name), None) for name in ("ttft", "tpot"))
    answer = estimate_throughput(question, catalog)
    tokens, paced = (
        answer.get("output_tokens_per_second_per_device"),
        answer.get("time_per_output_token_seconds"),
    )
    if first is None or each is None or tokens is None or paced is None:
        return None
    requests, outputs = float(each.batch["concurrency"]), float(each.length["output_tokens"])
    lasting = first.value + (outputs - 1.0) * each.value
    rate = requests * outputs / lasting / question.cluster.accelerator_count
    return MeasuredConfiguration(
        str(sorted(each.layout.items())), each.value, rate, paced["value"], tokens["value"]
    )


def scenarios(path: Path, catalog: CatalogView) -> Iterator[list[MeasuredConfiguration]]:
    """Runs that differ in layout and requests at a time, of scenarios with more than one layout."""
    rows = [row for row in read_rows(path, METRIC_UNITS).rows if "disagg" not in row.text["notes"]]
    rows = [row for row in rows if row.metric in ("ttft", "tpot") and "concurrency" in row.batch]
    runs, found = by_run(rows), defaultdict(list)
    for asked in ask([row for row in rows if row.metric == "tpot"], catalog):
        if not asked.shapes or not isinstance(asked.shapes[0], ThroughputEstimateRequest):
            continue
        row = asked.row
        run = _run(list(runs[row.run_id].values()), asked.shapes[0], catalog)
        key = (row.source, row.model_id, row.accelerator_id, row.text["engine"], row.text["engine_version"])
        if run is not None:
            found[key, str(row.precision), str(row.length)].append(run)
    yield from (one for one in found.values() if len({run.layout for run in one}) > 1)


def choices(runs: Sequence[MeasuredConfiguration]) -> Iterator[LevelChoice]:
    """Returns one result for each level that the estimates consider attainable."""
    times = sorted(run.measured_seconds for run in runs)
    for share in LEVELS:
        level = times[int(share * (len(times) - 1))]
        kept = [run for run in runs if run.seconds <= level]
        if kept:
            chosen = max(kept, key=lambda run: run.rate)
            best = max(
                (run for run in runs if run.measured_seconds <= level), key=lambda run: run.measured_rate
            )
            yield LevelChoice(
                chosen.measured_rate / best.measured_rate,
                chosen.measured_seconds / level,
                chosen.layout == best.layout,
            )


def main() -> None:
    """Print the figures of the page."""
    catalog = build_shipped_snapshot()
    found = list(scenarios(Path(sys.argv[1]), catalog))
    chosen = [choice for runs in found for choice in choices(runs)]
    within = [choice for choice in chosen if choice.time_share <= 1.0]
    print(f"{len(found)} scenarios, {sum(map(len, found))} runs, {len(chosen)} choices")
    print(f"same layout as the best: {statistics.fmean(choice.same for choice in chosen):.2f}")
    print(f"keep the level: {len(within) / len(chosen):.2f}")
    print(f"rate over the best, median: {statistics.median(choice.rate_share for choice in chosen):.2f}")
    shares = statistics.quantiles((choice.rate_share for choice in within), n=10)
    print(f"of those that keep it, p10, p20, median: {shares[0]:.2f} {shares[1]:.2f} {shares[4]:.2f}")
    deciles = statistics.quantiles((choice.time_share for choice in chosen), n=10)
    print(f"time over the level, p10, median, p90: {deciles[0]:.2f} {deciles[4]:.2f} {deciles[8]:.2f}")


if __name__ == "__main__":
    main()
