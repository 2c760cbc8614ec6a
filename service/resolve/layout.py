"""Resolution of the layout of a question, checked against cluster and model."""

from typing import Final, NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Accelerator, Cluster
from service.planning.models.padding import choose_padding, pad_profile
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding, check_layout
from service.schemas.references import ParallelismInput

_CHOSEN_MEMBERS: Final = (
    "sequence_parallel",
    "sharding",
    "pipeline_schedule",
    "virtual_stages",
    "overlap_expert_communication",
)
LEAST_VIRTUAL_STAGES: Final = 2
"""Virtual stages of an interleaved pipeline whose number is open and cannot be chosen by time."""


def describe_degrees(layout: Parallelism) -> list[str]:
    """Returns the degrees above 1 of a layout, each with its name."""
    names = ("tensor", "pipeline", "data", "context", "expert", "virtual_stages")
    return [f"{name} {getattr(layout, name)}" for name in names if getattr(layout, name) > 1]


def resolve_layout(given: ParallelismInput, cluster: Cluster | None) -> Parallelism:
    """Returns the layout of a question with defaults for the members that it leaves open.

    Refuses one that does not fit.
    """
    held = given.tensor * given.pipeline * given.context
    data = given.data
    if data is MISSING:
        # Devices that remain; the check of the product refuses a remainder.
        data = max(1, cluster.accelerator_count // held) if cluster else 1
    schedule, stages = _resolve_schedule(given)
    layout = Parallelism(
        tensor=given.tensor,
        pipeline=given.pipeline,
        data=data,
        context=given.context,
        expert=given.expert,
        sequence_parallel=False if given.sequence_parallel is MISSING else given.sequence_parallel,
        sharding=Sharding.NONE if given.sharding is MISSING else given.sharding,
        sharding_group_size=None if given.sharding_group_size is MISSING else given.sharding_group_size,
        pipeline_schedule=schedule,
        virtual_stages=stages,
        overlap_expert_communication=(
            given.overlap_expert_communication is not MISSING and given.overlap_expert_communication
        ),
        overlap_tensor_communication=(
            None if given.overlap_tensor_communication is MISSING else given.overlap_tensor_communication
        ),
        expert_tensor=None if given.expert_tensor is MISSING else given.expert_tensor,
    )
    check_layout(layout, device_count=cluster.accelerator_count if cluster else layout.devices)
    return layout


def _resolve_schedule(given: ParallelismInput) -> tuple[PipelineSchedule, int]:
    """Returns schedule and virtual stages: each follows from the other if one is open, else 1F1B."""
    stages = 1 if given.virtual_stages is MISSING else given.virtual_stages
    if given.pipeline_schedule is MISSING:
        return (PipelineSchedule.INTERLEAVED if stages > 1 else PipelineSchedule.ONE_F_ONE_B), stages
    if given.pipeline_schedule is PipelineSchedule.INTERLEAVED and given.virtual_stages is MISSING:
        stages = LEAST_VIRTUAL_STAGES
    return given.pipeline_schedule, stages


def find_unstated(given: ParallelismInput) -> frozenset[str]:
    """Returns the members of a layout that may be chosen and that the question does not state."""
    return frozenset(name for name in _CHOSEN_MEMBERS if getattr(given, name) is MISSING)


def list_open_members(given: ParallelismInput, layout: Parallelism) -> frozenset[str]:
    """Returns the unstated members that have a meaning on a layout.

    Schedule and virtual stages follow from each other: of two that are open, both are.
    """
    unstated = find_unstated(given)
    is_staged = layout.pipeline > 1 and "virtual_stages" in unstated
    is_interleaved = layout.pipeline_schedule is PipelineSchedule.INTERLEAVED
    meant = {
        "sequence_parallel": layout.tensor > 1,
        "sharding": layout.replicas > 1,
        "pipeline_schedule": is_staged,
        "virtual_stages": is_staged and ("pipeline_schedule" in unstated or is_interleaved),
        "overlap_expert_communication": layout.expert > 1,
    }
    return frozenset(name for name in unstated if meant[name])


_MOST_COPIES: Final = 2
"""Experts of a replica over those of the model: with as many, it is as good as two replicas."""


def pad_served_model(
    profile: ModelProfile,
    layout: Parallelism,
    accelerator: Accelerator | None,
    notes: AnswerNotes,
    at: str = "",
) -> ModelProfile:
    """Returns the model as its engine lays it out, and warns of heads and experts that it adds.

    ``at`` is the pointer of the layout's parent. Refuses experts of which most devices hold copies.
    """
    padding = choose_padding(layout, accelerator.generation if accelerator else None)
    experts = profile.expert_count
    if experts and padding.expert_devices > _MOST_COPIES * experts:
        detail = (
            f"{padding.expert_devices} devices of a replica hold the {experts} experts of the model, at most "
            f"{_MOST_COPIES * experts} can: give the others as replicas"
        )
        raise PlanningError("PARALLELISM_MISMATCH", "/parallelism/expert", detail)
    padded = pad_profile(profile, padding)
    if padded.expert_count > experts:
        held = padded.expert_count // padding.expert_devices
        detail = (
            f"{padded.expert_count - experts} redundant experts beside the {experts} of the model make "
            f"{held} on each of {padding.expert_devices} devices"
        )
        notes.warn("REDUNDANT_EXPERTS", f"{at}/parallelism/expert", detail)
    heads, stored = _count_heads(profile), _count_heads(padded)
    if heads != stored:
        detail = (
            f"{padding.head_ranks} NeuronCores hold {stored.query_heads} attention heads and "
            f"{stored.key_value_heads} key-value heads in place of {heads.query_heads} "
            f"and {heads.key_value_heads}"
        )
        notes.warn("HEADS_PADDED", f"{at}/parallelism/tensor", detail)
    return padded


class _HeadCounts(NamedTuple):
    query_heads: int
    key_value_heads: int


def _count_heads(profile: ModelProfile) -> _HeadCounts:
    """Returns the heads of the widest attention."""
    return max(
        (_HeadCounts(work.query_heads, work.key_value_heads) for work in profile.attention),
        default=_HeadCounts(0, 0),
    )


def imply_sequence_parallel(given: ParallelismInput) -> ParallelismInput:
    """Returns the layout of a training run with the sequence parallelism that its overlap takes, if open.

    Gathers and scatters are overlapped with products, which sequence parallelism alone has.
    """
    overlaps = given.overlap_tensor_communication is not MISSING and given.overlap_tensor_communication
    if not overlaps or given.tensor == 1 or given.sequence_parallel is not MISSING:
        return given
    return given.model_copy(update={"sequence_parallel": True})


def drop_unused_overlap(layout: Parallelism, notes: AnswerNotes) -> Parallelism:
    """Returns the layout without an overlap of tensor-parallel collectives that it cannot have.

    Megatron-Core and PyTorch overlap gathers and scatters, which take several devices and sequence
    parallelism. Without them the overlap is left to the habit of the framework.
    """
    overlaps = layout.overlap_tensor_communication
    if overlaps is None or (layout.tensor > 1 and (layout.sequence_parallel or not overlaps)):
        return layout
    if overlaps:
        reason = "no layer is divided" if layout.tensor == 1 else "it takes sequence_parallel, which is false"
        notes.warn("NOT_USED", "/parallelism/overlap_tensor_communication", reason)
    return layout._replace(overlap_tensor_communication=None)


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
        "overlap_expert_communication": layout.overlap_expert_communication,
        "overlap_tensor_communication": layout.overlap_tensor_communication is not None,
    }
    for name, given in unused.items():
        if given:
            notes.warn("NOT_USED", f"/parallelism/{name}", f"{name} applies to training only")
