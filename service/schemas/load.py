"""Load of a server in requests: lengths, arrivals, service levels, speculative decoding and the solver."""

from typing import Annotated, Literal

from pydantic import MISSING, Discriminator, Field, GetJsonSchemaHandler, Tag
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypeAliasType

from service.planning.estimates.simulation import MOST_SIMULATED
from service.schemas.base import NotNegative, Positive, PositiveInteger, Size, StrictModel
from service.schemas.references import ModelReference

_INT64 = {"format": "int64"}

MOST_LENGTHS = 256
"""Most entries of a histogram."""
MOST_ARRIVALS = 10_000
"""Most arrivals of a trace."""


class FixedLength(StrictModel):
    """Every request has the same length."""

    distribution: Literal["fixed"]
    tokens: Size
    """Tokens of every request."""


class LognormalLength(StrictModel):
    """Log-normally distributed lengths. Give `p95_tokens` or `sigma`."""

    distribution: Literal["lognormal"]
    mean_tokens: Annotated[float, Field(ge=1, le=2**31 - 1)]
    """Mean length before the cut at `most_tokens`."""
    p95_tokens: Annotated[float, Field(ge=1, le=2**31 - 1)] | MISSING = MISSING
    """Length that 95% of the requests do not exceed: from the mean to 3.86 times the mean."""
    sigma: Annotated[float, Field(gt=0, le=3)] | MISSING = MISSING
    """Standard deviation of the logarithm."""
    most_tokens: Size | MISSING = MISSING
    """Length that longer requests are cut to, which lowers the mean."""


class HistogramLength(StrictModel):
    """Lengths by their frequency."""

    distribution: Literal["histogram"]
    tokens: Annotated[list[Size], Field(min_length=1, max_length=MOST_LENGTHS)]
    """Lengths."""
    weights: Annotated[list[NotNegative], Field(min_length=1, max_length=MOST_LENGTHS)]
    """Frequency of each length, in any unit."""


def _get_length_kind(given: object) -> str:
    return "by distribution" if isinstance(given, dict | StrictModel) else "by number"


class _AnyOf:
    """Writes a union as anyOf: some tools do not read a oneOf within a oneOf."""

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        document = handler(schema)
        document["anyOf"] = document.pop("oneOf")
        return document


LengthDistribution = TypeAliasType(
    "LengthDistribution",
    Annotated[FixedLength | LognormalLength | HistogramLength, Field(discriminator="distribution")],
)
LengthInput = Annotated[
    Annotated[Size, Tag("by number")] | Annotated[LengthDistribution, Tag("by distribution")],
    # A problem then names the member of the variant that was meant.
    Discriminator(_get_length_kind),
    _AnyOf(),
]


class PoissonArrivals(StrictModel):
    """Requests that arrive independently of each other."""

    process: Literal["poisson"]


class UniformArrivals(StrictModel):
    """Requests that arrive evenly."""

    process: Literal["uniform"]


class TraceArrivals(StrictModel):
    """Requests that arrive at given times, which set the rate."""

    process: Literal["trace"]
    at_seconds: Annotated[list[NotNegative], Field(min_length=2, max_length=MOST_ARRIVALS)]
    """Arrival times, ascending, over all replicas."""


ArrivalsInput = TypeAliasType(
    "ArrivalsInput",
    Annotated[PoissonArrivals | UniformArrivals | TraceArrivals, Field(discriminator="process")],
)


class ServiceLevelsInput(StrictModel):
    """Limits of a request, at least one of them. Goodput counts the requests that meet all limits."""

    time_to_first_token_seconds: Positive | MISSING = MISSING
    """Longest time from a request to its first token."""
    time_per_output_token_seconds: Positive | MISSING = MISSING
    """Longest mean time from one token of a request to the next."""
    request_seconds: Positive | MISSING = MISSING
    """Longest time from a request to its last token."""
    percentile: Annotated[float, Field(ge=1, le=99.9)] = 90.0
    """Percentage of the requests that must meet the limits."""


class SpeculativeDecodingInput(StrictModel):
    """Speculative decoding: tokens are proposed, then checked in one pass. Give `model` or `method`."""

    model: ModelReference | MISSING = MISSING
    """A smaller model on the same devices that proposes tokens."""
    method: Literal["mtp", "ngram"] | MISSING = MISSING
    """Method that proposes tokens: the model's own multi-token prediction, or n-grams of the text."""
    tokens: Annotated[int, Field(ge=1, le=64, json_schema_extra=_INT64)] | MISSING = MISSING
    """Tokens that are proposed at a time. Defaults to 5, for mtp to 1."""
    acceptance_rate: Annotated[float, Field(ge=0, le=1)] | MISSING = MISSING
    """Probability that a proposed token is accepted if those before it are. Defaults to published rates."""


class AnalyticSolver(StrictModel):
    """Formulas for the steady state."""

    kind: Literal["analytic"]


class SimulatedSolver(StrictModel):
    """A simulation, event by event. Give `duration_seconds` or `requests`."""

    kind: Literal["simulated"]
    seed: Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra=_INT64)] = 0
    """Seed of the simulation. The same seed gives the same answer."""
    duration_seconds: Positive | MISSING = MISSING
    """Time that is simulated, with at most 200,000 requests."""
    requests: Annotated[PositiveInteger, Field(le=MOST_SIMULATED)] | MISSING = MISSING
    """Requests of one replica that are simulated. Defaults to 2,000."""


SolverInput = TypeAliasType(
    "SolverInput", Annotated[AnalyticSolver | SimulatedSolver, Field(discriminator="kind")]
)
