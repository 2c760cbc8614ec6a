"""Questions of plans that make no sense: each refusal names its field, nothing is passed over in silence."""

import json

import pytest
from pydantic import ValidationError

from service.planning.errors import PlanningError
from service.plans.service import estimate_plan
from service.schemas.plans import PlanRequest
from tests.asking import gaps, shipped, usd
from tests.plans.asking import SERVING, TRAINING, planned, with_members

REFUSED = {
    "a model that nobody knows": (TRAINING, {"/model/id": "no-such-model"}, "/model/id"),
    "no batch": (TRAINING, {"/workload/global_batch_size": None}, "/workload/global_batch_size"),
    "no length": (TRAINING, {"/workload/total_tokens": None}, "/workload/total_tokens"),
    "no load": (SERVING, {"/workload/request_rate_per_second": None}, "/workload/request_rate_per_second"),
    "an accelerator that nobody knows": (
        TRAINING,
        {"/search/offers": True, "/search/accelerators": ["no-such-part"]},
        "/search/accelerators/0",
    ),
    "nothing to run on": (TRAINING, {"/rented": []}, "/search/offers"),
    "nobody of that name": (
        TRAINING,
        {"/constraints/providers": ["nobody"], "/search/offers": True, "/rented": []},
        "/constraints/providers",
    ),
    "an end without a beginning": (
        TRAINING,
        {"/constraints/finish_by": "2027-01-01T00:00:00Z"},
        "/starts_at",
    ),
    "over before it begins": (
        TRAINING,
        {"/constraints/finish_by": "2027-01-01T00:00:00Z", "/starts_at": "2027-02-01T00:00:00Z"},
        "/constraints/finish_by",
    ),
    "two supplies of one name": (TRAINING, {"/rented/1/name": "dear and fast"}, "/rented/1/name"),
    "an assumption of nothing": (
        TRAINING,
        {"/assumptions": [{"kind": "price", "of": "no such supply", "factor": 2.0}]},
        "/assumptions/0/of",
    ),
    "a currency without a rate": (TRAINING, {"/currency_code": "XAF"}, "/currency_code"),
    "too many candidates": (TRAINING, {"/most_candidates": 10}, None),
}


BOUND_OF = {"memory": "state", "service_level": "levels"}
"""The rule of a bound that proves what a constraint would say."""


def refusal(question, changes):
    """Code and pointer of the refusal that a question meets."""
    asked = PlanRequest.model_validate_json(json.dumps(with_members(question, changes)))
    with pytest.raises(PlanningError) as caught:
        estimate_plan(asked, shipped())
    assert caught.value.code
    assert caught.value.detail
    return caught.value.pointer


@pytest.mark.parametrize(("question", "changes", "pointer"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_names_the_field(question, changes, pointer):
    found = refusal(question, changes)
    assert found == pointer if pointer else found.startswith("/")


@pytest.mark.parametrize(
    ("question", "changes", "constraint"),
    [
        (TRAINING, {"/constraints": {"budget": usd("0.01")}}, "budget"),
        (TRAINING, {"/constraints": {"duration_seconds": 1.0}}, "deadline"),
        (TRAINING, {"/constraints": {"facility_kw": 0.001}}, "power"),
        (TRAINING, {"/constraints": {"location_based_kg_co2e": 0.001}}, "carbon"),
        (TRAINING, {"/model/id": "llama-3.1-405b"}, "memory"),
        (TRAINING, {"/workload/global_batch_size": 3}, "batch"),
        (SERVING, {"/workload/service_levels/time_per_output_token_seconds": 1e-6}, "service_level"),
        (SERVING, {"/workload/request_rate_per_second": 1e5}, "service_level"),
    ],
)
def test_what_cannot_be_done_says_what_is_in_the_way(question, changes, constraint):
    """An empty answer, not a refusal: the counts say why, and a gap in words."""
    found = planned(question, **changes)
    assert found["rows"] == []
    assert found["launch_hints"] == []
    assert "separation" not in found
    counts = found["candidates"]
    ruled = {each["constraint"] for each in (*counts["ruled_out"], *counts["priced_ruled_out"])}
    decided = ruled | {each["rule"] for each in counts["pruned"]}
    assert decided & {constraint, BOUND_OF.get(constraint)}
    assert gaps(found)["/rows"] == "NONE_FEASIBLE"


@pytest.mark.parametrize(
    "changes",
    [
        {"/workload/global_batch_size": 0},
        {"/search/accelerator_counts": []},
        {"/search/depth": 0},
        {"/assumptions": [{"kind": "price", "factor": 0.0}]},
        {"/constraints/budget": {"amount": "-1", "currency_code": "USD"}},
        {"/goal": "best"},
        {"/search/training/tensor": [0]},
        {"/nonsense": 1},
    ],
)
def test_the_schema_refuses_what_no_plan_has(changes):
    with pytest.raises(ValidationError):
        PlanRequest.model_validate_json(json.dumps(with_members(TRAINING, changes)))
