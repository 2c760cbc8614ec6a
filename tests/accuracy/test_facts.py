"""Facts that stand in free text, and how they become parts of a question."""

import pytest

from accuracy import facts
from accuracy.asking.questions import questions
from accuracy.asking.serving import serving_workloads
from accuracy.asking.skips import SkippedRowError, SkipReason
from accuracy.metrics import METRIC_UNITS
from accuracy.rows import read_rows, stated_count
from accuracy.scoring import ask, score_row
from accuracy.shapes import model_references
from service.estimates.service import ESTIMATES
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.models.profile import build_profile
from service.schemas.architectures import Architecture, to_planning
from tests.accuracy.measured import SERVED, write

CATALOG = build_shipped_snapshot()
ESTIMATORS = {name: estimate.estimator for name, estimate in ESTIMATES.items()}


@pytest.fixture
def asked(tmp_path):
    def ask(**cells):
        row = read_rows(write(tmp_path / "rows.csv", cells), METRIC_UNITS).rows[0]
        return questions(row, CATALOG)

    return ask


@pytest.fixture
def row(tmp_path):
    def read(**cells):
        return read_rows(write(tmp_path / "rows.csv", cells), METRIC_UNITS).rows[0]

    return read


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("50368", 50368),
        ("250k", 250_000),
        ("7e9", 7_000_000_000),
        ("671B (37B active)", 671_000_000_000),
        ("MLA", None),
        ("", None),
    ],
)
def test_counts_are_read_as_tables_print_them(text, count):
    assert stated_count(text) == count


def test_the_log_s_device_and_settings_win_over_the_catalog(asked):
    question = asked(**SERVED | {"metric": "kv_cache_memory_per_gpu"})[0]
    specification = question["cluster"]["accelerator"]["specification"]
    assert specification == {"name": "a100-sxm-80gb", "memory_bytes": round(79.18 * 2**30)}
    assert question["workload"]["memory_fraction"] == 0.9
    assert question["workload"]["engine"] == {"name": "vllm", "version": "0.11.0 (V1)"}
    assert question["workload"]["input_tokens"] + question["workload"]["output_tokens"] == 4096


def test_a_label_outside_the_catalog_is_asked_with_its_doubt(asked):
    cells = SERVED | {"metric": "fits", "unit_si": "bool", "value_si": "0", "notes": ""}
    sizes = [
        question["cluster"]["accelerator"]["specification"]["memory_bytes"]
        for question in asked(**cells | {"accelerator_id": "?rtx-3080-10gb"})
    ]
    assert len(sizes) == 3
    assert sizes[1] < sizes[0] < sizes[2] <= 10 * 2**30


@pytest.mark.parametrize(
    ("accelerator", "label"),
    [("?rtx-3080-10gb", 10), ("?a10g-24gb-class", 24), ("?22gb-gpu", 22), ("?unknown", None)],
)
def test_labels_of_devices(row, accelerator, label):
    assert facts.label_gigabytes(row(accelerator_id=accelerator)) == label


@pytest.mark.parametrize(
    ("version", "notes", "versions"),
    [
        ("0.7/0.8", "", ["0.7", "0.8"]),
        ("0.2.4+PR", "", ["0.2.5"]),
        ("", "all 36 layers at full length", ["0.9"]),
        ("", "", []),
    ],
)
def test_versions_of_engines(row, version, notes, versions):
    found = row(**SERVED | {"engine_version": version, "notes": notes})
    assert facts.engine_versions(found) == versions


@pytest.mark.parametrize(
    ("printed", "size"), [("79.18 GiB", round(79.18 * 2**30)), ("80 GiB", None), ("", None)]
)
def test_a_whole_number_of_gibibytes_is_a_label(row, printed, size):
    assert facts.device_bytes(row(notes=f"total_gpu_memory={printed}")) == size


def logged(row, metric, gib, **cells):
    cells = {"metric": metric, "value_si": str(gib * 2**30), "value": str(gib), "unit": "GiB"} | cells
    return row(**SERVED | {"model_id": "llama-2-7b"} | cells)


def test_a_log_that_only_the_first_engine_of_vllm_prints(row):
    peak = logged(row, "activation_peak_per_gpu", 1.2, engine_version="0.8.x")
    assert facts.engine_versions(peak, {peak.metric: peak}) == ["0.8.x V0"]
    assert facts.engine_versions(peak) == ["0.8.x"]


def test_a_device_of_many_draws_no_tokens(row):
    for tensor, first in ((4, None), (16, 1)):
        peak = logged(
            row,
            "activation_peak_per_gpu",
            0.4,
            engine_version="0.7.3",
            layout_json=f'{{"tensor":{tensor}}}',
        )
        engines = [workload["engine"] for workload in serving_workloads(peak, {})]
        assert engines[0].get("max_num_seqs") == first
        assert {engine.get("max_num_seqs") for engine in engines} == {None, 1}


def test_a_share_that_the_log_itself_exceeds_was_larger(row):
    """64.38, 7.38 and 0.13 GiB are more than 0.9 of 79.18."""
    parts = {
        "weights_memory_per_gpu": 64.38,
        "activation_peak_per_gpu": 7.38,
        "non_torch_memory_per_gpu": 0.13,
    }
    run = {metric: logged(row, metric, gib) for metric, gib in parts.items()}
    room = logged(row, "kv_cache_memory_per_gpu", 3.33)
    assert [workload["memory_fraction"] for workload in serving_workloads(room, run)] == [0.95, 0.9]
    run["weights_memory_per_gpu"] = logged(row, "weights_memory_per_gpu", 60.0)
    assert [workload["memory_fraction"] for workload in serving_workloads(room, run)] == [0.9]


def test_a_pipeline_of_torchtitan_cuts_its_local_batch(asked):
    """A local batch of 32 over a pipeline of two is two micro-batches, the default of torchtitan."""
    question = asked(
        source="torchtitan",
        layout_json='{"tensor":2,"pipeline":2,"data":2,"sharding":"zero_3"}',
        batch_json='{"micro_batch_size":32,"global_batch_size":64}',
    )[0]
    workload = question["workload"]
    assert (workload["micro_batch_size"], workload["gradient_accumulation_steps"]) == (16, 2)
    assert question["parallelism"]["sequence_parallel"] is True


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ({"adaptation": "lora", "source": "LitGPT", "notes": "LoRA r=8"}, {"kind": "lora", "rank": 8}),
        ({"adaptation": "lora", "precision_json": '{"weights":"nf4"}'}, {"kind": "qlora"}),
        ({"adaptation": "adapter"}, {"kind": "prefix", "virtual_tokens": 10}),
        ({"adaptation": "adapter-v2"}, {"kind": "scale", "virtual_tokens": 10}),
    ],
)
def test_adaptations(asked, cells, wanted):
    given = asked(**cells)[0]["workload"]["adaptation"]
    assert wanted.items() <= given.items()


@pytest.mark.parametrize(
    ("precision", "member"),
    [
        ('{"weights":"int4","quantisation":"gptq"}', {"weight_format": "gptq_int4_g128"}),
        ('{"weights":"q4_k_m","quantisation":"gguf"}', {"weight_format": "gguf_q4_k_m"}),
        ('{"weights":"nf4","quantisation":"nf4-dq"}', {"weight_format": "bnb_nf4_double_quant"}),
        ('{"weights":"fp8","quantisation":"gemm=fp8,moe=fp8_block"}', {"weight_format": "fp8_block_128"}),
        ('{"weights":"bf16"}', {"weight_precision": "bf16"}),
        ("{}", {"weight_precision": "bf16"}),
    ],
)
def test_stored_weights(asked, precision, member):
    workload = asked(**SERVED | {"metric": "weights_memory_per_gpu", "precision_json": precision})[0][
        "workload"
    ]
    assert member.items() <= workload.items()


def test_shapes_that_add_up_as_well_as_each_other_are_alternatives(row):
    """A rounded count leaves open what an exact one decides."""
    own = {"model_id": "of-ours", "vocab": ""}
    rounded = model_references(row(**own, parameter_count="7000000000"), {})
    exact = model_references(row(**own, parameter_count="6738415616"), {})
    assert len(rounded) > 1
    assert len(exact) == 1
    assert exact[0]["architecture"]["embeddings"]["vocabulary_size"] == 32000


def test_layers_that_are_not_stated_follow_from_the_count(row):
    found = model_references(row(model_id="of-ours", layers="", parameter_count="6738415616"), {})
    assert found[0]["architecture"]["layers"][0]["count"] == 32


def test_a_sweep_of_shapes_takes_the_row_s_own(row):
    known = {"bloom-proto-181b": object()}
    found = model_references(row(model_id="bloom-proto-181b", parameter_count=""), known)
    assert found[0]["source"] == "architecture"


def test_a_proxy_has_the_first_layers_of_its_model(row):
    """Grok-1 has 64 layers of eight experts. DeepSeek-V3 opens with three without experts."""
    cells = {"layers": "2", "heads": "48", "parameter_count": "314000000000"}
    grok = model_references(row(**cells, model_id="grok-1-proxy-l2"), CATALOG.models)[0]["architecture"]
    assert [layer["count"] for layer in grok["layers"] if layer["kind"] == "block"] == [2]
    profile = build_profile(to_planning(Architecture.model_validate(grok)))
    assert profile.parameter_count == 10_645_297_152
    deepseek = model_references(row(model_id="deepseek-v3-proxy-l7"), CATALOG.models)[0]["architecture"]
    assert [layer["count"] for layer in deepseek["layers"] if layer["kind"] == "block"] == [3, 4]


def test_a_published_vocabulary_stands_in_for_one_that_the_row_leaves_out(row):
    cells = {"model_id": "internlm-20b", "layers": "60", "hidden": "5120", "heads": "40", "kv_heads": "40"}
    cells |= {"ffn": "", "vocab": "", "parameter_count": "20000000000", "source": "InternEvo"}
    architecture = model_references(row(**cells), {})[0]["architecture"]
    assert architecture["embeddings"]["vocabulary_size"] == 103168
    assert architecture["layers"][0]["layers"][3]["inner_size"] == 13824


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("torchtitan", facts.MemoryView.RESERVED),
        ("LitGPT", facts.MemoryView.ALLOCATED),
        ("BigScience BLOOM", facts.MemoryView.DEVICE),
        ("unheard of", facts.MemoryView.DEVICE),
    ],
)
def test_what_a_peak_was_read_from(row, source, seen):
    assert facts.view(row(source=source)) is seen


@pytest.mark.parametrize(
    ("source", "unseen"),
    [
        ("torchtitan", {"device_context", "communication_buffers"}),
        ("LitGPT", {"device_context", "communication_buffers", "fragmentation"}),
    ],
)
def test_a_peak_is_compared_without_what_its_reading_does_not_see(row, source, unseen):
    layout = '{"data":8,"sharding":"zero_3"}'
    scored = score_row(ask([row(source=source, layout_json=layout)], CATALOG)[0], CATALOG, ESTIMATORS)
    question = ask([row(source=source, layout_json=layout)], CATALOG)[0].shapes[0]
    device = ESTIMATORS["memory"](question, CATALOG)["per_device"]
    outside = sum(part["bytes"] for part in device["components"] if part["name"] in unseen)
    assert outside > 0
    assert scored.figure.value == pytest.approx(device["total_bytes"]["value"] - outside)


@pytest.mark.parametrize(
    ("cells", "loss"),
    [
        ({"method": "pretrain; FSDP+compile", "source_ref": "llama3_h100_202412_torchtitan.md"}, None),
        ({"method": "pretrain; FSDP+compile", "source_ref": "llama3-8b_h200_202506_x.md"}, "narrow"),
        ({"method": "pretrain; FSDP", "source_ref": "llama3-8b_h200_202506_x.md"}, None),
    ],
)
def test_a_compiled_loss_of_torchtitan_since_2025_is_not_widened(asked, cells, loss):
    workload = asked(source="torchtitan", **cells)[0]["workload"]
    assert workload.get("loss") == loss
    assert (workload.get("fusion") == "compiled") == ("compile" in cells["method"])


@pytest.mark.parametrize(("scales", "base"), [("nf4", "nf4"), ("nf4-dq", "nf4_double")])
def test_packed_weights_keep_their_scales_as_the_row_says(asked, scales, base):
    precision = f'{{"weights":"nf4","quantisation":"{scales}"}}'
    given = asked(source="LitGPT", adaptation="lora", precision_json=precision)[0]["workload"]["adaptation"]
    assert given["base_weights"] == base


@pytest.mark.parametrize(("source", "likeliest"), [("torchtune", "full"), ("made", "none")])
def test_what_a_row_leaves_open_is_asked_as_its_recipes_have_it(asked, source, likeliest):
    asked_for = [
        question["workload"]["recomputation"]["strategy"]
        for question in asked(source=source, recomputation="unknown")
    ]
    assert asked_for[0] == likeliest
    assert sorted(set(asked_for)) == ["full", "none", "selective"]


def test_blocks_inputs_of_torchtune_s_adapters_may_lie_on_the_host(asked):
    first, *others = asked(source="torchtune", adaptation="lora", recomputation="unknown")
    assert first["workload"]["offload"] == {"activations": "cpu"}
    assert all("offload" not in question["workload"] for question in others)


RUN_TIME = {"metric": "gpu_hours", "unit_si": "device*s", "method": "pretrain; 1.4T tokens", "n_gpus": "2048"}


def test_a_run_that_states_no_layout_is_asked_in_that_of_the_service(asked):
    batch = '{"global_batch_tokens":4194304}'
    (question,) = asked(**RUN_TIME, layout_json="{}", batch_json=batch)
    assert "parallelism" not in question
    assert question["cluster"]["accelerator_count"] == 2048
    workload = question["workload"]
    assert (workload["global_batch_size"], workload["total_tokens"]) == (2048, 1_400_000_000_000)
    with pytest.raises(SkippedRowError) as skipped:
        asked(**RUN_TIME, layout_json="{}", batch_json="{}")
    assert skipped.value.reason is SkipReason.LAYOUT_UNKNOWN


def test_the_length_of_a_run_is_its_tokens(asked):
    with pytest.raises(SkippedRowError) as skipped:
        asked(**{**RUN_TIME, "method": "pretrain"})
    assert skipped.value.reason is SkipReason.LENGTHS_UNKNOWN


def test_papers_say_what_rows_leave_out(asked):
    palm = asked(
        source="PaLM paper",
        metric="mfu",
        unit_si="fraction",
        value_si="0.462",
        layout_json="{}",
        batch_json='{"global_batch_size":2048}',
        recomputation="unknown",
        n_gpus="6144",
    )
    assert [question["workload"]["recomputation"]["strategy"] for question in palm] == ["full"]
    assert palm[0]["parallelism"]["tensor"] * palm[0]["parallelism"]["data"] == 6144
    assert palm[0]["cluster"]["accelerators_per_node"] == 3072
    (deepseek,) = asked(
        **{**RUN_TIME, "notes": "14.8T tokens", "method": ""},
        source="DeepSeek-V3 report",
        layout_json='{"expert":64,"pipeline":16}',
        batch_json="{}",
    )
    assert deepseek["workload"]["gradient_accumulation_steps"] == 15_360 * 16 // 2048


@pytest.mark.parametrize(
    ("cells", "overlaps"),
    [
        ({"recipe_json": '[{"moe_a2a_overlap": "true"}]'}, True),
        ({"recipe_json": '[{"moe_a2a_overlap": "false"}]'}, False),
        ({"recipe_json": '[{"moe_a2a_overlap": "true"}, {"tensor": "1"}]'}, False),
        ({"recipe_json": "[not json"}, False),
        ({"method": "16-way DualPipe, 64-way experts"}, True),
        ({}, False),
    ],
)
def test_a_recipe_says_that_tokens_travel_to_experts_behind_work(row, cells, overlaps):
    assert facts.overlaps_experts(row(**cells)) is overlaps


@pytest.mark.parametrize(
    ("cells", "factor"),
    [
        ({"recipe_json": '[{"moe_capacity_factor": "1.0"}]'}, 1.0),
        ({"recipe_json": '[{"moe_capacity_factor": "1.0"}, {"moe_capacity_factor": "2.0"}]'}, None),
        ({"model": "DeepSeekV3 (tokendrop)"}, 1.0),
        ({"notes": "MaxText; tokens dropped at capacity factor 1.25"}, 1.25),
        ({"model_id": "grok-1-proxy-l4", "notes": "container NeMo 24.09; NeMo launcher"}, 1.0),
        ({"model_id": "grok-1-proxy-l4", "notes": "container MaxText 24.09"}, None),
        ({"model_id": "llama-3-8b", "notes": "container NeMo 24.09; NeMo launcher"}, None),
    ],
)
def test_recipes_names_and_notes_say_that_experts_have_a_capacity(row, cells, factor):
    assert facts.get_expert_capacity(row(**cells)) == factor


@pytest.mark.parametrize(
    ("cells", "forced"),
    [
        ({"recipe_json": '[{"moe_force_load_balancing": "true"}]'}, True),
        ({"recipe_json": '[{"moe_force_load_balancing": "false"}]', "notes": "force-balanced"}, False),
        ({"notes": "MoE rows force-balanced, dropless"}, True),
        ({}, False),
    ],
)
def test_a_benchmark_overrides_the_router(row, cells, forced):
    assert facts.is_load_forced(row(**cells)) is forced


@pytest.mark.parametrize(
    ("recipe", "graphs"),
    [
        ('[{"cuda_graph_impl": "none", "cuda_graph_scope": "full"}]', "none"),
        ('[{"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": "attn"}]', "layer"),
        ('[{"cuda_graph_impl": "local", "cuda_graph_scope": "full_iteration"}]', "iteration"),
        ('[{"cuda_graph_impl": "full_iteration"}]', "iteration"),
        ('[{"cuda_graph_impl": "none"}, {"cuda_graph_impl": "full_iteration"}]', None),
        ("[]", None),
    ],
)
def test_a_recipe_says_which_graphs_it_captures(row, recipe, graphs):
    assert facts.get_cuda_graphs(row(recipe_json=recipe)) == graphs


@pytest.mark.parametrize(
    ("cells", "overlaps"),
    [
        ({"recipe_json": '[{"tp_comm_overlap": "true"}]'}, True),
        ({"recipe_json": '[{"tp_comm_overlap": "false"}, {"tp_comm_overlap": "false"}]'}, False),
        ({"recipe_json": '[{"tp_comm_overlap": "true"}, {"tp_comm_overlap": "false"}]'}, None),
        ({"recipe_json": '[{"tp_comm_overlap": "true"}, {"tensor": "2"}]'}, None),
        ({"notes": "distributed fused Adam; tensor-parallel overlap"}, True),
        ({"method": "pretrain; compile+Float8+AsyncTP; 1F1B"}, True),
        ({"method": "pretrain; compile; vanilla TP"}, False),
        ({}, None),
    ],
)
def test_a_recipe_says_that_tensor_parallel_collectives_overlap_products(row, asked, cells, overlaps):
    assert facts.overlaps_products(row(**cells)) is overlaps
    divided = asked(layout_json='{"tensor":8,"sequence_parallel":true}', **cells)
    assert {each["parallelism"].get("overlap_tensor_communication") for each in divided} == {overlaps}
    whole = asked(layout_json='{"data":8}', **cells)
    assert all("overlap_tensor_communication" not in each["parallelism"] for each in whole)
