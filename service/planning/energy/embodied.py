"""Terms by which the making of machines counts for a run."""

from typing import NamedTuple


class EmbodiedTerms(NamedTuple):
    """Life-cycle figures of a question; None for that of the accelerator or of the reference set."""

    kg_co2e_per_device: float | None = None
    kg_co2e_per_server: float | None = None
    """Emissions of a server without its accelerators."""
    lifetime_years: float | None = None
    utilization: float | None = None
    """Share of its life in which a machine is used."""
