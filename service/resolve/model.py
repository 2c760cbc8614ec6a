"""What a reference to a model stands for."""

from typing import NamedTuple

from service.formats.huggingface import import_config
from service.formats.quantization import read_checkpoint_format
from service.planning.errors import PlanningError
from service.planning.hardware.storage import WeightFormat
from service.planning.models.profile import ModelProfile, build_profile, build_profile_from_count
from service.planning.notes import AnswerNotes
from service.resolve.catalog import CatalogView, resolve_row
from service.schemas.architectures import to_planning
from service.schemas.references import ArchitectureModel, CatalogModel, HuggingFaceModel, ModelReference


class ResolvedModel(NamedTuple):
    """A model as planning sees it."""

    profile: ModelProfile
    context_tokens: int | None
    stored: WeightFormat | None = None
    """How its checkpoint stores the weights, where its configuration says so."""
    unreadable: PlanningError | None = None
    """Why what it says of that cannot be read."""


def resolve_model(reference: ModelReference, catalog: CatalogView, notes: AnswerNotes) -> ResolvedModel:
    """The model that ``reference`` stands for, with what was defaulted noted."""
    match reference:
        case CatalogModel(id=name):
            known = resolve_row(catalog.models, name, "/model/id")
            notes.cite(known.source, "/model")
            return ResolvedModel(known.profile, known.context_tokens)
        case HuggingFaceModel(config=config):
            try:
                imported = import_config(config)
            except PlanningError as error:
                pointer = f"/model/config{error.pointer}"
                raise PlanningError(error.code, pointer, error.detail) from error
            try:
                profile = build_profile(imported.architecture)
            except PlanningError as error:
                # Its layers are no members of the configuration.
                raise PlanningError(error.code, "/model/config", error.detail) from error
            if imported.defaulted:
                names = ", ".join(imported.defaulted)
                notes.warn(
                    "CONFIG_DEFAULT_USED",
                    "/model/config",
                    f"the configuration leaves out {names}; the defaults of {imported.class_name} are used",
                )
            if imported.tied_by_class:
                detail = (
                    f"{imported.class_name} ties its head to the token table whatever its configuration says;"
                    f" a checkpoint that keeps them apart holds {imported.tied_by_class} parameters more"
                )
                notes.warn("HEAD_TIED_BY_CLASS", "/model/config/tie_word_embeddings", detail)
            try:
                stored = read_checkpoint_format(config, profile.block_count)
            except PlanningError as error:
                pointer = f"/model/config{error.pointer}"
                unreadable = PlanningError(error.code, pointer, error.detail)
                return ResolvedModel(profile, imported.context_tokens, unreadable=unreadable)
            return ResolvedModel(profile, imported.context_tokens, stored)
        case ArchitectureModel(architecture=architecture):
            try:
                return ResolvedModel(build_profile(to_planning(architecture)), None)
            except PlanningError as error:
                pointer = f"/model/architecture{error.pointer}"
                raise PlanningError(error.code, pointer, error.detail) from error
        case _:
            return ResolvedModel(build_profile_from_count(reference.parameter_count), None)
