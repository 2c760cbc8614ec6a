"""Shapes of models."""

from typing import TYPE_CHECKING

from pydantic import MISSING
from typing_extensions import TypedDict

from service.catalog.rows import RowInput, Versioned
from service.catalog.shapes import LARGEST_BOUND, Bound, ListQuery
from service.kit.http.pages import NextPageToken
from service.schemas.architectures import Architecture
from service.schemas.base import AnswerWarning, ForeignObject, Integer, Size
from service.schemas.patches import patch_of


class ModelInput(RowInput):
    """An architecture with a name."""

    architecture: Architecture
    """Layers with shapes."""
    context_tokens: Size | MISSING = MISSING
    """Longest sequence that the model was built for."""


class Model(ModelInput, Versioned):
    """A model of the catalog."""

    parameter_count: Integer
    """As PyTorch counts the parameters of the class: tied ones once, buffers not."""
    active_parameter_count: Integer
    """Parameters that one token uses."""


if TYPE_CHECKING:
    ModelPatch = ModelInput
else:
    ModelPatch = patch_of(ModelInput, "ModelPatch")


class ModelImport(RowInput):
    """A model by its published config.json."""

    config: ForeignObject
    """The parsed config.json, as published."""


class ImportedModel(TypedDict):
    """The model that was stored, and what the configuration left open."""

    model: Model
    """The model as stored."""
    warnings: list[AnswerWarning]
    """What the configuration left open, and what was taken."""


class ModelPage(TypedDict):
    """A page of models."""

    items: list[Model]
    next_page_token: NextPageToken


class ModelQuery(ListQuery):
    """Filters of models."""

    min_parameter_count: Bound = 0.0
    """Fewest parameters."""
    max_parameter_count: Bound = LARGEST_BOUND
    """Most parameters."""
