"""Allocation of a bill: the cost of a workload at a meter that others use too.

Incremental (marginal) allocation: bill(baseline + workload) - bill(baseline), line by line, both over the
same billing periods. Costs that the baseline has anyway, fixed charges first, are in both and cancel. A
billing period after the workload has a difference only where the tariff looks back on a peak (ratchet, annual
demand): its lines are consequences of the run.

Standalone: the bill of the workload alone at a separate meter, with every billing period that it touches in
full.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from service.planning.tariff.bill import (
    BillFinding,
    BillingPeriod,
    BillLine,
    LoadBill,
    MeteredLoad,
    PeriodBill,
)
from service.planning.tariff.billing import compute_bill
from service.planning.tariff.effort import (
    MOST_STEPS,
    BillingEffort,
    build_extent,
    check_size,
    estimate_bill_effort,
    estimate_size,
)
from service.planning.tariff.loads import add_loads
from service.planning.tariff.metering_point import (
    MeteringPoint,
    build_metered_load,
    build_peak_history,
    list_load_periods,
    list_tied_periods,
)
from service.planning.tariff.reach import TariffReach, compute_reach, list_reached_periods

_NOISE = 1e-9
"""Difference of two sums below which it counts as rounding."""
LineKey = tuple[str, str, str | None, int | None, int]
"""Charge, kind, price period, tier, and number among lines that agree in these."""


class PeriodShare(NamedTuple):
    """A workload's share of one billing period."""

    period: BillingPeriod
    lines: tuple[BillLine, ...]
    energy_kwh: float
    peak_kw: float
    """Highest demand of the meter, the baseline included."""
    after_run: bool
    """True if the workload does not touch the period."""

    @property
    def total(self) -> Decimal:
        """Sum of the lines, not rounded."""
        return sum((line.amount for line in self.lines), Decimal(0))


class BillAllocation(NamedTuple):
    """Bill of a workload, in the currency of its tariff; periods after it without a line are left out."""

    currency_code: str
    periods: tuple[PeriodShare, ...]
    findings: tuple[BillFinding, ...] = ()

    @property
    def total(self) -> Decimal:
        """Sum of the lines, not rounded."""
        return sum((share.total for share in self.periods), Decimal(0))


class AllocatedVersions(NamedTuple):
    """Bills of several versions of a workload."""

    allocations: tuple[BillAllocation, ...]
    unknown: tuple[BillingPeriod, ...] = ()
    """Billing periods that the tariff ties to those of the run and that the baseline does not cover."""


def allocate_bill(point: MeteringPoint, workloads: Sequence[MeteredLoad]) -> AllocatedVersions:
    """Computes the bill of each version of a workload.

    Its addition to the baseline, or all of it without one. The baseline is billed once. Refuses a baseline
    that does not cover the billing periods of the run, a run that the given billing periods do not cover, and
    all that :func:`compute_bill` refuses.
    """
    estimate_allocation_effort(point, workloads).check(MOST_STEPS, "")
    runs = [list_load_periods(point, load) for load in workloads]
    if point.baseline is None:
        bills = (_allocate_alone(point, load, run) for load, run in zip(workloads, runs, strict=True))
        return AllocatedVersions(tuple(bills))
    longest = max(runs, key=lambda run: run[-1].end)
    periods, unknown = list_tied_periods(point, longest)
    baseline, history = build_metered_load(point, periods), build_peak_history(point, periods)
    without = compute_bill(point.tariff, baseline, periods=periods, history=history)
    allocations = [
        compute_difference(
            compute_bill(point.tariff, add_loads(baseline, load), periods=periods, history=history),
            without,
            run,
        )
        for load, run in zip(workloads, runs, strict=True)
    ]
    return AllocatedVersions(tuple(allocations), unknown)


def _allocate_alone(point: MeteringPoint, load: MeteredLoad, run: Sequence[BillingPeriod]) -> BillAllocation:
    periods = (
        list_reached_periods(run, TariffReach(whole_year=True))
        if compute_reach(point.tariff).whole_year
        else run
    )
    whole = add_loads(build_metered_load(point, periods), load)
    return build_allocation(compute_bill(point.tariff, whole, periods=run, history=point.history))


def estimate_allocation_effort(point: MeteringPoint, workloads: Sequence[MeteredLoad]) -> BillingEffort:
    """Estimates the effort of :func:`allocate_bill`.

    A bill of each version, and of the baseline if there is one.
    """
    runs = [list_load_periods(point, load) for load in workloads]
    if point.baseline is None:
        whole = compute_reach(point.tariff).whole_year
        spans = [list_reached_periods(run, TariffReach(whole_year=True)) if whole else run for run in runs]
    else:
        periods, _ = list_tied_periods(point, max(runs, key=lambda run: run[-1].end))
        spans = [periods] * (len(workloads) + 1)
    found = BillingEffort()
    for span in spans:
        extent = build_extent(span, point.interval_minutes)
        check_size(estimate_size(point.tariff, extent), len(spans))
        found = found.add(estimate_bill_effort(point.tariff, extent))
    return found


def compute_difference(whole: LoadBill, baseline: LoadBill, run: Iterable[BillingPeriod]) -> BillAllocation:
    """Returns the difference of ``whole`` and ``baseline`` by line, over the same billing periods.

    Their sum is the difference of the two bills. A line that both have has the quantity and amount less those
    of the baseline; where its price differs too, the price is that of the difference. A line that only the
    baseline has is subtracted: its quantity and amount are below 0.
    """
    touched = set(run)
    shares = []
    for one, other in zip(whole.periods, baseline.periods, strict=True):
        lines = tuple(_list_differing_lines(one, other))
        is_after = one.period not in touched
        if lines or not is_after:
            energy = one.energy_kwh - other.energy_kwh
            shares.append(PeriodShare(one.period, lines, energy, one.peak_kw, is_after))
    return BillAllocation(whole.currency_code, tuple(shares), whole.findings)


def _index_lines(bill: PeriodBill) -> Mapping[LineKey, BillLine]:
    seen: Counter[tuple[str, str, str | None, int | None]] = Counter()
    keyed = {}
    for line in bill.lines:
        key = (line.charge, line.kind, line.period, line.tier)
        keyed[(*key, seen[key])] = line
        seen[key] += 1
    return keyed


def _list_differing_lines(whole: PeriodBill, baseline: PeriodBill) -> Iterator[BillLine]:
    ours, theirs = _index_lines(whole), _index_lines(baseline)
    lines = [line if key not in theirs else _subtract_line(line, theirs[key]) for key, line in ours.items()]
    lines += [
        line._replace(quantity=-line.quantity, amount=-line.amount)
        for key, line in theirs.items()
        if key not in ours
    ]
    for line in lines:
        if abs(line.amount) > _NOISE or abs(line.quantity) > _NOISE:
            yield line


def _subtract_line(ours: BillLine, theirs: BillLine) -> BillLine:
    """Returns one line less another."""
    quantity, amount = ours.quantity - theirs.quantity, ours.amount - theirs.amount
    if ours.price == theirs.price:
        return ours._replace(quantity=quantity, amount=amount)
    if abs(quantity) > _NOISE:
        return ours._replace(quantity=quantity, amount=amount, price=amount / Decimal(quantity))
    return ours._replace(amount=amount, price=ours.price - theirs.price)


def build_allocation(alone: LoadBill) -> BillAllocation:
    """Returns the bill of one load alone as an allocation."""
    shares = (
        PeriodShare(period.period, period.lines, period.energy_kwh, period.peak_kw, after_run=False)
        for period in alone.periods
    )
    return BillAllocation(alone.currency_code, tuple(shares), alone.findings)
