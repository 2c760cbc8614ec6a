"""Every accelerator of the catalog trains at a published MFU, at one whose interval meets it, or is a gap."""

import re
from functools import cache

import pytest

from bench.device_mfu import (
    PAGE,
    PUBLISHED,
    ask_alone,
    ask_run,
    count_devices,
    find_precision,
    is_clustered,
    is_within,
    judge,
    list_names,
)
from tests.asking import ask, codes, question, shipped

NAMES = list_names(shipped())
REFUSED = [name for name in NAMES if shipped().accelerators[name].accelerator.is_on_chip]
CLUSTERED = [name for name in NAMES if is_clustered(shipped().accelerators[name], shipped())]
ALONE = sorted(set(NAMES) - set(CLUSTERED) - set(REFUSED))
SAMPLE = 24
"""Of so many machines of their own, one has its configuration searched on all of its devices."""
ANSWERED = {
    "a100-sxm-40gb",
    "a100-sxm-80gb",
    "h100-sxm",
    "h200-sxm",
    "b200-sxm",
    "gb200",
    "mi300x",
    "tpu-v5e",
    "tpu-v5p",
    "tpu-v6e",
    "trainium2",
    "gaudi3",
}
"""Accelerators that most clusters of today are made of: none may be a gap."""
MET = {"trainium2"}
"""Those of them whose published figures lie in the interval of the answer and apart from its value."""


@cache
def runs_of(name):
    """Runs in clusters of two sizes."""
    return [ask_run(name, devices, shipped()) for devices in (64, 512)]


@cache
def stated_runs_of(name):
    """The same with a layout that the question states: a search takes a hundred times as long."""
    return [ask_run(name, devices, shipped(), is_searched=False) for devices in (64, 512)]


def test_no_answer_is_apart_from_what_was_published():
    assert [name for name, published in PUBLISHED.items() if judge(runs_of(name), published) == "apart"] == []


def test_common_accelerators_are_within_what_was_published():
    for name in ANSWERED & PUBLISHED.keys() - MET:
        assert all(is_within(run, PUBLISHED[name]) for run in runs_of(name)), name
    assert {judge(runs_of(name), PUBLISHED[name]) for name in MET} == {"interval meets"}


@pytest.mark.parametrize(
    ("model", "published", "answered"), [("llama-2-7b", 0.242, 0.225), ("llama-2-70b", 0.25, 0.42)]
)
def test_trainium_2_in_the_layout_of_the_published_runs(model, published, answered):
    """AXLearn's trainer for Trainium 2 shards all state over the chips (``fsdp=-1``), a sequence each.

    Left open, the layout is another one, so that most of the distance to the published 7B is the layout's.
    The 70B was measured at 0.6 of what is answered: no documentation found tells why.
    """
    run = {"sequence_length": 4096, "global_batch_size": 1024, "total_tokens": 10**12}
    asked = question(model, "trainium2", 1024, **run)
    layout = {"tensor": 1, "pipeline": 1, "data": 1024, "sharding": "zero_3"}
    found = ask(shipped(), "throughput", {**asked, "parallelism": layout})["model_flops_utilization"]
    assert found["low"] < published < found["high"]
    assert found["value"] == pytest.approx(answered, abs=0.005)
    assert found["value"] < ask(shipped(), "throughput", asked)["model_flops_utilization"]["value"]


def test_common_accelerators_are_answered():
    assert {name for name in ANSWERED if any(run.utilization is None for run in runs_of(name))} == set()


@pytest.mark.parametrize("name", sorted(ANSWERED))
def test_common_accelerators_train_at_plausible_rates_in_16_bits(name):
    for run in runs_of(name):
        utilization = run.utilization
        if find_precision(name) not in (None, "bf16"):
            work = {"sequence_length": 4096, "global_batch_size": 1024, "total_tokens": 10**12}
            answer = ask(shipped(), "throughput", question(run.model, name, run.devices, **work))
            assert "DOES_NOT_FIT" not in codes(answer["warnings"])
            utilization = answer["model_flops_utilization"]
        assert 0.2 < utilization["value"] < 0.7


def test_at_most_a_third_of_the_accelerators_of_clusters_are_gaps():
    gaps = [name for name in CLUSTERED if any(run.utilization is None for run in stated_runs_of(name))]
    assert len(gaps) <= len(CLUSTERED) / 3


def test_what_clusters_are_made_of_is_not_a_machine_of_its_own():
    """Nothing with a published run, and no part whose systems nobody knows, leaves the count of gaps."""
    assert ANSWERED | PUBLISHED.keys() <= set(CLUSTERED)
    assert {"mi300a", "ascend-910b", "gpu-max-1550"} <= set(CLUSTERED)
    assert {"rtx-3060", "apple-m4-max-128gb", "jetson-thor-128gb"} <= set(ALONE)
    assert "gb10" in CLUSTERED


@pytest.mark.parametrize("name", ALONE)
def test_machines_of_their_own_train_at_plausible_rates_or_are_gaps(name):
    for devices in count_devices(shipped().accelerators[name]):
        is_searched = devices == 1 or ALONE.index(name) % SAMPLE == 0
        run = ask_alone(name, devices, shipped(), is_searched=is_searched)
        if run.utilization is None:
            assert run.gap in {"PEAK_RATE_UNKNOWN", "DOES_NOT_FIT", "BANDWIDTH_UNKNOWN"}
        else:
            assert 0.02 < run.utilization["value"] < 0.7


def test_the_page_shows_accelerators_of_the_catalog():
    """A new accelerator is one file; the page has it from the next `make mfu` on."""
    shown = set(re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert ANSWERED | PUBLISHED.keys() <= shown <= set(NAMES)
