"""Transfers, collectives and rates of a file as figures of a device."""

import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from service.calibrations.service import CollectiveMessage, fit_link, list_figures
from service.evidence.imports.context import AbsentFact, ImportContext
from service.formats.measurements import dcgm, nccl_tests, nvbandwidth, superbench
from service.formats.measurements.readings import MeasuredFileRun
from service.formats.offers.listed import RowError
from service.kit.http.problems import FieldError
from service.planning.hardware.calibration import OperatorQuantity
from service.planning.hardware.calibration.measured import (
    DeviceCalibration,
    MeasuredFigure,
    MeasuredLink,
    MeasuredScope,
)
from service.planning.hardware.collectives import Collective
from service.planning.hardware.links import Link, LinkKind
from service.planning.precision import NumberFormat

FORMATS: Final = frozenset({"nvbandwidth", "nccl_tests", "superbench", "dcgm_diagnostics"})
"""Formats whose runs are figures of a device."""

_OVER: Final = 1.02
_HOST: Final = ("host_to_device_memcpy_ce", "host_to_device_memcpy_sm")
_PEERS: Final = (
    "device_to_device_memcpy_write_ce",
    "device_to_device_memcpy_read_ce",
    "device_to_device_memcpy_write_sm",
    "device_to_device_memcpy_read_sm",
)
_MULTIPLIED: Final = {
    "fp64_flops": NumberFormat.FP64,
    "fp32_flops": NumberFormat.FP32,
    "tf32_tc_flops": NumberFormat.TF32,
    "bf16_tc_flops": NumberFormat.BF16,
    "fp16_tc_flops": NumberFormat.FP16,
    "fp8_tc_flops": NumberFormat.FP8,
    "int8_tc_iops": NumberFormat.INT8,
}


def build_device_calibration(run: MeasuredFileRun, context: ImportContext, source: str) -> DeviceCalibration:
    """Builds the calibration of a device from a run.

    Shares are of the rates in the catalog; the range of a transfer covers devices and pairs. Raises
    AbsentFact for facts that only the caller can know, and RowError if the run contains no figure.
    """
    known = context.find_accelerator(run)
    if known is None:
        detail = "the file names no accelerator of the catalog"
        raise AbsentFact([FieldError("/cluster", "ACCELERATOR_REQUIRED", detail)])
    part = known.accelerator
    driver = str(run.facts.get("driver_version", "")).partition(".")[0]
    row = context.catalog.links.get(f"pcie-{known.pcie_generation}-x16")
    found = DeviceCalibration(
        id="",
        scope=MeasuredScope(
            kind="cuda",
            node_id=None,
            accelerator_id=part.id,
            generation=part.generation or None,
            power_limit_watts=context.power_limit_watts,
            driver_major=int(driver) if driver.isdigit() else None,
        ),
        operators=dict(_list_product_figures(run, part.peak_flops_per_second, source)),
        links=dict(_list_link_figures(run, context, source)),
        host_link_bytes_per_second=_build_figure(
            _list_host_rates(run), row.link.bytes_per_second if row else None, source
        ),
    )
    if not found.operators and not found.links and found.host_link_bytes_per_second is None:
        raise RowError("NO_FIGURE", "the run contains no figure that an estimate uses")
    return found


def _build_figure(values: Iterable[float], limit: float | None, source: str) -> MeasuredFigure | None:
    known = list(values)
    if not known:
        return None
    if limit is not None and statistics.median(known) > _OVER * limit:
        raise RowError("ABOVE_LIMIT", "a rate exceeds the data sheet; its unit or the device is wrong")
    return MeasuredFigure(min(known), statistics.median(known), max(known), len(known), limit, source)


def _list_host_rates(run: MeasuredFileRun) -> list[float]:
    """Returns rates from pinned memory to each device alone, by copy engines rather than kernels."""
    for test in _HOST:
        found = _list_cells(run, test)
        if found:
            return found
    return [
        one.value
        for one in run.readings
        if one.metric == dcgm.TO_DEVICE
        or (one.metric == superbench.BYTES and one.of.get("metric") in ("h2d_bw", "cpu_to_gpu_by_gpu_bw"))
    ]


def _list_cells(run: MeasuredFileRun, test: str) -> list[float]:
    return [
        one.value for one in run.readings if one.metric == nvbandwidth.TRANSFER and one.of.get("test") == test
    ]


def _list_product_figures(
    run: MeasuredFileRun, peaks: Mapping[NumberFormat, float], source: str
) -> Iterator[tuple[tuple[OperatorQuantity, NumberFormat | None], MeasuredFigure]]:
    rates: dict[NumberFormat, list[float]] = {}
    for one in run.readings:
        number_format = _MULTIPLIED.get(str(one.of.get("metric")))
        if one.metric == superbench.FLOPS and number_format is not None and number_format in peaks:
            rates.setdefault(number_format, []).append(one.value)
    for number_format, values in rates.items():
        figure = _build_figure(values, peaks[number_format], source)
        if figure:
            yield (OperatorQuantity.MATRIX_PEAK, number_format), figure


def _list_link_figures(
    run: MeasuredFileRun, context: ImportContext, source: str
) -> Iterator[tuple[LinkKind, MeasuredLink]]:
    pairs = next((cells for test in _PEERS if (cells := _list_cells(run, test))), [])
    timed = [one for one in run.readings if one.metric == nccl_tests.SECONDS and one.of.get("placement")]
    if not pairs and not timed:
        return
    link = context.find_intra_node_link(run)
    if link is None:
        detail = "the catalog has no link between devices of this accelerator"
        raise AbsentFact([FieldError("/cluster/intra_node_link", "LINK_REQUIRED", detail)])
    if pairs:
        rate = _build_figure(pairs, link.bytes_per_second, source)
        if rate is not None:
            yield link.kind, MeasuredLink(rate, None, None)
    else:
        fitted = _fit_link(run, context, link, source)
        if fitted:
            yield link.kind, fitted


def _fit_link(run: MeasuredFileRun, context: ImportContext, link: Link, source: str) -> MeasuredLink | None:
    """Fits the constants of a link to collectives inside a node, out of place."""
    collective = context.collective or run.facts.get("collective")
    if collective is None:
        detail = "the file does not state which collective it measures"
        raise AbsentFact([FieldError("/collective", "COLLECTIVE_REQUIRED", detail)])
    devices = run.facts.get("cluster.accelerator_count")
    devices = devices or context.stated.get("cluster", {}).get("accelerator_count")
    if not isinstance(devices, int):
        detail = "the file does not state the number of devices"
        raise AbsentFact([FieldError("/cluster/accelerator_count", "ACCELERATOR_COUNT_REQUIRED", detail)])
    if int(str(run.facts.get("nodes", 1))) > 1:
        raise RowError("SEVERAL_NODES", "collectives over several nodes cannot be attributed to one link")
    messages = [
        CollectiveMessage(Collective(str(collective)), devices, float(one.of["bytes"]), one.value)
        for one in run.readings
        if one.metric == nccl_tests.SECONDS
        if one.of.get("placement") == "out_of_place" and float(one.of["bytes"]) > 0.0
    ]
    known = context.find_accelerator(run)
    return fit_link(
        messages,
        link,
        context.catalog.curves.calibration.links.value,
        generation=known.accelerator.generation if known else "",
        source=source,
    )


def list_figure_names(device: DeviceCalibration | None) -> list[str]:
    """Returns the names of the figures of a device, as its calibration has them."""
    return [] if device is None else [name for name, _ in list_figures(device)]
