"""The page of a benchmark run: its progress, its figures, and the verdicts on its results."""

from collections.abc import Mapping
from typing import Any, Final

from service.benchmarks import service as benchmarks
from service.benchmarks.schemas import ResultFilter
from service.fleet.overview import describe_run
from service.fleet.permissions import ReadableParts
from service.fleet.words import (
    describe_count,
    describe_failure,
    describe_finding,
    describe_verdict,
    format_figure,
    format_range,
    format_share,
    select_figure_scale,
)
from service.kit.database.engine import Reader
from service.nodes import service as nodes

MOST_RESULTS: Final = 2000


def describe_run_page(session: Reader, tenant_id: str, run_id: str, parts: ReadableParts) -> dict[str, Any]:
    """Returns what the page of a run shows. Results need a permission of their own."""
    run = benchmarks.get_run(session, tenant_id, run_id)
    names = nodes.find_names(session, tenant_id, [run["node_id"]] if "node_id" in run else [])
    wanted = ResultFilter(run_id=[run_id])
    results = (
        benchmarks.list_results(session, tenant_id, wanted, after=None, limit=MOST_RESULTS)
        if parts.results
        else []
    )
    return {
        "run": describe_run(run, names),
        "figures": [_describe_figure(figure) for figure in run["figures"]],
        "failures": [_describe_failed(result) for result in results if result["status"] != "ok"],
        "findings": _describe_findings(results),
        "unfinished": [step for step in run["progress"] if step["state"] in {"waiting", "running"}],
        "result_count": len(results),
    }


def _describe_figure(figure: Mapping[str, Any]) -> dict[str, Any]:
    scale = select_figure_scale(figure["value"], figure["metric"])
    value, low, high = (
        format_figure(figure[end], figure["metric"], scale) for end in ("value", "lowest", "highest")
    )
    return {
        "benchmark": figure["benchmark"],
        "shown": value,
        "range": format_range(low, high),
        "spread": format_share(figure["relative_spread"]) if "relative_spread" in figure else "",
        "repeats": describe_count(figure["repeats"], "repeat"),
        "verdict": describe_verdict(figure.get("result_verdict")),
    }


def _describe_failed(result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "benchmark": result["benchmark"],
        "repeat": result["repeat"],
        "status": result["status"],
        "reason": describe_failure(result),
    }


def _describe_findings(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the checks that results did not pass, by benchmark; mere labels come last."""
    groups: dict[tuple[str, str], list[tuple[int, Mapping[str, Any]]]] = {}
    for result in reversed(results):
        for finding in result.get("validation", {}).get("findings", ()):
            key = (result["benchmark"], finding["rule"])
            groups.setdefault(key, []).append((result["repeat"], finding))
    described = [
        {
            "benchmark": benchmark,
            "repeats": _name_repeats({repeat for repeat, _ in found}),
            "verdict": describe_verdict(found[0][1]["verdict"]),
            "reason": describe_finding(found[0][1]),
        }
        for (benchmark, _), found in groups.items()
    ]
    return sorted(described, key=lambda one: one["verdict"].text == "accepted")


def _name_repeats(repeats: set[int]) -> str:
    noun = "repeat" if len(repeats) == 1 else "repeats"
    return f"{noun} {', '.join(str(repeat) for repeat in sorted(repeats))}"
