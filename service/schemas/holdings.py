"""Storage of data and checkpoints, and data that leaves: what a run costs beside its devices."""

from pydantic import MISSING

from service.schemas.base import MoneyInput, NotNegative, Positive, StrictModel


class StorageInput(StrictModel):
    """Data and checkpoints that are kept, charged by gigabyte (1e9 bytes) and month (730.5 hours)."""

    price_per_gigabyte_month: MoneyInput
    """Price of keeping a gigabyte for a month."""
    dataset_bytes: NotNegative | MISSING = MISSING
    """Data that are kept; defaults to the data set of the workload's data pipeline."""
    checkpoints_kept: NotNegative = 0.0
    """Checkpoints that are kept at a time; each has the size that the workload gives it."""
    checkpoint_bytes: Positive | MISSING = MISSING
    """Size of a checkpoint, where it is known."""
    kept_seconds: Positive | MISSING = MISSING
    """How long they are kept; as long as the run lasts when left out."""


class EgressInput(StrictModel):
    """Data that leave the provider, charged by gigabyte (1e9 bytes)."""

    price_per_gigabyte: MoneyInput
    """Price of a gigabyte that leaves."""
    bytes: NotNegative | MISSING = MISSING
    """What leaves over the whole run."""
    bytes_per_second: NotNegative | MISSING = MISSING
    """The same as a mean rate, for as long as the run lasts."""
