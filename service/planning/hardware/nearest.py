"""Search for the measured sets nearest to a question's device, and for their constants.

The nearest level that has a constant gives it: the node that the question names; nodes of the same
accelerator under the same power limit and driver; of the same accelerator; of the same generation. Each
constant finds its own level. At a level the value is the median of the nodes, which one bad node does not
shift, and their range is the interval.
"""

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Final, NamedTuple

from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure, MeasuredScope
from service.planning.hardware.calibration.shares import AchievedShare
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.links import LinkKind
from service.planning.quantity import EvidenceBasis

ACCELERATOR_KIND: Final = "cuda"
"""Kind of set that applies to accelerators of the catalog; sets of a processor apply to none of them."""
PROCESSOR_GENERATION: Final = "cpu"
"""Generation of a measured processor, by which it has its own tiles, without the waves of a GPU."""

_SAME_POWER: Final = 0.01
"""Relative difference of power limits up to which they count as equal."""


class RequestedDevice(NamedTuple):
    """Device of a question.

    ``specified`` is true if the question gives its figures instead of a row of the catalog; only a named node
    or set then identifies the device. ``links`` are rates in bytes per second.
    """

    accelerator: Accelerator
    specified: bool = False
    node_id: str | None = None
    driver_major: int | None = None
    calibration_id: str | None = None
    links: tuple[tuple[LinkKind, float], ...] = ()


class MeasuredConstant(NamedTuple):
    """A measured constant: its evidence, and the sets that it was read from."""

    share: AchievedShare
    basis: EvidenceBasis
    ids: tuple[str, ...]


class DistanceLevel(NamedTuple):
    """Sets at one distance or nearer, and their level of evidence."""

    basis: EvidenceBasis
    sets: tuple[DeviceCalibration, ...]


def resolve_basis(scope: MeasuredScope, asked: RequestedDevice) -> EvidenceBasis | None:
    """Returns the level of evidence of a measured device for the requested one.

    None where it does not apply.
    """
    accelerator, of_node = asked.accelerator, scope.node_id is not None and scope.node_id == asked.node_id
    named = of_node or (asked.calibration_id is not None and scope.node_id is not None)
    if asked.specified and named:
        return EvidenceBasis.CALIBRATED_NODE
    if scope.kind != ACCELERATOR_KIND:
        return None
    same = not asked.specified and scope.accelerator_id == accelerator.id
    if named and (same or (scope.accelerator_id is None and not asked.specified)):
        return EvidenceBasis.CALIBRATED_NODE
    if same:
        return EvidenceBasis.CALIBRATED_SKU
    if accelerator.generation and scope.generation == accelerator.generation:
        return EvidenceBasis.CALIBRATED_GENERATION
    return None


def build_levels(sets: Iterable[DeviceCalibration], asked: RequestedDevice) -> list[DistanceLevel]:
    """Returns the levels of the sets, the nearest first; a level includes the sets of the nearer ones."""
    near = [(basis, each) for each in sets if (basis := resolve_basis(each.scope, asked)) is not None]
    node = [each for basis, each in near if basis is EvidenceBasis.CALIBRATED_NODE]
    sku = [
        each for basis, each in near if basis in (EvidenceBasis.CALIBRATED_NODE, EvidenceBasis.CALIBRATED_SKU)
    ]
    alike = [each for each in sku if _is_alike(each.scope, asked)]
    found = (
        DistanceLevel(EvidenceBasis.CALIBRATED_NODE, tuple(node)),
        DistanceLevel(EvidenceBasis.CALIBRATED_SKU, tuple(alike)),
        DistanceLevel(EvidenceBasis.CALIBRATED_SKU, tuple(sku)),
        DistanceLevel(EvidenceBasis.CALIBRATED_GENERATION, tuple(each for _, each in near)),
    )
    return [level for level in found if level.sets]


def _is_alike(scope: MeasuredScope, asked: RequestedDevice) -> bool:
    """Returns true if the power limit and, where requested, the driver are equal; unknown ones are not."""
    limit, measured = asked.accelerator.power_limit_watts, scope.power_limit_watts
    if limit is not None and (measured is None or abs(measured / limit - 1.0) > _SAME_POWER):
        return False
    return asked.driver_major is None or scope.driver_major == asked.driver_major


class ConstantSearch:
    """Search for constants in the levels; stores the constants that it found."""

    def __init__(self, levels: Sequence[DistanceLevel]) -> None:
        self._levels = levels
        self.held: dict[str, MeasuredConstant] = {}
        self.above_limit: list[str] = []

    def find_seconds(
        self, name: str, figure_of: Callable[[DeviceCalibration], MeasuredFigure | None]
    ) -> AchievedShare | None:
        """Returns a constant that is no share of a limit, as it was measured."""
        return self._find_figure(name, figure_of, lambda _figure, _basis: 1.0)

    def find_share(
        self,
        name: str,
        figure_of: Callable[[DeviceCalibration], MeasuredFigure | None],
        own_limit: float | None,
    ) -> AchievedShare | None:
        """Returns a rate as a share of its limit: of the requested device's if one like it was measured."""

        def select_limit(figure: MeasuredFigure, basis: EvidenceBasis) -> float | None:
            is_own = basis is not EvidenceBasis.CALIBRATED_GENERATION
            return own_limit if is_own and own_limit else figure.limit

        found = self._find_figure(name, figure_of, select_limit)
        if found is None or found.high <= 1.0:
            return found
        # The data sheet bounds a device: where a figure exceeds it, the sheet is of another device.
        if found.value > 1.0:
            self.above_limit.append(name)
        within = found._replace(
            low=min(1.0, found.low), value=min(1.0, found.value), high=min(1.0, found.high)
        )
        self.held[name] = self.held[name]._replace(share=within)
        return within

    def _find_figure(
        self,
        name: str,
        figure_of: Callable[[DeviceCalibration], MeasuredFigure | None],
        limit_of: Callable[[MeasuredFigure, EvidenceBasis], float | None],
    ) -> AchievedShare | None:
        for basis, sets in self._levels:
            # The newest set of a node that has the figure represents the node.
            nodes: dict[str, tuple[str, AchievedShare]] = {}
            for each in sets:
                figure = figure_of(each)
                limit = None if figure is None else limit_of(figure, basis)
                if figure is not None and limit:
                    ends = (figure.low / limit, figure.value / limit, figure.high / limit)
                    nodes[each.scope.node_id or each.id] = (
                        each.id,
                        AchievedShare(*ends, figure.runs, figure.source),
                    )
            if nodes:
                ids, shares = zip(*nodes.values(), strict=True)
                self.held[name] = MeasuredConstant(_pool_shares(shares), basis, tuple(ids))
                return self.held[name].share
        return None


def _pool_shares(shares: Sequence[AchievedShare]) -> AchievedShare:
    """Returns the median of several nodes and their whole range."""
    if len(shares) == 1:
        return shares[0]
    return AchievedShare(
        min(share.low for share in shares),
        median(share.value for share in shares),
        max(share.high for share in shares),
        sum(share.runs for share in shares),
        f"median of {len(shares)} nodes; {shares[-1].source}",
    )
