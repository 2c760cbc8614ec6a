"""Estimates of a training run on many layouts at once, by the formulas of a single estimate."""

from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from service.planning.energy.power import DeviceWork, build_step_works, mean_device_watts
from service.planning.estimates.devices import compute_peak, get_usable_bytes
from service.planning.estimates.intervals import find_step_spread
from service.planning.estimates.power import find_draw_spread
from service.planning.estimates.settings import build_training_setting
from service.planning.estimates.training import find_measured_efficiency, generate_rollout
from service.planning.figures import Figure, smaller
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.curves import ReferenceCurves
from service.planning.hardware.local_evidence import RunSetting
from service.planning.hardware.resolution import DeviceConstants
from service.planning.memory.training import estimate_layout_memory
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.operators import DeviceMachine, build_machine
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import NumberFormat
from service.planning.search import (
    LayoutArray,
    LayoutChoice,
    LayoutTimes,
    RecomputationChoice,
    collapse_column,
    least_block_seconds,
    least_state_bytes,
    least_step_seconds,
)
from service.planning.software.frameworks import TRAITS
from service.planning.training import (
    StepSeconds,
    build_training_machine,
    count_flops_per_token,
    estimate_step,
    iron_law_seconds,
)
from service.planning.training.data_pipeline import DataPipeline
from service.planning.training.data_pipeline import compute_step_seconds as fed_step_seconds
from service.planning.training.rollout import (
    RolloutGeneration,
    add_generation,
    synchronization_seconds,
    training_cluster,
)
from service.planning.workload import AdaptationKind, Offload, TrainingWorkload

Floats = NDArray[np.float64]

_WHOLE_BYTES = 16.0
"""Bytes by which rounding the parts of an answered memory may change their sum, at most."""


class OpenTrainingCase(NamedTuple):
    """A model in training whose layout, micro-batches and recomputation are open.

    ``cluster`` may stand for others that differ in their number of devices alone, provided that each of them
    is at least as large as the domain of a fast link. For a model that is asked by the sample, a token stands
    for a sample.
    """

    profile: ModelProfile
    workload: TrainingWorkload
    step_sequences: int
    """Sequences of one optimizer step over all replicas."""
    total_tokens: float
    """Tokens of the whole run."""
    cluster: Cluster
    device: DeviceConstants
    """Constants of the cluster's devices, and which of them were measured."""
    data_pipeline: DataPipeline | None = None

    @property
    def curves(self) -> ReferenceCurves:
        """Constants of the cluster's devices."""
        return self.device.curves

    @property
    def step_tokens(self) -> float:
        """Tokens of one optimizer step over all replicas."""
        return float(self.step_sequences * self.workload.sample_tokens)

    @property
    def steps(self) -> float:
        """Optimizer steps of the run."""
        return self.total_tokens / self.step_tokens


class TrainingLayouts:
    """Memory and time of a run on many layouts, by the formulas of a single estimate."""

    def __init__(self, run: OpenTrainingCase, *, weighs_power: bool) -> None:
        self.run = run
        self._weighs_power = weighs_power
        self._profile, self._workload = run.profile, run.workload
        self._cluster, self._curves = run.cluster, run.curves
        self._tokens, self._steps = run.step_tokens, run.steps
        self._least_blocks: dict[RecomputationChoice, float] = {}

    @property
    def training_count(self) -> int:
        """Number of devices of the cluster that train; the others generate."""
        return training_cluster(self._cluster, self._workload.rollout).accelerator_count

    @property
    def usable_bytes(self) -> float | None:
        """Usable bytes of a device; None where they are not known."""
        usable = get_usable_bytes(self._cluster, self._workload)
        return None if usable is None else usable - _WHOLE_BYTES

    @cached_property
    def is_timed(self) -> bool:
        """True if the time of the run is known in its precision on this device."""
        accelerator = self._cluster.accelerator
        if accelerator.find_peak(self._workload.recipe.compute) is None:
            return False
        if accelerator.bandwidth_bytes_per_second is not None:
            return True
        return self._workload.rollout is None and self._workload.offload == Offload()

    # --- memory -------------------------------------------------------------------------------------------

    def estimate_bytes(self, layouts: LayoutArray, choice: LayoutChoice) -> Floats:
        """Returns the memory of the fullest device in bytes, for each layout."""
        workload, layout = self._apply_layouts(layouts, choice)
        found = estimate_layout_memory(self._profile, workload, layout, self._curves.training_memory.overhead)
        return self._correct_bytes(found, layouts, choice)

    def compute_least_bytes(self, layouts: LayoutArray, choice: LayoutChoice) -> Floats:
        """Returns a lower bound of the memory of the fullest device in bytes, for each layout."""
        workload, layout = self._apply_layouts(layouts, choice)
        return self._correct_bytes(least_state_bytes(self._profile, workload, layout), layouts, choice)

    def _correct_bytes(self, found: Figure, layouts: LayoutArray, choice: LayoutChoice) -> Floats:
        middle = self._curves.training_memory.total.middle
        return _to_column(
            found * middle * self._compute_corrections("training_memory", layouts, choice), layouts
        )

    @cached_property
    def grows_with_batch(self) -> bool:
        """True if larger micro-batches never take less memory, beyond one per stage.

        False under a correction by a tenant's own runs, which may have held less of larger ones, and where a
        framework keeps the logits of all other micro-batches, of which there are fewer.
        """
        keeps = TRAITS[self._workload.framework].keeps_all_outputs
        return not keeps and self._find_group_correction("training_memory") is None

    # --- time ---------------------------------------------------------------------------------------------

    @cached_property
    def _peak(self) -> tuple[NumberFormat, float]:
        return compute_peak(self._cluster, self._workload)

    @cached_property
    def _machine(self) -> DeviceMachine | None:
        return build_training_machine(self._cluster.accelerator, self._workload, self._curves.calibration)

    @cached_property
    def _generated(self) -> RolloutGeneration | None:
        return generate_rollout(
            self._profile,
            self._workload,
            self.run.step_sequences,
            cluster=self._cluster,
            curves=self._curves,
            notes=AnswerNotes(),
        )

    def estimate_runs(self, layouts: LayoutArray, choice: LayoutChoice) -> LayoutTimes:
        """Returns productive seconds of the run, waits for data included, and mean watts of a device."""
        if self._workload.compression is not None:
            # One replica sends no gradients: it has none to compress.
            alone = layouts.data * layouts.context == 1
            if alone.any() and not alone.all():
                parts = [self.estimate_runs(layouts.select_rows(each), choice) for each in (alone, ~alone)]
                return _merge_runs(alone, *parts)
        workload, layout = self._apply_layouts(layouts, choice)
        step = estimate_step(
            self._profile,
            workload,
            layout,
            cluster=training_cluster(self._cluster, workload.rollout),
            calibration=self._curves.calibration,
            compute_format=self._peak[0],
        )
        if step is None:
            return LayoutTimes(self._estimate_by_share(layouts, workload, layout), None)
        waited = 0.0
        if self._generated is not None and workload.rollout is not None:
            sent = synchronization_seconds(
                self._profile,
                workload,
                self._generated,
                training=Parallelism(data=self.training_count),
                cluster=self._cluster,
                calibration=self._curves.calibration,
            )
            step = add_generation(step, workload.rollout, self._generated, sent)
            waited = sum((phase.seconds for phase in step.further if phase.name == "generation"), 0.0)
        computing = (step.total - waited) * self._compute_factor(layouts, choice) + waited
        seconds = self._add_data_time(computing, layouts)
        watts = (
            self._estimate_watts(step, seconds - computing, workload, layouts) if self._weighs_power else None
        )
        return LayoutTimes(_to_column(seconds * self._steps, layouts), watts)

    def compute_least_seconds(self, layouts: LayoutArray, choice: LayoutChoice) -> Floats:
        """Returns a lower bound of the seconds of the run, for each layout.

        Generation and data supply only add time, and corrections by own runs of the layout multiply both.
        """
        workload, layout = self._apply_layouts(layouts, choice)
        if self._machine is None:
            return np.zeros(layouts.number)
        block = self._compute_least_block(self._machine, choice.recomputing)
        step = least_step_seconds(self._profile, workload, layout, block)
        return _to_column(step * self._compute_factor(layouts, choice) * self._steps, layouts)

    def _compute_least_block(self, machine: DeviceMachine, recomputing: RecomputationChoice) -> float:
        """Returns the seconds of the cheapest block under a strategy, computed once."""
        if recomputing not in self._least_blocks:
            workload = self._workload._replace(recomputation=recomputing.strategy)
            self._least_blocks[recomputing] = least_block_seconds(
                self._profile, workload, machine, self._peak[0]
            )
        return self._least_blocks[recomputing]

    def _estimate_by_share(
        self, layouts: LayoutArray, workload: TrainingWorkload, layout: Parallelism
    ) -> Floats:
        """Returns seconds at a measured share of the peak rate, for a device whose bandwidth is not known."""
        alone = workload._replace(micro_batch_size=1, micro_batches=1)
        efficiency = find_measured_efficiency(self._curves, self._cluster, alone)
        seconds = iron_law_seconds(
            count_flops_per_token(self._profile, workload).hardware * self._tokens,
            peak_flops_per_second=self._peak[1],
            utilization=efficiency.utilization.value,
            devices=cast("float", self._count_devices(layouts)),
        ) / (1.0 - layout.bubble_share(workload.micro_batches))
        return _to_column(self._add_data_time(seconds, layouts) * self._steps, layouts)

    def _add_data_time(self, computing: Figure, layouts: LayoutArray) -> Figure:
        """Returns the seconds of a step with its data."""
        pipeline = self.run.data_pipeline
        if pipeline is None:
            return computing
        samples = 1.0 * collapse_column(layouts.micro_batch_size) * collapse_column(layouts.micro_batches)
        data = 1.0 * collapse_column(layouts.data)
        nodes = np.ceil(self._count_devices(layouts) / self._cluster.accelerators_per_node)
        stages = pipeline.compute_stage_seconds(samples * data, replicas=data, nodes=cast("float", nodes))
        return fed_step_seconds(cast("float", computing), stages, prefetched=pipeline.prefetched)

    def _estimate_watts(
        self, step: StepSeconds, stalled: Figure, workload: TrainingWorkload, layouts: LayoutArray
    ) -> Floats | None:
        accelerator, calibration = self._cluster.accelerator, self._curves.calibration
        machine, limit = build_machine(accelerator, calibration.operators), accelerator.power_limit_watts
        if machine is None or limit is None:
            return None
        number_format, peak = self._peak
        flops = (
            count_flops_per_token(self._profile, workload).hardware
            * self._tokens
            / self._count_devices(layouts)
        )
        works = build_step_works(
            step,
            matrix_seconds=cast("float", flops / (peak * machine.rates.matrix_peak[number_format])),
            bandwidth_bytes_per_second=machine.bandwidth_bytes_per_second * machine.rates.bandwidth,
        )
        rates = calibration.power.get_rates(accelerator.generation)
        mean = mean_device_watts((*works, DeviceWork(cast("float", stalled), 0.0)), limit, rates)
        spread = find_draw_spread(self._curves, accelerator.generation, self._curves.device_power)
        return _to_column(smaller(limit, mean * spread.middle), layouts)

    # --- what own runs say --------------------------------------------------------------------------------

    def _compute_factor(self, layouts: LayoutArray, choice: LayoutChoice) -> Floats:
        """Returns the factor that the time of a step is multiplied by."""
        return self._middle * self._compute_corrections("training_step", layouts, choice)

    @cached_property
    def _middle(self) -> float:
        return find_step_spread(self._curves, self._workload, self._cluster, self._peak[0]).middle

    def _find_group_correction(self, family: str) -> object | None:
        local = self._curves.local
        setting = self._build_setting(self._workload, Parallelism(), self._cluster.accelerator_count)
        return None if local is None else local.compute_correction(family, setting)

    def _build_setting(self, workload: TrainingWorkload, layout: Parallelism, count: int) -> RunSetting:
        """Returns the setting by which measured runs are told apart, on so many devices."""
        device = self._cluster.accelerator.id or None
        return build_training_setting(self._profile, workload, layout, device, count)

    def _compute_corrections(self, family: str, layouts: LayoutArray, choice: LayoutChoice) -> Floats:
        """Returns the correction factor of an estimate by own runs nearby, for each layout.

        Few layouts are those of own runs; for the others, the factor depends only on the size of the
        micro-batch and on the number of devices.
        """
        found = np.ones(layouts.number)
        local = self._curves.local
        if local is None or self._find_group_correction(family) is None:
            return found
        counts = self._count_devices(layouts)
        loads = np.stack([layouts.micro_batch_size, counts])
        distinct, which = np.unique(loads, axis=1, return_inverse=True)
        strategy, interval = choice.recomputing
        workload = self._workload._replace(recomputation=strategy, interval=interval)

        def compute_factor(size: int, count: int, layout: Parallelism) -> float:
            sized = workload._replace(micro_batch_size=size)
            correction = local.compute_correction(family, self._build_setting(sized, layout, count))
            return 1.0 if correction is None else correction.factor

        of_none = [compute_factor(size, count, _NO_LAYOUT) for size, count in distinct.T.tolist()]
        found = np.array(of_none)[which.ravel()]
        group = self._build_setting(workload, _NO_LAYOUT, self._cluster.accelerator_count).group
        for known in local.list_layouts(family, group):
            layout, *rest = cast("tuple[Parallelism, object, object, object]", known)
            same = rest == [strategy, interval, workload.fusion]
            for entry in np.flatnonzero(_match_layout(layouts, layout, choice)) if same else ():
                size, count = layouts.micro_batch_size[entry], counts[entry]
                found[entry] = compute_factor(int(size), int(count), layout)
        return found

    def _count_devices(self, layouts: LayoutArray) -> NDArray[np.int64]:
        """Returns the devices of the clusters, generating ones included."""
        return layouts.devices + (self._workload.rollout.devices if self._workload.rollout else 0)

    def _apply_layouts(
        self, layouts: LayoutArray, choice: LayoutChoice
    ) -> tuple[TrainingWorkload, Parallelism]:
        """Returns the workload on the layouts.

        Gradients that are sharded or not shared are sent uncompressed.
        """
        workload, replicas = self._workload, layouts.data * layouts.context
        whole = choice.sharding is Sharding.NONE and workload.adaptation.kind is AdaptationKind.FULL
        workload = workload._replace(
            compression=workload.compression if whole and bool((replicas > 1).any()) else None,
            micro_batch_size=collapse_column(layouts.micro_batch_size),
            micro_batches=collapse_column(layouts.micro_batches),
            recomputation=choice.recomputing.strategy,
            interval=choice.recomputing.interval,
        )
        return workload, layouts.to_parallelism(choice)


_NO_LAYOUT = Parallelism(tensor=0)
"""A layout that no run has."""


def _to_column(found: Figure, layouts: LayoutArray) -> Floats:
    return np.broadcast_to(np.asarray(found, dtype=np.float64), layouts.number)


def _merge_runs(mask: NDArray[np.bool_], first: LayoutTimes, second: LayoutTimes) -> LayoutTimes:
    """Returns the entries of the first where the mask is set, of the second elsewhere."""

    def merge_columns(one: Floats, other: Floats) -> Floats:
        found = np.empty(mask.size)
        found[mask], found[~mask] = one, other
        return found

    if first.watts is None or second.watts is None:
        return LayoutTimes(merge_columns(first.seconds, second.seconds), None)
    return LayoutTimes(merge_columns(first.seconds, second.seconds), merge_columns(first.watts, second.watts))


def _match_layout(layouts: LayoutArray, layout: Parallelism, choice: LayoutChoice) -> NDArray[np.bool_]:
    """Returns a mask of the entries that equal this layout."""
    found = np.full(
        layouts.number,
        (choice.sharding, choice.group_size, choice.schedule, choice.sequence_parallel)
        == (layout.sharding, layout.sharding_group_size, layout.pipeline_schedule, layout.sequence_parallel)
        and choice.overlap_expert_communication == layout.overlap_expert_communication
        and choice.overlap_tensor_communication == layout.overlap_tensor_communication
        and layout.expert_tensor is None,
    )
    for name in ("tensor", "pipeline", "data", "context", "expert", "virtual_stages"):
        found &= getattr(layouts, name) == getattr(layout, name)
    return found
