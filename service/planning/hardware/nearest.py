"""Which measured sets say something of a question's device, and the constants of the nearest that do.

The nearest level that has a constant gives it: the node that the question names; nodes of the same
accelerator under the same power limit and driver; of the same accelerator; of the same generation. Each
constant finds its own level. At a level the middle of the nodes counts (the median, as one bad node must not
move it) and their range is the interval.
"""

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Final, NamedTuple

from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure, Scope
from service.planning.hardware.calibration.shares import Share
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.links import LinkKind
from service.planning.quantity import Basis

ACCELERATOR_KIND: Final = "cuda"
"""The kind of set that holds for accelerators of the catalog; a processor's holds for none of them."""

_SAME_POWER: Final = 0.01
"""Relative difference of power limits up to which they count as one."""


class Asked(NamedTuple):
    """The device of a question.

    ``specified`` says that the question gives its figures instead of a row of the catalog: what it is, only
    the node or the set that is named beside it can tell. ``links`` are rates in bytes per second.
    """

    accelerator: Accelerator
    specified: bool = False
    node_id: str | None = None
    driver_major: int | None = None
    calibration_id: str | None = None
    links: tuple[tuple[LinkKind, float], ...] = ()


class Held(NamedTuple):
    """A constant that measurements give: its evidence, and the sets that it was read from."""

    share: Share
    basis: Basis
    ids: tuple[str, ...]


class Level(NamedTuple):
    """The sets of one distance or nearer, and the evidence that they are."""

    basis: Basis
    sets: tuple[DeviceCalibration, ...]


def applies(scope: Scope, asked: Asked) -> Basis | None:
    """How near what was measured is to the device that is asked for; None where it says nothing of it."""
    accelerator, of_node = asked.accelerator, scope.node_id is not None and scope.node_id == asked.node_id
    named = of_node or (asked.calibration_id is not None and scope.node_id is not None)
    if asked.specified and named:
        return Basis.CALIBRATED_NODE
    if scope.kind != ACCELERATOR_KIND:
        return None
    same = not asked.specified and scope.accelerator_id == accelerator.id
    if named and (same or (scope.accelerator_id is None and not asked.specified)):
        return Basis.CALIBRATED_NODE
    if same:
        return Basis.CALIBRATED_SKU
    if accelerator.generation and scope.generation == accelerator.generation:
        return Basis.CALIBRATED_GENERATION
    return None


def levels(sets: Iterable[DeviceCalibration], asked: Asked) -> list[Level]:
    """Sets by how near they are, the nearest first; a level holds those of the nearer ones too."""
    near = [(basis, each) for each in sets if (basis := applies(each.scope, asked)) is not None]
    node = [each for basis, each in near if basis is Basis.CALIBRATED_NODE]
    sku = [each for basis, each in near if basis in (Basis.CALIBRATED_NODE, Basis.CALIBRATED_SKU)]
    alike = [each for each in sku if _alike(each.scope, asked)]
    found = (
        Level(Basis.CALIBRATED_NODE, tuple(node)),
        Level(Basis.CALIBRATED_SKU, tuple(alike)),
        Level(Basis.CALIBRATED_SKU, tuple(sku)),
        Level(Basis.CALIBRATED_GENERATION, tuple(each for _, each in near)),
    )
    return [level for level in found if level.sets]


def _alike(scope: Scope, asked: Asked) -> bool:
    """Whether power limit and, where it is asked for, driver are the same; what is unknown is not."""
    limit, measured = asked.accelerator.power_limit_watts, scope.power_limit_watts
    if limit is not None and (measured is None or abs(measured / limit - 1.0) > _SAME_POWER):
        return False
    return asked.driver_major is None or scope.driver_major == asked.driver_major


class Search:
    """Looks constants up in the levels, and remembers what it found."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self._levels = levels
        self.held: dict[str, Held] = {}
        self.above_limit: list[str] = []

    def seconds(
        self, name: str, figure_of: Callable[[DeviceCalibration], MeasuredFigure | None]
    ) -> Share | None:
        """A constant that is no share of a limit, as it was measured."""
        return self._find(name, figure_of, lambda _figure, _basis: 1.0)

    def share(
        self,
        name: str,
        figure_of: Callable[[DeviceCalibration], MeasuredFigure | None],
        own_limit: float | None,
    ) -> Share | None:
        """A rate as a share of its limit: of the asked device where it was measured on such."""

        def limit(figure: MeasuredFigure, basis: Basis) -> float | None:
            is_own = basis is not Basis.CALIBRATED_GENERATION
            return own_limit if is_own and own_limit else figure.limit

        found = self._find(name, figure_of, limit)
        if found is None or found.high <= 1.0:
            return found
        # The data sheet bounds what a device does: where it is passed, the sheet is of another device.
        if found.value > 1.0:
            self.above_limit.append(name)
        within = found._replace(
            low=min(1.0, found.low), value=min(1.0, found.value), high=min(1.0, found.high)
        )
        self.held[name] = self.held[name]._replace(share=within)
        return within

    def _find(
        self,
        name: str,
        figure_of: Callable[[DeviceCalibration], MeasuredFigure | None],
        limit_of: Callable[[MeasuredFigure, Basis], float | None],
    ) -> Share | None:
        for basis, sets in self._levels:
            # The newest set of a node that has the figure stands for the node.
            nodes: dict[str, tuple[str, Share]] = {}
            for each in sets:
                figure = figure_of(each)
                limit = None if figure is None else limit_of(figure, basis)
                if figure is not None and limit:
                    ends = (figure.low / limit, figure.value / limit, figure.high / limit)
                    nodes[each.scope.node_id or each.id] = each.id, Share(*ends, figure.runs, figure.source)
            if nodes:
                ids, shares = zip(*nodes.values(), strict=True)
                self.held[name] = Held(_pooled(shares), basis, tuple(ids))
                return self.held[name].share
        return None


def _pooled(shares: Sequence[Share]) -> Share:
    """The middle of several nodes and their whole range."""
    if len(shares) == 1:
        return shares[0]
    return Share(
        min(share.low for share in shares),
        median(share.value for share in shares),
        max(share.high for share in shares),
        sum(share.runs for share in shares),
        f"median of {len(shares)} nodes; {shares[-1].source}",
    )
