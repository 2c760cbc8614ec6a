"""Constants of operators from measured devices: found again where they were planted, and held out."""

import copy
import statistics
from pathlib import Path

import pytest
from typer.testing import CliRunner

from accuracy.cli import app
from accuracy.devices import fit_devices, fit_operators, lines, operator_of, probes, ratios
from accuracy.hardware import read_hardware
from service.evidence.service import load_shipped_document, parse_operator_calibration
from service.planning.hardware.calibration import OperatorQuantity
from tests.accuracy.test_hardware import ROW, written
from tests.asking import shipped

ATTENTION = Path(__file__).parent.parent / "data" / "evidence" / "attention.csv"


def document():
    return load_shipped_document()["calibration"]["operators"]


def accelerators():
    return {name: known.accelerator for name, known in shipped().accelerators.items()}


def multiplications(tmp_path, device="a100-sxm-80gb", source="a guide", planted=None):
    """Rows of a device whose constants are ``planted``, as measured without any error."""
    calibration = parse_operator_calibration(planted or document())
    rows = [
        {
            **ROW,
            "id": f"{source} {side}",
            "source": source,
            "accelerator_id": device,
            "shape_or_size": f"{side}x{side}x{side}",
        }
        for side in (1024, 1536, 2048, 4096, 6000, 8192, 16384)
    ]
    found = probes(read_hardware(written(tmp_path, *rows)).rows, accelerators())
    exact = ratios(found, calibration)
    values = [probe.row.value * ratio for probe, ratio in zip(found, exact, strict=True)]
    rows = [{**row, "value_si": repr(value)} for row, value in zip(rows, values, strict=True)]
    return probes(read_hardware(written(tmp_path, *rows)).rows, accelerators())


def entry(of, quantity, generation=None):
    return next(
        each
        for each in of["constants"]
        if (each["quantity"], each.get("generation")) == (quantity, generation)
    )


def test_planted_constants_are_found_again(tmp_path):
    planted = copy.deepcopy(document())
    entry(planted, "matrix_peak", "ampere")["value"] = 0.78
    entry(planted, "kernel_seconds")["value"] = 6e-6
    found = multiplications(tmp_path, planted=planted)
    assert ratios(found, parse_operator_calibration(planted)) == pytest.approx([1.0] * len(found))
    fitted = fit_operators(document(), found)
    assert entry(fitted, "matrix_peak", "ampere")["value"] == pytest.approx(0.78, rel=0.01)
    assert entry(fitted, "kernel_seconds")["value"] == pytest.approx(6e-6, rel=0.15)
    assert max(abs(ratio - 1.0) for ratio in ratios(found, parse_operator_calibration(fitted))) < 0.05


def test_constants_that_no_row_moves_stay_where_their_source_puts_them(tmp_path):
    fitted = fit_operators(document(), multiplications(tmp_path))
    for quantity, generation in (("bandwidth", "hopper"), ("attention_peak", "ampere"), ("gather_row", None)):
        known = entry(fitted, quantity, generation)
        assert known["value"] == known["prior"] == entry(document(), quantity, generation)["prior"]


def test_a_generation_held_out_whole_takes_the_pooled_constant(tmp_path):
    """What a device of a generation without any rows would be told."""
    (group,) = {probe.row.group for probe in multiplications(tmp_path)}
    fit = fit_devices(document(), multiplications(tmp_path))
    names = [(each["quantity"], each.get("generation")) for each in fit.without[group]["constants"]]
    assert ("matrix_peak", "ampere") not in names
    assert ("matrix_peak", None) in names
    assert fit.tried[-1].fitted != fit.tried[-1].held_out


def test_each_group_is_predicted_without_itself(tmp_path):
    planted = copy.deepcopy(document())
    entry(planted, "matrix_peak", "ampere")["value"] = 0.76
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first = multiplications(tmp_path / "one", source="one")
    second = multiplications(tmp_path / "two", source="two", planted=planted)
    fit = fit_devices(document(), [*first, *second])
    assert fit.without.keys() == {("one", "a100-sxm-80gb"), ("two", "a100-sxm-80gb")}
    share = entry(fit.document, "matrix_peak", "ampere")
    assert share["low"] == pytest.approx(0.76, rel=0.02)
    assert share["low"] <= share["value"] <= share["high"]
    assert share["runs"] == len(first) + len(second)
    found = {(line.kind, line.group): line for line in lines(fit.tried)}
    assert found["gemm", "all"].rows == len(first) + len(second)
    assert found["gemm", "two on a100-sxm-80gb"].held_out > 3.0


def test_collectives_are_no_operators(tmp_path):
    rows = written(tmp_path, {**ROW, "kind": "collective", "metric": "busbw", "unit_si": "bytes/s"})
    (row,) = read_hardware(rows).rows
    assert operator_of(row) is None


def test_devices_outside_the_catalog_are_left_out(tmp_path):
    rows = written(tmp_path, {**ROW, "accelerator_id": "?a100-sxm"})
    assert probes(read_hardware(rows).rows, accelerators()) == []


def test_shipped_constants_on_published_attention():
    """Shah et al. 2024, figures 5 and 6: FlashAttention-2 and 3 on an H100, forward and backward."""
    found = probes(read_hardware(ATTENTION).rows, accelerators())
    assert len(found) == 72
    of = ratios(found, parse_operator_calibration(document()))
    assert statistics.median(abs(ratio - 1.0) for ratio in of) < 0.1


def test_the_command_prints_errors_and_writes_the_set(tmp_path):
    out = tmp_path / "reference.json"
    result = CliRunner().invoke(app, ["devices", str(ATTENTION), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "attention" in result.output
    assert '"calibration"' in out.read_text()


def test_the_command_names_what_it_cannot_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id\n")
    result = CliRunner().invoke(app, ["devices", str(path)])
    assert result.exit_code == 2
    assert "the header lacks" in result.output


def test_every_quantity_is_in_the_shipped_set():
    known = {each["quantity"] for each in document()["constants"]}
    assert known == {quantity.value for quantity in OperatorQuantity}
