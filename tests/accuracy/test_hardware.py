"""Rows of measured rates of devices and links."""

import csv
import io

import pytest

from accuracy.hardware import HARDWARE_COLUMNS, by_metric, read_hardware
from accuracy.lines import RowsError
from service.planning.precision import NumberFormat

ROW = {
    "id": "one",
    "source": "a guide",
    "kind": "gemm",
    "gpu": "A100-SXM4-80GB",
    "n_gpus": "1",
    "n_nodes": "1",
    "op": "cuBLASLt GEMM",
    "dtype": "fp16",
    "shape_or_size": "1024x2145x512 (m x n x k)",
    "metric": "achieved_tflops",
    "value": "119.4",
    "notes": "",
    "accelerator_id": "a100-sxm-80gb",
    "value_si": "119400000000000",
    "unit_si": "FLOP/s",
}


def written(tmp_path, *rows):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, sorted(HARDWARE_COLUMNS))
    writer.writeheader()
    writer.writerows(rows)
    path = tmp_path / "hardware.csv"
    path.write_text(text.getvalue())
    return path


def test_a_multiplication(tmp_path):
    (row,) = read_hardware(written(tmp_path, ROW)).rows
    assert row.shape == (1024, 2145, 512)
    assert row.number_format is NumberFormat.FP16
    assert (row.value, row.unit, row.devices) == (119.4e12, "FLOP/s", 1)
    assert row.group == ("a guide", "a100-sxm-80gb")


@pytest.mark.parametrize(
    ("printed", "size"),
    [
        ("8GiB", 2**33),
        ("32KiB", 2**15),
        ("1KB", 1024),
        ("65KB", 2**16),
        ("132KB", 2**17),
        ("536MB", 2**29),
        ("8GB", 2**33),
        ("700GB", 700e9),
        ("1024x1024x1024", None),
    ],
)
def test_sizes_of_messages(tmp_path, printed, size):
    (row,) = read_hardware(written(tmp_path, {**ROW, "shape_or_size": printed})).rows
    assert row.message_bytes == size


def test_settings_of_an_attention(tmp_path):
    path = written(tmp_path, {**ROW, "shape_or_size": "batch 2; seq 8192; head_dim 64"})
    assert read_hardware(path).rows[0].settings == {"batch": 2, "seq": 8192, "head_dim": 64}


def test_rows_of_a_metric_together(tmp_path):
    other = {**ROW, "id": "two", "metric": "bandwidth", "unit_si": "bytes/s"}
    odd = {**ROW, "id": "three", "metric": "noise", "unit_si": "dB"}
    read = read_hardware(written(tmp_path, ROW, other, odd))
    found = by_metric(read.rows)
    assert [row.id for row in found["bandwidth"]] == ["two"]
    assert len(read.warnings) == 1
    assert "noise" in read.warnings[0]


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"value_si": "nan"}, "value_si"),
        ({"value_si": "-1"}, "value_si"),
        ({"unit_si": "bytes/s"}, "unit_si"),
        ({"id": ""}, "id"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, change, column):
    with pytest.raises(RowsError) as caught:
        read_hardware(written(tmp_path, {**ROW, **change}))
    assert (caught.value.line, caught.value.column) == (2, column)


def test_what_is_odd_is_warned_of(tmp_path):
    odd = {**ROW, "id": "two", "dtype": "fp3"}
    nowhere = {**ROW, "id": "three", "n_gpus": ""}
    nothing = {**ROW, "id": "four", "value_si": "0.0"}
    read = read_hardware(written(tmp_path, ROW, odd, nowhere, nothing))
    assert [(row.id, row.number_format) for row in read.rows] == [
        ("one", NumberFormat.FP16),
        ("two", None),
        ("four", NumberFormat.FP16),
    ]
    assert len(read.warnings) == 2


def test_the_same_id_twice(tmp_path):
    with pytest.raises(RowsError, match="stands twice"):
        read_hardware(written(tmp_path, ROW, ROW))


def test_a_missing_column(tmp_path):
    path = tmp_path / "hardware.csv"
    path.write_text("id,source\n")
    with pytest.raises(RowsError) as caught:
        read_hardware(path)
    assert (caught.value.line, caught.value.column) == (1, "accelerator_id")
