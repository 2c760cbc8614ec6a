"""The command that estimates measured rows: what it prints, writes and exits with."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from accuracy.anchors import beside_anchors
from accuracy.asking.skips import SkipReason
from accuracy.cli import app
from accuracy.fitting import held_out
from accuracy.folds import FOLDS, committed_split
from accuracy.metrics import METRIC_UNITS, METRICS
from accuracy.report import constant_width, measured_verdicts, stated_verdicts, verdicts
from accuracy.rows import BATCH, LAYOUT, LENGTH, PRECISION, read_rows
from accuracy.scoring import percentile, score, score_held_out, short_sources, statistics_of
from service.estimates.service import ESTIMATES
from service.evidence.service import load_shipped_document, parse_curves
from service.evidence.snapshot import build_shipped_snapshot
from service.schemas.estimates import MemoryEstimateRequest
from tests.accuracy.measured import RUN, SERVED, write

EXCERPT = Path(__file__).parent.parent / "data" / "evidence" / "measured.csv"
CATALOG = build_shipped_snapshot()
ESTIMATORS = {name: estimate.estimator for name, estimate in ESTIMATES.items()}


def scores(path, *rows):
    numbered = [{"id": f"made-{place}", "run_id": f"{place:016x}"} | row for place, row in enumerate(rows)]
    return score(read_rows(write(path / "rows.csv", *numbered), METRIC_UNITS).rows, CATALOG, ESTIMATORS)


def command(*words):
    return CliRunner().invoke(app, ["score", *map(str, words)])


def test_a_row_is_asked_as_a_caller_would_ask(tmp_path):
    """Llama-2-7B over 2 x 4 devices, ZeRO-1: the row's estimate is the answer of the memory question."""
    one = scores(tmp_path, {})[0]
    question = MemoryEstimateRequest.model_validate_json(
        json.dumps(
            {
                "model": {"source": "catalog", "id": "llama-2-7b"},
                "cluster": {
                    "accelerator": {"source": "catalog", "id": "a100-sxm-80gb"},
                    "accelerator_count": 8,
                },
                "parallelism": {"tensor": 2, "data": 4, "sharding": "zero_1"},
                "workload": {
                    "kind": "training",
                    "sequence_length": 2048,
                    "micro_batch_size": 1,
                    "gradient_accumulation_steps": 2,
                    "precision": "bf16",
                },
            }
        )
    )
    total = ESTIMATORS["memory"](question, CATALOG)["per_device"]["total_bytes"]
    assert one.figure == (total["value"], total["low"], total["high"])
    assert one.error == pytest.approx(total["value"] / 30e9 - 1)


def test_an_open_recomputation_takes_the_envelope_of_both(tmp_path):
    none, full, unknown = scores(
        tmp_path, {"recomputation": "none"}, {"recomputation": "full"}, {"recomputation": "unknown"}
    )
    assert full.figure.high < none.figure.high
    assert unknown.figure.low == full.figure.low
    assert unknown.figure.high == none.figure.high


def test_a_way_to_run_that_does_not_fit_the_device_is_no_way_a_measured_run_took(tmp_path):
    """Without recomputation this run takes more than the 24 GB of the device that it was measured on."""
    small = {"accelerator_id": "rtx-4090", "layout_json": '{"tensor":8,"data":8,"sharding":"zero_3"}'}
    small["batch_json"] = '{"micro_batch_size":16,"gradient_accumulation_steps":1}'
    none, full, unknown = scores(
        tmp_path,
        *(small | {"recomputation": strategy} for strategy in ("none", "full", "unknown")),
    )
    assert none.chance < 0.01 < full.chance
    assert unknown.figure == full.figure


def test_the_log_s_own_cache_memory_gives_its_tokens(tmp_path):
    """Llama-2-7B keeps 2 x 32 x 4096 x 2 bytes of a token, half of it on each of two devices."""
    path = write(
        tmp_path / "rows.csv",
        SERVED
        | {"id": "a", "metric": "kv_cache_memory_per_gpu", "value": "10.00", "value_si": str(10 * 2**30)},
        SERVED | {"id": "b", "metric": "kv_cache_blocks", "unit_si": "tokens", "value_si": str(40960)},
    )
    tokens = score(read_rows(path, METRIC_UNITS).rows, CATALOG, ESTIMATORS)[1]
    assert tokens.figure.value == pytest.approx(10 * 2**30 / (2 * 32 * 4096 * 2 / 2))
    assert tokens.is_covered


SKIPS = [
    ({"model_id": "nothing-known", "hidden": ""}, SkipReason.MODEL_SHAPE_UNKNOWN),
    ({"length_json": "{}"}, SkipReason.LENGTHS_UNKNOWN),
    ({"batch_json": "{}"}, SkipReason.BATCH_UNKNOWN),
    ({"layout_json": "{}"}, SkipReason.LAYOUT_UNKNOWN),
    ({"layout_json": '{"tensor":7,"data":1}'}, SkipReason.LAYOUT_UNKNOWN),
    (
        SERVED | {"metric": "kv_cache_memory_per_gpu", "accelerator_id": "?", "notes": ""},
        SkipReason.ACCELERATOR_UNKNOWN,
    ),
    ({"metric": "cost", "unit_si": "USD"}, SkipReason.METRIC_NOT_ANSWERED),
    ({"precision_json": '{"compute":"abacus"}'}, SkipReason.NOT_MODELLED_YET),
]


@pytest.mark.parametrize(("cells", "reason"), SKIPS, ids=[reason.value for _, reason in SKIPS])
def test_a_row_is_skipped_for_a_reason_of_a_closed_list(tmp_path, cells, reason):
    one = scores(tmp_path, cells)[0]
    assert (one.skipped, one.figure) == (reason, None)


def test_every_reason_is_shown():
    assert {reason for _, reason in SKIPS} == set(SkipReason)


def test_a_shape_outside_the_catalog_is_taken_from_the_row(tmp_path):
    """The parameter count singles out a gated feed-forward and an untied head."""
    known, own = scores(tmp_path, {}, {"model_id": "some-llama-of-ours"})
    assert own.figure.value == pytest.approx(known.figure.value, rel=1e-3)


def test_statistics_of_errors_intervals_and_widths(tmp_path):
    scored = scores(tmp_path, {}, {"value": "60", "value_si": "60e9"}, {"length_json": "{}"})
    found = statistics_of(scored)
    errors = sorted(abs(one.error) for one in scored[:2])
    assert (found.rows, found.skipped) == (2, 1)
    assert found.median_error == pytest.approx(sum(errors) / 2)
    assert found.p90_error == pytest.approx(percentile(errors, 0.9))
    assert found.median_width == pytest.approx(scored[0].figure.high / scored[0].figure.low)


def test_the_excerpt_is_estimated_and_written_as_json(tmp_path):
    result = command(EXCERPT, "--json", tmp_path / "scores.json")
    assert result.exit_code == 0, result.stderr
    assert "metrics with a target by source" in result.stdout
    document = json.loads((tmp_path / "scores.json").read_text())
    assert document.keys() == {"metrics", "sources", "rows"}
    statistic = {"rows", "skipped", "median_error", "p90_error", "bias", "coverage", "median_width"}
    for group in (document["metrics"], document["sources"]):
        assert group
        assert all(found.keys() == statistic for found in group.values())
    row = {"id", "run_id", "metric", "measured", "estimated", "low", "high", "skipped"}
    assert all(found.keys() == row for found in document["rows"])
    assert len(document["rows"]) == len(EXCERPT.read_text().splitlines()) - 1
    assert document["metrics"].keys() <= METRICS.keys()


def test_measured_peaks_of_torchtitan_are_met():
    """Llama 3.1 8B, 70B and 405B on 8 to 512 devices: median error 5%, 90th percentile 15%."""
    rows = [row for row in read_rows(EXCERPT, METRIC_UNITS).rows if row.source == "torchtitan"]
    catalogs = [
        replace(CATALOG, curves=parse_curves(held_out(load_shipped_document(), fold)))
        for fold in range(FOLDS)
    ]
    found = statistics_of(score_held_out(rows, catalogs, committed_split(), ESTIMATORS))
    assert (found.rows, found.skipped) == (9, 0)
    assert found.median_error < 0.05
    assert found.p90_error < 0.15


def test_a_source_with_too_few_estimates_fails_the_command(tmp_path):
    path = write(tmp_path / "rows.csv", {}, {"id": "made-2", "precision_json": '{"compute":"abacus"}'})
    result = command(path)
    assert result.exit_code == 1
    assert "made for the tests: 50% of the eligible rows" in result.stderr


def test_rows_that_the_file_itself_calls_incomplete_do_not_fail_the_command(tmp_path):
    scored = scores(tmp_path, {}, {"length_json": "{}", "eligible_hint": "lengths"})
    assert short_sources(scored) == {}


def test_without_rows_the_command_says_how_to_give_some():
    result = command()
    assert result.exit_code == 2
    assert "ROWS=path" in result.stderr


def test_an_unreadable_file_ends_the_command_with_its_line(tmp_path):
    path = write(tmp_path / "rows.csv", {"value_si": "nan"})
    result = command(path)
    assert result.exit_code == 2
    assert "line 2, column value_si: 'nan' is not finite" in result.stderr
    assert "Traceback" not in result.output


def test_the_page_names_command_digest_and_rows(tmp_path):
    page = tmp_path / "accuracy.md"
    result = command(
        EXCERPT, "--doc", page, "--anchors", EXCERPT.with_name("anchor-outputs.csv"), "--held-out"
    )
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert 'Command: `make accuracy ROWS="measured.csv" HELD_OUT=1`' in text
    digest = read_rows(EXCERPT, METRIC_UNITS).sha256
    assert f"| measured.csv | {len(EXCERPT.read_text().splitlines()) - 1} | `{digest}` |" in text
    assert "## Beside other tools" in text
    for reason in SkipReason:
        assert f"| {reason.value} |" in text
    again = tmp_path / "again.md"
    command(EXCERPT, "--doc", again, "--anchors", EXCERPT.with_name("anchor-outputs.csv"), "--held-out")
    assert again.read_text() == text


def test_exact_cases_of_other_tools_are_answered_exactly():
    """KV cache of Llama-3-8B at 8,192 tokens: 131,072 bytes a token, as every correct tool says."""
    table = beside_anchors(EXCERPT.with_name("anchor-outputs.csv"), CATALOG, ESTIMATORS)
    exact = {(line[0], line[1]): line for line in table.lines if line[2] == "hf-mem 0.5.6"}
    line = exact["Llama-3-8B; s8192; batch 1; bf16 KV", "kv_cache"]
    assert (line[4], line[7]) == ("1.07", "+0.0%")


@pytest.mark.parametrize(("text", "column"), [("a,b\n", "anchor"), ("", "anchor")])
def test_a_broken_file_of_other_tools_is_named(tmp_path, text, column):
    path = tmp_path / "anchors.csv"
    path.write_text(text)
    result = command(EXCERPT, "--anchors", path)
    assert result.exit_code == 2
    assert f"line 1, column {column}" in result.stderr


def test_probabilities_are_told_as_a_confusion_table(tmp_path):
    """16 bytes a parameter of a 7B model do not fit on one device of 80 GB, and do on eight."""
    no = {"metric": "fits", "unit_si": "bool", "value": "OOM", "value_si": "0"}
    yes = no | {"value_si": "1"}
    alone = {"layout_json": '{"data":1}', "n_gpus": "1"}
    shared = {"layout_json": '{"data":8,"sharding":"zero_3"}'}
    scored = scores(tmp_path, no | alone, yes | shared, no | shared, shared, alone)
    found = verdicts(stated_verdicts(scored))
    assert (found.not_said_not, found.fits_said_fits, found.not_said_fits, found.fits_said_not) == (
        1,
        1,
        1,
        0,
    )
    assert found.brier == pytest.approx(1 / 3, abs=0.01)
    assert found.decided == 1.0
    assert [(fits, round(chance)) for fits, chance in measured_verdicts(scored)] == [(True, 1), (True, 0)]


def test_one_width_for_all_covers_as_many_rows(tmp_path):
    """Of rows off by known factors, a width of the squared factor of the last covered one covers the same."""
    value = scores(tmp_path, {})[0].figure.value
    rows = [{"value_si": repr(value * factor)} for factor in (1.0, 1.02, 0.95, 5.0)]
    scored = scores(tmp_path, *rows)
    assert sum(one.is_covered for one in scored) == 3
    assert constant_width(scored) == pytest.approx(percentile([1.0, 1.02, 1 / 0.95, 5.0], 0.75) ** 2)


COUNTS = st.integers(0, 2**40)
CELLS = st.fixed_dictionaries(
    {
        "layout_json": st.dictionaries(
            st.sampled_from(sorted(set(LAYOUT) - {"sharding", "sequence_parallel"})), COUNTS
        ),
        "batch_json": st.dictionaries(
            st.sampled_from(sorted(set(BATCH) - {"scenario"})), COUNTS | st.floats(0, 1e12)
        ),
        "length_json": st.dictionaries(st.sampled_from(sorted(LENGTH)), COUNTS | st.floats(0, 1e12)),
        "precision_json": st.dictionaries(
            st.sampled_from(sorted(PRECISION)), st.sampled_from(["bf16", "nf4", "?"])
        ),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    base=st.sampled_from([RUN, SERVED]),
    metric=st.sampled_from(sorted(METRICS)),
    cells=CELLS,
    shape=st.sampled_from(["llama-2-7b", "of-ours", "bloom-proto-1b"]),
    devices=st.sampled_from(["", "0", "8", "2x8", "1e3"]),
)
def test_whatever_the_cells_say_a_row_is_scored_or_skipped(tmp_path, *, base, metric, cells, shape, devices):
    row = base | {name: json.dumps(value) for name, value in cells.items()}
    row |= {
        "metric": metric,
        "unit_si": METRIC_UNITS[metric],
        "value_si": "1",
        "model_id": shape,
        "n_gpus": devices,
    }
    one = score(read_rows(write(tmp_path / "rows.csv", row), METRIC_UNITS).rows, CATALOG, ESTIMATORS)[0]
    assert (one.figure is None) == (one.skipped is not None)
    if one.figure:
        assert one.figure.low <= one.figure.value <= one.figure.high


def served_row(metric, **cells):
    own = {name: value for name, value in SERVED.items() if name not in RUN or RUN[name] != value}
    return (
        {"kind": "inference", "accelerator_id": "h100-sxm", "parameter_count": ""}
        | own
        | {
            "metric": metric,
            "model_id": "qwen3-32b",
        }
        | cells
    )


def test_capturing_graphs_hands_back_what_an_iteration_kept(tmp_path):
    """Qwen3-32B under vLLM 0.11: free memory grows by 0.88 GiB, under V0 it shrinks by the graphs."""
    asked = {"layout_json": '{"tensor":1}', "unit_si": "bytes", "value_si": str(-0.88 * 2**30)}
    first, second = (
        one.figure.value / 2**30
        for one in scores(
            tmp_path,
            served_row("cuda_graph_memory_per_gpu", engine_version="0.7.3", **asked),
            served_row("cuda_graph_memory_per_gpu", engine_version="0.11.0 (V1)", **asked),
        )
    )
    assert first > 0.3
    assert second == pytest.approx(-0.88, abs=0.1)
    assert first - second == pytest.approx(8192 * (4 * 5120 + 3 * 25_600) * 2 / 2**30)


def test_devices_that_work_in_turn_each_have_room_for_a_prompt(tmp_path):
    """Sums of the peaks of one and of two devices differ by what a prompt takes while it passes."""
    cells = {
        "engine": "transformers",
        "engine_version": "4.46.0",
        "notes": "",
        "layout_json": '{"pipeline":2}',
        "length_json": '{"input_tokens":6144,"output_tokens":2048}',
    }
    packed = {"precision_json": '{"weights":"int4","quantisation":"awq","kv_cache":"bf16"}'}
    qwen3 = {"source": "Qwen3 speed benchmark", "n_gpus": "1"}
    whole, two, held, wide, rounded = (
        one.figure.value
        for one in scores(
            tmp_path,
            served_row("gpu_memory_total", n_gpus="1", **cells),
            served_row("gpu_memory_total", n_gpus="2", **cells),
            served_row("gpu_memory_total", **qwen3, **cells),
            served_row("gpu_memory_total", n_gpus="1", **cells, **packed),
            served_row("gpu_memory_total", **qwen3, **cells, **packed),
        )
    )
    passing = 6144 * (4 * 5120 + 3 * 25_600) * 2
    assert two - whole == pytest.approx(passing)
    assert whole - held == pytest.approx(passing)
    # The AWQ runs of that table hold caches an eighth larger.
    assert wide - rounded == pytest.approx(passing - 8192 * 64 * 2 * 8 * 128 * 2 / 8)
