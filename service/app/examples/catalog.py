"""Example rows of the catalog, as requests and as answers."""

import json
from typing import Any, Final

from service.catalog.grids.schemas import GridImportRequest
from service.catalog.grids.service import read_table
from service.catalog.imports import ImportResult
from service.catalog.models.schemas import ModelImportRequest
from service.catalog.models.service import read_config
from service.catalog.offers import importing
from service.catalog.offers.schemas import ImportedOffers, OfferImportRequest
from service.catalog.registry import GRIDS, KINDS, MODELS, TARIFFS, Resource
from service.catalog.rows import EXAMPLE_SOURCES, RowDocument
from service.catalog.shipped import list_shipped_documents
from service.catalog.tariffs.schemas import UrdbTariffImportRequest
from service.catalog.tariffs.service import export_rate, read_rate
from service.catalog.token_prices import importing as token_price_importing
from service.catalog.token_prices.schemas import ImportedTokenPrices, TokenPriceImportRequest
from service.schemas.tariffs import TariffTerms

WRITTEN_AT: Final = "2026-11-20T12:00:00Z"
TERMS: Final = {name: TARIFFS.example[name] for name in TariffTerms.model_fields if name in TARIFFS.example}
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
"""A rate as the database writes it, with one undocumented key."""
_IMPORTED: Final[dict[str, dict[str, Any]]] = {
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
        "sources": EXAMPLE_SOURCES,
    },
    "import_grid": {
        "id": "example-marginal",
        "name": "Example region, marginal",
        "code": "CA",
        "kind": "other",
        "format": "avert_csv",
        "content": "Month,Timestamp,CA\n1,0,1.11\n1,1,0.94\n",
        "time_zone": "America/Los_Angeles",
        "data_year": 2023,
        "sources": EXAMPLE_SOURCES,
    },
    "import_tariff": {
        "format": "urdb_json",
        "id": "example-imported-rate",
        "name": "Example, imported",
        "time_zone": "America/Los_Angeles",
        "urdb": _RATE,
        "excluded_keys": ["x_power_quality_rider"],
        "sources": EXAMPLE_SOURCES,
    },
}
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    **_IMPORTED,
    **{f"create_{kind}": resource.example for kind, resource in KINDS.items()},
    **{f"update_{kind}": resource.example_patch for kind, resource in KINDS.items()},
    **{f"copy_{kind}": {"id": f"{resource.example['id']}-copy"} for kind, resource in KINDS.items()},
}


def build_answers() -> dict[str, Any]:
    """Returns the answers of writing, reading, changing and copying a row, and of importing lists."""
    answered: dict[str, Any] = {}
    for kind, resource in KINDS.items():
        sent = resource.example
        created = _build_row(resource, _fill_defaults(resource, sent), version=1)
        changed = _fill_defaults(resource, {**sent, **resource.example_patch})
        copied = _fill_defaults(resource, {**sent, **EXAMPLES[f"copy_{kind}"], "aliases": []})
        answered |= {
            f"list_{resource.name}": {"items": [created], "next_page_token": None},
            f"create_{kind}": created,
            f"get_{kind}": created,
            f"update_{kind}": _build_row(resource, changed, version=2),
            f"copy_{kind}": _build_row(resource, copied, version=1),
        }
    imported = read_config(ModelImportRequest.model_validate(EXAMPLES["import_model"]))
    table = read_table(GridImportRequest.model_validate(EXAMPLES["import_grid"]))
    rate = read_rate(UrdbTariffImportRequest.model_validate(EXAMPLES["import_tariff"]))
    return answered | {
        "import_model": imported.to_response(_build_row(MODELS, imported.document, version=1)),
        "import_grid": table.to_response(_build_row(GRIDS, table.document, version=1)),
        "import_offers": _build_imported_offers(),
        "import_token_prices": _build_imported_token_prices(),
        "import_tariff": rate.to_response(_build_row(TARIFFS, rate.document, version=1)),
        "export_tariff": export_rate(answered["create_tariff"], ""),
    }


def _build_imported_offers() -> ImportedOffers:
    """Returns the answer of a price list in a catalog that has none of its rows."""
    body = OfferImportRequest.model_validate(EXAMPLES["import_offers"])
    listed = importing.read_list(
        body, body.content, importing.index_by_name(list_shipped_documents()["accelerators"])
    )
    created = [offer.id for offer in listed.offers]
    return importing.to_response(listed, ImportResult(created, [], [], [], [], revision=2))


def _build_imported_token_prices() -> ImportedTokenPrices:
    """Returns the answer of a list of token prices in a catalog that has none of its models."""
    body = TokenPriceImportRequest.model_validate(EXAMPLES["import_token_prices"])
    listed = token_price_importing.read_list(body, {})
    created = [price.id for price in listed.prices]
    return token_price_importing.to_response(listed, ImportResult(created, [], [], [], [], revision=2))


def _fill_defaults(resource: Resource, sent: RowDocument) -> RowDocument:
    """Returns a row as sent, with the defaults of members that were left out."""
    return resource.input.model_validate_json(json.dumps(sent)).model_dump(mode="json")


def _build_row(resource: Resource, document: RowDocument, *, version: int) -> RowDocument:
    added = {"version": version, "revision": version + 1, "origin": "tenant", "created_at": WRITTEN_AT}
    return {**document, **resource.derive(document), **added}
