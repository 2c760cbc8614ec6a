"""Words and numbers of the pages: states, reasons, devices and figures as a person reads them."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from service.kit.http.html import format_moment, format_plain
from service.kit.locales import format_count, localize_number
from service.kit.reports.numbers import (
    BYTES,
    BYTES_PER_SECOND,
    FLOPS_PER_SECOND,
    PERCENT,
    PLAIN,
    SECONDS,
    TIMES,
    WATTS,
    UnitLadder,
    UnitScale,
    add_unit,
    format_number,
    select_scale,
    to_plain_words,
)

_DIGITS: Final = 3
_SPACE: Final = "\N{NO-BREAK SPACE}"
_MINUS: Final = "\N{MINUS SIGN}"
_TENTH: Final = 0.0995
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_LADDERS: Final[Mapping[str, UnitLadder]] = {
    "flops_per_second": FLOPS_PER_SECOND,
    "bytes_per_second": BYTES_PER_SECOND,
    "seconds": SECONDS,
    "bytes": BYTES,
    "watts": WATTS,
    "share": PERCENT,
    "joules_per_byte": (UnitScale(1e-12, "pJ/B"),),
    "tokens": (UnitScale(1.0, "tokens"),),
    "elements": (UnitScale(1.0, "elements"),),
}


def select_figure_scale(size: float, unit: str) -> UnitScale:
    """Returns the unit in which a reader takes in a figure of this size."""
    return select_scale(_LADDERS.get(unit, PLAIN), size)


def format_figure(value: float, unit: str, scale: UnitScale | None = None) -> str:
    """Returns a figure to three digits in the unit of its size, or in ``scale``."""
    scale = scale or select_figure_scale(value, unit)
    return add_unit(format_number(value / scale.factor, _DIGITS), scale)


def format_range(low: str, high: str) -> str:
    """Returns both ends of a range in one unit, which is written once; nothing if they are equal."""
    return f"{low.partition(_SPACE)[0]} to {high}" if low != high else ""


def format_share(share: float) -> str:
    """Returns a share in whole per cent, or with one decimal if it is below ten."""
    return localize_number(f"{share:.1%}" if abs(share) < _TENTH else f"{share:,.0%}")


def format_change(change: float) -> str:
    """Returns a relative change with its sign."""
    text = format_share(abs(change))
    if text == "0.0%":
        return text
    return f"{_MINUS if change < 0 else '+'}{text}"


def format_ago(at: datetime | str, time: datetime) -> Markup:
    """Returns the time since a moment, or the moment itself if it is more than two days ago."""
    moment = at if isinstance(at, datetime) else datetime.fromisoformat(at)
    seconds = (time - moment).total_seconds()
    if seconds >= 2 * _DAY:
        return format_moment(moment)
    if seconds < _MINUTE:
        text = "less than a minute ago"
    elif seconds < 2 * _HOUR:
        text = f"{seconds // _MINUTE:.0f} min ago"
    else:
        text = f"{seconds // _HOUR:.0f} hours ago"
    written = Markup('<time datetime="{}">{}</time>')
    return written.format(f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", text)


class StateWords(NamedTuple):
    """A state in words, the class of its colour, and a sentence about it."""

    text: str
    kind: str
    detail: str = ""


_REVOKED: Final = StateWords("revoked", "quiet", "Nothing is accepted from it any more. Its results stay.")
_PUT_OUT: Final = StateWords(
    "quarantined",
    "bad-text",
    "An operator has put it out: it gets no runs. POST /v1/nodes/{id}:resume puts it back.",
)
_COMPROMISED: Final = StateWords(
    "quarantined",
    "bad-text",
    "Two hosts use its credential. Enrol its host with a new token, or revoke the node.",
)
_UNHEARD: Final = StateWords(
    "not heard from yet",
    "warn-text",
    "It has enrolled and was never heard from. Start its worker: ironlaw worker run.",
)
_OFFLINE: Final = StateWords(
    "offline",
    "bad-text",
    "It has stopped sending heartbeats. On its host, ironlaw worker status says why.",
)
_DRAINING: Final = StateWords(
    "draining",
    "warn-text",
    "It finishes its run and gets no other. POST /v1/nodes/{id}:resume gives it runs again.",
)
_ONLINE: Final = StateWords("online", "good-text")


def describe_node_state(node: Mapping[str, Any]) -> StateWords:
    """Returns the state of a node, with what to do about it."""
    state = _select_node_state(node)
    return state._replace(detail=state.detail.replace("{id}", node["id"]))


def _select_node_state(node: Mapping[str, Any]) -> StateWords:
    if node["state"] == "revoked":
        return _REVOKED
    if node["state"] == "quarantined":
        return _PUT_OUT if node.get("reason") == "OPERATOR" else _COMPROMISED
    if not node["reachable"]:
        return _OFFLINE if "last_seen_at" in node else _UNHEARD
    return _DRAINING if node["state"] == "draining" else _ONLINE


_RUN_STATES: Final[Mapping[str, StateWords]] = {
    "waiting": StateWords("waiting", "quiet", "No node has taken it yet."),
    "running": StateWords("running", ""),
    "completed": StateWords("completed", "good-text"),
    "failed": StateWords("failed", "bad-text"),
    "cancelled": StateWords("cancelled", "quiet"),
    "dead": StateWords("dead", "bad-text", "It was lost too often. Its results so far are kept."),
}
_RUN_REASONS: Final[Mapping[str, str]] = {
    "LOST_ON_TWO_NODES": "Two nodes have lost it.",
    "ATTEMPTS_SPENT": "Every attempt was lost.",
    "LEASE_LOST": "The node stopped renewing its lease; the run waits for the next attempt.",
    "LEASE_EXPIRED": "The lease of the node ended before the run did.",
    "STALE_LEASE": "The lease had ended or was granted again.",
    "NODE_WITHDRAWN": "The node was put out of service or enrolled again while it ran.",
    "NODE_REVOKED": "The node that it waited for was revoked.",
    "NOT_BEGUN": "No node has taken it within a week.",
    "NOT_FINISHED": "No attempt has ended within a week.",
    "NOTHING_MEASURED": "No benchmark could be measured.",
    "DEVICE_NOT_USABLE": "The device could not be used.",
    "DISK_REFUSES": "The disk of the node refuses to store results.",
    "WORKER_STOPPED": "The worker was stopped.",
    "WORKER_RESTARTED": "The worker was restarted.",
    "CANCELLED": "It was cancelled.",
}
_RESULT_REASONS: Final[Mapping[str, str]] = {
    "PROCESS_NOT_STARTED": "Its process could not be started",
    "PROCESS_DIED": "Its process died",
    "TIMEOUT": "It took too long and was stopped",
    "WRONG_RECORD": "Its process wrote no valid record",
    "RECORD_TOO_LARGE": "Its record was too large",
    "WRONG_RESULT": "What it computed was wrong",
    "TOO_SHORT": "Its work was too short to be timed",
    "NOT_TOGETHER": "The devices did not start together",
    "OUT_OF_MEMORY": "Memory ran out",
    "BENCHMARK_ERROR": "The benchmark ended with an error",
}


def describe_run_state(run: Mapping[str, Any]) -> StateWords:
    """Returns the state of a run, with the reason of its end."""
    state = _RUN_STATES[run["state"]]
    said = [state.detail, _describe_reason(_RUN_REASONS, run), run.get("detail", "")]
    if run["state"] == "running" and run["cancel_requested"]:
        said.append("Its cancellation is requested.")
    return state._replace(detail=" ".join(part for part in said if part))


def _describe_reason(words: Mapping[str, str], of: Mapping[str, Any]) -> str:
    reason = of.get("reason")
    return words.get(reason, f"{to_plain_words(reason.lower()).capitalize()}.") if reason else ""


def describe_failure(result: Mapping[str, Any]) -> str:
    """Returns the reason that a result has no measurement."""
    if result["status"] == "unsupported":
        return "The device or its software does not support it"
    known = _describe_reason(_RESULT_REASONS, result).removesuffix(".")
    return known or {"timeout": _RESULT_REASONS["TIMEOUT"]}.get(result["status"], "It failed")


_VERDICTS: Final[Mapping[str, StateWords]] = {
    "accepted": StateWords("accepted", "good-text"),
    "suspect": StateWords("suspect", "warn-text", "Unlikely, not disproven: it is measured again."),
    "evidence_only": StateWords("evidence only", "warn-text", "True, but not of the device alone."),
    "rejected": StateWords("rejected", "bad-text", "It cannot be true, or is not a result of this run."),
}
_NOT_JUDGED: Final = StateWords("not validated yet", "quiet")


def describe_verdict(verdict: str | None) -> StateWords:
    """Returns a verdict in words."""
    return _VERDICTS.get(verdict or "", _NOT_JUDGED)


def describe_finding(finding: Mapping[str, Any]) -> str:
    """Returns a check that did not pass as a sentence, with the observed value and its limit."""
    name = to_plain_words(finding["rule"].rpartition(".")[2]).capitalize()
    numbers = [
        f"{word} {format_plain(float(finding[member]))}"
        for member, word in (("observed", "observed"), ("limit", "limit"))
        if member in finding
    ]
    measured = f" ({', '.join(numbers)})" if numbers else ""
    return f"{name}: {finding['detail']}{measured}."


def describe_devices(node: Mapping[str, Any]) -> str:
    """Returns the devices of a node with their count, or its processor."""
    inventory = node.get("inventory")
    if inventory is None:
        return "GPUs, not described yet" if node["device"] == "cuda" else "Processor, not described yet"
    counts = Counter(part["name"] for part in inventory["accelerators"])
    if counts:
        return ", ".join(f"{count} {TIMES} {name}" for name, count in counts.items())
    host = inventory["host"]
    name = host.get("cpu_model", f"Processor ({host['architecture']})")
    return f"{name}, {describe_count(host['cpu_count'], 'logical processor')}"


def find_software(node: Mapping[str, Any], name: str) -> str:
    """Returns the version of a part of a node's software, or an empty text."""
    listed = node.get("inventory", {}).get("software", [])
    return next((part["version"] for part in listed if part["name"] == name), "")


def describe_count(count: int, noun: str, plural: str = "") -> str:
    """Returns a count with its noun."""
    return f"{format_count(count)} {noun if count == 1 else plural or f'{noun}s'}"
