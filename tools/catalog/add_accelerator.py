"""Adds an accelerator, its links and its count of multiprocessors to the data that ship, from one file.

The file is a row as `POST /v1/accelerators` takes it, with two members more where they are needed: `links`,
rows of links that the catalog has not, and `machine`, the multiprocessors of the part where they differ from
those of its generation. Nothing is written unless every rule of the rows that ship holds.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from pydantic import ValidationError  # noqa: E402

from service.catalog.registry import ACCELERATORS, LINKS, Resource  # noqa: E402
from service.planning.errors import PlanningError  # noqa: E402

Row = dict[str, Any]
BARE: Final = {"id", "name", "aliases", "note", "sources", "vendor", "kind", "scope"}
"""Members that need no source."""
ORDERED: Final = ("fp32", "tf32", "bf16", "fp8", "fp4")
"""Formats of which a narrower one is never slower."""
CURVES: Final = "service/evidence/reference_curves.json"
MACHINE: Final = {"multiprocessors", "tile", "source", "bounds_streams"}
END_OF_MACHINES: Final = '\n      ],\n      "constants": ['


class Refusal(Exception):
    """What is wrong with the file, by name."""


def name_file(resource: Resource) -> str:
    """Returns the path of the rows that ship."""
    return f"service/catalog/{resource.name}/shipped.json"


def list_leaves(value: object, path: str = "") -> Iterator[str]:
    """Yields the JSON Pointer of every value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from list_leaves(inner, f"{path}/{name}")
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, inner in enumerate(value):
            yield from list_leaves(inner, f"{path}/{index}")
    else:
        yield path


def check_shape(resource: Resource, row: Row) -> None:
    """Refuses what the API would refuse."""
    try:
        resource.input.model_validate_json(json.dumps(row))
        resource.derive(row)
    except ValidationError as error:
        first = error.errors()[0]
        raise Refusal(f"/{'/'.join(map(str, first['loc']))}: {first['msg']}") from error
    except PlanningError as error:
        raise Refusal(f"{error.pointer}: {error}") from error


def check_sources(row: Row) -> None:
    """Refuses a value without a source, and a source of no value."""
    pointers = [pointer for source in row["sources"] for pointer in source["pointers"]]
    leaves = list(list_leaves({name: value for name, value in row.items() if name not in BARE}))
    for leaf in leaves:
        if not any(leaf == pointer or leaf.startswith(f"{pointer}/") for pointer in pointers):
            raise Refusal(f"{leaf}: no source names this value")
    every = list(list_leaves(row))
    for pointer in pointers:
        if pointer and not any(leaf == pointer or leaf.startswith(f"{pointer}/") for leaf in every):
            raise Refusal(f"{pointer}: a source names it, but the row has no such value")


def check_names(row: Row, rows: Sequence[Row]) -> None:
    """Refuses an id or another name that a row has."""
    taken = {name.casefold(): each["id"] for each in rows for name in (each["id"], *each.get("aliases", []))}
    for name in (row["id"], *row.get("aliases", [])):
        if (owner := taken.get(name.casefold())) is not None:
            raise Refusal(f"{name}: a name of {owner}")
        taken[name.casefold()] = row["id"]


def check_references(resource: Resource, row: Row, links: Sequence[Row]) -> None:
    """Refuses a link that nobody has described."""
    known = {link["id"] for link in links}
    for reference in resource.list_references(row):
        if reference.row_id not in known:
            raise Refusal(f"{reference.pointer}: there is no link {reference.row_id}; add it under links")


def check_rates(row: Row) -> None:
    """Refuses a rate below that of a wider format: one of them is sparse, or of another accumulation."""
    rates = row.get("peak_flops_per_second", {})
    known = [name for name in ORDERED if name in rates]
    for wide, narrow in itertools.pairwise(known):
        if rates[narrow] < rates[wide]:
            raise Refusal(f"/peak_flops_per_second/{narrow}: below the rate of {wide}")


def check_memory(row: Row) -> None:
    """Refuses more memory than the label promises."""
    label, reported = row.get("memory_label_gb"), row.get("memory_reported_bytes")
    if reported is not None and (label is None or reported > label * 2**30):
        raise Refusal("/memory_reported_bytes: more than the label, which counts 2^30 bytes at most")


def insert_rows(added: Sequence[Row], rows: Sequence[Row]) -> str:
    """Returns the text of the file with the rows in the order of their ids."""
    ordered = sorted([*rows, *added], key=lambda row: row["id"])
    return json.dumps(ordered, indent=2, ensure_ascii=False) + "\n"


def insert_machine(name: str, machine: Mapping[str, Any], text: str) -> str:
    """Returns the text of the curves with the multiprocessors of one accelerator."""
    if unknown := machine.keys() - MACHINE:
        raise Refusal(f"/machine/{min(unknown)}: not known")
    if not isinstance(count := machine.get("multiprocessors"), int) or isinstance(count, bool) or count < 1:
        raise Refusal("/machine/multiprocessors: a number of at least 1 is expected")
    if not isinstance(machine.get("source"), str) or not machine["source"]:
        raise Refusal("/machine/source: the source of the number is expected")
    curves = json.loads(text)
    if name in {each["name"] for each in curves["calibration"]["operators"]["machines"]}:
        raise Refusal(f"/machine: {CURVES} has the multiprocessors of {name}")
    entry = {"name": name, "multiprocessors": count, "tile": machine.get("tile", [128, 128])}
    entry |= {member: machine[member] for member in ("bounds_streams", "source") if member in machine}
    lines = json.dumps(entry, indent=2, ensure_ascii=False).replace("\n", "\n        ")
    return text.replace(END_OF_MACHINES, f",\n        {lines}{END_OF_MACHINES}", 1)


def add_accelerator(path: Path, root: Path) -> list[str]:
    """Adds what the file describes and returns the files that it changed."""
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refusal(f"{path}: {error}") from error
    if not isinstance(row, dict):
        raise Refusal(f"{path}: one object is expected")
    links, machine = row.pop("links", []), row.pop("machine", None)
    known = {
        resource.name: json.loads((root / name_file(resource)).read_text(encoding="utf-8"))
        for resource in (ACCELERATORS, LINKS)
    }
    for index, link in enumerate(links):
        check_shape(LINKS, link)
        check_sources(link)
        check_names(link, [*known["links"], *links[:index]])
    check_shape(ACCELERATORS, row)
    check_sources(row)
    check_names(row, known["accelerators"])
    check_references(ACCELERATORS, row, [*known["links"], *links])
    check_rates(row)
    check_memory(row)
    written = {name_file(ACCELERATORS): insert_rows([row], known["accelerators"])}
    if links:
        written[name_file(LINKS)] = insert_rows(links, known["links"])
    if machine is not None:
        curves = (root / CURVES).read_text(encoding="utf-8")
        written[CURVES] = insert_machine(row["id"], machine, curves)
    for name, text in written.items():
        (root / name).write_text(text, encoding="utf-8")
    return list(written)


def main() -> int:
    """Adds the accelerator of the file that the command names."""
    parser = argparse.ArgumentParser(prog="tools/catalog/add_accelerator", description=__doc__)
    parser.add_argument("file", type=Path, help="the row, as JSON")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository, if it is another one")
    asked = parser.parse_args()
    try:
        changed = add_accelerator(asked.file, asked.root)
    except Refusal as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    sys.stdout.write("".join(f"{name}\n" for name in changed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
