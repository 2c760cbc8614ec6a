"""Names of published checkpoints: their owner, their model, and the format that the ending states."""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from service.planning.hardware.storage.gguf import FILE_TYPES

_TUNING: Final = frozenset(
    {"instruct", "chat", "it", "pt", "base", "hf", "thinking", "sft", "dpo", "rlhf", "preview"}
    | {"qat", "exp", "latest"}
)
_DATE: Final = re.compile(r"(?:2[0-9]|0[1-9]|1[0-2])(?:[0-9]{2}|[0-9]{4})")
_PARTS: Final = re.compile(r"[-_ ]+")


class StoredForm(NamedTuple):
    """Format in which repositories of one ending store the weights."""

    name: str
    quantization_config: Mapping[str, Any] | None
    """Quantization as a config.json states it; None for 16 bits."""
    is_dense_only: bool
    """True if it holds for models of attention and plain feed-forward layers only."""


class CheckpointName(NamedTuple):
    """Name of a published checkpoint."""

    owner: str
    """Owner of the repository, in lower case; empty if the name states none."""
    model: str
    """Name of the model, without owner and format."""
    form: StoredForm | None = None
    """Format that the ending states; None without such an ending."""
    refusal: str = ""
    """Reason why the format is not known, if the ending states one that is not."""


class _Ending(NamedTuple):
    pattern: re.Pattern[str]
    publishers: frozenset[str]
    form: StoredForm | None = None
    refusal: str = ""
    file_type: str = ""
    """File type of llama.cpp where the name states none."""

    def build_form(self, match: re.Match[str]) -> StoredForm | None:
        """Returns the format, with the file type or the bits that a name states."""
        form = self.form
        if form is None or form.quantization_config is None:
            return form
        stated = match.groupdict()
        config = dict(form.quantization_config)
        if stated.get("bits"):
            config["bits"] = int(stated["bits"])
            return form._replace(name=f"{form.name} of {stated['bits']} bits", quantization_config=config)
        if self.file_type:
            found = next((stated[key] for key in ("before", "after", "alone") if stated[key]), "").lower()
            config["file_type"] = _FILE_TYPES.get(found, found) or self.file_type
            name = f"{form.name} {config['file_type'].upper()}"
            return form._replace(name=name, quantization_config=config)
        return form


_FILE_TYPES: Final = {"bf16": "f16", "mxfp4": "mxfp4_moe"}
"""Other names of file types."""


def _build_ending(given: Mapping[str, Any], form: StoredForm | None) -> _Ending:
    kinds = "|".join(sorted((*FILE_TYPES, *_FILE_TYPES), key=len, reverse=True))
    written = given["ending"].replace("FILE_TYPE", f"(?:{kinds})")
    # A colon before a type without an ending is how Ollama writes a tag.
    pattern = re.compile(rf"(?P<model>.+?)[-_.:](?:{written})", re.IGNORECASE)
    publishers, refusal = frozenset(given.get("publishers", ())), given.get("detail", "")
    return _Ending(pattern, publishers, form, refusal, given.get("file_type", ""))


@cache
def _load_document() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((files(__package__) / "checkpoints.json").read_bytes())
    return content


def is_mirror(owner: str) -> bool:
    """Returns true if ``owner`` publishes copies of others' checkpoints under their names."""
    return owner in _load_document()["mirrors"]


@cache
def _load_endings() -> tuple[_Ending, ...]:
    content = _load_document()
    return (
        *(
            _build_ending(
                each, StoredForm(each["name"], each["quantization_config"], each.get("dense", False))
            )
            for each in content["endings"]
        ),
        *(_build_ending(each, None) for each in content["refused"]),
    )


def read_checkpoint_name(name: str) -> CheckpointName:
    """Returns the parts of the name of a checkpoint, such as `owner/model-AWQ`."""
    owner, _, tail = name.strip().rpartition("/")
    owner = _load_document()["renamed"].get(owner.casefold(), owner.casefold())
    for ending in _load_endings():
        match = ending.pattern.fullmatch(tail)
        if match and (not ending.publishers or owner in ending.publishers):
            return CheckpointName(owner, match["model"], ending.build_form(match), ending.refusal)
    return CheckpointName(owner, tail)


def split_model_name(model: str) -> tuple[str, frozenset[str]]:
    """Returns the name of a model without words of tuning and dates, and those words."""
    parts = _PARTS.split(model.casefold())
    tuned = frozenset(part for part in parts if part in _TUNING or _DATE.fullmatch(part))
    return "-".join(part for part in parts if part not in tuned), tuned
