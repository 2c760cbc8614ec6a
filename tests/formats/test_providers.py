"""Providers have names, and shipped prices are called by them."""

import json
from importlib.resources import files

from bench.prices.page import load_gaps
from service.catalog.shipped import list_shipped_documents
from service.formats.providers import get_provider_name, load_provider_names

PRICED = [*list_shipped_documents()["offers"], *list_shipped_documents()["token_prices"]]


def test_every_provider_that_the_catalog_names_has_a_name_and_no_other():
    written = json.loads((files("service.formats") / "providers.json").read_bytes())
    named = {row["provider"] for row in [*PRICED, *load_gaps()] if "provider" in row}
    assert [row["id"] for row in written] == sorted(named)
    assert load_provider_names().keys() == {row["id"] for row in written}
    assert all(row["url"].startswith("https://") for row in written)
    assert get_provider_name("gcp") == "Google Cloud"


def test_shipped_prices_are_called_by_the_names_of_their_providers():
    odd = [
        row["name"] for row in PRICED if not row["name"].startswith(f"{get_provider_name(row['provider'])} ")
    ]
    assert odd == []


def test_a_provider_of_a_tenant_is_called_as_the_tenant_writes_it():
    assert get_provider_name("GCP, our account") == "GCP, our account"
