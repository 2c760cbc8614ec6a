"""Steps of one request, counted before its bills are computed."""

import pytest

from service.planning.errors import PlanningError
from service.planning.tariff.allowance import Allowance
from service.planning.tariff.effort import BillingEffort, EffortShare


def effort(steps):
    return BillingEffort((EffortShare(steps, "bills"),))


def test_steps_are_taken_until_none_are_left():
    allowed = Allowance(10.0)
    allowed.spend(effort(4.0), "/first")
    allowed.spend(effort(6.0), "/second")
    with pytest.raises(PlanningError) as refused:
        allowed.spend(effort(1.0), "/third")
    assert (refused.value.code, refused.value.pointer) == ("BILL_TOO_COSTLY", "/third")
    assert allowed.left == 0.0
