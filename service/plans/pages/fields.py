"""Fields of the form of a plan: label, unit, example, and pointer in the request."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from service.kit.http.html import Form
from service.plans.words import GOALS
from service.resolve.form_fields import (
    ADAPTATION,
    CONCURRENCY,
    CURRENCY,
    FIRST_TOKEN_SECONDS,
    GRID_ZONE,
    INPUT_TOKENS,
    OUTPUT_TOKEN_MILLISECONDS,
    OUTPUT_TOKENS,
    REQUESTS_PER_SECOND,
    SEQUENCE_LENGTH,
    SERVICE_DAYS,
    SERVING,
    SERVING_ENGINE,
    TOTAL_TOKENS_BILLIONS,
    TRAINING,
    TRAINING_PRECISION,
    WEIGHT_PRECISION,
    WORKLOAD,
    FieldGroup,
    FieldOptions,
    FormField,
)
from service.resolve.forms import list_number_fields

GOAL = "goal"
CANDIDATES: Final = ("accelerator", "accelerator_2", "accelerator_3", "accelerator_4")
"""Fields of the accelerators to search."""
GOAL_OPTIONS: Final[FieldOptions] = tuple(GOALS.items())
_DAY: Final = Decimal(86400)
_PURCHASE_OPTIONS: Final = (
    ("on_demand", "on demand"),
    ("spot", "spot"),
    ("reserved", "reserved"),
    ("committed", "committed"),
    ("capacity_block", "capacity block"),
)


MODEL: Final = FieldGroup(
    "Model",
    (
        FormField(
            "model",
            "Model",
            "/model/id",
            example="Llama 3.1 8B or meta-llama/Llama-3.1-8B",
            kind="name",
            rows="models",
        ),
    ),
    is_first=True,
)
SERVED: Final = FieldGroup(
    "Service",
    (
        CONCURRENCY,
        SERVICE_DAYS,
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        FIRST_TOKEN_SECONDS,
        OUTPUT_TOKEN_MILLISECONDS,
    ),
    WORKLOAD,
    frozenset({SERVING}),
    is_first=True,
)
TRAINED: Final = FieldGroup(
    "Training run",
    (
        TOTAL_TOKENS_BILLIONS,
        SEQUENCE_LENGTH,
        FormField(
            "global_batch_size",
            "Batch of a step",
            "/workload/global_batch_size",
            "sequences",
            example="256",
            kind="whole",
        ),
        FormField(
            "deadline_days",
            "Deadline",
            "/constraints/duration_seconds",
            "days from the start",
            example="14",
            times=_DAY,
        ),
    ),
    WORKLOAD,
    frozenset({TRAINING}),
    is_first=True,
)
MONEY: Final = FieldGroup(
    "Budget",
    (
        FormField("budget", "Budget", "/constraints/budget", "for all of it", example="50000", kind="money"),
        FormField(
            CURRENCY, "Currency", "/currency_code", "code of three letters", example="USD", kind="code"
        ),
    ),
    is_first=True,
)
HARDWARE: Final = FieldGroup(
    "Hardware to consider",
    (
        *(
            FormField(
                name,
                f"Accelerator {place}",
                f"/search/accelerators/{place - 1}",
                example="H100 SXM" if place == 1 else "",
                kind="name",
                rows="accelerators",
            )
            for place, name in enumerate(CANDIDATES, 1)
        ),
        FormField(
            "accelerator_count",
            "At most",
            "/constraints/accelerator_count",
            "accelerators in all",
            example="64",
            kind="whole",
        ),
    ),
    hint="Leave all empty to consider every accelerator that the catalog has an offer of.",
    is_first=True,
)
MORE_SERVED: Final = FieldGroup(
    "More about the service",
    (
        REQUESTS_PER_SECOND,
        FormField(
            "request_seconds",
            "Longest time of a request",
            "/workload/service_levels/request_seconds",
            "seconds",
            example="30",
            hint="Give a long one for work that nobody waits for.",
        ),
        WEIGHT_PRECISION,
        SERVING_ENGINE,
    ),
    WORKLOAD,
    frozenset({SERVING}),
)
MORE_TRAINED: Final = FieldGroup(
    "More about the training run",
    (
        ADAPTATION,
        TRAINING_PRECISION,
    ),
    WORKLOAD,
    frozenset({TRAINING}),
)
LIMITS: Final = FieldGroup(
    "Offers and limits",
    (
        FormField(
            "provider",
            "Provider",
            "/constraints/providers/0",
            kind="choice",
            member="provider",
            nothing="any provider",
        ),
        FormField(
            "region", "Region", "/constraints/regions/0", kind="choice", member="region", nothing="any region"
        ),
        FormField(
            "purchase_option",
            "Purchase option",
            "/constraints/purchase_options/0",
            kind="choice",
            options=_PURCHASE_OPTIONS,
            nothing="any",
        ),
        FormField(
            "headroom_percent",
            "Memory to leave free",
            "/constraints/headroom_share",
            "%",
            example="10",
            times=Decimal("0.01"),
        ),
        FormField(
            "most_emissions",
            "Most emissions",
            "/constraints/location_based_kg_co2e",
            "kg CO₂e",
            example="2000",
        ),
    ),
)
OWNED: Final = FieldGroup(
    "Machines of your own",
    (
        FormField(
            "own_accelerator",
            "Accelerator",
            "/owned/0/cluster/accelerator/id",
            example="H100 SXM",
            kind="name",
            rows="accelerators",
        ),
        FormField(
            "own_count",
            "Number",
            "/owned/0/cluster/accelerator_count",
            "accelerators",
            example="16",
            kind="whole",
        ),
        FormField(
            "own_price_per_kwh",
            "Electricity",
            "/owned/0/site/electricity/price_per_kwh",
            "per kWh",
            example="0.12",
            kind="money",
        ),
        FormField(
            "own_pue", "PUE of the building", "/owned/0/site/pue", "facility over IT energy", example="1.3"
        ),
        FormField(
            "own_price_per_device",
            "Price of one device",
            "/owned/0/purchase/price_per_device",
            "once",
            example="30000",
            hint="The run then bears its share of it. Without it, only electricity counts.",
            kind="money",
        ),
        FormField(
            "own_years",
            "Use of the devices",
            "/owned/0/purchase/ownership/years",
            "years",
            example="4",
            hint="Period of depreciation.",
        ),
    ),
)
RENTED: Final = FieldGroup(
    "Devices at a price of your own",
    (
        FormField(
            "rented_accelerator",
            "Accelerator",
            "/rented/0/cluster/accelerator/id",
            example="H200 SXM",
            kind="name",
            rows="accelerators",
        ),
        FormField(
            "rented_count",
            "At most",
            "/rented/0/cluster/accelerator_count",
            "accelerators",
            example="64",
            kind="whole",
        ),
        FormField(
            "rented_price",
            "Rent of one device",
            "/rented/0/rental/price_per_device_hour",
            "per hour",
            example="2.10",
            kind="money",
        ),
        FormField(
            "offers",
            "Offers of the catalog",
            "/search/offers",
            kind="choice",
            options=(("no", "leave them out"),),
            nothing="consider them too",
        ),
    ),
)
SITE: Final = FieldGroup(
    "Building of rented devices",
    (
        FormField("site", "Site", "/site/site_id", kind="choice", rows="sites", nothing="not known"),
        GRID_ZONE,
    ),
    hint="For energy and emissions. The provider pays for the electricity.",
)
OTHER_MODEL: Final = FieldGroup(
    "Model outside of the catalog",
    (
        FormField(
            "config",
            "The model's config.json",
            "/model/config",
            example='{"model_type": "llama", "hidden_size": 4096, ...}',
            hint="Paste the published file. It replaces the model.",
            kind="config",
        ),
    ),
)
GROUPS: Final = (
    *(MODEL, SERVED, TRAINED, HARDWARE, MONEY),
    *(MORE_SERVED, MORE_TRAINED, LIMITS, OWNED, RENTED, SITE, OTHER_MODEL),
)
FIELDS: Final[Mapping[str, FormField]] = {field.name: field for group in GROUPS for field in group.fields}
NUMBER_FIELDS: Final = list_number_fields(FIELDS)
FIELD_NAMES: Final = (WORKLOAD, GOAL, *FIELDS)
LABELS: Final[Mapping[str, str]] = {
    **{name: field.label for name, field in FIELDS.items()},
    WORKLOAD: "Work",
    GOAL: "Goal",
    "own_accelerator": "Accelerator of your own",
    "own_count": "Number of your own",
    "rented_accelerator": "Accelerator at your price",
    "rented_count": "Most at your price",
}
IN_PLACE_OF: Final[Mapping[str, str]] = {"model": "config", "concurrency": "requests_per_second"}
"""Fields that other fields replace."""
AT_FIRST: Final[Form] = {
    WORKLOAD: SERVING,
    GOAL: "cheapest",
    "concurrency": "16",
    "input_tokens": "1000",
    "output_tokens": "250",
    "days": "30",
    "total_tokens_billions": "10",
    "sequence_length": "4096",
    "global_batch_size": "256",
    CURRENCY: "USD",
    "site": "uptime-average-2023",
    "grid": "egrid-us",
}
"""Initial values of the form."""
PLACES: Final[Mapping[str, str]] = {
    **{field.pointer: name for name, field in FIELDS.items()},
    "/model": "model",
    "/workload": WORKLOAD,
    "/workload/kind": WORKLOAD,
    "/workload/horizon": "days",
    "/workload/service_levels": "first_token_seconds",
    "/workload/micro_batch_size": "global_batch_size",
    "/goal": GOAL,
    "/constraints/budget/currency_code": CURRENCY,
    "/constraints/providers": "provider",
    "/constraints/regions": "region",
    "/constraints/purchase_options": "purchase_option",
    "/search/accelerators": CANDIDATES[0],
    "/search/accelerator_counts": "accelerator_count",
    "/owned": "own_accelerator",
    "/owned/0/site": "own_price_per_kwh",
    "/owned/0/purchase": "own_price_per_device",
    "/rented": "rented_accelerator",
    "/rented/0/rental": "rented_price",
    "/site": "site",
}
"""Field for each place of the request."""
