"""What can go wrong with plans."""

from service.kit.http.problems import Conflict, NotFound


class PlanNotFound(NotFound):
    """There is no such plan."""

    code, title = "PLAN_NOT_FOUND", "There is no plan of this id"


class PlanEnded(Conflict):
    """The search has ended: there is nothing to cancel."""

    code, title = "PLAN_ENDED", "The search of this plan has ended"


class TooManyPlans(Conflict):
    """So many searches of the tenant run that another one has to wait until one has ended."""

    code, title = "TOO_MANY_PLANS", "Too many searches of this tenant are running"
