"""A worker of the last release refuses members that it does not know, and reads every suite of this one."""

import json

import jsonschema_rs
import pytest

from service.protocol.suites import shipped_suites
from tests.contract.breaks import read_last_release

SUITES = shipped_suites()


@pytest.fixture(scope="module")
def reads():
    """Whether the last release reads a suite."""
    components = {"components": read_last_release()["components"]}
    schema = {"$ref": "#/components/schemas/BenchmarkSuite", **components}
    return jsonschema_rs.validator_for(schema).is_valid


@pytest.mark.parametrize("suite_id", SUITES)
def test_it_reads_every_suite(reads, suite_id):
    assert reads(json.loads(SUITES[suite_id].model_dump_json()))


def test_what_it_does_not_know_would_be_seen(reads):
    suite = json.loads(SUITES["gpu-standard"].model_dump_json())
    assert reads(suite)
    suite["benchmarks"][0]["new_member"] = 1
    assert not reads(suite)
    del suite["benchmarks"][0]["new_member"]
    suite["benchmarks"][0]["work"] = {"kind": "grouped_products"}
    assert not reads(suite)
