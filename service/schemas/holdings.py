"""Costs of a run beside its devices: storage of data and checkpoints, and egress."""

from pydantic import MISSING

from service.schemas.base import MoneyInput, NotNegative, Positive, StrictModel


class StorageInput(StrictModel):
    """Stored data and checkpoints, charged by gigabyte (1e9 bytes) and month (730.5 hours)."""

    price_per_gigabyte_month: MoneyInput
    """Price of storing a gigabyte for a month."""
    dataset_bytes: NotNegative | MISSING = MISSING
    """Size of the stored data. Defaults to the dataset of the workload's data pipeline."""
    checkpoints_kept: NotNegative = 0.0
    """Checkpoints that are stored at a time. Each has the size that the workload implies."""
    checkpoint_bytes: Positive | MISSING = MISSING
    """Size of a checkpoint, if it is known."""
    kept_seconds: Positive | MISSING = MISSING
    """Time for which they are stored. Defaults to the duration of the run."""


class EgressInput(StrictModel):
    """Data that leave the provider, charged by gigabyte (1e9 bytes)."""

    price_per_gigabyte: MoneyInput
    """Price of a gigabyte that leaves."""
    bytes: NotNegative | MISSING = MISSING
    """Bytes that leave over the whole run."""
    bytes_per_second: NotNegative | MISSING = MISSING
    """Mean rate of the bytes that leave, for the duration of the run."""
