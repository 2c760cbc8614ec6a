"""Resolution of training workloads: defaults applied, contradictions refused."""

import re
from dataclasses import replace

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.memory.adaptation import LINEAR_NAMES, LOW_RANK, PREFIXED, count_trained_parameters
from service.planning.memory.states import EIGHT_BIT
from service.planning.models.layers import TokenRouting
from service.planning.models.profile import ModelProfile
from service.planning.models.token_routing import route_tokens
from service.planning.notes import AnswerNotes
from service.planning.operators.passes import get_fused_attention
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import (
    OPTIMIZER_STATES,
    TRAINING_RECIPES,
    NumberFormat,
    TrainingPrecision,
    TrainingRecipe,
)
from service.planning.software.frameworks import Framework, resolve_recipe
from service.planning.workload import (
    PAIRED,
    Adaptation,
    AdaptationKind,
    AttentionKernel,
    Compression,
    ExpertBalance,
    FrozenWeightFormat,
    GradientCompressionKind,
    Offload,
    Recomputation,
    TrainingObjective,
    TrainingWorkload,
)
from service.resolve.model import ResolvedModel
from service.resolve.rollout import resolve_rollout
from service.schemas.workloads import AdaptationInput, RecomputationInput, TrainingWorkloadInput


def resolve_precision(given: TrainingWorkloadInput, cluster: Cluster) -> TrainingPrecision:
    """Returns the precision of a question, else the first of bf16, fp16 and fp32 with a known rate."""
    if given.precision is not MISSING:
        return given.precision
    choices = (TrainingPrecision.BF16, TrainingPrecision.FP16, TrainingPrecision.FP32)
    has_rate = (one for one in choices if cluster.accelerator.find_peak(TRAINING_RECIPES[one].compute))
    return next(has_rate, TrainingPrecision.BF16)


def resolve_training_workload(
    given: TrainingWorkloadInput, cluster: Cluster, notes: AnswerNotes
) -> TrainingWorkload:
    """Returns the workload of one micro-batch. The number of micro-batches follows from the layout."""
    framework = resolve_framework(given, notes)
    recomputation = (
        RecomputationInput(strategy=Recomputation.NONE)
        if given.recomputation is MISSING
        else given.recomputation
    )
    if given.precision is MISSING:
        reason = "the first of bf16, fp16 and fp32 that the accelerator has a rate for"
        notes.fill("/workload/precision", resolve_precision(given, cluster).value, "service", reason)
    k = recomputation.k
    if (k is not MISSING) != (recomputation.strategy is Recomputation.EVERY_K):
        detail = "k must be given with the strategy every_k, and only with it"
        raise PlanningError("RECOMPUTATION_INTERVAL", "/workload/recomputation/k", detail)
    fused = None if given.attention_release is MISSING else given.attention_release
    if fused is None and given.attention is AttentionKernel.FLASH:
        _note_attention_release(framework, notes)
    return TrainingWorkload(
        sequence_length=given.sequence_length,
        micro_batch_size=1 if given.micro_batch_size is MISSING else given.micro_batch_size,
        micro_batches=1,
        recipe=_resolve_recipe(given, cluster, framework),
        optimizer=given.optimizer,
        kernel=given.attention,
        recomputation=recomputation.strategy,
        interval=1 if k is MISSING else k,
        adaptation=_resolve_adaptation(given.adaptation, notes),
        objective=given.objective,
        offload=Offload(given.offload.optimizer, given.offload.parameters, given.offload.activations),
        framework=framework,
        loss=given.loss,
        teacher_parameters=_resolve_other_model(given, "teacher", notes),
        weight_average=given.weight_average,
        optimizer_rank=given.optimizer_rank,
        steps_in_backward=given.optimizer_in_backward,
        fusion=None if given.fusion is MISSING else given.fusion,
        fused=fused,
        graphs=given.cuda_graphs,
        compression=_resolve_compression(given, notes),
        rollout=resolve_rollout(given.rollout, given.objective, given.sequence_length, notes),
        reward_parameters=_resolve_other_model(given, "reward", notes),
        critic_parameters=_resolve_other_model(given, "critic", notes),
    )


_HAVING = {
    "teacher": frozenset({TrainingObjective.DISTILLATION}),
    "reward": frozenset({TrainingObjective.PPO, TrainingObjective.GRPO}),
    "critic": frozenset({TrainingObjective.PPO}),
}
"""Objectives by the models that they need besides the trained one."""


def _resolve_other_model(given: TrainingWorkloadInput, role: str, notes: AnswerNotes) -> int | None:
    """Returns the parameters of another model of the objective, or None if they are not given."""
    name = f"{role}_parameter_count"
    count: int | MISSING = getattr(given, name)
    if count is MISSING:
        return None
    if given.objective not in _HAVING[role]:
        notes.warn("NOT_USED", f"/workload/{name}", f"{given.objective.value} has no {role} model")
        return None
    return count


def _resolve_compression(given: TrainingWorkloadInput, notes: AnswerNotes) -> Compression | None:
    asked = given.gradient_compression
    if asked is MISSING:
        return None
    used = {
        "kept_share": asked.kind in (GradientCompressionKind.TOP_K, GradientCompressionKind.RANDOM_K),
        "rank": asked.kind is GradientCompressionKind.POWER_SGD,
    }
    for name, applies in used.items():
        if getattr(asked, name) is not MISSING and not applies:
            pointer = f"/workload/gradient_compression/{name}"
            notes.warn("NOT_USED", pointer, f"{asked.kind.value} has no {name}")
    default = Compression(asked.kind)
    return Compression(
        asked.kind,
        kept_share=default.kept_share if asked.kept_share is MISSING else asked.kept_share,
        rank=default.rank if asked.rank is MISSING else asked.rank,
        error_feedback=asked.error_feedback,
    )


def drop_unused_compression(
    workload: TrainingWorkload, layout: Parallelism, notes: AnswerNotes
) -> TrainingWorkload:
    """Returns the workload without a compression that has no effect on ``layout``."""
    if workload.compression is None:
        return workload
    reason = None
    if layout.replicas == 1:
        reason = "one replica sends no gradients"
    elif layout.sharding is not Sharding.NONE:
        reason = f"{layout.sharding.value} shards gradients, and only whole ones are compressed"
    elif workload.adaptation.kind is not AdaptationKind.FULL:
        reason = "only the gradients of a whole model are compressed"
    if reason is None:
        return workload
    notes.warn("NOT_USED", "/workload/gradient_compression", reason)
    return workload._replace(compression=None)


def route_trained_tokens(
    profile: ModelProfile, given: TrainingWorkloadInput, notes: AnswerNotes
) -> ModelProfile:
    """Returns the model whose tokens are routed to experts as the question states."""
    capacity = None if given.expert_capacity_factor is MISSING else given.expert_capacity_factor
    routing = TokenRouting(capacity, is_forced=given.expert_balance is ExpertBalance.FORCED)
    if not profile.expert_count:
        for name, stated in (("expert_capacity_factor", capacity), ("expert_balance", routing.is_forced)):
            if stated:
                notes.warn("NOT_USED", f"/workload/{name}", "the model has no experts")
        return profile
    most = profile.expert_count / profile.experts_per_token
    if capacity is not None and capacity > most:
        detail = f"an expert takes every token at {most:g}, the experts over those of a token"
        raise PlanningError("EXPERT_CAPACITY", "/workload/expert_capacity_factor", detail)
    return route_tokens(profile, routing)


_FRAMEWORK_NAMES = {
    "megatron": Framework.MEGATRON_LM,
    "megatron_bridge": Framework.MEGATRON_CORE,
    "nemo": Framework.MEGATRON_CORE,
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
"""Aliases of frameworks."""


def _note_attention_release(framework: Framework, notes: AnswerNotes) -> None:
    """Notes the release of the fused attention that a question leaves open."""
    release = get_fused_attention(framework).value
    pointer = "/workload/attention_release"
    if framework is Framework.GENERIC:
        detail = "the fused attention that current training software brings for the device"
        notes.fill(pointer, release, "service", detail)
    else:
        detail = "the fused attention of the framework: FlashAttention-2, or the like of other devices"
        notes.fill(pointer, release, "framework", detail)


def resolve_framework(given: TrainingWorkloadInput, notes: AnswerNotes) -> Framework:
    """Returns the framework of a workload; one that is not known counts as any, with a warning."""
    if given.framework is MISSING:
        return Framework.GENERIC
    name = re.sub(r"[^a-z0-9]+", "_", given.framework.name.lower()).strip("_")
    if name in _FRAMEWORK_NAMES:
        return _FRAMEWORK_NAMES[name]
    if name in set(Framework):
        return Framework(name)
    detail = f"not one of {', '.join(Framework)}; the training state follows from the precision"
    notes.warn("FRAMEWORK_UNKNOWN", "/workload/framework/name", detail)
    return Framework.GENERIC


def _resolve_recipe(given: TrainingWorkloadInput, cluster: Cluster, framework: Framework) -> TrainingRecipe:
    recipe = resolve_recipe(TRAINING_RECIPES[resolve_precision(given, cluster)], framework)
    if given.gradient_precision is not MISSING:
        gradients = NumberFormat(given.gradient_precision)
        recipe = replace(recipe, gradients=gradients, accumulated_gradients=None, main_gradients=None)
    if given.optimizer_state_precision is not MISSING:
        recipe = replace(recipe, optimizer_states=NumberFormat(given.optimizer_state_precision))
    return recipe


DEFAULT_RANK = 16
"""Default rank of low-rank matrices."""


ADAPTER_WIDTH = 64
"""Default width of an adapter's bottleneck (Houlsby et al. 2019)."""


VIRTUAL_TOKENS = 20
"""Default number of virtual tokens."""


def _resolve_adaptation(given: AdaptationInput, notes: AnswerNotes) -> Adaptation:
    kind = given.kind
    used = {
        "rank": kind in LOW_RANK or kind is AdaptationKind.ADAPTER,
        "target_modules": kind in LOW_RANK,
        "base_weights": kind is not AdaptationKind.FULL,
        "virtual_tokens": kind is AdaptationKind.PROMPT or kind in PREFIXED,
    }
    for name, applies in used.items():
        if getattr(given, name) is not MISSING and not applies:
            notes.warn("NOT_USED", f"/workload/adaptation/{name}", f"{kind.value} has no {name}")
    rank = ADAPTER_WIDTH if kind is AdaptationKind.ADAPTER else DEFAULT_RANK
    targets: frozenset[str] = frozenset({"query", "value"})
    if kind is AdaptationKind.QLORA:
        targets = LINEAR_NAMES
    if kind in LOW_RANK and given.rank is MISSING:
        notes.fill("/workload/adaptation/rank", str(rank), "service", "the default for low-rank matrices")
    if kind in LOW_RANK and given.target_modules is MISSING:
        named = "all_linear" if targets is LINEAR_NAMES else ", ".join(sorted(targets))
        reason = "every matrix for qlora, else query and value (Dettmers et al. 2023; Hu et al. 2021)"
        notes.fill("/workload/adaptation/target_modules", named, "service", reason)
    base = FrozenWeightFormat.NF4_DOUBLE if kind is AdaptationKind.QLORA else FrozenWeightFormat.PLAIN
    if given.target_modules is not MISSING:
        chosen = frozenset(given.target_modules)
        targets = chosen | LINEAR_NAMES if "all_linear" in chosen else chosen
    return Adaptation(
        kind,
        rank=given.rank if given.rank is not MISSING else rank,
        targets=targets if kind in LOW_RANK else frozenset(),
        tokens=VIRTUAL_TOKENS if given.virtual_tokens is MISSING else given.virtual_tokens,
        base=base if given.base_weights is MISSING else given.base_weights,
    )


MICRO_BATCHES_PER_STAGE = 4
"""Micro-batches per pipeline stage if the question leaves the batch open, enough to keep stages busy."""


def _count_micro_batches(
    given: TrainingWorkloadInput, micro_batch_size: int, layout: Parallelism
) -> int | None:
    """Returns micro-batches per step, or None if the global batch does not divide."""
    steps = given.gradient_accumulation_steps
    if given.global_batch_size is MISSING:
        if steps is not MISSING:
            return steps
        return MICRO_BATCHES_PER_STAGE * layout.pipeline if layout.pipeline > 1 else 1
    held = micro_batch_size * layout.data
    if given.global_batch_size % held:
        return None
    count = given.global_batch_size // held
    return count if steps in (MISSING, count) else None


def apply_layout(
    workload: TrainingWorkload, given: TrainingWorkloadInput, layout: Parallelism
) -> TrainingWorkload | None:
    """Returns the workload with its micro-batches on ``layout``, or None if the batch does not divide."""
    count = _count_micro_batches(given, workload.micro_batch_size, layout)
    return None if count is None else workload._replace(micro_batches=count)


def resolve_total_tokens(given: TrainingWorkloadInput, global_batch_size: int | None) -> float | None:
    """Returns the total tokens of the run, or None if the question gives no total."""
    if given.total_steps is not MISSING and global_batch_size is None:
        detail = "total_steps needs the number of sequences per step: give global_batch_size or parallelism"
        raise PlanningError("BATCH_REQUIRED", "/workload/total_steps", detail)
    sample_tokens = given.sequence_length * (2 if given.objective in PAIRED else 1)
    totals = {
        "total_tokens": (given.total_tokens, 1),
        "total_steps": (given.total_steps, (global_batch_size or 0) * sample_tokens),
        "total_samples": (given.total_samples, sample_tokens),
    }
    stated = [(name, n * factor) for name, (n, factor) in totals.items() if n is not MISSING]
    if len(stated) > 1:
        names = " and ".join(name for name, _ in stated)
        raise PlanningError("TOTAL_CONFLICT", f"/workload/{stated[1][0]}", f"give only one of {names}")
    return float(stated[0][1]) if stated else None


def check_adaptation(workload: TrainingWorkload, model: ResolvedModel) -> None:
    """Refuses an optimizer or an adaptation that needs shapes which the model does not give."""
    kind, profile = workload.adaptation.kind, model.profile
    by_element = workload.optimizer in OPTIMIZER_STATES or workload.optimizer in EIGHT_BIT
    if not profile.shapes_known and not by_element:
        detail = (
            f"the states of {workload.optimizer.value} need shapes, which a parameter count does not give"
        )
        raise PlanningError("ARCHITECTURE_REQUIRED", "/workload/optimizer", detail)
    if kind is AdaptationKind.FULL:
        return
    if not profile.shapes_known:
        detail = f"{kind.value} adapts matrices whose shapes a parameter count does not give"
        raise PlanningError("ARCHITECTURE_REQUIRED", "/workload/adaptation/kind", detail)
    if not count_trained_parameters(profile, workload.adaptation):
        detail = "the model has none of the matrices to adapt"
        raise PlanningError("NOTHING_TRAINED", "/workload/adaptation", detail)
