"""Answer to a question of memory: the fullest device, the verdict and the limits."""

from typing import cast

from service.planning.estimates import memory
from service.planning.estimates.memory import MemoryFootprint, RequestCache
from service.planning.notes import AnswerNotes
from service.resolve import resolve_memory
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_evidence, to_integer, to_parallelism, to_quantity
from service.schemas.answers import DeviceMemory, KvCacheUsage, MemoryEstimate, MemoryLimits
from service.schemas.estimates import MemoryEstimateRequest


def estimate_memory(question: MemoryEstimateRequest, catalog: CatalogView) -> MemoryEstimate:
    """Answers with the memory of the fullest device, the verdict, and the largest dimensions that fit."""
    catalog = apply_calibrations(catalog, question.cluster)
    notes = AnswerNotes()
    case = resolve_memory(question, catalog, notes)
    estimate = memory.estimate_memory(case, notes)
    answer: MemoryEstimate = {
        "parameter_count": case.profile.parameter_count,
        "active_parameter_count": case.profile.active_parameter_count,
        "per_device": _to_device(estimate),
        "limits": _to_limits(estimate),
        "advice": [{"code": advice.code, "detail": advice.detail} for advice in estimate.advice],
        "parallelism": to_parallelism(case.layout, chosen=case.layout_chosen),
        "evidence": to_evidence(question, notes, catalog.revision),
        "defaults": notes.defaults,
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    _add_stored(answer, estimate)
    _add_verdict(answer, estimate)
    _add_training(answer, estimate)
    return answer


def _to_device(estimate: MemoryFootprint) -> DeviceMemory:
    device: DeviceMemory = {
        "known_bytes": estimate.known_bytes,
        "components": [
            {"name": part.name, "bytes": to_integer(part.size_bytes)}  # type: ignore[typeddict-item]
            for part in estimate.components
        ],
    }
    if estimate.total is not None:
        device["total_bytes"] = to_quantity(estimate.total)
    return device


def _to_limits(estimate: MemoryFootprint) -> MemoryLimits:
    known = {name: size for name, size in estimate.limits._asdict().items() if size is not None}
    return cast("MemoryLimits", known)


def _add_stored(answer: MemoryEstimate, estimate: MemoryFootprint) -> None:
    """Adds the bytes of a served model's files, and of a request's cache."""
    if estimate.stored_weight_bytes is not None:
        answer["stored_weight_bytes"] = to_integer(estimate.stored_weight_bytes)
    if estimate.cache is not None:
        answer["kv_cache"] = _to_cache(estimate.cache)


def _to_cache(cache: RequestCache) -> KvCacheUsage:
    waste = cache.waste
    return {
        "allocation": "paged" if cache.is_paged else "contiguous",
        "block_tokens": cache.block_tokens,
        "bytes_per_token": waste.bytes_per_token,
        "bytes_per_request": to_integer(waste.bytes_per_request),
        "waste_bytes_per_request": to_integer(waste.waste_bytes_per_request),
        "model_bytes_per_token": cache.model_bytes_per_token,
    }


def _add_verdict(answer: MemoryEstimate, estimate: MemoryFootprint) -> None:
    """Adds capacity and verdict, as far as they are known."""
    if estimate.capacity is not None:
        answer["capacity_bytes"] = to_integer(estimate.capacity.value)
    if estimate.usable_bytes is not None:
        answer["usable_bytes"] = to_integer(estimate.usable_bytes)
    if estimate.headroom_bytes is not None:
        answer["headroom_bytes"] = to_integer(estimate.headroom_bytes)
    if estimate.fits is not None:
        answer["fits"] = estimate.fits
    if estimate.fit_probability is not None:
        answer["fit_probability"] = estimate.fit_probability


def _add_training(answer: MemoryEstimate, estimate: MemoryFootprint) -> None:
    """Adds the trained parameters, and the bytes that are kept on the host."""
    if estimate.trained_parameter_count is not None:
        answer["trained_parameter_count"] = estimate.trained_parameter_count
    if estimate.host is not None:
        host = estimate.host
        answer["host"] = {"memory_bytes": to_integer(host.memory), "nvme_bytes": to_integer(host.nvme)}
