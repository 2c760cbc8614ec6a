import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import Attention, FeedForward, MixtureOfExperts
from service.planning.models.profile import build_profile, build_profile_from_count
from service.planning.operators import (
    TimeBound,
    compute_roofline,
    forward_flops_per_token,
    mean_context_tokens,
    ridge_point,
    step_flops,
)


def attention(**changes) -> Attention:
    shape = {"hidden_size": 1600, "query_heads": 25, "key_value_heads": 25, "head_size": 64}
    return Attention(**{**shape, **changes})


def work_of(layer: Attention):
    return build_profile(Architecture(layers=(layer,))).attention[0]


def test_gpt2_xl_layer_by_layer():
    """B = 32, S = 1,024, H = 1,600: the worked layer of the training chapter with its missing output
    projection, 2.2280e12 FLOPs forward; QKV 5.0332e11, scores 1.0737e11, feed-forward 1.3422e12."""
    tokens = 32 * 1024
    block = LayerBlock(layers=(attention(), FeedForward(hidden_size=1600, inner_size=6400)), count=48)
    profile = build_profile(Architecture(layers=(block,)))
    forward = forward_flops_per_token(profile, 1024) * tokens
    assert forward == 48 * 2_228_014_284_800
    assert step_flops(forward).model == 3 * forward


def test_the_rules_of_thumb_are_those_of_a_model_without_shapes():
    profile = build_profile_from_count(70_000_000_000)
    forward = forward_flops_per_token(profile, 4096)
    assert forward == 140e9
    assert step_flops(forward).model * 2e12 == 8.4e23


def test_experts_count_by_the_share_of_tokens_that_use_them():
    experts = MixtureOfExperts(hidden_size=64, expert_count=8, experts_per_token=2, expert_inner_size=128)
    profile = build_profile(Architecture(layers=(experts,)))
    router, used = 64 * 8, 2 * 3 * 64 * 128
    assert profile.matmul_flops_per_token == 2 * (router + used)


def test_recomputation_is_hardware_work_only():
    flops = step_flops(10.0, recomputed=9.0)
    assert (flops.model, flops.hardware) == (30.0, 39.0)


@pytest.mark.parametrize("length", [1, 7, 64, 1000])
@pytest.mark.parametrize("window", [None, 1, 16, 5000])
def test_without_the_masked_half(length, window):
    counted = sum(min(position, window or length) for position in range(1, length + 1)) / length
    mean = mean_context_tokens(work_of(attention(window_tokens=window)), length, skips_masked=True)
    # The continuous mean lies half a token below the counted one.
    assert mean == pytest.approx(counted, abs=0.5)


def test_model_flops_count_all_that_the_window_reaches():
    """12 L H Q T per token of training: Chowdhery et al. 2022, appendix B."""
    assert mean_context_tokens(work_of(attention()), 1000, skips_masked=False) == 1000
    assert mean_context_tokens(work_of(attention(causal=False)), 1000, skips_masked=True) == 1000
    assert mean_context_tokens(work_of(attention(window_tokens=100)), 1000, skips_masked=False) == 100
    profile = build_profile(Architecture(layers=(LayerBlock(layers=(attention(),), count=48),)))
    forward = forward_flops_per_token(profile, 1024)
    weights = 48 * 4 * 1600 * 1600
    assert step_flops(forward).model == 6 * weights + 12 * 48 * 25 * 64 * 1024


def test_attention_across_sequences_is_not_causal():
    work = work_of(attention(cross_size=512))
    assert not work.causal
    assert work.cross


positive = st.floats(1e-3, 1e18)


@given(positive, positive, positive, positive)
def test_roofline_and_ridge_agree(flops, moved, peak, bandwidth):
    times = compute_roofline(flops, moved, peak_flops_per_second=peak, bandwidth_bytes_per_second=bandwidth)
    intensity = flops / moved
    attainable = min(peak, bandwidth * intensity)
    assert times.seconds == pytest.approx(flops / attainable, rel=1e-9)
    ridge = ridge_point(peak, bandwidth)
    if intensity < ridge * (1 - 1e-9):
        assert times.bound is TimeBound.MEMORY
    if intensity > ridge * (1 + 1e-9):
        assert times.bound is TimeBound.COMPUTE


@given(positive, positive, positive, positive, st.floats(1, 10))
def test_a_better_device_is_never_slower(flops, moved, peak, bandwidth, factor):
    base = compute_roofline(flops, moved, peak_flops_per_second=peak, bandwidth_bytes_per_second=bandwidth)
    faster = compute_roofline(
        flops, moved, peak_flops_per_second=peak * factor, bandwidth_bytes_per_second=bandwidth
    )
    wider = compute_roofline(
        flops, moved, peak_flops_per_second=peak, bandwidth_bytes_per_second=bandwidth * factor
    )
    assert faster.seconds <= base.seconds
    assert wider.seconds <= base.seconds
