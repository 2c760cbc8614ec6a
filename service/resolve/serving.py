"""Resolution of inference workloads: settings of the engine, formats of the checkpoint."""

from collections.abc import Mapping

from pydantic import MISSING

from service.planning.cases import RequestLoad
from service.planning.errors import PlanningError
from service.planning.estimates.devices import start_engine
from service.planning.hardware.cluster import Accelerator, Cluster
from service.planning.hardware.storage import (
    GGUF_FORMATS,
    NAMED_FORMATS,
    PLAIN_FORMATS,
    BlockFormat,
    WeightFormat,
)
from service.planning.hardware.storage.named import MXFP4_ENGINE_FORMAT, pad_expert_inputs
from service.planning.models.profile import FusedAttention
from service.planning.notes import AnswerNotes
from service.planning.precision import COMPUTE_FORMATS, NumberFormat
from service.planning.software.engines import (
    LARGE_DEVICE_BYTES,
    EngineName,
    EngineRules,
    EngineSettings,
    resolve_engine_name,
)
from service.planning.workload import (
    Adapters,
    CompanionModel,
    DraftModel,
    Horizon,
    HorizonUnit,
    InferenceWorkload,
)
from service.resolve.catalog import CatalogView
from service.resolve.load import resolve_levels, resolve_load
from service.resolve.model import ResolvedModel, resolve_model
from service.schemas.load import SpeculativeDecodingInput
from service.schemas.passes import DiffusionInput
from service.schemas.workloads import HorizonInput, InferenceWorkloadInput

BATCHED_TOKENS = 8192
"""Default for the most tokens of one iteration."""


WIDE_LLAMA_CPP_FORMAT = "gguf_f16"
LLAMA_CPP_FORMAT = "gguf_q4_k_m"
"""File that llama.cpp downloads of a repository without a file type (``--hf-repo``)."""
_PLAIN_CHOICES = (NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32)


def _select_plain_format(accelerator: Accelerator) -> NumberFormat:
    """Returns the first of bf16, fp16 and fp32 with a known rate; bf16 without any rate."""
    found = accelerator.find_peak(*_PLAIN_CHOICES)
    return found[0] if found else NumberFormat.BF16


def _resolve_storage(
    given: InferenceWorkloadInput,
    model: ResolvedModel,
    accelerator: Accelerator,
    rules: EngineRules,
    notes: AnswerNotes,
) -> tuple[NumberFormat, WeightFormat]:
    """Returns the format that weights are multiplied in, and the format that they are stored in.

    Both follow the workload, else the checkpoint. Raises :class:`PlanningError` if the quantization of the
    checkpoint cannot be read.
    """
    name, precision = given.weight_format, given.weight_precision
    if name is not MISSING and precision is not MISSING:
        detail = "give either weight_format or weight_precision"
        raise PlanningError("WEIGHT_FORMAT_CONFLICT", "/workload/weight_format", detail)
    checkpoint = model.stored
    if name is MISSING and precision is MISSING:
        if model.unreadable is not None:
            raise model.unreadable
        stored = _select_open_format(model, accelerator, rules, notes)
    else:
        stored = PLAIN_FORMATS[NumberFormat.BF16]
        if name is not MISSING:
            stored = {**NAMED_FORMATS, **GGUF_FORMATS}[name.value]
        elif precision is not MISSING:
            stored = PLAIN_FORMATS[NumberFormat(precision)]
        if checkpoint is not None or model.unreadable is not None:
            notes.warn(
                "CHECKPOINT_FORMAT_NOT_USED",
                model.stored_pointer,
                "the published weights are quantised; the answer holds for weights as the workload says",
            )
    if stored.name == "mxfp4" and rules.padded_mxfp4:
        stored = MXFP4_ENGINE_FORMAT if checkpoint is None else pad_expert_inputs(stored)
    _warn_of_emulation(stored, accelerator, notes)
    return stored.compute, stored


def _select_open_format(
    model: ResolvedModel, accelerator: Accelerator, rules: EngineRules, notes: AnswerNotes
) -> WeightFormat:
    """Returns the format of weights that the question leaves open: the published one, if the engine reads it.

    llama.cpp reads its own files only, which hold the blocks of MXFP4 as they are published.
    """
    published = model.stored
    if rules.name is EngineName.LLAMA_CPP and (
        published is None or published.name not in (*GGUF_FORMATS, "mxfp4")
    ):
        stored = GGUF_FORMATS[WIDE_LLAMA_CPP_FORMAT if model.is_wide else LLAMA_CPP_FORMAT]
        if model.is_wide:
            notes.fill("/workload/weight_format", stored.name, "published", "the width that the name states")
        else:
            detail = "the file that llama.cpp downloads where none is named (--hf-repo)"
            notes.fill("/workload/weight_format", stored.name, "engine", detail)
        if published is not None:
            detail = f"llama.cpp reads no weights in {published.name}: the answer holds for {stored.name}"
            notes.warn("CHECKPOINT_FORMAT_NOT_USED", model.stored_pointer, detail)
        return stored
    pointer = "/workload/weight_precision"
    if published is not None:
        notes.fill(pointer, published.name, "published", "the published format")
        return published
    stored = PLAIN_FORMATS[_select_plain_format(accelerator)]
    detail = "16 bits that the device multiplies, unless published narrower"
    notes.fill(pointer, stored.name, "service", detail)
    return stored


def _warn_of_emulation(stored: WeightFormat, accelerator: Accelerator, notes: AnswerNotes) -> None:
    """Says so where the accelerator cannot multiply in the format of the weights, and widens them first."""
    formats = COMPUTE_FORMATS[stored.compute]
    peak = accelerator.find_peak(*formats)
    if formats[0] is stored.compute and peak is not None and peak[0] is not stored.compute:
        detail = (
            f"{accelerator.id} has no {stored.compute} units: the weights stay as they are in memory, and"
            f" kernels widen them to {peak[0]} as they multiply"
        )
        notes.warn("WEIGHTS_WIDENED", "/workload/weight_precision", detail)


def resolve_engine(given: InferenceWorkloadInput) -> EngineSettings | None:
    """Returns the settings of the engine, or None if the question names no engine."""
    asked = given.engine
    if asked is MISSING:
        return None

    def to_optional(value: int | MISSING) -> int | None:
        return None if value is MISSING else value

    return EngineSettings(
        resolve_engine_name(asked.name),
        None if asked.version is MISSING else asked.version,
        max_model_len=to_optional(asked.max_model_len),
        max_num_seqs=to_optional(asked.max_num_seqs),
        max_batched_tokens=to_optional(asked.max_batched_tokens),
        block_tokens=to_optional(asked.block_tokens),
        memory_fraction=None if given.memory_fraction is MISSING else given.memory_fraction,
        cuda_graphs=asked.cuda_graphs,
        warmed_up=asked.warmed_up,
        device_layers=to_optional(asked.device_layers),
    )


def _resolve_generation(accelerator: Accelerator) -> str | None:
    """Returns the accelerator's generation.

    A small device of an unknown generation counts as an older one.
    """
    capacity = accelerator.capacity_bytes
    small = capacity is not None and capacity.value < LARGE_DEVICE_BYTES
    return accelerator.generation or ("unknown" if small else None)


def _resolve_state_format(given: InferenceWorkloadInput, rules: EngineRules) -> NumberFormat:
    if given.state_precision is not MISSING:
        return NumberFormat(given.state_precision)
    return NumberFormat.FP32 if rules.wide_states else NumberFormat.BF16


def _is_prefill_chunked(given: InferenceWorkloadInput, rules: EngineRules) -> bool:
    engine = given.engine
    if engine is MISSING or engine.chunked_prefill is MISSING:
        return rules.chunks_prefill
    return engine.chunked_prefill


def _resolve_attention(given: InferenceWorkloadInput, rules: EngineRules) -> FusedAttention:
    engine = given.engine
    if engine is not MISSING and engine.attention_release is not MISSING:
        return engine.attention_release
    return FusedAttention.NATIVE if rules.native_attention else FusedAttention.SECOND


_CHECKPOINT_CACHE = frozenset({EngineName.VLLM, EngineName.SGLANG, EngineName.TENSORRT_LLM})
"""Engines whose cache is by default in the format that the checkpoint states (``auto``)."""
_CACHE_WITHOUT_UNITS = {NumberFormat.FP4: NumberFormat.FP8}
"""Formats of a cache on devices whose units do not have the published one, where engines store another."""


def _resolve_cache_format(
    given: InferenceWorkloadInput,
    stored: WeightFormat,
    accelerator: Accelerator,
    rules: EngineRules,
    notes: AnswerNotes,
) -> NumberFormat | BlockFormat:
    """Returns the format of the KV cache: as stated, else that of the checkpoint, else 16 bits."""
    pointer, peaks = "/workload/kv_cache_precision", accelerator.peak_flops_per_second
    if given.kv_cache_precision is not MISSING:
        return _CACHE_FORMATS[given.kv_cache_precision]
    published = stored.cache if rules.name is None or rules.name in _CHECKPOINT_CACHE else None
    if rules.name is EngineName.LLAMA_CPP:
        detail = "the default of llama.cpp (--cache-type-k, --cache-type-v)"
        notes.fill(pointer, NumberFormat.FP16.value, "engine", detail)
        return NumberFormat.FP16
    if published is None:
        detail = "16 bits, unless the checkpoint states a format of the cache that the engine reads"
        plain = _select_plain_format(accelerator)
        notes.fill(pointer, plain.value, "engine" if rules.name else "service", detail)
        return plain
    found = published
    if peaks and published not in peaks:
        found = _CACHE_WITHOUT_UNITS.get(published, published)
        detail = (
            f"{accelerator.id} has no {published} units: the cache is stored in {found}, and kernels widen it"
            " as they read it"
        )
        notes.warn("CACHE_WIDENED", pointer, detail)
    notes.fill(pointer, found.value, "published", "the format that the checkpoint states for the cache")
    return found


_CACHE_FORMATS: Mapping[str, NumberFormat | BlockFormat] = {
    item.value: item for item in (*NumberFormat, *BlockFormat)
}


def resolve_workload(
    given: InferenceWorkloadInput,
    model: ResolvedModel,
    cluster: Cluster,
    catalog: CatalogView,
    notes: AnswerNotes,
    *,
    devices: int = 1,
) -> tuple[InferenceWorkload, RequestLoad]:
    """Returns the workload on ``devices`` a replica, and the load of the whole cluster.

    Without a concurrency the workload counts one request at a time, since their number is then an estimate.
    """
    load = resolve_load(given, notes)
    outputs = load.outputs.mean
    profile = model.profile
    if profile.shapes_known and not profile.generates:
        outputs = 0.0
        notes.warn(
            "NO_TOKENS_GENERATED",
            "/workload/output_tokens",
            "the model does not decode; a request is one pass over its input",
        )
    elif given.passes is not MISSING:
        outputs = 0.0
    engine = resolve_engine(given)
    if engine is not None and engine.name is None:
        detail = f"not among {', '.join(EngineName)}; the answer holds for an engine without overhead"
        notes.warn("ENGINE_UNKNOWN", "/workload/engine/name", detail)
    rules = EngineRules() if engine is None else engine.rules
    multiplied, stored = _resolve_storage(given, model, cluster.accelerator, rules, notes)
    fraction = given.memory_fraction
    workload = InferenceWorkload(
        weight_format=multiplied,
        cache_format=_resolve_cache_format(given, stored, cluster.accelerator, rules, notes),
        input_tokens=load.inputs.mean,
        output_tokens=outputs,
        concurrency=load.concurrency or 1,
        batched_tokens=BATCHED_TOKENS,
        block_tokens=rules.block_tokens,
        memory_fraction=rules.memory_fraction if fraction is MISSING else fraction,
        stored=stored,
        state_format=_resolve_state_format(given, rules),
        rules=rules,
        chunks_prefill=_is_prefill_chunked(given, rules),
        fused=_resolve_attention(given, rules),
        is_static=rules.static_batches if given.scheduler is MISSING else given.scheduler == "static",
    )
    if engine is not None and engine.name is not None:
        generation = _resolve_generation(cluster.accelerator)
        least, buffers, most = catalog.curves.find_serving_buffers(engine.name, generation)
        workload = workload._replace(buffers=buffers, least_buffers=least, most_buffers=most)
    workload = start_engine(workload, engine, model.context_tokens, cluster.accelerator, devices)
    workload = _add_companions(workload, given, load, catalog, notes)
    if given.service_levels is not MISSING:
        resolve_levels(given.service_levels)
    if given.horizon is not MISSING:
        workload = _apply_horizon(workload, given.horizon)
    return workload, load


def _add_companions(
    workload: InferenceWorkload,
    given: InferenceWorkloadInput,
    load: RequestLoad,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> InferenceWorkload:
    """Returns the workload with its draft model, its adapters and its companion models."""
    if given.speculative is not MISSING:
        workload = workload._replace(draft=_resolve_draft(given.speculative, load, catalog, notes))
    if given.adapters is not MISSING:
        adapters = Adapters(given.adapters.max_loras, given.adapters.rank)
        workload = workload._replace(adapters=adapters)
    if given.diffusion is not MISSING:
        workload = workload._replace(companions=_list_companions(given.diffusion, catalog))
    return workload


def _list_companions(given: DiffusionInput, catalog: CatalogView) -> tuple[CompanionModel, ...]:
    """Returns text encoders and autoencoder, undivided, at 16 bit or at the width of their arithmetic."""
    beside = [] if given.text_encoders is MISSING else list(given.text_encoders)
    named = [(f"text_encoders/{index}", item.model) for index, item in enumerate(beside)]
    stored = {}
    if given.autoencoder is not MISSING:
        named.append(("autoencoder", given.autoencoder.model))
        if given.autoencoder.precision in ("fp32", "tf32"):
            stored["autoencoder"] = PLAIN_FORMATS[NumberFormat.FP32]
    found = []
    for name, reference in named:
        try:
            profile = resolve_model(reference, catalog, AnswerNotes()).profile
        except PlanningError as error:
            pointer = f"/workload/diffusion/{name}{error.pointer}"
            raise PlanningError(error.code, pointer, error.detail) from error
        found.append(CompanionModel(profile, stored.get(name, PLAIN_FORMATS[NumberFormat.BF16])))
    return tuple(found)


def _resolve_draft(
    given: SpeculativeDecodingInput, load: RequestLoad, catalog: CatalogView, notes: AnswerNotes
) -> DraftModel | None:
    """Returns the model that proposes tokens, or None if there is none."""
    if given.model is MISSING or load.proposals is None:
        return None
    try:
        draft = resolve_model(given.model, catalog, notes)
    except PlanningError as error:
        pointer = f"/workload/speculative{error.pointer}"
        raise PlanningError(error.code, pointer, error.detail) from error
    stored = draft.stored or PLAIN_FORMATS[NumberFormat.BF16]
    return DraftModel(draft.profile, stored, load.proposals.tokens)


def _apply_horizon(workload: InferenceWorkload, given: HorizonInput) -> InferenceWorkload:
    ends = [Horizon(HorizonUnit(name), value) for name, value in given if value is not MISSING]
    if len(ends) != 1:
        raise PlanningError("HORIZON", "/workload/horizon", "give exactly one end of the horizon")
    return workload._replace(horizon=ends[0])
