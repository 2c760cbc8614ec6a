"""Preemption of requests by a full cache, while others wait."""

from service.planning.inference.curve import ReplicaCurve, ServerSetting
from service.planning.inference.serving.operating_point import WorkingPoint

_PROGRESS = 0.3
"""Share of its output that a request has when it is preempted, and of its decoding time that it then waits:

the last arrivals are dropped, and resume first. From the simulation.
"""
_AWAY = 0.67
"""Maximum share of the waiting that falls to preempted requests, in the simulation."""


def estimate_preemptions(setting: ServerSetting) -> float:
    """Returns the preemptions per request while others wait.

    Tokens dropped over those of a dropped request.
    """
    load = setting.load
    dropped = (1.0 - setting.server.reserved_output) * load.outputs.mean
    return dropped / (load.inputs.mean + _PROGRESS * load.outputs.mean)


def apply_preemptions(
    setting: ServerSetting, there: ReplicaCurve[float], at: WorkingPoint
) -> ReplicaCurve[float]:
    """Returns ``there`` with contexts recomputed, and the waits of dropped requests."""
    if at.repeated >= 1.0:
        return there
    decoding = there.decoding_seconds / at.repeated
    rate = there.requests_per_second * at.repeated
    latency = there.requests / there.requests_per_second - there.decoding_seconds + decoding
    away = _PROGRESS * estimate_preemptions(setting) * at.filled * decoding
    if setting.load.concurrency is not None:
        away = min(away, _AWAY * max(0.0, setting.load.concurrency / rate - latency))
    return there._replace(
        decoding_seconds=decoding + away, requests_per_second=rate, requests=rate * (latency + away)
    )
