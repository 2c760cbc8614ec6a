"""The committed document: current, linted, and complete for those who generate clients from it."""

import collections
import functools
import json
import operator
import re
from datetime import datetime, timedelta
from pathlib import Path

import jsonschema_rs
import pytest
from typer.testing import CliRunner

from service.app.application import create_app
from service.app.examples import EXAMPLE_IDS, EXAMPLES, round_figures
from service.app.settings import Settings
from service.catalog.registry import KINDS, RESOURCES
from service.cli.main import app as command_line
from service.kit import clock
from service.schemas.events import WebhookEventType
from tests.contract.node import installed, node
from tests.prepared import ON_SQLITE

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "docs" / "openapi.json"
DOCUMENT = json.loads(PATH.read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]


def target(node):
    """What a part of the document refers to, or itself."""
    while "$ref" in node:
        _, *path = node["$ref"].split("/")
        node = functools.reduce(operator.getitem, path, DOCUMENT)
    return node


def followed(operation):
    """An operation with the parameters and answers that it refers to."""
    parameters = [target(parameter) for parameter in operation.get("parameters", [])]
    responses = {status: target(response) for status, response in operation["responses"].items()}
    return {**operation, "parameters": parameters, "responses": responses}


OPERATIONS = {
    operation["operationId"]: (method, path, followed(operation))
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}
CATALOG = tuple(resource.path for resource in RESOURCES.values())
TEXT, BYTES = {"type": "string"}, {"type": "string", "format": "binary"}
TABLES = {
    "export_benchmark_results": {"text/csv": TEXT, "application/vnd.apache.parquet": BYTES},
    "estimate_cost_export": {"text/csv": TEXT},
    "estimate_utility_bill_export": {"text/csv": TEXT},
    "get_budget_focus": {"text/csv": TEXT},
    "get_quote_focus": {"text/csv": TEXT},
    "get_quote_report": {"text/html": TEXT},
}
"""Operations that answer with a table and not with JSON; to generated clients text is a string."""
NULL = {"type": "null"}
OBVIOUS = {"created_at", "id", "licence", "name", "note", "url"}
"""Members whose name says all there is to say."""


def references(node):
    """Names of the schemas that a part of the document refers to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for key, value in node.items():
            if key not in ("example", "examples", "mapping"):
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def reachable(*nodes):
    """Names of the schemas behind parts of the document."""
    found, waiting = set(), [name for node in nodes for name in references(node)]
    while waiting:
        name = waiting.pop()
        if name in SCHEMAS and name not in found:
            found.add(name)
            waiting.extend(references(SCHEMAS[name]))
    return found


REQUESTS = [
    part
    for _, _, operation in OPERATIONS.values()
    for part in (operation.get("requestBody", {}), operation.get("parameters", []))
]
INPUTS = reachable(*REQUESTS)


def schemas(node, where=""):
    """Every schema below a part of the document, with its place."""
    if isinstance(node, dict):
        if isinstance(node.get("type"), str) or "anyOf" in node or "oneOf" in node:
            yield where, node
        for key, value in node.items():
            if key not in ("example", "examples", "default"):
                yield from schemas(value, f"{where}/{key}")
    elif isinstance(node, list):
        for position, value in enumerate(node):
            yield from schemas(value, f"{where}/{position}")


ALL = list(schemas({"paths": DOCUMENT["paths"], "components": DOCUMENT["components"]}))
SENT = [*schemas({name: SCHEMAS[name] for name in sorted(INPUTS)}), *schemas(REQUESTS)]


def validator(schema):
    return _compiled(json.dumps(schema))


@functools.cache
def _compiled(schema):
    return jsonschema_rs.Draft202012Validator({**json.loads(schema), "components": DOCUMENT["components"]})


class Later(datetime):
    """A clock that is more than a year ahead."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(days=400)


class TestTheCommittedFile:
    def test_is_what_the_command_prints(self, monkeypatch):
        """A year later, as it does today in a process of its own: see the tests of the command line."""
        monkeypatch.setattr(clock, "datetime", Later)
        printed = CliRunner().invoke(command_line, ["openapi"]).stdout
        assert PATH.read_text() == printed, "run `ironlaw openapi > docs/openapi.json`"

    def test_says_the_version_of_the_package(self):
        assert DOCUMENT["info"]["version"] == create_app(Settings()).version
        assert DOCUMENT["openapi"].startswith("3.1.")

    def test_passes_the_linter(self):
        config = Path(__file__).with_name("redocly.yaml")
        output = node(installed("redocly"), "lint", "--config", config, PATH)
        assert "Your API description is valid" in output
        assert "warning" not in output, output


class TestNames:
    def test_an_operation_is_a_verb_and_a_noun(self):
        assert len(OPERATIONS) == sum(len(item) for item in DOCUMENT["paths"].values())
        for name in OPERATIONS:
            assert re.fullmatch(r"[a-z]+(_[a-z]+)+", name), name

    def test_a_schema_is_plain_words(self):
        for name in SCHEMAS:
            assert re.fullmatch(r"([A-Z][a-z]+)+", name), name
            assert not name.startswith("Body"), name
            assert not name.endswith("Response"), name
            assert f"New{name}" not in SCHEMAS, "what makes a shape is called so in Go"

    def test_a_body_is_called_a_request(self):
        """What is stored as sent is called what it is; generators name no shape after its operation."""
        words = (name.title().replace("_", "") for name in OPERATIONS)
        made = {f"{name}Request" for name in words}
        assert not made & SCHEMAS.keys()
        for item in DOCUMENT["paths"].values():
            for operation in item.values():
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    name = content["schema"]["$ref"].rpartition("/")[2]
                    stored = name in {"NodeInventory", "BenchmarkResultReport"}
                    assert stored or name.endswith(("Request", "Patch")), name

    def test_a_choice_that_many_members_have_has_a_name(self):
        """Without one, generators call it after a member of theirs, or number it."""
        places = collections.defaultdict(list)
        for where, schema in ALL:
            # Of X or null, generators make an optional X; and what stands among the components has a name.
            choices = [each for each in schema.get("anyOf", schema.get("oneOf", [])) if each != NULL]
            is_choice = ("enum" in schema and schema["type"] == "string") or len(choices) > 1
            if is_choice and where.count("/") > 3:
                places[json.dumps([schema.get("enum"), choices])].append(where)
        assert not [where for where in places.values() if len(where) > 2]

    def test_a_choice_of_values_has_a_name(self):
        """Without one, generators number those of members of the same name."""
        for where, schema in schemas(SCHEMAS):
            is_inline = "enum" in schema and where.count("/") > 1
            # Java has no literal for the default of a named one of numbers.
            assert not is_inline or schema["type"] != "string", where

    def test_a_name_is_short(self):
        assert max(map(len, SCHEMAS)) <= 50

    def test_a_value_has_a_name_of_its_own(self):
        """Constants of Go share one space."""
        names = [name for schema in SCHEMAS.values() for name in schema.get("x-enum-varnames", ())]
        assert len(names) == sum(len(schema.get("enum", ())) for schema in SCHEMAS.values())
        assert len(set(names)) == len(names)

    def test_an_item_of_a_list_is_not_called_as_a_shape(self):
        """Generators call an inline item as the list, in the singular, and number it then."""
        for name, schema in SCHEMAS.items():
            for member, value in schema.get("properties", {}).items():
                item = value.get("items", {})
                is_bounded = {"maxLength", "pattern"} & item.keys()
                singular = member.removesuffix("s").title().replace("_", "")
                assert not is_bounded or singular not in SCHEMAS, f"{name}.{member}"

    def test_a_body_has_a_name(self):
        for name, (_, _, operation) in OPERATIONS.items():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                assert set(content["schema"]) == {"$ref"}, name

    def test_no_title_repeats_a_name(self):
        assert not [where for where, schema in ALL if isinstance(schema.get("title"), str)]

    def test_no_schema_is_unused(self):
        common = [DOCUMENT["components"][part] for part in ("parameters", "responses")]
        assert set(SCHEMAS) == reachable(DOCUMENT["paths"], *common)

    def test_what_operations_have_in_common_stands_once(self):
        for part in ("headers", "parameters", "responses"):
            for name in DOCUMENT["components"][part]:
                assert PATH.read_text().count(f'"#/components/{part}/{name}"') > 1, name
        for path, item in DOCUMENT["paths"].items():
            for operation in item.values():
                inline = [
                    status for status, response in operation["responses"].items() if "$ref" not in response
                ]
                assert all(status < "400" for status in inline), path


class TestBounds:
    def test_numbers_have_a_format(self):
        formats = {"integer": "int64", "number": "double"}
        for where, schema in ALL:
            if schema.get("type") in formats:
                assert schema["format"] == formats[schema["type"]], where

    def test_bounds_of_integers_are_integers(self):
        for where, schema in ALL:
            if schema.get("type") == "integer":
                bounds = [schema[name] for name in ("minimum", "maximum") if name in schema]
                assert all(type(bound) is int and abs(bound) < 2**53 for bound in bounds), where

    def test_everything_that_is_sent_is_bounded(self):
        for where, schema in SENT:
            kind = schema.get("type")
            if kind == "string":
                assert {"maxLength", "enum", "const"} & set(schema), where
            elif kind == "array":
                assert "maxItems" in schema, where
            elif kind in ("integer", "number") and not {"const", "enum"} & set(schema):
                assert {"minimum", "exclusiveMinimum"} & set(schema), where
                assert "maximum" in schema, where
            elif kind == "object":
                assert schema.get("additionalProperties") is False or "maxProperties" in schema, where

    def test_what_is_only_answered_may_have_more(self):
        for name in set(SCHEMAS) - INPUTS:
            assert SCHEMAS[name].get("additionalProperties") is not False, name

    def test_only_a_change_takes_null(self):
        for name in INPUTS:
            if not name.endswith("Patch"):
                assert "null" not in {schema.get("type") for _, schema in schemas(SCHEMAS[name])}, name

    def test_one_of_several_types_has_no_default(self):
        assert not [where for where, schema in ALL if "anyOf" in schema and "default" in schema]

    def test_a_discriminator_is_required(self):
        for where, schema in ALL:
            if "discriminator" in schema:
                member = schema["discriminator"]["propertyName"]
                for name in references(schema["oneOf"]):
                    assert member in SCHEMAS[name]["required"], where


class TestDescriptions:
    @pytest.mark.parametrize("name", OPERATIONS)
    def test_of_an_operation_and_its_parameters(self, name):
        _, _, operation = OPERATIONS[name]
        assert operation["summary"]
        assert operation["description"].endswith((".", "?"))
        assert len(operation["tags"]) == 1
        assert operation["tags"][0] in {tag["name"] for tag in DOCUMENT["tags"] if tag["description"]}
        for parameter in operation.get("parameters", []):
            assert parameter["description"], parameter["name"]

    def test_of_every_member(self):
        for name, schema in SCHEMAS.items():
            for member, value in schema.get("properties", {}).items():
                kind = value.get("items", value).get("$ref", "").rpartition("/")[2]
                described = "description" in value or "description" in SCHEMAS.get(kind, {})
                assert described or "const" in value or member in OBVIOUS, f"{name}.{member}"


WITH_TWO_ANSWERS = {
    *("claim_lease", "create_plan", "plan_fleet"),
    *("create_approval_policy", "update_approval_policy", "delete_approval_policy"),
    *("update_approval_settings", "update_budget", "delete_budget"),
}


@pytest.mark.parametrize("name", OPERATIONS)
class TestAnOperation:
    def test_has_a_response_example_of_its_shape(self, name):
        _, _, operation = OPERATIONS[name]
        successes = {status: r for status, r in operation["responses"].items() if status.startswith("2")}
        assert len(successes) == (2 if name in WITH_TWO_ANSWERS else 1)
        for status, response in successes.items():
            contents = response.get("content", {})
            assert (status == "204") == (not contents)
            if name in TABLES:
                assert {kind: content["schema"] for kind, content in contents.items()} == TABLES[name]
                continue
            for kind, content in contents.items():
                assert kind == "application/json"
                validator(content["schema"]).validate(content["example"])

    def test_answers_errors_as_problems(self, name):
        _, _, operation = OPERATIONS[name]
        errors = {status: r for status, r in operation["responses"].items() if status[0] in "45"}
        assert {"422", "500"} <= set(errors)
        for response in errors.values():
            (kind,) = response["content"]
            assert kind == "application/problem+json"
            assert response["content"][kind] == {"schema": {"$ref": "#/components/schemas/Problem"}}


MESSAGES = DOCUMENT["paths"]["/v1/webhooks"]["post"]["callbacks"]


class TestTheMessages:
    def test_are_all_there(self):
        assert set(MESSAGES) == set(WebhookEventType)

    @pytest.mark.parametrize("name", WebhookEventType)
    def test_have_an_example_of_their_shape(self, name):
        (item,) = MESSAGES[name].values()
        content = item["post"]["requestBody"]["content"]["application/json"]
        assert content["example"]["type"] == name
        validator(content["schema"]).validate(content["example"])


@ON_SQLITE
class TestTheExamples:
    """A fresh service answers them as the document shows, but for the time and the count of writes."""

    @staticmethod
    def shown(name):
        responses = OPERATIONS[name][2]["responses"]
        success = next(status for status in responses if status.startswith("2"))
        return int(success), responses[success].get("content", {}).get("application/json", {}).get("example")

    def is_shown(self, name, response):
        status, example = self.shown(name)
        assert response.status_code == status, response.text
        assert settled(response.json()) == settled(example)

    def test_of_estimates(self, reader):
        for name, (_, path, _) in OPERATIONS.items():
            if name.startswith("estimate_") and name not in TABLES:
                self.is_shown(name, reader.post(path, EXAMPLES[name]))

    @pytest.mark.parametrize(("kind", "resource"), KINDS.items())
    def test_of_rows(self, client, kind, resource):
        parameters = {p["name"]: p.get("example") for p in OPERATIONS[f"delete_{kind}"][2]["parameters"]}
        row, matching = f"/v1/{resource.path}/{parameters['id']}", {"If-Match": parameters["If-Match"]}
        self.is_shown(f"create_{kind}", client.post(f"/v1/{resource.path}", EXAMPLES[f"create_{kind}"]))
        self.is_shown(f"get_{kind}", client.get(row))
        copied = client.post(f"{row}:copy", EXAMPLES[f"copy_{kind}"])
        self.is_shown(f"copy_{kind}", copied)
        client.delete(copied.headers["location"], headers={"If-Match": "*"})
        self.is_shown(
            f"list_{resource.name}", client.get(f"/v1/{resource.path}", params={"id": parameters["id"]})
        )
        changed = client.patch(row, EXAMPLES[f"update_{kind}"], headers=matching)
        self.is_shown(f"update_{kind}", changed)
        deleted = client.delete(row, headers={"If-Match": changed.headers["etag"]})
        assert deleted.status_code == self.shown(f"delete_{kind}")[0]

    def test_of_keys(self, client):
        made = client.post("/v1/api-keys", EXAMPLES["create_api_key"])
        self.is_shown("create_api_key", made)
        key = made.headers["location"]
        self.is_shown("get_api_key", client.get(key))
        self.is_shown("list_api_keys", client.get("/v1/api-keys"))
        self.is_shown("rotate_api_key", client.post(f"{key}:rotate", EXAMPLES["rotate_api_key"]))
        self.is_shown("retire_api_key", client.post(f"{key}:retire"))
        assert client.delete(key).status_code == self.shown("revoke_api_key")[0]

    def test_of_sessions(self, client):
        ended = client.post("/v1/sessions:end", EXAMPLES["end_sessions"])
        assert ended.json().keys() == self.shown("end_sessions")[1].keys()
        assert len(ended.json()["id"]) == len(self.shown("end_sessions")[1]["id"])

    def test_of_tenants_and_the_audit(self, client):
        self.is_shown("create_tenant", client.post("/v1/tenants", EXAMPLES["create_tenant"]))
        tenant = f"/v1/tenants/{EXAMPLES['create_tenant']['id']}"
        self.is_shown("get_tenant", client.get(tenant))
        listed = client.get("/v1/tenants").json()["items"]
        assert settled(self.shown("list_tenants")[1]["items"][0]) in settled(listed)
        self.is_shown("disable_tenant", client.post(f"{tenant}:disable"))
        self.is_shown("enable_tenant", client.post(f"{tenant}:enable"))
        shown = self.shown("list_audit_events")[1]["items"][0]
        client.post("/v1/grids", EXAMPLES["create_grid"])
        event = client.get("/v1/audit-events").json()["items"][0]
        assert event.keys() == shown.keys()
        assert event["sequence"] == shown["sequence"]
        verdict = client.get("/v1/audit-events:verify").json()
        assert {**verdict, "head_hash": ""} == {**self.shown("verify_audit_events")[1], "head_hash": ""}

    def test_of_benchmarks(self, client):
        made = client.post("/v1/benchmark-runs", EXAMPLES["create_benchmark_run"])
        self.is_shown("create_benchmark_run", made)
        run = made.headers["location"]
        assert client.get(run).json()["figures"] == []
        self.is_shown("list_benchmark_runs", client.get("/v1/benchmark-runs"))
        self.is_shown("cancel_benchmark_run", client.post(f"{run}:cancel"))
        suite = self.shown("get_benchmark_suite")[1]
        stored = client.get(f"/v1/benchmark-suites/{suite['id']}").json()
        assert suite == {**stored, "benchmarks": stored["benchmarks"][:1]}
        assert stored in client.get("/v1/benchmark-suites").json()["items"]

    def test_of_an_import(self, client):
        self.is_shown("import_model", client.post("/v1/models:import", EXAMPLES["import_model"]))
        self.is_shown("import_tariff", client.post("/v1/tariffs:import", EXAMPLES["import_tariff"]))

    def test_of_an_export(self, client):
        made = client.post("/v1/tariffs", EXAMPLES["create_tariff"])
        self.is_shown("export_tariff", client.get(f"{made.headers['location']}:export"))

    def test_of_a_bill(self, reader):
        self.is_shown("bill_tariff", reader.post("/v1/tariffs:bill", EXAMPLES["bill_tariff"]))

    def test_of_an_import_of_offers(self, client):
        self.is_shown("import_offers", client.post("/v1/offers:import", EXAMPLES["import_offers"]))

    def test_of_an_import_of_token_prices(self, client):
        sent = EXAMPLES["import_token_prices"]
        self.is_shown("import_token_prices", client.post("/v1/token-prices:import", sent))

    def test_of_plans(self, client):
        made = client.post("/v1/plans", EXAMPLES["create_plan"])
        place = made.headers["location"]
        answered = {
            "create_plan": made,
            "get_plan": client.get(place),
            "list_plans": client.get("/v1/plans"),
        }
        for name, response in answered.items():
            text = response.text.replace(made.json()["id"], EXAMPLE_IDS["plans"])
            assert settled(json.loads(text)) == settled(self.shown(name)[1])

    def test_of_quotes(self, client):
        client.post("/v1/cost-centers", EXAMPLES["create_cost_center"])
        made = client.post("/v1/quotes", EXAMPLES["create_quote"])
        place = made.headers["location"]
        answered = {
            "create_quote": made,
            "list_quotes": client.get("/v1/quotes"),
            "get_quote": client.get(place),
            "get_quote_versions": client.get(f"{place}/versions"),
            "compare_quote": client.get(f"{place}:compare"),
            "reprice_quote": client.post(f"{place}:reprice", EXAMPLES["reprice_quote"]),
        }
        for name, response in answered.items():
            text = response.text.replace(made.json()["id"], EXAMPLE_IDS["quotes"])
            assert settled(json.loads(text)) == settled(self.shown(name)[1])


UNSETTLED = {
    "content_digest",
    "focus_digest",
    "created_at",
    "disabled_at",
    "finished_at",
    "revision",
    "rotation_ends_at",
    "secret",
    "seed",
    "valid_until",
}


def settled(answer):
    """An answer without what depends on when it was given, or on chance."""
    if isinstance(answer, dict):
        kept = {key: settled(value) for key, value in answer.items() if key not in UNSETTLED}
        if "scopes" in kept or "suite_id" in kept:
            del kept["id"]
        return kept
    return [settled(value) for value in answer] if isinstance(answer, list) else round_figures(answer)


def test_a_count_that_the_longest_text_repeats_is_left_out():
    from service.app.openapi_shapes import tidy_schema  # noqa: PLC0415

    def relaxed(pattern, longest):
        schema = {"type": "string", "pattern": pattern, "maxLength": longest}
        tidy_schema(schema)
        return schema["pattern"]

    assert relaxed("^[a-z0-9][a-z0-9._-]{0,99}$", 100) == "^[a-z0-9][a-z0-9._-]*$"
    assert relaxed("^([a-z0-9][a-z0-9._-]{0,99})?$", 100) == "^([a-z0-9][a-z0-9._-]*)?$"
    assert relaxed("^[a-z0-9_]{1,60}$", 60) == "^[a-z0-9_]+$"
    for kept in ("^[a-z0-9][a-z0-9._-]{0,98}$", "^-?[0-9]{1,15}(\\.[0-9]{1,18})?$", "^[a-z]{2,100}$"):
        assert relaxed(kept, 100) == kept
