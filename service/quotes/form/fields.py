"""Fields of the form with label, unit, example and pointer in the question."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from service.kit.http.html import Form
from service.quotes.snapshot import QUESTIONS
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
    build_plain_options,
)
from service.resolve.forms import list_number_fields
from service.schemas.workloads import WeightFormatName

QUESTION, SUPPLY = "question", "supply"
RENTED, OWNED, BOTH = "rented", "owned", "both"
ASKED: Final[FieldOptions] = (
    ("utility_bill", "All four: memory, speed, cost and utility bill"),
    ("cost", "Does it fit, how fast is it, what does it cost?"),
    ("throughput", "Does it fit, and how fast is it?"),
    ("memory", "Does it fit?"),
)
"""Questions by the name of their estimate. Each includes those after it."""


MODEL = FieldGroup(
    "Model",
    (
        FormField(
            "model",
            "Model",
            "/model/id",
            example="Llama 3.1 70B or meta-llama/Llama-3.1-70B",
            kind="name",
            rows="models",
        ),
    ),
    is_first=True,
)
DEVICES = FieldGroup(
    "Hardware",
    (
        FormField(
            "accelerator_count",
            "Number",
            "/cluster/accelerator_count",
            unit="of accelerators or instances",
            example="4",
            kind="whole",
            needed_since="throughput",
        ),
        FormField(
            "accelerator",
            "Accelerator or instance",
            "/cluster/accelerator/id",
            example="H100 SXM, or p5.48xlarge",
            kind="name",
            rows="accelerators",
            needed_since="throughput",
        ),
    ),
    is_first=True,
)
SERVED = FieldGroup(
    "Serving",
    (
        CONCURRENCY,
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        WEIGHT_PRECISION,
    ),
    WORKLOAD,
    frozenset({SERVING}),
    is_first=True,
)
TRAINED = FieldGroup(
    "Training",
    (
        TOTAL_TOKENS_BILLIONS,
        ADAPTATION,
        SEQUENCE_LENGTH,
        TRAINING_PRECISION,
    ),
    WORKLOAD,
    frozenset({TRAINING}),
    is_first=True,
)
OTHER_MODEL = FieldGroup(
    "Model outside of the catalog",
    (
        FormField(
            "parameters_billions",
            "Parameters",
            "/model/parameter_count",
            unit="billions",
            example="70",
            hint="Replaces the model of the catalog, for a rough answer.",
            kind="whole",
            times=Decimal(10**9),
        ),
        FormField(
            "config",
            "The model's config.json",
            "/model/config",
            example='{"model_type": "llama", "hidden_size": 4096, ...}',
            hint="Paste the published file. It replaces the model and the number of parameters.",
            kind="config",
        ),
    ),
)
EFFICIENCY = FieldGroup(
    "Efficiency",
    (
        FormField(
            "utilization_percent",
            "Utilization",
            "/efficiency/utilization",
            unit="% of the peak rate",
            example="40",
            hint="Defaults to an estimate from measured runs.",
            times=Decimal("0.01"),
            since="throughput",
        ),
    ),
)
MORE_TRAINED = FieldGroup(
    "More about training",
    (
        FormField(
            "global_batch_size",
            "Batch of a step",
            "/workload/global_batch_size",
            unit="sequences",
            example="1024",
            hint="Defaults to that of published runs.",
            kind="whole",
        ),
    ),
    WORKLOAD,
    frozenset({TRAINING}),
)
MORE_SERVED = FieldGroup(
    "More about serving",
    (
        REQUESTS_PER_SECOND,
        SERVICE_DAYS,
        FormField(
            "weight_format",
            "Quantisation of the weights",
            "/workload/weight_format",
            hint="Replaces the precision of the weights.",
            kind="choice",
            options=build_plain_options(tuple(WeightFormatName.__members__)),
            nothing="none",
        ),
        SERVING_ENGINE,
        FIRST_TOKEN_SECONDS,
        OUTPUT_TOKEN_MILLISECONDS,
    ),
    WORKLOAD,
    frozenset({SERVING}),
)
HAD = FieldGroup(
    "Payment for the devices",
    (
        FormField(
            SUPPLY,
            "Rented or owned",
            "",
            kind="choice",
            options=((RENTED, "rented"), (OWNED, "owned"), (BOTH, "both, to compare them")),
            since="cost",
            needed_since="cost",
        ),
        FormField(
            CURRENCY,
            "Currency",
            "/currency_code",
            unit="code of three letters",
            example="USD",
            hint="Currency of all prices on this page and of the totals.",
            kind="code",
        ),
    ),
)
RENT = FieldGroup(
    "Rent",
    (
        FormField(
            "price_per_device_hour",
            "Rent of one device",
            "/rental/price_per_device_hour",
            unit="per hour",
            example="2.50",
            kind="money",
        ),
        FormField(
            "offer",
            "Offer of the catalog",
            "/rental/offer_id",
            kind="choice",
            rows="offers",
            nothing="the cheapest on-demand offer, or the price above",
        ),
    ),
    SUPPLY,
    frozenset({RENTED, BOTH}),
)
OWN = FieldGroup(
    "Purchase",
    (
        FormField(
            "price_per_device",
            "Price of one device",
            "/purchase/price_per_device",
            unit="once",
            example="30000",
            kind="money",
        ),
        FormField(
            "years",
            "Use of the devices",
            "/purchase/ownership/years",
            unit="years",
            example="4",
            hint="Period of depreciation. Without it, only the total price is shown.",
        ),
    ),
    SUPPLY,
    frozenset({OWNED, BOTH}),
)
SITE = FieldGroup(
    "Building and electricity",
    (
        FormField("site", "Site", "/site/site_id", kind="choice", rows="sites", nothing="not in this list"),
        FormField(
            "pue",
            "Power usage effectiveness (PUE)",
            "/site/pue",
            unit="facility over IT energy",
            example="1.2",
            hint="Defaults to that of the site.",
        ),
        FormField(
            "price_per_kwh",
            "Electricity",
            "/site/electricity/price_per_kwh",
            unit="per kWh",
            example="0.12",
            kind="money",
        ),
        FormField(
            "tariff",
            "Tariff",
            "/site/electricity/tariff_id",
            hint="Energy by time of use, demand and fixed charges. Replaces the price of a kWh.",
            kind="choice",
            rows="tariffs",
            nothing="none: the price of a kWh",
        ),
        FormField(
            "time_zone",
            "Clock of the site",
            "/site/time_zone",
            unit="IANA time zone",
            example="Europe/Berlin",
            hint="Required with a tariff. The run starts at midnight on this clock.",
            kind="code",
        ),
        FormField(
            "starts_on",
            "Start of the run",
            "/starts_at",
            unit="day or month",
            example="2027-01-25 or 2027-01",
            hint="Required with a tariff.",
            kind="start",
        ),
        GRID_ZONE,
        FormField(
            "carbon_intensity",
            "Emissions of a kWh",
            "/site/carbon_intensity_kg_co2e_per_kwh",
            unit="kg CO₂e",
            example="0.4",
            hint="Replaces the value of the grid.",
        ),
    ),
)
GROUPS: Final = (
    *(MODEL, DEVICES, SERVED, TRAINED),
    *(MORE_SERVED, MORE_TRAINED, HAD, RENT, OWN, SITE, OTHER_MODEL, EFFICIENCY),
)
FIELDS: Final[Mapping[str, FormField]] = {field.name: field for group in GROUPS for field in group.fields}
NUMBER_FIELDS: Final = list_number_fields(FIELDS)
LABELS: Final[Mapping[str, str]] = {
    **{name: field.label for name, field in FIELDS.items()},
    QUESTION: "Question",
    WORKLOAD: "Workload",
}

AT_FIRST: Final[Form] = {
    QUESTION: "utility_bill",
    "model": "llama-3.1-70b",
    "accelerator": "h100-sxm",
    "accelerator_count": "4",
    WORKLOAD: SERVING,
    "concurrency": "16",
    "input_tokens": "1000",
    "output_tokens": "250",
    "days": "30",
    "total_tokens_billions": "10",
    "sequence_length": "4096",
    SUPPLY: RENTED,
    CURRENCY: "USD",
    "price_per_kwh": "0.12",
    "site": "uptime-average-2023",
    "grid": "egrid-us",
}
"""Initial values of the form."""

PLACES: Final[Mapping[str, str]] = {
    **{field.pointer: name for name, field in FIELDS.items() if field.pointer},
    "/model": "model",
    "/cluster": "accelerator",
    "/cluster/accelerator": "accelerator",
    "/parallelism": "accelerator_count",
    "/efficiency": "utilization_percent",
    "/workload": WORKLOAD,
    "/workload/micro_batch_size": "global_batch_size",
    "/workload/horizon": "days",
    "/rental": "price_per_device_hour",
    "/purchase": "price_per_device",
    "/rental/price_per_device_hour/currency_code": CURRENCY,
    "/purchase/price_per_device/currency_code": CURRENCY,
    "/site": "site",
    "/site/electricity": "price_per_kwh",
    "/site/electricity/price_per_kwh/currency_code": CURRENCY,
}
"""Field for each place of the question."""


def is_relevant_to(field: FormField, question: str) -> bool:
    """Returns true if the answer to a question depends on a field."""
    names = [name for name, _ in ASKED]
    root = field.pointer.partition("/")[2].partition("/")[0]
    has_place = not root or root in QUESTIONS[question].model_fields
    return has_place and names.index(question) <= names.index(field.since)


def is_required_by(field: FormField, question: str) -> bool:
    """Returns true if a question needs a field."""
    names = [name for name, _ in ASKED]
    return bool(field.needed_since) and names.index(question) <= names.index(field.needed_since)
