"""The links of a cluster: those of the question, else of the reference system; none is made up."""

import json
from dataclasses import replace

import pytest

from bench.device_mfu import is_clustered
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.errors import PlanningError
from service.planning.hardware.links import LinkKind
from service.planning.notes import AnswerNotes
from service.resolve.hardware import resolve_cluster
from service.schemas.references import ClusterInput

CATALOG = build_shipped_snapshot()
GB = 1e9


def cluster(accelerator="h100-sxm", count=64, *, communicates=True, reach=None, catalog=CATALOG, **members):
    if isinstance(accelerator, str):
        accelerator = {"source": "catalog", "id": accelerator}
    given = ClusterInput.model_validate_json(
        json.dumps({"accelerator": accelerator, "accelerator_count": count, **members})
    )
    notes = AnswerNotes()
    return resolve_cluster(given, catalog, notes, communicates=communicates, reach=reach), notes


def codes(notes):
    return [(warning["code"], warning["pointer"]) for warning in notes.warnings]


def cited(notes):
    return {source["pointer"]: source["id"] for source in notes.sources}


def test_a_reference_system_has_its_links_in_the_catalog():
    found, notes = cluster()
    assert (found.intra_node_link.kind, found.inter_node_link.kind) == (LinkKind.NVLINK, LinkKind.INFINIBAND)
    assert found.inter_node_link.bytes_per_second == 50 * GB
    assert found.intra_node_link.in_network
    assert found.domain == 8
    assert cited(notes)["/cluster/intra_node_link"] == "nvlink-4"
    assert cited(notes)["/cluster/inter_node_link"] == "infiniband-ndr"
    assert codes(notes) == []


def test_devices_share_the_interfaces_of_their_node():
    """DGX-1: four of 12.5 GB/s for eight devices."""
    found, _ = cluster("v100-sxm2-16gb")
    assert found.inter_node_link.bytes_per_second == 6.25 * GB


def test_a_rack_is_one_domain():
    found, notes = cluster("gb200", 144, accelerators_per_node=4)
    assert found.domain == 72
    assert cited(notes)["/cluster/intra_node_link"] == "nvlink-5-nvl72"


def test_links_of_the_question_win():
    found, notes = cluster(
        intra_node_link={"source": "catalog", "id": "pcie-5-x16"},
        inter_node_link={"source": "catalog", "id": "roce-100g"},
        network_interfaces_per_node=2,
    )
    assert found.intra_node_link.kind is LinkKind.PCIE
    assert found.inter_node_link.bytes_per_second == 2 * 12.5 * GB / 8
    assert found.inter_node_link.latency_seconds == 1e-5
    assert cited(notes)["/cluster/inter_node_link"] == "roce-100g"


def test_a_link_by_its_figures():
    specification = {
        "kind": "nvlink",
        "bandwidth_bytes_per_second": 1800 * GB,
        "latency_seconds": 0.0,
        "joined_count": 144,
        "in_network_reduction": True,
    }
    found, notes = cluster(
        count=288, intra_node_link={"source": "specification", "specification": specification}
    )
    assert found.intra_node_link.bytes_per_second == 1800 * GB
    assert found.intra_node_link.latency_seconds == 0.0
    assert found.domain == 144
    assert "/cluster/intra_node_link" not in cited(notes)


def test_an_unknown_link_is_refused():
    with pytest.raises(PlanningError) as refused:
        cluster(inter_node_link={"source": "catalog", "id": "carrier-pigeon"})
    assert refused.value.pointer == "/cluster/inter_node_link/id"


@pytest.mark.parametrize(("count", "kind"), [(2, LinkKind.NVLINK), (8, LinkKind.PCIE)])
def test_a_bridge_between_two_cards_is_no_link_of_eight(count, kind):
    found, _ = cluster("h100-nvl", count)
    assert found.intra_node_link.kind is kind


def refusal(accelerator, count):
    with pytest.raises(PlanningError) as caught:
        cluster(accelerator, count)
    return caught.value.code, caught.value.pointer


UNKNOWN = {"source": "specification", "specification": {"name": "tomorrow"}}


def test_a_superchip_reaches_no_other_over_its_own_link():
    """Without a system, GH200 has only the link to its processor."""
    known = replace(CATALOG.accelerators["gh200-96gb"], systems=())
    alone = replace(CATALOG, accelerators={**CATALOG.accelerators, "gh200-96gb": known})
    with pytest.raises(PlanningError) as caught:
        cluster("gh200-96gb", 8, catalog=alone)
    assert (caught.value.code, caught.value.pointer) == ("LINK_UNKNOWN", "/cluster/intra_node_link")


@pytest.mark.parametrize(
    ("accelerator", "system", "domain", "interface_bytes"),
    [
        ("h100-sxm", "p5.48xlarge", 8, 50 * GB),
        ("h100-sxm", "a3-highgpu-8g", 8, 12.5 * GB),
        ("gb200", "GB200 NVL36", 36, 50 * GB),
        ("trainium2", "trn2 ultraserver", 64, 25 * GB),
        ("gh200-96gb", "BullSequana XH3000", 4, 25 * GB),
    ],
)
def test_a_question_names_another_system(accelerator, system, domain, interface_bytes):
    found, notes = cluster(accelerator, 256, system=system)
    assert found.domain == domain
    assert found.inter_node_link.bytes_per_second == interface_bytes
    assert notes.defaults == []


@pytest.mark.parametrize(
    ("count", "members", "named"),
    [
        (64, {}, ["DGX H100"]),
        (64, {"accelerators_per_node": 4}, ["DGX H100"]),
        (1, {}, []),
        (
            64,
            {
                "accelerators_per_node": 8,
                "intra_node_link": {"source": "catalog", "id": "nvlink-4"},
                "inter_node_link": {"source": "catalog", "id": "roce-100g"},
            },
            [],
        ),
    ],
)
def test_the_system_that_a_question_leaves_open_is_named_where_it_is_used(count, members, named):
    _, notes = cluster(count=count, **members)
    assert [one["value"] for one in notes.defaults if one["pointer"] == "/cluster/system"] == named


@pytest.mark.parametrize(
    "accelerator", ["h100-sxm", {"source": "specification", "specification": {"name": "x"}}]
)
def test_a_system_that_the_accelerator_does_not_have_is_refused(accelerator):
    with pytest.raises(PlanningError) as caught:
        cluster(accelerator, 16, system="GB200 NVL72")
    assert (caught.value.code, caught.value.pointer) == ("UNKNOWN_REFERENCE", "/cluster/system")
    assert ("DGX H100" in caught.value.detail) == isinstance(accelerator, str)


@pytest.mark.parametrize(("count", "name"), [(8, "intra_node_link"), (64, "intra_node_link")])
def test_a_link_that_nobody_names_is_not_made_up(count, name):
    assert refusal(UNKNOWN, count) == ("LINK_UNKNOWN", f"/cluster/{name}")


@pytest.mark.parametrize(("reach", "missing"), [(1, None), (8, "intra"), (64, "intra")])
def test_devices_that_wait_for_none_need_no_link(reach, missing):
    """64 devices in nodes of eight: replicas of one device each wait for no other."""
    if missing is None:
        assert cluster(UNKNOWN, 64, reach=reach)[0].accelerator_count == 64
        return
    with pytest.raises(PlanningError) as caught:
        cluster(UNKNOWN, 64, reach=reach)
    assert caught.value.pointer == f"/cluster/{missing}_node_link"


def test_only_links_that_are_used_have_to_be_known():
    assert not codes(cluster(UNKNOWN, 1)[1])
    named = {"intra_node_link": {"source": "catalog", "id": "nvlink-4"}}
    assert not codes(cluster(UNKNOWN, 8, **named)[1])
    with pytest.raises(PlanningError) as caught:
        cluster(UNKNOWN, 9, **named)
    assert caught.value.pointer == "/cluster/inter_node_link"


@pytest.mark.parametrize(
    ("accelerator", "per_node", "domain", "interface_bytes"),
    [
        ("mi300x", 8, 8, 50 * GB),
        ("gaudi3", 8, 8, 75 * GB),
        ("trainium2", 16, 16, 25 * GB),
        ("tpu-v5e", 8, 256, 3.125 * GB),
        ("tpu-v5p", 4, 1024, 6.25 * GB),
        ("tpu-v6e", 8, 256, 12.5 * GB),
        ("gb200", 4, 72, 50 * GB),
        ("l40s", 8, 8, 25 * GB),
    ],
)
def test_a_cluster_is_made_of_reference_systems(accelerator, per_node, domain, interface_bytes):
    found, _ = cluster(accelerator, 1024)
    assert (found.accelerators_per_node, found.domain) == (per_node, domain)
    assert found.inter_node_link.bytes_per_second == interface_bytes


def test_links_that_do_not_enter_an_answer_are_not_used():
    _, notes = cluster(
        communicates=False,
        intra_node_link={"source": "catalog", "id": "nvlink-4"},
        network_interfaces_per_node=4,
    )
    assert codes(notes) == [
        ("NOT_USED", "/cluster/intra_node_link"),
        ("NOT_USED", "/cluster/network_interfaces_per_node"),
    ]
    assert "/cluster/intra_node_link" not in cited(notes)


def has_links(accelerator):
    """Whether the catalog knows the links of two nodes; they are faster inside a node than between nodes."""
    try:
        found, _ = cluster(accelerator, 16)
    except PlanningError:
        return False
    return found.intra_node_link.bytes_per_second > found.inter_node_link.bytes_per_second > 0.0


def test_at_most_a_third_of_the_accelerators_of_clusters_has_no_link_between_nodes():
    names = [name for name, known in CATALOG.accelerators.items() if is_clustered(known, CATALOG)]
    assert sum(not has_links(name) for name in names) < len(names) / 3
