"""Parameter counts of models, and import of models from published configurations."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from service.catalog.models.schemas import ImportedModel, ModelImportRequest
from service.catalog.rows import RowDocument
from service.formats.huggingface import ReadModel, import_config
from service.formats.quantization import find_quantization, read_checkpoint_format
from service.kit.http.problems import FieldError, Unprocessable
from service.planning.errors import PlanningError
from service.planning.models.profile import build_profile
from service.schemas.architectures import Architecture, to_document, to_planning
from service.schemas.base import AnswerWarning


def count_parameters(document: RowDocument) -> RowDocument:
    """Returns the counts that the row keeps.

    Raises :class:`PlanningError` for an architecture that contradicts itself or an unknown quantization.
    """
    try:
        profile = build_profile(to_planning(Architecture.model_validate(document["architecture"])))
    except PlanningError as error:
        raise PlanningError(error.code, f"/architecture{error.pointer}", error.detail) from error
    # Refuses a quantization that no question could read.
    read_checkpoint_format({"quantization_config": document.get("quantization_config")}, profile.block_count)
    return {
        "parameter_count": profile.parameter_count,
        "active_parameter_count": profile.active_parameter_count,
    }


def add_architecture(row: RowDocument) -> RowDocument:
    """Returns a shipped row with its architecture, which follows from its configuration if it has one."""
    if "config" not in row:
        return row
    config = row.pop("config")
    return {**row, **_derive_shapes(import_config(config)), **_derive_quantization(config)}


def _derive_shapes(imported: ReadModel) -> RowDocument:
    derived: RowDocument = {"architecture": to_document(imported.architecture)}
    if imported.context_tokens is not None:
        derived["context_tokens"] = imported.context_tokens
    return derived


def _derive_quantization(config: Mapping[str, Any]) -> RowDocument:
    """Returns the quantization of a configuration. Raises :class:`PlanningError` if it cannot be read."""
    read_checkpoint_format(config)
    quantization = find_quantization(config)
    return {} if quantization is None else {"quantization_config": quantization}


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
    document |= _derive_shapes(imported)
    document["architecture"] = Architecture.model_validate(document["architecture"]).model_dump(mode="json")
    warnings: list[AnswerWarning] = []
    try:
        document |= _derive_quantization(body.config)
    except PlanningError as error:
        warnings.append(
            {"code": "QUANTIZATION_NOT_STORED", "pointer": f"/config{error.pointer}", "detail": error.detail}
        )
    warnings += [
        {
            "code": "CONFIG_DEFAULT_USED",
            "pointer": f"/config/{name}",
            "detail": f"left out; the default of {imported.class_name} is used",
        }
        for name in imported.defaulted
    ]
    warnings += [
        {
            "code": "MODEL_PART_LEFT_OUT",
            "pointer": f"/config/{name}",
            "detail": f"{imported.class_name} is read, without what this describes",
        }
        for name in imported.left_out
    ]
    return ReadConfig(document, warnings)
