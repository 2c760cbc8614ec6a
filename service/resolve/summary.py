"""Full requests of a summary: what its few members leave open is filled by one rule each."""

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.resolve.catalog import CatalogView, KnownAccelerator, KnownModel, KnownOffer, resolve_row
from service.resolve.denoisers import build_usual_sampling
from service.resolve.linked import count_linked_by
from service.resolve.price_age import is_used_by_id_only
from service.schemas.base import EstimateDefault
from service.schemas.estimates import (
    CostEstimateRequest,
    MemoryEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)
from service.schemas.rental import Rental
from service.schemas.summary import MOST_ACCELERATORS, ServingGoal, SummaryRequest, TrainingGoal
from service.schemas.workloads import WeightFormatName

_PROMPT_TOKENS: Final = 1024
_SEQUENCE_TOKENS: Final = 4096
_COUNTED: Final = re.compile(r"([1-9][0-9]{0,5})(?: ?[xX] ?| (?=[A-Za-z]))(.+)")
_WIDTHS: Final = ("fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4")


class SummaryQuestions(NamedTuple):
    """Full requests of a summary, and the rows that it names."""

    model_id: str
    accelerator_id: str
    accelerator_count: int
    memory: MemoryEstimateRequest
    full_context: MemoryEstimateRequest | None
    context_tokens: int | None
    throughput: ThroughputEstimateRequest
    cost: CostEstimateRequest
    utility_bill: UtilityBillRequest
    defaults: tuple[EstimateDefault, ...]
    """Members that the summary leaves open and the full requests do not, with pointers into these."""


class _Hardware(NamedTuple):
    """Accelerators that a text names, and the name without its count."""

    name: str
    row: KnownAccelerator
    number: int


def build_questions(question: SummaryRequest, catalog: CatalogView) -> SummaryQuestions:
    """Returns the full requests of a summary.

    Raises :class:`PlanningError` for a name that no row or more than one has, and for an unknown format.
    """
    model: KnownModel = resolve_row(catalog.models, question.model, "/model")
    hardware = _read_hardware(question.hardware, catalog)
    goal = question.goal
    cluster = {
        "accelerator": {"source": "catalog", "id": hardware.name},
        "accelerator_count": hardware.number,
    }
    asked: dict[str, Any] = {"model": {"source": "catalog", "id": question.model}, "cluster": cluster}
    full_context = context_tokens = None
    if isinstance(goal, TrainingGoal):
        work = run = _build_training(goal, model)
    else:
        work = _build_serving(goal, model)
        run = work | {"horizon": {"duration_seconds": question.hours * 3600.0}}
        if model.profile.generates:
            context_tokens = _resolve_context(goal, model, work)
            whole = work | {"input_tokens": max(1, context_tokens - goal.output_tokens), "concurrency": 1}
            full_context = _build_request(MemoryEstimateRequest, asked | {"workload": whole})
    paid = asked | {"workload": run}
    throughput = _build_request(ThroughputEstimateRequest, asked | {"workload": work, "explain": False})
    rental = _choose_rental(hardware, throughput, catalog) if question.rental is MISSING else question.rental
    paid |= {"rental": rental} if rental is not None else {}
    paid |= {"purchase": question.purchase} if question.purchase is not MISSING else {}
    billed = paid | ({"site": question.site} if question.site is not MISSING else {})
    if question.starts_at is not MISSING:
        billed["starts_at"] = question.starts_at.isoformat()
    return SummaryQuestions(
        model_id=model.source["id"],
        accelerator_id=hardware.row.accelerator.id,
        accelerator_count=hardware.number,
        memory=_build_request(MemoryEstimateRequest, asked | {"workload": work}),
        full_context=full_context,
        context_tokens=context_tokens,
        throughput=throughput,
        cost=_build_request(CostEstimateRequest, paid),
        utility_bill=_build_request(UtilityBillRequest, billed),
        defaults=tuple(_list_defaults(question, work, rental)),
    )


_USUAL_WORK: Final = {
    "input_tokens": "tokens of a usual prompt",
    "output_tokens": "tokens of a usual answer",
    "concurrency": "one usual request at a time",
    "sequence_length": "tokens of a usual sequence, at most the context of the model",
}
"""Members of a goal that a summary fills, and what the value is."""


def _list_defaults(
    question: SummaryRequest, work: dict[str, Any], rental: Rental | None
) -> Iterator[EstimateDefault]:
    """Yields what the summary fills in its full requests."""

    def build_default(pointer: str, value: object, detail: str) -> EstimateDefault:
        return {
            "pointer": f"/requests/{pointer}",
            "value": str(value),
            "rule": "service",
            "detail": detail,
        }

    for name, detail in _USUAL_WORK.items():
        if name in work and name not in question.goal.model_fields_set:
            yield build_default(f"memory/workload/{name}", work[name], detail)
    if isinstance(question.goal, ServingGoal) and "hours" not in question.model_fields_set:
        seconds = round(question.hours * 3600.0)
        yield build_default("cost/workload/horizon/duration_seconds", seconds, "a month of 730 hours")
    if rental is not None and question.rental is MISSING:
        detail = "the cheapest on-demand offer of the catalog"
        yield build_default("cost/rental/offer_id", rental.offer_id, detail)


def _build_request(shape: Any, members: dict[str, Any]) -> Any:  # noqa: ANN401
    return shape.model_validate(members, strict=False)


def _read_hardware(text: str, catalog: CatalogView) -> _Hardware:
    """Returns the accelerators of ``text``; an instance or a slice counts as many as it has."""
    counted = _COUNTED.fullmatch(text)
    # A name may begin like a count, as 8x7b does, if the catalog has it.
    if counted is None or text in catalog.accelerators:
        count, name = 1, text
    else:
        count, name = int(counted[1]), counted[2]
    row: KnownAccelerator = resolve_row(catalog.accelerators, name, "/hardware")
    count *= row.named_count
    if count > MOST_ACCELERATORS:
        detail = f"there are at most {MOST_ACCELERATORS:,} accelerators"
        raise PlanningError("TOO_MANY_ACCELERATORS", "/hardware", detail)
    return _Hardware(name, row, count)


def _build_serving(goal: ServingGoal, model: KnownModel) -> dict[str, Any]:
    work: dict[str, Any] = {"kind": "inference", "concurrency": goal.concurrency}
    prompt = _PROMPT_TOKENS if goal.input_tokens is MISSING else goal.input_tokens
    if goal.input_tokens is MISSING and model.context_tokens is not None:
        answer = goal.output_tokens if model.profile.generates else 0
        prompt = max(1, min(prompt, model.context_tokens - answer))
    work["input_tokens"] = prompt
    if model.profile.generates:
        work["output_tokens"] = goal.output_tokens
    return work | build_usual_sampling(model.source["id"]) | _resolve_weights(goal)


def _resolve_weights(goal: ServingGoal) -> dict[str, str]:
    """Returns the member of a workload that a storage of weights belongs to."""
    if goal.weights is MISSING:
        return {}
    written = goal.weights.lower().replace("-", "_")
    if written in _WIDTHS:
        return {"weight_precision": written}
    found = _list_formats(written)
    if len(found) == 1:
        return {"weight_format": found[0]}
    known = ", ".join(found or (*_WIDTHS, *WeightFormatName.__members__))
    detail = f"several formats are called so: {known}" if found else f"not one of {known}"
    raise PlanningError("UNKNOWN_FORMAT", "/goal/weights", detail)


def _list_formats(written: str) -> list[str]:
    """Returns the storage formats of a name, which may leave out gguf or what follows the tool."""
    formats = WeightFormatName.__members__
    whole = [name for name in formats if name in (written, f"gguf_{written}")]
    return whole or [name for name in formats if name.startswith(f"{written}_")]


def _resolve_context(goal: ServingGoal, model: KnownModel, work: dict[str, Any]) -> int:
    """Returns the tokens of the longest request: as stated, else the model's, else those of the usual one."""
    if goal.context_tokens is not MISSING:
        return goal.context_tokens
    return model.context_tokens or work["input_tokens"] + goal.output_tokens


def _build_training(goal: TrainingGoal, model: KnownModel) -> dict[str, Any]:
    length = _SEQUENCE_TOKENS if goal.sequence_length is MISSING else goal.sequence_length
    if goal.sequence_length is MISSING and model.context_tokens is not None:
        length = min(length, model.context_tokens)
    work: dict[str, Any] = {"kind": "training", "sequence_length": length}
    if goal.adaptation != "full":
        work["adaptation"] = {"kind": goal.adaptation}
    for name in ("total_tokens", "precision"):
        if (value := getattr(goal, name)) is not MISSING:
            work[name] = value
    return work


def _choose_rental(
    hardware: _Hardware, question: ThroughputEstimateRequest, catalog: CatalogView
) -> Rental | None:
    offer_id = find_cheapest_offer(hardware.row, question, catalog)
    return None if offer_id is None else Rental(offer_id=offer_id)


def find_cheapest_offer(
    row: KnownAccelerator, question: ThroughputEstimateRequest, catalog: CatalogView
) -> str | None:
    """Returns the cheapest on-demand offer for whole instances with the accelerators; None without one.

    An offer counts if its price is in USD, of the year before the newest of the catalog and not doubtful. An
    instance that the question names is rented as that instance alone, of whose prices none is left out.
    Instances that hold the accelerators that work together in a node stand before smaller ones, unless
    each of them is larger than the whole question.
    """
    number, instance = question.cluster.accelerator_count, row.instance_type
    offers = [
        offer
        for offer in catalog.offers.list_of_key("accelerator_id", row.accelerator.id).values()
        if offer.purchase_option == "on_demand"
        and offer.currency_code == "USD"
        and (offer.instance_type == instance if instance else offer.doubt is None)
        and not is_used_by_id_only(offer, catalog)
    ]
    linked = _count_linked(question, catalog)
    holding = [offer for offer in offers if offer.accelerator_count >= linked]
    if any(offer.accelerator_count <= number for offer in holding):
        offers = holding
    ids = ((_compute_hourly_price(offer, number), offer.source["id"]) for offer in offers)
    return min(ids, default=(0.0, None))[1]


def _count_linked(question: ThroughputEstimateRequest, catalog: CatalogView) -> int:
    try:
        return count_linked_by(question, catalog)
    except PlanningError:
        # The estimate refuses the question too, with the reason.
        return 1


def _compute_hourly_price(offer: KnownOffer, count: int) -> float:
    """Returns the price of an hour of the whole instances that hold ``count`` accelerators."""
    instances = math.ceil(count / offer.accelerator_count)
    return instances * float(offer.price_per_instance_hour)
