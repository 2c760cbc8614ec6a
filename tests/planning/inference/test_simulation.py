from itertools import pairwise

import numpy as np
import pytest

from service.planning.inference.load import (
    ArrivalProcess,
    Arrivals,
    BatchScheduler,
    LengthDistribution,
    ReplicaLoad,
    ReplicaServer,
    build_fixed_lengths,
    build_uniform_lengths,
)
from service.planning.inference.serving import estimate_served_load
from service.planning.inference.simulation import simulate_requests, simulate_served_load
from service.planning.inference.speculation import Speculation
from service.planning.inference.table import IterationTable
from tests.planning.inference.dense import Dense

MODEL = Dense()
SERVER = ReplicaServer(most_requests=256, batched_tokens=8192, cache_tokens=None)
APART = SERVER._replace(mixed_prefill=False)
CUT = SERVER._replace(batched_tokens=512, frontend_seconds=0.005)
STATIC = SERVER._replace(scheduler=BatchScheduler.STATIC)
SERVERS = {"mixed": SERVER, "apart": APART, "cut": CUT}


def spread(mean):
    """Lengths whose deviation is about as large as their mean."""
    return LengthDistribution(mean, (0.25 * mean, 0.5 * mean, mean, 3.0 * mean), (0.3, 0.3, 0.2125, 0.1875))


CHAT = ReplicaLoad(build_fixed_lengths(1024.0), build_fixed_lengths(256.0), 16.0)
SPREAD = ReplicaLoad(spread(1024.0), spread(256.0), 16.0)
LOADS = {"fixed": CHAT, "spread": SPREAD}


def at_rate(load, rate):
    return load._replace(concurrency=None, rate_per_second=rate)


@pytest.mark.parametrize("kind", LOADS)
@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("concurrency", [1.0, 4.0, 32.0, 128.0, 250.0])
def test_both_solvers_agree_on_a_closed_loop(kind, name, concurrency):
    load, server = LOADS[kind]._replace(concurrency=concurrency), SERVERS[name]
    closed_form = estimate_served_load(MODEL, server, load)
    followed = simulate_served_load(MODEL, server, load, seed=3, requests=4000)
    assert closed_form.requests_per_second == pytest.approx(followed.requests_per_second, rel=0.03)
    # Where prompts take every iteration, which requests decode beside them is known to 6%.
    assert closed_form.decoding == pytest.approx(followed.decoding, rel=0.06)
    first, each = "time_to_first_token_seconds", "time_per_output_token_seconds"
    assert getattr(closed_form, each).mean == pytest.approx(getattr(followed, each).mean, rel=0.05)
    assert getattr(closed_form, first).mean == pytest.approx(getattr(followed, first).mean, rel=0.25)
    assert getattr(closed_form, first).p50 == pytest.approx(getattr(followed, first).p50, rel=0.5)
    assert closed_form.prefill_share == pytest.approx(followed.prefill_share, abs=0.03)


@pytest.mark.parametrize("kind", LOADS)
@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.85])
def test_both_solvers_agree_on_an_open_loop(kind, name, share):
    server = SERVERS[name]
    most = estimate_served_load(MODEL, server, at_rate(LOADS[kind], 1.0)).most_requests_per_second
    load = at_rate(LOADS[kind], share * most)
    requests = 8000 if share > 0.8 else 4000  # near saturation queues take long to settle
    closed_form = estimate_served_load(MODEL, server, load)
    followed = simulate_served_load(MODEL, server, load, seed=3, requests=requests)
    assert not closed_form.saturated
    first, each = "time_to_first_token_seconds", "time_per_output_token_seconds"
    assert getattr(closed_form, each).mean == pytest.approx(getattr(followed, each).mean, rel=0.08)
    assert getattr(closed_form, first).mean == pytest.approx(getattr(followed, first).mean, rel=0.25)
    assert closed_form.decoding == pytest.approx(followed.decoding, rel=0.12)
    assert closed_form.utilization == pytest.approx(followed.utilization, abs=0.03)


@pytest.mark.parametrize("concurrency", [4.0, 32.0, 128.0])
@pytest.mark.parametrize(("inputs", "outputs"), [(1024.0, 1024.0), (8192.0, 1024.0), (1024.0, 128.0)])
@pytest.mark.parametrize("name", ["mixed", "apart"])
def test_both_solvers_agree_on_a_benchmark_that_begins_cold(name, inputs, outputs, concurrency):
    """Ten times as many requests as at a time, lengths between 80 and 100% of the longest."""
    load = ReplicaLoad(
        build_uniform_lengths(0.8 * inputs, inputs),
        build_uniform_lengths(0.8 * outputs, outputs),
        concurrency,
        burst_requests=10.0 * concurrency,
    )
    closed_form = estimate_served_load(MODEL, SERVERS[name], load)
    followed = simulate_served_load(MODEL, SERVERS[name], load, seed=3, requests=1)
    first, each = "time_to_first_token_seconds", "time_per_output_token_seconds"
    assert getattr(closed_form, first).mean == pytest.approx(getattr(followed, first).mean, rel=0.3)
    assert getattr(closed_form, each).mean == pytest.approx(getattr(followed, each).mean, rel=0.05)
    assert closed_form.requests_per_second == pytest.approx(followed.requests_per_second, rel=0.08)


@pytest.mark.parametrize("kind", LOADS)
@pytest.mark.parametrize("name", ["mixed", "apart"])
def test_both_solvers_agree_on_a_batch_job(kind, name):
    load = LOADS[kind]._replace(inputs=LOADS[kind].inputs, concurrency=1000.0, burst_requests=1000.0)
    closed_form = estimate_served_load(MODEL, SERVERS[name], load)
    followed = simulate_served_load(MODEL, SERVERS[name], load, seed=3, requests=1)
    first = "time_to_first_token_seconds"
    assert getattr(closed_form, first).mean == pytest.approx(getattr(followed, first).mean, rel=0.2)
    assert closed_form.requests_per_second == pytest.approx(followed.requests_per_second, rel=0.15)


@pytest.mark.parametrize("load", [CHAT, SPREAD])
def test_both_solvers_agree_on_static_batches(load):
    closed_form = estimate_served_load(MODEL, STATIC, load)
    followed = simulate_served_load(MODEL, STATIC, load, seed=3, requests=4000)
    assert closed_form.requests_per_second == pytest.approx(followed.requests_per_second, rel=0.05)
    assert closed_form.request_seconds.mean == pytest.approx(followed.request_seconds.mean, rel=0.05)


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("load", [CHAT, SPREAD, at_rate(SPREAD, 10.0)])
def test_requests_in_all_are_rate_times_latency(name, load):
    done = simulate_requests(MODEL, SERVERS[name], load, seed=5, requests=8_000)
    counted = slice(done.warm, done.counted)
    begin, end = done.sent_seconds[done.warm], done.sent_seconds[done.counted - 1]
    stay = np.clip(np.minimum(done.ended_seconds, end) - np.maximum(done.sent_seconds, begin), 0.0, None)
    present = np.nansum(stay) / (end - begin)
    rate = (done.counted - done.warm) / (end - begin)
    latency = np.mean((done.ended_seconds - done.sent_seconds)[counted])
    assert rate * latency == pytest.approx(present, rel=0.02)
    if load.concurrency:
        assert present == pytest.approx(load.concurrency, rel=0.01)


@pytest.mark.parametrize(
    "server",
    [SERVER, APART, CUT, STATIC, SERVER._replace(cache_tokens=12_000.0), CUT._replace(chunked_prefill=False)],
)
@pytest.mark.parametrize("requests", [1, 7, 400])
def test_requests_and_tokens_are_neither_lost_nor_made(server, requests):
    load = SPREAD._replace(concurrency=40.0, burst_requests=float(requests))
    done = simulate_requests(MODEL, server, load, seed=1, requests=requests)
    assert len(done.sent_seconds) == requests
    assert not np.isnan(done.ended_seconds).any()
    assert (done.first_token_seconds > done.sent_seconds).all()
    assert (done.ended_seconds >= done.first_token_seconds).all()
    assert done.computed_tokens - done.repeated_tokens == pytest.approx(done.prompt_tokens.sum())
    # A request that is preempted has one of its tokens from the prefill that repeats its context.
    assert done.decoded_tokens + done.preemptions == pytest.approx(done.passes.sum())
    assert done.busy_seconds == pytest.approx(done.seconds, rel=0.05)


def test_a_full_cache_preempts_and_a_reservation_does_not():
    load = CHAT._replace(
        inputs=build_fixed_lengths(128.0), outputs=build_fixed_lengths(1024.0), concurrency=40.0
    )
    greedy = SERVER._replace(cache_tokens=12_000.0)
    preempted = simulate_served_load(MODEL, greedy, load, seed=1, requests=500)
    reserved = simulate_served_load(MODEL, greedy._replace(reserved_output=1.0), load, seed=1, requests=500)
    assert preempted.preemptions_per_request > 0.1
    assert reserved.preemptions_per_request == 0.0
    assert reserved.decoding == pytest.approx(12_000.0 / 1160.0, rel=0.1)


@pytest.mark.parametrize(
    ("inputs", "outputs"), [(128.0, 1024.0), (1024.0, 256.0), (1024.0, 1024.0), (1000.0, 8000.0)]
)
@pytest.mark.parametrize("waiting", [1.5, 4.0])
def test_both_solvers_agree_on_a_cache_that_is_too_small(inputs, outputs, waiting):
    held = 40.0
    server = SERVER._replace(most_requests=1024, cache_tokens=held * (inputs + outputs / 2.0))
    load = ReplicaLoad(build_fixed_lengths(inputs), build_fixed_lengths(outputs), waiting * held)
    closed_form = estimate_served_load(MODEL, server, load)
    followed = simulate_served_load(MODEL, server, load, seed=1, requests=600)
    assert closed_form.saturated
    assert closed_form.requests_per_second == pytest.approx(followed.requests_per_second, rel=0.08)
    assert closed_form.decoding == pytest.approx(followed.decoding, rel=0.08)
    assert closed_form.preemptions_per_request == pytest.approx(followed.preemptions_per_request, rel=0.3)
    each, whole = "time_per_output_token_seconds", "request_seconds"
    assert getattr(closed_form, each).mean == pytest.approx(getattr(followed, each).mean, rel=0.15)
    assert getattr(closed_form, whole).mean == pytest.approx(getattr(followed, whole).mean, rel=0.1)


@pytest.mark.parametrize("load", [SPREAD, at_rate(SPREAD, 10.0), SPREAD._replace(burst_requests=300.0)])
def test_a_seed_decides_everything(load):
    one, same, other = (simulate_served_load(MODEL, SERVER, load, seed=s, requests=300) for s in (1, 1, 2))
    assert one[:13] == same[:13]
    assert one.request_seconds != other.request_seconds


@pytest.mark.parametrize("kind", LOADS)
def test_latency_does_not_fall_with_load_in_the_simulation(kind):
    answers = [
        simulate_served_load(MODEL, SERVER, LOADS[kind]._replace(concurrency=c), seed=1, requests=4000)
        for c in (1.0, 8.0, 32.0, 128.0, 256.0, 500.0)
    ]
    for before, after in pairwise(answers):
        assert after.request_seconds.mean > before.request_seconds.mean
        assert after.requests_per_second > 0.98 * before.requests_per_second


def test_a_trace_is_followed_as_it_is():
    trace = Arrivals(ArrivalProcess.TRACE, (100.0, 100.0, 130.0))
    load = CHAT._replace(concurrency=None, rate_per_second=3 / 45.0, arrivals=trace)
    done = simulate_requests(MODEL, SERVER, load, seed=1, requests=3)
    assert done.sent_seconds.tolist() == [0.0, 0.0, 30.0]
    alone = done.ended_seconds - done.sent_seconds
    assert alone[0] == alone[1] > alone[2]


def test_even_arrivals_wait_less_than_random_ones():
    random = at_rate(CHAT, 15.0)
    even = random._replace(arrivals=Arrivals(ArrivalProcess.UNIFORM))
    firsts = [
        solver(MODEL, APART, load, **how).time_to_first_token_seconds.mean
        for solver, how in ((simulate_served_load, {"seed": 1, "requests": 4000}),)
        for load in (even, random)
    ]
    assert firsts[0] < firsts[1]


def test_speculation_yields_its_tokens_in_the_simulation():
    guessing = SERVER._replace(speculation=Speculation(4, 0.8, pass_share=0.02))
    for concurrency in (1.0, 32.0):
        load = CHAT._replace(concurrency=concurrency)
        closed_form = estimate_served_load(MODEL, guessing, load)
        followed = simulate_served_load(MODEL, guessing, load, seed=1, requests=2000)
        assert closed_form.requests_per_second == pytest.approx(followed.requests_per_second, rel=0.03)


def test_a_pipeline_serves_a_group_for_each_of_its_stages():
    four = simulate_served_load(
        MODEL, SERVER._replace(pipeline=4), CHAT._replace(concurrency=64.0), seed=1, requests=4000
    )
    expected = estimate_served_load(MODEL, SERVER._replace(pipeline=4), CHAT._replace(concurrency=64.0))
    assert four.requests_per_second == pytest.approx(expected.requests_per_second, rel=0.03)


@pytest.mark.parametrize("decoding", [1, 7, 100, 300])
@pytest.mark.parametrize("tokens", [0.0, 64.0, 777.0, 8192.0])
def test_a_table_says_what_the_model_says(decoding, tokens):
    table = IterationTable(MODEL, CHAT, 8192.0)
    base, slope = table.compute_decode_seconds(decoding)
    cached = 900.0 * decoding
    seconds = base + slope * cached + table.compute_prompt_seconds(decoding, tokens, tokens * 700.0)
    assert seconds == pytest.approx(MODEL.seconds(decoding, cached, tokens, 700.0, 1.0), rel=0.02)


def test_a_length_of_the_run_is_a_time_or_a_number():
    with pytest.raises(ValueError, match="either"):
        simulate_served_load(MODEL, SERVER, CHAT, seed=1)
