"""Weight format of a checkpoint, by its method and rules."""

import re
from collections.abc import Hashable, Mapping
from dataclasses import replace

from service.formats.quantization.cache import read_cache
from service.formats.quantization.methods import METHODS, MLX
from service.formats.quantization.modules import build_invalid_error
from service.formats.quantization.names import HEAD_NAMES, MODULE_NAMES
from service.formats.quantization.reader import QuantizationReader
from service.formats.quantization.rules import SchemeRules
from service.planning.errors import PlanningError
from service.planning.hardware.storage import GGUF_FORMATS, MatrixPath, MatrixScheme, ModelFacts, WeightFormat
from service.planning.hardware.storage.named import ALWAYS_WIDE, EXPERT_MODULES, WIDE

_AWQ_SAVES_ONCE = (4, 47)
"""Release of transformers beside which AutoAWQ (0.2.7) began to write a tied head once."""


def read_checkpoint_format(config: Mapping[str, object], layers: int = 1) -> WeightFormat | None:
    """Returns the weight format of the checkpoint of ``config`` for so many layers; None if it is not stated.

    Raises :class:`PlanningError` whose pointer names the invalid field inside the configuration.
    """
    found = _find_config(config)
    if found is None:
        return None
    pointer, fields = found
    method = fields.get("quant_method")
    if method is None and ("quant_algo" in fields or "quantization" in fields):
        method = "modelopt"
    elif method is None and "group_size" in fields and "bits" in fields:
        method = MLX
    elif method == "gguf":
        return _find_file_type(fields, pointer)
    reader = METHODS.get(str(method))
    if reader is None:
        raise PlanningError(
            "QUANTIZATION_UNKNOWN",
            f"{pointer}/quant_method",
            f"this method is not known; known are {', '.join(sorted(METHODS))}",
        )
    copies = _copies_tied_head(str(method), {**config, **fields})
    rules = reader(QuantizationReader(fields, pointer))
    rules.check_work(layers, pointer)
    cache = read_cache(QuantizationReader(fields, pointer))
    return replace(_build_format(str(method), rules, copies_tied_head=copies), cache=cache)


def _copies_tied_head(method: str, config: Mapping[str, object]) -> bool:
    """Returns true if the files contain a tied head in addition to the table.

    Qwen2.5-1.5B-Instruct-AWQ is 1.61 GB and not 1.14, the second file of Qwen3-4B-FP8 (778 MB) is its head
    alone; those of GPTQ contain it once.
    """
    saved = re.match(r"(\d{1,9})\.(\d{1,9})", str(config.get("transformers_version", "")))
    older = saved is None or (int(saved[1]), int(saved[2])) < _AWQ_SAVES_ONCE
    return method == "fp8" or (method == "awq" and older)


def _find_file_type(fields: Mapping[str, object], pointer: str) -> WeightFormat:
    found = GGUF_FORMATS.get(f"gguf_{fields.get('file_type')}")
    if found is None:
        detail = "this file type of llama.cpp is not known"
        raise PlanningError("QUANTIZATION_UNKNOWN", f"{pointer}/file_type", detail)
    return found


def find_quantization(config: Mapping[str, object]) -> dict[str, object] | None:
    """Returns the quantization that a published ``config`` states, with the release that wrote it.

    None without one. Raises :class:`PlanningError` for one that is no object.
    """
    found = _find_config(config)
    if found is None:
        return None
    release = {name: config[name] for name in ("transformers_version",) if name in config}
    return {**release, **found[1]}


def _find_config(config: Mapping[str, object]) -> tuple[str, Mapping[str, object]] | None:
    inner = config.get("text_config")
    places = [("", config)]
    if isinstance(inner, Mapping):
        places.append(("/text_config", inner))
    for parent, holder in places:
        for name in ("quantization_config", "compression_config"):
            fields = holder.get(name)
            if isinstance(fields, Mapping):
                # DeepSeek-V4 states the format of its experts beside the object.
                beside = {field: holder[field] for field in ("expert_dtype",) if field in holder}
                return f"{parent}/{name}", {**beside, **fields}
            if fields is not None:
                raise build_invalid_error(f"{parent}/{name}", "must be an object")
    return None


def _build_format(method: str, rules: SchemeRules, *, copies_tied_head: bool) -> WeightFormat:
    def select_scheme(place: MatrixPath, facts: ModelFacts) -> MatrixScheme:
        del facts
        if place.module in ALWAYS_WIDE or (rules.experts_only and place.module not in EXPERT_MODULES):
            return WIDE
        if rules.experts is not None and place.module in EXPERT_MODULES:
            return rules.experts
        return rules.select_scheme(str(place.layer), MODULE_NAMES.get(place.module, (place.module,)))

    def select_head_scheme(facts: ModelFacts, size: int) -> MatrixScheme:
        del size
        # A tied head is the token table.
        is_packed = rules.head and (rules.table or not facts.tied)
        return rules.select_scheme("", HEAD_NAMES) if is_packed else WIDE

    def select_table_scheme(facts: ModelFacts, size: int) -> MatrixScheme:
        del facts, size
        return rules.schemes[-1][1] if rules.table else WIDE

    def build_layer_key(layer: int, facts: ModelFacts) -> Hashable:
        del facts
        return tuple(modules.build_layer_key(str(layer)) for modules in rules.module_lists)

    return WeightFormat(
        name=method,
        compute=rules.compute,
        mean_bits=(rules.experts or rules.schemes[-1][1]).element_bits,
        scheme_of=select_scheme,
        head=select_head_scheme,
        table=select_table_scheme,
        lookups=rules.lookups,
        layer_key=build_layer_key if any(modules.by_layer for modules in rules.module_lists) else None,
        copies_tied_head=copies_tied_head,
    )
