"""Context of an imported run: facts of its file and of the caller, merged into one question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from service.formats.measurements.readings import MeasuredFileRun, RunFact, get_member, read_mapping
from service.formats.offers.listed import RowError
from service.kit.http.problems import FieldError
from service.planning.hardware.links import Link
from service.resolve.catalog import CatalogView, KnownAccelerator

EstimateQuestion = dict[str, Any]

_SAME: Final = 0.02
"""Largest relative difference of two statements of one number; files print means of what was sent."""
_MEMBERS: Final = ("model", "cluster", "parallelism", "workload")
_LOADS: Final = ("concurrency", "request_rate_per_second")


class AbsentFact(Exception):
    """Facts that neither the file nor the caller states."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__(", ".join(error.code for error in errors))
        self.errors = tuple(errors)


@dataclass(frozen=True)
class ImportContext:
    """Statements of the caller about every run of a file, and the catalog in which names are looked up."""

    stated: Mapping[str, Any]
    """Members of a question, only those that were sent."""
    catalog: CatalogView
    collective: str | None = None
    power_limit_watts: float | None = None

    def find_accelerator_id(self, run: MeasuredFileRun) -> str | None:
        """Returns the catalog's accelerator that the caller names, or else the one that the file names."""
        given = self.stated.get("cluster", {}).get("accelerator", {})
        if given:
            known = self.catalog.accelerators.get(given.get("id", ""))
            return known.accelerator.id if known else None
        return self.catalog.accelerators.get_id(str(run.facts.get("accelerator_name", "")))

    def find_accelerator(self, run: MeasuredFileRun) -> KnownAccelerator | None:
        """Returns that accelerator with its catalog entry."""
        found = self.find_accelerator_id(run)
        return self.catalog.accelerators[found] if found else None

    def find_intra_node_link(self, run: MeasuredFileRun) -> Link | None:
        """Returns the link between the devices of a node: the caller's, or else the accelerator's own."""
        given = self.stated.get("cluster", {}).get("intra_node_link", {})
        name = given.get("id")
        if not given:
            known = self.find_accelerator(run)
            name = known.usual_links.intra_node_link_id if known else None
        row = self.catalog.links.get(name or "")
        return row.link if row else None

    def find_model_id(self, run: MeasuredFileRun) -> str | None:
        """Returns the model of the catalog that the file names."""
        name = str(run.facts.get("model_name", ""))
        return self.catalog.models.get_id(name) or self.catalog.models.get_id(name.rpartition("/")[2])


def build_question(run: MeasuredFileRun, context: ImportContext, kind: str) -> EstimateQuestion:
    """Builds the question of a run from stated facts only.

    ``kind`` is the kind of its workload. Raises AbsentFact for facts that nobody states, and RowError for
    contradictions.
    """
    question: EstimateQuestion = {
        name: _copy_value(context.stated[name]) for name in _MEMBERS if name in context.stated
    }
    workload = question.setdefault("workload", {})
    if workload.setdefault("kind", kind) != kind:
        raise RowError("ANOTHER_WORKLOAD", f"the file measures {kind}, the request another workload")
    if "model" not in question and (model := context.find_model_id(run)):
        question["model"] = {"source": "catalog", "id": model}
    cluster = question.setdefault("cluster", {})
    if "accelerator" not in cluster and (part := context.find_accelerator_id(run)):
        cluster["accelerator"] = {"source": "catalog", "id": part}
    for path, value in run.facts.items():
        if "." in path:
            _state_fact(question, path.split("."), value)
    errors = list(_list_missing_facts(question, kind))
    if errors:
        raise AbsentFact(errors)
    return question


def _copy_value(value: Any) -> Any:  # noqa: ANN401
    return {name: _copy_value(part) for name, part in value.items()} if isinstance(value, dict) else value


def _state_fact(question: EstimateQuestion, path: list[str], value: RunFact) -> None:
    """Adds a fact of the file; the caller's statement of it must not contradict it.

    For lengths the caller's statement is used, because a file contains only samples of them.
    """
    *above, name = path
    place = question
    for part in above:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise RowError("QUESTION_INVALID", "a column names a member below one that has no members")
    if name == "weight_precision" and "weight_format" in place:
        return
    if name not in place:
        _check_load(place, path)
        place[name] = value
    elif not (
        isinstance(value, Mapping) or isinstance(place[name], Mapping) or _is_equal(place[name], value)
    ):
        raise RowError("CONTRADICTS_FILE", f"{'.'.join(path)} differs between the file and the request")


def _check_load(place: Mapping[str, Any], path: list[str]) -> None:
    """Raises RowError if a run would have both an arrival rate and a concurrency, from either source."""
    if path[-1] in _LOADS and any(name in place for name in _LOADS):
        raise RowError("CONTRADICTS_FILE", f"the file states {'.'.join(path)}, the request another load")


def _is_equal(stated: object, value: object) -> bool:
    if isinstance(stated, bool) or not isinstance(stated, int | float) or not isinstance(value, int | float):
        return bool(stated == value)
    return abs(float(stated) - float(value)) <= _SAME * abs(float(value))


def _list_missing_facts(question: EstimateQuestion, kind: str) -> Iterator[FieldError]:
    cluster, workload = question["cluster"], question["workload"]
    if "model" not in question:
        yield FieldError("/model", "MODEL_REQUIRED", "the file names no model of the catalog")
    if "accelerator" not in cluster:
        yield FieldError("/cluster", "ACCELERATOR_REQUIRED", "the file names no accelerator of the catalog")
    if "accelerator_count" not in cluster:
        detail = "the file does not state the number of devices"
        yield FieldError("/cluster/accelerator_count", "ACCELERATOR_COUNT_REQUIRED", detail)
    elif cluster["accelerator_count"] != 1 and not _is_laid_out(question):
        detail = "the file does not state the parallelism"
        yield FieldError("/parallelism", "LAYOUT_REQUIRED", detail)
    yield from (_list_missing_serving if kind == "inference" else _list_missing_training)(question, workload)


def _is_laid_out(question: EstimateQuestion) -> bool:
    return bool(question.get("parallelism")) or "disaggregated" in question["workload"]


def _list_missing_serving(question: EstimateQuestion, workload: Mapping[str, Any]) -> Iterator[FieldError]:
    for name in ("input_tokens", "output_tokens"):
        if name not in workload:
            yield FieldError(f"/workload/{name}", "LENGTHS_REQUIRED", "the file does not state this length")
    if not any(name in workload for name in _LOADS):
        detail = "the file states neither the concurrency nor the request rate"
        yield FieldError("/workload/concurrency", "LOAD_REQUIRED", detail)
    if "name" not in read_mapping(workload.get("engine")):
        yield FieldError("/workload/engine/name", "ENGINE_REQUIRED", "the file does not name the engine")
    stored = get_member(question, "model", "config", "quantization_config")
    if not stored and not {"weight_precision", "weight_format"} & workload.keys():
        detail = "the file does not state the precision of the weights"
        yield FieldError("/workload/weight_precision", "PRECISION_REQUIRED", detail)


def _list_missing_training(_question: EstimateQuestion, workload: Mapping[str, Any]) -> Iterator[FieldError]:
    for name, code in (
        ("sequence_length", "LENGTHS_REQUIRED"),
        ("global_batch_size", "BATCH_REQUIRED"),
        ("micro_batch_size", "BATCH_REQUIRED"),
        ("precision", "PRECISION_REQUIRED"),
    ):
        if name not in workload:
            yield FieldError(f"/workload/{name}", code, f"the file does not state {name}")
