"""The table of credentials in docs/security.md: whole against the document, and its tests are there."""

import re
from pathlib import Path

import pytest

from tests.contract.test_document import OPERATIONS, SCHEMAS, reachable

DOCS = Path(__file__).resolve().parents[2] / "docs"
TAGS = {"api-keys", "approval-links", "enrolment-tokens", "nodes", "sessions", "tenants", "webhooks"}
"""Nouns that are credentials, or that are told or let in by some: whatever changes one is in the table."""
HANDED_OUT = {"secret", "token", "credential"}


def section():
    _, _, text = (DOCS / "security.md").read_text().partition("## Credentials\n")
    return text.partition("\n## ")[0]


def rows():
    """The cells of every row of the tables."""
    lines = [line for line in section().splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named():
    return [name for row in rows() for name in re.findall(r"`([^`]+)`", row[0])]


def hands_out(operation):
    """Whether an answer can hold something to act by, which is shown once."""
    return any(
        name.startswith("Issued") or not HANDED_OUT.isdisjoint(SCHEMAS[name].get("properties", {}))
        for name in reachable(operation["responses"])
    )


def changing():
    """Operations that hand out or change a credential, by the document."""
    return {
        name
        for name, (method, _, operation) in OPERATIONS.items()
        if method != "get"
        if hands_out(operation) or operation["tags"][0] in TAGS
    }


def test_every_operation_that_hands_out_or_changes_a_credential_is_in_it_once():
    operations = [name for name in named() if not name.startswith("/")]
    assert sorted(operations) == sorted(changing())


def test_an_operation_that_hands_something_out_is_found():
    found = {name for name, (_, _, operation) in OPERATIONS.items() if hands_out(operation)}
    assert found == {
        "create_api_key",
        "create_enrolment_token",
        "create_webhook",
        "enrol_node",
        "link_approval",
        "rotate_api_key",
        "rotate_node_credential",
        "rotate_webhook",
    }


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_says_all_of_an_operation_and_which_tests_hold_it(row):
    assert len(row) == 5
    assert all(row)
    held = re.findall(r"\[([A-Za-z_.]+)\]\(\.\./(tests/[a-z_/]+\.py)\)", row[4])
    assert held
    for name, path in held:
        text = (DOCS.parent / path).read_text()
        assert path.endswith(name) or re.search(rf"^ *(?:class |def )?{name}\b", text, re.MULTILINE), name


def test_says_what_scope_each_asks_for():
    for cells in rows():
        for name in re.findall(r"`([a-z_]+)`", cells[0]):
            for requirement in OPERATIONS[name][2]["security"]:
                (scope,) = requirement["bearer"]
                assert f"`{scope}`" in cells[2] or scope == "leases:claim", name
