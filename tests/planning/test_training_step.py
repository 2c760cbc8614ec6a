"""The time of a step: properties that hold on any machine, and single layouts against arrays of them."""

from dataclasses import replace

import numpy as np
import pytest

from service.evidence.service import load_reference_curves
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.estimates.intervals import find_step_spread
from service.planning.hardware.calibration.links import IDEAL_LINKS
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.links import Link, LinkKind
from service.planning.models.layers import TokenRouting
from service.planning.models.profile import OperatorFusion
from service.planning.models.token_routing import route_tokens
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.precision import TRAINING_RECIPES, NumberFormat, Optimizer, TrainingPrecision
from service.planning.software.frameworks import Framework
from service.planning.training import build_empty_known, compute_max_gain, estimate_step, list_changes
from service.planning.workload import (
    Adaptation,
    AdaptationKind,
    AttentionKernel,
    CudaGraphs,
    FrozenWeightFormat,
    Recomputation,
    TrainingWorkload,
)

CATALOG = build_shipped_snapshot()
CALIBRATION = load_reference_curves().calibration
PROFILE = CATALOG.models["llama-2-7b"].profile
WORKLOAD = TrainingWorkload(
    sequence_length=4096,
    micro_batch_size=1,
    micro_batches=16,
    recipe=TRAINING_RECIPES[TrainingPrecision.BF16],
    optimizer=Optimizer.ADAMW,
    kernel=AttentionKernel.FLASH,
    recomputation=Recomputation.NONE,
)
LAYOUTS = {
    "one": Parallelism(),
    "data": Parallelism(data=16),
    "sharded": Parallelism(data=16, sharding=Sharding.ZERO_3),
    "tensor": Parallelism(tensor=8, data=2, sequence_parallel=True),
    "pipeline": Parallelism(tensor=2, pipeline=4, data=2, sharding=Sharding.ZERO_1),
    "context": Parallelism(context=4, data=4),
    "interleaved": Parallelism(
        pipeline=4, data=4, pipeline_schedule=PipelineSchedule.INTERLEAVED, virtual_stages=2
    ),
}


def cluster(devices: int, **changes: object) -> Cluster:
    accelerator = replace(CATALOG.accelerators["h100-sxm"].accelerator, **changes)
    return Cluster(
        accelerator,
        devices,
        min(8, devices),
        None,
        Link(LinkKind.NVLINK, 450e9, joined=8),
        Link(LinkKind.INFINIBAND, 50e9),
    )


def step(layout, *, on=None, workload=WORKLOAD, calibration=CALIBRATION, profile=PROFILE):
    found = estimate_step(
        profile,
        workload,
        layout,
        cluster=on or cluster(layout.devices),
        calibration=calibration,
        compute_format=workload.recipe.compute,
    )
    assert found is not None
    return found


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("recomputation", [Recomputation.NONE, Recomputation.SELECTIVE, Recomputation.FULL])
def test_phases_add_up_to_the_step(layout, recomputation):
    found = step(layout, workload=WORKLOAD._replace(recomputation=recomputation))
    assert sum(seconds for _, seconds, _ in found.list_phases()) == pytest.approx(found.total, rel=1e-9)
    assert all(seconds >= 0.0 for _, seconds, _ in found.list_phases())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_better_machine_is_never_slower(layout):
    plain = cluster(layout.devices)
    accelerator = plain.accelerator
    better = [
        cluster(
            layout.devices,
            peak_flops_per_second={k: 1.5 * v for k, v in accelerator.peak_flops_per_second.items()},
        ),
        cluster(
            layout.devices, bandwidth_bytes_per_second=1.5 * (accelerator.bandwidth_bytes_per_second or 0.0)
        ),
        plain._replace(intra_node_link=plain.intra_node_link._replace(bytes_per_second=900e9)),
        plain._replace(inter_node_link=plain.inter_node_link._replace(bytes_per_second=100e9)),
    ]
    before = step(layout, on=plain).total
    assert all(step(layout, on=other).total <= before * (1 + 1e-12) for other in better)


def test_one_device_neither_communicates_nor_waits():
    phases = {name: seconds for name, seconds, _ in step(LAYOUTS["one"]).list_phases()}
    communication = sum(seconds for name, seconds in phases.items() if name.endswith("_communication"))
    assert communication == phases["bubble"] == phases["stragglers"] == 0.0


@pytest.mark.parametrize("name", ["data", "sharded", "tensor", "context"])
def test_without_latency_and_at_infinite_bandwidth_only_work_is_left(name):
    layout = LAYOUTS[name]
    links = CALIBRATION.links._replace(slow=IDEAL_LINKS, value=IDEAL_LINKS, fast=IDEAL_LINKS)
    ideal = replace(CALIBRATION, links=links)
    on = cluster(layout.devices)._replace(
        intra_node_link=Link(LinkKind.NVLINK, 1e30, 0.0, joined=8),
        inter_node_link=Link(LinkKind.INFINIBAND, 1e30, 0.0),
    )
    found = step(layout, on=on, calibration=ideal)
    communication = sum(s for phase, s, _ in found.list_phases() if phase.endswith("_communication"))
    assert communication == pytest.approx(0.0, abs=1e-12)


def test_a_pipeline_of_equal_stages_waits_as_the_formula_says():
    """Without table and head to speak of, (p - 1) / (m + p - 1) of the step's working time."""
    layout = LAYOUTS["pipeline"]._replace(data=1, sharding=Sharding.NONE)
    found = step(layout)
    working = found.slowest.total * 16
    assert found.bubble / (working + found.bubble) == pytest.approx(3 / (16 + 3), rel=0.08)


def test_a_small_last_group_comes_back_late():
    """Six micro-batches on four stages of two chunks: the second group of two waits two chunks, once."""
    layout = LAYOUTS["interleaved"]._replace(data=1)
    whole, ragged = (step(layout, workload=WORKLOAD._replace(micro_batches=count)) for count in (8, 6))
    assert ragged.bubble - whole.bubble == pytest.approx(2 * ragged.slowest.total / 2)


def with_constants(**values):
    """The calibration with other constants of steps, of any framework."""
    constants = {
        key: share._replace(value=values.get(key[0].value, share.value))
        for key, share in CALIBRATION.steps.constants.items()
    }
    return replace(CALIBRATION, steps=replace(CALIBRATION.steps, constants=constants, _known={}))


@pytest.mark.parametrize(("name", "experts"), [("mixtral-8x7b", 2), ("qwen3-30b-a3b", 8)])
def test_routing_moves_the_chosen_copies_of_tokens(name, experts):
    """A pass over them is 4,096 tokens x chosen x hidden x 2 bytes in each direction of each block."""
    profile = CATALOG.models[name].profile
    layout = Parallelism(data=8, expert=8)
    none, one = (
        step(layout, profile=profile, calibration=with_constants(routing_copies=copies, routing_seconds=0.0))
        for copies in (0.0, 1.0)
    )
    copied = 4096 * experts * profile.widest_elements * 2.0 / 3.35e12
    added = one.slowest.forward - none.slowest.forward
    assert added == pytest.approx(profile.block_count * copied, rel=1e-3)
    assert one.slowest.backward - none.slowest.backward == pytest.approx(added)


class TestRouting:
    """Capacity, balance and launches of experts, on 64 devices with two of 128 experts each."""

    PROFILE = CATALOG.models["qwen3-30b-a3b"].profile
    LAYOUT = Parallelism(data=64, expert=64, sharding=Sharding.ZERO_1)
    CONSTANTS = {"launch_seconds": 0.0, "routing_seconds": 1e-4, "lost_share": 0.0}

    def step(self, routing=None, **changes):
        return step(
            self.LAYOUT,
            profile=route_tokens(self.PROFILE, routing or TokenRouting()),
            workload=WORKLOAD._replace(**changes),
            calibration=with_constants(**self.CONSTANTS),
        ).slowest

    def test_a_trained_router_makes_the_busiest_device_slower_than_a_forced_one(self):
        trained, forced = self.step(), self.step(TokenRouting(is_forced=True))
        assert forced.forward < 0.95 * trained.forward
        assert forced.expert < trained.expert

    def test_a_capacity_of_the_mean_waits_for_no_counts(self):
        forced, limited = (
            self.step(TokenRouting(is_forced=True)),
            self.step(TokenRouting(capacity_factor=1.0)),
        )
        # One wait of each direction of each block.
        waited = forced.forward - limited.forward
        assert waited == pytest.approx(self.PROFILE.block_count * 1e-4, rel=1e-6)
        assert forced.expert == limited.expert

    def test_padding_is_computed_sent_and_kept(self):
        one, two = (
            self.step(TokenRouting(capacity_factor=1.0)),
            self.step(TokenRouting(capacity_factor=2.0)),
        )
        assert two.forward > 1.2 * one.forward
        assert two.expert == pytest.approx(2.0 * one.expert, rel=0.05)

    def test_the_model_counts_the_same(self):
        limited = route_tokens(self.PROFILE, TokenRouting(capacity_factor=2.0))
        assert limited.parameter_count == self.PROFILE.parameter_count
        assert limited.active_parameter_count == self.PROFILE.active_parameter_count

    def test_a_dense_model_is_the_same_object(self):
        assert route_tokens(PROFILE, TokenRouting(capacity_factor=2.0)) is PROFILE

    def test_an_iteration_in_one_graph_waits_for_nothing(self):
        assert self.step(graphs=CudaGraphs.ITERATION).forward == pytest.approx(
            self.step().forward - self.PROFILE.block_count * 1e-4
        )

    def test_the_host_launches_fewer_kernels_of_more_graphs(self):
        slow = with_constants(launch_seconds=1e-2)
        none, layer, whole = (
            step(
                self.LAYOUT,
                profile=self.PROFILE,
                workload=WORKLOAD._replace(graphs=graphs),
                calibration=slow,
            ).slowest.launch
            for graphs in CudaGraphs
        )
        assert none > 2.0 * layer > 0.0
        assert whole == 0.0

    def test_megatron_core_launches_the_matrix_of_each_expert(self):
        slow = with_constants(launch_seconds=1e-2)
        many, few = (
            step(
                Parallelism(data=64, expert=degree, sharding=Sharding.ZERO_1),
                profile=self.PROFILE,
                workload=WORKLOAD._replace(graphs=CudaGraphs.LAYER, framework=Framework.MEGATRON_CORE),
                calibration=slow,
            ).slowest.launch
            for degree in (8, 64)
        )
        assert many > 4.0 * few


class TestHost:
    """Micro-batches of 135 tokens, which a device passes faster than eager PyTorch launches their kernels."""

    LORA = Adaptation(AdaptationKind.LORA, 8, frozenset({"query", "value"}))

    def seconds(self, *, calibration=CALIBRATION, adaptation=LORA, **changes):
        workload = WORKLOAD._replace(
            sequence_length=135,
            micro_batches=128,
            recipe=TRAINING_RECIPES[TrainingPrecision.PURE_BF16],
            adaptation=adaptation,
            **changes,
        )
        accelerator = CATALOG.accelerators["a100-sxm-40gb"].accelerator
        on = cluster(1)._replace(accelerator=accelerator)
        return step(LAYOUTS["one"], on=on, workload=workload, calibration=calibration).slowest.total

    @pytest.mark.parametrize(
        ("base", "measured"), [(FrozenWeightFormat.PLAIN, 0.1416), (FrozenWeightFormat.NF4, 0.2208)]
    )
    def test_an_iteration_of_litgpt_takes_what_its_table_says(self, base, measured):
        """LitGPT's resource tables: Llama 2 7B with LoRA on Alpaca, sample by sample, on an A100 40 GB."""
        found = self.seconds(framework=Framework.LITGPT, adaptation=self.LORA._replace(base=base))
        assert measured / 1.5 < found < measured * 1.5

    def test_frameworks_that_run_each_operator_wait_for_the_same_host(self):
        eager = self.seconds(framework=Framework.TRANSFORMERS)
        assert eager == pytest.approx(self.seconds(framework=Framework.LITGPT), rel=0.2)
        assert eager > 2.0 * self.seconds(framework=Framework.GENERIC)

    def test_a_compiler_launches_without_the_modules_between(self):
        eager, compiled = (
            self.seconds(framework=Framework.FSDP, fusion=fusion)
            for fusion in (OperatorFusion.EAGER, OperatorFusion.COMPILED)
        )
        assert eager > 2.0 * compiled

    @pytest.mark.parametrize(
        ("framework", "has_own"), [(Framework.MEGATRON_CORE, True), (Framework.TRANSFORMERS, False)]
    )
    def test_a_wait_for_launches_without_a_constant_of_its_own_widens_the_interval(self, framework, has_own):
        none, most = (
            find_step_spread(
                load_reference_curves(),
                WORKLOAD._replace(framework=framework),
                cluster(1),
                NumberFormat.BF16,
                launch_share=share,
            )
            for share in (0.0, 0.9)
        )
        if has_own:
            assert most == none
        else:
            assert most.low < 0.8 * none.low
            assert most.high > 1.2 * none.high

    def test_a_packed_matrix_is_unpacked_in_five_launches(self):
        slow = with_constants(eager_launch_seconds=1e-2)
        plain, packed = (
            self.seconds(
                calibration=slow, framework=Framework.LITGPT, adaptation=self.LORA._replace(base=base)
            )
            for base in (FrozenWeightFormat.PLAIN, FrozenWeightFormat.NF4)
        )
        # Seven matrices of each of 32 blocks and the head, in both directions.
        assert packed - plain == pytest.approx((7 * 32 + 1) * 2 * 5 * 1e-2, rel=0.01)


def test_only_products_without_experts_hide_tensor_parallel_collectives():
    """Collectives in pieces run beside single products; the grouped ones of experts have none."""
    layout = Parallelism(tensor=8, sequence_parallel=True)
    for name, hides in (("llama-2-7b", True), ("mixtral-8x7b", False)):
        profile = CATALOG.models[name].profile
        exposed, hidden = (
            step(layout, profile=profile, calibration=with_constants(tensor_overlap=share)).slowest.tensor
            for share in (0.0, 0.9)
        )
        assert (hidden < 0.5 * exposed) is hides


def test_recomputation_runs_the_forward_pass_again():
    kept, again = (
        step(LAYOUTS["one"], workload=WORKLOAD._replace(recomputation=each))
        for each in (Recomputation.NONE, Recomputation.FULL)
    )
    assert again.slowest.recomputation == pytest.approx(kept.slowest.forward, rel=0.1)
    assert again.slowest.forward == kept.slowest.forward


@pytest.mark.parametrize("sharding", [Sharding.NONE, Sharding.ZERO_1, Sharding.ZERO_3])
def test_layouts_at_once_are_what_each_is_alone(sharding):
    degrees = [(1, 1, 64), (2, 1, 32), (8, 2, 4), (4, 4, 4), (2, 8, 4), (8, 8, 1)]
    tensor, pipeline, data = (np.array(each) for each in zip(*degrees, strict=True))
    many = Parallelism(tensor, pipeline, data, 1 + 0 * data, 1 + 0 * data, sharding=sharding)
    workload = WORKLOAD._replace(micro_batches=64 // data)
    together = step(many, on=cluster(64), workload=workload).total
    for place, (t, p, g) in enumerate(degrees):
        alone = step(
            Parallelism(t, p, g, sharding=sharding),
            on=cluster(64),
            workload=WORKLOAD._replace(micro_batches=64 // g),
        )
        assert together[place] == pytest.approx(alone.total, rel=1e-9)


def test_the_constants_of_a_framework_can_be_left_out():
    steps = CALIBRATION.steps
    pooled = steps.drop_software()
    assert all(framework is None for _, framework in pooled.constants)
    assert len(pooled.constants) < len(steps.constants)


def test_narrow_formats_are_faster_where_the_device_has_them():
    narrow = WORKLOAD._replace(recipe=TRAINING_RECIPES[TrainingPrecision.MXFP8])
    assert step(LAYOUTS["one"], workload=narrow).total < step(LAYOUTS["one"]).total
    assert narrow.recipe.compute is NumberFormat.FP8


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("micro_batches", [1, 4, 64])
def test_no_change_saves_more_than_its_bound(name, micro_batches):
    layout, workload = LAYOUTS[name], WORKLOAD._replace(micro_batches=micro_batches)
    on = cluster(layout.devices)
    before = step(layout, workload=workload)
    for change in list_changes(workload, layout, on.accelerator):
        after = step(change.layout, workload=change.workload, on=on)
        tokens = change.workload.micro_batch_size * change.workload.micro_batches * change.layout.data
        each = micro_batches * layout.data / tokens
        assert 1.0 - after.total * each / before.total <= compute_max_gain(change, before) + 1e-9


def test_what_is_known_of_a_step_changes_no_other():
    """A step asked beside others shares their collectives and operators, and takes as long as alone."""
    for layout in LAYOUTS.values():
        known, on = build_empty_known(), cluster(layout.devices)
        for change in list_changes(WORKLOAD, layout, on.accelerator):
            alone, beside = (
                estimate_step(
                    PROFILE,
                    change.workload,
                    change.layout,
                    cluster=on,
                    calibration=CALIBRATION,
                    compute_format=change.workload.recipe.compute,
                    known=shared,
                )
                for shared in (None, known)
            )
            assert alone == beside


class TestOverlapOfExperts:
    """The exchange of experts behind the work of another micro-batch (DeepSeek-V3 2024, section 3.2.1)."""

    PROFILE = CATALOG.models["deepseek-v3"].profile
    LAYOUT = Parallelism(data=64, expert=64, sharding=Sharding.ZERO_1)

    def step(self, micro_batches=16, **changes):
        workload = WORKLOAD._replace(micro_batches=micro_batches)
        return step(self.LAYOUT._replace(**changes), workload=workload, profile=self.PROFILE)

    def test_it_hides_what_the_first_and_the_last_micro_batch_do_not_send(self):
        plain, hidden = self.step(), self.step(overlap_expert_communication=True)
        assert 0 < hidden.slowest.expert < 0.5 * plain.slowest.expert
        assert hidden.slowest.forward > plain.slowest.forward
        assert hidden.total < 0.9 * plain.total

    def test_a_step_of_one_micro_batch_has_nothing_to_hide_behind(self):
        plain, hidden = self.step(1), self.step(1, overlap_expert_communication=True)
        assert hidden.slowest.expert == pytest.approx(plain.slowest.expert, rel=0.02)

    def test_it_changes_nothing_where_every_device_holds_all_experts(self):
        assert self.step(expert=1, overlap_expert_communication=True) == self.step(expert=1)


class TestOverlapOfTensorParallelism:
    """Collectives in pieces beside the products that need them (``tp_comm_overlap`` of Megatron-Core)."""

    LAYOUT = Parallelism(tensor=8, data=2, sequence_parallel=True, sharding=Sharding.ZERO_1)
    OF_MODELS = ("llama-2-7b", "mixtral-8x7b", "deepseek-v3", "nemotron-h-56b")

    def step(self, name="llama-2-7b", *, overlaps=None, layout=LAYOUT, **constants):
        layout = layout._replace(overlap_tensor_communication=overlaps)
        calibration = with_constants(**constants) if constants else CALIBRATION
        return step(layout, profile=CATALOG.models[name].profile, calibration=calibration)

    @pytest.mark.parametrize("name", OF_MODELS)
    @pytest.mark.parametrize("recomputation", [Recomputation.NONE, Recomputation.FULL])
    def test_waiting_is_never_faster_than_the_habit_and_overlap_never_slower(self, name, recomputation):
        workload = WORKLOAD._replace(recomputation=recomputation)
        profile = CATALOG.models[name].profile
        waits, habit, overlaps = (
            step(
                self.LAYOUT._replace(overlap_tensor_communication=stated), workload=workload, profile=profile
            )
            for stated in (False, None, True)
        )
        assert waits.total >= habit.total >= overlaps.total
        assert waits.slowest.tensor > overlaps.slowest.tensor

    def test_left_open_it_is_the_share_of_blocks_without_experts(self):
        assert self.step() == self.step(overlaps=True)
        assert self.step("mixtral-8x7b") == self.step("mixtral-8x7b", overlaps=False)

    @pytest.mark.parametrize("name", OF_MODELS)
    def test_nothing_is_hidden_where_products_wait(self, name):
        waits = self.step(name, overlaps=False)
        assert waits == self.step(name, overlaps=False, tensor_overlap=0.9)
        assert waits == self.step(name, tensor_overlap=0.0)

    def test_more_is_hidden_with_a_larger_share(self):
        shares = (0.0, 0.2, 0.5, 0.9)
        seconds = [self.step(overlaps=True, tensor_overlap=share).total for share in shares]
        assert seconds == sorted(seconds, reverse=True)
        assert len(set(seconds)) == len(seconds)

    def test_the_sum_of_experts_is_not_hidden(self):
        """A block of Mixtral sums its hidden state behind attention and behind experts: half is hidden."""
        hidden, waits = (
            self.step("mixtral-8x7b", overlaps=each, tensor_overlap=0.5) for each in (True, False)
        )
        half, none = (self.step(overlaps=each, tensor_overlap=0.25) for each in (True, False))
        share = 1.0 - hidden.slowest.tensor / waits.slowest.tensor
        assert share == pytest.approx(1.0 - half.slowest.tensor / none.slowest.tensor, rel=0.05)

    def test_it_changes_nothing_where_no_layer_is_divided(self):
        layout = self.LAYOUT._replace(tensor=1, data=16)
        assert self.step(overlaps=True, layout=layout) == self.step(overlaps=False, layout=layout)
