import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.hardware.storage import PLAIN_FORMATS
from service.planning.memory.activations import activation_bytes_per_token, logits_bytes_per_token
from service.planning.memory.caches import key_value_bytes
from service.planning.memory.capacity import (
    count_cache_tokens,
    find_largest_concurrency,
    find_longest_context,
)
from service.planning.memory.serving import estimate_inference_memory, inference_weight_bytes
from service.planning.memory.states import state_bytes_per_parameter
from service.planning.memory.training import (
    compute_stage_memory,
    estimate_training_memory,
    find_largest_micro_batch,
    find_longest_sequence,
)
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelHead
from service.planning.models.layers import Attention, FeedForward, MixtureOfExperts, Normalization
from service.planning.models.profile import build_profile, build_profile_from_count
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.precision import TRAINING_RECIPES, NumberFormat, Optimizer, TrainingPrecision
from service.planning.workload import AttentionKernel, InferenceWorkload, Recomputation, TrainingWorkload

GIB = 2**30


def gpt_block(hidden: int, heads: int, count: int = 1) -> LayerBlock:
    norm = Normalization(size=hidden, norm="layer")
    attention = Attention(
        hidden_size=hidden,
        query_heads=heads,
        key_value_heads=heads,
        head_size=hidden // heads,
        query_key_value_bias=True,
        output_bias=True,
        dropout=True,
    )
    feed_forward = FeedForward(hidden_size=hidden, inner_size=4 * hidden, bias=True, dropout=True)
    return LayerBlock(layers=(norm, attention, norm, feed_forward), count=count)


def llama(*, hidden=512, inner=1408, heads=8, key_value_heads=2, layers=8, vocabulary=1000, experts=None):
    norm = Normalization(size=hidden)
    attention = Attention(
        hidden_size=hidden, query_heads=heads, key_value_heads=key_value_heads, head_size=hidden // heads
    )
    feed_forward = experts or FeedForward(hidden_size=hidden, inner_size=inner, gated=True)
    return build_profile(
        Architecture(
            embeddings=ModelEmbeddings(size=hidden, vocabulary_size=vocabulary),
            layers=(LayerBlock(layers=(norm, attention, norm, feed_forward), count=layers), norm),
            heads=(ModelHead(kind="language_model", input_size=hidden, output_size=vocabulary),),
        )
    )


def training(**changes) -> TrainingWorkload:
    return TrainingWorkload(
        sequence_length=1024,
        micro_batch_size=2,
        micro_batches=8,
        recipe=TRAINING_RECIPES[TrainingPrecision.BF16],
        optimizer=Optimizer.ADAMW,
        kernel=AttentionKernel.FLASH,
        recomputation=Recomputation.NONE,
    )._replace(**changes)


def serving(**changes) -> InferenceWorkload:
    return InferenceWorkload(
        weight_format=NumberFormat.BF16,
        cache_format=NumberFormat.BF16,
        input_tokens=7168.0,
        output_tokens=1024.0,
        concurrency=1,
        batched_tokens=8192,
        block_tokens=16,
        memory_fraction=0.9,
    )._replace(**changes)


class TestTrainingState:
    @pytest.mark.parametrize(
        ("precision", "optimizer", "expected"),
        [
            ("bf16", "adam", (2, 2, 4, 8)),
            ("fp16", "adamw", (2, 2, 4, 8)),
            ("fp32", "adam", (4, 4, 0, 8)),
            ("tf32", "momentum", (4, 4, 0, 4)),
            ("pure_bf16", "adam", (2, 2, 0, 4)),
            ("bf16", "sgd", (2, 2, 4, 0)),
            ("bf16", "rmsprop", (2, 2, 4, 4)),
        ],
    )
    def test_bytes_of_a_parameter(self, precision, optimizer, expected):
        recipe = TRAINING_RECIPES[TrainingPrecision(precision)]
        assert state_bytes_per_parameter(recipe, Optimizer(optimizer)) == expected

    def test_a_seven_billion_model_takes_sixteen_bytes_each(self):
        stage = estimate_training_memory(build_profile_from_count(7_000_000_000), training(), Parallelism())[
            0
        ]
        assert stage.state == (14e9, 14e9, 28e9, 56e9)

    @pytest.mark.parametrize(
        ("sharding", "divided"),
        [("none", ()), ("zero_1", (2, 3)), ("zero_2", (1, 2, 3)), ("zero_3", (0, 1, 2, 3))],
    )
    def test_each_stage_of_sharding_divides_one_part_more(self, sharding, divided):
        whole = estimate_training_memory(build_profile_from_count(10**9), training(), Parallelism(data=4))[
            0
        ].state
        layout = Parallelism(data=4, sharding=Sharding(sharding))
        shared = estimate_training_memory(build_profile_from_count(10**9), training(), layout)[0].state
        assert shared == tuple(size / 4 if part in divided else size for part, size in enumerate(whole))

    def test_hybrid_sharding_divides_by_its_group(self):
        layout = Parallelism(data=8, sharding=Sharding.HYBRID, sharding_group_size=2)
        state = estimate_training_memory(build_profile_from_count(10**9), training(), layout)[0].state
        assert state.total == pytest.approx(16e9 / 2)

    @given(
        tensor=st.sampled_from([1, 2, 4, 8]),
        pipeline=st.sampled_from([1, 2, 4]),
        data=st.sampled_from([1, 2, 8]),
    )
    def test_the_shards_of_all_devices_hold_the_whole(self, tensor, pipeline, data):
        profile = llama(layers=7)
        layout = Parallelism(tensor=tensor, pipeline=pipeline, data=data, sharding=Sharding.ZERO_3)
        held = sum(
            compute_stage_memory(profile, training(), layout, stage).state.weights * data
            for stage in range(pipeline)
        )
        split = profile.prefixes[-1][0] + profile.embedding.split + profile.head.split
        whole = profile.prefixes[-1][1] + profile.head.whole
        assert held * tensor == pytest.approx(2 * (split + whole * tensor))

    def test_a_norm_behind_the_blocks_is_no_unit_of_depth(self):
        profile = llama(layers=8)
        assert profile.block_count == 8
        block = sum(profile.blocks[0][1:4])
        states = [
            compute_stage_memory(profile, training(), Parallelism(pipeline=8), stage).state.weights / 2
            for stage in range(8)
        ]
        table = head = 512 * 1000
        assert states == [block + table, *[block] * 6, block + head + 512]

    def test_stages_differ_by_one_block_at_most(self):
        profile = llama(layers=13)
        block = sum(profile.blocks[0][1:4])
        inner = [
            compute_stage_memory(profile, training(), Parallelism(pipeline=5), stage).state.weights
            / 2
            / block
            for stage in range(1, 4)
        ]
        assert set(inner) == {2, 3}

    def test_sharded_weights_are_gathered_block_by_block_beside_table_and_head(self):
        profile = llama()
        block = sum(profile.blocks[0][1:4])
        outer = 2 * 512 * 1000 + 512
        layout = Parallelism(data=4, sharding=Sharding.ZERO_3)
        assert estimate_training_memory(profile, training(), layout)[0].gathered_weights == 2 * (
            2 * block + outer
        )
        alone = Parallelism(data=4, sharding=Sharding.HYBRID, sharding_group_size=1)
        assert estimate_training_memory(profile, training(), alone)[0].gathered_weights == 0.0

    def test_a_tied_head_is_copied_to_the_last_stage(self):
        hidden, vocabulary = 512, 1000
        tied = build_profile(
            Architecture(
                embeddings=ModelEmbeddings(size=hidden, vocabulary_size=vocabulary),
                layers=(gpt_block(hidden, 8, 4),),
                heads=(ModelHead(kind="language_model", input_size=hidden, output_size=vocabulary),),
                tied=("language_model",),
            )
        )
        last = compute_stage_memory(tied, training(), Parallelism(pipeline=2), 1)
        untied_stage = 2 * sum(tied.blocks[0][1:3])
        assert last.state.weights == 2 * (untied_stage + hidden * vocabulary)

    def test_experts_are_divided_by_expert_parallelism(self):
        experts = MixtureOfExperts(
            hidden_size=512, expert_count=8, experts_per_token=2, expert_inner_size=256
        )
        profile = llama(experts=experts)
        one = estimate_training_memory(profile, training(), Parallelism(data=8))[0].state.weights
        spread = estimate_training_memory(profile, training(), Parallelism(data=8, expert=8))[0].state.weights
        assert one - spread == pytest.approx(2 * profile.expert_parameters * 7 / 8)


class TestActivations:
    @given(
        heads=st.sampled_from([8, 16, 96]),
        head_size=st.sampled_from([64, 128]),
        sequence=st.sampled_from([512, 2048]),
    )
    def test_a_gpt_layer_is_equation_1_2_and_4_of_korthikanti(self, heads, head_size, sequence):
        hidden = heads * head_size
        terms = build_profile(Architecture(layers=(gpt_block(hidden, heads),))).activations
        scores = 5 * heads * sequence / hidden

        def per_token(tensor=1, *, sequence_parallel=False):
            return activation_bytes_per_token(
                terms,
                element_bytes=2,
                kernel=AttentionKernel.STANDARD,
                tensor=tensor,
                sequence_parallel=sequence_parallel,
            ).compute_bytes(sequence)

        assert per_token() == pytest.approx(hidden * (34 + scores))
        assert per_token(8) == pytest.approx(hidden * (10 + 24 / 8 + scores / 8))
        assert per_token(8, sequence_parallel=True) == pytest.approx(hidden * (34 + scores) / 8)

    def test_a_fused_kernel_keeps_row_sums_in_place_of_scores(self):
        terms = build_profile(Architecture(layers=(gpt_block(1024, 16),))).activations
        fused = activation_bytes_per_token(terms, element_bytes=2, kernel=AttentionKernel.FLASH)
        assert fused == (1024 * 34 + 4 * 16, 0)

    def test_a_gated_layer_saves_four_inner_vectors(self):
        profile = llama(hidden=512, inner=1408, heads=8, key_value_heads=2, layers=1)
        per_token = activation_bytes_per_token(
            profile.activations, element_bytes=2, kernel=AttentionKernel.FLASH
        ).linear
        norms, attention = 2 * 512, 512 + 2 * 512 + 2 * 128
        assert per_token == 2 * (norms + attention + 512 + 4 * 1408) + 4 * 8

    def test_full_recomputation_keeps_inputs_and_one_block(self):
        profile = build_profile(Architecture(layers=(gpt_block(1024, 16, 24),)))
        stage = estimate_training_memory(profile, training(recomputation=Recomputation.FULL), Parallelism())[
            0
        ]
        tokens = 2 * 1024
        others, one_block = 23 * 2 * 1024, 1024 * 34 + 4 * 16
        gradients = 2 * (2 * 1024 + 4 * 1024)  # of a block's input and output, and of what is widest inside
        held = stage.components["activations"]
        assert held == pytest.approx(tokens * (others + one_block + gradients))

    def test_logits_are_kept_for_the_loss(self):
        profile = llama(hidden=512, vocabulary=1000)
        behind = 2 * 512  # inputs of the last norm and of the head
        assert logits_bytes_per_token(profile, 2.0) == 1000 * (2 + 8) + behind * 2
        assert logits_bytes_per_token(profile, 4.0, tensor=2) == 1000 / 2 * 8 + behind * 4
        shared = logits_bytes_per_token(profile, 4.0, tensor=2, sequence_parallel=True)
        assert shared == 1000 / 2 * 8 + behind / 2 * 4

    @pytest.mark.parametrize(
        ("schedule", "virtual", "of_eight", "of_two"),
        [
            (PipelineSchedule.GPIPE, 1, 8, 2),
            (PipelineSchedule.ONE_F_ONE_B, 1, 4, 2),
            (PipelineSchedule.ZERO_BUBBLE, 1, 4, 2),
            (PipelineSchedule.INTERLEAVED, 3, 4 * (1 + 3 / 12), 2),
        ],
    )
    def test_micro_batches_of_the_first_of_four_stages(self, schedule, virtual, of_eight, of_two):
        layout = Parallelism(pipeline=4, pipeline_schedule=schedule, virtual_stages=virtual)
        assert layout.micro_batches_in_flight(8, 0) == of_eight
        assert layout.micro_batches_in_flight(2, 0) == of_two

    def test_chunks_in_flight_of_an_interleaved_schedule(self):
        """Megatron-LM warms up with 2 (p - 1 - stage) + (v - 1) p chunks and runs one more."""
        layout = Parallelism(pipeline=8, pipeline_schedule=PipelineSchedule.INTERLEAVED, virtual_stages=4)
        assert layout.micro_batches_in_flight(64, 0) == 8 * (1 + 7 / 32)
        assert layout.micro_batches_in_flight(64, 7) == (3 * 8 + 1) / 4
        assert layout.micro_batches_in_flight(2, 0) == 2


class TestServing:
    """Against exact figures of published models; KV figures in GiB at 8,192 tokens of context."""

    @pytest.mark.parametrize(
        ("layers", "key_value_heads", "gib"), [(32, 8, 1.0), (80, 8, 2.5)], ids=["Llama-3-8B", "Llama-3-70B"]
    )
    def test_cache_of_grouped_query_attention(self, layers, key_value_heads, gib):
        profile = llama(
            hidden=8192, inner=1, heads=64, key_value_heads=key_value_heads, layers=layers, vocabulary=1
        )
        assert key_value_bytes(profile, 8192, NumberFormat.BF16) == gib * GIB
        assert (
            estimate_inference_memory(profile, serving(concurrency=32), Parallelism()).kv_cache
            == 32 * gib * GIB
        )

    def test_cache_of_gpt2_xl(self):
        profile = build_profile(Architecture(layers=(gpt_block(1600, 25, 48),)))
        assert key_value_bytes(profile, 1024, NumberFormat.FP16) == 314_572_800

    def test_heads_are_replicated_beyond_their_number(self):
        profile = llama(heads=8, key_value_heads=2)
        whole = key_value_bytes(profile, 100, NumberFormat.BF16)
        assert key_value_bytes(profile, 100, NumberFormat.BF16, tensor=2) == whole / 2
        assert key_value_bytes(profile, 100, NumberFormat.BF16, tensor=8) == whole / 2

    def test_a_window_caps_the_cache(self):
        norm = Normalization(size=64)
        windowed = Attention(
            hidden_size=64, query_heads=4, key_value_heads=4, head_size=16, window_tokens=100
        )
        profile = build_profile(Architecture(layers=(LayerBlock(layers=(norm, windowed), count=3),)))
        assert key_value_bytes(profile, 1000, NumberFormat.BF16) == 3 * 100 * 2 * 64 * 2
        assert key_value_bytes(profile, 50, NumberFormat.BF16) == 3 * 50 * 2 * 64 * 2

    def test_blocks_of_the_cache_are_whole(self):
        assert serving(input_tokens=10.0, output_tokens=7.0).context_tokens == 32

    def test_quantised_weights_leave_table_and_head_wide(self):
        """A vLLM start-up log of Llama-3.1-70B FP8 on two devices reports 33.88 GiB each."""
        profile = llama(hidden=8192, inner=28672, heads=64, key_value_heads=8, layers=80, vocabulary=128256)
        held = inference_weight_bytes(profile, PLAIN_FORMATS[NumberFormat.FP8], Parallelism(tensor=2)).total
        assert held / GIB == pytest.approx(33.88, rel=0.005)

    def test_the_logits_of_many_requests_outgrow_an_iteration(self):
        """Llama-3.1-8B with a thousand requests: 6 bytes for each of 128,256 logits."""
        profile = llama(hidden=4096, inner=14336, heads=32, key_value_heads=8, layers=32, vocabulary=128256)
        memory = estimate_inference_memory(profile, serving(concurrency=1000), Parallelism())
        assert memory.workspace == 1000 * 128256 * 6
        one = estimate_inference_memory(profile, serving(), Parallelism())
        assert one.workspace == 8192 * (2 * 4096 + 2 * 14336) * 2
        most = find_largest_concurrency(one, serving(), 5e12)
        full = estimate_inference_memory(profile, serving(concurrency=most), Parallelism())
        over = estimate_inference_memory(profile, serving(concurrency=most + 1), Parallelism())
        assert full.total_bytes <= 5e12 < over.total_bytes

    @given(
        windows=st.lists(st.sampled_from([None, 64, 1000, 5000]), min_size=1, max_size=4),
        usable=st.floats(1e7, 2e9),
        concurrency=st.integers(1, 8),
    )
    def test_the_longest_context_fits_and_a_block_more_does_not(self, windows, usable, concurrency):
        blocks = [
            LayerBlock(
                layers=(
                    Attention(
                        hidden_size=512,
                        query_heads=8,
                        key_value_heads=8,
                        head_size=64,
                        window_tokens=window,
                    ),
                )
            )
            for window in windows
        ]
        profile = build_profile(Architecture(layers=tuple(blocks)))
        asked = serving(concurrency=concurrency)
        memory = estimate_inference_memory(profile, asked, Parallelism())
        longest = find_longest_context(profile, asked, Parallelism(), memory, usable)

        def fits(tokens):
            cache = concurrency * key_value_bytes(profile, tokens, NumberFormat.BF16)
            return memory.weights + memory.workspace + cache <= usable

        if longest is None:
            assert fits(10**12)
        else:
            assert longest % 16 == 0
            assert longest == 0 or fits(longest)
            assert not fits(longest + 16 + 1e-6)

    def test_largest_concurrency_fits_and_one_more_does_not(self):
        profile = llama()
        memory = estimate_inference_memory(profile, serving(), Parallelism())
        usable = 20e9
        most = find_largest_concurrency(memory, serving(), usable)
        assert most > 1
        full = estimate_inference_memory(profile, serving(concurrency=most), Parallelism())
        over = estimate_inference_memory(profile, serving(concurrency=most + 1), Parallelism())
        assert full.weights + full.kv_cache + memory.workspace <= usable
        assert over.weights + over.kv_cache + memory.workspace > usable
        tokens = count_cache_tokens(memory, usable, serving())
        assert tokens % 16 == 0
        assert 0 <= tokens - most * serving().context_tokens < serving().context_tokens


layouts = st.sampled_from(
    [
        Parallelism(),
        Parallelism(tensor=2),
        Parallelism(tensor=4, sequence_parallel=True),
        Parallelism(pipeline=4),
        Parallelism(data=8, sharding=Sharding.ZERO_1),
        Parallelism(data=8, sharding=Sharding.ZERO_3),
        Parallelism(tensor=2, pipeline=2, data=4, sharding=Sharding.ZERO_2),
        Parallelism(context=4),
    ]
)
workloads = st.builds(
    training,
    sequence_length=st.integers(1, 4096),
    micro_batch_size=st.integers(1, 64),
    micro_batches=st.integers(1, 32),
    kernel=st.sampled_from(AttentionKernel),
    recomputation=st.sampled_from(Recomputation),
    recipe=st.sampled_from(list(TRAINING_RECIPES.values())),
    optimizer=st.sampled_from(Optimizer),
)


def total(workload: TrainingWorkload, layout: Parallelism) -> float:
    return estimate_training_memory(llama(), workload, layout)[0].total_bytes


class TestProperties:
    @given(workloads, layouts)
    def test_more_of_anything_never_takes_less(self, workload, layout):
        base = total(workload, layout)
        for change in (
            {"micro_batch_size": workload.micro_batch_size + 1},
            {"sequence_length": workload.sequence_length + 1},
            {"micro_batches": workload.micro_batches + 1},
        ):
            assert total(workload._replace(**change), layout) >= base

    @given(workloads)
    def test_more_sharding_never_takes_more_state(self, workload):
        states = [
            estimate_training_memory(llama(), workload, Parallelism(data=8, sharding=sharding))[0].state.total
            for sharding in (Sharding.NONE, Sharding.ZERO_1, Sharding.ZERO_2, Sharding.ZERO_3)
        ]
        assert states == sorted(states, reverse=True)

    @given(workloads, layouts)
    def test_recomputation_never_raises_activations(self, workload, layout):
        kept, *recomputed = (
            total(workload._replace(recomputation=strategy, interval=2), layout) for strategy in Recomputation
        )
        assert max(recomputed) <= kept * (1 + 1e-12)

    @given(workloads, layouts, st.floats(1e7, 1e12))
    def test_the_largest_micro_batch_fits_and_the_next_does_not(self, workload, layout, usable):
        stages = estimate_training_memory(llama(), workload, layout)
        most = find_largest_micro_batch(stages, usable, context=layout.context)
        if most:
            assert total(workload._replace(micro_batch_size=most), layout) <= usable * (1 + 1e-9)
        assert total(workload._replace(micro_batch_size=most + 1), layout) >= usable * (1 - 1e-9)

    @given(workloads, layouts, st.floats(1e7, 1e12))
    def test_the_longest_sequence_fits_and_the_next_does_not(self, workload, layout, usable):
        stages = estimate_training_memory(llama(), workload, layout)
        longest = find_longest_sequence(
            stages, usable, context=layout.context, micro_batch_size=workload.micro_batch_size
        )
        if longest:
            assert total(workload._replace(sequence_length=longest), layout) <= usable * (1 + 1e-9)
        assert total(workload._replace(sequence_length=longest + 1), layout) >= usable * (1 - 1e-9)
