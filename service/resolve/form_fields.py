"""Fields of forms: label, unit, example and pointer in the request, and those that several forms share."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from service.planning.precision import TrainingPrecision
from service.resolve.titles import CatalogRows

FieldKind = Literal["number", "whole", "money", "name", "choice", "code", "start", "config"]
FieldOptions = tuple[tuple[str, str], ...]
WORKLOAD, CURRENCY = "workload", "currency_code"
TRAINING, SERVING = "training", "inference"
WORKLOADS: Final[FieldOptions] = ((SERVING, "Serve it"), (TRAINING, "Train it"))
ENGINES: Final = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers")
WEIGHT_PRECISIONS: Final = ("fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4")


class FormField(NamedTuple):
    """A field. ``pointer`` is its place in the request, or empty if it only selects other fields."""

    name: str
    label: str
    pointer: str
    unit: str = ""
    example: str = ""
    hint: str = ""
    kind: FieldKind = "number"
    times: Decimal = Decimal(1)
    """Factor for a typed number."""
    rows: CatalogRows | None = None
    """Catalog rows to choose from."""
    member: str = ""
    """Member of the catalog's offers whose values are the choices."""
    options: FieldOptions = ()
    """Further choices."""
    nothing: str = ""
    """Label of an empty choice."""
    since: str = "memory"
    """Narrowest estimate that depends on the field."""
    needed_since: str = ""
    """Narrowest estimate that needs the field."""

    @property
    def id(self) -> str:
        """Id of the control in the page."""
        return f"field-{self.name}"


class FieldGroup(NamedTuple):
    """A group of fields. A group of a choice applies only to some of its values."""

    title: str
    fields: tuple[FormField, ...]
    of: str = ""
    """Name of the field with the choice."""
    when: frozenset[str] = frozenset()
    """Values of that field for which the group applies."""
    hint: str = ""
    is_first: bool = False
    """True if the group is shown before the others, which are folded."""


def build_plain_options(values: Iterable[str]) -> FieldOptions:
    """Returns choices whose labels are their values."""
    return tuple((value, value) for value in values)


CONCURRENCY: Final = FormField(
    "concurrency",
    "Users",
    "/workload/concurrency",
    unit="requests at a time",
    example="16",
    kind="whole",
)
INPUT_TOKENS: Final = FormField(
    "input_tokens",
    "Length of a prompt",
    "/workload/input_tokens",
    unit="tokens",
    example="1000",
    kind="whole",
)
OUTPUT_TOKENS: Final = FormField(
    "output_tokens",
    "Length of an answer",
    "/workload/output_tokens",
    unit="tokens",
    example="250",
    kind="whole",
)
REQUESTS_PER_SECOND: Final = FormField(
    "requests_per_second",
    "Requests",
    "/workload/request_rate_per_second",
    unit="per second",
    example="2",
    hint="Replaces the number of users.",
)
SERVICE_DAYS: Final = FormField(
    "days",
    "Time of service",
    "/workload/horizon/duration_seconds",
    unit="days",
    example="30",
    times=Decimal(86400),
    since="cost",
    needed_since="cost",
)
FIRST_TOKEN_SECONDS: Final = FormField(
    "first_token_seconds",
    "Longest time to the first token",
    "/workload/service_levels/time_to_first_token_seconds",
    unit="seconds",
    example="1",
    since="throughput",
)
OUTPUT_TOKEN_MILLISECONDS: Final = FormField(
    "output_token_milliseconds",
    "Longest time per token",
    "/workload/service_levels/time_per_output_token_seconds",
    unit="milliseconds",
    example="50",
    times=Decimal("0.001"),
    since="throughput",
)
WEIGHT_PRECISION: Final = FormField(
    "weight_precision",
    "Precision of the weights",
    "/workload/weight_precision",
    kind="choice",
    options=build_plain_options(WEIGHT_PRECISIONS),
    nothing="as published",
)
SERVING_ENGINE: Final = FormField(
    "engine",
    "Serving engine",
    "/workload/engine/name",
    kind="choice",
    options=build_plain_options(ENGINES),
    nothing="the usual one for the model",
)
TOTAL_TOKENS_BILLIONS: Final = FormField(
    "total_tokens_billions",
    "Tokens to train on",
    "/workload/total_tokens",
    unit="billions",
    example="10",
    kind="whole",
    times=Decimal(10**9),
    since="throughput",
    needed_since="cost",
)
SEQUENCE_LENGTH: Final = FormField(
    "sequence_length",
    "Length of a sequence",
    "/workload/sequence_length",
    unit="tokens",
    example="4096",
    kind="whole",
)
ADAPTATION: Final = FormField(
    "adaptation",
    "Trained parameters",
    "/workload/adaptation/kind",
    kind="choice",
    options=(("lora", "adapters (LoRA)"), ("qlora", "adapters on 4-bit weights (QLoRA)")),
    nothing="all",
)
TRAINING_PRECISION: Final = FormField(
    "precision",
    "Precision of training",
    "/workload/precision",
    kind="choice",
    options=build_plain_options(tuple(TrainingPrecision)),
    nothing="the best that the devices support",
)
GRID_ZONE: Final = FormField(
    "grid",
    "Grid zone",
    "/site/grid_id",
    kind="choice",
    rows="grids",
    nothing="that of the site, if it has one",
)
