"""The page of `make soak`, from its records."""

from pathlib import Path


def write_report(records: list[Path]) -> None:
    """Writes docs/soak.md from the records of one run on each database."""
    raise NotImplementedError(records)
