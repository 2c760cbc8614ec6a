"""Every member of a request that names a row by its id: none takes that of another tenant, or of nobody."""

import json
import re

import pytest

from service.app.examples import EXAMPLES
from service.catalog.registry import ACCELERATORS, RESOURCES
from service.kit.security.credentials import parse_id
from tests.applications import bearing
from tests.contract.test_document import DOCUMENT
from tests.prepared import ON_SQLITE

OWN_NAMES = {
    ("NodeAccelerator", "pci_bus_id"),
    ("NodeAccelerator", "pci_device_id"),
    ("NodeAccelerator", "pci_subsystem_id"),
    ("NodeEnrolmentRequest", "installation_id"),
    ("LeaseClaimRequest", "request_id"),
    ("CostExportRequest", "billing_account_id"),
    ("UtilityBillExportRequest", "billing_account_id"),
    ("SessionRevocationRequest", "subject_id"),
    ("ModelRequest", "hub_id"),
    ("ModelPatch", "hub_id"),
}
"""What callers name themselves, or what no row of ours has."""
OF_NODES = {"BenchmarkResultReport", "AcknowledgedBenchmarkResult", "PublishedRange"}
"""What a node sends of its own run."""
ELSEWHERE = {
    ("ApiKeyRequest", "tenant_id"): "tests/auth/test_keys.py",
    ("WebhookReplayRequest", "delivery_ids"): "tests/webhooks/test_webhooks.py",
    (
        "NodeCalibrationWithdrawalRequest",
        "node_id",
    ): "it withdraws what the tenant has of the node, and nothing of others",
}
"""What other tests try, and what reaches no row."""

FOREIGN = "of-another-tenant"
QUESTION = {
    "model": {"source": "parameter_count", "parameter_count": 8_000_000_000},
    "workload": {"kind": "training", "total_tokens": 1_000_000_000, "sequence_length": 2048},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 8},
    "efficiency": {"source": "assumed", "utilization": 0.5},
    "rental": {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}},
}
SIZED = {name: QUESTION[name] for name in ("model", "workload", "cluster")}
TIMED = {**SIZED, "efficiency": QUESTION["efficiency"]}
SERVED = {
    **QUESTION,
    "workload": {
        "kind": "inference",
        "input_tokens": 100,
        "output_tokens": 10,
        "concurrency": 1,
        "horizon": {"duration_seconds": 3600},
    },
}
SITE = {"pue": 1.2, "electricity": {"price_per_kwh": {"amount": "0.1", "currency_code": "USD"}}}
BILL, COST, THROUGHPUT, MEMORY = (
    f"/v1/estimates/{name}" for name in ("utility-bill", "cost", "throughput", "memory")
)
QUOTED = {"operation": "cost", "name": "n", "request": QUESTION}
NODED = {**QUESTION["cluster"], "node_id": FOREIGN}


def bill(**site):
    return {**QUESTION, "site": {**SITE, **site}}


TRIED = {
    ("ClusterInput", "node_id"): [
        (THROUGHPUT, {**TIMED, "cluster": NODED}, "/cluster/node_id"),
        (MEMORY, {**SIZED, "cluster": NODED}, "/cluster/node_id"),
        (COST, {**QUESTION, "cluster": NODED}, "/cluster/node_id"),
        (BILL, {**bill(), "cluster": NODED}, "/cluster/node_id"),
        (
            "/v1/quotes",
            {**QUOTED, "request": {**QUESTION, "cluster": NODED}},
            "/request/cluster/node_id",
        ),
    ],
    ("CostQuoteRequest", "cost_center_id"): [
        ("/v1/quotes", {**QUOTED, "cost_center_id": FOREIGN}, "/cost_center_id"),
    ],
    ("UtilityBillQuoteRequest", "cost_center_id"): [
        (
            "/v1/quotes",
            {**QUOTED, "operation": "utility-bill", "request": bill(), "cost_center_id": FOREIGN},
            "/cost_center_id",
        )
    ],
    ("ThroughputQuoteRequest", "cost_center_id"): [
        (
            "/v1/quotes",
            {**QUOTED, "operation": "throughput", "request": TIMED, "cost_center_id": FOREIGN},
            "/cost_center_id",
        )
    ],
    ("MemoryQuoteRequest", "cost_center_id"): [
        (
            "/v1/quotes",
            {**QUOTED, "operation": "memory", "request": SIZED, "cost_center_id": FOREIGN},
            "/cost_center_id",
        )
    ],
    ("CandidateQuoteRequest", "plan_id"): [
        ("/v1/quotes", {"name": "n", "plan_id": "0" * 32, "candidate": 1}, "/plan_id")
    ],
    ("Rental", "offer_id"): [(COST, {**QUESTION, "rental": {"offer_id": FOREIGN}}, "/rental/offer_id")],
    ("Purchase", "hardware_price_id"): [
        (COST, {**QUESTION, "purchase": {"hardware_price_id": FOREIGN}}, "/purchase/hardware_price_id")
    ],
    ("ElectricityPriceInput", "tariff_id"): [
        (BILL, bill(electricity={"tariff_id": FOREIGN}), "/site/electricity/tariff_id")
    ],
    ("RunSiteInput", "grid_id"): [(BILL, bill(grid_id=FOREIGN), "/site/grid_id")],
    ("RunSiteInput", "marginal_grid_id"): [(BILL, bill(marginal_grid_id=FOREIGN), "/site/marginal_grid_id")],
    ("RunSiteInput", "site_id"): [(BILL, {**QUESTION, "site": {"site_id": FOREIGN}}, "/site/site_id")],
    ("BenchmarkRunRequest", "node_id"): [
        (
            "/v1/benchmark-runs",
            {**EXAMPLES["create_benchmark_run"], "node_id": FOREIGN},
            "/node_id",
        )
    ],
    ("BenchmarkRunRequest", "suite_id"): [
        ("/v1/benchmark-runs", {**EXAMPLES["create_benchmark_run"], "suite_id": FOREIGN}, "/suite_id")
    ],
    ("BudgetRequest", "cost_center_id"): [
        ("/v1/budgets", {**EXAMPLES["create_budget"], "cost_center_id": FOREIGN}, "/cost_center_id")
    ],
    ("PolicyConditions", "cost_center_ids"): [
        (
            "/v1/approval-policies",
            {
                "id": "one",
                "name": "One",
                "conditions": {"cost_center_ids": [FOREIGN]},
                "steps": [{"name": "s", "approvers": ["token:ann"]}],
            },
            "/conditions/cost_center_ids/0",
        )
    ],
    **{
        (resource.input.__name__, member): [
            (f"/v1/{resource.path}", {**resource.example, member: FOREIGN}, f"/{member}")
        ]
        for resource in RESOURCES.values()
        for member in resource.references
        if "/" not in member
    },
    **{
        ("ReferenceSystem", member): [
            (
                "/v1/accelerators",
                {
                    **ACCELERATORS.example,
                    "systems": [{"name": "one", "accelerators_per_node": 8, member: FOREIGN}],
                },
                f"/systems/0/{member}",
            )
        ]
        for member in ("intra_node_link_id", "inter_node_link_id")
    },
    ("CostEstimateRequest", "token_price_ids"): [
        (COST, {**SERVED, "token_price_ids": [FOREIGN]}, "/token_price_ids/0"),
    ],
}
ALIKE = {
    **{
        (resource.patch.__name__, member): (resource.input.__name__, member)
        for resource in RESOURCES.values()
        for member in resource.references
        if "/" not in member
    },
    ("CandidateQuoteRequest", "cost_center_id"): ("CostQuoteRequest", "cost_center_id"),
    ("CostExportRequest", "token_price_ids"): ("CostEstimateRequest", "token_price_ids"),
    ("OfferImportRequest", "accelerator_id"): ("OfferRequest", "accelerator_id"),
    ("PowerCapEstimateRequest", "token_price_ids"): ("CostEstimateRequest", "token_price_ids"),
    ("StartShiftEstimateRequest", "token_price_ids"): ("CostEstimateRequest", "token_price_ids"),
    ("SiteComparisonRequest", "token_price_ids"): ("CostEstimateRequest", "token_price_ids"),
    ("UtilityBillExportRequest", "token_price_ids"): ("CostEstimateRequest", "token_price_ids"),
    ("UtilityBillRequest", "token_price_ids"): ("CostEstimateRequest", "token_price_ids"),
}
"""What goes through the same rule as another."""


def named():
    """Shape and member of every reference by id in the body of a request."""
    found, open_ = set(), [json.dumps(each) for path in DOCUMENT["paths"].values() for each in bodies(path)]
    seen = set()
    while open_:
        for name in re.findall(r'"#/components/schemas/([^"]+)"', open_.pop()):
            if name not in seen:
                seen.add(name)
                schema = DOCUMENT["components"]["schemas"][name]
                open_.append(json.dumps(schema))
                members = schema.get("properties", {})
                found |= {(name, member) for member in members if member.endswith(("_id", "_ids"))}
    return found


def bodies(path):
    return [each["requestBody"] for each in path.values() if isinstance(each, dict) and "requestBody" in each]


def test_every_reference_is_tried():
    assert {each for each in named() - OWN_NAMES if each[0] not in OF_NODES} == {*TRIED, *ALIKE, *ELSEWHERE}


@pytest.mark.parametrize("member", TRIED, ids=".".join)
@ON_SQLITE
def test_what_is_not_the_tenants_is_refused(client, member):
    for path, body, pointer in TRIED[member]:
        refused = client.post(path, body)
        assert refused.status_code == 422, refused.text
        found = [(error["pointer"], error["code"]) for error in refused.json()["errors"]]
        assert found == [(pointer, "UNKNOWN_REFERENCE")]
        assert FOREIGN not in json.dumps({**refused.json(), "instance": ""})


class TestAnotherTenant:
    @pytest.fixture
    def other(self, callers):
        return callers.key("*:*", tenant=callers.tenant("other"))

    def asked(self, callers, key, path, body):
        response = callers.client.request("POST", path, json=body, headers=bearing(key))
        return response.status_code, [error["pointer"] for error in response.json().get("errors", [])]

    def test_has_a_cost_centre_that_this_one_cannot_charge(self, callers, other):
        own = callers.key("*:*")
        center = EXAMPLES["create_cost_center"]
        assert self.asked(callers, other, "/v1/cost-centers", center)[0] == 201
        body = {**QUOTED, "cost_center_id": center["id"]}
        assert self.asked(callers, own, "/v1/quotes", body) == (422, ["/cost_center_id"])
        response = callers.client.request("POST", "/v1/quotes", json=body, headers=bearing(other))
        assert response.status_code == 201
        quote = callers.client.request("POST", "/v1/quotes", json=QUOTED, headers=bearing(own)).json()
        amended = f"/v1/quotes/{quote['id']}:amend"
        sent = {"quote": body, "content_digest": quote["content_digest"]}
        assert self.asked(callers, own, amended, sent)[0] == 422

    def test_has_a_node_that_this_one_cannot_name(self, callers, other):
        node = parse_id(callers.node(tenant="other"))
        own_node = parse_id(callers.node())
        callers.client.app.state.snapshots.refresh()
        own = callers.key("*:*")
        for path, question in ((THROUGHPUT, TIMED), (MEMORY, SIZED)):
            foreign, known = (
                {**question, "cluster": {**question["cluster"], "node_id": each}} for each in (node, own_node)
            )
            assert self.asked(callers, own, path, foreign) == (422, ["/cluster/node_id"])
            assert self.asked(callers, other, path, foreign)[0] == 200
            assert self.asked(callers, own, path, known)[0] == 200
