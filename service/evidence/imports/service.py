"""Rules of imported evidence: read once, compared with an estimate, and counted as a calibration.

It counts until it is withdrawn.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import uuid4

from pydantic import MISSING, ValidationError

from service.audit.service import WriteOutcome
from service.calibrations import service as calibrations
from service.calibrations.service import MeasuredSet
from service.catalog import service as catalog
from service.catalog.rows import REVISION_HEADER
from service.evidence.imports import repository
from service.evidence.imports.answers import (
    MeasuredAnswerFigure,
    get_estimated_figure,
    list_measured,
    resolve_kind,
    sum_unseen_bytes,
)
from service.evidence.imports.context import AbsentFact, EstimateQuestion, ImportContext, build_question
from service.evidence.imports.errors import EvidenceCounted, EvidenceNotFound, EvidenceRefused
from service.evidence.imports.figures import FORMATS, build_device_calibration, list_figure_names
from service.evidence.imports.schemas import READINGS_SHOWN, EvidenceImportRequest
from service.evidence.imports.tables import EvidenceImportRow
from service.evidence.measured import SHAPES, MeasuredOperation
from service.formats.measurements import READERS
from service.formats.measurements.readings import FileMeasurements, MeasuredFileRun
from service.formats.offers.listed import RefusedOffer, RowError
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http import idempotency
from service.kit.http.cancellation import check_cancelled
from service.kit.http.problems import FieldError
from service.planning.errors import PlanningError
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredAnswer
from service.resolve.catalog import CatalogView
from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest

Estimators = Mapping[str, Callable[[Any, CatalogView], Mapping[str, Any]]]
"""Estimators by operation. They belong to a room to the right of this one and are passed in."""

ACTIVE: Final = "active"
MOST_ANSWERS: Final = 1000
MOST_QUESTIONS: Final = 200
"""Most different questions of one import: each is an estimate, whether its figure counts or not."""
_WITHIN: Final = 20.0
"""Largest ratio of a measured figure to its estimate, or the reverse; beyond it the unit must be wrong."""
_OBSERVED: Final = frozenset({"dcgm_dmon", "dcgm_exporter", "nsight_compute"})
"""Formats that describe the activity of a device: their figures are shown, but no estimate has them."""


class EstimatedMeasurement(NamedTuple):
    """A measured figure with its question and its estimate."""

    measured: MeasuredAnswerFigure
    estimated: float
    question: EstimateQuestion


class ImportOutcome(NamedTuple):
    """Measurements of a file, and the parts of it that count."""

    measurements: FileMeasurements
    answers: tuple[EstimatedMeasurement, ...]
    device: DeviceCalibration | None
    refused: tuple[RefusedOffer, ...]


def read_evidence(body: EvidenceImportRequest, catalog: CatalogView, estimators: Estimators) -> ImportOutcome:
    """Reads a file under ``catalog``; raises EvidenceRefused if nothing in it can count."""
    try:
        measurements = READERS[body.format](body.content)
    except PlanningError as error:
        raise EvidenceRefused("", FieldError(error.pointer, error.code, error.detail)) from error
    except (RowError, ValueError, ArithmeticError) as error:
        detail = "the content is not in the format of this program"
        raise EvidenceRefused("", FieldError("/content", "FORMAT", detail)) from error
    context = _build_context(body, catalog)
    reading = _FileReader(context, estimators)
    for run in measurements.runs:
        reading.add_run(run, body)
    outcome = ImportOutcome(
        measurements,
        tuple(reading.answers),
        reading.device,
        (*measurements.refused, *reading.refused),
    )
    if not outcome.answers and outcome.device is None:
        raise EvidenceRefused("", *(reading.missing or _list_reasons(outcome)))
    return outcome


def _build_context(body: EvidenceImportRequest, catalog: CatalogView) -> ImportContext:
    stated = body.model_dump(mode="json", exclude_unset=True)
    limit = None if body.power_limit_watts is MISSING else body.power_limit_watts
    return ImportContext(stated, catalog, stated.get("collective"), limit)


def _list_reasons(outcome: ImportOutcome) -> list[FieldError]:
    """Returns the reasons why no part of a file counts, each once."""
    each = {one.code: FieldError("/content", one.code, one.detail) for one in outcome.refused}
    nothing = FieldError("/content", "NO_FIGURE", "the file contains no figure that an estimate uses")
    return list(each.values()) or [nothing]


class _FileReader:
    """Collects the evidence of the runs of one file."""

    def __init__(self, context: ImportContext, estimators: Estimators) -> None:
        self._context = context
        self._estimators = estimators
        self._known: dict[str, Mapping[str, Any]] = {}
        self._asked = 0
        self.answers: list[EstimatedMeasurement] = []
        self.device: DeviceCalibration | None = None
        self.refused: list[RefusedOffer] = []
        self.missing: dict[FieldError, None] = {}

    def add_run(self, run: MeasuredFileRun, body: EvidenceImportRequest) -> None:
        """Adds the evidence of a run, or the reason for its refusal."""
        check_cancelled()
        try:
            if body.format in FORMATS:
                self._add_device(run, f"{body.format}, imported")
            else:
                self._add_answers(run, body.format)
        except AbsentFact as missing:
            self.missing |= dict.fromkeys(missing.errors)
            self.refused.extend(
                RefusedOffer(run.pointer, error.code, error.detail) for error in missing.errors
            )
        except RowError as error:
            self.refused.append(RefusedOffer(run.pointer, error.code, error.detail))

    def _add_device(self, run: MeasuredFileRun, source: str) -> None:
        if self.device is not None:
            raise RowError("SEVERAL_DEVICES", "the file contains several nodes; import each separately")
        self.device = build_device_calibration(run, self._context, source)

    def _add_answers(self, run: MeasuredFileRun, file_format: str) -> None:
        if file_format in _OBSERVED:
            raise RowError("NO_FIGURE", "figures of device activity have no estimate")
        question = build_question(run, self._context, resolve_kind(run))
        _parse_question(MeasuredOperation.THROUGHPUT, question)
        for one in list_measured(run, question):
            if len(self.answers) >= MOST_ANSWERS:
                raise RowError("TOO_MANY", f"an import may contain at most {MOST_ANSWERS} figures")
            try:
                self.answers.append(self._compare_with_estimate(one, question))
            except RowError as error:
                self.refused.append(RefusedOffer(one.pointer, error.code, error.detail))

    def _compare_with_estimate(
        self, one: MeasuredAnswerFigure, question: EstimateQuestion
    ) -> EstimatedMeasurement:
        """Compares a measured figure with its estimate, which reveals a wrong unit."""
        asked = question if one.operation == "memory" else {**question, "explain": False}
        answer = self._answer_question(one.operation, asked)
        expected = get_estimated_figure(one, answer)
        if expected is None or expected <= 0.0:
            raise RowError("NOT_ESTIMATED", "the service has no estimate of this figure for this question")
        whole = one._replace(measured=one.measured + sum_unseen_bytes(one, answer))
        if not 1.0 / _WITHIN < whole.measured / expected < _WITHIN:
            detail = (
                f"the figure is more than {_WITHIN:g} times off its estimate; its unit or a fact is wrong"
            )
            raise RowError("IMPLAUSIBLE", detail)
        return EstimatedMeasurement(whole, expected, asked)

    def _answer_question(self, operation: str, asked: EstimateQuestion) -> Mapping[str, Any]:
        key = json.dumps([operation, asked], sort_keys=True)
        if key not in self._known:
            self._asked += 1
            if self._asked > MOST_QUESTIONS:
                raise RowError("TOO_MANY", f"an import has at most {MOST_QUESTIONS} questions")
            question = _parse_question(MeasuredOperation(operation), asked)
            try:
                self._known[key] = self._estimators[operation](question, self._context.catalog)
            except PlanningError as error:
                raise RowError(error.code, error.detail) from error
            except ArithmeticError as error:
                raise RowError(
                    "OUT_OF_RANGE", "the figures are too large or small to compute with"
                ) from error
        return self._known[key]


def _parse_question(
    operation: MeasuredOperation, asked: EstimateQuestion
) -> MemoryEstimateRequest | ThroughputEstimateRequest:
    """Parses the question of file and request together; raises RowError if it is not valid."""
    try:
        return SHAPES[operation].model_validate_json(json.dumps(asked))
    except ValidationError as error:
        first = error.errors()[0]
        # The name of an unknown member is input, which is never repeated in an error.
        known = first["loc"][:-1] if first["type"] == "extra_forbidden" else first["loc"]
        place = ".".join(str(part) for part in known if part not in _TAGS)
        raise RowError("QUESTION_INVALID", f"file and request give no valid {place or 'question'}") from error


_TAGS: Final = frozenset(
    {"inference", "training", "catalog", "specification", "by number", "by distribution"}
)


def store_evidence(
    session: Writer, tenant_id: str, body: EvidenceImportRequest, outcome: ImportOutcome
) -> WriteOutcome:
    """Stores the evidence of a file as a calibration of the tenant."""
    import_id = uuid4().hex
    digest = sha256(body.content.encode()).hexdigest()
    rests_on = {"import_id": import_id, "format": body.format, "content_sha256": digest}
    drawn = MeasuredSet(outcome.device, tuple(_to_measured_answer(one) for one in outcome.answers))
    # This locks the tenant's revision: of two equal imports one comes second.
    calibration_id = calibrations.store_imported(session, tenant_id, drawn, rests_on)
    sent = idempotency.digest_json(body.model_dump(mode="json"))
    _check_not_imported(session, tenant_id, sent)
    row = EvidenceImportRow(
        tenant_id=tenant_id,
        id=import_id,
        sent_sha256=sent,
        calibration_id=calibration_id,
        created_at=now(),
        **outcome_to_response(body, outcome),
    )
    session.add(row)
    session.flush()
    shown = to_detail(session, tenant_id, row)
    path = f"evidence/{import_id}"
    revision = {REVISION_HEADER: str(catalog.get_revision(session, tenant_id))}
    headers = {"Location": f"/v1/{path}", **revision}
    return WriteOutcome(resource=path, status=201, body=shown, headers=headers, after=shown)


def outcome_to_response(body: EvidenceImportRequest, outcome: ImportOutcome) -> dict[str, Any]:
    """Returns the outcome of an import as the members that are stored and shown."""
    runs = outcome.measurements.runs
    return {
        "format": body.format,
        **({} if body.note is MISSING else {"note": body.note}),
        "content_sha256": sha256(body.content.encode()).hexdigest(),
        "run_count": len(runs),
        "reading_count": sum(len(run.readings) for run in runs),
        "answers": [_answer_to_response(one) for one in outcome.answers],
        "figures": list_figure_names(outcome.device),
        "refused": _parts_to_response(outcome.refused),
        "notes": _parts_to_response(outcome.measurements.notes),
        "readings": list(_readings_to_response(outcome.measurements)),
    }


def _check_not_imported(session: Writer, tenant_id: str, sent_sha256: str) -> None:
    earlier = repository.list_calibrations(session, tenant_id, sent_sha256)
    states = calibrations.get_states(session, tenant_id, earlier)
    if any(one.state == ACTIVE for one in states.values()):
        raise EvidenceCounted


def _to_measured_answer(one: EstimatedMeasurement) -> MeasuredAnswer:
    return MeasuredAnswer(
        id="",
        calibration_id="",
        operation=one.measured.operation,
        family=one.measured.family,
        measured=one.measured.measured,
        question=one.question,
    )


def _answer_to_response(one: EstimatedMeasurement) -> dict[str, Any]:
    figure = one.measured
    return {
        "pointer": figure.pointer,
        "family": figure.family,
        "measured": figure.measured,
        "estimated": one.estimated,
    }


def _readings_to_response(measurements: FileMeasurements) -> Iterator[dict[str, Any]]:
    shown = 0
    for run in measurements.runs:
        for one in run.readings:
            if shown == READINGS_SHOWN:
                return
            shown += 1
            document = {name: getattr(one, name) for name in ("pointer", "metric", "value", "statistic")}
            yield document | ({"of": dict(one.of)} if one.of else {})


def _parts_to_response(parts: Any) -> list[dict[str, str]]:  # noqa: ANN401
    return [one._asdict() for one in list(parts)[:READINGS_SHOWN]]


def get_import(session: Reader, tenant_id: str, import_id: str) -> dict[str, Any]:
    """Returns one import with its readings."""
    return to_detail(session, tenant_id, _get_import_row(session, tenant_id, import_id))


def _get_import_row(session: Reader | Writer, tenant_id: str, import_id: str) -> EvidenceImportRow:
    row = repository.get_import(session, tenant_id, import_id)
    if row is None:
        raise EvidenceNotFound
    return row


def to_detail(session: Reader | Writer, tenant_id: str, row: EvidenceImportRow) -> dict[str, Any]:
    """Returns an import as the API shows it, with its readings."""
    return next(list_summaries(session, tenant_id, [row])) | {"readings": row.readings}


_MEMBERS: Final = (
    *("id", "format", "note", "calibration_id", "content_sha256", "run_count", "reading_count"),
    *("answers", "figures", "refused", "notes", "created_at"),
)


def list_summaries(session: Reader | Writer, tenant_id: str, rows: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Yields imports as lists show them, each with the state of its calibration."""
    states = calibrations.get_states(session, tenant_id, [row.calibration_id for row in rows])
    for row in rows:
        of_set = states[row.calibration_id]
        members = {name: getattr(row, name) for name in _MEMBERS}
        members |= {"state": of_set.state, "reason": of_set.reason, "withdrawn_at": of_set.ended_at}
        yield {name: value for name, value in members.items() if value is not None}


def withdraw_import(session: Writer, tenant_id: str, import_id: str, reason: str) -> WriteOutcome:
    """Withdraws an import, so that it no longer counts; estimates are then as they were before it."""
    row = _get_import_row(session, tenant_id, import_id)
    before = to_detail(session, tenant_id, row)
    withdrawn = calibrations.withdraw_calibration(session, tenant_id, row.calibration_id, reason)
    after = to_detail(session, tenant_id, row)
    return replace(withdrawn, resource=f"evidence/{import_id}", body=after, before=before, after=after)
