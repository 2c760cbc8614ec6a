"""Every constraint of the document broken alone and in pairs: refused, named, and nothing else shown."""

import json
from itertools import combinations, islice

import pytest

from service.kit.http.problems import CONTENT_TYPE
from tests.contract import report
from tests.contract.constraints import REMOVED, list_questions
from tests.contract.corpus import MARK
from tests.contract.pairs import KINDS, Asked, HostileRequest, find_faults, list_requests
from tests.contract.test_document import SENT
from tests.escalation.world import FOREIGN, OWN, OWNED
from tests.stretches import list_stretches

SAMPLE_OF, EVERY = 130_000, 43
"""Of how many requests every how many-th is sent by `make test`; half of them break two constraints."""


@pytest.fixture(params=KINDS)
def asked(request, app, databases_of):
    maker = databases_of(request.param)
    asked = Asked(app, maker.loaded())
    yield asked
    asked.close()
    maker.dispose()


def test_what_breaks_a_constraint_or_two_is_refused(asked, request, record_property):
    count = request.config.getoption("--pairs", 0)  # `make hostile PAIRS=...` sends all of a stretch
    if count:
        chosen = list_requests(report.find_first(), count)
    else:
        chosen = islice(list_requests(0, SAMPLE_OF), 0, None, EVERY)
    for each in chosen:
        if each.kind == request.node.callspec.params["asked"]:
            asked.ask(each)
    asked.check_rows()
    counted = [
        (name, status, times) for name, answers in asked.answers.items() for status, times in answers.items()
    ]
    record_property("pairs", counted)
    assert not asked.faults, "\n".join([f"{len(asked.faults)} faults", *asked.faults[:40]])


@pytest.mark.parametrize("operation", ["create_cost_center", "create_site", "list_quotes", "update_budget"])
def test_every_pair_of_different_members_comes_once(operation):
    question = next(each for each in list_questions() if each.operation == operation)
    places = {id(each): place for place, each in enumerate(question.breaks)}
    pairs = [frozenset(places[id(each)] for each in pair) for pair in question.pairs()]
    every = combinations(range(len(places)), 2)
    apart = {frozenset(pair) for pair in every if question.breaks[pair[0]].is_apart(question.breaks[pair[1]])}
    assert len(pairs) > 100
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == apart


def test_an_order_goes_on_where_it_ended():
    def named(requests):
        return [(each.question.operation, each.breaks, each.caller, each.kind) for each in requests]

    assert named(list_requests(900, 50)) == named(list_requests(0, 950))[900:]


KEYWORDS = {
    *("additionalProperties", "const", "enum", "maxItems", "maxLength", "maximum", "minItems", "minLength"),
    *("exclusiveMaximum", "exclusiveMinimum", "minProperties", "maxProperties", "minimum", "multipleOf"),
    *("pattern", "propertyNames", "required", "type", "uniqueItems"),
}


def test_every_keyword_of_the_document_is_broken():
    used = {keyword for _, schema in SENT for keyword in schema if keyword in KEYWORDS}
    assert used - {each.rule for question in list_questions() for each in question.breaks} == set()


def problem(**changed):
    document = {"status": 422, "code": "UNPROCESSABLE", "errors": [{"pointer": "/name"}], **changed}
    return document["status"], {b"content-type": CONTENT_TYPE.encode()}, json.dumps(document).encode()


def breaks_of(operation, *wanted):
    """Constraints of an operation, by pointer and rule."""
    question = next(each for each in list_questions() if each.operation == operation)
    found = {(each.pointer, each.rule): each for each in question.breaks}
    return question, tuple(found[each] for each in wanted)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (problem(), ""),
        (problem(errors=[{"pointer": "/zz"}, {"pointer": "/name"}]), ""),
        (problem(status=500), "status 500"),
        (problem(status=201), "status 201"),
        (problem(code=""), "not this problem"),
        (problem(errors=[{"pointer": "/id"}]), "points at ['/id']"),
        (problem(errors=[{"pointer": "/name_of"}]), "points at"),
        (problem(errors=[{"pointer": ""}]), "points at"),
        (problem(detail=f"no {MARK}"), "echoes"),
        (problem(detail=FOREIGN), "shows a row"),
        (problem(detail=OWNED), ""),
        ((422, {b"content-type": b"application/json"}, b"{}"), "not a problem"),
    ],
)
def test_what_is_wrong_with_an_answer_is_found(answer, fault):
    question, breaks = breaks_of("create_cost_center", ("/name", "maxLength"), ("/note", "type"))
    asked = HostileRequest(question, breaks, (OWN, "admin"), is_permitted=True, kind="sqlite", turn=0)
    found = list(find_faults(asked, *answer))
    assert [fault in each for each in found] == [True] * bool(fault), found


def test_a_body_has_both_members_broken():
    question, breaks = breaks_of("create_cost_center", ("/name", "required"), ("/zz", "additionalProperties"))
    assert breaks[0].value is REMOVED
    right, wrong = json.loads(question.body(())), json.loads(question.body(breaks))
    assert "name" in right
    assert wrong == {**{name: value for name, value in right.items() if name != "name"}, "zz": 1}


def test_the_page_is_the_sum_of_the_stretches():
    assert report.render(list_stretches(report.STRETCHES)) == report.PAGE.read_text()


def test_stretches_add_up_and_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "STRETCHES", tmp_path / "stretches.json")
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    assert report.find_first() == 0
    for first in (0, 7):
        run = report.Report(first)
        run.answers = {
            "pairs": {"sqlite": {"nobody": {"401": 3, "500": 1}}, "postgresql": {"nobody": {"401": 3}}}
        }
        run.pytest_sessionfinish(1)  # one that failed is not kept
        assert report.find_first() == first
        run.pytest_sessionfinish(0)
        assert report.find_first() == first + 7
    page = report.PAGE.read_text()
    assert "| pairs | 14 | 2 | 0 |" in page
    assert "| nobody | sqlite | 6 | 2 |" in page
    monkeypatch.setattr(report, "identify_document", lambda: "another")
    assert report.find_first() == 0
