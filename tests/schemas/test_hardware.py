"""The links of a cluster: those of the question, of the catalog, or assumed and said to be."""

import json

import pytest

from service.evidence.snapshot import build_shipped_snapshot
from service.planning.errors import PlanningError
from service.planning.hardware.links import LinkKind
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.resolve.hardware import resolve_cluster
from service.schemas.references import ClusterInput

CATALOG = build_shipped_snapshot()
GB = 1e9


def cluster(accelerator="h100-sxm", count=64, *, communicates=True, **members):
    if isinstance(accelerator, str):
        accelerator = {"source": "catalog", "id": accelerator}
    given = ClusterInput.model_validate_json(
        json.dumps({"accelerator": accelerator, "accelerator_count": count, **members})
    )
    notes = AnswerNotes()
    return resolve_cluster(given, CATALOG, notes, communicates=communicates), notes


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


def test_a_superchip_reaches_no_other_over_its_own_link():
    found, notes = cluster("gh200-96gb", 8)
    assert found.intra_node_link.basis is EvidenceBasis.ASSUMED
    assert ("LINK_ASSUMED", "/cluster/intra_node_link") in codes(notes)


def test_what_is_assumed_is_said():
    unknown = {"source": "specification", "specification": {"name": "tomorrow"}}
    found, notes = cluster(unknown, 64)
    assert found.inter_node_link.bytes_per_second == 12.5 * GB / 8
    assert [code for code, _ in codes(notes)] == ["LINK_ASSUMED", "LINK_ASSUMED"]


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, []), (8, ["intra_node_link"]), (9, ["intra_node_link", "inter_node_link"])],
)
def test_only_links_that_are_used_are_said(count, said):
    unknown = {"source": "specification", "specification": {"name": "tomorrow"}}
    pointers = [pointer for _, pointer in codes(cluster(unknown, count)[1])]
    assert pointers == [f"/cluster/{name}" for name in said]


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


@pytest.mark.parametrize(
    "accelerator", sorted({known.accelerator.id for known in CATALOG.accelerators.values()})
)
def test_every_accelerator_of_the_catalog_has_links(accelerator):
    found, notes = cluster(accelerator, 16)
    assert found.intra_node_link.bytes_per_second > found.inter_node_link.bytes_per_second > 0.0
    for name in ("intra_node_link", "inter_node_link"):
        assumed = getattr(found, name).basis is EvidenceBasis.ASSUMED
        assert (("LINK_ASSUMED", f"/cluster/{name}") in codes(notes)) == assumed
