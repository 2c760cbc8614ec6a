"""Options of the workloads of a fleet: windows, pools and configurations on each pool."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from pydantic import MISSING

from service.kit.clock import now
from service.kit.http.cancellation import check_cancelled
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.scheduling.schedule import TaskMode
from service.plans.defaults import drop_default_levels, select_within_levels
from service.plans.fleet_prices import price_outcome, read_candidate
from service.plans.pricing import CandidatePricer, PricedCandidate
from service.plans.runs import RunCache
from service.plans.search import merge_outcomes, search_space, split_search
from service.plans.space import SearchOutcome, SearchPiece, SearchSpace
from service.plans.supplies import build_space
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.schemas.fleet_plans import FleetPlanRequest, FleetWorkload
from service.schemas.plan_answers import PlanConstraint, PruningRule
from service.schemas.plans import OwnedNodes, PlanRequest, PlanSearch, RentedDevices
from service.schemas.site import RunSiteInput
from service.schemas.workloads import HorizonInput, InferenceWorkloadInput, TrainingWorkloadInput

MOST_CANDIDATES = 100_000
"""Most configurations of one question, about twenty seconds on one core."""
LEAST_CANDIDATES = 500
"""Minimum charge for a workload on a pool against the limit: the configurations that its overhead costs."""
ADDED_DOUBLINGS = 4
"""Number of times that a pool is doubled in the search for larger options."""


class FleetPool(NamedTuple):
    """Devices of one owner. ``pointer`` is their place in the question."""

    name: str
    given: OwnedNodes | RentedDevices
    node: int
    pointer: str

    @property
    def capacity(self) -> int:
        """Number of devices in the pool."""
        return self.given.cluster.accelerator_count

    def build_larger(self, times: int) -> "FleetPool":
        """Returns the pool with ``times`` as many devices."""
        cluster = self.given.cluster.model_copy(update={"accelerator_count": self.capacity * times})
        return self._replace(given=self.given.model_copy(update={"cluster": cluster}))


class RunWindow(NamedTuple):
    """Window of a workload, in whole seconds from the start of the fleet."""

    earliest: int
    latest: int

    @property
    def seconds(self) -> int:
        """Length of the window in seconds."""
        return self.latest - self.earliest


class FleetOption(NamedTuple):
    """A configuration on a pool, with its mode in the schedule."""

    mode: TaskMode
    candidate: PricedCandidate
    space: SearchSpace
    runs: RunCache


class FleetOptions(NamedTuple):
    """Configurations of a workload on a pool, and counts of those that are ruled out."""

    options: tuple[FleetOption, ...]
    ruled_out: Mapping[PlanConstraint, int]
    pruned: Mapping[PruningRule, int]
    has_unpriced: bool


def build_pools(question: FleetPlanRequest, catalog: CatalogView) -> tuple[FleetPool, ...]:
    """Returns the pools: owned nodes, then rented devices.

    Raises:
        PlanningError: there are none, two have the same name, or one has a tariff.
    """
    members: list[tuple[str, OwnedNodes | RentedDevices]] = []
    members += ((f"/owned/{place}", each) for place, each in enumerate(question.owned))
    members += ((f"/rented/{place}", each) for place, each in enumerate(question.rented))
    pools = list[FleetPool]()
    for pointer, given in members:
        if given.name in {pool.name for pool in pools}:
            raise PlanningError("NAME_TWICE", f"{pointer}/name", "another pool has this name")
        if isinstance(given, OwnedNodes) and given.site is not MISSING:
            _check_price(given.site, catalog, f"{pointer}/site")
        pools.append(
            FleetPool(given.name, given, _resolve_node_size(given, question, catalog, pointer), pointer)
        )
    if not pools:
        raise PlanningError("NO_SUPPLY", "/owned", "the fleet has no devices: give owned or rented")
    return tuple(pools)


def _check_price(site: RunSiteInput, catalog: CatalogView, pointer: str) -> None:
    known = None if site.site_id is MISSING else catalog.sites.get(site.site_id)
    given = site.electricity
    has_tariff = known is not None and known.tariff_id is not None
    if given is not MISSING:
        is_flat = given.price_per_kwh is not MISSING
        names_one = given.tariff_id is not MISSING or given.tariff is not MISSING
        has_tariff = not is_flat and (has_tariff or names_one)
    if has_tariff:
        detail = "under a tariff the bill of one workload depends on the others: give a price per kWh"
        raise PlanningError("NOT_MODELLED", f"{pointer}/electricity", detail)


def _resolve_node_size(
    given: OwnedNodes | RentedDevices, question: FleetPlanRequest, catalog: CatalogView, pointer: str
) -> int:
    """Returns the number of devices that are allocated together."""
    if question.share_nodes:
        return 1
    try:
        return resolve_cluster(given.cluster, catalog, AnswerNotes()).accelerators_per_node
    except PlanningError as error:
        at = error.pointer.replace("/cluster", f"{pointer}/cluster", 1)
        raise PlanningError(error.code, at, error.detail) from error


def build_windows(question: FleetPlanRequest) -> tuple[RunWindow, ...]:
    """Returns the window of each workload.

    Raises:
        PlanningError: a window ends before it begins, or begins before the fleet does.
    """
    if question.ends_at <= question.starts_at:
        raise PlanningError("WINDOW_EMPTY", "/ends_at", "ends_at must be after starts_at")
    windows = list[RunWindow]()
    for place, workload in enumerate(question.workloads):
        at = f"/workloads/{place}"
        begin = question.starts_at if workload.earliest_start_at is MISSING else workload.earliest_start_at
        end = question.ends_at if workload.finish_by is MISSING else workload.finish_by
        earliest = math.ceil((begin - question.starts_at).total_seconds())
        if earliest < 0:
            raise PlanningError("BEFORE_START", f"{at}/earliest_start_at", "the fleet starts after this time")
        latest = math.floor((end - question.starts_at).total_seconds())
        if latest <= earliest:
            given = [
                name for name in ("finish_by", "earliest_start_at") if getattr(workload, name) is not MISSING
            ]
            pointer = f"{at}/{given[0]}" if given else "/ends_at"
            raise PlanningError("WINDOW_EMPTY", pointer, "the window must last at least a second")
        windows.append(RunWindow(earliest, latest))
    return tuple(windows)


def to_moment(question: FleetPlanRequest, seconds: int) -> datetime:
    """Returns a time of the schedule."""
    return question.starts_at + timedelta(seconds=seconds)


class _CountedSearch(NamedTuple):
    """A search whose configurations are counted, of a workload on a pool. ``key`` identifies it."""

    key: str
    place: int
    pool: FleetPool
    space: SearchSpace
    pieces: tuple[SearchPiece, ...]


class TooManyError(PlanningError):
    """The fleet has more configurations than the limit."""


class FleetRequestReader:
    """Question of a fleet by workload and pool, with a limit on configurations."""

    def __init__(
        self, question: FleetPlanRequest, catalog: CatalogView, pools: tuple[FleetPool, ...]
    ) -> None:
        self.question, self.catalog, self.pools = question, catalog, pools
        self.windows = build_windows(question)
        self.left = MOST_CANDIDATES
        self._searches: dict[str, _CountedSearch] = {}
        self._outcomes: dict[str, Sequence[SearchOutcome]] = {}
        self._known: dict[str, FleetOptions] = {}

    def list_allowed_pools(self, place: int) -> list[int]:
        """Returns the numbers of the pools that a workload may run on."""
        workload = self.question.workloads[place]
        if workload.pools is MISSING:
            return list(range(len(self.pools)))
        names = {pool.name: number for number, pool in enumerate(self.pools)}
        for number, name in enumerate(workload.pools):
            if name not in names:
                at = f"/workloads/{place}/pools/{number}"
                raise PlanningError("UNKNOWN_REFERENCE", at, "no owned or rented devices have this name")
        return sorted({names[name] for name in workload.pools})

    def count_configurations(self, place: int, pool: int) -> None:
        """Counts the configurations of a workload on a pool. Equal workloads count once.

        Raises:
            PlanningError: the limit is exceeded, or the workload has no sound answer.
        """
        self._prepare_search(place, self.pools[pool], self._list_counts(place, pool))

    def count_all_configurations(self) -> None:
        """Counts the configurations of every workload, so that too large a question is never searched.

        Raises:
            PlanningError: the limit is exceeded, or a workload has no sound answer.
        """
        for place in range(len(self.question.workloads)):
            for pool in self.list_allowed_pools(place):
                self.count_configurations(place, pool)

    def list_pieces(self) -> tuple[SearchPiece, ...]:
        """Returns the pieces of the searches that are counted, in order."""
        return tuple(
            SearchPiece(
                piece.candidates,
                {"workload": search.place, "pool": self.pools.index(search.pool), "part": dict(piece.part)},
            )
            for search in self._searches.values()
            for piece in search.pieces
        )

    def search_piece(self, piece: SearchPiece) -> SearchOutcome:
        """Returns the outcome of a piece with its prices. Only the search that it belongs to is prepared."""
        place, pool, part = (piece.part[name] for name in ("workload", "pool", "part"))
        devices = self.pools[pool]
        prepared = self._prepare_search(place, devices, self._list_counts(place, pool))
        if prepared is None:
            raise ValueError("a piece belongs to a search")
        with self._relocate_errors(place, devices):
            found = search_space(prepared.space, SearchPiece(piece.candidates, part))
            return price_outcome(prepared.space, found)

    def take_outcomes(self, outcomes: Iterable[SearchOutcome]) -> None:
        """Takes the outcomes of all pieces, in their order, so that they are not searched again."""
        left = iter(outcomes)
        for search in self._searches.values():
            self._outcomes[search.key] = tuple(islice(left, len(search.pieces)))

    def list_options(self, place: int, pool: int) -> FleetOptions:
        """Returns the configurations of a workload on a pool."""
        return self._list_options(place, self.pools[pool], self._list_counts(place, pool), pool)

    def list_larger_options(self, place: int, pool: int) -> FleetOptions:
        """Returns configurations on more devices than a pool has: named counts, or doublings.

        Raises:
            TooManyError: the limit is exceeded.
        """
        capacity, named = self.pools[pool].capacity, self.question.workloads[place].accelerator_counts
        counts: list[int] | None = [capacity * 2**doubling for doubling in range(1, ADDED_DOUBLINGS + 1)]
        larger = self.pools[pool].build_larger(2**ADDED_DOUBLINGS)
        if named is not MISSING:
            counts = [count for count in named if capacity < count <= larger.capacity]
        elif isinstance(self.question.workloads[place].workload, InferenceWorkloadInput):
            counts = None
        return self._list_options(place, larger, counts, pool)

    def _list_counts(self, place: int, pool: int) -> list[int] | None:
        named = self.question.workloads[place].accelerator_counts
        return None if named is MISSING else [each for each in named if each <= self.pools[pool].capacity]

    def _list_options(
        self, place: int, devices: FleetPool, counts: list[int] | None, pool: int
    ) -> FleetOptions:
        prepared = self._prepare_search(place, devices, counts)
        if prepared is None:
            return FleetOptions((), {PlanConstraint.DEVICES: 1}, {}, has_unpriced=False)
        if prepared.key not in self._known:
            with self._relocate_errors(place, devices):
                self._known[prepared.key] = self._search_options(prepared, place, pool)
        return self._known[prepared.key]

    def _prepare_search(
        self, place: int, devices: FleetPool, counts: list[int] | None
    ) -> _CountedSearch | None:
        """Returns the search of a workload on devices, or None if all its named counts are too large."""
        if counts == []:
            return None
        with self._relocate_errors(place, devices):
            asked = self._build_question(place, devices, counts)
            key = asked.model_dump_json()
            if key not in self._searches:
                self._check_room(place)
                space = build_space(asked, self.catalog)
                found = _CountedSearch(key, place, devices, space, split_search(space))
                self._spend_candidates(place, sum(piece.candidates for piece in found.pieces))
                self._searches[key] = found
        return self._searches[key]

    @contextmanager
    def _relocate_errors(self, place: int, devices: FleetPool) -> Iterator[None]:
        """Moves the pointer of a plan's error to its place in the question of the fleet."""
        try:
            yield
        except TooManyError:
            raise
        except PlanningError as error:
            at = map_pointer(error.pointer, place, devices)
            raise PlanningError(error.code, at, error.detail) from error

    def _search_options(self, prepared: _CountedSearch, place: int, pool: int) -> FleetOptions:
        space, runs = prepared.space, RunCache()
        outcomes = self._outcomes.get(prepared.key)
        if outcomes is None:
            outcomes = [search_space(space, piece) for piece in prepared.pieces]
        whole = merge_outcomes(outcomes, space.question.search.depth)
        outcome = select_within_levels(whole)
        if whole.kept and not outcome.kept:
            space, outcome = drop_default_levels(space), whole
        pricer = CandidatePricer(space, runs)
        candidates = list[PricedCandidate]()
        for kept in outcome.kept:
            check_cancelled()  # pricing takes as long as the search
            candidates.append(read_candidate(pricer, kept))
        found = [one for one in candidates if one.seconds is not None and self._is_priced(one)]
        modes = (self._build_mode(one, space, place, pool) for one in found)
        options = tuple(FleetOption(mode, one, space, runs) for mode, one in zip(modes, found, strict=True))
        has_unpriced = len(found) < len(candidates)
        return FleetOptions(options, outcome.ruled_out, outcome.pruned, has_unpriced)

    def _is_priced(self, candidate: PricedCandidate) -> bool:
        """Returns true if the cost is known or not needed by goal and budget."""
        needs_cost = self.question.goal == "cheapest" or self.question.budget is not MISSING
        return candidate.cost is not None or not needs_cost

    def _build_question(self, place: int, devices: FleetPool, counts: list[int] | None) -> PlanRequest:
        given = self.question.workloads[place]
        owned, rented = [], []
        if isinstance(devices.given, OwnedNodes):
            owned.append(devices.given)
        else:
            rented.append(devices.given)
        return PlanRequest(
            model=given.model,
            workload=self._build_workload(place, given),
            goal="cheapest",
            search=PlanSearch(
                accelerator_counts=MISSING if counts is None else counts,
                training=given.training,
                serving=given.serving,
                offers=False,
                depth=1,
            ),
            owned=owned,
            rented=rented,
            currency_code=get_currency(self.question),
        )

    def _build_workload(
        self, place: int, given: FleetWorkload
    ) -> TrainingWorkloadInput | InferenceWorkloadInput:
        workload = given.workload
        if not isinstance(workload, InferenceWorkloadInput):
            return workload
        if workload.horizon is not MISSING:
            detail = "a service of a fleet runs from earliest_start_at to finish_by: leave the horizon out"
            raise PlanningError("NOT_APPLICABLE", "/workload/horizon", detail)
        if given.accelerator_counts is not MISSING:
            detail = "a service takes the fewest devices that keep its levels: leave accelerator_counts out"
            raise PlanningError("NOT_APPLICABLE", "/search/accelerator_counts", detail)
        horizon = HorizonInput(duration_seconds=float(self.windows[place].seconds))
        return workload.model_copy(update={"horizon": horizon})

    def _build_mode(self, candidate: PricedCandidate, space: SearchSpace, place: int, pool: int) -> TaskMode:
        count = space.get_cluster(candidate.kept).accelerator_count
        if candidate.seconds is None:
            raise ValueError("a candidate of a fleet needs a duration")
        is_service = isinstance(self.question.workloads[place].workload, InferenceWorkloadInput)
        seconds = self.windows[place].seconds if is_service else max(1, math.ceil(candidate.seconds))
        # An unknown cost only breaks ties between schedules that are otherwise equal.
        cost = Decimal(0) if candidate.cost is None else candidate.cost
        return TaskMode(pool, count_taken_devices(count, self.pools[pool]), seconds, cost)

    def _check_room(self, place: int) -> None:
        """Refuses a search that exceeds the limit however small it is, before it is prepared."""
        if self.left < LEAST_CANDIDATES:
            raise _build_refusal(place)

    def _spend_candidates(self, place: int, candidates: int) -> None:
        self.left -= max(candidates, LEAST_CANDIDATES)
        if self.left < 0:
            raise _build_refusal(place)


def _build_refusal(place: int) -> TooManyError:
    detail = f"the fleet has more than {MOST_CANDIDATES} configurations: vary less, or name pools"
    return TooManyError("SEARCH_TOO_LARGE", f"/workloads/{place}", detail)


def count_taken_devices(count: int, pool: FleetPool) -> int:
    """Returns the devices that ``count`` devices block: those of whole nodes.

    The last node may be partial.
    """
    whole = math.ceil(count / pool.node) * pool.node
    return min(whole, max(pool.capacity, count))


def get_currency(question: FleetPlanRequest) -> str:
    """Returns the currency of all costs."""
    if question.currency_code is not MISSING:
        return question.currency_code
    return "USD" if question.budget is MISSING else question.budget.currency_code


def resolve_budget(question: FleetPlanRequest, catalog: CatalogView) -> Decimal | None:
    """Returns the budget in the currency of the costs, or None."""
    if question.budget is MISSING:
        return None
    given, code = question.budget, get_currency(question)
    if given.currency_code == code:
        return Decimal(given.amount)
    rates, on = catalog.exchange_rates, now().date()
    found = rates.convert(Decimal(given.amount), given.currency_code, code, on)
    if found is None:
        detail = "no exchange rate to the currency of the costs is known"
        raise PlanningError("CURRENCY_MISMATCH", "/budget/currency_code", detail)
    return found.amount


_OF_WORKLOAD = ("/model", "/workload")


def map_pointer(pointer: str, place: int, pool: FleetPool) -> str:
    """Returns the pointer in the fleet's question for a pointer in a plan's question."""
    if pointer.startswith(_OF_WORKLOAD):
        return f"/workloads/{place}{pointer}"
    if pointer.startswith("/search/"):
        return f"/workloads/{place}{pointer.removeprefix('/search')}"
    for member in ("/owned/0", "/rented/0"):
        if pointer.startswith(member):
            return pool.pointer + pointer.removeprefix(member)
    return f"/workloads/{place}"
