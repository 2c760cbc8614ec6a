"""The page of `make soak`, from its records."""

import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

REPORT = Path(__file__).resolve().parent.parent / "docs" / "soak.md"
SECONDS_AN_HOUR = 3600
MEGABYTE = 1_000_000
WARM_SHARE = 0.1
"""Share of the time after which the first figures are taken: by then every route has been asked for."""
SIZE_TITLES = ("", "at 10 %", "at 50 %", "at 100 %", "an hour, fitted", "an hour, second half")
AFTER_SECONDS = 5.0
SHED = ("429", "503")
UNANSWERED = "no answer"
_LEFT_OUT = re.compile(r" \((\d+) times more since the last warning\)")
_ID = re.compile(r"\b[0-9a-f]{32}\b")
HEAD = """\
# Soak

Written by `make soak`: one process with callers of four tenants on the same machine, for hours at a rate
that it can answer; then twice the rate that saturates. `SECONDS=7200 RATE=20 DATABASE=postgresql` are its
settings.

A scene is one or a few requests of one caller: an estimate, a quote that is submitted and cancelled, a
plan, a node that reports, claims a lease and gives up the run, an import, a page, a wrong body. Scenes
begin at random times whether or not earlier ones were answered. Each tenant has 300 sites and 300 offers of
its own, a budget, a policy, a webhook and a node. The callers use a part of the processors that the service
would have.

Resident and proportional memory have pages of files in them, which come and go with what other processes map.
Anonymous memory is what the process holds itself.

"Saturates" is the first rate, doubled from the one of the soak, at which more than two answers in a hundred
are refused (429 or 503) or do not come in twelve seconds. During the overload one tenant sends half of all
scenes and three send a sixth each.
"""

Line = dict[str, Any]
Table = list[tuple[object, ...]]


def write_report(records: list[Path]) -> None:
    """Writes docs/soak.md from the records of runs, one on each database."""
    parts = [HEAD]
    for record in records:
        parts += _describe_run([json.loads(line) for line in record.read_text().splitlines()])
    REPORT.write_text("\n".join(parts))


def _describe_run(lines: list[Line]) -> list[str]:
    begun = _find(lines, "begin")[0]
    samples = [line for line in _find(lines, "sample") if line["phase"] == "soak"]
    parts = [
        f"## {begun['database']}, {begun['per_second']:g} scenes a second\n",
        (
            f"{begun['conditions']}, other work on the machine: {_describe_load(samples)}. "
            f"The limit of memory is {begun['memory_limit_bytes'] / MEGABYTE:.0f} MB. "
            f"{samples[-1]['at_seconds'] - samples[0]['at_seconds']:,.0f} s were sampled.\n"
        ),
        _format_table(SIZE_TITLES, _list_sizes(samples)),
        _format_table(
            ("requests", "answers", "p50, ms", "p99, ms", "503 and 429", "no answer", "500"),
            _list_kinds([line for line in lines if line.get("phase") == "soak"]),
        ),
        _describe_refusals("Refused during the soak", [x for x in lines if x.get("phase") == "soak"]),
    ]
    if _find(lines, "overload"):
        parts += _describe_overload(lines, begun)
    for said in _find(lines, "log"):
        warnings = _count_warnings(said["warnings"])
        parts.append("Warnings and errors of the log:\n" if warnings else "The log has no warnings.\n")
        if warnings:
            parts.append(_format_table(("message", "times"), list(warnings.most_common())))
    return parts


def _count_warnings(logged: dict[str, int]) -> Counter[str]:
    """Counts the first lines of messages, with the times that a message says it was left out."""
    counts: Counter[str] = Counter()
    for text, number in logged.items():
        first = text.partition("\n")[0]
        left_out = sum(map(int, _LEFT_OUT.findall(first)))
        counts[_ID.sub("…", _LEFT_OUT.sub("", first))] += number * (1 + left_out)
    return counts


def _find(lines: Iterable[Line], kind: str) -> list[Line]:
    return [line for line in lines if line["line"] == kind]


def _describe_load(samples: list[Line]) -> str:
    loads = sorted(sample["load"] for sample in samples)
    return f"load average {statistics.median(loads):.1f} in the median, {loads[-1]:.1f} at most"


def _list_sizes(samples: list[Line]) -> Table:
    warm, late = samples[int(WARM_SHARE * len(samples)) :], samples[len(samples) // 2 :]
    listed = (
        ("resident memory, MB", "rss_bytes", MEGABYTE),
        ("proportional memory, MB", "pss_bytes", MEGABYTE),
        ("anonymous memory, MB", "anonymous_bytes", MEGABYTE),
        ("descriptors", "descriptors", 1),
        ("threads", "threads", 1),
        ("database, MB", "database_bytes", MEGABYTE),
        ("write-ahead log, MB", "wal_bytes", MEGABYTE),
        ("processor, s", "cpu_seconds", 1),
    )
    return [
        (
            title,
            *(f"{sample[name] / unit:,.0f}" for sample in (warm[0], late[0], late[-1])),
            *(f"{_fit(part, name) / unit:+,.1f}" for part in (warm, late)),
        )
        for title, name, unit in listed
    ]


def _fit(samples: list[Line], name: str) -> float:
    """Returns the slope of a line through the samples, an hour."""
    if len(samples) < 2:  # noqa: PLR2004
        return 0.0
    at = [sample["at_seconds"] for sample in samples]
    return SECONDS_AN_HOUR * statistics.linear_regression(at, [sample[name] for sample in samples]).slope


def _list_kinds(lines: list[Line]) -> Table:
    times: defaultdict[str, list[float]] = defaultdict(list)
    labels: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for kind, took in line.get("milliseconds", {}).items():
            times[kind] += took
            labels[kind].update(line["labels"][kind])
    return [
        (
            kind,
            f"{len(took):,}",
            f"{_find_quantile(took, 0.5):,.0f}",
            f"{_find_quantile(took, 0.99):,.0f}",
            sum(number for label, number in labels[kind].items() if label.startswith(SHED)),
            labels[kind][UNANSWERED],
            sum(number for label, number in labels[kind].items() if label.startswith("500")),
        )
        for kind, took in sorted(times.items())
    ]


def _find_quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _count_labels(lines: list[Line], by: str) -> dict[str, Counter[str]]:
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for name, labels in line.get(by, {}).items():
            counted[name].update(labels)
    return counted


def _describe_refusals(title: str, lines: list[Line]) -> str:
    said: Counter[str] = Counter()
    for labels in _count_labels(lines, "labels").values():
        said.update({label: n for label, n in labels.items() if label.startswith((*SHED, "500"))})
    return f"{title}: {_format_counts(said) or 'nothing'}.\n"


def _describe_overload(lines: list[Line], begun: Line) -> list[str]:
    overload = [line for line in lines if line.get("phase") == "overload"]
    samples = _find(overload, "sample")
    limit = begun["memory_limit_bytes"] / MEGABYTE
    most = max((sample["rss_bytes"] for sample in samples), default=0) / MEGABYTE
    steps: Table = [(f"{x['per_second']:g}", f"{100 * x['shed_share']:.1f} %") for x in _find(lines, "step")]
    said = _find(lines, "overload")[0]
    return [
        f"### {begun['database']}, overload\n",
        _format_table(("scenes a second", "refused or late"), steps),
        (
            f"{2 * said['saturating_per_second']:g} scenes a second were sent for {said['seconds']:.0f} s. "
            f"Memory was {most:.0f} MB at most, of {limit:.0f} MB.\n"
        ),
        _format_table(
            ("tenant", "asked", "answered", "share", "429 and 503", "no answer in 12 s", "500"),
            _list_tenants(overload),
        ),
        _describe_refusals("Refused", overload),
        _format_table(("", "before, ms", "1 s after", "2 s", "3 s", "from 5 s on"), _list_recovery(lines)),
    ]


def _list_tenants(lines: list[Line]) -> Table:
    rows: Table = []
    for tenant, labels in _count_labels(lines, "tenants").items():
        asked = labels.total()
        shed = sum(number for label, number in labels.items() if label.startswith(SHED))
        failed = sum(number for label, number in labels.items() if label.startswith("500"))
        answered = asked - shed - failed - labels[UNANSWERED]
        share = f"{100 * answered / asked:.0f} %"
        rows.append((tenant, f"{asked:,}", f"{answered:,}", share, f"{shed:,}", labels[UNANSWERED], failed))
    return rows


def _list_recovery(lines: list[Line]) -> Table:
    """Returns medians of times from before the overload, and of requests that began so long after it."""
    before = [probe for line in _find(lines, "before") for probe in line["probes"]]
    after = [probe for line in _find(lines, "recovery") for probe in line["probes"]]

    def describe(name: str, probes: list[Line]) -> str:
        times = [probe[name] for probe in probes if probe[f"{name}_status"] in (200, 201)]
        return f"{1000 * statistics.median(times):,.0f}" if times else "refused"

    def list_begun(since: float, until: float) -> list[Line]:
        return [probe for probe in after if since <= probe["began_seconds"] < until]

    spans = ((0.9, 1.9), (1.9, 2.9), (2.9, 3.9), (AFTER_SECONDS, 60.0))
    return [
        (title, describe(name, before), *(describe(name, list_begun(*span)) for span in spans))
        for title, name in (("`/readyz`", "readyz"), ("a quote", "quote"))
    ]


def _format_counts(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{number:,} times {label}" for label, number in sorted(counts.items(), key=lambda x: -x[1])
    )


def _format_table(titles: tuple[str, ...], rows: Table) -> str:
    lines = [titles, ("---",) * len(titles), *rows]
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in lines)
