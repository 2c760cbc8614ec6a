"""Problems of plans."""

from service.kit.http.problems import Conflict, NotFound


class PlanNotFound(NotFound):
    """The plan does not exist."""

    code, title = "PLAN_NOT_FOUND", "There is no plan with this id"


class PlanEnded(Conflict):
    """The search has ended and cannot be cancelled."""

    code, title = "PLAN_ENDED", "The search of this plan has ended"


class TooManyPlans(Conflict):
    """The tenant has reached its limit of running searches. Wait until one ends, or cancel one."""

    code, title = "TOO_MANY_PLANS", "Too many searches of this tenant are running"
