"""Requests and answers of models."""

from pydantic import MISSING
from typing_extensions import TypedDict

from service.catalog.rows import EXAMPLE_SOURCES, RowDocument, RowInput, Versioned
from service.catalog.shapes import LARGEST_BOUND, ListQuery, NumberBound
from service.schemas.architectures import Architecture
from service.schemas.base import AnswerWarning, ForeignObject, Integer, Size, Text


class ModelRequest(RowInput):
    """A model: an architecture with a name."""

    architecture: Architecture
    """Layers with shapes."""
    context_tokens: Size | MISSING = MISSING
    """Longest sequence that the model was built for."""
    hub_id: Text | MISSING = MISSING
    """Repository on the Hugging Face Hub that publishes the weights, such as `openai/gpt-oss-120b`."""
    license: Text | MISSING = MISSING
    """Licence of the weights, as the repository names it."""
    quantization_config: ForeignObject | MISSING = MISSING
    """Quantization of the published weights, as their config.json states it. Questions that name no precision
    load the weights so; without it, weights are published in 16 bits or wider and loaded in 16 bits."""


class Model(ModelRequest, Versioned):
    """A model of the catalog."""

    parameter_count: Integer
    """Parameters as PyTorch counts those of the model class: tied ones once, buffers not."""
    active_parameter_count: Integer
    """Parameters that one token uses."""


class ModelImportRequest(RowInput):
    """A model given by its published `config.json`."""

    config: ForeignObject
    """The parsed config.json, as published."""


class ImportedModel(TypedDict):
    """The stored model, and what its configuration leaves open."""

    model: Model
    """The model as stored."""
    warnings: list[AnswerWarning]
    """Facts that the configuration leaves open, and the values that were assumed."""


class ModelQuery(ListQuery):
    """Filters of models."""

    min_parameter_count: NumberBound = 0.0
    """Fewest parameters."""
    max_parameter_count: NumberBound = LARGEST_BOUND
    """Most parameters."""


EXAMPLE: RowDocument = {
    "id": "example-decoder",
    "name": "Example decoder",
    "architecture": {
        "embeddings": {"size": 1024, "vocabulary_size": 32000},
        "layers": [
            {
                "kind": "block",
                "count": 24,
                "layers": [
                    {"kind": "normalization", "size": 1024},
                    {
                        "kind": "attention",
                        "hidden_size": 1024,
                        "query_heads": 16,
                        "key_value_heads": 4,
                        "head_size": 64,
                    },
                    {"kind": "normalization", "size": 1024},
                    {"kind": "feed_forward", "hidden_size": 1024, "inner_size": 2816, "gated": True},
                ],
            },
            {"kind": "normalization", "size": 1024},
        ],
        "heads": [{"kind": "language_model", "input_size": 1024, "output_size": 32000}],
    },
    "context_tokens": 8192,
    "sources": EXAMPLE_SOURCES,
}
EXAMPLE_PATCH: RowDocument = {"context_tokens": 16384}
