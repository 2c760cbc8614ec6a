"""Named requests of the document: each of its own kind, of its shape, and answered by a service."""

import re

import pytest

from service.app.examples import EXAMPLES, NAMED_EXAMPLES
from tests.contract.test_document import DOCUMENT, OPERATIONS, validator

BODIES = {
    name: next(iter(operation["requestBody"]["content"].values()))
    for name, (_, _, operation) in OPERATIONS.items()
    if "requestBody" in operation
}
ALTERNATIVES = [(name, each) for name, named in NAMED_EXAMPLES.items() for each in [*named][1:]]
ONE_KIND = re.compile(
    "(rotate|retire|withdraw|submit|amend|cancel|approve|reject|comment|link|replay|recover|end|enrol|claim"
    "|renew|complete|report|heartbeat|put|copy)_|update_(approval|cost|budget)|create_(tenant|enrolment"
    "|benchmark|approval_delegation)|import_actuals|plan_fleet"
)
"""Operations whose requests are all alike."""
STORED_BEFORE = {
    "create_approval_policy": "create_cost_center",
    "create_budget": "create_cost_center",
    "create_quote": "create_cost_center",
    "reprice_quote": "create_quote",
    "update_webhook": "create_webhook",
}
"""What a request names, by the operation that makes it."""


def test_every_body_has_examples_of_its_own():
    assert NAMED_EXAMPLES.keys() == BODIES.keys() == EXAMPLES.keys()
    for name, content in BODIES.items():
        assert "example" not in content
        assert content["examples"] == NAMED_EXAMPLES[name], "run `ironlaw openapi > docs/openapi.json`"
        assert next(iter(content["examples"].values()))["value"] == EXAMPLES[name]


@pytest.mark.parametrize("name", BODIES)
def test_examples_have_a_name_a_summary_and_the_shape(name):
    named = NAMED_EXAMPLES[name]
    assert len(named) >= (1 if ONE_KIND.match(name) else 2)
    assert len({repr(example["value"]) for example in named.values()}) == len(named)
    assert len({example["summary"] for example in named.values()}) == len(named)
    for key, example in named.items():
        assert re.fullmatch("[a-z0-9]+(_[a-z0-9]+)*", key)
        assert example.keys() == {"summary", "value"}
        assert re.fullmatch(r"[A-Z0-9].{2,70}[^.]", example["summary"])
        validator(BODIES[name]["schema"]).validate(example["value"])


def create(client, name):
    """The address of what the first example of an operation makes, and of all that it names."""
    if before := STORED_BEFORE.get(name):
        create(client, before)
    made = client.post(OPERATIONS[name][1], EXAMPLES[name])
    assert made.status_code == 201, made.text
    return made.headers["location"]


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("name", "key"), ALTERNATIVES)
def test_the_other_examples_are_answered_too(client, name, key):
    """The first ones are answered in the tests of the document and of their rooms."""
    method, path, _ = OPERATIONS[name]
    url, headers = path, {}
    if name.startswith("update_"):
        url, headers = create(client, name.replace("update", "create")), {"If-Match": "*"}
    elif before := STORED_BEFORE.get(name):
        url = path.replace(path[: path.find("}") + 1], create(client, before)) if "{id}" in path else path
        if "{id}" not in path:
            create(client, before)
    answer = client.request(method.upper(), url, json=NAMED_EXAMPLES[name][key]["value"], headers=headers)
    assert answer.is_success, answer.text


def test_every_operation_has_a_summary_that_somebody_wrote():
    verbs = set()
    for name, (_, _, operation) in OPERATIONS.items():
        summary = operation["summary"]
        assert summary != name.replace("_", " ").title(), f"{name}: give the route a summary"
        assert re.fullmatch(r"[A-Z][a-z]+ [^.]{2,57}[^.]", summary), summary
        verbs.add(summary.partition(" ")[0])
    summaries = [operation["summary"] for _, _, operation in OPERATIONS.values()]
    assert len(set(summaries)) == len(summaries)
    assert not {verb for verb in verbs if verb.endswith("s") and not verb.endswith("ss")}, "imperative"
    assert DOCUMENT["info"]["summary"]
