"""Requests that once stopped the service: each is answered or refused, and hardly takes the event loop.

`make worst-requests` searches for others and measures them; here are the known ones, and the search itself.
"""

import contextlib
import itertools
import json
import time
from functools import cache
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest
from pydantic import TypeAdapter, ValidationError

from bench import worst_climb
from bench.worst_cases import large, pages, seeds
from bench.worst_climb import ClimbRequest, DocumentShapes, climb
from bench.worst_server import operations
from service.app.examples import EXAMPLES
from service.estimates.service import ESTIMATES
from service.kit.http.long_work import QUESTIONS, SEARCHES, LongWork
from service.quotes.form.answers import build_question
from service.quotes.form.links import parse_query
from service.quotes.form.question import parse_question
from tests.asking import shipped
from tests.contract.test_document import DOCUMENT

LOOP_SECONDS = 0.25
"""Processor time of the loop's thread: each of these took it 0.4 seconds to minutes; now milliseconds."""
ANSWER_SECONDS = 0.4
"""Less than the service has: the dearest take four seconds of a core."""
STEPS = 70
"""Of a search."""
ANSWERED, TOO_LARGE, REFUSED, IN_TIME = 200, 413, 422, 503
CASES = {
    "estimate_memory": (
        "normalization 2^31 times",
        "linear 2^31 times",
        "learned_vectors 2^31 times",
        "embedding_table 2^31 times",
        "a million linear layers",
        "10,000 written layers",
        "1,000 latent-attention layers",
        "5,000 module names, 400 layers",
        ".? eighteen times",
        "four .*",
        "5,000 globs",
    ),
    "bill_tariff": (
        "200 charges of 24 ratchets of 120 months",
        "200 rolling peaks",
        "96,000 coincident hours",
        "200 energy charges",
        "500 windows, 2,000 holidays",
    ),
    "estimate_utility_bill": ("50 charges of 6 ratchets, a baseline", "39 years by 5 minutes"),
    "estimate_utility_bill_shift": ("17 years with pauses, 98 daily starts",),
    "estimate_utility_bill_power_cap": ("20 caps, 17 years",),
    "estimate_utility_bill_comparison": ("20 sites, a tariff, 2 years",),
    "import_evidence": ("engine_log: a head for 1 MB", "training_log: a head for 1 MB"),
}
OPERATIONS = {operation.name: operation for operation in operations(DOCUMENT)}


@cache
def bodies():
    """Named bodies by operation: some of them take seconds to make."""
    return {name: dict(given) for name, given in seeds().items()}


def asked(client, name, raw):
    """Status, code of a problem, and processor seconds of the loop's thread."""
    operation, headers = OPERATIONS[name], {"content-type": "application/json"}
    began = time.thread_time()
    answer = client.request(operation.method, operation.path, content=raw, headers=headers)
    took = time.thread_time() - began
    problem = answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, json.loads(answer.content)["code"] if problem else "", took


def test_addresses_of_pages_state_questions_that_are_answered():
    for name, address in pages()["/ask/charts"]:
        query = urlsplit(address).query
        typed = parse_question(parse_query(query), shipped())
        assert typed.wrong == {}, name
        assert not typed.unused.keys() & dict(parse_qsl(query)), name
        build_question(typed)


@pytest.mark.parametrize(
    ("operation", "name"), [(operation, name) for operation, names in CASES.items() for name in names]
)
@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_what_once_stopped_the_service_hardly_takes_the_loop(reader, monkeypatch, operation, name):
    for line in (QUESTIONS, SEARCHES):
        monkeypatch.setitem(reader.app.state.work_queues, line, LongWork(line, ANSWER_SECONDS))
    status, code, took = asked(reader, operation, bodies()[operation][name])
    assert (status, code) in {
        (ANSWERED, ""),
        (REFUSED, "NO_SOUND_ANSWER"),
        (REFUSED, "EVIDENCE_REFUSED"),
        (IN_TIME, "OUT_OF_TIME"),
    }
    assert took < LOOP_SECONDS


@pytest.mark.parametrize("name", [name for name, _ in large({})])
@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_large_bodies_hardly_take_the_loop(reader, name):
    for operation in ("estimate_memory", "create_site"):
        raw = dict(large(EXAMPLES[operation]))[name]
        status, _, took = asked(reader, operation, raw)
        assert status in (400, TOO_LARGE, REFUSED)
        assert took < LOOP_SECONDS


class TestTheSearch:
    def test_every_operation_with_a_body_has_a_request_to_begin_with(self):
        for name, operation in OPERATIONS.items():
            assert operation.schema is None or bodies()[name]

    @pytest.fixture(autouse=True)
    def steps(self, monkeypatch):
        """A search of so many seconds tries so many requests: a second passes with each look at the clock."""
        monkeypatch.setattr(worst_climb, "time", SimpleNamespace(monotonic=itertools.count().__next__))

    def test_it_finds_what_grows(self):
        operation, shapes = OPERATIONS["estimate_memory_batch"], DocumentShapes(DOCUMENT)
        raw = json.dumps(EXAMPLES["estimate_memory_batch"]).encode()

        def ask(request):
            questions = len(json.loads(request.raw).get("requests", []))
            return request._replace(status=200, cpu_seconds=float(questions))

        found = climb(shapes, operation.schema, [ask(ClimbRequest("it", raw))], ask, seconds=STEPS, seed="")
        assert found[0].cpu_seconds == 500
        assert found[0].steps

    def test_it_tries_what_the_document_allows(self):
        shapes, schema = DocumentShapes(DOCUMENT), OPERATIONS["estimate_memory"].schema
        example = EXAMPLES["estimate_memory"]
        shapes.learn(schema, example)
        asked = []

        def ask(request):
            asked.append(json.loads(request.raw))
            return request._replace(status=200)

        climb(
            shapes,
            schema,
            [ask(ClimbRequest("it", json.dumps(example).encode()))],
            ask,
            seconds=STEPS,
            seed="",
        )
        question = TypeAdapter(ESTIMATES["memory"].question)
        right = 0
        for body in asked:
            with contextlib.suppress(ValidationError):
                right += bool(question.validate_json(json.dumps(body)))
        # Some contradict themselves, or break a pattern that no example shows.
        assert right > len(asked) / 10
        assert len({name for body in asked for name in body}) > len(example)
