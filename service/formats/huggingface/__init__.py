"""Architectures from a Hugging Face ``config.json``.

Shapes, biases, norms and ties are those of the model classes of transformers 5.23, with the defaults of
its configuration classes where a published file leaves a field out; every default that sets a size is
reported. The class named in ``architectures`` decides on the heads. Parameter counts are held against
PyTorch's own, taken on the meta device.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple

from service.formats.huggingface import (
    diffusion,
    encoder_decoders,
    encoders,
    families,
    multimodal,
    recommender,
    vision,
)
from service.formats.huggingface.multimodal.omni import THINKERS, select_thinker
from service.formats.huggingface.reader import ConfigReader, ModelFamily
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture

FAMILIES: Mapping[str, ModelFamily] = {
    **families.FAMILIES,
    **encoders.FAMILIES,
    **encoder_decoders.FAMILIES,
    **vision.FAMILIES,
    **multimodal.FAMILIES,
    **diffusion.FAMILIES,
    **recommender.FAMILIES,
}

_CLASS_OF_DIFFUSERS = "_class_name"
"""Member in which a configuration of diffusers names its class; it has no ``model_type``."""


_TYPES_OF_CLASSES = {
    "LongcatFlashForCausalLM": "longcat_flash",
    "LongcatFlashNgramForCausalLM": "longcat_flash_ngram",
}
"""Types of classes whose published files name a class alone."""


class ReadModel(NamedTuple):
    """Result of reading a configuration. ``defaulted`` names the fields that it leaves to its family."""

    architecture: Architecture
    model_type: str
    class_name: str
    context_tokens: int | None
    defaulted: tuple[str, ...]
    tied_by_class: int = 0
    """Parameters of a head that the class ties although the configuration declares it untied."""
    left_out: tuple[str, ...] = ()
    """Members that describe parts which are not read, such as the talker of a model that speaks."""


def import_config(config: Mapping[str, object]) -> ReadModel:
    """Returns the architecture that ``config``, a parsed ``config.json``, describes.

    Raises :class:`PlanningError` whose pointer names the invalid field inside the configuration.
    """
    if str(config.get("model_type")) in THINKERS:
        return _import_thinker(config)
    config = _select_text_config(config)
    model_type = _read_model_type(config)
    family = FAMILIES.get(model_type)
    if family is None:
        field = _find_type_field(config)
        raise PlanningError("MODEL_TYPE_UNKNOWN", f"/{field}", _explain_unknown_type(model_type, field))
    class_suffix = _read_class_suffix(config, family)
    reader = family.build_reader(config)
    architecture = family.build(reader, class_suffix)
    _check_sizes(architecture)
    context_tokens = _read_context_tokens(config, reader, family)
    defaulted = list(reader.defaulted)
    if _CLASS_OF_DIFFUSERS not in config:
        defaulted += [name for name in ("architectures", "model_type") if name not in config]
    return ReadModel(
        architecture=architecture,
        model_type=model_type,
        class_name=family.prefix + class_suffix,
        context_tokens=context_tokens,
        defaulted=tuple(dict.fromkeys(defaulted)),
        tied_by_class=_count_class_tied_parameters(config, architecture),
        left_out=tuple(name for name in family.left_out if name in config),
    )


def _import_thinker(config: Mapping[str, object]) -> ReadModel:
    """Reads the thinker of a model that speaks; refusals name the whole path."""
    thinker = select_thinker(config)
    try:
        read = import_config(thinker)
    except PlanningError as error:
        raise PlanningError(error.code, f"/thinker_config{error.pointer}", error.detail) from error
    return read._replace(
        defaulted=tuple(f"thinker_config/{name}" for name in read.defaulted),
        left_out=tuple(
            name for name in ("talker_config", "token2wav_config", "code2wav_config") if name in config
        ),
    )


def _count_class_tied_parameters(config: Mapping[str, object], architecture: Architecture) -> int:
    table = architecture.embeddings
    if config.get("tie_word_embeddings") is not False or table is None or not architecture.tied:
        return 0
    return table.vocabulary_size * table.size


def _explain_unknown_type(model_type: str, field: str) -> str:
    missing = {**families.NOT_IMPORTED, **multimodal.NOT_IMPORTED}.get(model_type)
    if missing:
        return f"this model_type is not imported, because it has {missing}"
    return f"this {field} is not known; known are {', '.join(sorted({*FAMILIES, *THINKERS}))}"


def _select_text_config(config: Mapping[str, object]) -> Mapping[str, object]:
    """Returns the text part of a multimodal configuration whose first class is that of the text model."""
    text, names = config.get("text_config"), config.get("architectures")
    if not isinstance(text, Mapping) or not isinstance(names, list) or not names:
        return config
    family = families.FAMILIES.get(str(text.get("model_type")))
    known = [family.prefix + suffix for suffix in family.classes] if family else []
    if names[0] not in known:
        return config
    return {**text, "architectures": names}


_LARGEST_SIZE = 2**31 - 1
_MAY_BE_NONE = frozenset({"rotary_head_size"})
"""Sizes that may be 0 though they have no default."""


def _check_sizes(architecture: Architecture) -> None:
    """Refuses sizes that follow from fields that are in range individually but not together."""
    layers = (layer for block in architecture.list_blocks() for layer in block.layers)
    table = (architecture.embeddings,) if architecture.embeddings else ()
    for part in (*layers, *table, *architecture.heads, *architecture.inputs):
        for member in fields(part):
            size = getattr(part, member.name)
            if not isinstance(size, int) or isinstance(size, bool):
                continue
            least = 0 if member.name in _MAY_BE_NONE else 1
            if size == member.default or least <= size <= _LARGEST_SIZE:
                continue
            detail = f"{member.name} of a layer follows as {size}, outside 1 to 2147483647"
            raise PlanningError("CONFIG_FIELD_INVALID", "", detail)


def _read_context_tokens(
    config: Mapping[str, object], reader: ConfigReader, family: ModelFamily
) -> int | None:
    """Returns the context length of the model, or of its text decoder if it has one inside."""
    if family.context_field is not None:
        return reader.read_optional_size(family.context_field)
    text = config.get("text_config")
    if not isinstance(text, Mapping):
        return None
    decoder = FAMILIES.get(str(text.get("model_type")))
    names = decoder.names if decoder else {}
    return ConfigReader(text, {}, names).read_optional_size("max_position_embeddings")


def _find_type_field(config: Mapping[str, object]) -> str:
    """Returns the field in which the configuration names its type."""
    of_diffusers = "model_type" not in config and _CLASS_OF_DIFFUSERS in config
    return _CLASS_OF_DIFFUSERS if of_diffusers else "model_type"


def _read_model_type(config: Mapping[str, object]) -> str:
    model_type = config.get(_find_type_field(config))
    if isinstance(model_type, str):
        return model_type
    if model_type is None and encoders.is_original_format(config):
        return "bert"
    names = config.get("architectures")
    if model_type is None and isinstance(names, list) and names and str(names[0]) in _TYPES_OF_CLASSES:
        return _TYPES_OF_CLASSES[str(names[0])]
    raise PlanningError("CONFIG_FIELD_MISSING", "/model_type", "model_type is missing")


def _read_class_suffix(config: Mapping[str, object], family: ModelFamily) -> str:
    names = config.get("architectures")
    if names is None:
        return family.unnamed_class
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        raise PlanningError(
            "CONFIG_FIELD_INVALID", "/architectures", "architectures must be a list of class names"
        )
    suffix = names[0].removeprefix(family.prefix)
    if suffix == names[0] or suffix not in family.classes:
        known = ", ".join(family.prefix + name for name in family.classes)
        raise PlanningError(
            "MODEL_CLASS_UNKNOWN", "/architectures/0", f"this class is not known; known are {known}"
        )
    return suffix
