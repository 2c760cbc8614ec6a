"""Resolution of a reference to a model."""

from typing import NamedTuple

from service.formats.huggingface import ReadModel, import_config
from service.formats.quantization import read_checkpoint_format
from service.planning.errors import PlanningError
from service.planning.hardware.storage import WeightFormat
from service.planning.models.profile import ModelProfile, build_profile, build_profile_from_count
from service.planning.notes import AnswerNotes
from service.resolve.catalog import CatalogView, resolve_row
from service.schemas.architectures import to_planning
from service.schemas.references import ArchitectureModel, CatalogModel, HuggingFaceModel, ModelReference


class ResolvedModel(NamedTuple):
    """A model as a planning value."""

    profile: ModelProfile
    context_tokens: int | None
    stored: WeightFormat | None = None
    """Format in which the checkpoint stores the weights, if its row or configuration states one."""
    stored_pointer: str = "/model/config/quantization_config"
    """JSON Pointer of the member of the question that states it."""
    unreadable: PlanningError | None = None
    """Error that the configuration raised if its stored format cannot be read."""
    is_wide: bool = False
    """True if the name of the model states weights of 16 bits."""


def _note_reading(imported: ReadModel, notes: AnswerNotes) -> None:
    """Notes what a configuration leaves open, what is left out of it and what its class overrides."""
    if imported.defaulted:
        names = ", ".join(imported.defaulted)
        notes.warn(
            "CONFIG_DEFAULT_USED",
            "/model/config",
            f"the configuration leaves out {names}; the defaults of {imported.class_name} are used",
        )
    if imported.left_out:
        detail = f"{imported.class_name} is read, without what {', '.join(imported.left_out)} describe"
        notes.warn("MODEL_PART_LEFT_OUT", "/model/config", detail)
    if imported.tied_by_class:
        detail = (
            f"{imported.class_name} ties its head to the token table and ignores its configuration;"
            f" a checkpoint with separate tables holds {imported.tied_by_class} more parameters"
        )
        notes.warn("HEAD_TIED_BY_CLASS", "/model/config/tie_word_embeddings", detail)


def resolve_model(reference: ModelReference, catalog: CatalogView, notes: AnswerNotes) -> ResolvedModel:
    """Returns the model that ``reference`` stands for, and notes its defaults."""
    match reference:
        case CatalogModel(id=name):
            known = resolve_row(catalog.models, name, "/model/id", notes)
            notes.cite(known.source, "/model")
            return ResolvedModel(
                known.profile, known.context_tokens, known.stored, "/model/id", is_wide=known.is_wide
            )
        case HuggingFaceModel(config=config):
            try:
                imported = import_config(config)
            except PlanningError as error:
                pointer = f"/model/config{error.pointer}"
                raise PlanningError(error.code, pointer, error.detail) from error
            try:
                profile = build_profile(imported.architecture)
            except PlanningError as error:
                # The layers of the profile are not members of the configuration.
                raise PlanningError(error.code, "/model/config", error.detail) from error
            _note_reading(imported, notes)
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
