"""Every operation under requests that Schemathesis derives from the document, right ones and wrong ones."""

import asyncio
import io
import json
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from urllib.parse import parse_qs, unquote, urlsplit

import jsonschema_rs
import pytest
import requests
import schemathesis
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from schemathesis.config import SchemathesisConfig
from schemathesis.core.errors import InvalidSchema
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi.checks import negative_data_rejection
from urllib3 import HTTPResponse

from service.app.examples import EXAMPLE_IDS, EXAMPLES
from service.catalog.registry import KINDS
from service.evidence import snapshot as snapshots
from service.kit.security.credentials import parse_id
from tests.applications import (
    TENANT,
    Callers,
    ask_job,
    attach,
    catalog_transactions,
    store_approval,
    store_calibration,
    store_link,
    store_plan,
    store_policy_change,
    store_quote,
    store_result,
    store_webhook,
)
from tests.contract.credentials import OF_NODES, credentials, lease_of, prepare_node
from tests.contract.test_document import DOCUMENT, OPERATIONS
from tests.inline import Loop

WITH_A_LARGE_SHAPE = (
    "estimate_.*|(create|update|import)_model|(create|update|import|bill)_tariff|import_evidence"
    "|create_plan|plan_fleet|create_quote|amend_quote|import_actuals"
)
"""Operations whose bodies may hold an architecture, a tariff or a file: the coverage phase would ask some ten
thousand requests for each and keep them all in memory. Members of their examples are in the hostile corpus,
and they are fuzzed, the largest of them at length."""
WITH_MANY_MEMBERS = (
    "create_(accelerator|grid|offer|token_price|hardware_price|exchange_rate|site|link|approval_policy)"
    "|import_(grid|offers|token_prices)|update_approval_policy|put_node_inventory|complete_lease"
)
"""Operations of which the coverage phase asks hundreds of requests, which `make schemathesis` does; every
member of their examples is in the hostile corpus as well."""
CHANGES = "|".join(f"update_{kind}" for kind in KINDS)
"""Changes of catalog rows, made from the shape of what is created (`patch_of`), whose bounds are covered."""


def operations(uncovered):
    """What is particular to some operations; the coverage phase passes over ``uncovered``."""
    return [
        {"include-operation-id-regex": f"^({uncovered})$", "phases": {"coverage": {"enabled": False}}},
        {"include-operation-id": "estimate_utility_bill", "generation": {"max-examples": 15}},
    ]


CONFIG = {
    "seed": 1,
    # How long a value takes to be derived depends on what else the machine does.
    "suppress-health-check": ["too_slow"],
    # What one case teaches about the next depends on the order of the tests, which is not fixed.
    "generation": {"deterministic": True, "max-examples": 2, "with-security-parameters": False},
    "phases": {
        "examples": {"extra-data-sources": {"responses": False}},
        "coverage": {"extra-data-sources": {"responses": False}},
        "fuzzing": {"extra-data-sources": {"responses": False}, "error-feedback": {"enabled": False}},
    },
    "operations": operations(f"{WITH_A_LARGE_SHAPE}|{WITH_MANY_MEMBERS}|{CHANGES}"),
    "checks": {
        # 503 is the answer to a catalog revision that has not come yet.
        "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", "503"]},
        # No schema says which token belongs to the list (400), which rows exist (404), are taken or in
        # use (409), have changed (412), or what contradicts itself (422). That no shape is refused is
        # asserted below.
        "positive_data_acceptance": {
            "expected-statuses": ["2xx", "304", "400", "404", "409", "412", "422", "503"]
        },
        "negative_data_rejection": {
            "expected-statuses": ["400", "401", "404", "405", "409", "412", "413", "415", "422", "428"]
        },
        # Who may call what is walked through by test_access; this check calls over the network.
        "ignored_auth": {"enabled": False},
        "missing_required_header": {"expected-statuses": ["428"]},
    },
}


def loaded(**changes):
    """The document with what Schemathesis is to do with it."""
    config = SchemathesisConfig.from_dict({**CONFIG, **changes})
    return schemathesis.openapi.from_dict(WITHOUT_MEMBER_EXAMPLES, config=config)


def without_member_examples(value):
    """The document without the examples of single members.

    Schemathesis would put each into a body of its own, which takes a minute for the shape of a quote and
    finds no other answer than the named examples of the body do.
    """
    if isinstance(value, list):
        return [without_member_examples(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name: each for name, each in value.items() if name != "examples" or isinstance(each, dict)}
    return {name: without_member_examples(each) for name, each in kept.items()}


WITHOUT_MEMBER_EXAMPLES = without_member_examples(DOCUMENT)
SCHEMA = loaded()
RIGHT = loaded(generation={**CONFIG["generation"], "mode": "positive"})
"""Of requests to the second database: what is wrong with the others is found before either is asked."""
LONG = {
    "generation": {"max-examples": 400, "with-security-parameters": False},
    "phases": {
        "examples": {"enabled": False},
        "coverage": {"enabled": False},
        "fuzzing": CONFIG["phases"]["fuzzing"],
    },
    "operations": [],
}
"""What a long run repeats under other seeds."""
SHAPE_PROBLEMS = (
    "The body does not have the shape of this operation",
    "A parameter of the request is invalid",
    "The body is not JSON",
)
BASE = "http://testserver"
PATIENCE_SECONDS = 120.0
"""For one answer, however busy the machine is: how long it takes is measured elsewhere."""
LISTS = [name for name in OPERATIONS if name.startswith("list_")]
# Filters are what the two databases could answer differently.
# A record comes with its digest, and no schema says which members go together: none is right by chance.
DERIVED = [name for name in OPERATIONS if name != "report_benchmark_result"]
CASES = [*(("sqlite", name) for name in DERIVED), *(("postgresql", name) for name in LISTS)]
SEEDS = 24
NAMED = {*KINDS, "approval_policy", "budget", "cost_center", "tenant"}
"""What is created under an id that the caller chooses."""
STORED = {
    "approval_link": store_link,
    "calibration": store_calibration,
    "plan": store_plan,
    "webhook": store_webhook,
}
"""What is stored for a test without a request, by the beginning of its noun."""
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
RESTORED = 20
"""Rows that a test creates and deletes again; then it meets those that it left."""


def whole(body):
    """A body with 16.0 as 16. To a schema both are integers, the service asks for the second."""
    if isinstance(body, dict):
        return {key: whole(value) for key, value in body.items()}
    if isinstance(body, list):
        return [whole(value) for value in body]
    return int(body) if isinstance(body, float) and body.is_integer() and abs(body) < 2**53 else body


def read_texts(values, schema):
    """What the texts of a parameter may stand for: a number is sent as its text, a list as its elements."""
    if schema.get("type") == "array":
        return [values]
    if len(values) > 1:
        return []
    return values + [json.loads(value) for value in values if NUMBER.fullmatch(value)]


@cache
def build_validator(schema):
    """Returns the validator of a schema of the document, which is given as JSON."""
    return jsonschema_rs.validator_for({**json.loads(schema), "components": DOCUMENT["components"]})


def is_right_as_sent(case, url):
    """True if only the query is wrong, and its texts are those of a right one: 5 for a list of names, say."""
    places = {place for place, part in case.meta.components.items() if not part.mode.is_positive}
    if places != {ParameterLocation.QUERY}:
        return False
    stated = {parameter.name: parameter.definition["schema"] for parameter in case.operation.query}
    sent = parse_qs(urlsplit(url).query, keep_blank_values=True)
    required = {parameter.name for parameter in case.operation.query if parameter.is_required}
    return required <= sent.keys() and all(
        name in stated
        and any(
            build_validator(json.dumps(stated[name])).is_valid(reading)
            for reading in read_texts(values, stated[name])
        )
        for name, values in sent.items()
    )


class Direct(HTTPAdapter):
    """Calls an application in this thread: that of Schemathesis hands each request to another one."""

    def __init__(self, app):
        super().__init__()
        self._app = app
        self._runner = Loop()

    def send(self, request, **_):
        parts = urlsplit(request.url)
        given = [("host", parts.netloc), *request.headers.items()]
        body = request.body or b""
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": request.method,
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "root_path": "",
            "scheme": parts.scheme,
            "query_string": parts.query.encode(),
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given],
            "client": ("127.0.0.1", 50000),
            "server": ("testserver", 80),
            "state": {},
        }
        messages = [{"type": "http.request", "body": body.encode() if isinstance(body, str) else body}]
        answer = []

        async def receive():
            return messages.pop() if messages else await asyncio.Event().wait()

        async def send(message):
            answer.append(message)

        async def call():
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._app(scope, receive, send)

        self._runner.run(call())
        response = requests.Response()
        response.request, response.url, response.status_code = request, request.url, answer[0]["status"]
        response.raw = HTTPResponse(
            io.BytesIO(b"".join(message.get("body", b"") for message in answer)),
            [(name.decode(), value.decode("latin-1")) for name, value in answer[0]["headers"]],
            answer[0]["status"],
            11,
            preload_content=False,
            request_method=request.method,
        )
        response.headers = CaseInsensitiveDict(response.raw.headers)
        return response

    def close(self):
        self._runner.close()


class Caller:
    """Sends the cases of one operation to the application, and counts what came back."""

    def __init__(self, app, name):
        self._session = requests.Session()
        self._session.mount(BASE, Direct(app))
        self._session.trust_env = False
        headers = credentials(app, name)
        self._session.headers.update(headers)
        app.state.waiting.close()  # claims that find nothing do not wait for it
        self._app = app
        self._name = name
        self._noun = name.partition("_")[2]
        self._id = self._digest = ""
        self.outcomes = Counter()
        if self._noun.startswith(("approval_polic", "budget")):
            # What was changed can be changed again.
            at_once = {"change_delay_seconds": 0}
            self._session.patch(
                f"{BASE}/v1/approval-settings", json=at_once, headers={"If-Match": "*"}
            ).raise_for_status()
        if self._noun.startswith("budget") or name == "create_quote":
            self._make("create_cost_center")
        if self._noun.startswith("benchmark_result") and name not in LISTS:
            store_result(app.state.database)
        if name == "withdraw_node_calibrations":
            store_calibration(app.state.database)
        if name in OF_NODES:
            make = lease_of if self._noun == "lease" and name != "claim_lease" else prepare_node
            database = [app.state.database] if make is lease_of else []
            self._id = make(self._session, headers, *database, base=BASE)
        elif "{id}" in OPERATIONS[name][1]:
            self._create()

    def _create(self):
        """The row that right requests are about; keys and jobs get ids of their own."""
        own = {"background_job": self._job, "quote": self._quote}
        own |= dict.fromkeys(("approval", "approval_history", "approval_links"), self._approval)
        own |= {"policy_change": lambda: store_policy_change(self._app.state.database, self._own_name())}
        noun = next((each for each in ("quote", "budget") if self._noun.startswith(each)), self._noun)
        if noun in own:
            self._id = own[noun]()
            return
        store = next((do for stored, do in STORED.items() if noun.startswith(stored)), None)
        if store is not None:
            self._id = store(self._app.state.database)
            return
        if self._noun in ("benchmark_suite", "benchmark_result"):
            self._id = EXAMPLE_IDS[f"{self._noun.replace('_', '-')}s"]
            return
        if self._noun.startswith("node"):
            self._id = parse_id(Callers(self._app, self._app.state.database).node())
            return
        made = (f"create_{noun}", f"import_{noun}")
        name = next(each for each in made if each in OPERATIONS)
        location = self._make(name).headers["location"]
        self._id = location.rpartition("/")[2]
        if self._name == "retire_api_key":
            self._session.post(f"{BASE}{location}:rotate", json={})

    def _make(self, name):
        """What the example of an operation creates."""
        response = self._session.post(BASE + OPERATIONS[name][1], json=EXAMPLES[name])
        assert response.status_code == 201, response.text
        return response

    def _job(self):
        return ask_job(
            self._app.state.database, state="dead" if self._name.startswith("retry") else "waiting"
        )

    def _quote(self):
        quote = store_quote(self._app.state.database)
        self._digest = quote["content_digest"]
        if self._name in ("submit_quote", "amend_quote", "cancel_quote"):
            store_approval(self._app.state.database)  # with a policy that whoever calls has not written
            self._session.post(f"{BASE}/v1/cost-centers", json=EXAMPLES["create_cost_center"])
        if self._name == "cancel_quote":
            sent = {"content_digest": self._digest}
            self._session.post(f"{BASE}/v1/quotes/{quote['id']}:submit", json=sent)
        return quote["id"]

    def _own_name(self):
        return f"api_key:{parse_id(self._session.headers['Authorization'].removeprefix('Bearer '))}"

    def _approval(self):
        """One that waits for whoever calls."""
        approval = store_approval(self._app.state.database, self._own_name())
        self._digest, self._approver = approval["content_digest"], EXAMPLES["link_approval"]["approver"]
        if self._name == "close_approval":
            sent = {"content_digest": self._digest}
            self._session.post(f"{BASE}/v1/approvals/{approval['id']}:approve", json=sent)
        return approval["id"]

    def close(self):
        self._session.close()

    def _delete(self, address):
        """Take back what was created; a tenant stays."""
        if f"delete_{self._noun}" in OPERATIONS or self._noun.startswith("copy"):
            response = self._session.delete(BASE + address, headers={"If-Match": "*"})
            assert response.status_code == 204, response.text

    def _fill(self, body):
        """Say in a right body what only what is stored can say."""
        if self._name == "enrol_node":
            made = self._session.post(f"{BASE}/v1/enrolment-tokens", json={})
            body["token"] = made.json()["token"]
        if self._name == "withdraw_node_calibrations":
            body["node_id"] = EXAMPLE_IDS["nodes"]
        if self._digest and isinstance(body, dict) and "content_digest" in body:
            body["content_digest"] = self._digest
        if self._name == "link_approval":
            body["approver"] = self._approver
        if self._name == "complete_lease":
            body["results"] = []

    def send(self, case):
        """The response, and whether the request was right."""
        right = case.meta.generation.mode.is_positive
        headers = None
        if right:
            case.body = whole(case.body)
            if self._noun not in NAMED and self._id and "{id}" in OPERATIONS[self._name][1]:
                case.path_parameters["id"] = self._id
            self._fill(case.body)
            if self._name == "compare_benchmark_results":
                # Nothing else is stored to be compared.
                case.query = {"benchmark": EXAMPLES["report_benchmark_result"]["benchmark"]["name"]}
            # What a repeated key answers is the matter of the tests of the writes.
            case.headers.pop("Idempotency-Key", None)
            # The version that a change is based on is the current one.
            headers = {"If-Match": "*"} if "If-Match" in case.headers else None
        response = case.call(session=self._session, base_url=BASE, headers=headers, timeout=PATIENCE_SECONDS)
        if "location" in response.headers and self.count(right=True, kind=2) < RESTORED:
            self._delete(response.headers["location"][0])
        elif (
            response.status_code == 204
            and self._name not in OF_NODES
            and str(case.query.get("validate_only")).lower() != "true"
        ):
            self._create()
        self.outcomes[right, response.status_code] += 1
        return response, right

    def count(self, *, right, kind):
        """How many right or wrong requests had an answer of this class of status."""
        return sum(
            times
            for (is_right, status), times in self.outcomes.items()
            if (is_right, status // 100) == (right, kind)
        )


@pytest.fixture
def caller(app, databases, name, monkeypatch):
    monkeypatch.setattr(snapshots, "WAIT_SECONDS", 0.0)
    database = databases.unchanged() if name in LISTS else databases.loaded()
    attach(app, database, TENANT.model_copy(update={"public_url": BASE}))
    app.state.snapshots.refresh()
    # No estimate follows a write here, so none has to be seen by one.
    app.state.catalog = catalog_transactions(database)
    made = Caller(app, name)
    yield made
    made.close()


def hold(caller, name, schema):
    """Derive requests to an operation, and check the answers."""

    def holds(case):
        response, right = caller.send(case)
        excluded = [negative_data_rejection] if is_right_as_sent(case, response.request.url) else []
        case.validate_response(response, excluded_checks=excluded)
        if right and response.status_code >= 400:
            assert response.json()["detail"] not in SHAPE_PROBLEMS

    method, path, _ = OPERATIONS[name]
    # Schemathesis makes tests when they are collected, which takes every worker half a minute, or in
    # subtests, which this pytest does not take; so its builder is called here.
    test = build_operation_test(
        config=schema.config,
        operation=schema[path][method.upper()],
        test_func=holds,
        given_kwargs={},
        feedback=FeedbackSources(),
    )
    test()


@pytest.mark.parametrize(("databases", "name"), CASES, indirect=["databases"])
def test_holds_to_the_document(name, caller, databases, request, record_property):
    asked = request.config.getoption("--examples", 0)
    first = SCHEMA if databases.kind == "sqlite" else RIGHT
    hold(caller, name, loaded(operations=operations(WITH_A_LARGE_SHAPE)) if asked else first)
    seed = CONFIG["seed"]
    # `make hostile` asks for many more: other requests each time, where these are always the same.
    while caller.outcomes.total() < asked / len(CASES):
        seed += 1
        # The shapes of wrong requests are derived too; of some the generator finds no value.
        with suppress(InvalidSchema):
            hold(caller, name, loaded(seed=seed, **LONG))
    # A few requests of a large shape may all be right ones.
    for _ in range(SEEDS):
        if caller.count(right=False, kind=4) or first is RIGHT:
            break
        seed += 1
        hold(
            caller, name, loaded(seed=seed, generation=CONFIG["generation"], operations=CONFIG["operations"])
        )
    record_property("derived", [(name, status, times) for (_, status), times in caller.outcomes.items()])
    assert caller.count(right=True, kind=2), "no right request succeeded"
    assert caller.count(right=False, kind=4) or first is RIGHT, "no wrong request was refused"
