"""The catalog of a tenant with what its devices were measured to reach in place of reference constants."""

from dataclasses import dataclass, fields
from typing import Any

from service.planning.hardware.resolution import Resolved
from service.resolve.catalog import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedCatalog(Catalog):
    """A catalog as one device of a question sees it: all but the curves are those of ``base``."""

    base: Catalog
    resolved: Resolved
    worked_out: dict[str, Any]


def calibrated_view(base: Catalog, resolved: Resolved) -> CalibratedCatalog:
    """``base`` with the curves of a device."""
    same = {each.name: getattr(base, each.name) for each in fields(Catalog) if each.name != "curves"}
    return CalibratedCatalog(base=base, resolved=resolved, curves=resolved.curves, **same)


def base_of(catalog: Catalog) -> Catalog:
    """The tenant's catalog behind the view of a device."""
    return catalog.base if isinstance(catalog, CalibratedCatalog) else catalog


def resolved_of(catalog: Catalog) -> Resolved:
    """What was measured of the device that a catalog is seen by; nothing where it is seen by none."""
    return catalog.resolved if isinstance(catalog, CalibratedCatalog) else Resolved(catalog.curves)
