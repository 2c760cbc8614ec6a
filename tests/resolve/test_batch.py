"""A training question without a batch gets that of published runs of its kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.parallelism import Parallelism
from service.resolve.batch import divide_batch, divide_stated_batch
from tests.asking import ask, question, shipped

BATCH = "/workload/global_batch_size"


def filled(answer):
    return {default["pointer"]: default["value"] for default in answer["defaults"]}


@pytest.mark.parametrize(
    ("model", "accelerator", "count", "workload", "batch"),
    [
        # Touvron et al. 2023, Llama 2, section 2.2: 4 million tokens a step from 7B to 70B.
        ("llama-3.1-8b", "h100-sxm", 8, {}, 1024),
        ("llama-3.1-70b", "h100-sxm", 64, {"sequence_length": 8192}, 512),
        # Grattafiori et al. 2024, section 3.4.1: 16 million tokens a step of 8,192 each.
        ("llama-3.1-405b", "h100-sxm", 2048, {"sequence_length": 8192}, 2048),
        # Touvron et al. 2023, Llama 2, section 3.1: 64 sequences of fine-tuning.
        ("llama-3.1-8b", "h100-sxm", 8, {"objective": "supervised"}, 64),
        ("llama-3.1-70b", "h100-sxm", 8, {"adaptation": {"kind": "lora"}}, 64),
        # The same paper, section 3.2.3: 512 of PPO.
        ("llama-3.1-8b", "h200-sxm", 16, {"objective": "grpo"}, 512),
        # Dosovitskiy et al. 2021, table 3: 4,096 pictures.
        ("vit-large-patch16-224", "h100-sxm", 8, {}, 4096),
        # MLPerf Training, DLRM: 65,536 samples.
        ("dlrm-criteo-1tb", "a100-sxm-80gb", 64, {}, 65536),
        # Sequences that no device divides into are rounded to whole ones.
        ("llama-3.1-8b", "h100-sxm", 96, {}, 1056),
        # A model that decodes beside a sample counts its tokens: a million of 1.5e9 parameters.
        ("whisper-large-v3", "h100-sxm", 8, {"sequence_length": 448}, 2336),
        # Devices that no batch of practice keeps busy: a sequence for each node of 8.
        ("llama-3.1-8b", "h100-sxm", 16384, {}, 2048),
        # A run that is shorter than a step is one step.
        ("llama-3.1-8b", "h100-sxm", 8, {"total_tokens": 4096 * 16}, 16),
    ],
)
def test_an_open_batch_is_that_of_published_runs(model, accelerator, count, workload, batch):
    answer = ask(shipped(), "throughput", question(model, accelerator, count, **workload))
    assert filled(answer)[BATCH] == str(batch)
    rates = answer["samples_per_second"]["value"] * answer["step_seconds"]["value"]
    assert rates == pytest.approx(batch, rel=1e-6)


@pytest.mark.parametrize(
    "stated",
    [
        {"micro_batch_size": 1},
        {"gradient_accumulation_steps": 2},
        {"global_batch_size": 8},
        {"optimizer_in_backward": True},
    ],
)
def test_a_batch_that_is_stated_in_any_way_is_kept(stated):
    for operation in ("memory", "throughput"):
        answer = ask(shipped(), operation, question("llama-3.1-8b", "h200-sxm", 8, **stated))
        assert BATCH not in filled(answer)


def test_a_question_whose_answer_needs_no_batch_gets_none():
    alone = question("llama-3.1-8b", "h100-sxm")
    del alone["cluster"]
    assert BATCH not in filled(ask(shipped(), "memory", alone))
    counted = question({"source": "parameter_count", "parameter_count": 70 * 10**9}, "h100-sxm", 1000)
    assert BATCH not in filled(ask(shipped(), "throughput", counted))


SEQUENCES = st.integers(1, 10**5)


@given(sequences=SEQUENCES, devices=st.integers(1, 2**15))
def test_every_device_has_whole_sequences_or_shares_one(sequences, devices):
    batch = divide_batch(sequences, devices)
    assert batch % devices == 0 or devices % batch == 0
    assert batch >= sequences or batch > sequences - devices


@given(sequences=SEQUENCES, data=st.integers(1, 1024), pipeline=st.integers(1, 64))
def test_a_stated_layout_has_whole_micro_batches_and_groups_of_stages(sequences, data, pipeline):
    batch = divide_stated_batch(sequences, Parallelism(data=data, pipeline=pipeline))
    assert batch % (data * pipeline if sequences >= data * pipeline else data) == 0
    assert abs(batch - sequences) < max(data, sequences)


def test_a_stated_layout_of_more_shares_than_sequences_is_answered():
    """64 sequences of fine-tuning over 48 replicas of 4 stages are one for each replica."""
    asked = question("llama-3.1-8b", "h200-sxm", 192, objective="supervised")
    answer = ask(shipped(), "throughput", {**asked, "parallelism": {"pipeline": 4, "data": 48}})
    assert filled(answer)[BATCH] == "48"
