"""Measured answers of a tenant as local evidence: the ratio of each to its estimate, computed when needed."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from service.planning.estimates.memory import MemoryFootprint
from service.planning.estimates.run_power import estimate_power
from service.planning.estimates.runs import Run, ServingRun, TrainingRun
from service.planning.estimates.serving import ServingEstimate
from service.planning.hardware.calibration.measured import MeasuredAnswer
from service.planning.hardware.local_evidence import (
    EstimateCorrection,
    LogDeviations,
    MeasuredRun,
    NearbyRuns,
    RunGroup,
    RunSetting,
    compute_fingerprint,
)
from service.planning.quantity import Quantity, scaled

MOST_ANSWERS: Final = 100
"""Most answers of one kind, model and device that count; the newest do."""
FAMILIES: Final = frozenset(
    {
        "serving_ttft",
        "serving_ttft/median",
        "serving_tpot",
        "serving_tpot/median",
        "serving_throughput",
        "serving_power",
        "serving_energy",
        "training_step",
        "training_memory",
        "inference_memory",
    }
)
"""Kinds of measured answers that an estimate has a figure for."""
_MEDIAN: Final = "/median"

DeviceKey = tuple[str | None, int | None]
"""Accelerator, and parameters of the model."""


class EstimatedAnswer(NamedTuple):
    """The estimate beside a measured answer; ``setting`` is None where its time is not that of operators."""

    setting: RunSetting | None
    value: float


class OwnRuns:
    """The measured answers of a tenant, each beside its estimate by the constants of a catalog."""

    def __init__(
        self,
        answers: Mapping[tuple[str, DeviceKey], Sequence[MeasuredAnswer]],
        deviations: Mapping[str, LogDeviations],
        known: AbstractSet[str],
        estimate: Callable[[MeasuredAnswer], EstimatedAnswer | None],
    ) -> None:
        """Takes answers by family and device; ``known`` are fingerprints that the reference set counts.

        ``estimate`` answers the question of a measured answer without these runs, None where it cannot.
        """
        self._answers, self._deviations, self._known = answers, deviations, known
        self._estimate = estimate
        self._runs: dict[tuple[str, DeviceKey], list[MeasuredRun]] = {}
        self._solved: dict[tuple[str, RunGroup], NearbyRuns] = {}

    def compute_correction(self, family: str, setting: RunSetting) -> EstimateCorrection | None:
        """Returns the correction of a kind of answer in a setting; None where no run is of its group."""
        found = self._get_neighbourhood(family, setting.group)
        return None if found is None else found.compute_correction(setting)

    def list_layouts(self, family: str, group: RunGroup) -> frozenset[Hashable]:
        """Returns the layouts of the runs of a group."""
        found = self._get_neighbourhood(family, group)
        return frozenset() if found is None else found.layouts

    def _get_neighbourhood(self, family: str, group: RunGroup) -> NearbyRuns | None:
        if (family, (group.device, group.parameter_count)) not in self._answers:
            return None
        found = self._solved.get((family, group)) or self._build_neighbourhood(family, group)
        if found is not None:
            self._solved[family, group] = found
        return found

    def _build_neighbourhood(self, family: str, group: RunGroup) -> NearbyRuns | None:
        burst = group.kind.removeprefix("serving")
        deviations = self._deviations.get(f"{family}{burst}") or self._deviations.get(family)
        key = (family, (group.device, group.parameter_count))
        if deviations is None:
            return None
        if key not in self._runs:
            built = (self._build_run(family, answer) for answer in self._answers[key][-MOST_ANSWERS:])
            self._runs[key] = [run for run in built if run is not None]
        of_group = [run for run in self._runs[key] if run.setting.group == group]
        return NearbyRuns(of_group, deviations) if of_group else None

    def _build_run(self, family: str, answer: MeasuredAnswer) -> MeasuredRun | None:
        """Returns the answer beside its estimate; None where it has none, or was counted before."""
        found = self._estimate(answer)
        if found is None or found.setting is None or not 0.0 < found.value < math.inf:
            return None
        if compute_fingerprint(family, found.setting, answer.measured) in self._known:
            return None
        return MeasuredRun(found.setting, math.log(answer.measured / found.value), answer.calibration_id)


def group_answers(
    answers: Sequence[MeasuredAnswer], find_device: Callable[[MeasuredAnswer], DeviceKey | None]
) -> dict[tuple[str, DeviceKey], list[MeasuredAnswer]]:
    """Groups the answers that have an estimate by their kind, accelerator and model."""
    found: dict[tuple[str, DeviceKey], list[MeasuredAnswer]] = {}
    for answer in answers:
        device = find_device(answer)
        if answer.family in FAMILIES and device is not None and answer.measured > 0.0:
            found.setdefault((answer.family.removesuffix(_MEDIAN), device), []).append(answer)
    return found


def read_memory_figure(estimate: MemoryFootprint) -> float | None:
    """Returns the bytes of the fullest device."""
    return None if estimate.total is None else estimate.total.value


def read_run_figure(family: str, run: Run) -> float | None:
    """Returns the figure of a run that a kind of measured answer is compared with; None if not known."""
    if isinstance(run, TrainingRun):
        if family != "training_step" or run.time is None or not run.case.batch_known:
            return None
        return scaled(run.time.seconds_per_token, run.case.step_tokens).value
    if not isinstance(run, ServingRun) or not isinstance(run.serving, ServingEstimate):
        return None
    if family.endswith(_MEDIAN):
        return _read_median(family, run.serving)
    return _get_value(_find_serving_quantity(family, run, run.serving))


def _get_value(quantity: Quantity | None) -> float | None:
    return None if quantity is None else quantity.value


def _find_serving_quantity(family: str, run: ServingRun, serving: ServingEstimate) -> Quantity | None:
    if family == "serving_ttft":
        return serving.time_to_first_token_seconds
    if family == "serving_tpot":
        return serving.time_per_output_token_seconds
    if family == "serving_throughput":
        outputs = run.case.workload.output_tokens
        return scaled(serving.requests_per_second, outputs) if outputs else None
    power = estimate_power(run)
    if family == "serving_power":
        return power.draw and power.draw.watts
    return power.energy_per_output_token_joules if family == "serving_energy" else None


def _read_median(family: str, serving: ServingEstimate) -> float | None:
    first = family.startswith("serving_ttft")
    spread = serving.spreads.first_token if first else serving.spreads.output_token
    served = serving.served
    times = served.time_to_first_token_seconds if first else served.time_per_output_token_seconds
    return None if times is None else times.p50 * spread.middle
