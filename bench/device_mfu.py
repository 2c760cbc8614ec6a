"""Writes docs/device-mfu.md: the MFU of a training run on every accelerator, beside what was published.

``make mfu``. Questions state a model, devices, a sequence length and a batch, and leave the rest open.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from service.estimates.throughput import estimate_throughput
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.errors import PlanningError
from service.resolve.catalog import CatalogView, KnownAccelerator, KnownSystem
from service.schemas.estimates import ThroughputEstimateRequest

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "device-mfu.md"
PUBLISHED: Final[Mapping[str, Mapping[str, Any]]] = {
    row["accelerator"]: row for row in json.loads((ROOT / "bench" / "published_mfu.json").read_text())
}
BATCHES: Final = {8: 128, 64: 1024, 512: 1024}
"""Sequences of a step by the number of devices: half a million tokens in a node, four millions in a cluster.
"""
SEQUENCE_TOKENS: Final = 4096
LARGE_MEMORY_BYTES: Final = 60e9
"""Memory from which a cluster trains the model of 70B, otherwise of 8B."""
TOLERANCE: Final = 0.15
"""Share by which a figure may lie beyond the published ones and still be counted as within."""


class Training(NamedTuple):
    """A model, the sequences of a step and the tokens of each."""

    model: str
    batch: int
    tokens: int


ALONE: Final = Training("gpt2-medium", 512, 1024)
"""Training of a machine of its own."""


class DeviceRun(NamedTuple):
    """A training run: its MFU with interval, or the code of what is missing."""

    model: str
    devices: int
    utilization: Mapping[str, float] | None
    gap: str | None = None

    @property
    def text(self) -> str:
        """The figure with its interval, or the gap."""
        if self.utilization is None:
            return f"`{self.gap}`"
        value, low, high = (f"{100.0 * self.utilization[end]:.0f}" for end in ("value", "low", "high"))
        return f"{value}% ({low} to {high})"


def choose_model(known: KnownAccelerator, devices: int) -> str:
    """Returns the model of a size that the devices train."""
    capacity = known.accelerator.capacity_bytes
    is_large = capacity is not None and capacity.value > LARGE_MEMORY_BYTES and devices > min(BATCHES)
    return "llama-3.1-70b" if is_large else "llama-3.1-8b"


def find_precision(name: str) -> str | None:
    """Returns the precision that the published figures are of; None leaves it open, which is 16 bits."""
    published = PUBLISHED.get(name)
    return published.get("precision") if published else None


def is_clustered(known: KnownAccelerator, catalog: CatalogView) -> bool:
    """Returns true unless every system that the accelerator comes in is a small machine without a network.

    Of an accelerator without systems nobody knows: it counts among those of clusters. Slices of a torus are
    systems of hundreds. Those with memory on their chips only are refused everywhere.
    """
    if known.accelerator.is_on_chip:
        return False
    return not known.systems or any(
        system.links.inter_node_link_id or _count_joined(system, catalog) > min(BATCHES)
        for system in known.systems
    )


def _count_joined(system: KnownSystem, catalog: CatalogView) -> int:
    link = catalog.links.get(system.links.intra_node_link_id or "")
    return max(system.accelerators_per_node, link.link.joined if link else 1)


def ask_run(name: str, devices: int, catalog: CatalogView, *, is_searched: bool = True) -> DeviceRun:
    """Returns the answer of a cluster to a question that says model, devices and batch."""
    model = choose_model(catalog.accelerators[name], devices)
    training = Training(model, BATCHES[devices], SEQUENCE_TOKENS)
    return _ask(name, devices, training, catalog, is_searched=is_searched)


def count_devices(known: KnownAccelerator) -> list[int]:
    """Returns one device and all of a machine of its own."""
    return sorted({1, max(system.accelerators_per_node for system in known.systems)})


def ask_alone(name: str, devices: int, catalog: CatalogView, *, is_searched: bool = True) -> DeviceRun:
    """Returns the answer of one device or of all of its machine."""
    return _ask(name, devices, ALONE, catalog, is_searched=is_searched)


def _ask(
    name: str, devices: int, training: Training, catalog: CatalogView, *, is_searched: bool
) -> DeviceRun:
    model = training.model
    workload: dict[str, Any] = {
        "kind": "training",
        "sequence_length": training.tokens,
        "global_batch_size": training.batch,
        "total_tokens": 10**11,
    }
    if (precision := find_precision(name)) is not None:
        workload["precision"] = precision
    question = {
        "model": {"source": "catalog", "id": model},
        "cluster": {"accelerator": {"source": "catalog", "id": name}, "accelerator_count": devices},
        "workload": workload,
    }
    if not is_searched:
        workload |= {"micro_batch_size": 1, "recomputation": {"strategy": "full"}}
        question["parallelism"] = {"data": devices, "sharding": "zero_3" if devices > 1 else "none"}
    asked = ThroughputEstimateRequest.model_validate_json(json.dumps(question))
    try:
        answer = estimate_throughput(asked, catalog)
    except PlanningError as error:
        return DeviceRun(model, devices, None, error.code)
    if "DOES_NOT_FIT" in {warning["code"] for warning in answer["warnings"]}:
        return DeviceRun(model, devices, None, "DOES_NOT_FIT")
    if (found := answer.get("model_flops_utilization")) is None:
        return DeviceRun(model, devices, None, answer["gaps"][0]["code"])
    return DeviceRun(model, devices, {end: float(found[end]) for end in ("value", "low", "high")})


def ask_runs(name: str, catalog: CatalogView) -> list[DeviceRun]:
    """Returns the runs on each number of devices."""
    return [ask_run(name, devices, catalog) for devices in BATCHES]


def is_within(run: DeviceRun, published: Mapping[str, Any]) -> bool:
    """Returns true if the figure lies among the published ones, within the tolerance."""
    lowest, highest = published["low"] * (1.0 - TOLERANCE), published["high"] * (1.0 + TOLERANCE)
    return run.utilization is not None and lowest <= run.utilization["value"] <= highest


def meets(run: DeviceRun, published: Mapping[str, Any]) -> bool:
    """Returns true if the interval and the published figures have something in common."""
    found = run.utilization
    return found is not None and found["low"] <= published["high"] and found["high"] >= published["low"]


def judge(runs: list[DeviceRun], published: Mapping[str, Any] | None) -> str:
    """Returns how the answers compare with what was published, for as many devices as that was."""
    answered = [run for run in runs if run.utilization is not None]
    if not answered:
        return "gap"
    if published is None:
        return "nothing published found"
    least = published.get("least_devices", 0)
    answered = [run for run in answered if run.devices >= least]
    if all(is_within(run, published) for run in answered):
        return "within"
    return "interval meets" if all(meets(run, published) for run in answered) else "apart"


def write_page(catalog: CatalogView) -> str:
    """Returns the page."""
    names = list_names(catalog)
    refused = [name for name in names if catalog.accelerators[name].accelerator.is_on_chip]
    clustered = [name for name in names if is_clustered(catalog.accelerators[name], catalog)]
    runs = {name: ask_runs(name, catalog) for name in clustered}
    lines = [_INTRODUCTION]
    lines.append("| accelerator | precision | 8 | 64 | 512 | published | compared |")
    lines.append("|---|---|---|---|---|---|---|")
    for name, found in runs.items():
        published = PUBLISHED.get(name)
        span = f"{100 * published['low']:.0f} to {100 * published['high']:.0f}%" if published else "-"
        cells = [
            f"`{name}`",
            find_precision(name) or "16 bits",
            *(run.text for run in found),
            span,
            judge(found, published),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [_ALONE, "| accelerator | 1 | whole machine |", "|---|---|---|"]
    for name in sorted(set(names) - set(clustered) - set(refused)):
        counts = count_devices(catalog.accelerators[name])
        answers = [ask_alone(name, devices, catalog).text for devices in counts]
        lines.append(f"| `{name}` | {answers[0]} | {answers[1] if len(answers) > 1 else '-'} |")
    lines += ["", _REFUSED.format(", ".join(f"`{name}`" for name in refused)), "## Sources", ""]
    lines += [f"- `{row['accelerator']}`: {row['source']} ({row['as_of']})" for row in PUBLISHED.values()]
    return "\n".join([*lines, ""])


def list_names(catalog: CatalogView) -> list[str]:
    """Returns the ids of the accelerators."""
    return sorted({known.accelerator.id for known in catalog.accelerators.values()})


_INTRODUCTION: Final = f"""# MFU of every accelerator

Each accelerator of the catalog trains Llama 3.1 on 8, 64 and 512 devices: 70B on clusters of devices with
more than {LARGE_MEMORY_BYTES / 1e9:.0f} GB, otherwise 8B. The question states sequences of
{SEQUENCE_TOKENS:,} tokens and a batch of 128 or 1,024 of them, and leaves the system, the layout, the
micro-batch and recomputation open. `make mfu` writes this page, `tests/estimates/test_device_mfu.py` holds
it.

MFU is the model's FLOPs, with the scores that a causal mask hides as most sources count them, over the dense
peak rate of the precision; published ranges are of the models and sizes named below. "within" means that each
answer lies in the published range, up to {TOLERANCE:.0%} beyond it. "interval meets" means that its interval
has figures in common with the range: mostly no kernel of that device is measured in the reference set, and
the interval is as wide as the kernels of other devices differ. A code in place of a figure is a gap: a link
between nodes or a peak rate that nobody publishes, or a model that does not fit.
"""
_REFUSED: Final = """## Not modelled

Weights of a model lie in the memory of many chips, under a schedule of a compiler, on {}.
Questions about their rates are refused with `NOT_MODELLED`.
"""
_ALONE: Final = f"""
## Machines of their own

Cards of a workstation, systems on a chip and processors come in machines without a network for training: no
system of theirs in the catalog has a link between nodes. One device, and all of a machine, train
GPT-2 medium on {ALONE.batch} sequences of {ALONE.tokens:,} tokens.
"""


def main() -> None:
    """Writes the page."""
    PAGE.write_text(write_page(build_shipped_snapshot()), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
