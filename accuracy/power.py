"""Fit of the constants of power to the mean draw of devices that served at a measured rate.

The rate comes from the row and the work of an iteration from its operators, so that only the power is tested.
"""

import copy
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accuracy.fitting import solve
from accuracy.folds import FOLDS, fold_of, group_of
from accuracy.rows import MeasuredRow
from accuracy.scoring import ask
from accuracy.serving_facts import has_pictures
from accuracy.spreads import rounded
from service.evidence.service import parse_power_calibration
from service.planning.cases import InferenceCase
from service.planning.energy.power import DeviceWork, build_iteration_work, device_watts
from service.planning.errors import PlanningError
from service.planning.estimates.devices import compute_peak
from service.planning.hardware.calibration import PowerCalibration
from service.planning.hardware.cluster import Accelerator
from service.planning.inference import IterationBatch, build_iteration_model
from service.planning.notes import AnswerNotes
from service.planning.operators import build_machine
from service.resolve import resolve_run
from service.resolve.catalog import CatalogView
from service.schemas.estimates import ThroughputEstimateRequest

Document = dict[str, Any]
Floats = NDArray[np.float64]

_LINEARISATIONS: Final = 4
_STEP: Final = 0.01
"""Step of a constant for its derivative, as a share of its range."""


class MeasuredPowerRow(NamedTuple):
    """A row of a mean draw, with the work of each device at the rate of the same run."""

    row: MeasuredRow
    watts: float
    """Draw of one device."""
    accelerator: Accelerator
    work: DeviceWork

    @property
    def group(self) -> str:
        """Group that is held out together: the rows of one source, model and device."""
        return group_of(self.row)


_READ = frozenset({"gpu_power_mean", "output_tokens_per_s"})


def drawn(rows: Iterable[MeasuredRow], catalog: CatalogView) -> Iterator[MeasuredPowerRow]:
    """Yields every row of a mean draw whose run states rate and batch, and whose model is known."""
    for one in ask([row for row in rows if row.metric in _READ], catalog):
        question = next(iter(one.shapes), None)
        if one.row.metric != "gpu_power_mean" or not isinstance(question, ThroughputEstimateRequest):
            continue
        try:
            found = _drawn(one.row, one.run, question, catalog)
        except PlanningError:
            continue
        if found is not None:
            yield found


def _drawn(
    row: MeasuredRow,
    run: Mapping[str, MeasuredRow],
    question: ThroughputEstimateRequest,
    catalog: CatalogView,
) -> MeasuredPowerRow | None:
    requests, rate = row.batch.get("average_batch"), run.get("output_tokens_per_s")
    if not requests or rate is None:
        return None
    case = resolve_run(question, catalog, AnswerNotes())
    if not isinstance(case, InferenceCase):
        return None
    cluster, layout, curves = case.cluster, case.layout, catalog.curves
    # Requests with pictures count their text prompt only.
    workload = case.workload._replace(input_tokens=case.prompt_tokens, source_tokens=None)
    model = build_iteration_model(
        case.profile, workload, layout, cluster=cluster, calibration=curves.calibration
    )
    machine = build_machine(cluster.accelerator, curves.calibration.operators)
    if model is None or machine is None or cluster.accelerator.power_limit_watts is None:
        return None
    decoding = requests * layout.expert / layout.data
    inputs, outputs = workload.input_tokens, max(workload.output_tokens, 1.0)
    ending = decoding / outputs
    time = model.compute_time(
        IterationBatch(decoding, decoding * (inputs + outputs / 2.0), ending * inputs, inputs / 2.0, ending)
    )
    number_format, peak = compute_peak(cluster, workload)
    work = build_iteration_work(
        time,
        sustained_flops_per_second=peak * machine.rates.matrix_peak[number_format],
        is_narrow=workload.is_low_precision,
    )
    return MeasuredPowerRow(
        row,
        row.value / cluster.accelerator_count,
        cluster.accelerator,
        _at_rate(work, requests / rate.value),
    )


def _at_rate(work: DeviceWork, seconds: float) -> DeviceWork:
    """Returns the work of an iteration in its measured seconds."""
    return work._replace(
        seconds=seconds,
        busy_seconds=seconds,
        communication_seconds=min(work.communication_seconds, seconds),
        unpacking_seconds=seconds * (work.unpacking_seconds > 0.0),
    )


class _GenerationRows(NamedTuple):
    """Rows of one generation as arrays."""

    generation: str
    places: NDArray[np.intp]
    work: DeviceWork
    limits: Floats


def _tables(found: Sequence[MeasuredPowerRow]) -> list[_GenerationRows]:
    generations = [one.accelerator.generation for one in found]
    made = []
    for generation in sorted(set(generations)):
        places = np.array([place for place, of in enumerate(generations) if of == generation])
        columns = zip(*[found[place].work for place in places], strict=True)
        limits = np.array([found[place].accelerator.power_limit_watts for place in places], dtype=float)
        work = DeviceWork(*[np.array(column, dtype=float) for column in columns])  # type: ignore[arg-type]
        made.append(_GenerationRows(generation, places, work, limits))
    return made


def _ratios(tables: Sequence[_GenerationRows], watts: Floats, calibration: PowerCalibration) -> Floats:
    """Returns estimated over measured draw."""
    found = np.zeros(len(watts))
    for table in tables:
        rates = calibration.get_rates(table.generation)
        limits: Any = table.limits
        found[table.places] = device_watts(table.work, limits, rates) / watts[table.places]
    return found


def ratios(found: Sequence[MeasuredPowerRow], calibration: PowerCalibration) -> list[float]:
    """Returns estimated over measured draw of each row."""
    return list(map(float, _ratios(_tables(found), np.array([one.watts for one in found]), calibration)))


def fit_constants(document: Document, found: Sequence[MeasuredPowerRow]) -> Document:
    """Fits the constants that state a range, at the least sum of weighted relative errors.

    Groups weigh by the root of their size. The draw is linear in the constants except for the limit, so the
    linear model is solved repeatedly with new derivatives. Rows whose work is unknown are scored but not
    fitted.
    """
    document, found = copy.deepcopy(document), [one for one in found if not has_pictures(one.row)]
    tables, watts = _tables(found), np.array([one.watts for one in found])
    groups = [one.group for one in found]
    weights = np.array([1.0 / math.sqrt(groups.count(group)) for group in groups])
    entries = [entry for entry in document["constants"].values() if "range" in entry]
    bounds = np.array([(entry["prior"], *entry["range"]) for entry in entries]).T

    def errors(values: Floats) -> Floats:
        for entry, value in zip(entries, values, strict=True):
            entry["value"] = float(value)
        return _ratios(tables, watts, parse_power_calibration(document)) - 1.0

    values, steps = bounds[0], _STEP * (bounds[2] - bounds[1])
    for _ in range(_LINEARISATIONS):
        at = errors(values)
        moved = [errors(values + step) - at for step in np.diag(steps)]
        values = solve(at, np.array(moved).T / steps, weights, values, bounds)
    for entry, value in zip(entries, values, strict=True):
        entry["value"] = rounded(float(value))
    return document


class PowerFit(NamedTuple):
    """Constants fitted to all groups, and estimated over measured draw of each row.

    ``held_out`` is the ratio under constants fitted without the group of the row, ``elsewhere`` without its
    generation.
    """

    document: Document
    fitted: tuple[float, ...]
    held_out: tuple[float, ...]
    elsewhere: tuple[float, ...]


def fit_power(document: Document, found: Sequence[MeasuredPowerRow]) -> PowerFit:
    """Fits all groups, then predicts each group and each generation by constants fitted to the others."""
    whole = fit_constants(document, found)
    values: dict[str, list[float]] = {name: [entry["value"]] for name, entry in whole["constants"].items()}

    def without(keys: Sequence[str]) -> list[float]:
        ratio = [math.nan] * len(found)
        for key in sorted(set(keys)):
            rest = [one for one, of in zip(found, keys, strict=True) if of != key]
            if not rest:
                continue
            made = fit_constants(document, rest)
            for name, entry in made["constants"].items():
                values[name].append(entry["value"])
            own = [place for place, of in enumerate(keys) if of == key]
            of_own = ratios([found[place] for place in own], parse_power_calibration(made))
            for place, each in zip(own, of_own, strict=True):
                ratio[place] = each
        return ratio

    held_out = without([one.group for one in found])
    for name, entry in whole["constants"].items():
        if "range" in entry:
            entry["low"], entry["high"] = min(values[name]), max(values[name])
            entry["runs"] = sum(not has_pictures(one.row) for one in found)
    elsewhere = without([one.accelerator.generation for one in found])
    fitted = ratios(found, parse_power_calibration(whole))
    return PowerFit(whole, tuple(fitted), tuple(held_out), tuple(elsewhere))


def by_fold(
    document: Document, found: Sequence[MeasuredPowerRow], split: Mapping[str, int]
) -> list[Document]:
    """Returns the values of the fitted constants without the groups of each fold."""
    folds = [fold_of(one.group, split) for one in found]
    made = []
    for out in range(FOLDS):
        rest = [one for one, fold in zip(found, folds, strict=True) if fold != out]
        constants = fit_constants(document, rest)["constants"]
        made.append({name: entry["value"] for name, entry in constants.items() if "range" in entry})
    return made


def power_held_out(document: Document, fold: int) -> Document:
    """Returns the reference set with the constants of power as fitted without one fold.

    Raises :class:`KeyError` if a fitted constant is missing, since its rows would be scored in sample.
    """
    folds = document["calibration"]["power"].get("fitted", {}).get("folds", [])
    if not folds:
        return document
    document = copy.deepcopy(document)
    for name, value in folds[fold].items():
        document["calibration"]["power"]["constants"][name]["value"] = value
    return document


class PowerFitLine(NamedTuple):
    """Errors of a set of rows in per cent: medians fitted, held out and by the other generations' constants.

    ``p90`` is for the held-out errors.
    """

    group: str
    rows: int
    fitted: float
    held_out: float
    p90: float
    elsewhere: float

    def text(self) -> str:
        """Returns the line for the command line."""
        return (
            f"{self.group:52} {self.rows:4} rows: median error {self.fitted:5.1f}% fitted, "
            f"{self.held_out:5.1f}% held out (90th percentile {self.p90:5.1f}%), "
            f"{self.elsewhere:5.1f}% by other generations alone"
        )


def lines(found: Sequence[MeasuredPowerRow], of: PowerFit) -> list[PowerFitLine]:
    """Returns one line for each device and model, one for each device, and one for all."""
    sets: dict[str, list[int]] = {}
    for place, one in enumerate(found):
        device = one.row.accelerator_id
        for name in (f"{device} {one.row.model_id}", device, "all"):
            sets.setdefault(name, []).append(place)

    def errors(values: Sequence[float], places: Sequence[int]) -> list[float]:
        return [100.0 * abs(values[place] - 1.0) for place in places if not math.isnan(values[place])]

    def median(values: Sequence[float], places: Sequence[int]) -> float:
        known = errors(values, places)
        return statistics.median(known) if known else math.nan

    return [
        PowerFitLine(
            name,
            len(places),
            median(of.fitted, places),
            median(of.held_out, places),
            float(np.percentile(errors(of.held_out, places) or [math.nan], 90)),
            median(of.elsewhere, places),
        )
        for name, places in sorted(sets.items())
    ]


def spreads(document: Document, of: PowerFit) -> Document:
    """Returns measured over estimated draw outside of the fit, in the form of the reference set.

    For devices whose generation has no rows it is the ratio under the constants of other generations, and at
    least the value of the set, since two generations of one maker say little about others.
    """
    held_out = [1.0 / ratio for ratio in of.held_out]
    elsewhere = [1.0 / ratio for ratio in of.elsewhere if not math.isnan(ratio)]
    low, high = _ends(held_out)
    wider = document["device_power_elsewhere"]
    ends = _ends(elsewhere) if elsewhere else (low, high)
    source = (
        f"Measured over estimated mean draw at a measured rate, 10th and 90th percentile of {len(held_out)} "
        "runs that served, under constants fitted without their model and device"
    )
    return {
        "device_power": {"low": low, "high": high, "source": source},
        "device_power_elsewhere": {
            **wider,
            "low": min(wider["low"], ends[0]),
            "high": max(wider["high"], ends[1]),
        },
    }


def _ends(measured: Sequence[float]) -> tuple[float, float]:
    low, high = np.percentile(measured, [10, 90])
    return rounded(min(1.0, float(low))), rounded(max(1.0, float(high)))
