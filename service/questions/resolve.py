"""From a question to planning values: references looked up, defaults taken, contradictions refused."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from pydantic import MISSING

from service.planning.cluster import Cluster
from service.planning.engines import (
    LARGE_DEVICE_BYTES,
    EngineDefaults,
    EngineName,
    EngineRules,
    defaults_of,
    engine_name,
    rules_of,
)
from service.planning.errors import PlanningError
from service.planning.formats.huggingface import import_config
from service.planning.formats.quantization import checkpoint_format
from service.planning.frameworks import Framework, recipe_under
from service.planning.layout import inference_layout, training_layout
from service.planning.memory.adaptation import LINEAR_NAMES, LOW_RANK, trained_parameters
from service.planning.memory.states import EIGHT_BIT
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding, check
from service.planning.precision import (
    OPTIMIZER_STATES,
    TRAINING_RECIPES,
    NumberFormat,
    TrainingPrecision,
    TrainingRecipe,
)
from service.planning.profile import Profile, profile_of, profile_of_count
from service.planning.storage import (
    GGUF_FORMATS,
    NAMED_FORMATS,
    PLAIN_FORMATS,
    BlockFormat,
    WeightFormat,
)
from service.planning.storage.named import MXFP4_ENGINE_FORMAT, padded
from service.planning.workload import (
    Adaptation,
    AdaptationKind,
    Adapters,
    BaseWeights,
    Draft,
    Horizon,
    HorizonUnit,
    InferenceWorkload,
    Objective,
    Offload,
    Recomputation,
    TrainingWorkload,
)
from service.questions.architectures import to_planning
from service.questions.catalog import Catalog
from service.questions.estimates import MemoryQuestion, ThroughputQuestion
from service.questions.hardware import usable_bytes
from service.questions.notes import Notes, lookup
from service.questions.references import (
    ArchitectureModel,
    CatalogModel,
    HuggingFaceModel,
    ModelReference,
    ParallelismInput,
)
from service.questions.workloads import (
    AdaptationInput,
    FixedLength,
    HorizonInput,
    InferenceWorkloadInput,
    TrainingWorkloadInput,
)

BATCHED_TOKENS = 8192
"""Most tokens of one iteration, where the engine's setting is not given."""


class ResolvedModel(NamedTuple):
    """A model as planning sees it."""

    profile: Profile
    context_tokens: int | None
    stored: WeightFormat | None = None
    """How its checkpoint stores the weights, where its configuration says so."""
    unreadable: PlanningError | None = None
    """Why what it says of that cannot be read."""


class Resolved(NamedTuple):
    """A question with every choice made."""

    model: ResolvedModel
    workload: TrainingWorkload | InferenceWorkload
    layout: Parallelism
    layout_chosen: bool
    batch_known: bool
    """Whether the sequences of one step follow from the question."""
    total_tokens: float | None = None
    """Tokens that a training run has in all."""


def _model(reference: ModelReference, catalog: Catalog, notes: Notes) -> ResolvedModel:
    match reference:
        case CatalogModel(id=name):
            known = lookup(catalog.models, name, "/model/id")
            notes.cite(known.source, "/model")
            return ResolvedModel(known.profile, known.context_tokens)
        case HuggingFaceModel(config=config):
            try:
                imported = import_config(config)
                profile = profile_of(imported.architecture)
            except PlanningError as error:
                pointer = f"/model/config{error.pointer}"
                raise PlanningError(error.code, pointer, error.detail) from error
            if imported.defaulted:
                names = ", ".join(imported.defaulted)
                notes.warn(
                    "CONFIG_DEFAULT_USED",
                    "/model/config",
                    f"the configuration leaves out {names}; the defaults of {imported.class_name} are used",
                )
            try:
                stored = checkpoint_format(config)
            except PlanningError as error:
                pointer = f"/model/config{error.pointer}"
                unreadable = PlanningError(error.code, pointer, error.detail)
                return ResolvedModel(profile, imported.context_tokens, unreadable=unreadable)
            return ResolvedModel(profile, imported.context_tokens, stored)
        case ArchitectureModel(architecture=architecture):
            try:
                return ResolvedModel(profile_of(to_planning(architecture)), None)
            except PlanningError as error:
                pointer = f"/model/architecture{error.pointer}"
                raise PlanningError(error.code, pointer, error.detail) from error
        case _:
            return ResolvedModel(profile_of_count(reference.parameter_count), None)


def _given_layout(given: ParallelismInput, cluster: Cluster | None) -> Parallelism:
    held = given.tensor * given.pipeline * given.context
    data = given.data
    if data is MISSING:
        # What remains of the cluster; a remainder is refused by the check of the product.
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
    )
    check(layout, device_count=cluster.accelerator_count if cluster else layout.devices)
    return layout


def _check_shapes(layout: Parallelism, profile: Profile) -> None:
    """Refuse degrees that the model's shapes do not allow."""
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


def _check_serving(layout: Parallelism, notes: Notes) -> None:
    """What belongs to training is not used in serving."""
    if layout.context > 1:
        detail = "context parallelism of serving is not modelled"
        raise PlanningError("NOT_MODELLED", "/parallelism/context", detail)
    unused = {
        "sequence_parallel": layout.sequence_parallel,
        "sharding": layout.sharding is not Sharding.NONE,
        "pipeline_schedule": layout.pipeline_schedule is not PipelineSchedule.ONE_F_ONE_B,
    }
    for name, given in unused.items():
        if given:
            notes.warn("NOT_USED", f"/parallelism/{name}", f"{name} belongs to training")


def _precision(given: TrainingWorkloadInput, cluster: Cluster | None) -> TrainingPrecision:
    if given.precision is not MISSING:
        return given.precision
    choices = (TrainingPrecision.BF16, TrainingPrecision.FP16, TrainingPrecision.FP32)
    if cluster:
        for precision in choices:
            if cluster.accelerator.peak(TRAINING_RECIPES[precision].compute):
                return precision
    return TrainingPrecision.BF16


def _training(given: TrainingWorkloadInput, cluster: Cluster | None, notes: Notes) -> TrainingWorkload:
    framework = _framework(given, notes)
    k = given.recomputation.k
    if (k is not MISSING) != (given.recomputation.strategy is Recomputation.EVERY_K):
        detail = "k belongs to the strategy every_k, and that strategy needs it"
        raise PlanningError("RECOMPUTATION_INTERVAL", "/workload/recomputation/k", detail)
    teacher = given.teacher_parameter_count
    if teacher is not MISSING and given.objective is not Objective.DISTILLATION:
        notes.warn("NOT_USED", "/workload/teacher_parameter_count", "only a distillation has a teacher")
    return TrainingWorkload(
        sequence_length=given.sequence_length,
        micro_batch_size=given.micro_batch_size,
        micro_batches=1,
        recipe=_recipe(given, cluster, framework),
        optimizer=given.optimizer,
        kernel=given.attention,
        recomputation=given.recomputation.strategy,
        interval=1 if k is MISSING else k,
        adaptation=_adaptation(given.adaptation, notes),
        objective=given.objective,
        offload=Offload(given.offload.optimizer, given.offload.parameters, given.offload.activations),
        framework=framework,
        loss=given.loss,
        teacher_parameters=None if teacher is MISSING else teacher,
        weight_average=given.weight_average,
        optimizer_rank=given.optimizer_rank,
        steps_in_backward=given.optimizer_in_backward,
    )


_FRAMEWORK_NAMES = {
    "megatron": Framework.MEGATRON_LM,
    "megatron_core": Framework.MEGATRON_LM,
    "megatron_bridge": Framework.MEGATRON_LM,
    "nemo": Framework.MEGATRON_LM,
    "pytorch": Framework.FSDP,
    "pytorch_fsdp": Framework.FSDP,
    "llm_foundry": Framework.FSDP,
    "fms_fsdp": Framework.FSDP,
    "pytorch_ddp": Framework.DDP,
    "hugging_face": Framework.TRANSFORMERS,
    "huggingface": Framework.TRANSFORMERS,
    "hf": Framework.TRANSFORMERS,
    "peft": Framework.TRANSFORMERS,
    "trl": Framework.TRANSFORMERS,
}
"""Other names under which a framework is known."""


def _framework(given: TrainingWorkloadInput, notes: Notes) -> Framework:
    if given.framework is MISSING:
        return Framework.GENERIC
    name = re.sub(r"[^a-z0-9]+", "_", given.framework.name.lower()).strip("_")
    if name in _FRAMEWORK_NAMES:
        return _FRAMEWORK_NAMES[name]
    if name in set(Framework):
        return Framework(name)
    detail = f"not among {', '.join(Framework)}; the state is what the precision says"
    notes.warn("FRAMEWORK_UNKNOWN", "/workload/framework/name", detail)
    return Framework.GENERIC


def _recipe(given: TrainingWorkloadInput, cluster: Cluster | None, framework: Framework) -> TrainingRecipe:
    recipe = recipe_under(TRAINING_RECIPES[_precision(given, cluster)], framework)
    if given.gradient_precision is not MISSING:
        gradients = NumberFormat(given.gradient_precision)
        recipe = replace(recipe, gradients=gradients, accumulated_gradients=None, main_gradients=None)
    if given.optimizer_state_precision is not MISSING:
        recipe = replace(recipe, optimizer_states=NumberFormat(given.optimizer_state_precision))
    return recipe


DEFAULT_RANK = 16
"""Rank of low-rank matrices where it is not given."""

ADAPTER_WIDTH = 64
"""Width of an adapter's bottleneck where it is not given (Houlsby et al. 2019)."""

VIRTUAL_TOKENS = 20
"""Virtual tokens where they are not given."""


def _adaptation(given: AdaptationInput, notes: Notes) -> Adaptation:
    kind = given.kind
    used = {
        "rank": kind in LOW_RANK or kind is AdaptationKind.ADAPTER,
        "target_modules": kind in LOW_RANK,
        "base_weights": kind is not AdaptationKind.FULL,
        "virtual_tokens": kind in (AdaptationKind.PROMPT, AdaptationKind.PREFIX),
    }
    for name, applies in used.items():
        if getattr(given, name) is not MISSING and not applies:
            notes.warn("NOT_USED", f"/workload/adaptation/{name}", f"{kind.value} has no {name}")
    rank = ADAPTER_WIDTH if kind is AdaptationKind.ADAPTER else DEFAULT_RANK
    targets: frozenset[str] = frozenset({"query", "value"})
    if kind is AdaptationKind.QLORA:
        targets = LINEAR_NAMES
    base = BaseWeights.NF4_DOUBLE if kind is AdaptationKind.QLORA else BaseWeights.PLAIN
    if given.target_modules is not MISSING:
        named = frozenset(given.target_modules)
        targets = named | LINEAR_NAMES if "all_linear" in named else named
    return Adaptation(
        kind,
        rank=given.rank if given.rank is not MISSING else rank,
        targets=targets if kind in LOW_RANK else frozenset(),
        tokens=VIRTUAL_TOKENS if given.virtual_tokens is MISSING else given.virtual_tokens,
        base=base if given.base_weights is MISSING else given.base_weights,
    )


MICRO_BATCHES_PER_STAGE = 4
"""Micro-batches per pipeline stage where the question leaves the batch open; they keep stages busy."""


def _micro_batches(given: TrainingWorkloadInput, layout: Parallelism) -> int | None:
    """Micro-batches per step, or None where the global batch does not divide."""
    steps = given.gradient_accumulation_steps
    if given.global_batch_size is MISSING:
        if steps is not MISSING:
            return steps
        return MICRO_BATCHES_PER_STAGE * layout.pipeline if layout.pipeline > 1 else 1
    held = given.micro_batch_size * layout.data
    if given.global_batch_size % held:
        return None
    count = given.global_batch_size // held
    return count if steps in (MISSING, count) else None


def _laid_out(
    workload: TrainingWorkload, given: TrainingWorkloadInput, layout: Parallelism
) -> TrainingWorkload | None:
    """The workload with its micro-batches on ``layout``, or None where the batch does not divide."""
    count = _micro_batches(given, layout)
    return None if count is None else workload._replace(micro_batches=count)


def _total_tokens(given: TrainingWorkloadInput, global_batch_size: int | None) -> float | None:
    if given.total_steps is not MISSING and global_batch_size is None:
        detail = "total_steps needs the sequences of a step: give global_batch_size or a layout"
        raise PlanningError("BATCH_REQUIRED", "/workload/total_steps", detail)
    totals = {
        "total_tokens": (given.total_tokens, 1),
        "total_steps": (given.total_steps, (global_batch_size or 0) * given.sequence_length),
        "total_samples": (given.total_samples, given.sequence_length),
    }
    stated = [(name, n * factor) for name, (n, factor) in totals.items() if n is not MISSING]
    if len(stated) > 1:
        names = " and ".join(name for name, _ in stated)
        raise PlanningError("TOTAL_CONFLICT", f"/workload/{stated[1][0]}", f"give one of {names}")
    return float(stated[0][1]) if stated else None


def _tokens(length: int | FixedLength) -> float:
    return float(length.tokens if isinstance(length, FixedLength) else length)


def _storage(
    given: InferenceWorkloadInput, model: ResolvedModel, rules: EngineRules, notes: Notes
) -> tuple[NumberFormat, WeightFormat]:
    """From what the weights are multiplied, and how they are stored: as asked, else as the checkpoint says.

    Raises :class:`PlanningError` where the checkpoint is quantised in a way that cannot be read.
    """
    name, precision = given.weight_format, given.weight_precision
    if name is not MISSING and precision is not MISSING:
        detail = "give weight_format or weight_precision"
        raise PlanningError("WEIGHT_FORMAT_CONFLICT", "/workload/weight_format", detail)
    checkpoint = model.stored
    if name is MISSING and precision is MISSING:
        if model.unreadable is not None:
            raise model.unreadable
        stored = checkpoint or PLAIN_FORMATS[NumberFormat.BF16]
    else:
        stored = PLAIN_FORMATS[NumberFormat.BF16]
        if name is not MISSING:
            stored = {**NAMED_FORMATS, **GGUF_FORMATS}[name.value]
        elif precision is not MISSING:
            stored = PLAIN_FORMATS[NumberFormat(precision)]
        if checkpoint is not None or model.unreadable is not None:
            notes.warn(
                "CHECKPOINT_FORMAT_NOT_USED",
                "/model/config/quantization_config",
                "the checkpoint is quantised; the weights are as the workload says",
            )
    if stored.name == "mxfp4" and rules.padded_mxfp4:
        stored = MXFP4_ENGINE_FORMAT if checkpoint is None else padded(stored)
    return stored.compute, stored


def _engine(given: InferenceWorkloadInput) -> tuple[EngineName | None, str | None, EngineRules]:
    if given.engine is MISSING:
        return None, None, rules_of(None, None)
    name = engine_name(given.engine.name)
    version = None if given.engine.version is MISSING else given.engine.version
    return name, version, rules_of(name, version)


def _inference(
    given: InferenceWorkloadInput,
    model: ResolvedModel,
    cluster: Cluster | None,
    catalog: Catalog,
    notes: Notes,
) -> InferenceWorkload:
    outputs = _tokens(given.output_tokens)
    profile = model.profile
    if profile.shapes_known and not profile.unmodelled_kinds and not profile.generates:
        outputs = 0.0
        notes.warn(
            "NO_TOKENS_GENERATED",
            "/workload/output_tokens",
            "the model does not decode; a request is one pass over its input",
        )
    name, _, rules = _engine(given)
    multiplied, stored = _storage(given, model, rules, notes)
    fraction = given.memory_fraction
    workload = InferenceWorkload(
        weight_format=multiplied,
        cache_format=_CACHE_FORMATS[given.kv_cache_precision],
        input_tokens=_tokens(given.input_tokens),
        output_tokens=outputs,
        concurrency=given.concurrency,
        batched_tokens=BATCHED_TOKENS,
        block_tokens=rules.block_tokens,
        memory_fraction=rules.memory_fraction if fraction is MISSING else fraction,
        stored=stored,
        state_format=NumberFormat(given.state_precision),
        rules=rules,
    )
    if name is not None:
        least, buffers, most = catalog.curves.serving_buffers(name, _generation(cluster))
        workload = workload._replace(buffers=buffers, least_buffers=least, most_buffers=most)
    workload = _under_engine(workload, given, model, cluster)
    workload = _with_beside(workload, given, catalog, notes)
    if given.horizon is not MISSING:
        workload = _until(workload, given.horizon)
    return workload


def _generation(cluster: Cluster | None) -> str | None:
    """The accelerator's generation; a small device of an unknown one is taken for an older one."""
    if cluster is None:
        return None
    accelerator = cluster.accelerator
    capacity = accelerator.capacity_bytes
    small = capacity is not None and capacity.value < LARGE_DEVICE_BYTES
    return accelerator.generation or ("unknown" if small else None)


_CACHE_FORMATS: Mapping[str, NumberFormat | BlockFormat] = {
    item.value: item for item in (*NumberFormat, *BlockFormat)
}


def _under_engine(
    workload: InferenceWorkload,
    given: InferenceWorkloadInput,
    model: ResolvedModel,
    cluster: Cluster | None,
) -> InferenceWorkload:
    """The workload within the engine's bounds, as given or as the engine sets them on the device."""
    engine = given.engine
    if engine is MISSING:
        return workload
    name, version, rules = _engine(given)
    accelerator = cluster.accelerator if cluster else None
    capacity = accelerator.capacity_bytes if accelerator else None
    length = engine.max_model_len
    bounds = defaults_of(
        rules,
        version,
        capacity_bytes=capacity.value if capacity else 0.0,
        is_a100="a100" in accelerator.id if accelerator else False,
        model_tokens=model.context_tokens if length is MISSING else length,
    )
    if name is None:
        bounds = EngineDefaults(None, BATCHED_TOKENS)
    tokens, requests, block = engine.max_batched_tokens, engine.max_num_seqs, engine.block_tokens
    return workload._replace(
        batched_tokens=bounds.batched_tokens if tokens is MISSING else tokens,
        most_requests=bounds.most_requests if requests is MISSING else requests,
        block_tokens=rules.block_tokens if block is MISSING else block,
        cuda_graphs=engine.cuda_graphs,
        reserved_tokens=0 if length is MISSING or rules.paged else length,
        device_layers=None if engine.device_layers is MISSING else engine.device_layers,
    )


def _with_beside(
    workload: InferenceWorkload, given: InferenceWorkloadInput, catalog: Catalog, notes: Notes
) -> InferenceWorkload:
    """The workload with its draft model and its adapters."""
    if given.speculative is not MISSING:
        try:
            draft = _model(given.speculative.model, catalog, notes)
        except PlanningError as error:
            pointer = f"/workload/speculative{error.pointer}"
            raise PlanningError(error.code, pointer, error.detail) from error
        stored = draft.stored or PLAIN_FORMATS[NumberFormat.BF16]
        workload = workload._replace(draft=Draft(draft.profile, stored, given.speculative.tokens))
    if given.adapters is not MISSING:
        adapters = Adapters(given.adapters.max_loras, given.adapters.rank)
        workload = workload._replace(adapters=adapters)
    return workload


def _until(workload: InferenceWorkload, given: HorizonInput) -> InferenceWorkload:
    ends = [Horizon(HorizonUnit(name), value) for name, value in given if value is not MISSING]
    if len(ends) != 1:
        raise PlanningError("HORIZON", "/workload/horizon", "give exactly one end of the horizon")
    return workload._replace(horizon=ends[0])


def resolve(
    question: MemoryQuestion | ThroughputQuestion,
    cluster: Cluster | None,
    catalog: Catalog,
    notes: Notes,
) -> Resolved:
    """The question as planning values on ``cluster``, with what was looked up and chosen noted.

    Raises :class:`PlanningError` naming the field of the question at fault.
    """
    model = _model(question.model, catalog, notes)
    given = question.workload
    layout = None
    if question.parallelism is not MISSING:
        layout = _given_layout(question.parallelism, cluster)
        _check_shapes(layout, model.profile)
        if cluster and layout.tensor > cluster.accelerators_per_node:
            notes.warn(
                "TENSOR_ACROSS_NODES",
                "/parallelism/tensor",
                f"tensor {layout.tensor} exceeds the {cluster.accelerators_per_node} accelerators of a node",
            )
    devices = cluster.accelerator_count if cluster else 1
    per_node = cluster.accelerators_per_node if cluster else 1
    if isinstance(given, TrainingWorkloadInput):
        if model.stored is not None or model.unreadable is not None:
            notes.warn(
                "QUANTIZATION_NOT_READ",
                "/model/config/quantization_config",
                "the width of the weights is that of the workload",
            )
        training = _training(given, cluster, notes)
        _check_adaptation(training, model)
        chosen = layout or training_layout(
            model.profile,
            lambda candidate: _laid_out(training, given, candidate),
            devices=devices,
            per_node=per_node,
            usable_bytes=usable_bytes(cluster, training),
            overhead=catalog.curves.training_memory.overhead,
        )
        laid_out = _laid_out(training, given, chosen)
        if laid_out is None:
            raise PlanningError(
                "BATCH_MISMATCH",
                "/workload/global_batch_size",
                f"global_batch_size is not micro_batch_size {given.micro_batch_size} x data "
                f"{chosen.data} x gradient_accumulation_steps",
            )
        if laid_out.steps_in_backward and laid_out.micro_batches > 1:
            detail = "gradients of several micro-batches are summed before a step: give one micro-batch"
            raise PlanningError("STEP_IN_BACKWARD", "/workload/optimizer_in_backward", detail)
        known = layout is not None or model.profile.shapes_known or given.global_batch_size is not MISSING
        _check_length(given.sequence_length, "/workload/sequence_length", model, notes)
        batch = laid_out.micro_batch_size * laid_out.micro_batches * chosen.data if known else None
        total = _total_tokens(given, batch)
        return Resolved(model, laid_out, chosen, layout is None, known, total)
    if layout is not None:
        _check_serving(layout, notes)
    inference = _inference(given, model, cluster, catalog, notes)
    chosen = layout or inference_layout(
        model.profile,
        inference,
        devices=devices,
        per_node=per_node,
        usable_bytes=usable_bytes(cluster, inference),
    )
    _check_length(inference.input_tokens + inference.output_tokens, "/workload/input_tokens", model, notes)
    return Resolved(model, inference, chosen, layout is None, batch_known=True)


def _check_adaptation(workload: TrainingWorkload, model: ResolvedModel) -> None:
    """Refuse an optimizer or an adaptation that the model says too little for."""
    kind, profile = workload.adaptation.kind, model.profile
    by_element = workload.optimizer in OPTIMIZER_STATES or workload.optimizer in EIGHT_BIT
    if not profile.shapes_known and not by_element:
        detail = f"the states of {workload.optimizer.value} follow from shapes, which a count does not say"
        raise PlanningError("ARCHITECTURE_REQUIRED", "/workload/optimizer", detail)
    if kind is AdaptationKind.FULL:
        return
    if not profile.shapes_known:
        detail = f"{kind.value} stands beside matrices whose shapes a parameter count does not say"
        raise PlanningError("ARCHITECTURE_REQUIRED", "/workload/adaptation/kind", detail)
    if not trained_parameters(profile, workload.adaptation):
        detail = "the model has none of the matrices that would be adapted"
        raise PlanningError("NOTHING_TRAINED", "/workload/adaptation", detail)


def _check_length(tokens: float, pointer: str, model: ResolvedModel, notes: Notes) -> None:
    if model.context_tokens is not None and tokens > model.context_tokens:
        notes.warn(
            "CONTEXT_EXCEEDED",
            pointer,
            f"{tokens:.0f} tokens exceed the {model.context_tokens} that the model was built for",
        )
