"""What a plan may use, and what is refused before anything is searched."""

import json
from dataclasses import replace

import pytest

from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.plans.assumptions import apply_assumptions, compute_time_factor
from service.plans.search import merge_outcomes, search_space, split_search
from service.plans.supplies import build_space
from service.resolve.hardware import resolve_cluster
from service.resolve.names import NamedRows
from service.schemas.plan_answers import PlanConstraint
from service.schemas.plans import PlanRequest
from tests.asking import codes, shipped, usd
from tests.catalog_rows import with_rows
from tests.plans.kept import QUESTION, question, space

NODE = {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 40}
OWN = {"name": "hall", "cluster": NODE}
RENTED = {"name": "deal", "cluster": NODE, "rental": {"price_per_device_hour": usd("2")}}
ALONE = {"offers": False}
SERVICE = {
    "kind": "inference",
    "input_tokens": 512,
    "output_tokens": 128,
    "request_rate_per_second": 4.0,
    "horizon": {"duration_seconds": 86400.0},
}


def names(of):
    return [supply.name for supply in of.supplies]


def counts(of, name):
    supply = next(supply for supply in of.supplies if supply.name == name)
    return [of.clusters[place].accelerator_count for place in supply.clusters]


def offers_of(of):
    return [of.catalog.offers[supply.name] for supply in of.supplies]


def refusal(**members):
    question = PlanRequest.model_validate_json(json.dumps({**QUESTION, **members}))
    with pytest.raises(PlanningError) as caught:
        build_space(question, shipped())
    assert caught.value.detail
    return caught.value.code, caught.value.pointer


class TestOffers:
    def test_those_of_the_accelerators_that_are_named(self):
        of = space()
        assert {supply.accelerator_id for supply in of.supplies} == {"h100-sxm", "a100-sxm-80gb"}
        assert {supply.kind for supply in of.supplies} == {"offer"}

    @pytest.mark.parametrize(
        ("constraints", "member", "allowed"),
        [
            ({"providers": ["lambda", "aws"]}, "provider", {"lambda", "aws"}),
            ({"regions": ["eu-north-1"]}, "region", {"eu-north-1"}),
            ({"purchase_options": ["spot"]}, "purchase_option", {"spot"}),
        ],
    )
    def test_constraints_leave_out_the_others(self, constraints, member, allowed):
        of = space(constraints=constraints)
        assert {getattr(supply, member) for supply in of.supplies} == allowed

    def test_spot_counts_where_it_is_known_how_often_it_is_taken_back(self):
        assert "spot" not in {supply.purchase_option for supply in space().supplies}
        assert "SPOT_LEFT_OUT" in codes(space().warnings)
        terms = {"interruptions_per_hour": 0.01}
        of = space(search={**QUESTION["search"], "spot": terms})
        spot = [supply.rental for supply in of.supplies if supply.purchase_option == "spot"]
        assert spot
        assert {rental.spot.interruptions_per_hour for rental in spot} == {0.01}
        assert "SPOT_LEFT_OUT" not in codes(of.warnings)

    def test_what_can_no_longer_be_had_is_left_out(self):
        ended = "aws-p4d-24xlarge-us-east-2-capacity-block"
        assert ended in shipped().offers
        of = space(
            search={"accelerators": ["a100-sxm-40gb"]},
            constraints={"purchase_options": ["capacity_block", "on_demand"]},
        )
        assert ended not in names(of)
        assert "OFFER_EXPIRED" in codes(of.warnings)

    def test_what_is_a_year_older_than_the_newest_price_is_left_out_by_name(self):
        assert "aws-p3-2xlarge-us-east-1-on-demand" in shipped().offers
        of = space(search={"accelerators": ["v100-sxm2-16gb", "h100-sxm"]})
        assert {supply.accelerator_id for supply in of.supplies} == {"h100-sxm"}
        (said,) = [warning["detail"] for warning in of.warnings if warning["code"] == "OFFER_OLD"]
        assert "2026-11-09" in said
        assert "aws-p3-2xlarge-us-east-1-on-demand" in said

    def test_a_plan_that_finds_old_offers_only_is_refused_with_their_ids(self):
        with pytest.raises(PlanningError) as caught:
            space(search={"accelerators": ["t4"]})
        assert (caught.value.code, caught.value.pointer) == ("NO_SUPPLY", "/search/offers")
        assert "aws-g4dn-xlarge-us-east-1-on-demand" in caught.value.detail

    def test_an_old_offer_is_rented_by_its_id(self):
        cluster = {"accelerator": {"source": "catalog", "id": "t4"}, "accelerator_count": 4}
        rental = {"offer_id": "aws-g4dn-12xlarge-us-east-1-on-demand"}
        of = space(
            rented=[{"name": "old", "cluster": cluster, "rental": rental}],
            search={"accelerators": ["t4"]},
        )
        assert names(of) == ["old"]

    def test_age_counts_from_the_newest_price_of_the_catalog_and_not_from_today(self):
        """A catalog whose prices stop in 2023 uses them, whatever day it is."""
        old = {name: offer for name, offer in shipped().offers.items() if offer.as_of == "2023-11-16"}
        catalog = replace(shipped(), offers=with_rows(NamedRows(), old))
        of = build_space(question(search={"accelerators": ["t4"]}), catalog)
        assert {catalog.offers[name].as_of for name in names(of)} == {"2023-11-16"}
        assert "OFFER_OLD" not in codes(of.warnings)

    def test_a_term_of_unknown_length_counts_where_its_option_is_named(self):
        block = "aws-p5-48xlarge-us-east-1-capacity-block"
        assert block not in names(space())
        assert "TERM_LEFT_OUT" in codes(space().warnings)
        assert block in names(space(constraints={"purchase_options": ["capacity_block"]}))

    def test_an_instance_is_a_node(self):
        """A product of several nodes stands in whole ones."""
        of = space(search={"accelerators": ["l4", "h100-sxm", "mi300x"]})
        for supply in of.supplies:
            many = of.clusters[supply.clusters[0]].model_copy(update={"accelerator_count": 64})
            size = min(8, of.catalog.offers[supply.name].accelerator_count)
            assert resolve_cluster(many, of.catalog, AnswerNotes()).domain == size, supply.name

    @pytest.mark.parametrize(
        ("offer", "known"),
        [
            ("oracle-bm-gpu-h100-8-b98415-on-demand", True),
            ("nebius-nvidia-hgx-h100-on-demand", False),
            ("lambda-1x-nvidia-gh200-on-demand", False),
            ("aws-g5-xlarge-us-east-1-on-demand", False),
            ("aws-g6-12xlarge-us-east-1-on-demand", False),
        ],
    )
    def test_a_run_takes_several_instances_only_over_a_network_that_is_known(self, offer, known):
        named = {"accelerators": [shipped().offers[offer].accelerator_id]}
        trained, served = space(search=named), space(search=named, workload=SERVICE)
        size = shipped().offers[offer].accelerator_count
        assert counts(trained, offer) == ([size * 2**n for n in range(12)] if known else [size])
        assert ("LINK_UNKNOWN" in codes(trained.warnings)) == any(
            each.accelerator_count < 8 for each in offers_of(trained)
        )
        places = next(supply.clusters for supply in served.supplies if supply.name == offer)
        assert (not served.apart & set(places)) == known

    def test_a_replica_lies_within_an_instance_where_nothing_is_known_to_join_them(self):
        accelerators = {"accelerators": ["gh200-96gb"], "serving": {"tensor": [1], "pipeline": [1, 2]}}
        of = space(search=accelerators, workload=SERVICE)
        outcome = merge_outcomes(
            [search_space(of, piece) for piece in split_search(of)], of.question.search.depth
        )
        assert {kept.parallelism["pipeline"] for kept in outcome.kept} == {1}
        assert outcome.ruled_out[PlanConstraint.LINK] >= 1

    def test_rented_devices_stand_in_their_instances_unless_their_nodes_are_given(self):
        pairs = {**RENTED["rental"], "devices_per_instance": 2}
        given = {**NODE, "accelerators_per_node": 8}
        other = {**RENTED, "name": "nodes", "cluster": given, "rental": pairs}
        of = space(rented=[{**RENTED, "rental": pairs}, other], search=ALONE)
        nodes = [of.clusters[supply.clusters[0]].accelerators_per_node for supply in of.supplies]
        assert nodes == [2, 8]

    def test_instances_of_equal_nodes_at_one_price_are_one_supply(self):
        of = space(search={"accelerators": ["h100-sxm"], "accelerator_counts": [16]})
        offers = [of.catalog.offers[supply.name] for supply in of.supplies]
        paid = [
            (one.provider, one.region, one.price_per_device_hour, one.accelerator_count) for one in offers
        ]
        assert len(set(paid)) == len(paid)

    def test_the_building_is_that_of_the_region(self):
        sites = [{"regions": ["eu-north-1"], "site": {"pue": 1.05}}]
        of = space(sites=sites, site={"pue": 1.4})
        pues = {supply.region: supply.site.pue for supply in of.supplies}
        assert pues["eu-north-1"] == 1.05
        assert pues["us-east-1"] == 1.4

    @pytest.mark.parametrize(
        "members", [{"goal": "cleanest"}, {"constraints": {"facility_kw": 100.0}}], ids=["goal", "limit"]
    )
    def test_what_has_no_building_is_said_where_it_matters(self, members):
        assert "SITE_REQUIRED" in codes(space(**members).warnings)
        assert "SITE_REQUIRED" not in codes(space(**members, site={"pue": 1.2}).warnings)
        assert "SITE_REQUIRED" not in codes(space().warnings)


class TestDevices:
    def test_whole_nodes_in_doublings_and_all_nodes(self):
        assert counts(space(owned=[OWN], search=ALONE), "hall") == [8, 16, 32, 40]

    def test_as_many_as_allowed(self):
        of = space(owned=[OWN], search=ALONE, constraints={"accelerator_count": 20})
        assert counts(of, "hall") == [8, 16]

    def test_those_asked_for_that_a_supply_has(self):
        of = space(owned=[OWN], search={**ALONE, "accelerator_counts": [64, 40, 4]})
        assert counts(of, "hall") == [4, 40]

    def test_less_than_a_node_is_one_cluster(self):
        few = {**NODE, "accelerator_count": 4}
        assert counts(space(owned=[{**OWN, "cluster": few}], search=ALONE), "hall") == [4]

    def test_a_service_is_told_the_most(self):
        of = space(owned=[OWN], rented=[RENTED], search=ALONE, workload=SERVICE)
        assert counts(of, "hall") == counts(of, "deal") == [40]

    def test_supplies_of_one_machine_share_its_clusters(self):
        of = space(owned=[OWN], rented=[RENTED], search=ALONE)
        assert of.supplies[0].clusters == of.supplies[1].clusters


class TestRefused:
    """Each refusal names the member of the question."""

    @pytest.mark.parametrize(
        ("members", "expected"),
        [
            ({"search": {"accelerators": ["no-such"]}}, ("UNKNOWN_REFERENCE", "/search/accelerators/0")),
            ({"constraints": {"budget": usd("0")}}, ("BUDGET_ZERO", "/constraints/budget/amount")),
            ({"constraints": {"providers": ["nobody"]}}, ("NO_SUPPLY", "/constraints/providers")),
            ({"constraints": {"regions": ["mars"]}}, ("NO_SUPPLY", "/constraints/regions")),
            ({"search": ALONE}, ("NO_SUPPLY", "/search/offers")),
            ({"owned": [OWN, OWN]}, ("NAME_TWICE", "/owned/1/name")),
            (
                {"owned": [{**OWN, "purchase": {"price_per_device": usd("1")}}]},
                ("OWNERSHIP_REQUIRED", "/owned/0/purchase/ownership"),
            ),
            (
                {
                    "owned": [
                        {
                            **OWN,
                            "cluster": {**NODE, "intra_node_link": {"source": "catalog", "id": "no-link"}},
                        }
                    ]
                },
                ("UNKNOWN_REFERENCE", "/owned/0/cluster/intra_node_link/id"),
            ),
            ({"rented": [{**RENTED, "rental": {}}]}, ("RENTAL_PRICE", "/rented/0/rental")),
            (
                {"rented": [{**RENTED, "rental": {"offer_id": "gone"}}]},
                ("UNKNOWN_REFERENCE", "/rented/0/rental/offer_id"),
            ),
            (
                {"owned": [{**OWN, "site": {"site_id": "nowhere"}}]},
                ("UNKNOWN_REFERENCE", "/owned/0/site/site_id"),
            ),
            (
                {"owned": [{**OWN, "site": {"pue": 1.1, "electricity": {"tariff_id": "none"}}}]},
                ("UNKNOWN_REFERENCE", "/owned/0/site/electricity/tariff_id"),
            ),
            ({"site": {"grid_id": "none"}, "goal": "cleanest"}, ("UNKNOWN_REFERENCE", "/site/grid_id")),
            (
                {"sites": [{"regions": ["a"], "site": {}}, {"regions": ["a"], "site": {}}]},
                ("REGION_TWICE", "/sites/1/regions"),
            ),
            ({"constraints": {"finish_by": "2027-01-01T00:00:00Z"}}, ("STARTS_AT_REQUIRED", "/starts_at")),
            (
                {
                    "constraints": {"finish_by": "2027-01-01T00:00:00Z"},
                    "starts_at": "2027-01-02T00:00:00Z",
                },
                ("FINISH_BEFORE_START", "/constraints/finish_by"),
            ),
            ({"currency_code": "XAF"}, ("CURRENCY_MISMATCH", "/currency_code")),
            (
                {"constraints": {"budget": usd("5", "XAF")}, "currency_code": "USD"},
                ("CURRENCY_MISMATCH", "/constraints/budget/currency_code"),
            ),
            (
                {"assumptions": [{"kind": "price", "of": "nobody", "factor": 2.0}]},
                ("UNKNOWN_REFERENCE", "/assumptions/0/of"),
            ),
            (
                {"assumptions": [{"kind": "price", "factor": 1000.0}] * 3},
                ("FACTOR_TOO_LARGE", "/assumptions/2/factor"),
            ),
            (
                {"workload": SERVICE, "assumptions": [{"kind": "time", "factor": 2.0}]},
                ("NOT_MODELLED", "/assumptions/0/kind"),
            ),
            (
                {"workload": {k: v for k, v in SERVICE.items() if k != "horizon"}},
                ("HORIZON_REQUIRED", "/workload/horizon"),
            ),
            (
                {"workload": SERVICE, "constraints": {"duration_seconds": 10.0}},
                ("NOT_APPLICABLE", "/constraints/duration_seconds"),
            ),
            (
                {"storage": {"price_per_gigabyte_month": usd("1")}, "rented": [RENTED]},
                ("STORAGE_EMPTY", "/storage"),
            ),
        ],
    )
    def test_it_names_the_member(self, members, expected):
        assert refusal(**members) == expected


GIVEN = {
    "name": "ours",
    "cluster": {**NODE, "accelerator_count": 32},
    "parallelism": {"tensor": 2, "data": 16},
    "workload": QUESTION["workload"],
}


class TestGiven:
    @pytest.mark.parametrize(
        ("changed", "expected"),
        [
            ({"parallelism": {"tensor": 3, "data": 16}}, ("PARALLELISM_MISMATCH", "/given/0/parallelism")),
            ({"supply": "nobody"}, ("NO_SUPPLY", "/given/0/supply")),
            ({"supply": "crusoe-h100-sxm-80gb-on-demand"}, ("NO_SUPPLY", "/given/0/supply")),
            (
                {"workload": {**QUESTION["workload"], "total_tokens": 5}},
                ("WORK_DIFFERS", "/given/0/workload/total_tokens"),
            ),
            (
                {"cluster": {**NODE, "intra_node_link": {"source": "catalog", "id": "none"}}},
                ("UNKNOWN_REFERENCE", "/given/0/cluster/intra_node_link/id"),
            ),
            ({"workload": SERVICE}, ("WORK_DIFFERS", "/given/0/workload/kind")),
            (
                {"cluster": {"accelerator": {"source": "catalog", "id": "t4"}, "accelerator_count": 32}},
                ("NO_SUPPLY", "/given/0/cluster"),
            ),
        ],
    )
    def test_what_contradicts_the_plan_is_refused(self, changed, expected):
        assert refusal(owned=[OWN], given=[{**GIVEN, **changed}]) == expected


class TestMoved:
    """Factors of assumptions multiply those that a question has, and each other."""

    def of(self, *assumptions):
        return space(
            owned=[{**OWN, "site": {"pue": 1.1, "carbon_intensity_kg_co2e_per_kwh": 0.4}}],
            rented=[{**RENTED, "rental": {**RENTED["rental"], "price_factor": 0.9}}],
            search=ALONE,
            assumptions=list(assumptions),
        )

    def test_factors_multiply(self):
        of = self.of({"kind": "price", "factor": 2.0}, {"kind": "price", "of": "deal", "factor": 3.0})
        deal = apply_assumptions(of.supplies[1], of.question, of.catalog)
        assert deal.rental.price_factor == pytest.approx(5.4)

    def test_what_is_not_named_is_as_it_was(self):
        of = self.of({"kind": "carbon_intensity", "of": "hall", "factor": 2.0})
        hall, deal = (apply_assumptions(supply, of.question, of.catalog) for supply in of.supplies)
        assert hall.site.carbon_intensity_factor == 2.0
        assert deal == of.supplies[1]

    def test_time_is_of_an_accelerator(self):
        of = self.of({"kind": "time", "of": "h100-sxm", "factor": 1.5})
        assert compute_time_factor(of.question, "h100-sxm") == 1.5
        assert compute_time_factor(of.question, "a100-sxm-80gb") == 1.0
