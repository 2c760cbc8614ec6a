"""Resolution of the layout of a question, checked against cluster and model."""

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding, check_layout
from service.schemas.references import ParallelismInput


def resolve_layout(given: ParallelismInput, cluster: Cluster | None) -> Parallelism:
    """Returns the layout of a question, with a default data-parallel degree.

    Refuses one that does not fit.
    """
    held = given.tensor * given.pipeline * given.context
    data = given.data
    if data is MISSING:
        # Devices that remain; the check of the product refuses a remainder.
        data = max(1, cluster.accelerator_count // held) if cluster else 1
    layout = Parallelism(
        tensor=given.tensor,
        pipeline=given.pipeline,
        data=data,
        context=given.context,
        expert=given.expert,
        sequence_parallel=given.sequence_parallel,
        sharding=given.sharding,
        sharding_group_size=None if given.sharding_group_size is MISSING else given.sharding_group_size,
        pipeline_schedule=given.pipeline_schedule,
        virtual_stages=given.virtual_stages,
        expert_tensor=None if given.expert_tensor is MISSING else given.expert_tensor,
    )
    check_layout(layout, device_count=cluster.accelerator_count if cluster else layout.devices)
    return layout


def check_shapes(layout: Parallelism, profile: ModelProfile) -> None:
    """Refuses degrees that the shapes of the model do not allow."""
    if not profile.shapes_known:
        return
    if layout.pipeline > profile.block_count:
        raise PlanningError(
            "PARALLELISM_MISMATCH",
            "/parallelism/pipeline",
            f"pipeline {layout.pipeline} exceeds the {profile.block_count} blocks of the model",
        )
    if profile.expert_count % layout.expert if profile.expert_count else layout.expert > 1:
        raise PlanningError(
            "PARALLELISM_MISMATCH",
            "/parallelism/expert",
            f"expert {layout.expert} does not divide the {profile.expert_count} experts of the model",
        )
    for work in profile.attention:
        if work.query_heads % layout.tensor:
            raise PlanningError(
                "PARALLELISM_MISMATCH",
                "/parallelism/tensor",
                f"tensor {layout.tensor} does not divide the {work.query_heads} attention heads",
            )


def check_serving(layout: Parallelism, notes: AnswerNotes) -> None:
    """Warns of members that apply to training only. Refuses context parallelism."""
    if layout.context > 1:
        detail = "context parallelism is not modelled for serving"
        raise PlanningError("NOT_MODELLED", "/parallelism/context", detail)
    unused = {
        "sequence_parallel": layout.sequence_parallel,
        "sharding": layout.sharding is not Sharding.NONE,
        "pipeline_schedule": layout.pipeline_schedule is not PipelineSchedule.ONE_F_ONE_B,
    }
    for name, given in unused.items():
        if given:
            notes.warn("NOT_USED", f"/parallelism/{name}", f"{name} applies to training only")
