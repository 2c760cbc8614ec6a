"""Forward passes: encoders, towers, denoisers, autoencoders."""

import numpy as np
import pytest

from service.planning.hardware.collectives import build_fabric
from service.planning.hardware.storage import PLAIN_FORMATS
from service.planning.inference.passes import (
    EAGER,
    RUNTIMES,
    USUAL_STEPS,
    HeadPositions,
    PartRole,
    PassModel,
    Sampler,
    build_assumed_machine,
    build_denoiser_parts,
    build_part,
    build_pass_machine,
    count_evaluations,
    is_encoder_block,
    is_latent_decoder,
    select_pass_widths,
    select_runtime,
    split_tiles,
)
from service.planning.memory.serving import inference_weight_bytes
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape
from service.planning.models.layers import Attention, EmbeddingTable, FeedForward, Linear, Modulation
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import build_profile, build_profile_from_count
from service.planning.notes import AnswerNotes
from service.planning.operators import TimeBound
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BITS, NumberFormat
from service.resolve.hardware import resolve_cluster
from service.schemas.references import CatalogAccelerator, ClusterInput
from tests.asking import shipped
from tests.measured_passes import estimated_seconds, measured_passes
from tests.shapes import catalog_architecture

TENSORRT = RUNTIMES["tensorrt"]
PICTURE = SampleShape(height=512, width=512, source_tokens=77)


def model_of(parts, *, accelerator="a100-sxm-80gb", runtime=TENSORRT, layout=None, machine=None):
    known = shipped().accelerators[accelerator].accelerator
    calibration = shipped().curves.calibration
    cluster = cluster_of(accelerator, 8)
    widths = select_pass_widths(NumberFormat.FP16, 16.0, known.peak_flops_per_second)
    layout = layout or Parallelism()
    fabric = build_fabric(cluster, calibration.links.value)
    machine = machine or build_pass_machine(known, calibration, runtime)
    return PassModel(tuple((part, widths) for part in parts), layout, machine=machine, fabric=fabric)


def cluster_of(accelerator, count):
    reference = CatalogAccelerator(source="catalog", id=accelerator)
    given = ClusterInput(accelerator=reference, accelerator_count=count)
    return resolve_cluster(given, shipped(), AnswerNotes(), communicates=False)


def seconds(model, requests=1.0):
    return float(model.compute_seconds(np.array([float(requests)]))[0])


def denoiser(name="stable-diffusion-1.5-unet", sample=PICTURE, runtime=TENSORRT):
    return build_part(catalog_architecture(name), sample, runtime, PartRole.DENOISER)


def test_measured_passes_are_met():
    """70 passes of six sources; three constants are fitted to them, all else is from training."""
    rows = measured_passes()
    ratios = np.array([estimated_seconds(row) / row.seconds for row in rows])
    spread = shipped().curves.pass_latency
    assert len(rows) == 70
    assert np.median(np.abs(ratios - 1.0)) < 0.15
    assert np.mean((1 / ratios > spread.low) & (1 / ratios < spread.high)) >= 0.78
    assert np.percentile(np.abs(ratios - 1.0), 90) < 0.40


def test_ddim_takes_20_to_100_times_fewer_steps():
    """G01: 50, 20 and 10 of 1,000."""
    ddpm = count_evaluations(Sampler.DDPM, USUAL_STEPS[Sampler.DDPM])
    assert [ddpm / count_evaluations(Sampler.DDIM, steps) for steps in (50, 20, 10)] == [20, 50, 100]


def test_time_is_linear_in_steps():
    """G02: 50 steps over 10."""
    short, long = (
        seconds(model_of(build_denoiser_parts(denoiser(), Sampler.DDIM, steps, guided_share=1.0)))
        for steps in (10, 50)
    )
    assert long == pytest.approx(5 * short)


@pytest.mark.parametrize("name", ["stable-diffusion-1.5-unet", "sdxl-unet", "dit-xl-2", "flux.1-dev"])
def test_guidance_is_two_evaluations_in_less_than_twice_the_time(name):
    """G04: 2 evaluations; 1.5 to 2.1 times the time on a device that one sample fills."""
    part = denoiser(name, SampleShape(height=1024, width=1024, source_tokens=77))
    guided, plain = (
        model_of(build_denoiser_parts(part, Sampler.DDIM, 20, guided_share=share)) for share in (1.0, 0.0)
    )
    flops = [
        sum(each.passes * each.work.flops for each in model.compute_part_times(1.0))
        for model in (guided, plain)
    ]
    assert flops[0] == pytest.approx(2 * flops[1])
    assert 1.5 < seconds(guided) / seconds(plain) < 2.1


def test_guided_shares_lie_between():
    def at(share):
        return seconds(model_of(build_denoiser_parts(denoiser(), Sampler.DDIM, 20, guided_share=share)))

    assert at(0.5) == pytest.approx((at(0.0) + at(1.0)) / 2)


def test_a_second_order_sampler_evaluates_twice_but_for_the_last_step():
    assert count_evaluations(Sampler.HEUN, 18) == 35
    assert count_evaluations(Sampler.EULER, 18) == 18


def test_latents_are_48_times_smaller_than_pixels():
    """G05: 512 x 512 x 3 over 64 x 64 x 4."""
    latent = next(
        item for item in catalog_architecture("stable-diffusion-1.5-unet").inputs if item.kind == "latent"
    )
    side = 512 // latent.downsampling
    assert latent.channels is not None
    assert 512 * 512 * 3 / (side * side * latent.channels) == 48


def test_a_dit_has_256_tokens_and_119_giga_multiplications():
    """G06 to G10: DiT-XL/2 at 256 x 256 pixels; Peebles and Xie 2022, table 4, count multiplications."""
    architecture = catalog_architecture("dit-xl-2")
    sample = SampleShape(height=256, width=256)
    part = build_part(architecture, sample, TENSORRT, PartRole.DENOISER)
    assert {round(block.summed_elements / 1152) for block in part.blocks if block.sums} == {256}
    forward = forward_flops_of_sample(architecture, sample)
    assert forward / 2 == pytest.approx(118.64e9, rel=0.02)
    model = model_of(build_denoiser_parts(part, Sampler.DDIM, 50, guided_share=1.0))
    executed = sum(each.passes * each.work.flops for each in model.compute_part_times(1.0))
    assert executed == pytest.approx(50 * 2 * 2 * 119e9, rel=0.03)
    longer = model_of(build_denoiser_parts(part, Sampler.DDPM, 1000, guided_share=1.0))
    assert sum(each.passes * each.work.flops for each in longer.compute_part_times(1.0)) == pytest.approx(
        20 * executed
    )


def dit(depth, width, heads):
    """Peebles and Xie 2022: patches of 2 of a latent of 32 x 32 x 4, 1,000 classes and none."""
    attention = Attention(
        hidden_size=width,
        query_heads=heads,
        key_value_heads=heads,
        head_size=width // heads,
        causal=False,
        query_key_value_bias=True,
        output_bias=True,
    )
    feed_forward = FeedForward(hidden_size=width, inner_size=4 * width, bias=True)
    modulation = Modulation(condition_size=width, hidden_size=width)
    once = LayerBlock(
        layers=(
            Linear(input_size=256, output_size=width, bias=True),
            Linear(input_size=width, output_size=width, bias=True),
            EmbeddingTable(rows=1001, size=width),
        ),
        per="sample",
    )
    return Architecture(
        inputs=(ModelInputShape(name="latent", kind="latent", channels=4, height=256, downsampling=16),),
        layers=(
            Linear(input_size=16, output_size=width, bias=True),
            once,
            LayerBlock(layers=(modulation, attention, feed_forward), count=depth),
            Modulation(condition_size=width, hidden_size=width, vectors=2),
            Linear(input_size=width, output_size=32, bias=True),
        ),
    )


@pytest.mark.parametrize(
    ("depth", "width", "heads", "parameters", "multiplications"),
    [
        (12, 384, 6, 33e6, 6.06e9),
        (12, 768, 12, 130e6, 23.01e9),
        (24, 1024, 16, 458e6, 80.71e9),
        (28, 1152, 16, 675e6, 118.64e9),
    ],
    ids=["S", "B", "L", "XL"],
)
def test_sizes_and_work_of_dits(depth, width, heads, parameters, multiplications):
    """G07 and G08: table 4 of the paper."""
    architecture = dit(depth, width, heads)
    assert build_profile(architecture).parameter_count == pytest.approx(parameters, rel=0.01)
    sample = SampleShape(height=256, width=256)
    assert forward_flops_of_sample(architecture, sample) / 2 == pytest.approx(multiplications, rel=0.02)


@pytest.mark.parametrize(("parameters", "gigabytes"), [(3e9, 6.0), (0.6e9, 1.2), (12e9, 24.0)])
def test_weights_of_diffusion_systems(parameters, gigabytes):
    """G11: Stable Diffusion 3, PixArt and Flux in FP16."""
    stored = PLAIN_FORMATS[NumberFormat.FP16]
    held = inference_weight_bytes(build_profile_from_count(int(parameters)), stored, Parallelism())
    assert held.total == gigabytes * 1e9


def scored(side, images=1, window=None):
    """FLOPs of scores of one attention over ``images`` of side x side positions."""
    layer = Attention(
        hidden_size=64, query_heads=1, key_value_heads=1, head_size=64, causal=False, window_tokens=window
    )
    architecture = Architecture(
        inputs=(ModelInputShape(name="image", kind="image", height=side),), layers=(layer,)
    )
    weights = 2 * 4 * 64 * 64 * side * side * images
    return forward_flops_of_sample(architecture, SampleShape(images=images)) - weights


def test_factorised_attention_of_a_video_has_a_sixteenth_of_the_pairs():
    """G12: 16 frames of 1,024 positions at once, or within frames and then within places."""
    assert scored(128) / (scored(32, images=16) + scored(4, images=1024)) == pytest.approx(15.75, abs=0.01)


def test_a_window_of_eight_scores_512_times_fewer_pairs():
    """G15 and G16: of 4,096 positions; four times the positions cost 16 and 4 times as much."""
    assert scored(64) / scored(64, window=8) == 512
    assert scored(128) / scored(64) == 16
    assert scored(128, window=8) / scored(64, window=8) == 4


def test_half_the_layers_take_little_more_than_half_the_time():
    """G21: DistilBERT over BERT-base; 1.6 on a CPU, 2 in layers."""
    times = [
        seconds(
            model_of(
                [build_part(catalog_architecture(name), SampleShape(tokens=128), TENSORRT, PartRole.FORWARD)]
            ),
            32,
        )
        for name in ("bert-base", "distilbert-base")
    ]
    assert 1.6 < times[0] / times[1] <= 2.0


def test_longer_videos_take_more_than_in_proportion():
    """Attention over all frames at once grows with their square."""

    def at(frames):
        sample = SampleShape(height=480, width=832, frames=frames, source_tokens=512)
        return seconds(model_of([denoiser("wan-2.1-14b", sample)], accelerator="h100-sxm"))

    assert at(81) / at(41) > 21 / 11 * 1.1


def test_the_decoder_alone_is_taken_of_an_autoencoder():
    architecture = catalog_architecture("stable-diffusion-vae")
    sample = SampleShape(height=512, width=512)
    decoder, both = (
        build_part(architecture, sample, TENSORRT, PartRole.AUTOENCODER, **chosen)
        for chosen in ({"chosen": is_latent_decoder}, {})
    )
    flops = [model_of([part]).compute_part_times(1.0)[0].work.flops for part in (decoder, both)]
    # Rombach et al.'s decoder has three layers in each stage where the encoder has two.
    assert 0.6 < flops[0] / flops[1] < 0.75
    assert flops[0] == pytest.approx(2.5e12, rel=0.03)


def test_tiles_cover_a_picture():
    assert split_tiles(1024, 1024, None) == (1, 1024, 1024)
    assert split_tiles(512, 512, 512) == (1, 512, 512)
    count, height, width = split_tiles(1024, 1024, 512)
    assert (count, height, width) == (9, 512, 512)


@pytest.mark.parametrize(
    ("name", "sample", "share"),
    [
        ("llava-1.5-7b", SampleShape(tokens=64), 0.02),
        ("whisper-large-v3", SampleShape(tokens=4, audio_frames=3000), 0.3),
        ("t5-base", SampleShape(tokens=1, source_tokens=512), 0.4),
    ],
)
def test_what_stands_in_front_of_a_decoder_is_its_own_part(name, sample, share):
    architecture = catalog_architecture(name)
    encoder = build_part(architecture, sample, TENSORRT, PartRole.ENCODER, chosen=is_encoder_block)
    whole = build_part(architecture, sample, TENSORRT, PartRole.FORWARD)
    flops = [model_of([part]).compute_part_times(1.0)[0].work.flops for part in (encoder, whole)]
    assert share * flops[1] < flops[0] < flops[1]


def test_two_pictures_take_two_passes_of_the_tower():
    architecture = catalog_architecture("llava-1.5-7b")
    one, two = (
        model_of(
            [
                build_part(
                    architecture,
                    SampleShape(tokens=1, images=n),
                    TENSORRT,
                    PartRole.ENCODER,
                    chosen=is_encoder_block,
                )
            ]
        )
        for n in (1, 2)
    )
    assert two.compute_part_times(1.0)[0].work.flops == pytest.approx(
        2 * one.compute_part_times(1.0)[0].work.flops
    )


def test_the_last_token_alone_passes_the_head_of_a_ranker():
    architecture = catalog_architecture("bert-large")
    found = [
        model_of([build_part(architecture, SampleShape(tokens=512), TENSORRT, PartRole.FORWARD, heads=heads)])
        for heads in (HeadPositions.NONE, HeadPositions.LAST, HeadPositions.ALL)
    ]
    flops = [model.compute_part_times(1.0)[0].work.flops for model in found]
    head = 2 * 1024 * 30522
    assert flops[1] - flops[0] == pytest.approx(head)
    assert flops[2] - flops[0] == pytest.approx(512 * head)


def test_an_eager_host_sets_the_time_of_small_batches():
    architecture = catalog_architecture("resnet-50")
    part = build_part(architecture, SampleShape(height=224, width=224), EAGER, PartRole.FORWARD)
    model = model_of([part], runtime=EAGER)
    small, large = (model.compute_part_times(float(batch))[0] for batch in (1, 256))
    assert small.bound is TimeBound.HOST
    assert large.bound is not TimeBound.HOST
    assert seconds(model, 1) == pytest.approx(seconds(model, 4))


def test_nothing_is_dropped_out_where_nothing_is_trained():
    """BERT drops out behind each layer while it trains; ResNet's norms read their input twice then."""
    part = build_part(catalog_architecture("bert-base"), SampleShape(tokens=128), EAGER, PartRole.FORWARD)
    names = {
        template.name
        for stations in part.operators.blocks
        for station in stations
        for template in station.templates
    }
    assert "dropout" not in names


def test_figures_of_several_batches_are_those_of_each():
    model = model_of([denoiser()])
    batches = np.array([1.0, 3.0, 8.0])
    assert model.compute_seconds(batches) == pytest.approx([seconds(model, batch) for batch in batches])


def test_time_grows_with_the_batch_and_time_a_request_falls():
    architecture = catalog_architecture("vit-large-patch16-224")
    model = model_of([build_part(architecture, SampleShape(), TENSORRT, PartRole.FORWARD)])
    times = model.compute_seconds(np.array([1.0, 2.0, 4.0, 8.0, 16.0, 64.0]))
    assert np.all(np.diff(times) > 0.0)
    assert np.all(np.diff(times / np.array([1.0, 2.0, 4.0, 8.0, 16.0, 64.0])) < 0.0)


def test_tensor_parallelism_divides_the_work_and_sends():
    part = denoiser("flux.1-dev", SampleShape(height=1024, width=1024, source_tokens=512))
    one = model_of([part], accelerator="h100-sxm").compute_part_times(1.0)[0]
    four = model_of([part], accelerator="h100-sxm", layout=Parallelism(tensor=4)).compute_part_times(1.0)[0]
    assert four.work.flops < 0.4 * one.work.flops
    assert four.collective_seconds > 0.0 == one.collective_seconds
    assert four.evaluation_seconds < one.evaluation_seconds


def test_an_assumed_machine_is_the_roofline():
    """FLOPs over u R, where compute binds all: a large batch of BERT."""
    known = shipped().accelerators["h100-sxm"].accelerator
    part = build_part(catalog_architecture("bert-large"), SampleShape(tokens=512), TENSORRT, PartRole.FORWARD)
    model = model_of([part], accelerator="h100-sxm", machine=build_assumed_machine(known, 0.5, 1.0))
    (time,) = model.compute_part_times(64.0)
    least = time.work.flops / (0.5 * known.peak_flops_per_second[NumberFormat.FP16])
    assert time.evaluation_seconds >= least
    assert time.evaluation_seconds == pytest.approx(least, rel=0.15)


def test_narrow_weights_move_fewer_bytes_or_are_unpacked():
    peaks = {NumberFormat.BF16: 1.0, NumberFormat.INT8: 2.0}
    narrow = select_pass_widths(NumberFormat.INT8, 8.0, peaks)
    assert (narrow.operand, narrow.element, narrow.packed, narrow.wide) == (1.0, 2.0, 0.0, NumberFormat.BF16)
    packed = select_pass_widths(NumberFormat.BF16, 4.5, peaks)
    assert packed.packed == 0.5625
    assert ELEMENT_BITS[packed.matrix] == 16


def test_engines_are_known_by_name():
    assert select_runtime("TensorRT") is RUNTIMES["tensorrt"]
    assert select_runtime("Torch-Compile") is RUNTIMES["torch_compile"]
    assert select_runtime(None) == select_runtime("anything else")
    assert select_runtime("diffusers").eager
