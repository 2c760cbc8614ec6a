from itertools import pairwise

import pytest

from service.planning.inference.load import (
    ArrivalProcess,
    Arrivals,
    BatchScheduler,
    LatencyLimits,
    LengthDistribution,
    ReplicaLoad,
    ReplicaServer,
    build_fixed_lengths,
    build_uniform_lengths,
)
from service.planning.inference.serving import (
    estimate_closed_loops,
    estimate_served_load,
    estimate_similar_loads,
)
from service.planning.inference.speculation import Speculation, tokens_per_pass
from tests.planning.inference.dense import Dense

MODEL = Dense()
SERVER = ReplicaServer(most_requests=256, batched_tokens=8192, cache_tokens=400_000.0)


def spread(mean):
    """Lengths whose deviation is about as large as their mean."""
    return LengthDistribution(mean, (0.25 * mean, 0.5 * mean, mean, 3.0 * mean), (0.3, 0.3, 0.2125, 0.1875))


CHAT = ReplicaLoad(build_fixed_lengths(1024.0), build_fixed_lengths(256.0), 16.0)
SPREAD = CHAT._replace(inputs=spread(1024.0), outputs=spread(256.0))
STATIC = SERVER._replace(scheduler=BatchScheduler.STATIC)
MANY = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 200.0, 256.0, 300.0, 512.0, 2000.0]
RATES = [0.01, 0.1, 1.0, 4.0, 8.0, 12.0, 15.0, 17.0, 18.5, 19.0, 19.3, 19.6, 21.0, 30.0, 100.0]


def at_rate(rate, load=CHAT):
    return load._replace(concurrency=None, rate_per_second=rate)


@pytest.mark.parametrize("server", [SERVER, SERVER._replace(mixed_prefill=False), STATIC])
@pytest.mark.parametrize("load", [CHAT, SPREAD])
@pytest.mark.parametrize("concurrency", MANY)
def test_requests_in_a_closed_loop_are_rate_times_latency(server, load, concurrency):
    answer = estimate_served_load(MODEL, server, load._replace(concurrency=concurrency))
    assert answer.requests_per_second * answer.request_seconds.mean == pytest.approx(concurrency, rel=0.02)


EACH_KIND = pytest.mark.parametrize(
    "server",
    [
        SERVER,
        SERVER._replace(mixed_prefill=False, frontend_seconds=0.01),
        SERVER._replace(batched_tokens=512),
        SERVER._replace(pipeline=4),
        SERVER._replace(ranks=4),
        SERVER._replace(speculation=Speculation(3, 0.7, None, 0.02)),
        STATIC,
    ],
    ids=["mixed", "apart", "chunked", "pipeline", "ranks", "speculation", "static"],
)
EACH_LENGTH = pytest.mark.parametrize("load", [CHAT, SPREAD, CHAT._replace(outputs=build_fixed_lengths(1.0))])


def assert_same(one, alone):
    assert one.requests_per_second == pytest.approx(alone.requests_per_second, rel=1e-12)
    assert one.time_to_first_token_seconds == pytest.approx(alone.time_to_first_token_seconds, rel=1e-12)
    if alone.time_per_output_token_seconds is not None:
        each = alone.time_per_output_token_seconds
        assert one.time_per_output_token_seconds == pytest.approx(each, rel=1e-12)
    assert one.iteration == pytest.approx(alone.iteration, rel=1e-12)
    assert one.saturated is alone.saturated


@EACH_KIND
@EACH_LENGTH
def test_closed_loops_together_are_each_alone(server, load):
    found = estimate_closed_loops(MODEL, server, load, MANY)
    for requests, one in zip(MANY, found, strict=True):
        assert_same(one, estimate_served_load(MODEL, server, load._replace(concurrency=requests)))


@EACH_KIND
@EACH_LENGTH
def test_open_loops_together_are_each_alone(server, load):
    loads = [at_rate(rate, load) for rate in RATES]
    for each, one in zip(loads, estimate_similar_loads(MODEL, server, loads), strict=True):
        assert_same(one, estimate_served_load(MODEL, server, each))


def test_bursts_together_are_each_alone():
    loads = [CHAT._replace(concurrency=c, burst_requests=1000.0 / c) for c in (1.0, 16.0, 64.0)]
    for each, one in zip(loads, estimate_similar_loads(MODEL, SERVER, loads), strict=True):
        assert_same(one, estimate_served_load(MODEL, SERVER, each))


def test_ranks_with_equal_requests_do_not_wait_for_each_others_prompts():
    """Equal requests end and begin together on all ranks; where they are unlike, all wait for each prompt."""
    ranks = SERVER._replace(ranks=8, batched_tokens=8 * 8192)
    long = CHAT._replace(inputs=build_fixed_lengths(4096.0), concurrency=64.0)
    near = LengthDistribution(256.0, (128.0, 384.0), (0.5, 0.5))
    equal, unlike, alone = (
        estimate_served_load(MODEL, server, load).requests_per_second
        for server, load in ((ranks, long), (ranks, long._replace(outputs=near)), (SERVER, long))
    )
    assert equal > 1.2 * unlike
    assert equal <= 1.02 * alone
    few = long._replace(concurrency=2.0)
    two, apart = (
        estimate_served_load(MODEL, ranks, load).requests_per_second
        for load in (few, few._replace(outputs=near))
    )
    assert apart <= two < 1.2 * apart


@pytest.mark.parametrize("rate", RATES)
def test_requests_that_decode_are_rate_times_time_between_first_and_last_token(rate):
    answer = estimate_served_load(MODEL, SERVER, at_rate(rate))
    assert answer.time_per_output_token_seconds is not None
    decoding = 255.0 * answer.time_per_output_token_seconds.mean
    assert answer.decoding == pytest.approx(answer.requests_per_second * decoding, rel=0.02)


def test_one_request_takes_its_prefill_and_its_steps():
    answer = estimate_served_load(MODEL, SERVER, CHAT._replace(concurrency=1.0))
    first = MODEL.seconds(0.0, 0.0, 1024.0, 512.0, 1.0)
    steps = sum(MODEL.seconds(1.0, 1024.0 + j, 0.0, 0.0, 0.0) for j in range(1, 256))
    assert answer.time_to_first_token_seconds.mean == pytest.approx(first, rel=1e-6)
    assert answer.request_seconds.mean == pytest.approx(first + steps, rel=1e-3)
    assert answer.requests_per_second == pytest.approx(1.0 / (first + steps), rel=0.01)


@pytest.mark.parametrize("server", [SERVER, SERVER._replace(mixed_prefill=False), STATIC])
@pytest.mark.parametrize("load", [CHAT, SPREAD])
@pytest.mark.parametrize("closed", [True, False])
def test_latency_does_not_fall_with_load(server, load, closed):
    asked = [load._replace(concurrency=c) for c in MANY] if closed else [at_rate(x, load) for x in RATES]
    answers = [estimate_served_load(MODEL, server, each) for each in asked]
    for before, after in pairwise(answers):
        assert after.request_seconds.mean >= before.request_seconds.mean * 0.999
        assert after.time_to_first_token_seconds.mean >= before.time_to_first_token_seconds.mean * 0.999
        assert after.requests_per_second >= before.requests_per_second * 0.995


def test_saturation_is_a_verdict_and_latencies_stay_finite():
    most = estimate_served_load(MODEL, SERVER, at_rate(1.0)).most_requests_per_second
    below, above = (
        estimate_served_load(MODEL, SERVER, at_rate(0.9 * most)),
        estimate_served_load(MODEL, SERVER, at_rate(1.1 * most)),
    )
    assert (below.saturated, above.saturated) == (False, True)
    assert above.requests_per_second == pytest.approx(most)
    # A tenth more than can be served waits, on average half of the hour that is looked at.
    assert above.time_to_first_token_seconds.mean == pytest.approx(1800.0 * (1.0 - 1.0 / 1.1), rel=0.1)


def test_what_finds_no_place_waits():
    answer = estimate_served_load(MODEL, SERVER._replace(most_requests=32), CHAT._replace(concurrency=64.0))
    assert answer.saturated
    assert answer.waiting == pytest.approx(32.0, rel=0.02)
    whole = answer.request_seconds.mean
    assert answer.time_to_first_token_seconds.mean == pytest.approx(whole / 2.0, rel=0.1)


def test_the_cache_limits_the_batch():
    answer = estimate_served_load(
        MODEL, SERVER._replace(cache_tokens=20_000.0), CHAT._replace(concurrency=64.0)
    )
    assert answer.decoding == pytest.approx(20_000.0 / (1024.0 + 128.0), rel=0.1)


def test_an_engine_that_never_evicts_holds_room_for_whole_requests():
    greedy = SERVER._replace(cache_tokens=20_000.0)
    load = CHAT._replace(concurrency=64.0)
    cautious = estimate_served_load(MODEL, greedy._replace(reserved_output=1.0), load)
    assert cautious.decoding < estimate_served_load(MODEL, greedy, load).decoding


def test_a_prefix_hit_saves_the_prefill():
    hit = estimate_served_load(MODEL, SERVER, CHAT._replace(prefix_hit_rate=0.9))
    assert (
        hit.time_to_first_token_seconds.mean
        < estimate_served_load(MODEL, SERVER, CHAT).time_to_first_token_seconds.mean / 1.5
    )


def test_prompts_beyond_the_budget_are_cut():
    whole, cut = (
        estimate_served_load(
            MODEL, SERVER._replace(batched_tokens=tokens), CHAT
        ).time_to_first_token_seconds.mean
        for tokens in (8192, 256)
    )
    assert cut > whole


def test_throughput_stays_below_the_roofline():
    for concurrency in MANY:
        answer = estimate_served_load(MODEL, SERVER, CHAT._replace(concurrency=concurrency))
        flops = MODEL.flops_per_token * (1024.0 + 255.0)
        assert answer.requests_per_second * flops < MODEL.flops_per_second
        assert answer.requests_per_second <= answer.most_requests_per_second * 1.001


def test_static_batches_wait_for_the_longest():
    continuous, batches = (estimate_served_load(MODEL, s, SPREAD) for s in (SERVER, STATIC))
    assert batches.requests_per_second < continuous.requests_per_second
    alike = estimate_served_load(MODEL, STATIC, CHAT)
    assert alike.requests_per_second > 0.9 * estimate_served_load(MODEL, SERVER, CHAT).requests_per_second


def test_percentiles_rise_and_goodput_follows_the_levels():
    answer = estimate_served_load(MODEL, SERVER, at_rate(15.0, SPREAD))
    for measured in (
        answer.time_to_first_token_seconds,
        answer.time_per_output_token_seconds,
        answer.request_seconds,
    ):
        assert measured.p50 <= measured.p95 <= measured.p99
    level = answer.time_to_first_token_seconds.p95
    assert answer.compute_goodput(LatencyLimits(time_to_first_token_seconds=level)) == pytest.approx(
        0.95, abs=0.01
    )
    assert answer.compute_goodput(LatencyLimits()) == 1.0
    assert answer.compute_goodput(LatencyLimits(request_seconds=0.0)) == 0.0


def test_speculation_yields_its_tokens_in_fewer_passes():
    # Leviathan et al. 2023: a = 0.8, k = 4 yields 3.3616 tokens.
    assert tokens_per_pass(0.8, 4) == pytest.approx(3.3616)
    assert tokens_per_pass(1.0, 3) == 4.0
    load = CHAT._replace(concurrency=1.0)
    plain = estimate_served_load(MODEL, SERVER, load)
    guessing = estimate_served_load(MODEL, SERVER._replace(speculation=Speculation(4, 0.8)), load)
    assert plain.time_per_output_token_seconds is not None
    assert guessing.time_per_output_token_seconds is not None
    faster = plain.time_per_output_token_seconds.mean / guessing.time_per_output_token_seconds.mean
    assert faster == pytest.approx(3.3616, rel=0.02)
    draft = Dense(weight_bytes=2e9, flops_per_token=2e9, cache_bytes_per_token=0.0)
    drafted = estimate_served_load(MODEL, SERVER._replace(speculation=Speculation(4, 0.8, draft)), load)
    assert drafted.time_per_output_token_seconds.mean > guessing.time_per_output_token_seconds.mean


def test_a_pipeline_serves_a_group_for_each_of_its_stages():
    four = estimate_served_load(MODEL, SERVER._replace(pipeline=4), CHAT._replace(concurrency=64.0))
    one = estimate_served_load(
        MODEL, SERVER._replace(most_requests=64, cache_tokens=100_000.0), CHAT._replace(concurrency=16.0)
    )
    assert four.requests_per_second == pytest.approx(4.0 * one.requests_per_second)
    assert four.request_seconds == one.request_seconds


def test_the_longest_of_many_is_the_longest():
    lengths = LengthDistribution(12.5, (10.0, 20.0), (0.75, 0.25))
    assert lengths.compute_mean_longest(1.0) == pytest.approx(lengths.mean)
    assert lengths.compute_mean_longest(2.0) == pytest.approx(20.0 - 10.0 * 0.75**2)


def test_lengths_between_two_are_all_alike():
    lengths = build_uniform_lengths(80.0, 120.0)
    assert lengths.mean == 100.0
    assert lengths.variation == pytest.approx(40.0**2 / 12.0 / 100.0**2, rel=0.05)
    assert build_uniform_lengths(7.0, 7.0) == build_fixed_lengths(7.0)


def test_a_trace_has_the_rate_of_its_times():
    trace = Arrivals(ArrivalProcess.TRACE, (0.0, 1.0, 2.0, 3.0))
    assert (trace.rate_per_second, trace.variation) == (1.0, 0.0)


def test_a_load_is_closed_or_open():
    with pytest.raises(ValueError, match="either"):
        estimate_served_load(MODEL, SERVER, CHAT._replace(rate_per_second=1.0))
