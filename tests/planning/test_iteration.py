"""One iteration of a serving engine: bytes and FLOPs by hand, limits, and properties on any machine."""

from dataclasses import replace

import numpy as np
import pytest

from service.evidence.service import load_reference_curves
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.hardware.calibration.links import IDEAL_LINKS
from service.planning.hardware.calibration.serving import ServingCalibration
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.collectives import (
    ClusterFabric,
    Collective,
    CollectiveAlgorithm,
    LevelRate,
    build_fabric,
    collective_seconds,
)
from service.planning.hardware.links import Link, LinkKind, Torus
from service.planning.hardware.storage import NAMED_FORMATS
from service.planning.inference import IterationBatch, build_iteration_model
from service.planning.inference.exchange import PassMessage, list_collective_terms
from service.planning.parallelism import DeviceGroup, Parallelism
from service.planning.precision import NumberFormat
from service.planning.software.engines import EngineName, resolve_rules
from service.planning.workload import InferenceWorkload

CATALOG = build_shipped_snapshot()
CALIBRATION = load_reference_curves().calibration
ACCELERATOR = CATALOG.accelerators["h100-sxm"].accelerator
WORKLOAD = InferenceWorkload(
    weight_format=NumberFormat.BF16,
    cache_format=NumberFormat.BF16,
    input_tokens=1024,
    output_tokens=256,
    concurrency=1,
    batched_tokens=8192,
    block_tokens=16,
    memory_fraction=0.9,
    rules=resolve_rules(EngineName.VLLM, None),
)
FP8 = WORKLOAD._replace(weight_format=NumberFormat.FP8)
ONE = Parallelism()
LAYOUTS = {
    "one": ("llama-3.1-8b", WORKLOAD, Parallelism()),
    "tensor": ("llama-3.1-70b", WORKLOAD, Parallelism(tensor=8)),
    "pipeline": ("llama-3.1-70b", WORKLOAD, Parallelism(tensor=2, pipeline=4)),
    "experts": ("gpt-oss-120b", WORKLOAD, Parallelism(tensor=4, expert_tensor=1)),
    "ranks": ("deepseek-v3", FP8, Parallelism(data=8, expert=8)),
    "cut": ("deepseek-v3", FP8, Parallelism(data=8, expert=8, expert_tensor=8)),
    "states": ("nemotron-nano-9b-v2", WORKLOAD, Parallelism(tensor=2)),
    "sparse": ("deepseek-v3.2", FP8, Parallelism(tensor=8)),
}
BATCHES = {
    "one": IterationBatch(1, 1000),
    "some": IterationBatch(32, 32 * 3000),
    "mixed": IterationBatch(16, 16 * 2000, 2048, 1024, 1),
    "prompt": IterationBatch(0, 0, 4096, 2048, 2),
    "chunk": IterationBatch(0, 0, 4096, 9000, 0),
    "proposed": IterationBatch(8, 8 * 900, positions=4),
}


def cluster(devices: int = 8, **changes: object) -> Cluster:
    accelerator = replace(ACCELERATOR, **changes)
    return Cluster(
        accelerator,
        devices,
        8,
        None,
        Link(LinkKind.NVLINK, 450e9, joined=8, in_network=True),
        Link(LinkKind.INFINIBAND, 50e9),
    )


def model(name="llama-3.1-8b", workload=WORKLOAD, layout=ONE, *, on=None, calibration=CALIBRATION):
    found = build_iteration_model(
        CATALOG.models[name].profile, workload, layout, cluster=on or cluster(), calibration=calibration
    )
    assert found is not None
    return found


def work(name, batch, layout=ONE, workload=WORKLOAD):
    return model(name, workload, layout).compute_time(batch)


def test_a_decode_step_of_llama_3_1_8b_moves_its_weights_and_its_cache():
    """Weights but the table, 8,030,261,248 - 128,256 x 4,096 parameters, and 131,072 bytes a cached token."""
    one, two = (work("llama-3.1-8b", IterationBatch(1, tokens)) for tokens in (1000, 2000))
    assert two.moved_bytes - one.moved_bytes == pytest.approx(1000 * 131_072, rel=1e-9)
    activations = one.moved_bytes - 1001 * 131_072 - 2 * 7_504_924_672
    assert 0 < activations < 0.002 * one.moved_bytes


def test_flops_of_a_decode_step_of_llama_3_1_8b():
    """2 x 7,504,658,432 multiplied weights, and 32 layers x 4 x 32 heads x 128 for each token of context."""
    one = work("llama-3.1-8b", IterationBatch(1, 1000))
    assert one.flops == pytest.approx(2 * 7_504_658_432 + 1000 * 32 * 4 * 32 * 128, rel=1e-3)


def test_a_device_of_eight_moves_an_eighth_of_llama_3_1_70b():
    """70,553,706,496 - 128,256 x 8,192 parameters; a cache of 327,680 bytes a token, one of 8 heads each."""
    layout = Parallelism(tensor=8)
    one, two = (work("llama-3.1-70b", IterationBatch(1, tokens), layout) for tokens in (1000, 2000))
    assert two.moved_bytes - one.moved_bytes == pytest.approx(1000 * 327_680 / 8, rel=1e-9)
    weights = 2 * (70_553_706_496 - 128_256 * 8192) / 8
    assert one.moved_bytes == pytest.approx(weights, rel=0.005)


def test_the_latent_cache_of_deepseek_v3_lies_whole_on_every_device():
    """61 layers x (512 + 64) elements of 2 bytes a token, whatever the tensor-parallel group."""
    for tensor in (1, 8):
        layout = Parallelism(tensor=tensor)
        one, two = (work("deepseek-v3", IterationBatch(1, tokens), layout, FP8) for tokens in (1000, 2000))
        assert two.moved_bytes - one.moved_bytes == pytest.approx(1000 * 61 * 576 * 2, rel=1e-6)


def test_experts_are_read_as_far_as_tokens_choose_them():
    """One token reads 8 of 256 experts of 3 x 7,168 x 2,048 bytes in 58 layers; many tokens read all."""
    expert = 3 * 7168 * 2048
    found = model("deepseek-v3", FP8)
    one, many = (found.compute_time(IterationBatch(tokens, tokens)) for tokens in (1, 4000))
    assert many.moved_bytes - one.moved_bytes > 58 * 248 * expert * 0.999
    assert one.moved_bytes < 40e9


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("case", LAYOUTS.values(), ids=LAYOUTS)
def test_parts_add_up_and_are_no_less_than_nothing(case, batch):
    found = model(*case).compute_time(batch)
    assert sum(found[:7]) == pytest.approx(found.seconds, rel=1e-9)
    assert all(figure >= 0.0 for figure in found)
    assert found.compute_bound_seconds <= found.seconds


@pytest.mark.parametrize("case", LAYOUTS.values(), ids=LAYOUTS)
def test_many_batches_at_once_take_what_each_takes(case):
    found = model(*case)
    batches = [BATCHES["one"], BATCHES["some"], BATCHES["mixed"]]
    together = found.compute_time(IterationBatch(*np.array(batches, dtype=np.float64).T)).seconds
    assert together == pytest.approx([found.compute_time(batch).seconds for batch in batches], rel=1e-9)


@pytest.mark.parametrize("case", LAYOUTS.values(), ids=LAYOUTS)
def test_more_requests_or_longer_contexts_never_shorten_an_iteration(case):
    found = model(*case)
    requests = np.arange(1.0, 600.0)
    assert np.all(np.diff(found.compute_time(IterationBatch(requests, requests * 2000)).seconds) >= -1e-12)
    contexts = np.arange(100.0, 100_000.0, 997.0)
    assert np.all(np.diff(found.compute_time(IterationBatch(16, 16 * contexts)).seconds) >= -1e-12)


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("case", LAYOUTS.values(), ids=LAYOUTS)
def test_a_faster_device_is_never_slower(case, batch):
    slower = model(*case).compute_time(batch).seconds
    rates = {name: 1.5 * rate for name, rate in ACCELERATOR.peak_flops_per_second.items()}
    wider = 1.5 * ACCELERATOR.bandwidth_bytes_per_second
    assert model(*case, on=cluster(peak_flops_per_second=rates)).compute_time(batch).seconds <= slower
    assert model(*case, on=cluster(bandwidth_bytes_per_second=wider)).compute_time(batch).seconds < slower


def test_links_without_latency_and_with_all_the_bandwidth_leave_what_a_device_takes():
    name, workload, layout = LAYOUTS["tensor"]
    serving = CALIBRATION.serving
    instant = {
        key: share._replace(value=0.0) if key[0] == "collective_seconds" else share
        for key, share in serving.constants.items()
    }
    calibration = replace(
        CALIBRATION,
        serving=replace(serving, constants=instant, _known={}),
        links=CALIBRATION.links._replace(value=IDEAL_LINKS),
    )
    link = Link(LinkKind.NVLINK, 1e30, latency_seconds=0.0, joined=8)
    ideal = model(
        name, workload, layout, on=cluster()._replace(intra_node_link=link), calibration=calibration
    )
    found, real = (each.compute_time(BATCHES["some"]) for each in (ideal, model(name, workload, layout)))
    assert found.collectives == pytest.approx(0.0, abs=1e-12)
    assert found.seconds == pytest.approx(real.seconds - real.collectives, rel=1e-9)


def test_without_graphs_the_host_may_be_what_is_waited_for():
    replayed, launched = (
        work("llama-3.1-8b", IterationBatch(1, 1000), workload=WORKLOAD._replace(cuda_graphs=graphs))
        for graphs in (True, False)
    )
    assert launched.launch >= replayed.launch
    assert launched[:5] == replayed[:5]


def test_graphs_are_replayed_up_to_the_requests_of_a_rank():
    """1,024 requests of 8 ranks are 128 each, for which a graph is captured: nothing waits for the host."""
    name, workload, layout = LAYOUTS["ranks"]
    found = model(name, workload, layout)
    rates = found.rates._replace(launch_seconds=1.0)
    slow = replace(found, rates=rates)
    replayed, launched = (
        slow.compute_time(IterationBatch(requests, 1000 * requests)).launch for requests in (1024, 8 * 513)
    )
    kernels = found._count_kernels(IterationBatch(1, 1000), 1.0)
    assert replayed == pytest.approx(kernels * rates.kernel_seconds)
    assert launched > 0.9 * kernels


def test_transformers_passed_over_every_expert_until_4_53():
    """48 blocks of 128 experts, 4 kernels each, whether a token has chosen them or not."""
    older, newer = (
        model("qwen3-30b-a3b", WORKLOAD._replace(rules=resolve_rules(EngineName.TRANSFORMERS, version)))
        for version in ("4.51.3", "4.53.0")
    )
    assert older.kernels - newer.kernels == 48 * 128 * 4
    assert resolve_rules(EngineName.TRANSFORMERS, None).loops_experts is False


def test_a_device_of_unknown_bandwidth_has_no_iterations():
    profile = CATALOG.models["llama-3.1-8b"].profile
    bare = cluster(bandwidth_bytes_per_second=None)
    assert (
        build_iteration_model(profile, WORKLOAD, Parallelism(), cluster=bare, calibration=CALIBRATION) is None
    )


def attended_bytes(name, context, workload=WORKLOAD, layout=ONE):
    """Bytes that one token more of context moves in a decode step of one request."""
    found = model(name, workload, layout)
    near, far = (
        found.compute_time(IterationBatch(1, tokens)).moved_bytes for tokens in (context, context + 1)
    )
    return far - near


def test_a_window_ends_what_its_layers_read():
    """gpt-oss-120b: 18 of 36 layers see 128 tokens; 8 heads of keys and values of 64 elements of 2 bytes."""
    layer = 2 * 8 * 64 * 2
    assert attended_bytes("gpt-oss-120b", 100) == pytest.approx(36 * layer, rel=1e-3)
    assert attended_bytes("gpt-oss-120b", 4000) == pytest.approx(18 * layer, rel=1e-3)


def test_a_sparse_attention_reads_its_index_of_all_tokens_and_2048_of_them_whole():
    """DeepSeek-V3.2: 61 layers of 512 + 64 elements and a key of 128 for the index."""
    assert attended_bytes("deepseek-v3.2", 1000, FP8) == pytest.approx(61 * 2 * (576 + 128), rel=1e-3)
    assert attended_bytes("deepseek-v3.2", 5000, FP8) == pytest.approx(61 * 2 * 128, rel=1e-3)


def test_heads_beyond_those_of_keys_are_repeated():
    """Llama-3.1-8B has 8 heads of keys: 16 devices hold one each, as 8 do."""
    eight, sixteen = (
        attended_bytes("llama-3.1-8b", 1000, layout=Parallelism(tensor=tensor)) for tensor in (8, 16)
    )
    assert eight == pytest.approx(131_072 / 8, rel=1e-6)
    assert sixteen == pytest.approx(eight, rel=1e-6)


def test_a_state_is_read_and_written_whatever_the_context():
    found = model("mamba2-780m")
    near, far = (found.compute_time(IterationBatch(1, context)) for context in (10, 100_000))
    assert near.moved_bytes == far.moved_bytes
    one, two = (found.compute_time(IterationBatch(requests, 100)).moved_bytes for requests in (64, 128))
    # 48 layers of 3,072 x 128 elements of 2 bytes, both ways, and the last inputs of the convolution.
    state = 2 * 48 * 3072 * 128 * 2
    assert state < (two - one) / 64 < 1.1 * state


def test_one_token_reads_the_experts_that_it_takes():
    """Mixtral-8x7B: 2 of 8 experts of 3 x 4,096 x 14,336 parameters of 2 bytes in 32 layers."""
    one, many = (work("mixtral-8x7b", IterationBatch(tokens, 0)).moved_bytes for tokens in (1, 4096))
    expert = 3 * 4096 * 14_336 * 2
    others = 2 * 46_702_792_704 - 8 * 32 * expert - 2 * 32_000 * 4096
    assert one == pytest.approx(others + 2 * 32 * expert, rel=1e-3)
    assert many > others + 8 * 32 * expert


def test_experts_spread_whole_wait_for_the_device_that_has_most():
    """Of 8 experts that one token takes, the busiest of 8 devices has more than one; with many tokens all."""
    spread, cut = (
        model("deepseek-v3", FP8, Parallelism(tensor=8, expert_tensor=expert_tensor))
        for expert_tensor in (1, 8)
    )
    assert (
        spread.compute_time(IterationBatch(1, 100)).experts
        > 1.5 * cut.compute_time(IterationBatch(1, 100)).experts
    )
    many = IterationBatch(512, 512)
    assert spread.compute_time(many).experts == pytest.approx(cut.compute_time(many).experts, rel=0.3)


def test_narrow_weights_are_read_as_they_are_stored():
    """Llama-3.1-70B in FP8 moves half of the weights inside its blocks; its head stays at 16 bits."""
    wide = work("llama-3.1-70b", IterationBatch(1, 0)).moved_bytes
    narrow = work("llama-3.1-70b", IterationBatch(1, 0), workload=FP8).moved_bytes
    blocks = 70_553_706_496 - 2 * 128_256 * 8192
    assert wide - narrow == pytest.approx(blocks, rel=2e-3)


def test_scales_of_blocks_slow_large_multiplications_alone():
    """The matrices of a long prompt take longer by the share; one token streams the same bytes."""
    blocks = FP8._replace(stored=NAMED_FORMATS["fp8_block_128"])
    plain, scaled = (model("llama-3.1-70b", each, Parallelism(tensor=8)) for each in (FP8, blocks))
    prompt = IterationBatch(0, 0, 8192, 4096, 1)
    share = plain.compute_time(prompt).matrices / scaled.compute_time(prompt).matrices
    assert share == pytest.approx(plain.rates.scaled_share, rel=0.02)
    one = IterationBatch(1, 1000)
    assert scaled.compute_time(one).matrices == pytest.approx(plain.compute_time(one).matrices, rel=0.01)


def test_a_device_without_the_narrow_format_widens_and_is_slower_where_it_computes():
    accelerator = CATALOG.accelerators["a100-sxm-80gb"].accelerator
    on = cluster()._replace(accelerator=accelerator)
    packed = WORKLOAD._replace(weight_format=NumberFormat.INT4)
    prompt = IterationBatch(0, 0, 8192, 4096, 1)
    wide, widened = (model("llama-3.1-8b", workload, on=on) for workload in (WORKLOAD, packed))
    assert (
        widened.compute_time(IterationBatch(1, 1000)).matrices
        < 0.6 * wide.compute_time(IterationBatch(1, 1000)).matrices
    )
    assert widened.compute_time(prompt).matrices > wide.compute_time(prompt).matrices


def test_more_positions_of_a_request_read_its_cache_and_the_weights_once():
    one, four = (work("llama-3.1-8b", IterationBatch(1, 10_000, positions=positions)) for positions in (1, 4))
    assert four.moved_bytes == pytest.approx(one.moved_bytes, rel=5e-3)
    assert four.flops == pytest.approx(4 * one.flops, rel=1e-6)


def with_constants(**values):
    """The calibration with constants of every engine changed."""
    constants = dict(CALIBRATION.serving.constants)
    for key, known in constants.items():
        if key[0].value in values:
            constants[key] = known._replace(value=values[key[0].value])
    return replace(CALIBRATION, serving=ServingCalibration(constants=constants))


def test_copies_of_tokens_pass_as_often_as_is_said():
    """Qwen3-30B-A3B: 48 layers, 8 copies of a token, 2,048 values of 2 bytes each."""
    none, five = (
        model("qwen3-30b-a3b", calibration=with_constants(expert_copies=passes)).compute_time(
            IterationBatch(64, 64 * 100)
        )
        for passes in (0.0, 5.0)
    )
    moved = 5 * 48 * 64 * 8 * 2048 * 2
    assert five.moved_bytes - none.moved_bytes == pytest.approx(moved, rel=1e-6)
    assert moved / 3.35e12 < five.other - none.other < 1.5 * moved / 3.35e12


def test_each_expert_multiplies_some_rows_more_than_it_has():
    """8 experts of Mixtral have 2,048 of 8,192 x 2 rows each."""
    prompt = IterationBatch(0, 0, 8192, 4096, 0)
    none, more = (
        model("mixtral-8x7b", calibration=with_constants(expert_rows=rows)).compute_time(prompt)
        for rows in (0.0, 512.0)
    )
    assert more.experts / none.experts == pytest.approx((2048 + 512) / 2048, rel=1e-3)
    assert (more.matrices, more.flops, more.moved_bytes) == (none.matrices, none.flops, none.moved_bytes)


def test_widened_experts_have_tiles_of_few_rows():
    """gpt-oss stores its experts in 4 bits, which Hopper does not multiply."""
    packed = WORKLOAD._replace(weight_format=NumberFormat.FP4, stored=NAMED_FORMATS["mxfp4"])
    none, more = (
        model("gpt-oss-120b", packed, calibration=with_constants(expert_rows=rows)).compute_time(
            IterationBatch(64, 64 * 100)
        )
        for rows in (0.0, 512.0)
    )
    assert more.experts == none.experts


def test_transformers_launches_each_kernel_and_copies_its_cache():
    eager = WORKLOAD._replace(rules=resolve_rules(EngineName.TRANSFORMERS, "4.46.0"))
    one, served = (work("qwen2.5-7b", IterationBatch(1, 100), workload=each) for each in (eager, WORKLOAD))
    assert one.launch > 5 * served.launch
    # Read and written, read again and written for 7 query heads of each of 4, and read there.
    factor = attended_bytes("qwen2.5-7b", 5000, eager) / attended_bytes("qwen2.5-7b", 5000)
    assert factor == pytest.approx(3 + 2 * 7, rel=1e-3)


def test_stages_of_a_pipeline_add_up():
    """Two stages take what one does, beside the hop between them."""
    one, two = (
        work("llama-3.1-70b", IterationBatch(8, 8000), Parallelism(tensor=4, pipeline=stages))
        for stages in (1, 2)
    )
    assert two[:4] == one[:4]
    assert 0.0 < two.collectives - one.collectives < 1e-4


@pytest.mark.parametrize("kind", [Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL])
@pytest.mark.parametrize("devices", [2, 8, 16])
def test_a_message_takes_what_its_collective_does(kind, devices):
    """With kernels of the engine's own that are of no use."""
    fabric = build_fabric(cluster(16), CALIBRATION.links.value)._replace(in_network=None)
    group = DeviceGroup(float(devices), min(8.0, devices))
    ways = list_collective_terms(kind, group, fabric, 1e-9 if kind is Collective.ALL_REDUCE else None)
    for size in (1e5, 1e7, 1e9):
        found = PassMessage(1.0, 1.0, ways).compute_seconds(size)
        expected = collective_seconds(kind, size, devices=devices, per_domain=group.per_domain, fabric=fabric)
        assert found == pytest.approx(expected, rel=1e-6)


def test_devices_that_read_no_peers_pass_short_sums_from_one_to_the_next():
    """A ring of 12: 2 x 11 hops. With kernels that read peers: one hop."""
    ring = ClusterFabric(LevelRate(1e11, 2e-6), LevelRate(1e9, 1e-5), 12, torus=Torus(axes=1, ring=12))
    found = {}
    for reads in (True, False):
        ways = list_collective_terms(
            Collective.ALL_REDUCE, DeviceGroup(12.0, 12.0), ring._replace(reads_peers=reads), 0.5
        )
        found[reads] = PassMessage(1.0, 1.0, ways).compute_seconds(1.0)
    assert found[True] == pytest.approx(2e-6, rel=1e-3)
    assert 5 * found[True] < found[False] <= 44.01e-6


def test_short_sums_take_one_hop_and_long_ones_move_each_part_once():
    """8 devices by NVLink: one shot moves 7 messages in one hop, two shots 2 x 7 / 8 of one in two."""
    fabric = ClusterFabric(LevelRate(1e9, 1e-6), LevelRate(1e8, 1e-5), 8)

    def taking(algorithm, size):
        return collective_seconds(
            Collective.ALL_REDUCE, size, devices=8, per_domain=8, fabric=fabric, algorithm=algorithm
        )

    assert taking(CollectiveAlgorithm.ONE_SHOT, 100.0) == pytest.approx(1e-6 + 700.0 / 1e9)
    assert taking(CollectiveAlgorithm.TWO_SHOT, 1e6) == pytest.approx(2e-6 + 1.75e6 / 1e9)
    assert (
        taking(CollectiveAlgorithm.ONE_SHOT, 100.0)
        < taking(CollectiveAlgorithm.TWO_SHOT, 100.0)
        < taking(CollectiveAlgorithm.RING, 100.0)
    )


def test_constants_of_a_generation_stand_before_those_of_the_engine():
    vllm, serving = EngineName.VLLM, CALIBRATION.serving
    first, second, third = (
        serving.get_rates(vllm, generation).host_seconds for generation in ("v1", "asynchronous", None)
    )
    assert len({first, second, third, serving.get_rates(None).host_seconds}) == 4
    assert serving.get_rates(vllm, "another") == serving.get_rates(vllm)


@pytest.mark.parametrize(
    ("engine", "version", "generation"),
    [
        (EngineName.VLLM, "0.6.3", "v0"),
        (EngineName.VLLM, "0.11.2", "v1"),
        (EngineName.VLLM, "0.15.1", "asynchronous"),
        (EngineName.VLLM, None, None),
        (EngineName.SGLANG, "0.4.6.post1", "early"),
        (EngineName.TENSORRT_LLM, "1.2.0rc6.post3", "later"),
        (EngineName.LLAMA_CPP, "b4000", None),
    ],
)
def test_the_generation_of_a_version(engine, version, generation):
    assert resolve_rules(engine, version).generation == generation


def test_kernels_that_keep_few_loads_under_way_take_no_more_of_a_wider_memory():
    """llama.cpp's products of a matrix and a vector: a multiprocessor streams so many bytes and no more."""
    llama_cpp = WORKLOAD._replace(rules=resolve_rules(EngineName.LLAMA_CPP, None))
    wider = cluster(bandwidth_bytes_per_second=2.0 * ACCELERATOR.bandwidth_bytes_per_second)
    batch = IterationBatch(1, 0)
    here, there = (
        model("llama-3.1-8b", llama_cpp, on=on).compute_time(batch).matrices for on in (cluster(), wider)
    )
    assert there == pytest.approx(here, rel=1e-9)
    served, faster = (model("llama-3.1-8b", on=on).compute_time(batch).matrices for on in (cluster(), wider))
    assert faster == pytest.approx(served / 2.0, rel=1e-9)
