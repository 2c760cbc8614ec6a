"""Sensitivity of the choice of a plan: the change of each assumption at which another row becomes first.

Nothing is searched again. No assumption changes the physics, and a search keeps the best under any of them
(``service/plans/space.py``); so each try ranks the kept configurations under the changed question, with the
result of asking that question. The time of a service is not changed, since its replicas would change.
"""

from service.plans.sensitivity.listing import list_sensitivities
from service.plans.sensitivity.subjects import has_tariff

__all__ = [
    "has_tariff",
    "list_sensitivities",
]
