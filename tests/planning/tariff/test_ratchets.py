"""Ratchets of any kind against the words of their definition, month by month."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.tariff.bill import BillingDeterminants
from service.planning.tariff.billing import compute_determinants_bill
from service.planning.tariff.charges import MONTHS, BillingDemand, DemandCharge, DemandRatchet
from tests.planning.tariff.loads import flat, tariff

YEAR = 2018
months = st.frozensets(st.integers(1, 12), min_size=1)
shares = st.lists(st.sampled_from((0.0, 0.4, 0.75, 1.0)), min_size=12, max_size=12).map(tuple)
peaks = st.lists(st.integers(0, 500).map(float), min_size=12, max_size=12)
ratchets = st.builds(
    DemandRatchet,
    share_by_billing_month=shares,
    share_by_peak_month=shares,
    preceding_months=st.none() | st.integers(1, 12),
    peak_months=months,
    within_billing_month=st.booleans(),
    wraps_year=st.booleans(),
)


def earlier_peak(year, month, load, before, wraps):
    if year == YEAR:
        return load[month - 1]
    if before is not None:
        return before[month - 1]
    return load[month - 1] if wraps else 0.0


def floor(ratchet, month, load, before):
    """The highest share of the peaks that a ratchet looks back on in a month of the year."""
    if ratchet.preceding_months is None:
        looked = [(YEAR, each) for each in ratchet.peak_months]
    else:
        back = [(month - step - 1) for step in range(1, ratchet.preceding_months + 1)]
        looked = [(YEAR + place // 12, place % 12 + 1) for place in back]
    looked = [(year, each) for year, each in looked if each in ratchet.peak_months]
    if ratchet.within_billing_month and month in ratchet.peak_months:
        looked.append((YEAR, month))
    values = [
        ratchet.share_by_billing_month[month - 1]
        * ratchet.share_by_peak_month[each - 1]
        * earlier_peak(year, each, load, before, ratchet.wraps_year)
        for year, each in looked
    ]
    return max(values, default=0.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(ratchets, min_size=1, max_size=3), peaks, st.none() | peaks, months, st.integers(0, 300))
def test_the_billing_demand_is_the_highest_of_all_that_a_rule_names(rules, load, before, own, least):
    rule = BillingDemand(ratchets=tuple(rules), own_peak_months=own, minimum_kw=float(least))
    charge = DemandCharge(name="demand", periods=(flat("1"),), billing_demand=rule)
    known = BillingDeterminants(YEAR, {}, {}, {month: load[month - 1] for month in MONTHS})
    history = None if before is None else {(YEAR - 1, month): before[month - 1] for month in MONTHS}
    found = compute_determinants_bill(tariff(charge), known, history=history)
    for month, period in enumerate(found.periods, 1):
        expected = max(
            load[month - 1] if month in own else 0.0,
            float(least),
            *(floor(each, month, load, before) for each in rules),
        )
        assert period.billing_demand_kw["demand"] == pytest.approx(expected)
        assert period.total == pytest.approx(Decimal(expected))
