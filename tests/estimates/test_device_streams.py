"""One stream of tokens reads all weights for each: no device is far below its bandwidth."""

import pytest

from service.planning.errors import PlanningError
from tests.asking import ask, question, shipped

LEAST_SHARE = 0.2
"""Share of the data sheet's bandwidth: published decoding reaches 0.5 to 0.9 of it (Pope et al. 2022),
and launches take a part of the short passes of the fastest devices."""
KNOWN = [
    known.accelerator
    for known in {each.accelerator.id: each for each in shipped().accelerators.values()}.values()
    if known.accelerator.bandwidth_bytes_per_second
    and known.accelerator.capacity_bytes
    and known.accelerator.peak_flops_per_second
    and not known.accelerator.is_on_chip
]
ON_CHIP = ["cerebras-wse-3", "groq-lpu-v1"]


def filled(answer):
    return {default["pointer"]: default["value"] for default in answer["defaults"]}


@pytest.mark.parametrize("accelerator", KNOWN, ids=lambda each: each.id)
def test_a_stream_of_tokens_reads_weights_at_the_bandwidth_of_the_device(accelerator):
    asked = question("qwen3-4b", accelerator.id)
    load = {"kind": "inference", "input_tokens": 128, "output_tokens": 128, "engine": {"name": "vllm"}}
    answer = ask(shipped(), "throughput", {**asked, "workload": load})
    width = {"fp32": 4.0}.get(filled(answer)["/workload/weight_precision"], 2.0)
    read = width * 4.0e9 / answer["time_per_output_token_seconds"]["value"]
    assert LEAST_SHARE * accelerator.bandwidth_bytes_per_second < read
    assert read < accelerator.bandwidth_bytes_per_second


@pytest.mark.parametrize(
    "load",
    [
        {"kind": "inference", "input_tokens": 128, "output_tokens": 128},
        {"kind": "inference", "input_tokens": 128, "output_tokens": 128, "weight_precision": "int4"},
        {"kind": "training", "sequence_length": 2048, "global_batch_size": 8, "total_tokens": 10**9},
    ],
    ids=["served", "served in int4", "trained"],
)
@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.1-70b"])
@pytest.mark.parametrize("accelerator", ON_CHIP)
def test_rates_are_refused_where_weights_lie_on_chips(accelerator, model, load):
    """Bandwidth of on-chip memory says nothing of a model that is spread over hundreds of chips."""
    with pytest.raises(PlanningError) as refused:
        ask(shipped(), "throughput", {**question(model, accelerator), "workload": load})
    assert (refused.value.code, refused.value.pointer) == ("NOT_MODELLED", "/cluster/accelerator")


@pytest.mark.parametrize("accelerator", ON_CHIP)
def test_memory_is_answered_where_weights_lie_on_chips(accelerator):
    load = {"kind": "inference", "input_tokens": 128, "output_tokens": 128}
    answer = ask(shipped(), "memory", {**question("llama-3.1-70b", accelerator), "workload": load})
    assert answer["fits"] is False
