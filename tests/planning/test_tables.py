"""Embedding tables of a recommender: each on one replica, by greedy balance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.hardware.storage import GGUF_FORMATS
from service.planning.memory.holdings import count_device_parameters, count_stage_parameters
from service.planning.memory.tables import count_fullest_tables, count_table_parameters
from service.planning.models.architecture import Architecture, ModelInputShape
from service.planning.models.layers import EmbeddingTable
from service.planning.models.profile import build_profile
from service.planning.parallelism import Parallelism, Sharding
from tests.asking import ask, codes, question, shipped

ROWS = (39_979_771, 39_884_406, 39_664_984, 38_532_951, 25_641_295)
"""Rows of the five largest of the 26 tables of Criteo Terabyte, of 128 elements each."""


def recommender(*rows, size=4, counts=None):
    counts = counts or [1] * len(rows)
    tables = tuple(
        EmbeddingTable(rows=each, size=size, count=count) for each, count in zip(rows, counts, strict=True)
    )
    inputs = (ModelInputShape(name="sparse", kind="sparse_features"),)
    return build_profile(Architecture(inputs=inputs, layers=tables))


def asked(accelerator, count, **members):
    return {
        **question(
            "dlrm-criteo-1tb",
            accelerator,
            count,
            global_batch_size=65_536,
            micro_batch_size=65_536 // count,
            optimizer="sgd",
            precision="fp32",
        ),
        **members,
    }


class TestBalance:
    def test_the_largest_first_to_the_least_filled(self):
        """7, 6, 5, 4, 3 and 2 on two replicas: 7 + 4 + 3 and 6 + 5 + 2; on three 7 + 2, 6 + 3, 5 + 4."""
        profile = recommender(2, 3, 4, 5, 6, 7, size=1)
        assert count_table_parameters(profile) == 27.0
        found = count_fullest_tables(profile, np.array([1.0, 2.0, 3.0, 6.0, 100.0]))
        assert found.tolist() == [27.0, 14.0, 9.0, 7.0, 7.0]

    @given(
        st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 50)), min_size=1, max_size=8),
        st.integers(1, 40),
    )
    def test_it_is_between_the_bounds_of_graham(self, tables, replicas):
        """No less than the mean and the largest table, no more than 4/3 of the best (Graham 1969)."""
        rows, counts = zip(*tables, strict=True)
        profile = recommender(*rows, size=1, counts=counts)
        whole, largest = count_table_parameters(profile), max(rows)
        fullest = count_fullest_tables(profile, replicas)
        assert max(whole / replicas, largest) <= fullest <= whole / replicas + largest
        assert count_fullest_tables(profile, 1) == whole

    def test_a_model_without_tables_has_none(self):
        profile = shipped().models["llama-3.1-8b"].profile
        assert count_stage_parameters(profile, Parallelism(data=8), 0).tables == 0.0


class TestMemory:
    def test_eight_devices_hold_the_tables_of_criteo(self, snapshot):
        """The fullest of eight has a largest table, 39,979,771 x 128 in FP32, beside the matrices."""
        answer = ask(snapshot, "memory", asked("a100-sxm-80gb", 8))
        parts = {each["name"]: each["bytes"] for each in answer["per_device"]["components"]}
        profile = shipped().models["dlrm-criteo-1tb"].profile
        matrices = profile.parameter_count - count_table_parameters(profile)
        assert parts["weights"] == parts["gradients"]
        assert parts["weights"] - ROWS[0] * 128 * 4 == pytest.approx(4 * matrices / 8, abs=8)
        assert answer["fits"]
        assert answer["parallelism"]["tensor"] == 1
        assert answer["advice"] == []

    def test_the_layout_that_is_chosen_is_not_slower_than_tables_that_are_cut(self, snapshot):
        chosen = ask(snapshot, "throughput", asked("a100-sxm-80gb", 8))
        cut = ask(snapshot, "throughput", asked("a100-sxm-80gb", 8, parallelism={"tensor": 8}))
        assert chosen["parallelism"]["data"] == 8
        assert 4.0 * chosen["step_seconds"]["value"] < cut["step_seconds"]["value"]

    def test_more_replicas_than_tables_help_no_further(self, snapshot):
        answers = [
            ask(snapshot, "memory", asked("a100-sxm-80gb", count, parallelism={})) for count in (8, 64)
        ]
        few, many = (each["per_device"]["total_bytes"]["value"] for each in answers)
        assert many == pytest.approx(few, rel=0.02)

    def test_a_table_larger_than_a_device_is_cut(self, snapshot):
        """A table of 20.5 GB with its gradient on cards of 16 GB: tensor parallelism divides it."""
        answer = ask(snapshot, "memory", asked("t4", 8, parallelism={}))
        assert not answer["fits"]
        assert "MORE_TENSOR" in codes(answer["advice"])

    def test_sharding_spreads_no_table_and_gathers_none(self):
        profile = shipped().models["dlrm-criteo-1tb"].profile
        layouts = [Parallelism(data=8, sharding=each) for each in (Sharding.NONE, Sharding.ZERO_3)]
        held = [count_stage_parameters(profile, layout, 0) for layout in layouts]
        assert held[0] == held[1]
        assert held[0].tables == ROWS[0] * 128
        assert count_device_parameters(held[0], layouts[0]) < 5e6


def test_a_table_that_a_decoder_looks_up_is_stored_like_its_tokens_and_not_multiplied():
    profile = shipped().models["gemma-4-e2b"].profile
    stored = profile.weights.get_stored_weights(GGUF_FORMATS["gguf_q4_k_m"])
    # 262,144 rows: inputs of 35 layers of 256 at 4.5 bits; tokens, which are the head, at 6.5625.
    assert stored.table_split == 262_144 * (35 * 256 * 4.5 + 1536 * 6.5625) / 8
    assert not profile.unmodelled_kinds
