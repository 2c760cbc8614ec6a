"""Parameter counts of models, and import of models from published configurations."""

from typing import NamedTuple

from service.catalog.models.schemas import ImportedModel, ModelImportRequest
from service.catalog.rows import RowDocument
from service.formats.huggingface import import_config
from service.kit.http.problems import FieldError, Unprocessable
from service.planning.errors import PlanningError
from service.planning.models.profile import build_profile
from service.schemas.architectures import Architecture, to_document, to_planning
from service.schemas.base import AnswerWarning


def count_parameters(document: RowDocument) -> RowDocument:
    """Returns the counts of a row. Raises :class:`PlanningError` for a contradictory architecture."""
    try:
        profile = build_profile(to_planning(Architecture.model_validate(document["architecture"])))
    except PlanningError as error:
        raise PlanningError(error.code, f"/architecture{error.pointer}", error.detail) from error
    return {
        "parameter_count": profile.parameter_count,
        "active_parameter_count": profile.active_parameter_count,
    }


def add_architecture(row: RowDocument) -> RowDocument:
    """Returns a shipped row with its architecture, which follows from its configuration if it has one."""
    if "config" not in row:
        return row
    imported = import_config(row.pop("config"))
    derived: RowDocument = {"architecture": to_document(imported.architecture)}
    if imported.context_tokens is not None:
        derived["context_tokens"] = imported.context_tokens
    return {**row, **derived}


class ReadConfig(NamedTuple):
    """A configuration as a catalog row, with warnings about facts that it leaves open."""

    document: RowDocument
    warnings: list[AnswerWarning]

    def to_response(self, stored: RowDocument) -> ImportedModel:
        """Returns the stored row with the warnings."""
        return {"model": stored, "warnings": self.warnings}  # type: ignore[typeddict-item]


def read_config(body: ModelImportRequest) -> ReadConfig:
    """Returns the row that a published configuration describes."""
    try:
        imported = import_config(body.config)
    except PlanningError as error:
        field = FieldError(f"/config{error.pointer}", error.code, error.detail)
        raise Unprocessable("The configuration cannot be imported", field) from error
    document = body.model_dump(mode="json", exclude={"config"})
    architecture = Architecture.model_validate(to_document(imported.architecture))
    document["architecture"] = architecture.model_dump(mode="json")
    if imported.context_tokens is not None:
        document["context_tokens"] = imported.context_tokens
    warnings: list[AnswerWarning] = [
        {
            "code": "CONFIG_DEFAULT_USED",
            "pointer": f"/config/{name}",
            "detail": f"left out; the default of {imported.class_name} is used",
        }
        for name in imported.defaulted
    ]
    if "quantization_config" in body.config:
        warnings.append(
            {
                "code": "QUANTIZATION_NOT_STORED",
                "pointer": "/config/quantization_config",
                "detail": "the row holds only shapes; a request sets the storage of weights by weight_format",
            }
        )
    return ReadConfig(document, warnings)
