"""Fit, users, speed, price and bill of a model on hardware, from the full requests of each."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from service.estimates.cost import estimate_cost
from service.estimates.memory import estimate_memory
from service.estimates.throughput import estimate_throughput
from service.estimates.utility_bill import estimate_utility_bill
from service.planning import METHOD_VERSION
from service.planning.errors import PlanningError
from service.resolve.catalog import CatalogView
from service.resolve.summary import SummaryQuestions, build_questions
from service.schemas.answer import compute_input_digest
from service.schemas.base import EstimateEvidence
from service.schemas.summary import MOST_ACCELERATORS, SummaryEstimate, SummaryRequest


class _Figure(NamedTuple):
    """A member of a summary, and the member of a full answer that it is."""

    section: str
    member: str
    part: str
    path: tuple[str, ...]


_FIGURES: Final = (
    _Figure("fit", "fits", "memory", ("fits",)),
    _Figure("fit", "fit_probability", "memory", ("fit_probability",)),
    _Figure("fit", "total_bytes", "memory", ("per_device", "total_bytes")),
    _Figure("fit", "usable_bytes", "memory", ("usable_bytes",)),
    _Figure("users", "max_concurrency", "full_context", ("limits", "max_concurrency")),
    _Figure("users", "max_sequence_length", "full_context", ("limits", "max_sequence_length")),
    *(
        _Figure("speed", name, "throughput", (name,))
        for name in (
            "time_to_first_token_seconds",
            "time_per_output_token_seconds",
            "output_tokens_per_second",
            "requests_per_second",
            "step_seconds",
            "tokens_per_second",
            "model_flops_utilization",
            "duration_seconds",
        )
    ),
    _Figure("price", "total", "cost", ("total",)),
    _Figure("price", "cost_per_million_tokens", "cost", ("cost_per_million_tokens",)),
    _Figure("bill", "it_kwh", "utility_bill", ("energy", "it_kwh")),
    _Figure("bill", "facility_kwh", "utility_bill", ("energy", "facility_kwh")),
    _Figure("bill", "electricity_total", "utility_bill", ("electricity", "total")),
    _Figure("bill", "location_based_kg_co2e", "utility_bill", ("carbon", "location_based_kg_co2e")),
)
_ESTIMATORS: Final[Mapping[str, Callable[[Any, CatalogView], Any]]] = {
    "memory": estimate_memory,
    "full_context": estimate_memory,
    "throughput": estimate_throughput,
    "cost": estimate_cost,
    "utility_bill": estimate_utility_bill,
}
_SECTIONS: Final = {"throughput": "speed", "cost": "price", "utility_bill": "bill", "full_context": "users"}
_MOST_DOUBLINGS: Final = 7
_WRONG_NAMES: Final = frozenset({"UNKNOWN_REFERENCE", "AMBIGUOUS_REFERENCE"})
_SHARED: Final = ("/site", "/rental", "/purchase")
"""Members of a summary that full requests have under the same name."""
_POINTERS: Final = (
    ("/model/id", "/model"),
    ("/model", "/model"),
    ("/cluster", "/hardware"),
    ("/workload", "/goal"),
)


def estimate_summary(question: SummaryRequest, catalog: CatalogView) -> SummaryEstimate:
    """Answers the full requests of a summary and selects its figures.

    The memory has to be known, and every name to stand for a row. Another refusal is a gap of its section.
    """
    asked = build_questions(question, catalog)
    requests = {name: getattr(asked, name) for name in _ESTIMATORS if getattr(asked, name) is not None}
    answers: dict[str, Any] = {}
    gaps: list[dict[str, str]] = []
    for name, request in requests.items():
        try:
            answers[name] = _ESTIMATORS[name](request, catalog)
        except PlanningError as error:
            if name == "memory" or error.code in _WRONG_NAMES:
                raise _point_into_summary(error) from error
            pointer = f"/{_SECTIONS[name]}"
            gaps.append({"pointer": pointer, "code": error.code, "detail": error.detail})
    sections = _select_figures(answers, gaps)
    if sections.get("users", {}).get("max_concurrency") != 0:
        # The longest request is then that of the model, whatever the memory would hold.
        sections.get("users", {}).pop("max_sequence_length", None)
        gaps = [gap for gap in gaps if gap["pointer"] != "/users/max_sequence_length"]
    if sections.get("fit", {}).get("fits") is False:
        sections["fit"]["advice"] = [*answers["memory"]["advice"], *_advise_devices(asked, catalog)]
    if asked.context_tokens is not None:
        sections["users"] = {"context_tokens": asked.context_tokens} | sections.get("users", {})
    answer: Any = {
        "model_id": asked.model_id,
        "accelerator_id": asked.accelerator_id,
        "accelerator_count": asked.accelerator_count,
        "fit": {},
        "speed": {},
        "price": {},
        "bill": {},
        **sections,
        "requests": requests,
        "defaults": [*asked.defaults, *_list_notes(answers, "defaults")],
        "warnings": list(_list_notes(answers, "warnings")),
        "gaps": gaps,
        "evidence": _unite_evidence(question, answers, catalog),
    }
    found: SummaryEstimate = answer
    return found


def _advise_devices(asked: SummaryQuestions, catalog: CatalogView) -> Iterator[dict[str, str]]:
    """Yields the least doubling of the accelerators on which the model fits, if there is one."""
    for doubling in range(1, _MOST_DOUBLINGS + 1):
        count = asked.accelerator_count << doubling
        if count > MOST_ACCELERATORS:
            return
        cluster = asked.throughput.cluster.model_copy(update={"accelerator_count": count})
        try:
            answer = estimate_memory(asked.memory.model_copy(update={"cluster": cluster}), catalog)
        except PlanningError:
            # So many devices cannot be had, or their links are not known.
            return
        if answer.get("fits"):
            total, usable = answer["per_device"]["total_bytes"]["value"] / 1e9, answer["usable_bytes"] / 1e9
            detail = (
                f"{count} x {asked.accelerator_id}: {total:.1f} GB of the {usable:.1f} GB that may be used"
            )
            yield {"code": "MORE_DEVICES", "detail": detail}
            return


def _point_into_summary(error: PlanningError) -> PlanningError:
    """Returns the refusal of a full request with the member of the summary that it comes from."""
    if error.pointer.startswith(_SHARED):
        return error
    for beginning, pointer in _POINTERS:
        if error.pointer.startswith(beginning):
            return PlanningError(error.code, pointer, error.detail)
    return PlanningError(error.code, "", error.detail)


def _select_figures(answers: Mapping[str, Any], gaps: list[dict[str, str]]) -> dict[str, dict[str, Any]]:
    """Returns the figures by section, and adds the gaps of those that an answer leaves out."""
    sections: dict[str, dict[str, Any]] = {}
    for figure in _FIGURES:
        answer = answers.get(figure.part)
        if answer is None:
            continue
        value: Any = answer
        for name in figure.path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            sections.setdefault(figure.section, {})[figure.member] = value
        elif (gap := _find_gap(answer, "/" + "/".join(figure.path))) is not None:
            gaps.append({**gap, "pointer": f"/{figure.section}/{figure.member}"})
    return sections


def _find_gap(answer: Mapping[str, Any], pointer: str) -> dict[str, str] | None:
    """Returns the gap of a member or of the object that it is in."""
    for gap in answer["gaps"]:
        if gap["code"] == "NOT_APPLICABLE":
            continue
        if pointer == gap["pointer"] or pointer.startswith(gap["pointer"] + "/"):
            return dict(gap)
    return None


def _list_notes(answers: Mapping[str, Any], kind: str) -> Iterator[dict[str, str]]:
    """Yields defaults or warnings of the full requests, each once, with pointers into them."""
    seen: set[tuple[str, str]] = set()
    for name, answer in answers.items():
        for note in answer[kind]:
            key = (note.get("code", ""), note["pointer"])
            if key not in seen:
                seen.add(key)
                yield {**note, "pointer": f"/requests/{name}{note['pointer']}"}


def _unite_evidence(
    question: SummaryRequest, answers: Mapping[str, Any], catalog: CatalogView
) -> EstimateEvidence:
    """Returns the versions and sources of all answers."""
    every = [answer["evidence"] for answer in answers.values()]
    sources = {str(source): source for evidence in every for source in evidence["sources"]}
    calibrations = dict.fromkeys(one for evidence in every for one in evidence["calibration_ids"])
    return {
        "catalog_revision": catalog.revision,
        "method_version": METHOD_VERSION,
        "input_digest": compute_input_digest(question),
        "calibration_ids": list(calibrations),
        "sources": list(sources.values()),
    }
