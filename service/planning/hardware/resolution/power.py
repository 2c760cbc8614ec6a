"""Draw of a measured device."""

from dataclasses import replace
from typing import Final

from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure
from service.planning.hardware.calibration.power import DRAW, PowerCalibration, PowerQuantity
from service.planning.hardware.nearest import ConstantSearch, RequestedDevice, resolve_basis
from service.planning.quantity import EvidenceBasis

_OF_THE_LIMIT: Final = frozenset(
    {
        PowerQuantity.IDLE_SHARE,
        PowerQuantity.ACTIVE_SHARE,
        PowerQuantity.UNPACKING_SHARE,
        PowerQuantity.MATRIX_SHARE,
        PowerQuantity.COMMUNICATION_SHARE,
    }
)


def resolve_power(
    known: PowerCalibration, search: ConstantSearch, asked: RequestedDevice
) -> PowerCalibration:
    """Returns the draw of the generation with the shares and watts that were measured."""
    generation, constants, bases = asked.accelerator.generation, dict(known.constants), {}
    for quantity in PowerQuantity:
        name = f"power.{quantity}"

        def find_figure(each: DeviceCalibration, quantity: PowerQuantity = quantity) -> MeasuredFigure | None:
            # A generation is sold with several memories: what an H200 draws made estimates of an H100 worse.
            is_own = resolve_basis(each.scope, asked) is not EvidenceBasis.CALIBRATED_GENERATION
            return each.power.get(quantity) if is_own else None

        if quantity in _OF_THE_LIMIT:
            # A share of the limit that it was measured under: a node may be capped below its data sheet.
            found = search.find_share(name, find_figure, None)
        else:
            found = search.find_seconds(name, find_figure)
        if found is not None:
            constants[quantity, generation], bases[quantity] = found, search.held[name].basis
    if not bases:
        return known
    measured = known.measured | {generation} if bases.keys() >= DRAW else known.measured
    return replace(known, constants=constants, measured=measured, bases=bases, _known={})
