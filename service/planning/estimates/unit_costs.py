"""Costs of a request and of a million tokens: shares of the same total."""

from typing import NamedTuple

from service.planning.cost import apportion_by_tokens
from service.planning.cost.charges import REQUEST_PRICE_DIGITS, CurrencyCharges, Money
from service.planning.estimates.runs import ForwardPassRun, Run, ServingRun, TrainingRun
from service.planning.estimates.serving import ServingEstimate
from service.planning.inference import ServingTime
from service.planning.quantity import scaled


class UnitCosts(NamedTuple):
    """Shares of a total; a member is None where the run has no such unit."""

    request: Money | None = None
    million_tokens: Money | None = None
    million_input_tokens: Money | None = None
    million_output_tokens: Money | None = None


def estimate_unit_costs(run: Run, total: CurrencyCharges) -> UnitCosts:
    """Returns the unit costs of a run whose total cost is ``total``."""
    found = UnitCosts()
    if not isinstance(run, TrainingRun):
        found = _share_by_request(run, total)
    if run.tokens:
        return found._replace(million_tokens=total.per_million(run.tokens))
    detail = "the run neither trains on tokens nor generates any"
    run.notes.add_gap("/cost_per_million_tokens", "NO_TOKENS", detail)
    return found


def _share_by_request(run: ServingRun | ForwardPassRun, total: CurrencyCharges) -> UnitCosts:
    requests, case = run.requests, run.case
    server = run.passing if isinstance(run, ForwardPassRun) else run.serving
    if requests is None or server is None:
        return UnitCosts()
    found = UnitCosts(total.per(requests, digits=REQUEST_PRICE_DIGITS))
    if isinstance(run, ForwardPassRun) or run.serving is None:
        return found
    inputs, outputs = case.prompt_tokens, case.workload.output_tokens
    input_share, output_share = apportion_by_tokens(_find_prefill_share(run.serving), inputs, outputs)
    if inputs:
        tokens = scaled(requests, inputs)
        found = found._replace(million_input_tokens=total.per(tokens, 1_000_000, input_share * inputs))
    if outputs:
        tokens = scaled(requests, outputs)
        found = found._replace(million_output_tokens=total.per(tokens, 1_000_000, output_share * outputs))
    return found


def _find_prefill_share(server: ServingEstimate | ServingTime) -> float:
    """Returns the share of the devices' busy time in which prompts are computed."""
    if isinstance(server, ServingEstimate):
        return server.served.prefill_share
    seconds = [phase.seconds.value for phase in server.phases]
    return seconds[0] / sum(seconds)
