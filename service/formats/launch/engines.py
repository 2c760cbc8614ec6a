"""Rules that vLLM and SGLang share: loading of weights. Sources are theirs."""

from typing import Final

from service.formats.launch.rules import (
    FORMAT,
    WEIGHTS,
    LaunchSettingValues,
    SettingRule,
    ToolKeys,
    build_choice_rule,
)
from service.planning.errors import PlanningError

SEVERAL_SERVERS: Final = "several servers are started and requests shared among them"
CHECKPOINT_FORMAT: Final = "the checkpoint has to be stored so; the engine finds it in its configuration"
PRECISION_DETAIL: Final = "weights so narrow come with a checkpoint that is stored so"


def _write_format(settings: LaunchSettingValues) -> ToolKeys:
    name = str(settings.get(FORMAT, ""))
    if not name:
        return {}
    loaded = {"fp8_tensor": "fp8", "bnb_nf4": "bitsandbytes"}
    if name in loaded:
        return {"quantization": loaded[name]}
    raise PlanningError("CHECKPOINT_FORMAT", FORMAT, CHECKPOINT_FORMAT)


LOADED: Final = (
    build_choice_rule(
        WEIGHTS,
        "format of weights and activations; fp8 narrows matrices as they are loaded",
        {
            "bf16": ({"dtype": "bfloat16"},),
            "fp16": ({"dtype": "float16"}, {"dtype": "half"}),
            "fp32": ({"dtype": "float32"}, {"dtype": "float"}),
            "fp8": ({"quantization": "fp8"},),
        },
        silent={"dtype": ("auto", "bfloat16", "float16", "half")},
        why=PRECISION_DETAIL,
    ),
    SettingRule(
        (FORMAT,), (), "a quantised checkpoint names its own format", _write_format, lambda _keys, _known: {}
    ),
)
"""Formats of the weights."""
