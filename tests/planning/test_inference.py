import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.inference import (
    build_decode_iteration,
    build_prefill_iteration,
    estimate_serving_time,
    touched_expert_share,
)
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelHead
from service.planning.models.layers import Attention, FeedForward, MixtureOfExperts, Normalization
from service.planning.models.profile import ModelProfile, build_profile
from service.planning.operators import TimeBound
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat
from service.planning.workload import InferenceWorkload

H100 = {"peak_flops_per_second": 989e12, "bandwidth_bytes_per_second": 3.35e12}


def decoder(experts: MixtureOfExperts | None = None) -> ModelProfile:
    """Llama-3.1-8B, or with experts in place of the feed-forward."""
    norm = Normalization(size=4096)
    attention = Attention(hidden_size=4096, query_heads=32, key_value_heads=8, head_size=128)
    feed_forward = experts or FeedForward(hidden_size=4096, inner_size=14_336, gated=True)
    return build_profile(
        Architecture(
            embeddings=ModelEmbeddings(size=4096, vocabulary_size=128_256),
            layers=(LayerBlock(layers=(norm, attention, norm, feed_forward), count=32), norm),
            heads=(ModelHead(kind="language_model", input_size=4096, output_size=128_256),),
        )
    )


def workload(**changes) -> InferenceWorkload:
    return InferenceWorkload(
        weight_format=NumberFormat.BF16,
        cache_format=NumberFormat.BF16,
        input_tokens=2000.0,
        output_tokens=500.0,
        concurrency=1,
        batched_tokens=8192,
        block_tokens=16,
        memory_fraction=0.9,
    )._replace(**changes)


def serve(asked, layout=Parallelism(), profile=None, shares=(1.0, 1.0)):  # noqa: B008
    return estimate_serving_time(
        profile or decoder(),
        asked,
        layout,
        **H100,
        utilization=shares[0],
        bandwidth_utilization=shares[1],
    )


def test_the_decoder_is_the_published_one():
    assert decoder().parameter_count == 8_030_261_248


def test_a_decode_step_streams_weights_and_cache():
    step = build_decode_iteration(decoder(), workload(), Parallelism(), 4)
    cache = 131_072 * (2000 + 250)
    table = 4096 * 128_256  # looked up, not read
    assert step.moved_bytes == 2 * (8_030_261_248 - table) + 4 * cache


def test_prefill_is_two_flops_per_weight_plus_attention():
    """The token table multiplies nothing, and only the last token passes the head."""
    prefill = build_prefill_iteration(decoder(), workload(), Parallelism())
    head = 4096 * 128_256
    matrices = 8_030_261_248 - 2 * head - 65 * 4096
    scores = 32 * 4 * 4096 * 2000 / 2
    assert prefill.flops == pytest.approx(2000 * (2 * matrices + scores) + 2 * head)


def test_one_stream_is_bound_by_memory_and_a_prompt_by_compute():
    time = serve(workload())
    assert [phase.bound for phase in time.phases] == [TimeBound.COMPUTE, TimeBound.MEMORY]
    weights_only = 2 * (8_030_261_248 - 4096 * 128_256) / 3.35e12
    assert weights_only < time.time_per_output_token_seconds.value < 1.05 * weights_only


def test_tensor_parallelism_divides_the_work():
    one, four = serve(workload()), serve(workload(), Parallelism(tensor=4))
    first, quarter = (time.time_to_first_token_seconds.value for time in (one, four))
    assert quarter == pytest.approx(first / 4, rel=0.01)


@given(
    st.integers(1, 100),
    st.sampled_from([Parallelism(), Parallelism(data=8), Parallelism(pipeline=4), Parallelism(tensor=2)]),
    st.sampled_from([0.0, 1.0, 500.0]),
)
def test_littles_law(concurrency, layout, outputs):
    time = serve(workload(concurrency=concurrency, output_tokens=outputs), layout)
    assert time.requests_per_second.value * time.request_seconds.value == pytest.approx(concurrency)
    lasting = time.time_to_first_token_seconds.value
    if outputs:
        lasting += (outputs - 1.0) * time.time_per_output_token_seconds.value
    assert time.request_seconds.value == pytest.approx(lasting)
    assert sum(phase.seconds.value for phase in time.phases) == pytest.approx(lasting)


def test_the_prefill_gives_the_first_token():
    time = serve(workload(input_tokens=1.0, output_tokens=1.0))
    assert time.request_seconds == time.time_to_first_token_seconds


def test_replicas_share_the_requests_and_idle_beyond_them():
    one = serve(workload(concurrency=8))
    two = serve(workload(concurrency=16), Parallelism(data=2))
    assert two.requests_per_second.value == pytest.approx(2 * one.requests_per_second.value)
    assert two.time_per_output_token_seconds == one.time_per_output_token_seconds
    alone = serve(workload(concurrency=1))
    assert serve(workload(concurrency=1), Parallelism(data=8)) == alone
    uneven = serve(workload(concurrency=9), Parallelism(data=8)).requests_per_second.value
    assert 8 * alone.requests_per_second.value < uneven < 9 * alone.requests_per_second.value


def test_experts_touched_by_a_batch():
    experts = MixtureOfExperts(
        hidden_size=4096, expert_count=8, experts_per_token=2, expert_inner_size=14_336
    )
    profile = decoder(experts)
    assert touched_expert_share(profile, 1) == pytest.approx(0.25)
    assert touched_expert_share(profile, 8) == pytest.approx(1 - 0.75**8)
    assert touched_expert_share(decoder(), 1) == 1.0
    moved = [
        build_decode_iteration(profile, workload(), Parallelism(), n).moved_bytes - n * 131_072 * 2250
        for n in (1, 8, 1000)
    ]
    table = 4096 * 128_256
    assert moved[0] == pytest.approx(2 * (profile.active_parameter_count - table), rel=1e-6)
    assert moved[2] == pytest.approx(2 * (profile.parameter_count - table), rel=1e-6)
    assert moved == sorted(moved)


def test_a_device_reads_its_own_experts_for_the_tokens_of_the_group():
    experts = MixtureOfExperts(
        hidden_size=4096, expert_count=8, experts_per_token=2, expert_inner_size=14_336
    )
    profile = decoder(experts)
    cache = 131_072 * 2250
    one = build_decode_iteration(profile, workload(), Parallelism(), 8).moved_bytes - 8 * cache
    shared = build_decode_iteration(profile, workload(), Parallelism(data=8, expert=8), 1).moved_bytes - cache
    expert_bytes = 2 * profile.expert_parameters * (1 - 0.75**8)
    assert one - shared == pytest.approx(expert_bytes * 7 / 8, rel=1e-9)


def test_an_encoder_answers_in_one_pass():
    attention = Attention(hidden_size=768, query_heads=12, key_value_heads=12, head_size=64, causal=False)
    block = LayerBlock(layers=(attention, FeedForward(hidden_size=768, inner_size=3072)), count=12)
    profile = build_profile(Architecture(layers=(block,)))
    assert not profile.generates
    asked = workload(output_tokens=0.0, input_tokens=128.0)
    alone = serve(asked, profile=profile)
    assert alone.time_per_output_token_seconds is None
    # 64 inputs of 128 tokens fill one pass of 8,192; a 65th waits for another.
    full, over = (serve(asked._replace(concurrency=n), profile=profile) for n in (64, 65))
    passing = build_prefill_iteration(profile, asked, Parallelism(), 64).flops / 989e12
    assert full.request_seconds.value == pytest.approx(passing)
    assert over.request_seconds.value == pytest.approx(passing * 65 / 64)


asked = st.builds(
    workload,
    concurrency=st.integers(1, 512),
    input_tokens=st.floats(1, 1e5),
    output_tokens=st.floats(1, 1e4),
)


@given(asked)
def test_latency_does_not_fall_with_load(given_workload):
    base = serve(given_workload)
    more = serve(given_workload._replace(concurrency=given_workload.concurrency + 1))
    assert more.time_to_first_token_seconds.value >= base.time_to_first_token_seconds.value * (1 - 1e-12)
    assert more.time_per_output_token_seconds.value >= base.time_per_output_token_seconds.value * (1 - 1e-12)


@given(asked)
def test_the_rate_is_bounded_by_the_roofline(given_workload):
    profile = decoder()
    time = serve(given_workload)
    tokens = given_workload.input_tokens + given_workload.output_tokens
    matrices = profile.matmul_flops_per_token - profile.head_flops_per_token
    assert time.requests_per_second.value * tokens * matrices <= 989e12 * (1 + 1e-9)


@given(asked, st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_a_better_share_is_never_slower(given_workload, utilization, bandwidth):
    full = serve(given_workload)
    part = serve(given_workload, shares=(utilization, bandwidth))
    assert part.request_seconds.value >= full.request_seconds.value


class TestFirstToken:
    """Behind its own prefill, and behind those of the others that come before it."""

    def test_alone_it_takes_one_prefill(self):
        time = serve(workload(concurrency=1))
        assert time.time_to_first_token_seconds == time.phases[0].seconds

    def test_among_nine_it_waits_for_two_of_the_other_eight(self):
        alone = serve(workload(concurrency=1)).time_to_first_token_seconds.value
        nine = serve(workload(concurrency=9)).time_to_first_token_seconds.value
        assert nine == pytest.approx(alone * (1 + 8 / 4))

    def test_a_single_token_waits_for_everyone(self):
        time = serve(workload(concurrency=9, output_tokens=1.0))
        assert time.time_to_first_token_seconds.value == pytest.approx(time.phases[0].seconds.value)
        alone = serve(workload(concurrency=1, output_tokens=1.0)).time_to_first_token_seconds.value
        assert time.time_to_first_token_seconds.value == pytest.approx(9 * alone)
