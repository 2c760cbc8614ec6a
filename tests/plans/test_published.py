"""Published configurations beside the plans that choose for the same work: facts, estimates, and the page."""

import json
import math

import pytest

from bench import plans_beside
from bench.plans_beside import PAGE, QUESTIONS, asked, differing, figure, section
from service.schemas.plans import PlanRequest

QUICK = ("gpt-175b-64-a100", "llama-3.1-8b-8-h100", "llama-3.1-70b-8-h200")


@pytest.fixture(scope="module", params=QUICK)
def beside(request):
    (path,) = (path for path in QUESTIONS if path.stem == request.param)
    return asked(path)


@pytest.mark.parametrize("path", QUESTIONS, ids=[path.stem for path in QUESTIONS])
def test_a_file_is_a_question_with_facts_of_stated_source(path):
    file = json.loads(path.read_text())
    question = PlanRequest.model_validate_json(json.dumps(file["question"]))
    named = {given.name for given in question.given}
    told = file["published"]
    assert told["source"]
    assert told["states"]
    facts = [*told["measured"], *told.get("elsewhere", ())]
    assert {fact["given"] for fact in facts} <= named
    assert all(fact["value"] > 0.0 and fact["stated"] for fact in facts)
    # The same work on the same devices: only what a plan chooses differs.
    work = question.workload.model_dump(exclude_unset=True)
    for given in question.given:
        changed = given.workload.model_dump(exclude_unset=True)
        assert {name for name in work if changed[name] != work[name]} <= {"fusion"}


def test_operations_of_sc21_are_counted_by_its_own_formula():
    """Table 1: 163 TFLOP/s a device are 102.6 s for 3,072 sequences on 3,072 devices."""
    batch, length, layers, hidden, vocabulary = 3072, 2048, 128, 25_600, 51_200
    operations = 96 * batch * length * layers * hidden**2
    operations *= 1 + length / (6 * hidden) + vocabulary / (16 * layers * hidden)
    (path,) = (path for path in QUESTIONS if path.stem == "gpt-1t-3072-a100")
    (fact,) = json.loads(path.read_text())["published"]["measured"]
    assert fact["value"] == pytest.approx(operations / (3072 * 163e12), rel=1e-3)


class TestQuick:
    def test_the_plan_is_at_least_as_good_as_what_was_published(self, beside):
        goal = "step_seconds" if beside.is_training else "accelerator_count"
        best = beside.best[goal]["value"] if beside.is_training else beside.best[goal]
        for row in beside.answer["given"]:
            theirs = row[goal]["value"] if beside.is_training else row[goal]
            assert "ruled_out_by" in row or best <= theirs * (1 + 1e-12)

    def test_published_configurations_have_a_place_and_their_estimates(self, beside):
        assert [row["name"] for row in beside.answer["given"]] == [
            given["name"] for given in beside.file["question"]["given"]
        ]
        for row in beside.answer["given"]:
            assert (row["rank"] == 0) == ("ruled_out_by" in row)
        for fact in beside.file["published"]["measured"]:
            (row,) = (row for row in beside.answer["given"] if row["name"] == fact["given"])
            assert math.isfinite(figure(row, fact["name"]))

    def test_estimates_of_published_configurations_are_near_what_was_measured(self, beside):
        for fact in beside.file["published"]["measured"]:
            (row,) = (row for row in beside.answer["given"] if row["name"] == fact["given"])
            assert figure(row, fact["name"]) == pytest.approx(fact["value"], rel=0.25)

    def test_every_choice_that_differs_has_its_sentence(self, beside):
        assert set(differing(beside)) <= set(beside.file["differences"])

    def test_a_choice_without_a_sentence_stops_the_page(self, beside):
        bare = beside._replace(file={**beside.file, "differences": {}})
        if differing(beside):
            with pytest.raises(SystemExit, match="no sentence"):
                list(section(bare))
        else:
            assert "The plan is the published configuration." in "".join(section(bare))

    def test_the_page_shows_it(self, beside):
        """All but how many candidates a bound decided, which a better bound changes."""
        lines = [line for line in section(beside) if not line.startswith("Question:")]
        page = PAGE.read_text()
        assert all(line in page for line in lines), "make plans"


def test_every_file_is_on_the_page():
    page = PAGE.read_text()
    assert page.startswith(plans_beside.HEAD)
    assert all(f"tests/data/plans/{path.name}" in page for path in QUESTIONS)
