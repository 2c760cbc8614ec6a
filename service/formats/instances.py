"""Instance types of clouds and slices of TPUs, with the accelerators that they come with."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class InstanceType(NamedTuple):
    """An instance type. A count below 1 is a share of one accelerator."""

    name: str
    accelerator_id: str
    accelerator_count: float


class SliceFamily(NamedTuple):
    """Slices of one generation of TPUs, named by a number of TensorCores or of chips."""

    accelerator_id: str
    tensorcores_per_chip: int | None
    """TensorCores of a chip if names count these; None if they count chips."""
    sizes: tuple[int, ...]
    """Chips of its slices; empty for any multiple of ``multiple_of`` up to ``most``."""
    multiple_of: int
    most: int

    def count_chips(self, number: int) -> int | None:
        """Returns the chips of the slice that a name with ``number`` stands for; None if there is none."""
        chips, rest = divmod(number, self.tensorcores_per_chip or 1)
        is_size = chips in self.sizes if self.sizes else 0 < chips <= self.most
        return chips if not rest and is_size and not chips % self.multiple_of else None

    def describe(self) -> str:
        """Returns which slices there are."""
        unit = "chips" if self.tensorcores_per_chip is None else "TensorCores"
        each = self.tensorcores_per_chip or 1
        if self.sizes:
            return f"{unit}: {', '.join(str(size * each) for size in self.sizes)}"
        return f"{unit}, a multiple of {self.multiple_of * each} up to {self.most * each}"


def _load_document() -> Any:  # noqa: ANN401
    return json.loads((files(__package__) / "instances.json").read_bytes())


@cache
def list_slice_families() -> Mapping[str, SliceFamily]:
    """Returns the slices of TPUs by the beginning of their names."""
    found: dict[str, SliceFamily] = {}
    for family in _load_document()["slices"]["families"]:
        chips = family["chips"]
        read = SliceFamily(
            family["accelerator_id"],
            family.get("tensorcores_per_chip"),
            tuple(chips.get("sizes", ())),
            chips.get("multiple_of", 1),
            chips.get("most", 0),
        )
        found.update(dict.fromkeys(family["names"], read))
    return found


@cache
def list_instance_types() -> tuple[InstanceType, ...]:
    """Returns the instance types of ``instances.json``."""
    return tuple(
        InstanceType(name, accelerator_id, count)
        for cloud in _load_document()["clouds"]
        for accelerator_id, types in cloud["accelerators"].items()
        for name, count in types.items()
    )
