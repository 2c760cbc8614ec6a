"""The catalog of a tenant with what its devices were measured to reach in place of reference constants."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from service.planning.cost.exchange import ExchangeRates
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredAnswer
from service.planning.hardware.curves import ReferenceCurves
from service.planning.hardware.resolution import Resolved
from service.resolve.catalog import (
    Catalog,
    KnownAccelerator,
    KnownGrid,
    KnownLink,
    KnownModel,
    KnownOffer,
    KnownSite,
    KnownTariff,
    KnownTokenPrice,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedCatalog:
    """A catalog as one device of a question sees it: all but the curves are those of ``base``."""

    base: Catalog
    resolved: Resolved
    revision: int
    curves: ReferenceCurves
    models: Mapping[str, KnownModel]
    accelerators: Mapping[str, KnownAccelerator]
    links: Mapping[str, KnownLink]
    offers: Mapping[str, KnownOffer]
    token_prices: Mapping[str, KnownTokenPrice]
    grids: Mapping[str, KnownGrid]
    sites: Mapping[str, KnownSite]
    tariffs: Mapping[str, KnownTariff]
    exchange_rates: ExchangeRates
    calibrations: tuple[DeviceCalibration, ...]
    measured_answers: tuple[MeasuredAnswer, ...]
    node_ids: frozenset[str] | None
    worked_out: dict[str, Any]


_OWN: Final = frozenset({"base", "resolved", "curves"})


def calibrated_view(base: Catalog, resolved: Resolved) -> CalibratedCatalog:
    """``base`` with the curves of a device."""
    same = {name: getattr(base, name) for name in CalibratedCatalog.__dataclass_fields__ if name not in _OWN}
    return CalibratedCatalog(base=base, resolved=resolved, curves=resolved.curves, **same)


def base_of(catalog: Catalog) -> Catalog:
    """The tenant's catalog behind the view of a device."""
    return catalog.base if isinstance(catalog, CalibratedCatalog) else catalog


def resolved_of(catalog: Catalog) -> Resolved:
    """What was measured of the device that a catalog is seen by; nothing where it is seen by none."""
    return catalog.resolved if isinstance(catalog, CalibratedCatalog) else Resolved(catalog.curves)
