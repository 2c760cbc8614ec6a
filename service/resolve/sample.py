"""Resolution of a sample, for models whose blocks run over positions other than tokens."""

from typing import Generic, NamedTuple

from pydantic import MISSING
from typing_extensions import TypeVar

from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture
from service.planning.models.positions import SampleShape
from service.planning.models.profile import ModelProfile
from service.planning.models.profile.sampled import forward_pass, training_profile
from service.planning.notes import AnswerNotes
from service.planning.software.engines import EngineBuffers, EngineRules
from service.planning.workload import InferenceWorkload, TrainingWorkload
from service.schemas.workloads import InferenceWorkloadInput, SampleInput, TrainingWorkloadInput

_POINTERS = {
    "/tokens": "/workload/sequence_length",
    "/source_tokens": "/workload/sample/source_tokens",
    "/height": "/workload/sample/height",
    "/width": "/workload/sample/width",
    "/audio_frames": "/workload/sample/audio_frames",
}


AnyWorkload = TypeVar("AnyWorkload", TrainingWorkload, InferenceWorkload, default=TrainingWorkload)


_NOT_OF_THE_SAMPLE = frozenset({"SAMPLE_FIELD_MISSING", "REPEATED_RESAMPLING"})
"""Codes of errors that leave figures unknown: a missing size, or positions that cannot be derived."""


class SampledWorkload(NamedTuple, Generic[AnyWorkload]):
    """A model and its workload for a memory estimate, and the reason if a part is unknown."""

    profile: ModelProfile
    workload: AnyWorkload
    sample: SampleShape | None = None
    """Sample of a model that takes samples."""
    unknown: PlanningError | None = None


def _build_sample(given: SampleInput, architecture: Architecture, tokens: int | None) -> SampleShape:
    channels = {item.channels for item in architecture.inputs} - {None}
    if given.channels is not MISSING and channels and given.channels not in channels:
        detail = (
            f"the model takes {' or '.join(str(count) for count in sorted(filter(None, channels)))} channels"
        )
        raise PlanningError("SAMPLE_CHANNELS", "/workload/sample/channels", detail)

    def to_optional(value: int | MISSING) -> int | None:
        return None if value is MISSING else value

    read = to_optional(given.source_tokens)
    open_length = any(item.kind == "source_tokens" and item.length is None for item in architecture.inputs)
    return SampleShape(
        tokens=tokens,
        source_tokens=tokens if read is None and open_length else read,
        height=to_optional(given.height),
        width=to_optional(given.width),
        frames=to_optional(given.frames),
        audio_frames=to_optional(given.audio_frames),
        images=given.images,
    )


def _get_sample_input(
    asked: TrainingWorkloadInput | InferenceWorkloadInput, profile: ModelProfile, notes: AnswerNotes
) -> SampleInput:
    if asked.sample is MISSING:
        return SampleInput()
    if profile.sampled is None:
        notes.warn("NOT_USED", "/workload/sample", "the model takes tokens only")
    return asked.sample


def _relocate_error(error: PlanningError) -> PlanningError:
    return PlanningError(error.code, _POINTERS.get(error.pointer, "/workload/sample"), error.detail)


def resolve_training_sample(
    profile: ModelProfile, workload: TrainingWorkload, asked: TrainingWorkloadInput, notes: AnswerNotes
) -> SampledWorkload[TrainingWorkload]:
    """Returns the model over one sample, and the workload counted in samples.

    Raises :class:`PlanningError` for a sample that the model cannot take. A missing size is recorded as
    unknown.
    """
    given = _get_sample_input(asked, profile, notes)
    if profile.sampled is None:
        return SampledWorkload(profile, workload)
    fixed = next((item.length for item in profile.sampled.inputs if item.kind == "tokens"), None)
    sample = _build_sample(given, profile.sampled, fixed or workload.sequence_length)
    try:
        found = training_profile(profile, profile.sampled, sample)
    except PlanningError as error:
        if error.code in _NOT_OF_THE_SAMPLE:
            return SampledWorkload(profile, workload, unknown=_relocate_error(error))
        raise _relocate_error(error) from error
    if profile.generates:
        held = forward_pass(profile.sampled, sample, decodes=True).positions
        if held > workload.sequence_length:
            detail = f"the {held} positions of the sample exceed sequence_length {workload.sequence_length}"
            notes.warn("SEQUENCE_TOO_SHORT", "/workload/sequence_length", detail)
    return SampledWorkload(found, workload._replace(sequence_length=1), sample)


def _note_tokens_alone(missing: PlanningError, notes: AnswerNotes) -> None:
    """Warns that requests without a sample are tokens that the decoder reads, without a pass of a tower."""
    detail = (
        "input_tokens are all tokens that the decoder reads, those of images included; work and memory of a "
        f"tower while it runs are not counted: {missing.detail}"
    )
    notes.warn("TOKENS_ALONE_COUNTED", missing.pointer, detail)


def resolve_inference_sample(
    profile: ModelProfile, workload: InferenceWorkload, asked: InferenceWorkloadInput, notes: AnswerNotes
) -> SampledWorkload[InferenceWorkload]:
    """Returns the workload with the memory of a pass and the positions that a sample adds to a request.

    Raises as :func:`resolve_training_sample` does.
    """
    given = _get_sample_input(asked, profile, notes)
    architecture = profile.sampled or profile.passed
    if architecture is None:
        return SampledWorkload(profile, workload)
    fixed = next((item.length for item in architecture.inputs if item.kind == "tokens"), None)
    sample = _build_sample(given, architecture, fixed or max(1, int(workload.input_tokens)))
    try:
        found = forward_pass(architecture, sample, decodes=profile.generates)
    except PlanningError as error:
        if error.code not in _NOT_OF_THE_SAMPLE:
            raise _relocate_error(error) from error
        missing: PlanningError | None = _relocate_error(error)
        if profile.generates and not profile.encodes and asked.sample is MISSING:
            _note_tokens_alone(_relocate_error(error), notes)
            missing = None
        return SampledWorkload(profile, workload, unknown=missing)
    if not profile.generates:
        if workload.rules.name is not None:
            detail = "engines serve models that decode tokens; a forward pass of this model is estimated"
            notes.warn("NOT_USED", "/workload/engine", detail)
        # One pass over all requests, without iterations of an engine and without sampling of tokens.
        passed = workload._replace(
            pass_elements=found.elements,
            batched_tokens=0,
            rules=EngineRules(),
            buffers=EngineBuffers(),
            least_buffers=EngineBuffers(),
            most_buffers=EngineBuffers(),
        )
        return SampledWorkload(profile._replace(vocabulary_size=0), passed, sample)
    if found.positions and asked.sample is not MISSING:
        detail = f"the sample adds {found.positions} positions to input_tokens in each request"
        notes.warn("POSITIONS_ADDED", "/workload/input_tokens", detail)
        whole = workload.input_tokens + found.positions
        workload = workload._replace(input_tokens=whole, image_share=found.positions / whole)
    source = None if found.read is None else float(found.read)
    return SampledWorkload(
        profile, workload._replace(pass_elements=found.elements, source_tokens=source), sample
    )
