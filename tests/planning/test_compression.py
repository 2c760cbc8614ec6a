import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.hardware.collectives import ClusterFabric, Collective, LevelRate
from service.planning.hardware.traffic import ReplicaExchange, total_seconds
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings
from service.planning.models.layers import Attention, FeedForward, LayerTensor, TensorSplit, build_matrix
from service.planning.models.profile import build_profile, build_profile_from_count
from service.planning.parallelism import Parallelism, build_placement
from service.planning.training.compression import (
    CompressionVerdict,
    build_compressed_exchange,
    build_gradient_shapes,
    compute_compressed_bytes,
    sum_gradient_shapes,
)
from service.planning.workload import Compression, GradientCompressionKind

GB = 1e9
SQUARE = sum_gradient_shapes([(build_matrix("weight", 4096, 4096, TensorSplit.COLUMN), 1.0)])
FABRIC = ClusterFabric(LevelRate(400 * GB, 0.0), LevelRate(25 * GB, 0.0), 8)


def ratio(kind, shapes=SQUARE, **members):
    return compute_compressed_bytes(Compression(kind, **members), shapes, 4.0).ratio


@pytest.mark.parametrize(
    ("kind", "members", "expected"),
    [
        (GradientCompressionKind.FP16, {}, 2.0),  # C24
        (GradientCompressionKind.INT8, {}, 4.0),  # C25
        (GradientCompressionKind.ONE_BIT, {}, 32.0),  # C26
        (GradientCompressionKind.RANDOM_K, {"kept_share": 0.01}, 100.0),  # C27: values alone
        (GradientCompressionKind.RANDOM_K, {"kept_share": 0.001}, 1000.0),
        (GradientCompressionKind.TOP_K, {"kept_share": 0.01}, 50.0),  # C28, X21: an index for each value
        (GradientCompressionKind.TOP_K, {"kept_share": 0.001}, 500.0),
        (GradientCompressionKind.POWER_SGD, {"rank": 4}, 512.0),  # C30
    ],
)
def test_bytes_that_are_saved(kind, members, expected):
    assert ratio(kind, **members) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_thin_matrices_follow_the_sides(rank):
    """C30: mn / (r (m + n)), 128 for 1024 x 1024 at rank 4."""
    small = sum_gradient_shapes([(build_matrix("weight", 1024, 1024), 1.0)])
    assert ratio(GradientCompressionKind.POWER_SGD, small, rank=rank) == pytest.approx(512 / rank)
    wide = sum_gradient_shapes([(build_matrix("weight", 1024, 4096), 3.0)])
    assert ratio(GradientCompressionKind.POWER_SGD, wide, rank=rank) == pytest.approx(
        1024 * 4096 / (rank * 5120)
    )


def test_vectors_stay_as_they_are():
    """X20: end to end the vectors are what is left; 5 to 100 times, not 512."""
    mixed = sum_gradient_shapes(
        [
            (build_matrix("weight", 4096, 4096), 1.0),
            (LayerTensor("bias", (4096 * 64,), TensorSplit.NONE), 1.0),
        ]
    )
    sent = 4 * 8192 + 4096 * 64
    assert ratio(GradientCompressionKind.POWER_SGD, mixed, rank=4) == pytest.approx(
        (4096**2 + 4096 * 64) / sent
    )
    assert 5 < ratio(GradientCompressionKind.POWER_SGD, mixed, rank=4) < 100


def test_stacks_of_experts_are_matrices_each():
    stack = sum_gradient_shapes([(LayerTensor("experts", (8, 1024, 4096), TensorSplit.EXPERT), 1.0)])
    alone = sum_gradient_shapes([(build_matrix("weight", 1024, 4096), 8.0)])
    assert (stack.elements, stack.tensors) == (alone.elements, alone.tensors)
    assert ratio(GradientCompressionKind.POWER_SGD, stack) == ratio(GradientCompressionKind.POWER_SGD, alone)


def test_tensor_parallelism_cuts_one_side():
    """An eighth of 4096 x 4096 is 4096 x 512: its thin matrices have 4608 rows."""
    found = compute_compressed_bytes(
        Compression(GradientCompressionKind.POWER_SGD, rank=4), SQUARE, 4.0, tensor=8.0
    )
    assert found.ratio == pytest.approx(4096 * 512 / (4 * 4608))


def model():
    attention = Attention(hidden_size=1024, query_heads=8, key_value_heads=8, head_size=128)
    block = LayerBlock(layers=(attention, FeedForward(hidden_size=1024, inner_size=4096)), count=12)
    table = ModelEmbeddings(size=1024, vocabulary_size=32_000)
    return build_profile(Architecture(layers=(block,), embeddings=table))


def test_the_gradients_of_a_model_are_its_parameters():
    profile = model()
    assert build_gradient_shapes(profile).elements == profile.parameter_count
    assert build_gradient_shapes(build_profile_from_count(10**9)) == (1e9, 0.0, 0.0, 0.0, 1.0)


def exchange(kind, devices=16, profile=None, **members):
    profile = profile or model()
    layout = Parallelism(data=devices)
    exchanged = ReplicaExchange(float(profile.parameter_count), 0.0, 2.0, 4.0, 1.0)
    placed = build_placement(layout, 8)
    return build_compressed_exchange(Compression(kind, **members), profile, exchanged, placed, 1.0)


@pytest.mark.parametrize(
    ("kind", "collectives"),
    [
        (GradientCompressionKind.FP16, [Collective.ALL_REDUCE]),
        (GradientCompressionKind.RANDOM_K, [Collective.ALL_REDUCE]),
        (GradientCompressionKind.POWER_SGD, [Collective.ALL_REDUCE]),
        (GradientCompressionKind.TOP_K, [Collective.ALL_GATHER]),
        (GradientCompressionKind.INT8, [Collective.ALL_TO_ALL, Collective.ALL_GATHER]),
        (GradientCompressionKind.ONE_BIT, [Collective.ALL_TO_ALL, Collective.ALL_GATHER]),
    ],
)
def test_what_cannot_be_added_is_exchanged_and_gathered(kind, collectives):
    messages = [message for message in exchange(kind).messages if message.message_bytes]
    assert [message.kind for message in messages] == collectives


def test_sparse_gradients_are_gathered_from_all():
    """003:1131: a sparse all-reduce is an all-gather, and grows with the replicas."""
    few, many = (
        sum(message.message_bytes for message in exchange(GradientCompressionKind.TOP_K, devices).messages)
        for devices in (8, 64)
    )
    assert many == pytest.approx(8 * few)
    assert few == pytest.approx(8 * 0.01 * 8 * model().parameter_count)


def test_half_the_bytes_take_half_the_time():
    plain = 2 * 15 / 16 * 4 * model().parameter_count / (8 * 25e9)
    assert total_seconds(exchange(GradientCompressionKind.FP16).messages, FABRIC) == pytest.approx(plain / 2)


def test_what_compressing_costs():
    """Bytes over the gradients of N elements, error feedback reading and writing 4 bytes more each."""
    count = model().parameter_count

    def moved(kind, **members):
        return sum(each.moved_bytes for each in exchange(kind, **members).operators) / count

    assert moved(GradientCompressionKind.FP16, error_feedback=False) == pytest.approx(12)
    assert moved(GradientCompressionKind.FP16) == pytest.approx(12 + 8)
    assert moved(GradientCompressionKind.INT8, error_feedback=False) == pytest.approx(4 + 2 * 5, rel=1e-3)
    assert (
        moved(GradientCompressionKind.TOP_K)
        > moved(GradientCompressionKind.ONE_BIT)
        > moved(GradientCompressionKind.RANDOM_K)
    )
    # Three products that read or write nearly every element.
    assert moved(GradientCompressionKind.POWER_SGD, error_feedback=False) == pytest.approx(12, rel=0.2)


def test_products_of_thin_matrices():
    operators = {each.name: each for each in exchange(GradientCompressionKind.POWER_SGD, rank=8).operators}
    matrices = build_gradient_shapes(model()).matrices
    assert operators["power_products"].flops == pytest.approx(6 * 8 * matrices)
    assert operators["orthogonalisation"].kernels == 16


@pytest.mark.parametrize(
    ("plain", "reduced", "cost", "pays"),
    [(1.0, 0.1, 0.5, True), (1.0, 0.6, 0.5, False), (1.0, 0.5, 0.5, False), (0.0, 0.0, 0.1, False)],
)
def test_compression_pays_where_it_saves_more_than_it_costs(plain, reduced, cost, pays):
    """C31: recommended iff t_compress + t_communication / ratio < t_communication."""
    assert CompressionVerdict(plain - reduced, cost).pays is pays


@given(kept=st.floats(1e-4, 0.2), rank=st.integers(1, 32))
def test_more_that_is_kept_is_more_that_is_sent(kept, rank):
    for kind, less, more in (
        (GradientCompressionKind.TOP_K, {"kept_share": kept}, {"kept_share": 2 * kept}),
        (GradientCompressionKind.RANDOM_K, {"kept_share": kept}, {"kept_share": 2 * kept}),
        (GradientCompressionKind.POWER_SGD, {"rank": rank}, {"rank": rank + 1}),
    ):
        assert ratio(kind, **more) < ratio(kind, **less)
