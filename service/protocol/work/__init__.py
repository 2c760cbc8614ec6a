"""Kinds of work of benchmarks: parameters within bounds, amounts of work, and what each asks of validation.

A kind is a class in the module of its family, and a member of the union at the end of that module.
"""

from collections.abc import Mapping
from typing import Annotated, Final, get_args

from pydantic import Field

from service.protocol.work.arithmetic import ArithmeticWork
from service.protocol.work.base import Work
from service.protocol.work.device import DeviceWork
from service.protocol.work.links import LinkWork
from service.protocol.work.memory import MemoryWork
from service.protocol.work.products import ProductWork
from service.protocol.work.training import ModelWork

BenchmarkWork = Annotated[
    ArithmeticWork | ProductWork | MemoryWork | LinkWork | DeviceWork | ModelWork,
    Field(discriminator="kind"),
]
WORK_KINDS: Final[Mapping[str, type[Work]]] = {
    get_args(kind.model_fields["kind"].annotation)[0]: kind for kind in get_args(get_args(BenchmarkWork)[0])
}
"""Class of each kind of work by its name."""
