"""Saved activations and optimizer states against those that PyTorch keeps (``make oracles``)."""

import json
from pathlib import Path

import pytest

from service.formats.huggingface import FAMILIES, import_config
from service.planning.memory.activations import activation_bytes_per_token
from service.planning.memory.states import tensor_state_bytes
from service.planning.models.layers import LayerTensor, TensorSplit
from service.planning.models.profile import build_profile
from service.planning.precision import Optimizer
from service.planning.software.frameworks import TRAITS, Framework
from service.planning.workload import AttentionKernel

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "saved_activations.json").read_text())

TOLERANCE = 0.05
"""Of a block's bytes: row sums and inverse deviations of norms, which are not itemised, and fused projections
whose parts are views of one tensor."""

IMPORTED = [row for row in ORACLE["activations"] if row["config"]["model_type"] in FAMILIES]

SCALED_IN_FP32 = {"gemma", "olmo2"}
"""Classes whose norms multiply with their scale before they narrow: 2 bytes more for each element."""

NARROW_SOFTMAX = {"gpt2"}
"""Classes whose eager attention takes the softmax in 16 bit."""


@pytest.mark.parametrize("row", IMPORTED, ids=lambda row: f"{row['name']}-{row['attention']}")
def test_saved_bytes_of_a_block(row):
    profile = build_profile(import_config(row["config"]).architecture)
    terms = profile.activations
    fused = row["attention"] == "sdpa"
    length = row["sequence_length"]
    found = activation_bytes_per_token(
        terms,
        element_bytes=2.0,
        kernel=AttentionKernel.FLASH if fused else AttentionKernel.STANDARD,
        traits=TRAITS[Framework.TRANSFORMERS]._replace(eager_scores=row["name"] not in NARROW_SOFTMAX),
    ).compute_bytes(length)
    if row["name"] in SCALED_IN_FP32:
        found += 2.0 * (terms.whole_normed + terms.split_normed)
    if fused:
        # Without values transformers cannot see that a mask is causal and no more: it passes one to the fused
        # kernel, in 16 bit for each row of the batch, and with it keys and values for each query head.
        found += 2.0 * terms.expanded_elements + 2.0 * length
    measured = row["block_bytes"] / row["batch"] / length
    assert found == pytest.approx(measured, rel=TOLERANCE)


@pytest.mark.parametrize("row", ORACLE["optimizers"], ids=lambda row: f"{row['optimizer']}-{row['tensor']}")
def test_optimizer_states_of_a_tensor(row):
    tensor = LayerTensor(row["tensor"], tuple(row["shape"]), TensorSplit.NONE)
    optimizer = Optimizer(row["optimizer"])
    found = tensor_state_bytes(tensor, optimizer, element_bytes=4.0, rank=0, inside=True)
    assert found == pytest.approx(row["bytes"])
