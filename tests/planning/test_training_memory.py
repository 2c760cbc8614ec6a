"""Memory of a training step against published tables, and its properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.hardware.storage import PLAIN_FORMATS
from service.planning.memory.activations import activation_bytes_per_token
from service.planning.memory.adaptation import LINEAR_NAMES, count_trained_parameters, frozen_bytes
from service.planning.memory.serving import inference_weight_bytes
from service.planning.memory.stages import stage_start
from service.planning.memory.states import state_bytes_per_parameter, tensor_state_bytes
from service.planning.memory.training import (
    compute_stage_memory,
    estimate_layout_memory,
    estimate_training_memory,
)
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelHead
from service.planning.models.layers import (
    Attention,
    FeedForward,
    LatentAttention,
    LayerTensor,
    LinearAttention,
    MixtureOfExperts,
    Normalization,
    StateSpace,
    TensorSplit,
)
from service.planning.models.profile import (
    TrainedMatrices,
    activation_terms,
    build_profile,
    build_profile_from_count,
)
from service.planning.operators import step_flops
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.precision import TRAINING_RECIPES, NumberFormat, Optimizer, TrainingPrecision
from service.planning.software.frameworks import Framework, resolve_recipe
from service.planning.software.overhead import DeviceOverhead
from service.planning.workload import (
    Adaptation,
    AdaptationKind,
    AttentionKernel,
    FrozenWeightFormat,
    LossImplementation,
    Offload,
    Recomputation,
    TrainingObjective,
    TrainingStateLocation,
    TrainingWorkload,
)
from tests.planning.test_memory import gpt_block, llama, training

OVERHEAD = DeviceOverhead(5e8, 4.5e8, 3.2e7, 0.15)
BF16 = TRAINING_RECIPES[TrainingPrecision.BF16]


def under(framework: Framework, precision: str = "bf16", **changes) -> TrainingWorkload:
    recipe = resolve_recipe(TRAINING_RECIPES[TrainingPrecision(precision)], framework)
    return training(recipe=recipe, framework=framework, **changes)


def experts(**changes) -> MixtureOfExperts:
    shapes = {"hidden_size": 512, "expert_count": 8, "experts_per_token": 2, "expert_inner_size": 256}
    return MixtureOfExperts(**{**shapes, **changes})


class TestRecipes:
    @pytest.mark.parametrize(
        ("framework", "precision", "expected"),
        [
            # Megatron Core, page on the distributed optimizer: 18 in bf16, 20 in fp16, 16 in fp32.
            (Framework.MEGATRON_LM, "bf16", (2, 4, 4, 8)),
            (Framework.MEGATRON_LM, "fp16", (2, 2 + 4, 4, 8)),
            (Framework.MEGATRON_LM, "fp32", (4, 4, 0, 8)),
            # BLOOM: FP32 gradients beside bf16 ones, none in fp16.
            (Framework.MEGATRON_DEEPSPEED, "bf16", (2, 2 + 4, 4, 8)),
            (Framework.MEGATRON_DEEPSPEED, "fp16", (2, 2, 4, 8)),
            (Framework.DEEPSPEED, "bf16", (2, 2, 4, 8)),
            # FSDP shards FP32 parameters, which are their own master weights.
            (Framework.FSDP, "bf16", (4, 4, 0, 8)),
            (Framework.FSDP, "pure_bf16", (2, 2, 0, 4)),
            (Framework.GENERIC, "mxfp8", (2, 2, 4, 8)),
        ],
    )
    def test_bytes_per_parameter(self, framework, precision, expected):
        recipe = under(framework, precision).recipe
        assert state_bytes_per_parameter(recipe, Optimizer.ADAM) == expected

    def test_megatrons_distributed_optimizer_is_6_and_12_over_d(self):
        layout = Parallelism(data=4, sharding=Sharding.ZERO_1)
        profile = build_profile_from_count(10**9)
        bf16 = estimate_training_memory(profile, under(Framework.MEGATRON_LM), layout)[0].state.total
        fp16 = estimate_training_memory(profile, under(Framework.MEGATRON_LM, "fp16"), layout)[0].state.total
        assert bf16 == 1e9 * (6 + 12 / 4)
        assert fp16 == 1e9 * (4 + 16 / 4)

    @pytest.mark.parametrize(
        ("sharding", "expected"),
        [("none", 120.0), ("zero_1", 31.4), ("zero_2", 16.6), ("zero_3", 1.9)],
    )
    def test_the_table_of_rajbhandari(self, sharding, expected):
        """Figure 1: 7.5e9 parameters on 64 devices, GB; also claims M05 to M08."""
        layout = Parallelism(data=64, sharding=Sharding(sharding))
        state = estimate_training_memory(build_profile_from_count(7_500_000_000), training(), layout)[0].state
        assert state.total / 1e9 == pytest.approx(expected, abs=0.05)

    @pytest.mark.parametrize(("stage", "ratio"), [("zero_1", 3.82), ("zero_2", 7.21), ("zero_3", 64.0)])
    def test_claims_m05_to_m07(self, stage, ratio):
        profile = build_profile_from_count(10**9)
        whole = estimate_training_memory(profile, training(), Parallelism(data=64))[0].state.total
        layout = Parallelism(data=64, sharding=Sharding(stage))
        assert whole / estimate_training_memory(profile, training(), layout)[0].state.total == pytest.approx(
            ratio, rel=0.001
        )

    def test_autocast_multiplies_from_copies_and_fsdp_from_gathered_weights(self):
        alone = estimate_training_memory(llama(), under(Framework.FSDP), Parallelism())[0]
        assert alone.weight_copies == pytest.approx(2 * llama().quantisable_parameters)
        assert alone.gathered_weights == 0.0
        shared = estimate_training_memory(
            llama(), under(Framework.FSDP), Parallelism(data=8, sharding=Sharding.ZERO_3)
        )
        assert shared[0].weight_copies == 0.0
        assert shared[0].gathered_weights > 0.0

    def test_scaled_copies_of_fp8_stand_in_both_directions(self):
        copies = estimate_training_memory(llama(), under(Framework.GENERIC, "mxfp8"), Parallelism())[
            0
        ].weight_copies
        assert copies == pytest.approx(2 * (1 + 1 / 32) * llama().quantisable_parameters)

    def test_fp8_inputs_are_half_as_wide(self):
        wide, narrow = (
            estimate_training_memory(llama(), under(Framework.GENERIC, name), Parallelism())[0].stored.linear
            for name in ("bf16", "fp8_delayed")
        )
        inputs = 8 * (512 + 512 + 1408)  # of the projections, of the feed-forward, of its second matrix
        assert wide - narrow == inputs

    def test_buckets_of_ddp_hold_the_gradients_again(self):
        stage = estimate_training_memory(llama(), under(Framework.DDP), Parallelism(data=2))[0]
        assert stage.buckets == stage.state.gradients
        assert estimate_training_memory(llama(), under(Framework.DDP), Parallelism())[0].buckets == 0.0


MATRIX = LayerTensor("up", (512, 2048), TensorSplit.COLUMN, multiplied=1.0)
VECTOR = LayerTensor("scale", (512,), TensorSplit.NONE)
TABLE = LayerTensor("tokens", (1000, 512), TensorSplit.VOCABULARY)


class TestOptimizers:
    """Elements of FP32 for a 512 x 2,048 matrix, a vector of 512 and a table outside blocks."""

    @pytest.mark.parametrize(
        ("optimizer", "matrix", "vector", "table"),
        [
            ("sgd", 0, 0, 0),
            ("momentum", 1, 1, 1),
            ("adagrad", 1, 1, 1),
            ("lion", 1, 1, 1),
            ("lars", 1, 1, 1),
            ("lamb", 2, 2, 2),
            ("adamw", 2, 2, 2),
            ("adafactor", (512 + 2048) / (512 * 2048), 1, (1000 + 512) / (1000 * 512)),
            ("muon", 1, 2, 2),
            ("galore", (128 * 512 + 2 * 128 * 2048) / (512 * 2048), 2, 2),
        ],
    )
    def test_elements_per_parameter(self, optimizer, matrix, vector, table):
        def kept(tensor, *, inside):
            size = tensor_state_bytes(tensor, Optimizer(optimizer), element_bytes=4, rank=128, inside=inside)
            return size / 4 / tensor.size

        assert kept(MATRIX, inside=True) == pytest.approx(matrix)
        assert kept(VECTOR, inside=True) == vector
        assert kept(TABLE, inside=False) == pytest.approx(table)

    def test_8_bit_states_share_scales_and_small_tensors_stay_wide(self):
        """Dettmers et al. 2022: a scale for 256 elements, FP32 below 4,096 elements."""
        of = {"element_bytes": 4, "rank": 0, "inside": True}
        assert tensor_state_bytes(MATRIX, Optimizer.ADAM_8BIT, **of) == MATRIX.size * (2 + 8 / 256)
        assert tensor_state_bytes(VECTOR, Optimizer.ADAM_8BIT, **of) == 8 * VECTOR.size

    def test_shampoo_keeps_two_preconditioners_and_their_roots(self):
        square = LayerTensor("up", (1024, 1024), TensorSplit.NONE, multiplied=1.0)
        of = {"element_bytes": 4, "rank": 0, "inside": True}
        assert tensor_state_bytes(square, Optimizer.SHAMPOO, **of) == 4 * (4 * 1024**2 + 1024**2)
        blocks = LayerTensor("up", (2048, 1024), TensorSplit.NONE, multiplied=1.0)
        assert tensor_state_bytes(blocks, Optimizer.SHAMPOO, **of) == 4 * 5 * 2048 * 1024

    @given(st.sampled_from(Optimizer), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]))
    def test_the_states_of_all_devices_are_those_of_the_model(self, optimizer, tensor, pipeline):
        """Tensors that tensor parallelism does not split are held by each of its devices."""
        profile = llama(layers=7)
        layout = Parallelism(tensor=tensor, pipeline=pipeline, data=2, sharding=Sharding.ZERO_1)
        offload = Offload()
        workload = training(optimizer=optimizer, offload=offload)
        held = sum(
            (memory.state.optimizer_states + memory.host_state) * 2
            for memory in (
                compute_stage_memory(profile, workload, layout, stage) for stage in range(pipeline)
            )
        )
        alone = estimate_training_memory(profile, workload, Parallelism())[0]
        whole = alone.state.optimizer_states + alone.host_state
        norms = 15 * tensor_state_bytes(VECTOR, optimizer, element_bytes=4, rank=128, inside=True)
        assert held * tensor == pytest.approx(whole + (tensor - 1) * norms)


class TestActivations:
    def saved(self, layer, **options):
        of = {"element_bytes": 2, "kernel": AttentionKernel.FLASH} | options
        return activation_bytes_per_token(activation_terms(layer), **of)

    def test_latent_attention_saves_compressed_and_rebuilt_vectors(self):
        """DeepSeek-V3: 7,168 wide, 128 heads of 128 + 64 and 128, ranks 1,536 and 512."""
        layer = LatentAttention(
            hidden_size=7168,
            query_heads=128,
            query_rank=1536,
            key_value_rank=512,
            rotary_head_size=64,
            plain_head_size=128,
            value_head_size=128,
        )
        whole = 7168 + 2 * (1536 + 512)
        split = 2 * 128 * 192 + 2 * 128 * 128
        assert self.saved(layer).linear == 2 * (whole + split) + 4 * 128
        assert self.saved(layer, tensor=8).linear == 2 * (whole + split / 8) + 4 * 128 / 8

    def test_a_state_space_layer_saves_what_enters_its_scan(self):
        layer = StateSpace(hidden_size=512, inner_size=1024, state_size=128, convolution_width=4, heads=16)
        assert self.saved(layer).linear == 2 * (512 + 2 * 1024 + 2 * 128 + 16 + 2 * 1024)

    def test_linear_attention_saves_the_state_of_each_chunk(self):
        layer = LinearAttention(
            hidden_size=512,
            key_heads=4,
            value_heads=8,
            key_head_size=128,
            value_head_size=128,
            convolution_width=4,
        )
        states = 8 * 128 * 128 / 64
        rows = (2 * 512 + 1024) * 2 + 3 * 1024
        assert self.saved(layer).linear == pytest.approx(2 * (512 + rows + states + 8 * 64) + 8 * 8)

    def test_each_expert_has_its_copy_of_a_token(self):
        assert self.saved(experts()).linear == 2 * (512 * 5 + 4 * 2 * 256) + 4 * 8
        shared = self.saved(experts(shared_inner_size=1024)).linear
        assert shared == self.saved(experts()).linear + 2 * 4 * 1024

    def test_stored_scores_go_with_repeated_keys_and_values(self):
        layer = Attention(hidden_size=512, query_heads=8, key_value_heads=2, head_size=64)
        fused, stored = self.saved(layer), self.saved(layer, kernel=AttentionKernel.STANDARD)
        assert stored.linear == fused.linear - 4 * 8 + 2 * 2 * (512 - 128)
        assert stored.quadratic == 2 * 8

    @pytest.mark.parametrize(
        ("loss", "each"),
        [
            (LossImplementation.FP32, 10),
            (LossImplementation.NARROW, 4),
            (LossImplementation.CHUNKED, 2 + 10 / 8),
            (LossImplementation.FUSED, 0),
        ],
    )
    def test_bytes_of_a_logit(self, loss, each):
        stage = estimate_training_memory(llama(vocabulary=5000), training(loss=loss), Parallelism())[0]
        behind = 2 * 2 * 512 * (2 if loss is LossImplementation.FUSED else 1)
        assert stage.logits_bytes_per_token == 5000 * each + behind

    def test_selective_recomputation_of_megatron_drops_the_scores(self):
        """Korthikanti et al. 2022, section 5: 34 s b h a layer is left."""
        profile = build_profile(Architecture(layers=(gpt_block(1024, 16, 4),)))
        workload = under(
            Framework.MEGATRON_LM,
            kernel=AttentionKernel.STANDARD,
            recomputation=Recomputation.SELECTIVE,
        )
        stored = estimate_training_memory(profile, workload, Parallelism())[0].stored
        assert stored == (4 * (34 * 1024 + 4 * 16), 0)

    def test_selective_recomputation_by_operator(self):
        """torchtitan saves attention and every second matrix product: Llama-3-8B, 31,744 elements a token."""
        block = llama(hidden=4096, inner=14336, heads=32, key_value_heads=8, layers=32, vocabulary=128256)
        workload = under(Framework.TORCHTITAN, recomputation=Recomputation.SELECTIVE)
        stored = estimate_training_memory(block, workload, Parallelism())[0].stored.linear
        kept = 4096 + 4096 + 1024 + 4096 + 14336 + 4096
        assert stored == 32 * (2 * kept + 4 * 32)

    @pytest.mark.parametrize(("layers", "interval"), [(16, 4), (24, 5), (96, 10), (48, 7)])
    def test_the_square_root_of_the_depth(self, layers, interval):
        """ckpt-optimal-k and claims T046 and T047: about 2 sqrt(L) / L of the inputs are held."""
        profile = build_profile(Architecture(layers=(gpt_block(1024, 16, layers),)))
        root = estimate_training_memory(profile, training(recomputation=Recomputation.SQRT), Parallelism())[0]
        every = training(recomputation=Recomputation.EVERY_K, interval=interval)
        assert root.total_bytes == estimate_training_memory(profile, every, Parallelism())[0].total_bytes
        assert root.stored.linear == math.ceil(layers / interval) * 2 * 1024

    @pytest.mark.parametrize(("k", "kept"), [(1, 96), (2, 48), (4, 24), (8, 12)])
    def test_claim_t048_every_k(self, k, kept):
        profile = build_profile(Architecture(layers=(gpt_block(1024, 16, 96),)))
        workload = training(recomputation=Recomputation.EVERY_K, interval=k)
        assert estimate_training_memory(profile, workload, Parallelism())[0].stored.linear == kept * 2 * 1024

    def test_claim_t036_boundaries_of_a_96_layer_model(self):
        profile = build_profile(Architecture(layers=(gpt_block(12288, 96, 96),)))
        workload = training(recomputation=Recomputation.FULL, sequence_length=2048, micro_batch_size=32)
        stage = estimate_training_memory(profile, workload, Parallelism())[0]
        assert stage.stored.compute_bytes(2048) * stage.tokens / 1e9 == pytest.approx(154.6, rel=0.01)

    @pytest.mark.parametrize(("length", "low", "high"), [(2048, 48e9, 85e9), (4096, 100e9, 200e9)])
    def test_claims_t037_and_t038_gpt_3(self, length, low, high):
        profile = build_profile(Architecture(layers=(gpt_block(12288, 96, 96),)))
        workload = training(sequence_length=length, micro_batch_size=1)
        stage = estimate_training_memory(profile, workload, Parallelism())[0]
        assert low < stage.stored.compute_bytes(length) * stage.tokens < high

    def test_claims_t033_to_t035_and_t059_bert_large(self):
        """24 layers of 1,024: 13.4 GB of activations by 34 bytes; 5.4 GB of FP32 Adam state."""
        profile = build_profile(
            Architecture(
                embeddings=ModelEmbeddings(size=1024, vocabulary_size=30522, position_count=512),
                layers=(gpt_block(1024, 16, 24),),
            )
        )
        fp32 = training(
            recipe=TRAINING_RECIPES[TrainingPrecision.FP32], sequence_length=512, micro_batch_size=32
        )
        narrow = fp32._replace(recipe=BF16)
        assert 4 * profile.parameter_count / 1e9 == pytest.approx(1.34, rel=0.05)
        assert estimate_training_memory(profile, fp32, Parallelism())[0].state.total / 1e9 == pytest.approx(
            5.4, rel=0.05
        )
        stage = estimate_training_memory(profile, narrow, Parallelism())[0]
        activations = stage.stored.compute_bytes(512) * stage.tokens
        assert 6e9 < activations < 16e9
        assert 4 < activations / (4 * profile.parameter_count) < 12

    def test_claim_t039_stored_scores_grow_with_the_square(self):
        profile = build_profile(Architecture(layers=(gpt_block(1024, 16),)))
        workload = training(kernel=AttentionKernel.STANDARD)
        stage = estimate_training_memory(profile, workload, Parallelism())[0]
        assert stage.stored.quadratic == 5 * 16  # softmax, dropped and mask of each head: b a s s times 5


class TestFrozen:
    def test_inputs_of_frozen_matrices_are_not_saved(self):
        """silu, gate and product stay; the input of a frozen second matrix does not."""
        layer = FeedForward(hidden_size=512, inner_size=1408, gated=True)
        nothing = activation_terms(layer, TrainedMatrices(frozenset(), 8))
        assert nothing.split_elements == 3 * 1408
        assert nothing.whole_elements == 0
        down = activation_terms(layer, TrainedMatrices(frozenset({"down"}), 8))
        assert (down.whole_elements, down.split_elements) == (8, 4 * 1408)

    @given(st.sampled_from([kind for kind in AdaptationKind if kind is not AdaptationKind.FULL]))
    def test_training_less_never_takes_more(self, kind):
        adaptation = Adaptation(kind, rank=8, targets=frozenset({"query", "value"}), tokens=20)
        less = estimate_training_memory(llama(), training(adaptation=adaptation), Parallelism())[0]
        assert less.total_bytes < estimate_training_memory(llama(), training(), Parallelism())[0].total_bytes
        assert count_trained_parameters(llama(), adaptation) < llama().parameter_count / 10

    def test_claims_t061_and_t062_a_soft_prompt(self):
        profile = llama(hidden=4096, inner=11008, heads=32, key_value_heads=32, layers=32, vocabulary=32000)
        count = count_trained_parameters(profile, Adaptation(AdaptationKind.PROMPT, tokens=100))
        assert count == 409_600
        assert 4 * count < 2e6
        assert count / 7e9 == pytest.approx(0.0000585, rel=0.01)

    def test_claim_t063_trained_shares(self):
        profile = llama(hidden=4096, inner=11008, heads=32, key_value_heads=32, layers=32, vocabulary=32000)
        prefix = count_trained_parameters(profile, Adaptation(AdaptationKind.PREFIX, tokens=30))
        lora = count_trained_parameters(
            profile, Adaptation(AdaptationKind.LORA, rank=16, targets=LINEAR_NAMES)
        )
        assert 0.0005 < prefix / profile.parameter_count < 0.01
        assert 0.005 < lora / profile.parameter_count < 0.02

    def test_scales_of_nf4(self):
        quantised = Adaptation(AdaptationKind.QLORA, 8, base=FrozenWeightFormat.NF4_DOUBLE)
        inside, outside = frozen_bytes(build_profile_from_count(10**9), quantised, BF16)
        assert (inside, outside) == (pytest.approx((4 + 0.127) / 8, rel=1e-4), 2)

    def test_magnitudes_of_dora_stand_beside_lora(self):
        lora = Adaptation(AdaptationKind.LORA, 8, frozenset({"query"}))
        dora = lora._replace(kind=AdaptationKind.DORA)
        assert count_trained_parameters(llama(), dora) - count_trained_parameters(llama(), lora) == 8 * 512


class TestMoments:
    def test_the_parts_add_up_to_the_fullest_moment(self):
        for workload in (
            training(),
            training(recomputation=Recomputation.FULL),
            under(Framework.TORCHTITAN, micro_batch_size=1, sequence_length=1),
        ):
            stage = estimate_training_memory(llama(), workload, Parallelism(data=4), OVERHEAD)[0]
            assert sum(stage.components.values()) == pytest.approx(stage.total_bytes)
            assert stage.total_bytes == max(stage.moment_bytes)

    def test_logits_are_gone_when_a_block_is_computed_again(self):
        profile = llama(vocabulary=200_000)
        workload = training(recomputation=Recomputation.FULL)
        parts = estimate_training_memory(profile, workload, Parallelism())[0].components
        assert parts["logits"] > 0
        assert parts["activations"] == 8 * 2 * 512 * 2048  # the inputs, and no block at work

    def test_a_step_without_a_batch_peaks_in_the_optimizer(self):
        workload = under(Framework.FSDP, micro_batch_size=1, sequence_length=1)
        parts = estimate_training_memory(llama(), workload, Parallelism())[0].components
        assert parts["workspace"] == 4 * llama().parameter_count
        assert parts["activations"] == 0

    def test_a_pipeline_keeps_sharded_weights_gathered(self):
        """torchtitan does not shard again between the micro-batches of a pipeline."""
        layout = Parallelism(pipeline=2, data=4, sharding=Sharding.ZERO_3)
        stage = compute_stage_memory(llama(), under(Framework.TORCHTITAN), layout, 1)
        held = stage.state.gradients * 4 / 4
        assert stage.gathered_weights == pytest.approx(2 * held)
        assert stage.buckets == pytest.approx(4 * held)

    def test_gradients_of_a_block_stand_whole_before_they_are_spread(self):
        block = sum(llama().blocks[0][1:4])
        layout = Parallelism(data=4, sharding=Sharding.ZERO_2)
        assert estimate_training_memory(llama(), training(), layout)[0].block_gradients == 2 * block
        wide = estimate_training_memory(llama(), under(Framework.FSDP), layout)[0]
        assert wide.block_gradients == (2 + 4) * block

    def test_offloaded_activations_leave_two_blocks(self):
        here = estimate_training_memory(llama(), training(), Parallelism())[0]
        away = training(offload=Offload(activations=TrainingStateLocation.CPU))
        there = estimate_training_memory(llama(), away, Parallelism())[0]
        assert there.stored.linear == pytest.approx(here.stored.linear * 2 / 8)
        assert there.host_bytes == pytest.approx(here.stored.linear * 6 / 8 * here.tokens)

    def test_a_step_in_the_backward_pass_holds_gradients_of_one_block(self):
        stage = estimate_training_memory(llama(), training(steps_in_backward=True), Parallelism())[0]
        assert stage.state.gradients == 0.0
        assert stage.block_gradients == 2 * sum(llama().blocks[0][1:4])

    def test_pairs_double_a_sequence(self):
        one, pair = (
            estimate_training_memory(llama(), training(objective=objective), Parallelism())[0]
            for objective in (TrainingObjective.SUPERVISED, TrainingObjective.SIMPO)
        )
        assert pair.stored.linear == 2 * one.stored.linear
        assert pair.logits_bytes_per_token == 2 * one.logits_bytes_per_token

    def test_claim_m14_preference_optimization_takes_half_of_ppo(self):
        """18 against 36 bytes per parameter."""
        profile = build_profile_from_count(10**9)
        dpo, ppo = (
            estimate_training_memory(profile, training(objective=objective), Parallelism())[0]
            for objective in (TrainingObjective.DPO, TrainingObjective.PPO)
        )
        assert dpo.state.total + dpo.auxiliary_models == 18e9
        assert ppo.state.total + ppo.auxiliary_models == 36e9

    def test_an_average_and_a_teacher(self):
        average = estimate_training_memory(
            build_profile_from_count(10**9), training(weight_average=True), Parallelism()
        )[0]
        assert average.auxiliary_models == 4e9
        taught = training(objective=TrainingObjective.DISTILLATION, teacher_parameters=10 * 10**9)
        assert (
            estimate_training_memory(build_profile_from_count(10**9), taught, Parallelism())[
                0
            ].auxiliary_models
            == 20e9
        )


MODELS = {
    "dense": llama(),
    "experts": llama(experts=experts(shared_inner_size=256)),
    "mixed": build_profile(
        Architecture(
            embeddings=ModelEmbeddings(size=512, vocabulary_size=1000),
            layers=(
                LayerBlock(layers=(Normalization(size=512), experts()), count=3),
                gpt_block(512, 8, 6),
                LayerBlock(
                    layers=(
                        Normalization(size=512),
                        StateSpace(
                            hidden_size=512, inner_size=1024, state_size=16, convolution_width=4, heads=16
                        ),
                    ),
                    count=7,
                ),
            ),
            heads=(ModelHead(kind="language_model", input_size=512, output_size=1000),),
            tied=("language_model",),
        )
    ),
}
choices = st.fixed_dictionaries(
    {
        "recomputation": st.sampled_from(Recomputation),
        "kernel": st.sampled_from(AttentionKernel),
        "optimizer": st.sampled_from(Optimizer),
        "loss": st.sampled_from(LossImplementation),
        "objective": st.sampled_from(TrainingObjective),
        "offload": st.builds(
            Offload,
            st.sampled_from(TrainingStateLocation),
            st.sampled_from(TrainingStateLocation),
            st.sampled_from([TrainingStateLocation.NONE, TrainingStateLocation.CPU]),
        ),
        "interval": st.integers(1, 4),
        "adaptation": st.sampled_from(
            [Adaptation(), Adaptation(AdaptationKind.LORA, 8, frozenset({"query", "expert_up"}))]
        ),
    }
)
degrees = st.tuples(
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([1, 2]),
    st.integers(1, 4),
    st.sampled_from([1, 3, 16]),
    st.sampled_from([128, 1000]),
)


class TestProperties:
    @given(
        st.sampled_from(sorted(MODELS)),
        st.sampled_from(Framework),
        st.sampled_from(TrainingPrecision),
        choices,
        st.lists(degrees, min_size=1, max_size=12),
        st.sampled_from([s for s in Sharding if s is not Sharding.HYBRID]),
        st.sampled_from([PipelineSchedule.GPIPE, PipelineSchedule.ONE_F_ONE_B]),
        st.booleans(),
    )
    def test_many_layouts_at_once_are_each_of_them_alone(  # noqa: PLR0917 - one choice an argument
        self, model, framework, precision, chosen, many, sharding, schedule, sequence_parallel
    ):
        profile = MODELS[model]
        workload = under(framework, precision.value, **chosen)
        tensor, pipeline, data, context, batch, micro_batches, length = (
            np.array(column) for column in zip(*many, strict=True)
        )

        def laid_out(tensor, pipeline, data, context):
            return Parallelism(
                tensor=tensor,
                pipeline=pipeline,
                data=data,
                context=context,
                sequence_parallel=sequence_parallel,
                sharding=sharding,
                pipeline_schedule=schedule,
            )

        def at(batch, micro_batches, length):
            return workload._replace(
                micro_batch_size=batch, micro_batches=micro_batches, sequence_length=length
            )

        found = estimate_layout_memory(
            profile, at(batch, micro_batches, length), laid_out(tensor, pipeline, data, context), OVERHEAD
        )
        alone = [
            estimate_training_memory(profile, at(b, m, s), laid_out(t, p, d, c), OVERHEAD)[0].total_bytes
            for t, p, d, c, b, m, s in many
        ]
        assert np.broadcast_to(found, len(many)).tolist() == pytest.approx(alone, rel=1e-12)

    @given(st.sampled_from(sorted(MODELS)), st.sampled_from(Framework), choices, degrees)
    def test_a_larger_model_batch_or_sequence_never_takes_less(self, model, framework, chosen, at):
        tensor, pipeline, data, context, batch, micro_batches, length = at
        layout = Parallelism(tensor=tensor, pipeline=pipeline, data=data, context=context)
        base = under(
            framework,
            **chosen,
            micro_batch_size=batch,
            micro_batches=micro_batches,
            sequence_length=length,
        )

        def total(workload, profile=MODELS[model]):
            return estimate_training_memory(profile, workload, layout, OVERHEAD)[0].total_bytes

        for change in ({"micro_batch_size": batch + 1}, {"sequence_length": length + 1}):
            assert total(base._replace(**change)) >= total(base) * (1 - 1e-12)
        if base.recomputation is not Recomputation.SQRT:
            deeper = total(base, llama(layers=16))
            assert deeper >= total(base, llama(layers=8)) * (1 - 1e-12)

    @given(st.sampled_from(Framework), choices, st.sampled_from(Sharding), st.sampled_from([1, 2, 4]))
    def test_spreading_over_more_devices_never_costs_a_device_more(self, framework, chosen, sharding, data):
        """Beyond one device, on which nothing is gathered and nothing exchanged."""
        group = 2 * data if sharding is Sharding.HYBRID else None
        few = Parallelism(data=2 * data, sharding=sharding, sharding_group_size=group)
        more = Parallelism(data=4 * data, sharding=sharding, sharding_group_size=2 * group if group else None)
        workload = under(framework, **chosen)
        totals = [
            estimate_training_memory(MODELS["experts"], workload, layout, OVERHEAD)[0].total_bytes
            for layout in (few, more)
        ]
        assert totals[1] <= totals[0] * (1 + 1e-12)

    @given(st.sampled_from(Framework), choices, degrees)
    def test_recomputing_never_takes_more(self, framework, chosen, at):
        """Where activations stay: those that leave pass through one by one, not several blocks at once."""
        tensor, pipeline, data, context, batch, micro_batches, length = at
        layout = Parallelism(tensor=tensor, pipeline=pipeline, data=data, context=context)
        workload = under(
            framework,
            **chosen,
            micro_batch_size=batch,
            micro_batches=micro_batches,
            sequence_length=length,
        )
        workload = workload._replace(
            offload=workload.offload._replace(activations=TrainingStateLocation.NONE)
        )
        kept, again = (
            estimate_training_memory(llama(), workload._replace(recomputation=strategy), layout)[
                0
            ].total_bytes
            for strategy in (Recomputation.NONE, workload.recomputation)
        )
        assert again <= kept * (1 + 1e-12)


class TestClaims:
    """Claims M01 to M16 and T030 to T058 of the notes that no other test has."""

    def state(self, count, layout=None, **changes):
        return estimate_training_memory(
            build_profile_from_count(count), training(**changes), layout or Parallelism()
        )[0].state

    @pytest.mark.parametrize(("count", "weights"), [(7, 14e9), (70, 140e9)])
    def test_m01_m02_and_t030_weights(self, count, weights):
        assert self.state(count * 10**9).weights == weights

    def test_t031_and_t032_gradients_in_fp32(self):
        fp32 = TRAINING_RECIPES[TrainingPrecision.FP32]
        assert self.state(175 * 10**9, recipe=fp32).gradients == 700e9
        assert self.state(10**9, recipe=fp32).gradients == 4e9

    def test_m03_narrow_weights(self):
        held = [
            inference_weight_bytes(
                build_profile_from_count(70 * 10**9), PLAIN_FORMATS[number_format], Parallelism()
            ).total
            for number_format in (NumberFormat.INT8, NumberFormat.INT4)
        ]
        assert held == [70e9, 35e9]

    def test_m04_two_devices_hold_what_one_does_not(self):
        assert self.state(70 * 10**9).weights > 80e9
        assert self.state(70 * 10**9, Parallelism(tensor=2)).weights < 80e9

    def test_m10_replicas_hold_the_same_again(self):
        assert self.state(10**9, Parallelism(data=8)) == self.state(10**9)

    def test_m11_forty_layers_in_two_stages(self):
        profile = llama(layers=40)
        starts = [stage_start(profile, Parallelism(pipeline=2), stage) for stage in range(3)]
        assert starts == [0, 20, 40]

    def test_m16_distilbert_is_three_fifths_of_bert(self):
        fp32 = TRAINING_RECIPES[TrainingPrecision.FP32]
        small, large = (self.state(count, recipe=fp32).weights for count in (66 * 10**6, 110 * 10**6))
        assert (small, large) == (264e6, 440e6)
        assert small / large == 0.6

    @pytest.mark.parametrize(("steps", "saved"), [(4, 0.75), (10, 0.9), (128, 1 - 1 / 128)])
    def test_t041_to_t044_accumulation_divides_activations(self, steps, saved):
        whole, parts = (
            estimate_training_memory(llama(), training(micro_batch_size=size), Parallelism())[0]
            for size in (1280 * steps, 1280)
        )
        assert 1 - parts.components["activations"] / whole.components["activations"] == pytest.approx(saved)
        assert whole.state == parts.state

    def test_t045_two_moments_as_large_as_the_weights(self):
        fp32 = TRAINING_RECIPES[TrainingPrecision.FP32]
        state = self.state(10**9, recipe=fp32)
        assert state.optimizer_states == 2 * state.weights

    def test_t050_recomputing_costs_a_third(self):
        assert step_flops(1.0, recomputed=1.0).hardware / step_flops(1.0).hardware == 4 / 3

    def test_t053_recomputing_and_accumulating_multiply(self):
        profile = llama(layers=64, vocabulary=10)

        def stored(size, strategy):
            workload = training(micro_batch_size=size, recomputation=strategy)
            stage = estimate_training_memory(profile, workload, Parallelism())[0]
            return stage.stored.compute_bytes(1024) * stage.tokens

        both = stored(4, Recomputation.FULL) / stored(16, Recomputation.NONE)
        accumulated = stored(4, Recomputation.NONE) / stored(16, Recomputation.NONE)
        recomputed = stored(16, Recomputation.FULL) / stored(16, Recomputation.NONE)
        assert both == pytest.approx(accumulated * recomputed)

    def test_t058_full_training_of_70b_on_eight_devices_of_40_gb(self):
        layout = Parallelism(data=8, sharding=Sharding.ZERO_3)
        assert self.state(70 * 10**9, layout).total == 140e9
