"""Calibrations that an answer names: those from which a constant of its figures was read."""

from collections.abc import Iterator
from typing import NamedTuple

from service.planning.cases import InferenceCase, TrainingCase
from service.planning.estimates.devices import compute_peak
from service.planning.hardware.calibration.operators import get_unit_format
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.resolution import DeviceConstants
from service.planning.inference.iteration import list_stored_matrices
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BITS, NumberFormat
from service.planning.workload import InferenceWorkload, TrainingWorkload

_DEVICE = ("kernel_seconds", "bandwidth", "matrix_fill", "wave_tail")
_ENGINE = ("weight_bandwidth", "kernel_seconds")
_ENGINE_ATTENTION = ("cache_bandwidth", "decode_attention")
MEMORY = ("memory_bytes", "context_bytes")


class TimedWorkload(NamedTuple):
    """A workload with the model, layout and cluster that it is timed on."""

    profile: ModelProfile
    workload: TrainingWorkload | InferenceWorkload
    layout: Parallelism
    cluster: Cluster


def note_case(case: TrainingCase | InferenceCase, notes: AnswerNotes) -> None:
    """Records the calibrations behind the time of a case."""
    note_rates(TimedWorkload(case.profile, case.workload, case.layout, case.cluster), case.device, notes)


def note_rates(timed: TimedWorkload, device: DeviceConstants, notes: AnswerNotes) -> None:
    """Records the calibrations behind the time of operators, of an engine's kernels and of links."""
    if device.held:
        notes.record_calibrations(device.list_calibration_ids(_list_constants(timed)))


def note_memory(device: DeviceConstants, notes: AnswerNotes, *, has_context: bool) -> None:
    """Records the calibrations behind the memory of a device and of its context."""
    notes.record_calibrations(device.list_calibration_ids(MEMORY if has_context else MEMORY[:1]))


def note_power(device: DeviceConstants, notes: AnswerNotes) -> None:
    """Records the calibrations behind the power of a device."""
    notes.record_calibrations(device.list_calibration_ids(("power.",)))


def _list_constants(timed: TimedWorkload) -> Iterator[str]:
    """Yields the names of the constants that the time depends on."""
    profile, workload, layout, cluster = timed
    yield from (f"operators.matrix_peak.{each}" for each in _list_formats(workload, cluster))
    yield from (f"operators.{name}" for name in _DEVICE)
    attends = any(not work.state_elements for work in profile.attention)
    routes = profile.expert_blocks > 0
    if attends:
        yield "operators.attention_"
    if any(work.state_elements for work in profile.attention):
        yield "operators.scan_peak"
    if isinstance(workload, InferenceWorkload):
        yield from (f"serving.{name}" for name in _ENGINE)
        yield from (f"serving.{name}" for name in _ENGINE_ATTENTION if attends)
        yield from ("serving.expert_bandwidth",) * routes
        yield from _list_kernel_shares(timed, workload)
    else:
        yield from ("operators.gather_row", *("operators.expert_variation",) * routes)
    if _is_communicating(workload, layout):
        yield from (f"links.{kind}." for kind in _list_link_kinds(cluster))


def _list_kernel_shares(timed: TimedWorkload, workload: InferenceWorkload) -> Iterator[str]:
    """Yields the constants of kernels for weights that are not multiplied as they are stored."""
    stored = list_stored_matrices(timed.profile, workload, timed.cluster.accelerator)
    if any(each.casts for each in stored):
        yield "serving.scaled_share"
    if any(each.widened for each in stored):
        yield "serving.widened_bandwidth"


def _list_formats(workload: TrainingWorkload | InferenceWorkload, cluster: Cluster) -> set[NumberFormat]:
    """Returns the formats of matrix products: the workload's own, and a wider one if that is narrow."""
    found, peak = compute_peak(cluster, workload)[0], cluster.accelerator.find_peak
    wide = peak(NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32)
    is_narrow = ELEMENT_BITS[found] < ELEMENT_BITS[NumberFormat.BF16]
    return {get_unit_format(found), *((get_unit_format(wide[0]),) if wide and is_narrow else ())}


def _is_communicating(workload: TrainingWorkload | InferenceWorkload, layout: Parallelism) -> bool:
    """Returns true if devices wait for each other; replicas of a served model do not."""
    if isinstance(workload, InferenceWorkload):
        return layout.tensor * layout.pipeline * layout.expert > 1
    return layout.devices > 1


def _list_link_kinds(cluster: Cluster) -> Iterator[str]:
    if cluster.domain > 1:
        yield cluster.intra_node_link.kind
    if cluster.domain < cluster.accelerator_count:
        yield cluster.inter_node_link.kind
