"""Adds a model to the rows that ship, from the config.json that its maker publishes."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import service
from service.catalog.registry import MODELS
from service.catalog.rows import RowDocument
from service.formats.huggingface import ReadModel, import_config
from service.formats.names import normalize_name
from service.formats.quantization import read_checkpoint_format
from service.planning.errors import PlanningError

SHIPPED = Path(service.__file__).parent / "catalog" / "models" / "shipped.json"
PARTS = {
    "text_config",
    "vision_config",
    "audio_config",
    "vit_config",
    "adapter_config",
    "thinker_config",
    "audio_processor",
    "config",
    "attn_config",
    "ffn_config",
    "linear_attn_config",
}
"""Members that are configurations themselves; others, such as labels, are kept whole."""
Config = Mapping[str, Any]


class Refusal(Exception):
    """The reason for which a row is not added."""


def read_config(path: Path) -> Config:
    """Returns the parsed file. Raises :class:`Refusal` if it is not a JSON object."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(config, dict):
        raise Refusal(f"{path} is not a JSON object")
    return config


def import_model(config: Config) -> ReadModel:
    """Returns the architecture, having seen that its quantization can be read as well."""
    read_checkpoint_format(config)
    return import_config(config)


def select_read_members(config: Config) -> RowDocument:
    """Returns the members that the reader reads: those whose place nothing else can take unnoticed."""
    expected = import_model(config)

    def is_noticed(changed: Config) -> bool:
        try:
            return import_model(changed) != expected
        except PlanningError:
            return True

    def select(part: Config, put_back: Callable[[Config], Config]) -> RowDocument:
        kept = {}
        for name, value in part.items():
            if not is_noticed(put_back({**part, name: object()})):
                continue
            nested = isinstance(value, Mapping) and name in PARTS
            kept[name] = (
                select(value, lambda inner, name=name: put_back({**part, name: inner})) if nested else value
            )
        return kept

    return select(config, lambda whole: whole)


def build_row(asked: argparse.Namespace, config: Config) -> RowDocument:
    """Returns the row as the shipped file has it."""
    name = asked.hub_id.rpartition("/")[2]
    row: RowDocument = {
        "id": asked.id or re.sub(r"[^a-z0-9._-]", "-", name.lower()),
        "name": asked.name or name.replace("-", " "),
        "aliases": [asked.hub_id, *asked.alias],
        "hub_id": asked.hub_id,
        "license": asked.license,
        "config": select_read_members(config),
        "sources": [{"pointers": [""], "citation": asked.source, "as_of": asked.as_of}],
    }
    if asked.note:
        row["note"] = asked.note
    if asked.license_source:
        pointers = ["/hub_id", "/license"]
        row["sources"].append({"pointers": pointers, "citation": asked.license_source, "as_of": asked.as_of})
    return row


def count_parameters(row: RowDocument) -> int:
    """Returns the count of a row, validated as one that a caller sends."""
    document = MODELS.input.model_validate(MODELS.read(dict(row))).model_dump(mode="json")
    return int(MODELS.derive(document)["parameter_count"])


def check_names(row: RowDocument, rows: list[RowDocument]) -> None:
    """Refuses an id or an alias by which another row is found, in any spelling."""
    taken = {
        normalize_name(name): other["id"]
        for other in rows
        for name in (other["id"], *other.get("aliases", []))
    }
    for name in (row["id"], *row["aliases"]):
        if (owner := taken.get(normalize_name(name))) is not None:
            raise Refusal(f"{name} names the row {owner}")


def insert_row(row: RowDocument, rows: list[RowDocument]) -> list[RowDocument]:
    """Returns the rows with one more, in front of the first whose id comes later in the alphabet."""
    place = next((at for at, other in enumerate(rows) if other["id"] > row["id"]), len(rows))
    return [*rows[:place], row, *rows[place:]]


def add_model(asked: argparse.Namespace) -> str:
    """Writes the row into the shipped file and returns what to say of it."""
    rows = json.loads(asked.shipped.read_text(encoding="utf-8"))
    config = read_config(asked.config)
    row = build_row(asked, config)
    check_names(row, rows)
    count = count_parameters(row)
    if asked.parameters not in (None, count):
        raise Refusal(f"the reader counts {count:,} parameters, {asked.parameters:,} are published")
    written = json.dumps(insert_row(row, rows), indent=2, ensure_ascii=False) + "\n"
    asked.shipped.write_text(written, encoding="utf-8")
    said = [f"{row['id']}: {count:,} parameters"]
    defaulted = import_model(config).defaulted
    said += [f"  {name} is left out; the default of its class is used" for name in defaulted]
    return "\n".join(said)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="tools/catalog/add_model", description=__doc__)
    parser.add_argument("config", type=Path, help="config.json as published")
    parser.add_argument("--hub-id", required=True, help="repository that publishes the weights, OWNER/NAME")
    parser.add_argument("--license", required=True, help="licence of the weights, as the repository names it")
    parser.add_argument("--source", required=True, help="document of the configuration and way of access")
    parser.add_argument("--as-of", required=True, metavar="DATE", help="day on which it was read")
    parser.add_argument("--license-source", help="document of the licence, if it is another one")
    parser.add_argument(
        "--parameters", type=int, help="published total of parameters, which the row has to have"
    )
    parser.add_argument("--alias", action="append", default=[], help="other repository of the same shapes")
    parser.add_argument("--id", help="id of the row; the name of the repository in lower case if left out")
    parser.add_argument("--name", help="name of the row")
    parser.add_argument("--note", help="remark for the reader of the row")
    parser.add_argument("--shipped", type=Path, default=SHIPPED, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> int:
    """Adds the model, or says on standard error why it is refused."""
    asked = parse_arguments(sys.argv[1:])
    try:
        print(add_model(asked))
    except PlanningError as error:
        print(f"add_model: {asked.config}: {error.pointer}: {error.detail}", file=sys.stderr)
    except ValidationError as error:
        for found in error.errors():
            place = "/".join(map(str, found["loc"]))
            print(f"add_model: /{place}: {found['msg']}", file=sys.stderr)
    except Refusal as error:
        print(f"add_model: {error}", file=sys.stderr)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
