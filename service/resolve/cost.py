"""Resolution of the terms on which a question pays for a run."""

from pydantic import MISSING

from service.planning.cases import RunCase
from service.planning.cost.terms import CostTerms, EgressTerms, StorageTerms
from service.planning.notes import AnswerNotes
from service.resolve.catalog import CatalogView
from service.resolve.linked import count_linked
from service.resolve.offer_warnings import warn_of_instance
from service.resolve.prices import resolve_currencies, resolve_price
from service.resolve.purchase import resolve_purchase
from service.resolve.rental import resolve_rental
from service.schemas.estimates import CostEstimateRequest
from service.schemas.holdings import EgressInput, StorageInput


def resolve_cost_terms(
    question: CostEstimateRequest, case: RunCase, catalog: CatalogView, notes: AnswerNotes
) -> CostTerms:
    """Returns the rental, purchase, storage and egress terms of a run.

    Raises :class:`PlanningError` naming the field of the question at fault.
    """
    rental = purchase = storage = egress = None
    if question.rental is not MISSING:
        rental = resolve_rental(question.rental, case.cluster.accelerator.id, catalog, notes)
        if question.rental.offer_id is not MISSING:
            warn_of_instance(notes, rental.devices_per_instance, count_linked(case), "/rental/offer_id")
    if question.purchase is not MISSING:
        purchase = resolve_purchase(question.purchase, case.cluster, catalog, notes)
    if question.storage is not MISSING:
        storage = _resolve_storage(question.storage)
    if question.egress is not MISSING:
        egress = _resolve_egress(question.egress)
    return CostTerms(resolve_currencies(question, catalog), rental, purchase, storage, egress)


def _resolve_storage(given: StorageInput) -> StorageTerms:
    return StorageTerms(
        resolve_price(given.price_per_gigabyte_month),
        dataset_bytes=None if given.dataset_bytes is MISSING else given.dataset_bytes,
        checkpoints_kept=given.checkpoints_kept,
        checkpoint_bytes=None if given.checkpoint_bytes is MISSING else given.checkpoint_bytes,
        kept_seconds=None if given.kept_seconds is MISSING else given.kept_seconds,
    )


def _resolve_egress(given: EgressInput) -> EgressTerms:
    return EgressTerms(
        resolve_price(given.price_per_gigabyte),
        bytes=None if given.bytes is MISSING else given.bytes,
        bytes_per_second=None if given.bytes_per_second is MISSING else given.bytes_per_second,
    )
