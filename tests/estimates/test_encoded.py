"""Decoders behind an encoder: pictures, sound and texts in front of what is generated."""

import pytest

from tests.asking import ask, codes, gaps, question, shipped


def served(model, accelerator="h100-sxm", count=1, **workload):
    given = question(model, accelerator, count) | {"workload": {"kind": "inference", **workload}}
    return ask(shipped(), "throughput", given)


def value(answer, name):
    return answer[name]["value"]


def phases(answer):
    return {phase["phase"]: phase["seconds"]["value"] for phase in answer["breakdown"]}


LENGTHS = {"input_tokens": 64, "output_tokens": 64}


def test_without_a_picture_a_vision_language_model_is_its_decoder():
    """LLaVA 1.5 stands on Vicuna 7B, whose shapes are those of Llama 2 but for 64 more tokens."""
    llava, llama = served("llava-1.5-7b", **LENGTHS), served("llama-2-7b", **LENGTHS)
    for name in ("time_to_first_token_seconds", "time_per_output_token_seconds"):
        assert value(llava, name) == pytest.approx(value(llama, name), rel=0.01)
    assert "encoder" not in phases(llava)


def test_a_picture_is_encoded_and_its_positions_are_prefilled():
    """336 x 336 pixels in patches of 14: 576 positions."""
    without = served("llava-1.5-7b", input_tokens=64 + 576, output_tokens=64)
    answer = served("llava-1.5-7b", **LENGTHS, sample={"images": 1})
    assert "POSITIONS_ADDED" in codes(answer["warnings"])
    encoder = phases(answer)["encoder"]
    # 0.3 billion parameters over 577 positions, twice.
    assert 2 * 0.303e9 * 577 / 989e12 < encoder < 10 * 2 * 0.303e9 * 577 / 989e12
    name = "time_to_first_token_seconds"
    assert value(answer, name) == pytest.approx(value(without, name) + encoder, rel=0.02)


def test_eight_pictures_fill_the_device_better_than_one():
    one, eight = (served("llava-1.5-7b", **LENGTHS, sample={"images": n}) for n in (1, 8))
    assert 3 < phases(eight)["encoder"] / phases(one)["encoder"] < 8
    name = "time_to_first_token_seconds"
    assert value(eight, name) > value(one, name)


@pytest.mark.parametrize("model", ["qwen2.5-vl-7b", "qwen3-vl-8b"])
def test_larger_pictures_have_more_positions(model):
    small, large = (served(model, **LENGTHS, sample={"height": side, "width": side}) for side in (448, 1344))
    assert phases(large)["encoder"] > 4 * phases(small)["encoder"]
    longer = value(large, "time_to_first_token_seconds") - value(small, "time_to_first_token_seconds")
    assert longer > phases(large)["encoder"]


def test_an_encoder_decoder_encodes_and_then_decodes():
    short, long = (served("t5-3b", input_tokens=tokens, output_tokens=64) for tokens in (128, 2048))
    assert phases(long)["encoder"] > 4 * phases(short)["encoder"]
    assert set(phases(long)) >= {"encoder", "prefill", "decode"}
    # The decoder has 1.65 of 2.9 billion parameters, of which keys and values of what is read are made once.
    streamed = 2 * 1.2e9 / (3.35e12)
    assert value(short, "time_per_output_token_seconds") > streamed


def test_half_a_minute_of_sound():
    answer = served("whisper-large-v3", input_tokens=4, output_tokens=100)
    found = phases(answer)
    # 0.64 billion parameters over 1,500 positions, twice.
    assert 2 * 0.635e9 * 1500 / 989e12 < found["encoder"] < 10 * 2 * 0.635e9 * 1500 / 989e12
    assert not gaps(answer)


def test_encoding_takes_time_from_those_that_decode():
    alone = served("llava-1.5-7b", **LENGTHS, concurrency=32)
    pictures = served("llava-1.5-7b", **LENGTHS, concurrency=32, sample={"images": 4})
    name = "time_per_output_token_seconds"
    assert value(pictures, name) > 1.5 * value(alone, name)
    assert value(pictures, "requests_per_second") < value(alone, "requests_per_second")


def test_no_picture_is_nothing_to_encode():
    none, without = (served("llava-1.5-7b", **LENGTHS, **given) for given in ({"sample": {"images": 0}}, {}))
    assert phases(none) == pytest.approx(phases(without))


def test_a_gap_says_which_size_is_missing():
    answer = served("qwen2.5-vl-7b", **LENGTHS, sample={"images": 1})
    assert gaps(answer)["/requests_per_second"] == "SAMPLE_FIELD_MISSING"


def test_positions_of_pictures_take_their_own_smaller_experts():
    """ERNIE 4.5 VL: eight pictures of 676 positions each are prefilled faster than as much text."""
    text = phases(served("ernie-4.5-vl-28b-a3b", input_tokens=32 + 8 * 676, output_tokens=64))
    seen = phases(
        served("ernie-4.5-vl-28b-a3b", input_tokens=32, output_tokens=64, sample={"images": 8, "height": 728})
    )
    assert seen["prefill"] < text["prefill"]
    assert seen["decode"] == pytest.approx(text["decode"], rel=0.01)
