"""Sum of the components, its interval, and whether it fits."""

import math
from collections.abc import Iterable

from service.planning.cases import InferenceCase, TrainingCase
from service.planning.estimates.intervals import widen_memory
from service.planning.estimates.memory.footprint import MemoryFootprint, MemoryPart
from service.planning.estimates.settings import build_case_setting, build_memory_setting
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.local_evidence import RunSetting, apply_correction
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.quantity import IntervalFactors, Quantity, has_interval, probability_at_most, scaled
from service.planning.units import GIGABYTE_BYTES


def find_unknown(
    case: TrainingCase | InferenceCase, profile: ModelProfile, names: frozenset[str], notes: AnswerNotes
) -> frozenset[str]:
    """Returns those of ``names`` that the description of model and sample does not determine."""
    missing, is_training = case.unknown, isinstance(case, TrainingCase)
    if not profile.shapes_known:
        code, detail = "ARCHITECTURE_REQUIRED", "a parameter count says nothing of shapes"
    elif missing is not None and not is_training and not profile.unserved_kinds:
        detail = (
            "input_tokens are all tokens that the decoder reads, those of images included; the memory of a "
            f"tower while it runs is not counted: {missing.detail}"
        )
        notes.warn("TOKENS_ALONE_COUNTED", missing.pointer, detail)
        return frozenset()
    elif missing is not None:
        is_named = missing.code == "SAMPLE_FIELD_MISSING"
        code = "SAMPLE_REQUIRED" if is_named else missing.code
        detail = f"{missing.detail}: give {missing.pointer}" if is_named else missing.detail
    else:
        if case.sample is not None and is_training:
            detail = "no measured row is of a model like this: the interval of decoders is used"
            notes.warn("INTERVAL_OF_DECODERS", "/per_device/total_bytes", detail)
        return frozenset()
    listed = " and ".join(sorted(names - {"state"}))
    notes.add_gap("/per_device/total_bytes", code, f"{listed}: {detail}")
    return names


def sum_components(sizes: Iterable[tuple[str, float]], unknown: frozenset[str]) -> MemoryFootprint:
    """Returns the known components, in whole bytes."""
    parts = tuple(MemoryPart(name, round_bytes(size)) for name, size in sizes if name not in unknown)
    return MemoryFootprint(parts, sum(part.size_bytes for part in parts))


def round_bytes(size: float) -> int:
    """Returns whole bytes; refuses a size that no number describes."""
    if not math.isfinite(size):
        raise OverflowError(str(size))
    return round(size)


def find_setting(case: TrainingCase | InferenceCase) -> RunSetting:
    """Returns the setting of a case by which a tenant's own measured runs are told apart."""
    return build_case_setting(case) if isinstance(case, TrainingCase) else build_memory_setting(case)


def correct_total(case: TrainingCase | InferenceCase, total: Quantity, notes: AnswerNotes) -> Quantity:
    """Returns the total in the interval of measured rows, corrected by a tenant's own measured runs."""
    if isinstance(case, TrainingCase):
        family, software = "training_memory", case.framework_name
    else:
        family, software = "inference_memory", case.system.engine or ""
    total = widen_memory(total, family, software, case.curves)
    if case.curves.local is None or case.accelerator_id is None:
        return total
    shipped = IntervalFactors(total.low / total.value, total.high / total.value, "")
    spread = apply_correction(case.curves.local, family, find_setting(case), shipped)
    if spread is shipped:
        return total
    notes.record_calibrations(spread.calibration_ids)
    return spread.around(total.value, total.basis)


def judge_fit(
    estimate: MemoryFootprint, cluster: Cluster, usable: float | None, notes: AnswerNotes
) -> MemoryFootprint:
    """Adds capacity and verdict to the estimate; an incomplete sum can only show that it does not fit."""
    capacity, total = cluster.accelerator.capacity_bytes, estimate.total
    if usable is None or capacity is None:
        notes.add_gap("/fits", "CAPACITY_UNKNOWN", "no accelerator with a known memory is named")
        return estimate
    estimate = estimate._replace(capacity=capacity, usable_bytes=usable)
    if has_interval(capacity):
        notes.warn(
            "CAPACITY_UNCERTAIN",
            "/cluster/accelerator",
            f"only a label of this memory is known: between {capacity.low / GIGABYTE_BYTES:.1f} and "
            f"{capacity.high / GIGABYTE_BYTES:.1f} GB",
        )
    if total is not None:
        return estimate._replace(
            headroom_bytes=round_bytes(usable - total.value),
            fits=total.value <= usable,
            fit_probability=probability_at_most(total, scaled(capacity, usable / capacity.value)),
        )
    if estimate.known_bytes > usable:
        return estimate._replace(fits=False)
    notes.add_gap("/fits", "TOTAL_UNKNOWN", "the known components fit, but the sum is not known")
    return estimate
