"""The reader of measured rows: every column of the grammar, and files that break it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accuracy.lines import RowsError
from accuracy.metrics import METRIC_UNITS
from accuracy.rows import HINTS, printed_half_unit, read_rows
from tests.accuracy.measured import RUN, write


def read(path, *rows, **options):
    return read_rows(write(path / "rows.csv", *rows, **options), METRIC_UNITS)


def test_a_row_is_read_column_by_column(tmp_path):
    found = read(
        tmp_path,
        {
            "layout_json": '{"tensor":8,"zero_group":4,"sharding":"zero_1","sequence_parallel":true}',
            "precision_json": '{"compute":"fp8","quantisation":"fp8-rowwise"}',
            "batch_json": '{"average_batch":3.5,"scenario":"offline"}',
            "length_json": '{"input_tokens":1024.5}',
            "trainable_parameters": "4194304",
            "eligible_hint": "accelerator,layout",
            "recomputation": "unknown",
        },
    )
    row = found.rows[0]
    assert row.layout == {"tensor": 8, "zero_group": 4, "sharding": "zero_1", "sequence_parallel": True}
    assert row.precision["quantisation"] == "fp8-rowwise"
    assert row.batch["average_batch"] == 3.5
    assert row.length["input_tokens"] == 1024.5
    assert row.trainable_parameters == 4194304
    assert row.active_parameter_count is None
    assert row.missing == {"accelerator", "layout"}
    assert row.value == 30e9
    assert found.warnings == ()
    assert len(found.sha256) == 64


def test_a_disaggregated_layout_is_an_object_for_each_side(tmp_path):
    layout = {"prefill": {"tensor": 4, "workers": 2}, "decode": {"attention_data": 8, "batch_size": 64}}
    assert read(tmp_path, {"layout_json": json.dumps(layout)}).rows[0].layout == layout


BROKEN = [
    ({"layout_json": '{"tensor":'}, "layout_json", "is not JSON"),
    ({"layout_json": "[" * 100_000}, "layout_json", "is not JSON"),
    ({"layout_json": "[1]"}, "layout_json", "is not a JSON object"),
    ({"layout_json": '{"tensor":"8"}'}, "layout_json", "member tensor is not a whole number"),
    ({"layout_json": '{"tensor":-1}'}, "layout_json", "member tensor is not a whole number"),
    ({"layout_json": '{"sharding":"zero_9"}'}, "layout_json", "sharding 'zero_9' is none of"),
    ({"layout_json": '{"prefill":{"tensor":0.5}}'}, "layout_json", "member tensor is not a whole number"),
    ({"batch_json": '{"micro_batch_size":NaN}'}, "batch_json", "is not JSON"),
    ({"batch_json": '{"micro_batch_size":1e999}'}, "batch_json", "member micro_batch_size is not a number"),
    ({"length_json": '{"sequence_length":true}'}, "length_json", "member sequence_length is not a number"),
    ({"precision_json": '{"weights":16}'}, "precision_json", "member weights is not a text"),
    ({"value_si": "nan"}, "value_si", "'nan' is not finite"),
    ({"value_si": "30 GB"}, "value_si", "'30 GB' is not a number"),
    ({"value_si": ""}, "value_si", "is empty"),
    ({"unit_si": "furlong"}, "unit_si", "'furlong' is none of"),
    ({"unit_si": "s"}, "unit_si", "s is not the unit of peak_memory_per_gpu, bytes"),
    ({"metric": "fits", "unit_si": "bool", "value_si": "2"}, "value_si", "a bool is 0 or 1"),
    ({"per": "galaxy"}, "per", "'galaxy' is none of"),
    ({"kind": "guessing"}, "kind", "'guessing' is none of"),
    ({"recomputation": "maybe"}, "recomputation", "'maybe' is none of"),
    ({"eligible_hint": "layout,luck"}, "eligible_hint", "'luck' is none of"),
    ({"parameter_count": "7.5"}, "parameter_count", "'7.5' is not a whole number"),
    ({"model_id": " "}, "model_id", "is empty"),
    ({"id": "made-0001"}, "id", "'made-0001' stands twice"),
]


@pytest.mark.parametrize(("cells", "column", "detail"), BROKEN, ids=[f"{c}-{d}" for _, c, d in BROKEN])
def test_a_broken_cell_is_named_by_line_and_column(tmp_path, cells, column, detail):
    with pytest.raises(RowsError) as caught:
        read(tmp_path, {}, {"id": "made-0002"} | cells)
    assert (caught.value.line, caught.value.column) == (3, column)
    assert caught.value.detail.startswith(detail)


@pytest.mark.parametrize("column", ["value_si", "run_id", "layout_json", "source", "value"])
def test_a_missing_column_is_named(tmp_path, column):
    with pytest.raises(RowsError) as caught:
        read(tmp_path, {}, without=(column,))
    assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"", 1),
        (b"id,source\n1\n", 1),
        (b"\xff\xfe\x00", 0),
        (b"\x00", 1),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, line):
    path = tmp_path / "rows.csv"
    path.write_bytes(text)
    with pytest.raises(RowsError) as caught:
        read_rows(path, METRIC_UNITS)
    assert caught.value.line == line


def test_a_line_with_too_few_cells_names_the_first_that_lacks(tmp_path):
    path = write(tmp_path / "rows.csv", {})
    path.write_text(path.read_text() + "made-0002,made\n")
    with pytest.raises(RowsError, match="line 3, column source_ref: the line has 2 cells"):
        read_rows(path, METRIC_UNITS)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RowsError, match="No such file"):
        read_rows(tmp_path / "none.csv", METRIC_UNITS)


def test_what_is_not_known_is_kept_and_said(tmp_path):
    found = read(tmp_path, {"metric": "happiness", "layout_json": '{"spread":3}'})
    assert len(found.rows) == 1
    assert [warning.partition("line ")[2] for warning in found.warnings] == [
        "2, column metric: 'happiness' is not known; the row is not scored",
        "2, column layout_json: member 'spread' is not known",
    ]


@given(
    column=st.sampled_from(["layout_json", "precision_json", "batch_json", "length_json", "value_si", "per"]),
    text=st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00"), max_size=40),
)
def test_no_cell_ends_in_a_traceback(tmp_path_factory, column, text):
    path = write(tmp_path_factory.mktemp("rows") / "rows.csv", {column: text})
    try:
        read_rows(path, METRIC_UNITS)
    except RowsError as error:
        assert error.column == column  # noqa: PT017
        assert error.line == 2  # noqa: PT017


@given(hints=st.sets(st.sampled_from(sorted(HINTS))))
def test_every_hint_is_read(tmp_path_factory, hints):
    found = read(tmp_path_factory.mktemp("rows"), {"eligible_hint": ",".join(sorted(hints))})
    assert found.rows[0].missing == hints


@pytest.mark.parametrize(
    ("value", "value_si", "half"), [("30", "30e9", 0.5e9), ("14.99", "14.99e9", 5e6), ("OOM", "0", 0.0)]
)
def test_what_a_source_prints_is_known_to_its_last_digit(tmp_path, value, value_si, half):
    row = read(tmp_path, RUN | {"value": value, "value_si": value_si}).rows[0]
    assert printed_half_unit(row) == pytest.approx(half)
