"""Storage of data and checkpoints, and data that leaves."""

from pydantic import MISSING

from service.estimates.charges import Charges, added, charges, given_price
from service.estimates.currencies import Currencies, currencies_of
from service.estimates.run import Run
from service.planning.cost import gigabyte_months
from service.planning.errors import PlanningError
from service.planning.quantity import Quantity, assumed, scaled
from service.planning.units import GIGABYTE_BYTES
from service.resolve.catalog import Catalog
from service.schemas.estimates import CostQuestion
from service.schemas.holdings import EgressInput, StorageInput
from service.schemas.workloads import TrainingWorkloadInput


def holdings(question: CostQuestion, run: Run, catalog: Catalog) -> list[Charges] | None:
    """What is kept and what leaves; None where some of it is not known, and the total is a gap."""
    currencies = currencies_of(question, catalog, run.notes)
    found = []
    if question.storage is not MISSING:
        found.append(_storage(question.storage, question, run, currencies))
    if question.egress is not MISSING:
        found.append(_egress(question.egress, run, currencies))
    known = [charged for charged in found if charged]
    return known if len(known) == len(found) else None


def _storage(given: StorageInput, question: CostQuestion, run: Run, currencies: Currencies) -> Charges | None:
    kept = {
        "storage_dataset": _dataset_bytes(given, question),
        "storage_checkpoints": _checkpoint_bytes(given, run),
    }
    if not any(kept.values()):
        detail = "give dataset_bytes or checkpoints_kept"
        raise PlanningError("STORAGE_EMPTY", "/storage", detail)
    lasting = run.duration_seconds if given.kept_seconds is MISSING else assumed(given.kept_seconds)
    if lasting is None:
        run.notes.gap("/total", "RATE_UNKNOWN", "how long data are kept is not known")
        return None
    price = currencies.price(given_price(given.price_per_gigabyte_month), "/total")
    return price and added(
        charges(price, "gigabyte_month", (name, scaled(lasting, gigabyte_months(size, 1.0))))
        for name, size in kept.items()
        if size
    )


def _dataset_bytes(given: StorageInput, question: CostQuestion) -> float | None:
    if given.dataset_bytes is not MISSING:
        return given.dataset_bytes
    workload = question.workload
    if isinstance(workload, TrainingWorkloadInput) and workload.data_pipeline is not MISSING:
        size = workload.data_pipeline.dataset_bytes
        return None if size is MISSING else size
    return None


def _checkpoint_bytes(given: StorageInput, run: Run) -> float | None:
    if not given.checkpoints_kept:
        return None
    if given.checkpoint_bytes is not MISSING:
        return given.checkpoint_bytes * given.checkpoints_kept
    checkpoint = run.interruptions.checkpoint
    if checkpoint is None:
        detail = "the size of a checkpoint is that of the workload's checkpointing, or checkpoint_bytes"
        raise PlanningError("CHECKPOINTING_REQUIRED", "/storage/checkpoint_bytes", detail)
    return checkpoint.bytes * given.checkpoints_kept


def _egress(given: EgressInput, run: Run, currencies: Currencies) -> Charges | None:
    if (given.bytes is MISSING) == (given.bytes_per_second is MISSING):
        raise PlanningError("EGRESS_BYTES", "/egress", "give either bytes or bytes_per_second")
    sent: Quantity
    if given.bytes is not MISSING:
        sent = assumed(given.bytes / GIGABYTE_BYTES)
    else:
        assert given.bytes_per_second is not MISSING  # noqa: S101
        if run.duration_seconds is None:
            run.notes.gap("/total", "RATE_UNKNOWN", "how long data leave is not known")
            return None
        sent = scaled(run.duration_seconds, given.bytes_per_second / GIGABYTE_BYTES)
    price = currencies.price(given_price(given.price_per_gigabyte), "/total")
    return price and charges(price, "gigabyte", ("egress", sent))
