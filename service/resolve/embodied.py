"""Terms of embodied emissions, from a question."""

from pydantic import MISSING

from service.planning.energy.embodied import EmbodiedTerms
from service.schemas.carbon import EmbodiedEmissionsInput


def resolve_embodied_terms(given: EmbodiedEmissionsInput) -> EmbodiedTerms:
    """Returns the life-cycle figures of a question; None for those that it leaves out."""
    return EmbodiedTerms(
        None if given.kg_co2e_per_device is MISSING else given.kg_co2e_per_device,
        None if given.kg_co2e_per_server is MISSING else given.kg_co2e_per_server,
        None if given.lifetime_years is MISSING else given.lifetime_years,
        None if given.utilization is MISSING else given.utilization,
    )
