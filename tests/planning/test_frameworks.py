"""What each training framework holds, against counts by hand and against peaks that it was measured with."""

import pytest

from service.planning.memory.adaptation import count_trained_parameters
from service.planning.memory.training import compute_stage_memory, estimate_training_memory
from service.planning.memory.transients import count_communicators
from service.planning.models.profile import OperatorFusion
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.precision import TRAINING_RECIPES, TrainingPrecision
from service.planning.software.frameworks import TRAITS, Framework, resolve_recipe
from service.planning.software.overhead import DeviceOverhead
from service.planning.workload import (
    Adaptation,
    AdaptationKind,
    FrozenWeightFormat,
    LossImplementation,
    Recomputation,
    TrainingStateLocation,
)
from tests.planning.test_memory import llama, training
from tests.planning.test_training_memory import under

H, F = 4096, 11008
LLAMA_2_7B = llama(hidden=H, inner=F, heads=32, key_value_heads=32, layers=32, vocabulary=32000)
LLAMA_31_8B = llama(hidden=H, inner=14336, heads=32, key_value_heads=8, layers=32, vocabulary=128256)
ONE, TWO = Parallelism(), Parallelism(data=2, sharding=Sharding.ZERO_3)
LORA = Adaptation(AdaptationKind.LORA, 8, frozenset({"query", "value"}))
PREFIX = Adaptation(AdaptationKind.PREFIX, tokens=10)
SCALE = Adaptation(AdaptationKind.SCALE, tokens=10)


def litgpt(adaptation: Adaptation, **changes):
    given = {
        "sequence_length": 1304,
        "micro_batch_size": 1,
        "micro_batches": 128,
        "loss": LossImplementation.NARROW,
    }
    return under(Framework.LITGPT, "pure_bf16", adaptation=adaptation, **given | changes)


def allocated(workload, layout=ONE, profile=LLAMA_2_7B) -> float:
    return estimate_training_memory(profile, workload, layout)[0].total_bytes


class TestLitGPT:
    @pytest.mark.parametrize(
        ("adaptation", "expected"),
        [
            # Dropped input and its mask, queries, keys and values together with the first two once more,
            # result, source of the indexed copy; both sides of the gate and its result; norms in FP32.
            (LORA, 2 * (H + 16) + H + 2 * (3 * H + 2 * H + H) + 2 * 2 * H + 2 * 3 * F + 2 * 4 * H + 4 * 32),
            # The second result of attention in place of what low-rank matrices need.
            (PREFIX, 2 * (3 * H + 2 * H + H) + 2 * H + 2 * 3 * F + 2 * 4 * H + 4 * 32),
            # Beside that each matrix's result behind its factor, and the norms' results in FP32.
            (
                SCALE,
                2 * (3 * H + 2 * H + H)
                + 2 * H
                + 2 * (3 * H + H + 2 * F + H)
                + 2 * 3 * F
                + 2 * 2 * 4 * H
                + 4 * 32,
            ),
        ],
    )
    def test_what_a_block_saves(self, adaptation, expected):
        one = llama(hidden=H, inner=F, heads=32, key_value_heads=32, layers=1, vocabulary=32000)
        stored = compute_stage_memory(one, litgpt(adaptation), ONE, 0).stored
        assert stored == (expected, 0.0)

    def test_packed_weights_save_every_input_and_are_unpacked_twice(self):
        plain, packed = (
            compute_stage_memory(LLAMA_2_7B, litgpt(LORA._replace(base=base)), ONE, 0)
            for base in (FrozenWeightFormat.PLAIN, FrozenWeightFormat.NF4)
        )
        assert packed.stored.linear - plain.stored.linear == 32 * 2 * (H + H + F)
        # The head is the largest matrix: FP16 as it was quantised from, and BF16.
        assert (plain.gathered_weights, packed.gathered_weights) == (0.0, 4 * 32000 * H)
        matrices = 32 * (4 * H * H + 3 * H * F) + 32000 * H
        adapters = plain.state.weights - 2 * LLAMA_2_7B.parameter_count
        narrow = 2 * (LLAMA_2_7B.parameter_count - matrices) + (0.5 + 4 / 64) * matrices
        assert packed.state.weights == pytest.approx(narrow + adapters)

    @pytest.mark.parametrize(
        ("workload", "layout", "measured"),
        [
            # LitGPT, tutorials/resource-tables.md: what the allocator handed out, in GB.
            (litgpt(LORA), ONE, 21.30),
            (litgpt(LORA, micro_batch_size=2), ONE, 29.07),
            (litgpt(LORA._replace(base=FrozenWeightFormat.NF4)), ONE, 14.14),
            (litgpt(LORA._replace(base=FrozenWeightFormat.NF4_DOUBLE)), ONE, 13.84),
            (litgpt(PREFIX), ONE, 19.98),
            (litgpt(PREFIX._replace(base=FrozenWeightFormat.NF4)), ONE, 12.68),
            (litgpt(SCALE), ONE, 25.51),
            (litgpt(SCALE._replace(base=FrozenWeightFormat.NF4)), ONE, 18.30),
            (litgpt(LORA, recomputation=Recomputation.FULL), TWO, 22.18),
            (litgpt(LORA, recomputation=Recomputation.FULL, micro_batch_size=4), TWO, 23.39),
        ],
    )
    def test_measured_peaks(self, workload, layout, measured):
        assert allocated(workload, layout) == pytest.approx(measured * 1e9, rel=0.04)

    @pytest.mark.parametrize(("micro_batches", "held"), [(1, 0.0), (2, 2.0)])
    def test_accumulated_gradients_are_whole_and_of_frozen_weights_too(self, micro_batches, held):
        workload = litgpt(LORA, micro_batches=micro_batches)
        buckets = compute_stage_memory(LLAMA_2_7B, workload, TWO, 0).buckets
        assert buckets == held * LLAMA_2_7B.parameter_count

    def test_scaled_matrices_train_their_factors_norms_and_tokens(self):
        # LitGPT prints 4,279,744 with its gates (960), no tokens in the first two blocks, and those of
        # the head (2 x 32,000) and of the last norm (4,096), which stand outside blocks.
        printed = 4_279_744 - 30 * 32 + 2 * 10 * H - 2 * 32000 - H
        assert count_trained_parameters(LLAMA_2_7B, SCALE) == printed


class TestInternEvo:
    @pytest.mark.parametrize("sharding", [Sharding.ZERO_1, Sharding.ZERO_3])
    def test_the_step_holds_28_bytes_for_each_parameter_of_its_shard(self, sharding):
        """2 + 2 + 4 + 8, FP32 gradients, and the root and the denominator of Adam."""
        layout = Parallelism(data=1, sharding=sharding)
        workload = under(Framework.INTERNEVO, recomputation=Recomputation.FULL, sequence_length=128)
        memory = compute_stage_memory(LLAMA_2_7B, workload, layout, 0)
        assert memory.moment_bytes[3] == 28 * LLAMA_2_7B.parameter_count
        assert memory.total_bytes == memory.moment_bytes[3]


class TestMegatronDeepSpeed:
    @pytest.mark.parametrize(
        ("layout", "megatron", "with_deepspeed"),
        [
            (Parallelism(), 0, 0),
            (Parallelism(tensor=8), 1, 3),
            (Parallelism(data=8), 1, 3),
            (Parallelism(tensor=8, pipeline=6, data=8), 3, 8),
        ],
    )
    def test_communicators(self, layout, megatron, with_deepspeed):
        assert count_communicators(layout, TRAITS[Framework.MEGATRON_LM]) == megatron
        assert count_communicators(layout, TRAITS[Framework.MEGATRON_DEEPSPEED]) == with_deepspeed

    def test_its_context_has_all_kernels_loaded(self):
        overhead = DeviceOverhead(context=5e8, eager_context=1.65e9)
        contexts = [
            compute_stage_memory(LLAMA_2_7B, under(framework), ONE, 0, overhead).components["device_context"]
            for framework in (Framework.MEGATRON_LM, Framework.MEGATRON_DEEPSPEED)
        ]
        assert contexts == [5e8, 1.65e9]

    def test_buckets_of_a_pipeline_stand_only_at_the_step(self):
        workload = under(Framework.MEGATRON_DEEPSPEED, "fp16")
        alone, piped = (
            compute_stage_memory(
                LLAMA_31_8B, workload, Parallelism(pipeline=p, data=8, sharding=Sharding.ZERO_1), 0
            )
            for p in (1, 2)
        )
        assert (alone.buckets, piped.buckets) == (2e9, 0.0)
        held = piped.state.master_weights / 4
        assert piped.step_temporaries == max(6 * held, 2e9)


LLAMA_32_3B = llama(hidden=3072, inner=8192, heads=24, key_value_heads=8, layers=28, vocabulary=128256)


class TestTorchtune:
    @pytest.mark.parametrize(
        ("changes", "gibibytes"),
        [
            # What other tools are compared with in anchor-outputs.csv, measured with torchtune on an A100:
            # Llama 3.2 3B, here with a head of its own, at 2 x 4,096 tokens.
            ({}, 60.0),
            (
                {
                    "recomputation": Recomputation.FULL,
                    "fusion": OperatorFusion.COMPILED,
                    "loss": LossImplementation.CHUNKED,
                },
                24.9,
            ),
        ],
    )
    def test_measured_peaks(self, changes, gibibytes):
        given = {"sequence_length": 4096, "micro_batches": 1} | changes
        memory = estimate_training_memory(LLAMA_32_3B, under(Framework.TORCHTUNE, "pure_bf16", **given), ONE)[
            0
        ]
        # Its head is tied to the table: one of them is left out, with its states and its gradient.
        head = 128256 * 3072
        tied = head * (8 if memory.components["gradients"] else 6)
        assert memory.total_bytes - tied == pytest.approx(gibibytes * 2**30, rel=0.04)

    def test_gradients_come_with_the_backward_pass(self):
        """Of a step of one micro-batch none are held at the loss, and all at the end of the backward pass."""
        accumulated, alone = (
            compute_stage_memory(LLAMA_31_8B, under(Framework.TORCHTUNE, micro_batches=m), ONE, 0)
            for m in (2, 1)
        )
        gradients = 4 * LLAMA_31_8B.parameter_count
        assert [a - b for a, b in zip(accumulated.moment_bytes, alone.moment_bytes, strict=True)] == [
            pytest.approx(gradients),
            pytest.approx(gradients - alone.block_gradients),
            0.0,
            0.0,
        ]
        assert alone.block_gradients == 4 * (2 * H * H + 2 * H * 1024 + 3 * H * 14336 + 2 * H)

    def test_gradients_of_collectives_are_held_apart(self):
        spread = Parallelism(data=8, sharding=Sharding.ZERO_3)
        for framework in (Framework.TORCHTUNE, Framework.GENERIC):
            workload = under(framework, micro_batches=1)
            assert compute_stage_memory(LLAMA_31_8B, workload, spread, 0).late_gradients == 0.0
        workload = under(Framework.GENERIC, micro_batches=1)
        assert compute_stage_memory(LLAMA_31_8B, workload, ONE, 0).late_gradients == 0.0


def torchtitan(**changes):
    given = {
        "recipe": resolve_recipe(TRAINING_RECIPES[TrainingPrecision.BF16], Framework.TORCHTITAN),
        "sequence_length": 8192,
        "recomputation": Recomputation.SELECTIVE,
    }
    return training(framework=Framework.TORCHTITAN, **given | changes)


def stages_of(**changes) -> Parallelism:
    return Parallelism(tensor=8, pipeline=8, data=8, sharding=Sharding.ZERO_3, **changes)


class TestTorchtitan:
    @pytest.mark.parametrize(
        ("data", "compiled", "loss", "measured"),
        [
            # torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, tables 1 and 3: reserved, in GiB.
            (8, False, LossImplementation.FP32, 82.4),
            (8, True, LossImplementation.FP32, 77.0),
            (128, False, LossImplementation.FP32, 67.0),
            (128, True, LossImplementation.FP32, 62.0),
            # benchmarks/llama3-8b_h200_202506_trainy-whitefiber.md, its loss compiled.
            (32, True, LossImplementation.NARROW, 47.96),
            (64, True, LossImplementation.NARROW, 46.97),
        ],
    )
    def test_measured_peaks(self, data, compiled, loss, measured):
        layout = Parallelism(data=data, sharding=Sharding.ZERO_3)
        workload = torchtitan(fusion=OperatorFusion.COMPILED if compiled else None, loss=loss)
        overhead = DeviceOverhead(matrix_workspace=3.2e7, fragmentation=0.15)
        peak = estimate_training_memory(LLAMA_31_8B, workload, layout, overhead)[0].total_bytes
        assert peak == pytest.approx(measured * 2**30, rel=0.04)

    def test_compiled_blocks_keep_no_output_that_nobody_reads(self):
        eager, compiled = (
            compute_stage_memory(
                LLAMA_31_8B, torchtitan(fusion=OperatorFusion.COMPILED if compiled else None), ONE, 0
            ).stored.linear
            for compiled in (False, True)
        )
        assert eager - compiled == 32 * 2 * H

    def test_a_divided_loss_holds_exponentials_as_well(self):
        alone, divided = (
            compute_stage_memory(LLAMA_31_8B, torchtitan(), Parallelism(tensor=t), 0).logits_bytes_per_token
            for t in (1, 8)
        )
        behind = 2 * 2 * H
        assert alone - behind == 12 * 128256
        assert divided - behind == 16 * 128256 / 8

    def test_the_block_at_work_gathers_inputs_and_two_more(self):
        spread = Parallelism(tensor=8, sequence_parallel=True)
        torchtitans, fsdps = (
            compute_stage_memory(
                LLAMA_31_8B, torchtitan()._replace(framework=framework), spread, 0
            ).working.linear
            for framework in (Framework.TORCHTITAN, Framework.FSDP)
        )
        assert torchtitans - fsdps == 2 * (2 * H + 2 * H) * (1 - 1 / 8)

    @pytest.mark.parametrize(("micro_batches", "share"), [(8, 1 / 2), (9, 1.0)])
    def test_an_interleaved_stage_sums_gradients_chunk_by_chunk(self, micro_batches, share):
        """Where a step has no more micro-batches than the pipeline has stages."""
        schedule = {"pipeline_schedule": PipelineSchedule.INTERLEAVED, "virtual_stages": 2}
        workload = torchtitan(micro_batches=micro_batches)
        plain, interleaved = (
            compute_stage_memory(LLAMA_31_8B, workload, layout, 0).buckets
            for layout in (stages_of(), stages_of(**schedule))
        )
        assert interleaved == share * plain > 0

    @pytest.mark.parametrize(("stage", "kept"), [(0, 2 * 8 * 2 * H), (7, 7 * 2 * 128256 / 8)])
    def test_stages_keep_what_they_sent_of_all_micro_batches(self, stage, kept):
        workload = torchtitan(recomputation=Recomputation.FULL)
        torchtitans, fsdps = (
            compute_stage_memory(
                LLAMA_31_8B, workload._replace(framework=framework), stages_of(), stage
            ).stored
            for framework in (Framework.TORCHTITAN, Framework.FSDP)
        )
        assert torchtitans.linear - fsdps.linear == kept

    def test_what_was_sent_stays_where_activations_are_offloaded(self):
        offload = torchtitan().offload._replace(activations=TrainingStateLocation.CPU)
        kept = compute_stage_memory(LLAMA_31_8B, torchtitan(offload=offload), stages_of(), 0).stored.linear
        assert kept > 2 * 8 * 2 * H


class TestCompilers:
    @pytest.mark.parametrize(
        ("framework", "weights", "master"),
        [
            # weight_dtype of MaxText's base.yml is float32.
            (Framework.MAXTEXT, "fp32", None),
            # use_fp32_optimizer of the tutorials of NeuronX Distributed.
            (Framework.NEURONX_DISTRIBUTED, "bf16", "fp32"),
        ],
    )
    def test_parameters_take_16_bytes(self, framework, weights, master):
        recipe = resolve_recipe(TRAINING_RECIPES[TrainingPrecision.BF16], framework)
        assert recipe.weights == weights
        assert recipe.master == master
        stage = estimate_training_memory(LLAMA_31_8B, under(framework, "bf16"), ONE)[0]
        held = stage.state
        total = held.weights + held.gradients + held.master_weights + held.optimizer_states
        assert total / LLAMA_31_8B.parameter_count == pytest.approx(16.0, rel=1e-3)
