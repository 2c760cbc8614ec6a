"""A worker of the last release refuses what it does not know, and is sent what it reads of a suite."""

import json

import jsonschema_rs
import pytest

from service.protocol.suites import SUITE_FORM, shipped_suites
from tests.contract.breaks import read_last_release

SUITES = shipped_suites()


@pytest.fixture(scope="module")
def reads():
    """Whether the last release reads a suite."""
    components = {"components": read_last_release()["components"]}
    schema = {"$ref": "#/components/schemas/BenchmarkSuite", **components}
    return jsonschema_rs.validator_for(schema).is_valid


LAST_FORM = 1
"""Form of suites that the last release reads. The release after it reads `SUITE_FORM`."""


@pytest.mark.parametrize("suite_id", SUITES)
def test_it_reads_the_part_of_every_suite_that_it_is_sent(reads, suite_id):
    """And no benchmark is left out that it would read."""
    suite = SUITES[suite_id]
    sent = suite.narrow_to_form(LAST_FORM)
    assert reads(json.loads(sent.model_dump_json()))
    for benchmark in suite.benchmarks:
        alone = suite.model_copy(update={"benchmarks": [benchmark]})
        assert reads(json.loads(alone.model_dump_json())) == (benchmark in sent.benchmarks), benchmark.name
    assert suite.narrow_to_form(SUITE_FORM) == suite


def test_what_it_does_not_know_would_be_seen(reads):
    suite = json.loads(SUITES["gpu-standard"].narrow_to_form(LAST_FORM).model_dump_json())
    assert reads(suite)
    suite["benchmarks"][0]["new_member"] = 1
    assert not reads(suite)
    del suite["benchmarks"][0]["new_member"]
    suite["benchmarks"][0]["work"] = {"kind": "grouped_products"}
    assert not reads(suite)
