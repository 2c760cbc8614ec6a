"""Load and service levels of a search: which numbers of replicas keep them."""

import math
from collections.abc import Sequence

import numpy as np
from pydantic import MISSING

from service.planning.estimates.serving import ServingEstimate
from service.planning.inference import BatchScheduler, IterationBatch
from service.plans.serving.variants import PlacedVariant
from service.plans.space import get_service_levels
from service.resolve.load import resolve_levels
from service.schemas.plans import PlanRequest

_SURE = 0.95
"""Share of the least time of a token that remains after errors of interpolation on the curve of a server."""
_MOST_SHARE = 0.55
"""Share of requests that may take less than their mean: half of them, with a margin for the lattice."""


class LevelCheck:
    """Check that numbers of replicas carry the load within the service levels."""

    def __init__(self, placed: PlacedVariant, question: PlanRequest) -> None:
        self._placed = placed
        given = get_service_levels(question)
        self._levels = None if given is MISSING else resolve_levels(given)

    def check_replica_counts(self, numbers: Sequence[int]) -> list[bool]:
        """Returns the result of the check for each number of replicas."""
        return [self.is_carried(serving) for serving in self._placed.estimate_servings(numbers)]

    def is_carried(self, serving: ServingEstimate) -> bool:
        """Returns true if the replicas of an estimate carry the load."""
        rate = serving.case.load.rate_per_second
        if rate is not None:
            holds = self._placed.holds
            if serving.served.saturated or serving.requests_per_second.value < rate * (1.0 - 1e-9):
                return False
            if holds is not None and math.ceil(serving.requests_inside) > holds:
                return False
        levels = self._levels
        return levels is None or serving.estimate_goodput(levels.limits).value >= levels.share

    def count_least_replicas(self, serving: ServingEstimate) -> int:
        """Returns the number of replicas below which each is saturated."""
        rate = serving.case.load.rate_per_second
        if rate is None:
            return 1
        return max(1, math.floor(rate / serving.served.most_requests_per_second * (1.0 - 1e-9)))

    def is_missed_alone(self, serving: ServingEstimate) -> bool:
        """Returns true if even requests without others take longer for a token than the level allows.

        This proves that no number of replicas with such links keeps the level: half of the requests on the
        lattice (``sampling``) have a deviate of their prefills above 0. Each of those takes at least the mean
        time of a token without the part that grows with the batch (``_pace_samples``), which is at least an
        iteration of the quickest batch; interpolation on the curve changes it by less than a twentieth. So at
        most half of the requests keep the level. Requests of one token have no such time; bursts, static
        batches and speculation have other forms, and corrections by a tenant's own runs vary with the load:
        nothing is proven for these.
        """
        levels, load = self._levels, serving.load
        plain = load.burst_requests is None and serving.server.scheduler is BatchScheduler.CONTINUOUS
        if levels is None or levels.share <= _MOST_SHARE or load.outputs.values[0] <= 1.0 or not plain:
            return False
        if serving.server.speculation is not None or serving.case.curves.local is not None:
            return False
        least = _SURE * _find_least_iteration(serving) * serving.spreads.output_token.middle
        each, whole = levels.limits.time_per_output_token_seconds, levels.limits.request_seconds
        if each is not None and least > each:
            return True
        alike = len(load.outputs.values) == 1
        return whole is not None and alike and least * load.decodes > whole


def _find_least_iteration(serving: ServingEstimate) -> float:
    """Returns the seconds of the quickest iteration in which requests decode, over any number of them."""
    batches = np.power(2.0, np.arange(15.0))
    context = batches * serving.load.decoding_context
    zeros = np.zeros_like(batches)
    times = serving.model.compute_time(IterationBatch(batches, context, zeros, zeros, zeros))
    return float(np.min(times.seconds))
