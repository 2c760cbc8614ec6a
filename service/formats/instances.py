"""Instance types of clouds and the accelerators that they come with."""

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class InstanceType(NamedTuple):
    """An instance type. A count below 1 is a share of one accelerator."""

    name: str
    accelerator_id: str
    accelerator_count: float


@cache
def list_instance_types() -> tuple[InstanceType, ...]:
    """Returns the instance types of ``instances.json``."""
    clouds = json.loads((files(__package__) / "instances.json").read_bytes())["clouds"]
    return tuple(
        InstanceType(name, accelerator_id, count)
        for cloud in clouds
        for accelerator_id, types in cloud["accelerators"].items()
        for name, count in types.items()
    )
