"""The rules of imported evidence: read once, beside an estimate, counted as a calibration until withdrawn."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import uuid4

from pydantic import MISSING, ValidationError

from service.audit.service import Change
from service.calibrations import service as calibrations
from service.calibrations.service import Drawn
from service.catalog import service as catalog
from service.catalog.rows import REVISION_HEADER
from service.evidence.imports import repository
from service.evidence.imports.answers import Measured, estimated, kind_of, measured, unseen_bytes
from service.evidence.imports.context import Context, Missing, Question, question_of
from service.evidence.imports.errors import EvidenceCounted, EvidenceNotFound, EvidenceRefused
from service.evidence.imports.figures import FORMATS, figures_of, names_of
from service.evidence.imports.schemas import READINGS_SHOWN, EvidenceImport
from service.evidence.imports.tables import EvidenceImportRow
from service.evidence.measured import SHAPES, Operation
from service.formats.measurements import READERS
from service.formats.measurements.readings import Measurements, Run
from service.formats.offers.listed import Refused, RowError
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http import idempotency
from service.kit.http.problems import FieldError
from service.kit.http.wanted import check_wanted
from service.planning.errors import PlanningError
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredAnswer
from service.resolve.catalog import CatalogView
from service.schemas.estimates import MemoryQuestion, ThroughputQuestion

Estimators = Mapping[str, Callable[[Any, CatalogView], Mapping[str, Any]]]
"""Estimates by operation; they stand right of this room and are handed in."""

ACTIVE: Final = "active"
MOST_ANSWERS: Final = 1000
MOST_QUESTIONS: Final = 200
"""Different questions of one import: each is an estimate, whether its figure counts or not."""
_WITHIN: Final = 20.0
"""How many times an estimate a measured figure may be, or the reverse: beyond it the unit is another one."""
_OBSERVED: Final = frozenset({"dcgm_dmon", "dcgm_exporter", "nsight_compute"})
"""Formats of what a device was doing: shown, but no figure of an estimate."""


class Answered(NamedTuple):
    """A measured figure with its question, beside what is estimated."""

    measured: Measured
    estimated: float
    question: Question


class Outcome(NamedTuple):
    """What a file says, and what of it counts."""

    measurements: Measurements
    answers: tuple[Answered, ...]
    device: DeviceCalibration | None
    refused: tuple[Refused, ...]


def read(body: EvidenceImport, catalog: CatalogView, estimators: Estimators) -> Outcome:
    """What a file says under ``catalog``; raises EvidenceRefused where nothing of it can count."""
    try:
        measurements = READERS[body.format](body.content)
    except PlanningError as error:
        raise EvidenceRefused("", FieldError(error.pointer, error.code, error.detail)) from error
    except (RowError, ValueError, ArithmeticError) as error:
        detail = "the content is not what this program writes"
        raise EvidenceRefused("", FieldError("/content", "FORMAT", detail)) from error
    context = _context(body, catalog)
    reading = _Reading(context, estimators)
    for run in measurements.runs:
        reading.add(run, body)
    outcome = Outcome(
        measurements,
        tuple(reading.answers),
        reading.device,
        (*measurements.refused, *reading.refused),
    )
    if not outcome.answers and outcome.device is None:
        raise EvidenceRefused("", *(reading.missing or _reasons(outcome)))
    return outcome


def _context(body: EvidenceImport, catalog: CatalogView) -> Context:
    stated = body.model_dump(mode="json", exclude_unset=True)
    limit = None if body.power_limit_watts is MISSING else body.power_limit_watts
    return Context(stated, catalog, stated.get("collective"), limit)


def _reasons(outcome: Outcome) -> list[FieldError]:
    """Why no part of a file counts: each reason once."""
    each = {one.code: FieldError("/content", one.code, one.detail) for one in outcome.refused}
    nothing = FieldError("/content", "NO_FIGURE", "the file holds no figure that an estimate reads")
    return list(each.values()) or [nothing]


class _Reading:
    """What the runs of one file come to."""

    def __init__(self, context: Context, estimators: Estimators) -> None:
        self._context = context
        self._estimators = estimators
        self._known: dict[str, Mapping[str, Any]] = {}
        self._asked = 0
        self.answers: list[Answered] = []
        self.device: DeviceCalibration | None = None
        self.refused: list[Refused] = []
        self.missing: dict[FieldError, None] = {}

    def add(self, run: Run, body: EvidenceImport) -> None:
        """Make of a run what it can be evidence of."""
        check_wanted()
        try:
            if body.format in FORMATS:
                self._add_device(run, f"{body.format}, imported")
            else:
                self._add_answers(run, body.format)
        except Missing as missing:
            self.missing |= dict.fromkeys(missing.errors)
            self.refused.extend(Refused(run.pointer, error.code, error.detail) for error in missing.errors)
        except RowError as error:
            self.refused.append(Refused(run.pointer, error.code, error.detail))

    def _add_device(self, run: Run, source: str) -> None:
        if self.device is not None:
            raise RowError("SEVERAL_DEVICES", "the file holds several nodes: send them apart")
        self.device = figures_of(run, self._context, source)

    def _add_answers(self, run: Run, file_format: str) -> None:
        if file_format in _OBSERVED:
            raise RowError("NO_FIGURE", "what a device was doing is no figure of an estimate")
        question = question_of(run, self._context, kind_of(run))
        _checked(Operation.THROUGHPUT, question)
        for one in measured(run, question):
            if len(self.answers) >= MOST_ANSWERS:
                raise RowError("TOO_MANY", f"one import counts {MOST_ANSWERS} figures at most")
            try:
                self.answers.append(self._beside(one, question))
            except RowError as error:
                self.refused.append(Refused(one.pointer, error.code, error.detail))

    def _beside(self, one: Measured, question: Question) -> Answered:
        """A measured figure beside the estimate of it; a unit that is another one shows here."""
        asked = question if one.operation == "memory" else {**question, "explain": False}
        answer = self._answer(one.operation, asked)
        expected = estimated(one, answer)
        if expected is None or expected <= 0.0:
            raise RowError("NOT_ESTIMATED", "the service has no estimate of this figure for this question")
        whole = one._replace(measured=one.measured + unseen_bytes(one, answer))
        if not 1.0 / _WITHIN < whole.measured / expected < _WITHIN:
            detail = f"the figure is more than {_WITHIN:g} times off its estimate: unit or facts are wrong"
            raise RowError("IMPLAUSIBLE", detail)
        return Answered(whole, expected, asked)

    def _answer(self, operation: str, asked: Question) -> Mapping[str, Any]:
        key = json.dumps([operation, asked], sort_keys=True)
        if key not in self._known:
            self._asked += 1
            if self._asked > MOST_QUESTIONS:
                raise RowError("TOO_MANY", f"one import asks {MOST_QUESTIONS} different questions at most")
            question = _checked(Operation(operation), asked)
            try:
                self._known[key] = self._estimators[operation](question, self._context.catalog)
            except PlanningError as error:
                raise RowError(error.code, error.detail) from error
            except ArithmeticError as error:
                raise RowError(
                    "OUT_OF_RANGE", "the figures are too large or small to compute with"
                ) from error
        return self._known[key]


def _checked(operation: Operation, asked: Question) -> MemoryQuestion | ThroughputQuestion:
    """The question that file and request make together; raises RowError where they make none."""
    try:
        return SHAPES[operation].model_validate_json(json.dumps(asked))
    except ValidationError as error:
        first = error.errors()[0]
        # The name of a member that there is not is what was sent: it is not told.
        known = first["loc"][:-1] if first["type"] == "extra_forbidden" else first["loc"]
        place = ".".join(str(part) for part in known if part not in _TAGS)
        raise RowError("QUESTION_INVALID", f"file and request make no sound {place or 'question'}") from error


_TAGS: Final = frozenset(
    {"inference", "training", "catalog", "specification", "by number", "by distribution"}
)


def store(session: Writer, tenant_id: str, body: EvidenceImport, outcome: Outcome) -> Change:
    """Count what was read of a file as a calibration of the tenant."""
    import_id = uuid4().hex
    digest = sha256(body.content.encode()).hexdigest()
    rests_on = {"import_id": import_id, "format": body.format, "content_sha256": digest}
    drawn = Drawn(outcome.device, tuple(_kept(one) for one in outcome.answers))
    # It locks the tenant's revision: of two equal imports one comes second.
    calibration_id = calibrations.keep(session, tenant_id, drawn, rests_on)
    sent = idempotency.digest(body.model_dump(mode="json"))
    _check_new(session, tenant_id, sent)
    row = EvidenceImportRow(
        tenant_id=tenant_id,
        id=import_id,
        sent_sha256=sent,
        calibration_id=calibration_id,
        created_at=now(),
        **shown_outcome(body, outcome),
    )
    session.add(row)
    session.flush()
    shown = whole(session, tenant_id, row)
    path = f"evidence/{import_id}"
    revision = {REVISION_HEADER: str(catalog.revision(session, tenant_id))}
    headers = {"Location": f"/v1/{path}", **revision}
    return Change(resource=path, status=201, body=shown, headers=headers, after=shown)


def shown_outcome(body: EvidenceImport, outcome: Outcome) -> dict[str, Any]:
    """What became of a file, whatever it is stored as."""
    runs = outcome.measurements.runs
    return {
        "format": body.format,
        **({} if body.note is MISSING else {"note": body.note}),
        "content_sha256": sha256(body.content.encode()).hexdigest(),
        "run_count": len(runs),
        "reading_count": sum(len(run.readings) for run in runs),
        "answers": [_shown_answer(one) for one in outcome.answers],
        "figures": names_of(outcome.device),
        "refused": _shown_parts(outcome.refused),
        "notes": _shown_parts(outcome.measurements.notes),
        "readings": list(_shown_readings(outcome.measurements)),
    }


def _check_new(session: Writer, tenant_id: str, sent_sha256: str) -> None:
    earlier = repository.calibrations_of(session, tenant_id, sent_sha256)
    states = calibrations.states(session, tenant_id, earlier)
    if any(one.state == ACTIVE for one in states.values()):
        raise EvidenceCounted


def _kept(one: Answered) -> MeasuredAnswer:
    return MeasuredAnswer(
        id="",
        calibration_id="",
        operation=one.measured.operation,
        family=one.measured.family,
        measured=one.measured.measured,
        question=one.question,
    )


def _shown_answer(one: Answered) -> dict[str, Any]:
    figure = one.measured
    return {
        "pointer": figure.pointer,
        "family": figure.family,
        "measured": figure.measured,
        "estimated": one.estimated,
    }


def _shown_readings(measurements: Measurements) -> Iterator[dict[str, Any]]:
    shown = 0
    for run in measurements.runs:
        for one in run.readings:
            if shown == READINGS_SHOWN:
                return
            shown += 1
            document = {name: getattr(one, name) for name in ("pointer", "metric", "value", "statistic")}
            yield document | ({"of": dict(one.of)} if one.of else {})


def _shown_parts(parts: Any) -> list[dict[str, str]]:  # noqa: ANN401
    return [one._asdict() for one in list(parts)[:READINGS_SHOWN]]


def get(session: Reader, tenant_id: str, import_id: str) -> dict[str, Any]:
    """One import with its readings."""
    return whole(session, tenant_id, _found(session, tenant_id, import_id))


def _found(session: Reader | Writer, tenant_id: str, import_id: str) -> EvidenceImportRow:
    row = repository.get(session, tenant_id, import_id)
    if row is None:
        raise EvidenceNotFound
    return row


def whole(session: Reader | Writer, tenant_id: str, row: EvidenceImportRow) -> dict[str, Any]:
    """An import as callers see it, with its readings."""
    return next(summaries(session, tenant_id, [row])) | {"readings": row.readings}


_MEMBERS: Final = (
    *("id", "format", "note", "calibration_id", "content_sha256", "run_count", "reading_count"),
    *("answers", "figures", "refused", "notes", "created_at"),
)


def summaries(session: Reader | Writer, tenant_id: str, rows: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Imports as lists show them, each with the state of its calibration."""
    states = calibrations.states(session, tenant_id, [row.calibration_id for row in rows])
    for row in rows:
        of_set = states[row.calibration_id]
        members = {name: getattr(row, name) for name in _MEMBERS}
        members |= {"state": of_set.state, "reason": of_set.reason, "withdrawn_at": of_set.ended_at}
        yield {name: value for name, value in members.items() if value is not None}


def withdraw(session: Writer, tenant_id: str, import_id: str, reason: str) -> Change:
    """Let an import count no longer; estimates are then as they were before it."""
    row = _found(session, tenant_id, import_id)
    before = whole(session, tenant_id, row)
    withdrawn = calibrations.withdraw(session, tenant_id, row.calibration_id, reason)
    after = whole(session, tenant_id, row)
    return replace(withdrawn, resource=f"evidence/{import_id}", body=after, before=before, after=after)
