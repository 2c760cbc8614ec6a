"""Engine, layout and settings of an inference question that leaves them open.

What a question states holds, else what its engine documents for its version, else what the service chooses.
"""

from dataclasses import replace
from typing import Final, Literal, NamedTuple

from pydantic import MISSING

from service.formats.quantization import MLX
from service.planning.cases import InferenceCase, ServiceLevels
from service.planning.errors import PlanningError
from service.planning.estimates.serving_layouts import choose_serving_layout
from service.planning.estimates.serving_run import list_unserved_kinds
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.storage import GGUF_FORMATS, BlockFormat
from service.planning.notes import AnswerNotes
from service.planning.software.engines import EngineName, describe_llama_cpp_device
from service.resolve.layout import describe_degrees
from service.resolve.load import resolve_levels
from service.resolve.model import ResolvedModel
from service.resolve.passes import is_passed
from service.schemas.workloads import InferenceWorkloadInput, ServingEngineInput

TIGHT_SHARE: Final = 0.95
"""Share of the device of an open vLLM whose own share holds no request, as its guides raise it (gpt-oss-120b
on one H100; Conserving Memory)."""
_BLOCK_FORMATS: Final = frozenset(BlockFormat)


def fill_engine(
    given: InferenceWorkloadInput, model: ResolvedModel, accelerator: Accelerator, notes: AnswerNotes
) -> InferenceWorkloadInput:
    """Returns the workload with an engine, where a model that generates tokens is asked without one."""
    if given.engine is not MISSING:
        return given
    found = _select_engine(given, model, accelerator)
    if found is None:
        return given
    notes.fill("/workload/engine", found.name.value, "service", found.detail)
    return given.model_copy(update={"engine": ServingEngineInput(name=found.name.value)})


class _ChosenEngine(NamedTuple):
    name: EngineName
    detail: str


def _select_engine(
    given: InferenceWorkloadInput, model: ResolvedModel, accelerator: Accelerator
) -> _ChosenEngine | None:
    """Returns the engine of an open question, None for one that no known engine answers by default.

    Chips whose only memory is on the chip and weights of MLX run on software of their own.
    """
    profile = model.profile
    if not profile.shapes_known or is_passed(given, profile) or profile.encodes:
        return None
    if given.scheduler == "static" or accelerator.is_on_chip:
        return None
    stored = "" if model.stored is None else model.stored.name
    if given.weight_format is not MISSING:
        stored = given.weight_format.value
    elif given.weight_precision is not MISSING:
        stored = given.weight_precision
    if stored == MLX:
        return None
    if stored in GGUF_FORMATS or given.kv_cache_precision in _BLOCK_FORMATS:
        detail = "the newest version of the engine that runs files of llama.cpp"
        return _ChosenEngine(EngineName.LLAMA_CPP, detail)
    kind = describe_llama_cpp_device(accelerator.id, accelerator.generation)
    if kind is not None:
        detail = f"the newest version of the engine that most teams run on {kind}"
        return _ChosenEngine(EngineName.LLAMA_CPP, detail)
    detail = "the newest version of the engine that most teams begin with"
    return _ChosenEngine(EngineName.VLLM, detail)


def complete_service(
    given: InferenceWorkloadInput, case: InferenceCase, notes: AnswerNotes, *, is_engine_open: bool
) -> InferenceCase:
    """Returns the case on the layout that is chosen for it, and names each setting that was left open."""
    if is_passed(given, case.profile):
        return case
    found = None
    if case.profile.shapes_known and case.unknown is None and not list_unserved_kinds(case.profile):
        is_raisable = is_engine_open and given.memory_fraction is given.disaggregated is MISSING
        found = _choose_layout(given, case, is_raisable=is_raisable)
    _note_layout(found or case, notes, is_searched=found is not None)
    _note_settings(given, found or case, notes)
    return found or case


def _choose_layout(
    given: InferenceWorkloadInput, case: InferenceCase, *, is_raisable: bool
) -> InferenceCase | None:
    """Returns the case on the layout of the search, None where nothing fits or nothing is compared."""
    levels: ServiceLevels | None = None
    if given.service_levels is not MISSING:
        levels = resolve_levels(given.service_levels)
    engines = [case.engine]
    if is_raisable and case.engine is not None and case.engine.name is EngineName.VLLM:
        engines.append(case.engine._replace(memory_fraction=TIGHT_SHARE))
    try:
        tried = (choose_serving_layout(replace(case, engine=engine), levels) for engine in engines)
        return next((each for each in tried if each is not None), None)
    except PlanningError:
        # The estimate of the question says what is wrong, where it asks for rates.
        return None


def _note_layout(case: InferenceCase, notes: AnswerNotes, *, is_searched: bool) -> None:
    if not case.layout_chosen or case.layout.devices == 1:
        return
    if is_searched:
        detail = "the smallest replica within a tenth of the highest rate at this load"
        notes.fill("/parallelism", ", ".join(describe_degrees(case.layout)), "search", detail)
        return
    detail = "the smallest replica that holds its requests, else the one of the fewest bytes"
    notes.fill("/parallelism", ", ".join(describe_degrees(case.layout)), "service", detail)


def _note_settings(given: InferenceWorkloadInput, case: InferenceCase, notes: AnswerNotes) -> None:
    """Names the settings that the engine starts with, and the load, where the question leaves them open."""
    engine, workload = case.engine, case.workload
    rule: Literal["engine", "service"] = "service"
    detail = "the sum of weights, cache and intermediates, without an engine's own memory"
    if engine is not None and engine.name is not None:
        rule, detail = "engine", f"the default of {engine.name} {engine.version or '(newest)'}"
    asked = given.engine
    settings = {
        "/workload/engine/max_num_seqs": workload.most_requests,
        "/workload/engine/max_batched_tokens": workload.batched_tokens or None,
        "/workload/engine/block_tokens": workload.block_tokens,
        "/workload/engine/chunked_prefill": str(workload.chunks_prefill).lower(),
        "/workload/engine/attention_release": workload.fused.value,
        "/workload/scheduler": "static" if workload.is_static else "continuous",
    }
    for pointer, value in settings.items():
        *_, holder, member = pointer.split("/")
        stated = getattr(given if holder == "workload" else asked, member, MISSING)
        if stated is MISSING and value is not None:
            notes.fill(pointer, str(value), rule, detail)
    if given.memory_fraction is MISSING:
        share = workload.memory_fraction
        if engine is not None and engine.memory_fraction is not None:
            rule, detail = (
                "service",
                "raised: the default of the engine leaves no room for a request",
            )
        notes.fill("/workload/memory_fraction", f"{share:g}", rule, detail)
    if case.load.concurrency is not None and given.concurrency is MISSING:
        notes.fill("/workload/concurrency", "1", "service", "one request at a time, without a load")
    if given.prefix_cache_hit_rate is MISSING:
        detail = "no prompt begins like an earlier one, whether or not the engine keeps prefixes"
        notes.fill("/workload/prefix_cache_hit_rate", "0", "service", detail)
