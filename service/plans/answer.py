"""The answer of a ranking."""

from service.plans.ranking import Ranking
from service.plans.space import Outcome, Space
from service.questions.plan_answers import PlanAnswer


def answer_of(space: Space, outcome: Outcome, ranking: Ranking) -> PlanAnswer:
    """The rows with their estimates."""
    raise NotImplementedError
