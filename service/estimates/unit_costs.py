"""What a request and a million of its tokens cost, of a served model."""

from service.estimates.charges import REQUEST_PRICE_DIGITS, Charges
from service.estimates.passes import Passing
from service.estimates.run import Run
from service.estimates.serving import Serving
from service.planning.cost import apportioned
from service.planning.inference import ServingTime
from service.planning.quantity import scaled
from service.planning.workload import InferenceWorkload
from service.schemas.cost_answers import CostAnswer


def prefill_share(server: Serving | ServingTime | Passing) -> float:
    """Share of the busy time of devices in which prompts are computed."""
    if isinstance(server, Passing):
        return 1.0
    if isinstance(server, Serving):
        return server.served.prefill_share
    seconds = [phase.seconds.value for phase in server.phases]
    return seconds[0] / sum(seconds)


def add_unit_costs(answer: CostAnswer, run: Run, charged: Charges) -> None:
    """Costs of a request and of tokens; the same total, shared out in different ways."""
    requests, workload = run.requests, run.resolved.workload
    server = run.passing or run.serving
    if requests is None or server is None:
        return
    assert isinstance(workload, InferenceWorkload)  # noqa: S101
    answer["cost_per_request"] = charged.per(requests, digits=REQUEST_PRICE_DIGITS)
    inputs, outputs = float(workload.input_tokens), float(workload.output_tokens)
    if isinstance(server, Passing):
        return
    input_share, output_share = apportioned(prefill_share(server), inputs, outputs)
    if inputs:
        tokens = scaled(requests, inputs)
        answer["cost_per_million_input_tokens"] = charged.per(tokens, 1_000_000, input_share * inputs)
    if outputs:
        tokens = scaled(requests, outputs)
        answer["cost_per_million_output_tokens"] = charged.per(tokens, 1_000_000, output_share * outputs)
