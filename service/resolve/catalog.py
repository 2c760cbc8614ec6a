"""Catalog view that questions are resolved against."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeVar
from weakref import ReferenceType, ref

from service.formats.quantization import read_checkpoint_format
from service.planning.cost.exchange import ExchangeRates
from service.planning.cost.prices import CommitmentTerm
from service.planning.energy.carbon import IntensitySeries
from service.planning.errors import PlanningError
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredAnswer
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.curves import ReferenceCurves
from service.planning.hardware.links import Link
from service.planning.hardware.resolution import DeviceConstants
from service.planning.hardware.storage import WeightFormat
from service.planning.models.profile import ModelProfile, build_profile
from service.planning.notes import AnswerNotes
from service.planning.tariff.charges import Tariff
from service.resolve.names import FoundRow, NamedRows
from service.schemas.architectures import Architecture, to_planning
from service.schemas.base import EstimateSource
from service.schemas.tariffs import parse_terms
from service.schemas.tariffs import to_planning as tariff_to_planning


@dataclass(frozen=True)
class KnownModel:
    """A model. Its profile is computed on first use."""

    architecture: Mapping[str, Any]
    context_tokens: int | None
    source: EstimateSource
    quantization_config: Mapping[str, Any] | None = None
    is_wide: bool = False
    """True if its name states weights of 16 bits."""

    @cached_property
    def profile(self) -> ModelProfile:
        """Parameters, FLOPs and bytes of the architecture."""
        return build_profile(to_planning(Architecture.model_validate(self.architecture)))

    @cached_property
    def stored(self) -> WeightFormat | None:
        """Storage of the published weights; None where they are published in 16 bits or wider."""
        return read_checkpoint_format(
            {"quantization_config": self.quantization_config}, self.profile.block_count
        )

    def store_as(self, quantization_config: Mapping[str, Any] | None) -> "KnownModel":
        """Returns the model with its weights stored otherwise, and the same profile.

        Files of llama.cpp keep the blocks of MXFP4 that are published.
        """
        published = self.quantization_config or {}
        if published.get("quant_method") == "mxfp4" and (quantization_config or {}).get("file_type"):
            quantization_config = {"quant_method": "gguf", "file_type": "mxfp4_moe"}
        stored = replace(self, quantization_config=quantization_config, is_wide=quantization_config is None)
        # A profile takes as long as many answers do.
        vars(stored)["profile"] = self.profile
        return stored


@dataclass(frozen=True, slots=True)
class KnownLinks:
    """Links of a node and between nodes, by their ids."""

    intra_node_link_id: str | None = None
    inter_node_link_id: str | None = None
    network_interfaces_per_device: float = 1.0


@dataclass(frozen=True, slots=True)
class KnownSystem:
    """A system that an accelerator comes in."""

    name: str
    accelerators_per_node: int
    links: KnownLinks


@dataclass(frozen=True, slots=True)
class KnownAccelerator:
    """An accelerator, with its systems, the usual one first. ``links`` are those of the row."""

    accelerator: Accelerator
    source: EstimateSource
    links: KnownLinks = KnownLinks()
    systems: tuple[KnownSystem, ...] = ()
    pcie_generation: int | None = None
    instance_type: str | None = None
    """Name of the first system, if the question calls the accelerator by it."""
    named_count: int = 1
    """Accelerators of the instance or slice that the question calls the accelerator by."""

    @property
    def usual_links(self) -> KnownLinks:
        """Links of the usual system, else of the row."""
        return self.systems[0].links if self.systems else self.links

    def name_system(self, system: KnownSystem) -> "KnownAccelerator":
        """Returns the accelerator as ``system`` has it, which then is the usual one."""
        others = (each for each in self.systems if each.name != system.name)
        return replace(
            self,
            systems=(system, *others),
            instance_type=system.name,
            named_count=system.accelerators_per_node,
        )

    def name_slice(self, chips: int) -> "KnownAccelerator":
        """Returns the accelerator as a slice of its usual system."""
        return replace(self, named_count=chips)


@dataclass(frozen=True, slots=True)
class KnownLink:
    """A link."""

    link: Link
    source: EstimateSource


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownOffer:
    """A dated price. Both prices are effective: under a term, the whole payment divided by its hours."""

    accelerator_id: str
    purchase_option: str
    price_per_device_hour: Decimal
    currency_code: str
    as_of: str
    source: EstimateSource
    provider: str
    price_per_instance_hour: Decimal
    accelerator_count: int = 1
    region: str | None = None
    zone: str | None = None
    instance_type: str | None = None
    term: CommitmentTerm | None = None
    billing_increment_seconds: int | None = None
    minimum_billed_seconds: int | None = None
    includes: frozenset[str] | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    doubt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTokenPrice:
    """A dated list price of tokens, used for comparison."""

    provider: str
    model_name: str
    input_per_million: Decimal
    output_per_million: Decimal
    currency_code: str
    as_of: str
    source: EstimateSource
    cached_input_per_million: Decimal | None = None
    model_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHardwarePrice:
    """A dated price of buying a device within a product of ``accelerator_count``."""

    accelerator_id: str
    accelerator_count: int
    price_per_device: Decimal
    currency_code: str
    as_of: str
    source: EstimateSource
    low: Decimal | None = None
    high: Decimal | None = None
    has_host: bool = False
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class KnownGrid:
    """A grid's carbon intensity and off-site water."""

    carbon_intensity_kg_co2e_per_kwh: float
    accounting: str
    water_liters_per_kwh: float | None
    source: EstimateSource
    emission_rate: str = "average"
    series: IntensitySeries | None = None


@dataclass(frozen=True, slots=True)
class KnownSite:
    """A building."""

    pue: float
    grid_id: str | None
    water_usage_effectiveness_liters_per_kwh: float | None
    source: EstimateSource
    tariff_id: str | None = None
    time_zone: str | None = None


@dataclass(frozen=True)
class KnownTariff:
    """A tariff. Its charges are parsed on first use."""

    name: str
    terms: Mapping[str, Any]
    source: EstimateSource

    @cached_property
    def tariff(self) -> Tariff:
        """The parsed tariff, as a planning value."""
        return tariff_to_planning(parse_terms(self.terms))


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class CatalogView:
    """Every live row that a tenant sees, by id and alias. ``service.evidence`` builds it for one revision."""

    revision: int
    curves: ReferenceCurves
    """Reference set of measured efficiencies, or the constants of ``device``."""
    models: NamedRows[KnownModel]
    accelerators: NamedRows[KnownAccelerator]
    links: NamedRows[KnownLink]
    offers: NamedRows[KnownOffer]
    token_prices: NamedRows[KnownTokenPrice]
    hardware_prices: NamedRows[KnownHardwarePrice]
    grids: NamedRows[KnownGrid]
    sites: NamedRows[KnownSite]
    tariffs: NamedRows[KnownTariff]
    exchange_rates: ExchangeRates
    calibrations: tuple[DeviceCalibration, ...] = ()
    """Measured figures of the tenant's devices, the oldest calibration first."""
    measured_answers: tuple[MeasuredAnswer, ...] = ()
    """Measured end-to-end figures of the tenant, with the questions that they answer."""
    node_ids: frozenset[str] | None = None
    """Ids of the tenant's nodes, including revoked ones. None for a view that was read from files."""
    device: DeviceConstants | None = None
    """Measured constants of a question's device. None for the view of all devices."""
    base: "CatalogView | None" = None
    """The view of all devices, with a cache of its own, if this view is for one device."""
    derived_from: "ReferenceType[CatalogView] | None" = field(default=None, repr=False, compare=False)
    """The view of all devices whose cache holds this one, while it is used."""
    cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Values that estimates derive once from a view, under keys of their own.

    None of them leads back to the view, which would then stay until garbage is collected: every write of a
    tenant leaves one behind.
    """

    @property
    def of_all_devices(self) -> "CatalogView":
        """The view without the measurements of a single device."""
        return (self.derived_from and self.derived_from()) or self.base or self

    @property
    def constants(self) -> DeviceConstants:
        """Constants of the question's devices, with a record of which were measured."""
        found = self.device or DeviceConstants(self.curves)
        return found if found.curves is self.curves else found._replace(curves=self.curves)

    def replace_device(self, device: DeviceConstants) -> "CatalogView":
        """Returns the view of one device, whose measured constants replace those of the reference set."""
        return replace(
            self, curves=device.curves, device=device, base=self.copy_without_cache(), derived_from=ref(self)
        )

    def copy_without_cache(self) -> "CatalogView":
        """Returns this view with an empty cache, for a value that the cache of this one keeps."""
        return replace(self)


_Row = TypeVar("_Row")


def resolve_row(rows: Mapping[str, _Row], name: str, pointer: str, notes: AnswerNotes | None = None) -> _Row:
    """Returns the row called ``name``, and notes how the name was read if that needs saying.

    Raises :class:`PlanningError` if no row or more than one has the name.
    """
    if not isinstance(rows, NamedRows):
        if name not in rows:
            raise PlanningError("UNKNOWN_REFERENCE", pointer, "the catalog has no row with this id or alias")
        return rows[name]
    try:
        found: FoundRow[_Row] = rows.find(name)
    except PlanningError as error:
        raise PlanningError(error.code, pointer, error.detail) from error
    if found.remark and notes is not None:
        notes.warn(found.remark.code, pointer, found.remark.detail)
    return found.row
