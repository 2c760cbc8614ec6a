"""Rows of the catalog, as examples write them and as the service answers."""

import json
from typing import Any, Final

from service.catalog.grids.schemas import GridImport
from service.catalog.grids.service import read_table
from service.catalog.models.schemas import ModelImport
from service.catalog.models.service import read_config
from service.catalog.nouns import GRIDS, MODELS, NOUNS, TARIFFS
from service.catalog.offers import importing
from service.catalog.offers.schemas import ImportedOffers, OfferImport
from service.catalog.rows import Document, Noun
from service.catalog.service import Imported
from service.catalog.shipped import shipped_documents
from service.catalog.tariffs.schemas import RateImport
from service.catalog.tariffs.service import exported, read_rate
from service.catalog.token_prices import importing as token_price_importing
from service.catalog.token_prices.schemas import ImportedTokenPrices, TokenPriceImport
from service.schemas.tariffs import TariffTerms

WRITTEN_AT: Final = "2026-11-20T12:00:00Z"
_SOURCES: Final = [{"pointers": [""], "citation": "Quotation of the provider", "as_of": "2026-11-20"}]
_TARIFF: Final[dict[str, Any]] = {
    "id": "example-large-power",
    "name": "Example Utility, large power by time of use",
    "utility": "Example Utility",
    "currency_code": "USD",
    "time_zone": "America/Los_Angeles",
    "holidays": ["2026-12-25"],
    "revisions": [
        {
            "effective_from": "2026-01-01",
            "charges": [
                {"kind": "fixed", "name": "customer", "price": "1200", "per": "month"},
                {
                    "kind": "energy",
                    "name": "energy",
                    "periods": [
                        {
                            "name": "peak",
                            "tiers": [{"price": "0.16"}],
                            "windows": [
                                {
                                    "weekdays": [1, 2, 3, 4, 5],
                                    "from_time": "16:00",
                                    "to_time": "21:00",
                                    "holidays": "excluded",
                                }
                            ],
                        },
                        {
                            "name": "off_peak",
                            "tiers": [{"price": "0.09"}],
                            "windows": [
                                {"weekdays": [1, 2, 3, 4, 5], "from_time": "00:00", "to_time": "16:00"},
                                {"weekdays": [1, 2, 3, 4, 5], "from_time": "21:00", "to_time": "24:00"},
                                {"weekdays": [6, 7], "holidays": "included"},
                            ],
                        },
                    ],
                },
                {
                    "kind": "demand",
                    "name": "demand",
                    "window_minutes": 15,
                    "periods": [{"name": "all_hours", "tiers": [{"price": "21.5", "unit": "kw"}]}],
                    "billing_demand": {
                        "ratchets": [{"share_by_peak_month": [0.5] * 12, "preceding_months": 11}]
                    },
                },
                {"kind": "percentage", "name": "state tax", "percent": "2.9", "tax": True},
            ],
        }
    ],
    "sources": _SOURCES,
}
"""Energy by time of use, demand with a ratchet, a customer charge and a tax."""
TERMS: Final = {name: _TARIFF[name] for name in TariffTerms.model_fields if name in _TARIFF}
_RATE: Final[dict[str, Any]] = {
    "utility": "Example Utility",
    "name": "Large power by time of use",
    "startdate": 1767225600,
    "fixedchargefirstmeter": 1200,
    "fixedchargeunits": "$/month",
    "energyratestructure": [[{"rate": 0.09, "unit": "kWh"}], [{"rate": 0.16, "unit": "kWh"}]],
    "energyweekdayschedule": [[0] * 16 + [1] * 5 + [0] * 3] * 12,
    "energyweekendschedule": [[0] * 24] * 12,
    "flatdemandstructure": [[{"rate": 21.5}]],
    "flatdemandmonths": [0] * 12,
    "flatdemandunit": "kW",
    "x_power_quality_rider": 3,
}
"""A rate as the database writes it, with a key that nothing explains."""
_WRITTEN: Final[dict[str, dict[str, Any]]] = {
    "create_offer": {
        "id": "example-cloud-h100-8x",
        "name": "Example Cloud, 8 x H100",
        "provider": "example-cloud",
        "region": "eu-north-1",
        "accelerator_id": "h100-sxm",
        "accelerator_count": 8,
        "purchase_option": "reserved",
        "price_per_instance_hour": {"amount": "19.92", "currency_code": "USD"},
        "as_of": "2026-11-20",
        "sources": _SOURCES,
    },
    "update_offer": {
        "price_per_instance_hour": {"amount": "18.80", "currency_code": "USD"},
        "as_of": "2026-11-21",
    },
    "import_offers": {
        "format": "gpuhunt",
        "content": (
            "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size\n"
            "gpu-8x-h200,eu-north-1,28.4,128,1600,8,H200,141,False,\n"
            "gpu-8x-h200,eu-north-1,31.2,128,1600,8,H200,141,True,\n"
            "cpu-32,eu-north-1,0.79,32,128,0,,,False,\n"
        ),
        "provider": "example-cloud",
        "as_of": "2026-11-20",
        "source": {"citation": "Price list of Example Cloud, as sent on 20 November 2026"},
    },
    "create_token_price": {
        "id": "example-cloud-example-decoder",
        "name": "Example Cloud, example decoder",
        "provider": "example-cloud",
        "model_name": "example/decoder",
        "model_id": "llama-3.3-70b",
        "input_price_per_million_tokens": {"amount": "0.59", "currency_code": "USD"},
        "output_price_per_million_tokens": {"amount": "0.79", "currency_code": "USD"},
        "as_of": "2026-11-20",
        "sources": _SOURCES,
    },
    "update_token_price": {
        "output_price_per_million_tokens": {"amount": "0.75", "currency_code": "USD"},
        "as_of": "2026-11-21",
    },
    "import_token_prices": {
        "format": "litellm",
        "content": (
            '{"example/decoder-large": {"litellm_provider": "example", "mode": "chat", '
            '"input_cost_per_token": 5.9e-07, "output_cost_per_token": 7.9e-07}, '
            '"example/painter": {"litellm_provider": "example", "mode": "image_generation", '
            '"output_cost_per_image": 0.04}}'
        ),
        "as_of": "2026-11-20",
        "source": {"citation": "Example list of token prices, 20 November 2026"},
    },
    "create_accelerator": {
        "id": "example-96gb",
        "name": "Example 96GB",
        "vendor": "example",
        "memory_label_gb": 96.0,
        "memory_bandwidth_bytes_per_second": 4e12,
        "peak_flops_per_second": {"bf16": 5e14},
        "power_limit_watts": 600.0,
        "sources": _SOURCES,
    },
    "update_accelerator": {"power_limit_watts": 550.0},
    "create_link": {
        "id": "example-fabric",
        "name": "Example fabric",
        "kind": "ethernet",
        "scope": "inter_node",
        "bandwidth_bytes_per_second": 5e10,
        "sources": _SOURCES,
    },
    "update_link": {"latency_seconds": 5e-6},
    "create_model": {
        "id": "example-decoder",
        "name": "Example decoder",
        "architecture": {
            "embeddings": {"size": 1024, "vocabulary_size": 32000},
            "layers": [
                {
                    "kind": "block",
                    "count": 24,
                    "layers": [
                        {"kind": "normalization", "size": 1024},
                        {
                            "kind": "attention",
                            "hidden_size": 1024,
                            "query_heads": 16,
                            "key_value_heads": 4,
                            "head_size": 64,
                        },
                        {"kind": "normalization", "size": 1024},
                        {"kind": "feed_forward", "hidden_size": 1024, "inner_size": 2816, "gated": True},
                    ],
                },
                {"kind": "normalization", "size": 1024},
            ],
            "heads": [{"kind": "language_model", "input_size": 1024, "output_size": 32000}],
        },
        "context_tokens": 8192,
        "sources": _SOURCES,
    },
    "update_model": {"context_tokens": 16384},
    "import_model": {
        "id": "example-imported",
        "name": "Example, imported",
        "config": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "num_hidden_layers": 22,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "vocab_size": 32000,
            "max_position_embeddings": 2048,
        },
        "sources": _SOURCES,
    },
    "create_grid": {
        "id": "example-grid",
        "name": "Example grid",
        "code": "EX",
        "kind": "other",
        "carbon_intensity_kg_co2e_per_kwh": 0.2,
        "accounting": "generation",
        "sources": _SOURCES,
    },
    "update_grid": {"carbon_intensity_kg_co2e_per_kwh": 0.19},
    "import_grid": {
        "id": "example-marginal",
        "name": "Example region, marginal",
        "code": "CA",
        "kind": "other",
        "format": "avert_csv",
        "content": "Month,Timestamp,CA\n1,0,1.11\n1,1,0.94\n",
        "time_zone": "America/Los_Angeles",
        "data_year": 2023,
        "sources": _SOURCES,
    },
    "create_tariff": _TARIFF,
    "update_tariff": {"holidays": ["2026-12-25", "2027-01-01"]},
    "import_tariff": {
        "format": "urdb_json",
        "id": "example-imported-rate",
        "name": "Example, imported",
        "time_zone": "America/Los_Angeles",
        "urdb": _RATE,
        "excluded_keys": ["x_power_quality_rider"],
        "sources": _SOURCES,
    },
    "create_exchange_rate": {
        "id": "example-eur-usd-2026-11-20",
        "name": "Example rate, euro in US dollars",
        "from_currency_code": "EUR",
        "to_currency_code": "USD",
        "rate": "1.1512",
        "as_of": "2026-11-20",
        "sources": _SOURCES,
    },
    "update_exchange_rate": {"rate": "1.1521"},
    "create_site": {
        "id": "example-site",
        "name": "Example site",
        "pue": 1.2,
        "grid_id": "egrid-us-rfce",
        "time_zone": "America/New_York",
        "sources": _SOURCES,
    },
    "update_site": {"pue": 1.18},
}
_COPIED = ("offer", "token_price", "accelerator", "link", "model", "tariff", "exchange_rate", "grid", "site")
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    **_WRITTEN,
    **{f"copy_{noun}": {"id": f"{_WRITTEN[f'create_{noun}']['id']}-copy"} for noun in _COPIED},
}


def answers() -> dict[str, Any]:
    """What is answered of a row that is written, read, changed and copied, and of lists that are imported."""
    answered: dict[str, Any] = {}
    for noun in NOUNS.values():
        singular = noun.singular
        sent = EXAMPLES[f"create_{singular}"]
        created = _row(noun, _complete(noun, sent), version=1)
        changed = _complete(noun, {**sent, **EXAMPLES[f"update_{singular}"]})
        copied = _complete(noun, {**sent, **EXAMPLES[f"copy_{singular}"], "aliases": []})
        answered |= {
            f"list_{noun.name}": {"items": [created], "next_page_token": None},
            f"create_{singular}": created,
            f"get_{singular}": created,
            f"update_{singular}": _row(noun, changed, version=2),
            f"copy_{singular}": _row(noun, copied, version=1),
        }
    imported = read_config(ModelImport.model_validate(EXAMPLES["import_model"]))
    table = read_table(GridImport.model_validate(EXAMPLES["import_grid"]))
    rate = read_rate(RateImport.model_validate(EXAMPLES["import_tariff"]))
    return answered | {
        "import_model": imported.answer(_row(MODELS, imported.document, version=1)),
        "import_grid": table.answer(_row(GRIDS, table.document, version=1)),
        "import_offers": _imported_offers(),
        "import_token_prices": _imported_token_prices(),
        "import_tariff": rate.answer(_row(TARIFFS, rate.document, version=1)),
        "export_tariff": exported(answered["create_tariff"], ""),
    }


def _imported_offers() -> ImportedOffers:
    """What becomes of the rows of a price list in a catalog that has none of them."""
    body = OfferImport.model_validate(EXAMPLES["import_offers"])
    listed = importing.read_list(body, body.content, importing.by_name(shipped_documents()["accelerators"]))
    created = [offer.id for offer in listed.offers]
    return importing.answer(listed, Imported(created, [], [], [], [], revision=2))


def _imported_token_prices() -> ImportedTokenPrices:
    """What becomes of the models of a list of token prices in a catalog that has none of them."""
    body = TokenPriceImport.model_validate(EXAMPLES["import_token_prices"])
    listed = token_price_importing.read_list(body, {})
    created = [price.id for price in listed.prices]
    return token_price_importing.answer(listed, Imported(created, [], [], [], [], revision=2))


def _complete(noun: Noun, sent: Document) -> Document:
    """A row as sent, with the members that were left out at their defaults."""
    return noun.created.model_validate_json(json.dumps(sent)).model_dump(mode="json")


def _row(noun: Noun, document: Document, *, version: int) -> Document:
    added = {"version": version, "revision": version + 1, "origin": "tenant", "created_at": WRITTEN_AT}
    return {**document, **noun.derived(document), **added}
