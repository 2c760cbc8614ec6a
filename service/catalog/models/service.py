"""Models from published configurations."""

from typing import NamedTuple

from service.catalog.models.schemas import ImportedModel, ModelImport
from service.catalog.rows import Document
from service.formats.huggingface import import_config
from service.kit.http.problems import FieldError, Unprocessable
from service.planning.errors import PlanningError
from service.schemas.architectures import Architecture, from_planning
from service.schemas.base import AnswerWarning


class ReadConfig(NamedTuple):
    """A configuration as a catalog row, with what it left open."""

    document: Document
    warnings: list[AnswerWarning]

    def answer(self, stored: Document) -> ImportedModel:
        """The stored row beside the warnings."""
        return {"model": stored, "warnings": self.warnings}  # type: ignore[typeddict-item]


def read_config(body: ModelImport) -> ReadConfig:
    """The row that a published configuration describes."""
    try:
        imported = import_config(body.config)
    except PlanningError as error:
        field = FieldError(f"/config{error.pointer}", error.code, error.detail)
        raise Unprocessable("The configuration cannot be imported", field) from error
    document = body.model_dump(mode="json", exclude={"config"})
    architecture = Architecture.model_validate(from_planning(imported.architecture))
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
                "detail": "a row holds shapes; a question says how weights are stored by weight_format",
            }
        )
    return ReadConfig(document, warnings)
