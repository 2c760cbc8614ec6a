import pytest

from service.planning.errors import PlanningError
from service.planning.memory.layout import select_inference_layout, select_training_layout
from service.planning.memory.serving import estimate_inference_memory
from service.planning.memory.training import estimate_training_memory
from service.planning.models.profile import build_profile, build_profile_from_count
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding, check_layout
from service.planning.precision import TRAINING_RECIPES, NumberFormat, Optimizer, TrainingPrecision
from service.planning.workload import AttentionKernel, InferenceWorkload, Recomputation, TrainingWorkload
from tests.shapes import llama_2_70b

GPU = 79.1 * 2**30
MODEL = build_profile(llama_2_70b())
TRAINING = TrainingWorkload(
    sequence_length=4096,
    micro_batch_size=1,
    micro_batches=1,
    recipe=TRAINING_RECIPES[TrainingPrecision.BF16],
    optimizer=Optimizer.ADAMW,
    kernel=AttentionKernel.FLASH,
    recomputation=Recomputation.NONE,
)
SERVING = InferenceWorkload(
    weight_format=NumberFormat.BF16,
    cache_format=NumberFormat.BF16,
    input_tokens=2000.0,
    output_tokens=500.0,
    concurrency=8,
    batched_tokens=8192,
    block_tokens=16,
    memory_fraction=0.9,
)


def as_given(_: Parallelism) -> TrainingWorkload:
    return TRAINING


def train(devices, usable=GPU, laid_out=as_given, model=MODEL):
    return select_training_layout(model, laid_out, devices=devices, per_node=8, usable_bytes=usable)


def test_one_device_is_one_device():
    assert train(1) == Parallelism()


def test_the_layout_fits_and_uses_every_device():
    layout = train(1000)
    assert layout.devices == 1000
    assert estimate_training_memory(MODEL, TRAINING, layout)[0].total_bytes <= GPU


def test_tensor_parallelism_stays_in_a_node_and_divides_the_heads():
    for devices in (2, 8, 24, 64, 1000):
        layout = train(devices)
        assert layout.tensor <= 8
        assert 64 % layout.tensor == 0
        assert layout.sequence_parallel == (layout.tensor > 1)


def test_a_model_that_fits_is_not_split():
    assert train(1, model=build_profile_from_count(10**9)) == Parallelism()


def test_a_model_without_shapes_is_sharded_over_all_devices():
    assert train(1000, model=build_profile_from_count(10**11)) == Parallelism(
        data=1000, sharding=Sharding.ZERO_3
    )


def test_a_batch_rules_layouts_out_for_a_model_without_shapes_too():
    layout = train(
        1000,
        model=build_profile_from_count(10**10),
        laid_out=lambda at: TRAINING if 512 % at.data == 0 else None,
    )
    assert layout.devices == 1000
    assert 512 % layout.data == 0


def test_a_layout_is_judged_by_the_micro_batches_that_it_brings():
    """More micro-batches in flight on a pipeline; the layout must hold those, not one."""

    def laid_out(layout):
        return TRAINING._replace(micro_batches=128 // layout.data) if 128 % layout.data == 0 else None

    layout = train(32, usable=60e9, laid_out=laid_out)
    assert estimate_training_memory(MODEL, laid_out(layout), layout)[0].total_bytes <= 60e9


def test_the_closest_is_taken_where_nothing_fits():
    layout = train(2, usable=1e9)
    assert layout.devices == 2
    others = [Parallelism(data=2), Parallelism(data=2, sharding=Sharding.ZERO_3), Parallelism(tensor=2)]
    best = estimate_training_memory(MODEL, TRAINING, layout)[0].total_bytes
    assert all(best <= estimate_training_memory(MODEL, TRAINING, other)[0].total_bytes for other in others)


def test_a_batch_that_does_not_divide_rules_a_layout_out():
    assert train(16, laid_out=lambda layout: TRAINING if layout.data <= 2 else None).data <= 2


def test_the_smallest_replica_that_holds_its_requests_is_repeated():
    layout = select_inference_layout(MODEL, SERVING, devices=8, per_node=8, usable_bytes=0.9 * GPU)
    assert (layout.tensor, layout.data) == (2, 4)
    assert estimate_inference_memory(MODEL, SERVING, layout).total_bytes <= 0.9 * GPU
    smaller = Parallelism(data=8)
    assert estimate_inference_memory(MODEL, SERVING, smaller).total_bytes > 0.9 * GPU


@pytest.mark.parametrize(
    ("layout", "devices", "code", "pointer"),
    [
        (Parallelism(tensor=2), 4, "PARALLELISM_MISMATCH", "/parallelism"),
        (Parallelism(data=3, expert=2), 3, "EXPERT_PARALLELISM", "/parallelism/expert"),
        (
            Parallelism(data=4, sharding=Sharding.HYBRID),
            4,
            "SHARDING_GROUP",
            "/parallelism/sharding_group_size",
        ),
        (Parallelism(data=4, sharding_group_size=2), 4, "SHARDING_GROUP", "/parallelism/sharding_group_size"),
        (
            Parallelism(data=4, sharding=Sharding.HYBRID, sharding_group_size=3),
            4,
            "SHARDING_GROUP",
            "/parallelism/sharding_group_size",
        ),
        (Parallelism(pipeline=2, virtual_stages=2), 2, "VIRTUAL_STAGES", "/parallelism/virtual_stages"),
        (
            Parallelism(pipeline=2, pipeline_schedule=PipelineSchedule.INTERLEAVED),
            2,
            "VIRTUAL_STAGES",
            "/parallelism/virtual_stages",
        ),
    ],
)
def test_a_contradiction_is_refused_by_field(layout, devices, code, pointer):
    with pytest.raises(PlanningError) as caught:
        check_layout(layout, device_count=devices)
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


def test_the_product_is_spelled_out():
    with pytest.raises(PlanningError, match="tensor 2 x pipeline 1 x data 1 x context 1 = 2 devices"):
        check_layout(Parallelism(tensor=2), device_count=4)
