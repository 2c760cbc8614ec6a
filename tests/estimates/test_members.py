"""Results that are mapped member by member are called as the members of their answers."""

import pytest

from service.planning.estimates.carbon import EmbodiedPart, RunWater
from service.planning.estimates.data_use import DataStage
from service.planning.estimates.energy import EquipmentEnergy
from service.planning.estimates.failure_losses import FailureLosses
from service.planning.estimates.frontier import FrontierRates
from service.planning.estimates.recipe import RecipeHint
from service.planning.estimates.scaling import ScaleOption, ScalingPoint
from service.planning.estimates.served_rates import ServedRates
from service.planning.estimates.training_rates import RolloutRates, TrainingRates
from service.planning.quantity import exact
from service.schemas import energy_answers, frontier, run_answers
from service.schemas.answer import FigureError, to_quantities
from service.schemas.answers import ThroughputEstimate

PAIRS = [
    (DataStage, run_answers.DataPipelineStage),
    (EmbodiedPart, energy_answers.EmbodiedEmissionsLine),
    (EquipmentEnergy, energy_answers.EnergyUseLine),
    (FailureLosses, run_answers.ReliabilityEstimate),
    (FrontierRates, frontier.FrontierPoint),
    (RecipeHint, run_answers.RecipeHint),
    (RolloutRates, run_answers.RolloutEstimate),
    (RunWater, energy_answers.WaterUse),
    (ScaleOption, run_answers.ScaleOption),
    (ScalingPoint, run_answers.ScalingPoint),
    (ServedRates, ThroughputEstimate),
    (TrainingRates, ThroughputEstimate),
]


@pytest.mark.parametrize(("result", "answer"), PAIRS, ids=lambda one: one.__name__)
def test_every_member_of_a_result_is_a_member_of_its_answer(result, answer):
    assert set(result._fields) <= set(answer.__annotations__)


@pytest.mark.parametrize(
    ("result", "answer"),
    [pair for pair in PAIRS if pair[1] not in (ThroughputEstimate, frontier.FrontierPoint)],
)
def test_every_required_member_of_an_answer_is_in_its_result(result, answer):
    assert answer.__required_keys__ <= set(result._fields)


def test_quantities_become_objects_and_unknown_members_are_left_out():
    stage = to_quantities(EquipmentEnergy("fans", exact(2.0), None, "measured"))
    assert stage == {
        "name": "fans",
        "it_kwh": {"value": 2.0, "low": 2.0, "high": 2.0, "basis": "exact"},
        "source": "measured",
    }
    with pytest.raises(FigureError):
        to_quantities(DataStage("storage", exact(float("inf"))))
