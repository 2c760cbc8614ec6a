"""Pages of calibrations: each constant before and after, and the questions that it answers."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from service.benchmarks import service as benchmarks
from service.calibrations import service
from service.calibrations.service import FormerConstants
from service.catalog import service as catalog
from service.evidence.service import load_reference_curves
from service.fleet.overview import describe_run
from service.fleet.permissions import ReadableParts
from service.fleet.words import (
    StateWords,
    describe_count,
    format_change,
    format_figure,
    format_range,
    format_share,
    select_figure_scale,
)
from service.kit.database.engine import Reader
from service.kit.reports.numbers import to_plain_words, to_title
from service.nodes import service as nodes

MOST_LISTED: Final = 50
_STATES: Final[Mapping[str, StateWords]] = {
    "active": StateWords("active", "good-text", "Estimates read it."),
    "superseded": StateWords("superseded", "quiet", "A newer one of the same node has replaced it."),
    "withdrawn": StateWords(
        "withdrawn", "bad-text", "It was taken back, and its results are not used again."
    ),
}


def list_calibrations(session: Reader, tenant_id: str) -> list[dict[str, Any]]:
    """Returns the newest calibrations in words."""
    found = service.list_newest(session, tenant_id, {}, limit=MOST_LISTED)
    names = nodes.find_names(session, tenant_id, {one["node_id"] for one in found if "node_id" in one})
    return [_describe_set(one, names) for one in found]


def _describe_set(found: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    node_id = found.get("node_id", "")
    device = "GPU" if found["device"] == "cuda" else "Processor"
    return {
        **found,
        "status": _STATES[found["state"]],
        "node": names.get(node_id, node_id),
        "has_node": node_id in names,
        "measured": found.get("hardware") or found.get("accelerator_id") or device,
        "is_import": found["origin"] == service.IMPORT,
    }


def describe_calibration(
    session: Reader, tenant_id: str, calibration_id: str, parts: ReadableParts
) -> dict[str, Any]:
    """Returns what the page of a calibration shows."""
    found = service.get_calibration(session, tenant_id, calibration_id)
    reference = load_reference_curves().calibration
    former = service.find_former_constants(session, tenant_id, calibration_id, reference)
    names = nodes.find_names(session, tenant_id, [found["node_id"]] if "node_id" in found else [])
    accelerator_id = found.get("accelerator_id", "")
    accelerator = catalog.find_name(session, "accelerators", tenant_id, accelerator_id) or accelerator_id
    described = _describe_set(found, names) | {"accelerator": accelerator}
    run_ids = dict.fromkeys(run_id for figure in found["figures"] for run_id in figure.get("run_ids", ()))
    result_ids = {each for figure in found["figures"] for each in figure.get("result_ids", ())}
    runs = benchmarks.get_runs(session, tenant_id, list(run_ids)) if parts.runs else []
    constants = [_describe_constant(figure, former) for figure in found["figures"]]
    return {
        "calibration": described,
        "constants": constants,
        "has_former": any(constant["before"] or constant["limit"] for constant in constants),
        "former": f"calibration {former.number}" if former.number else "the reference set",
        "questions": _list_questions(described) if found["state"] == "active" else [],
        "fits": [_describe_fit(fit) for fit in found["fits"]],
        "answers": [_describe_answer(answer) for answer in found["answers"]],
        "runs": [describe_run(run, names) for run in runs],
        "result_count": len(result_ids),
        "run_count": len(run_ids),
    }


_OPERATORS: Final[Mapping[str, str]] = {
    "matrix_peak": "Large matrix products",
    "matrix_fill": "Depth that fills a tile",
    "wave_tail": "Loss in the last wave",
    "kernel_seconds": "Overhead of a kernel",
    "bandwidth": "Streaming kernels",
    "gather_row": "Row of half the gathering rate",
    "attention_peak": "Fused attention",
    "attention_first_peak": "Fused attention, first kernels",
    "attention_native_peak": "Fused attention, native kernels",
    "attention_backward": "Attention backward over forward",
    "attention_context": "Context of half the attention rate",
    "attention_head": "Head of half the attention rate",
    "scan_peak": "Scans over states",
    "expert_variation": "Variation of the tokens of an expert",
}
_SERVING: Final[Mapping[str, str]] = {
    "weight_bandwidth": "Weights, streamed by a few rows",
    "cache_bandwidth": "Cache, read by attention",
    "expert_bandwidth": "Weights of experts, streamed",
    "decode_attention": "Attention over a cache",
    "kernel_seconds": "Overhead of a kernel while serving",
}
_POWER: Final[Mapping[str, str]] = {
    "idle_share": "Power without a kernel",
    "active_share": "Power of any kernel",
    "matrix_share": "Power of large products",
    "communication_share": "Power of communication",
    "byte_joules": "Energy of a byte of memory",
}
_SINGLE: Final[Mapping[str, str]] = {
    "memory_bytes": "Memory that a process can allocate",
    "context_bytes": "Memory of a context and its libraries",
    "host_link_bytes_per_second": "Transfers from host memory",
    "host_memory_bytes_per_second": "Host memory",
    "storage_read_bytes_per_second": "Storage, read",
    "storage_write_bytes_per_second": "Storage, written",
}
_KINDS: Final[Mapping[str, str]] = {"nvlink": "NVLink", "pcie": "PCIe", "infiniband": "InfiniBand"}
_LINKS: Final[Mapping[str, str]] = {
    "rate": "long messages",
    "hop_seconds": "time of a step",
    "launch_seconds": "start of a collective",
    "in_network_rate": "through reducing switches",
}


def name_constant(name: str) -> str:
    """Returns the name of a constant in words."""
    match name.split("."):
        case ["operators", quantity, *formats]:
            return ", ".join([_OPERATORS.get(quantity, to_title(quantity)), *formats])
        case ["serving", quantity]:
            return _SERVING.get(quantity, to_title(quantity))
        case ["power", quantity]:
            return _POWER.get(quantity, to_title(quantity))
        case ["links", kind, part]:
            return f"{_KINDS.get(kind, to_title(kind))}, {_LINKS.get(part, to_plain_words(part))}"
    return _SINGLE.get(name, to_title(name))


def _describe_constant(figure: Mapping[str, Any], former: FormerConstants) -> dict[str, Any]:
    """Returns a constant before and after, with the change and its share of the data sheet."""
    unit, before = figure["unit"], former.values.get(figure["name"])
    scale = select_figure_scale(figure["value"], unit)
    low, high = (format_figure(figure[end], unit, scale) for end in ("low", "high"))
    return {
        "name": name_constant(figure["name"]),
        "code": figure["name"],
        "before": format_figure(before, unit) if before is not None else "",
        "after": format_figure(figure["value"], unit),
        "range": format_range(low, high),
        "change": format_change(figure["value"] / before - 1) if before else "",
        "limit": format_figure(figure["limit"], unit) if "limit" in figure else "",
        "share": format_share(figure["share"]) if "share" in figure else "",
        "method": figure.get("method") or figure.get("source", ""),
    }


class _AnsweredQuestion(NamedTuple):
    """A device of questions that read a calibration, and the basis of their figures."""

    device: str
    basis: str


def _list_questions(found: Mapping[str, Any]) -> list[_AnsweredQuestion]:
    """Returns the devices of questions that read an active set, the nearest first."""
    named = f"The node {found['node']}, by its id" if found["node"] else "The calibration, by its id"
    if found["device"] == "cpu":
        return [_AnsweredQuestion(f"{named}, beside an accelerator given by its figures", "calibrated_node")]
    questions = [_AnsweredQuestion(named, "calibrated_node")]
    if found["accelerator"]:
        questions.append(_AnsweredQuestion(f"{found['accelerator']}, on any node", "calibrated_sku"))
    if "generation" in found:
        about = f"Another accelerator of the generation {to_title(found['generation'])}"
        questions.append(_AnsweredQuestion(about, "calibrated_generation"))
    return questions


def _describe_fit(fit: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": f"{to_title(fit['collective'])}, {describe_count(fit['devices'], 'device')}",
        "algorithm": fit.get("algorithm", "chosen by the library"),
        "alpha": format_figure(fit["alpha_seconds"], "seconds"),
        "beta": format_figure(fit["beta_bytes_per_second"], "bytes_per_second"),
    }


def _describe_answer(answer: Mapping[str, Any]) -> dict[str, str]:
    unit = next(
        (
            unit
            for unit in ("bytes_per_second", "seconds", "bytes", "watts")
            if unit in answer.get("figure", "")
        ),
        "",
    )
    return {"name": to_title(answer["family"]), "measured": format_figure(answer["measured"], unit)}
