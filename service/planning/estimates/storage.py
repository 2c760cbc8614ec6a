"""Cost of storing data and checkpoints, and of transferring data out."""

from service.planning.cost import gigabyte_months
from service.planning.cost.charges import CurrencyCharges, charge_quantities, sum_charges
from service.planning.cost.currencies import TotalCurrency
from service.planning.cost.terms import EgressTerms, StorageTerms
from service.planning.errors import PlanningError
from service.planning.estimates.runs import Run, TrainingRun
from service.planning.quantity import assumed, scaled
from service.planning.units import GIGABYTE_BYTES


def charge_storage(run: Run, terms: StorageTerms, currencies: TotalCurrency) -> CurrencyCharges | None:
    """Returns the cost of storing data and checkpoints; None where it is not known, which is a gap."""
    kept = {
        "storage_dataset": _count_dataset_bytes(run, terms),
        "storage_checkpoints": _count_checkpoint_bytes(run, terms),
    }
    if not any(kept.values()):
        detail = "give dataset_bytes or checkpoints_kept"
        raise PlanningError("STORAGE_EMPTY", "/storage", detail)
    lasting = run.duration_seconds if terms.kept_seconds is None else assumed(terms.kept_seconds)
    if lasting is None:
        run.notes.add_gap("/total", "RATE_UNKNOWN", "the duration of the storage is not known")
        return None
    price = currencies.exchange_price(terms.price, "/total", run.notes)
    return price and sum_charges(
        charge_quantities(price, "gigabyte_month", (name, scaled(lasting, gigabyte_months(size, 1.0))))
        for name, size in kept.items()
        if size
    )


def _count_dataset_bytes(run: Run, terms: StorageTerms) -> float | None:
    if terms.dataset_bytes is not None:
        return terms.dataset_bytes
    if isinstance(run, TrainingRun) and run.case.data_pipeline is not None:
        return run.case.data_pipeline.dataset_bytes
    return None


def _count_checkpoint_bytes(run: Run, terms: StorageTerms) -> float | None:
    if not terms.checkpoints_kept:
        return None
    if terms.checkpoint_bytes is not None:
        return terms.checkpoint_bytes * terms.checkpoints_kept
    checkpoint = run.interruptions.checkpoint if isinstance(run, TrainingRun) else None
    if checkpoint is None:
        detail = "the size of a checkpoint is not known: give checkpointing or checkpoint_bytes"
        raise PlanningError("CHECKPOINTING_REQUIRED", "/storage/checkpoint_bytes", detail)
    return checkpoint.bytes * terms.checkpoints_kept


def charge_egress(run: Run, terms: EgressTerms, currencies: TotalCurrency) -> CurrencyCharges | None:
    """Returns the cost of data that is transferred out; None where it is not known, which is a gap."""
    if terms.bytes is not None and terms.bytes_per_second is None:
        sent = assumed(terms.bytes / GIGABYTE_BYTES)
    elif terms.bytes_per_second is not None and terms.bytes is None:
        if run.duration_seconds is None:
            run.notes.add_gap("/total", "RATE_UNKNOWN", "the duration of the transfer is not known")
            return None
        sent = scaled(run.duration_seconds, terms.bytes_per_second / GIGABYTE_BYTES)
    else:
        raise PlanningError("EGRESS_BYTES", "/egress", "give either bytes or bytes_per_second")
    price = currencies.exchange_price(terms.price, "/total", run.notes)
    return price and charge_quantities(price, "gigabyte", ("egress", sent))
