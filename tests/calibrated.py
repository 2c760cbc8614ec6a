"""Calibrations of devices that reach given shares of what the reference set expects of them."""

from dataclasses import replace

from service.planning.hardware.calibration import OperatorQuantity, ServingQuantity
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure, MeasuredScope
from service.planning.precision import NumberFormat

FORMATS = (NumberFormat.BF16, NumberFormat.FP8)
STREAMED = (ServingQuantity.WEIGHT_BANDWIDTH, ServingQuantity.CACHE_BANDWIDTH)


def figure(value, limit=None, spread=0.01):
    """A figure with an even range, in the unit of its value."""
    return MeasuredFigure(value * (1.0 - spread), value, value * (1.0 + spread), 7, limit, "measured")


def scope_of(accelerator, node="node-1", **changes):
    """What an accelerator of the catalog was measured as."""
    whole = MeasuredScope(
        "cuda", node, accelerator.id, accelerator.generation, accelerator.power_limit_watts, 570
    )
    return whole._replace(**changes)


def a_set(catalog, name, *, streaming=1.0, matrices=1.0, skinny=True, id="set-1", spread=0.01, **scope):  # noqa: A002
    """Figures of an accelerator: streams and large products at so much of the expected rate."""
    accelerator, known = catalog.accelerators[name].accelerator, catalog.curves.calibration
    sheet, generation = accelerator.bandwidth_bytes_per_second, accelerator.generation
    streams = sheet * known.operators.find_share(OperatorQuantity.BANDWIDTH, generation).value * streaming
    operators = {(OperatorQuantity.BANDWIDTH, None): figure(streams, sheet, spread)}
    for number_format in FORMATS:
        if peak := accelerator.peak_flops_per_second.get(number_format):
            share = known.operators.find_share(OperatorQuantity.MATRIX_PEAK, generation, number_format).value
            rate = figure(peak * share * matrices, peak, spread)
            operators[OperatorQuantity.MATRIX_PEAK, number_format] = rate
    serving = {each: figure(streams * known.serving.find_share(each, None).value, sheet) for each in STREAMED}
    return DeviceCalibration(
        id=id,
        scope=scope_of(accelerator, **scope),
        operators=operators,
        serving=serving if skinny else {},
    )


def with_sets(catalog, *sets):
    """The catalog of a tenant that has measured these."""
    return replace(catalog, calibrations=sets)
