"""Validation of stored results: asked for when a lease ends, kept beside the result, shown with it."""

import pytest

from service.benchmarks.validation import repository
from tests.benchmarks.records import COPY


@pytest.fixture
def lease(nodes):
    nodes.node("a")
    nodes.run()
    return nodes.claim("a")


def test_what_a_node_measured_is_accepted_once_its_lease_ends(nodes, lease):
    results = [nodes.reported(1, "a", lease), nodes.reported(2, "a", lease, benchmark=COPY)]
    assert nodes.validate() == 0
    nodes.complete("a", lease, *results)
    assert nodes.validate() == 1
    assert {row.verdict for row in nodes.validations().values()} == {"accepted"}
    with nodes.database.reading() as session:
        accepted = repository.accepted(session, "default", "a")
        assert [row.id for row in accepted] == [result.result_id for result in results]
        assert repository.accepted(session, "other", "a") == []


def test_what_came_late_is_evidence_and_of_another_lease_nothing(nodes, lease):
    late, guessed = nodes.measured(1, "a", lease), nodes.reported(2, "a", lease, nonce="b" * 32)
    nodes.complete("a", lease)
    nodes.put("a", late)
    nodes.validate()
    found = nodes.validations()
    assert (found[late.result_id].verdict, found[guessed.result_id].verdict) == ("evidence_only", "rejected")
    assert [one["rule"] for one in found[late.result_id].findings] == ["envelope.late"]
    assert [one["rule"] for one in found[guessed.result_id].findings] == ["envelope.unknown_lease"]
