"""Price lists of others: real excerpts, what each of them hides, and rows of any content."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.catalog.shipped import list_shipped_documents
from service.formats.offers import READERS
from service.formats.offers.listed import build_slug
from service.formats.offers.names import (
    NamedAccelerator,
    PriceListContext,
    build_accelerators,
    load_hosts,
    load_rules,
    resolve_accelerator,
)
from service.planning.errors import PlanningError

DATA = Path(__file__).parents[1] / "data/offers"
ROWS = {
    row["id"]: (row.get("memory_label_gb"), (row["name"], *row.get("aliases", ())))
    for row in list_shipped_documents()["accelerators"]
}
KNOWN = build_accelerators(ROWS)


GOOGLE = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,"
    "Region,AvailabilityZone"
)


def read(kind, content, provider="own", accelerator=None):
    return READERS[kind](content, PriceListContext(provider, KNOWN, accelerator))


def text(name):
    return (DATA / name).read_text()


def skypilot(content, provider="aws"):
    return read("skypilot", content, provider)


def gpuhunt(
    *rows, header="instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size"
):
    return read("gpuhunt", "\n".join((header, *rows)), "cloud")


def ec2(*instances):
    return read("ec2instances", json.dumps(instances), "aws")


def by_id(imported):
    return {offer.id: offer for offer in imported.offers}


def refused(imported):
    return {one.pointer: one.code for one in imported.refused}


class TestNames:
    @pytest.mark.parametrize(
        ("name", "instance", "memory", "expected"),
        [
            ("H100", "p5.48xlarge", None, "h100-sxm"),
            ("H100", "gpu_1x_h100_pcie", None, "h100-pcie"),
            ("H100", "Standard_NC40ads_H100_v5", None, "h100-nvl"),
            ("H100NVL", "", 94, "h100-nvl"),
            ("NVIDIA H100 80GB HBM3", "", None, "h100-sxm"),
            ("A100", "p4d.24xlarge", None, "a100-sxm-40gb"),
            ("A100", "", 40, "a100-sxm-40gb"),
            ("A100", "", 80, "a100-sxm-80gb"),
            ("A100-80GB", "p4de.24xlarge", None, "a100-sxm-80gb"),
            ("NVIDIA A100", "p4de.24xlarge", None, "a100-sxm-80gb"),
            ("A100-80GB", "Standard_NC24ads_A100_v4", None, "a100-pcie-80gb"),
            ("V100", "p3.2xlarge", None, "v100-sxm2-16gb"),
            ("NVIDIA Tesla V100", "p3dn.24xlarge", None, "v100-sxm2-32gb"),
            ("V100", "", 32, "v100-sxm2-32gb"),
            ("A10G", "g5.xlarge", None, "a10g"),
            ("A6000", "", 48, "rtx-a6000"),
            ("RTX6000-Ada", "", None, "rtx-6000-ada"),
            ("RTX4090", "", 24, "rtx-4090"),
            ("MI300X", "", 192, "mi300x"),
            ("Tesla T4", "", None, "t4"),
            ("Trainium", "trn1.32xlarge", None, "trainium1"),
            ("Inferentia", "trn1.32xlarge", None, "trainium1"),
            ("v5litepod", "", None, "tpu-v5e"),
        ],
    )
    def test_what_a_list_means(self, name, instance, memory, expected):
        assert (
            resolve_accelerator(KNOWN, name, instance=instance, memory_gb=memory).accelerator_id == expected
        )

    @pytest.mark.parametrize(
        ("name", "chips"), [("tpu-v2-8", 4), ("tpu-v3-2048", 1024), ("tpu-v5litepod-8", 8)]
    )
    def test_a_slice_counts_cores_or_chips(self, name, chips):
        assert resolve_accelerator(KNOWN, name).devices == chips

    @pytest.mark.parametrize("name", ["K80", "P100", "H100-8", "tpu-v2-7", "A100-MIG", "", "-", "\x00"])
    def test_an_unknown_one_is_named_and_never_guessed(self, name):
        unknown = resolve_accelerator(KNOWN, name)
        assert unknown.code == "UNKNOWN_ACCELERATOR"
        assert (name and "\x00" not in name and name in unknown.detail) or "another name" in unknown.detail

    def test_a_form_that_is_not_said_is_a_doubt(self):
        assert "SXM" in resolve_accelerator(KNOWN, "H100").doubt
        assert resolve_accelerator(KNOWN, "H100", instance="a3-highgpu-8g").doubt is None

    def test_memory_that_no_such_part_has_is_refused(self):
        """Lists with host memory in that column (204,800 MiB for an H100) exist."""
        assert resolve_accelerator(KNOWN, "H100", memory_gb=200).code == "MEMORY_MISMATCH"

    def test_rules_name_accelerators_of_the_catalog(self):
        assert {rule.accelerator_id for rule in load_rules()} <= ROWS.keys()
        assert all(
            isinstance(resolve_accelerator(KNOWN, name), NamedAccelerator)
            for name, _ in load_hosts().values()
        )

    def test_a_catalog_without_the_accelerator_has_none(self):
        assert resolve_accelerator(build_accelerators({}), "H100").code == "UNKNOWN_ACCELERATOR"

    def test_an_alias_of_a_row_is_its_name_without_a_rule(self):
        known = build_accelerators({"x9": (96.0, ("Example X9 96GB", "NVIDIA X9-96GB"))})
        for name in ("x9", "Example X9 96GB", "X9 96GB"):
            assert resolve_accelerator(known, name, memory_gb=96) == NamedAccelerator("x9")

    def test_a_name_of_two_rows_means_neither(self):
        both = build_accelerators({"one": (None, ("X1",)), "two": (None, ("X1",))})
        assert resolve_accelerator(both, "X1").code == "UNKNOWN_ACCELERATOR"


class TestSkyPilot:
    def test_a_price_is_of_the_node(self):
        offers = by_id(skypilot(text("aws-vms-v8-excerpt.csv")))
        p5 = offers["aws-p5-48xlarge-us-east-1-on-demand"]
        assert (p5.price, p5.accelerator_count, p5.accelerator_id) == (Decimal("55.04"), 8, "h100-sxm")
        assert offers["aws-p5-48xlarge-use1-az2-spot"].price == Decimal("19.2531")
        assert offers["aws-p5-4xlarge-us-east-1-on-demand"].accelerator_count == 1

    def test_zones_agree_on_demand_and_differ_on_spot(self):
        offers = skypilot(text("aws-vms-v8-excerpt.csv")).offers
        p5 = [o for o in offers if o.instance_type == "p5.48xlarge" and o.region == "us-east-1"]
        assert sorted((o.purchase_option, o.zone) for o in p5) == [
            ("on_demand", None),
            ("spot", "use1-az1"),
            ("spot", "use1-az2"),
        ]

    def test_zones_that_differ_on_demand_are_kept_apart(self):
        header, first, *_ = text("gcp-vms-v8-excerpt.csv").splitlines()
        rows = [
            header,
            "vm-1,1,1,L4,1,,us,us-a,2.0,",
            "vm-1,1,1,L4,1,,us,us-b,2.5,",
        ]
        assert first
        assert by_id(skypilot("\n".join(rows))).keys() == {
            "aws-vm-1-us-a-on-demand",
            "aws-vm-1-us-b-on-demand",
        }

    def test_no_spot_price_is_none(self):
        ids = by_id(skypilot(text("aws-vms-v8-excerpt.csv")))
        assert "aws-p5-48xlarge-us-west-1-on-demand" in ids
        assert not any(name.startswith("aws-p5-48xlarge-usw1") for name in ids)

    def test_the_name_says_80_gb_and_the_literal_does_not(self):
        offers = by_id(skypilot(text("aws-vms-v8-excerpt.csv")))
        assert offers["aws-p4de-24xlarge-us-east-1-on-demand"].accelerator_id == "a100-sxm-80gb"

    def test_another_order_of_columns_and_memory_that_is_not_trusted(self):
        imported = skypilot(text("lambda-vms-v8-excerpt.csv"), "lambda")
        h100 = by_id(imported)["lambda-gpu-8x-h100-sxm5-us-east-1-on-demand"]
        assert (h100.hourly_price / h100.accelerator_count, h100.doubt) == (Decimal("3.99"), None)
        assert refused(imported) == {"/2": "NO_ACCELERATOR"}
        assert not [offer for offer in imported.offers if offer.purchase_option == "spot"]

    def test_hosts_without_their_accelerators_are_refused(self):
        imported = skypilot(text("gcp-vms-v8-excerpt.csv"), "gcp")
        assert imported.offers == ()
        assert [row.code for row in imported.refused] == ["ACCELERATORS_PRICED_APART"] * 8
        assert "8 H100" in {one.pointer: one.detail for one in imported.refused}["/6"]

    def test_hosts_and_accelerators_of_a_zone_are_added_up(self):
        """a2-highgpu-8g in us-central1-a (v4, March 2023): 5.915816 + 23.472; spot 1.774745 + 7.04."""
        rows = (
            GOOGLE,
            "a2-highgpu-8g,,,96.0,680.0,,5.915816,1.7747448,us-central1,us-central1-a",
            "a2-highgpu-8g,,,96.0,680.0,,5.915816,1.7747448,us-central1,us-central1-z",
            ",A100,8,,,A100,23.472,7.04,us-central1,us-central1-a",
            ",T4,1,,,T4,0.35,0.11,us-central1,us-central1-a",
            ",tpu-v2-8,1,,,tpu-v2-8,4.5,1.35,us-central1,us-central1-b",
            "e2-standard-2,,,2.0,8.0,,0.067006,0.020102,us-central1,us-central1-a",
        )
        imported = skypilot("\n".join(rows), "gcp")
        offers = by_id(imported)
        assert offers["gcp-a2-highgpu-8g-us-central1-on-demand"].price == Decimal("29.387816")
        assert offers["gcp-a2-highgpu-8g-us-central1-a-spot"].price == Decimal("8.8147448")
        tpu = offers["gcp-tpu-v2-8-us-central1-on-demand"]
        assert (tpu.accelerator_id, tpu.hourly_price / tpu.accelerator_count) == ("tpu-v2", Decimal("1.125"))
        assert refused(imported) == {
            "/3": "ACCELERATORS_PRICED_APART",
            "/5": "HOST_PRICED_APART",
            "/7": "NO_ACCELERATOR",
        }

    @pytest.mark.parametrize(
        ("row", "code"),
        [
            ("vm,H100,8,1,1,,0,,us,us-a", "PRICE_ZERO"),
            ("vm,H100,8,1,1,,-3,,us,us-a", "PRICE_INVALID"),
            ("vm,H100,8,1,1,,1e9,,us,us-a", "PRICE_INVALID"),
            ("vm,H100,8,1,1,,ten,,us,us-a", "PRICE_INVALID"),
            ("vm,H100,8,1,1,,0.0000000001,,us,us-a", "PRICE_ZERO"),
            ("vm,H100,8,1,1,,,,us,us-a", "PRICE_MISSING"),
            ("vm,H100,0.5,1,1,,3,,us,us-a", "FRACTION_OF_DEVICE"),
            ("vm,H100,many,1,1,,3,,us,us-a", "COUNT_INVALID"),
            ("vm,K80,1,1,1,,3,,us,us-a", "UNKNOWN_ACCELERATOR"),
            ("vm,H100,0,1,1,,3,,us,us-a", "NO_ACCELERATOR"),
            ("vm,H100,8,1,1,,3,4,us,us-a", "SPOT_ABOVE_ON_DEMAND"),
            ("vm,H100,8,1,1,,3,,us", "WIDTH"),
            (f"{'v' * 501},H100,8,1,1,,3,,us,us-a", "TEXT_INVALID"),
            (",,,1,1,,3,,us,us-a", "NO_ACCELERATOR"),
        ],
    )
    def test_what_is_refused(self, row, code):
        imported = skypilot(f"{GOOGLE}\n{row}\n")
        assert refused(imported) == {"/2": code}

    def test_a_row_that_contradicts_another_is_refused(self):
        header = "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region"
        imported = skypilot("\n".join((header, *["vm,L4,1,3,,us"] * 2, "vm,L4,1,4,,us")))
        assert len(imported.offers) == 1
        assert refused(imported) == {"/4": "CONTRADICTS_ANOTHER_ROW"}

    @pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "{}", 'InstanceType,"'])
    def test_another_format_is_refused_whole(self, content):
        with pytest.raises(PlanningError) as error:
            skypilot(content)
        assert (error.value.code, error.value.pointer) == ("FORMAT", "/content")


class TestGpuHunt:
    def test_chip_prices(self):
        imported = read("gpuhunt_tpu", text("tpu_pricing.json"), "gcp")
        v6e = by_id(imported)["gcp-tpu-v6e-us-east1-on-demand"]
        assert (v6e.price, v6e.accelerator_count, v6e.accelerator_id) == (Decimal("2.7"), 1, "tpu-v6e")
        assert by_id(imported)["gcp-tpu-v6e-us-east1-spot"].price == Decimal("1.89")

    def test_spot_above_on_demand_is_refused(self):
        """The six pairs that cost-and-energy.md and gpu-prices.csv name as errors of the source."""
        imported = read("gpuhunt_tpu", text("tpu_pricing.json"), "gcp")
        assert [row.code for row in imported.refused] == ["SPOT_ABOVE_ON_DEMAND"] * 6
        assert refused(imported).keys() == {
            "/TPU v4 pod/us-central2/Spot (USD)",
            "/TPU v3 pod/europe-west4/Spot (USD)",
            "/TPU v3 device/europe-west4/Spot (USD)",
            "/TPU v2 pod/us-central1/Spot (USD)",
            "/TPU v2 pod/europe-west4/Spot (USD)",
            "/TPU v2 device/europe-west4/Spot (USD)",
        }
        assert (imported.rows, len(imported.offers)) == (42, 36)

    def test_a_catalog_of_either_version(self):
        imported = gpuhunt(
            "i1,us,12.5,30,240,8,H100,80.0,False,",
            "i1,us,5.5,30,240,8,H100,80.0,True,",
            "cpu,us,0.5,30,240,0,,,False,",
        )
        assert {o.id: o.price for o in imported.offers} == {
            "cloud-i1-us-on-demand": Decimal("12.5"),
            "cloud-i1-us-spot": Decimal("5.5"),
        }
        second = gpuhunt(
            "i2,us,1.0,30,240,2,A10,24.0,False,,nvidia,f1 f2",
            header="instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags",
        )
        assert by_id(second)["cloud-i2-us-on-demand"].accelerator_id == "a10"
        assert refused(imported) == {"/4": "NO_ACCELERATOR"}

    @pytest.mark.parametrize(
        ("row", "code"),
        [
            ("i,us,3,1,1,1,H100,200,False,", "MEMORY_MISMATCH"),
            ("i,us,3,1,1,1,H100,80,perhaps,", "PURCHASE_OPTION_UNKNOWN"),
            ("i,us,,1,1,1,H100,80,False,", "PRICE_INVALID"),
        ],
    )
    def test_what_is_refused(self, row, code):
        assert refused(gpuhunt(row)) == {"/2": code}


class TestOpenCost:
    def test_a_gpu_without_a_name_needs_one(self):
        def prices(accelerator, name="default.json"):
            return read("opencost_json", text(name), accelerator=accelerator)

        (gpu,) = prices("t4").offers
        assert (gpu.price, gpu.accelerator_id, gpu.includes) == (Decimal("0.95"), "t4", ())
        assert refused(prices(None))["/GPU"] == "ACCELERATOR_NOT_NAMED"
        assert refused(prices("K80"))["/GPU"] == "UNKNOWN_ACCELERATOR"
        assert refused(prices("t4"))["/CPU"] == "NOT_A_DEVICE"
        assert refused(prices("t4", "gcp.json"))["/GPU"] == "PRICE_MISSING"

    def test_prices_of_gpus_by_label(self):
        content = text("pricing_schema_mixed_gpu_ondemand.csv")
        imported = read("opencost_csv", content)
        assert {(o.purchase_option, o.price) for o in imported.offers} == {
            ("on_demand", Decimal("0.5")),
            ("reserved", Decimal(1)),
        }
        assert all(o.doubt and o.accelerator_count == 1 for o in imported.offers)
        assert refused(imported) == {"/2": "NO_ACCELERATOR", "/3": "NO_ACCELERATOR"}

    def test_an_unknown_label_is_named(self):
        imported = read("opencost_csv", text("pricing_schema.csv"))
        details = {one.pointer: one.detail for one in imported.refused}
        assert "Quadro_RTX_4000" in details["/3"]
        assert imported.offers == ()

    def test_comments_and_classes(self):
        header = text("pricing_schema.csv").splitlines()[0]
        rows = (
            header,
            "# a comment",
            ",NVIDIA-A40,,gpu,nvidia.com/gpu_type,,1.1,",
            ",x,,pv,metadata.name,,0.1,",
        )
        imported = read("opencost_csv", "\n".join(rows))
        assert [o.accelerator_id for o in imported.offers] == ["a40"]
        assert refused(imported) == {"/4": "NOT_A_DEVICE"}


class TestEc2Instances:
    @pytest.fixture
    def instance(self):
        """The published object of an instance without accelerators, as if it had eight."""
        found = json.loads(text("ec2-single-instance.json"))
        return found | {"instance_type": "p5.48xlarge", "GPU": 8, "GPU_model": "NVIDIA H100"}

    def test_an_instance_without_accelerators(self):
        imported = read("ec2instances", text("ec2-single-instance.json"), "aws")
        assert refused(imported) == {"/": "NO_ACCELERATOR"}

    def test_prices_of_linux(self, instance):
        offers = by_id(ec2(instance))
        assert offers["aws-p5-48xlarge-eu-west-1-on-demand"].price == Decimal("32.012")
        spot = offers["aws-p5-48xlarge-eu-west-1-spot"]
        assert (spot.price, spot.note) == (Decimal("18.24684"), "Average over zones.")
        assert {offer.region for offer in offers.values()} == {"eu-west-1", "us-east-1"}

    def test_reserved_terms(self, instance):
        """All up front is a whole sum: 18.383904 an hour for a year are 161,043 USD."""
        offers = by_id(ec2(instance))
        start = "aws-p5-48xlarge-eu-west-1-reserved"
        full = offers[f"{start}-1y-standard-all-upfront"]
        assert (full.term.days, full.term.upfront, full.price) == (365, Decimal("161043.00"), None)
        assert abs(full.hourly_price - Decimal("18.383904")) < Decimal("0.000001")
        none = offers[f"{start}-3y-convertible-no-upfront"]
        assert (none.term.days, none.term.hourly) == (1095, Decimal("12.34255"))
        part = offers[f"{start}-1y-standard-partial-upfront"]
        assert (part.term.upfront, part.term.hourly, part.hourly_price) == (None, None, Decimal("18.759086"))
        assert len([name for name in offers if name.startswith(start)]) == 12

    def test_savings_plans_are_committed(self, instance):
        instance["pricing"] = {"us-east-1": {"linux": {"reserved": {"yrTerm1Savings.noUpfront": "20"}}}}
        (offer,) = ec2(instance).offers
        assert (offer.purchase_option, offer.term.days) == ("committed", 365)

    def test_a_term_that_nobody_knows_is_refused(self, instance):
        linux = {"ondemand": "0", "reserved": {"yrTerm9Standard.noUpfront": "20"}}
        instance["pricing"] = {"us-east-1": {"linux": linux}}
        place = "/0/pricing/us-east-1/linux"
        assert refused(ec2(instance)) == {
            f"{place}/ondemand": "PRICE_ZERO",
            f"{place}/reserved/yrTerm9Standard.noUpfront": "TERM_UNKNOWN",
        }

    def test_a_rendered_table_is_no_instance(self):
        with pytest.raises(PlanningError):
            read("ec2instances", text("ec2-golden-table.json"), "aws")


CELLS = st.one_of(
    st.sampled_from(
        ["", "H100", "A100-80GB", "L4", "tpu-v2-8", "8", "8.0", "0", "1.5", "55.04", "nan", "-1", "1e400"]
    ),
    st.text(max_size=12),
)
TABLES = st.lists(st.lists(CELLS, min_size=6, max_size=6), max_size=8)
SKYPILOT = ["InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region"]


def csv_of(header, rows):
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in [header, *rows]]
    return "\n".join(",".join(row) for row in quoted) + "\n"


def sound(imported):
    """Offers have a price above 0, one id each and a whole number of devices; refusals have a reason."""
    assert len({offer.id for offer in imported.offers}) == len(imported.offers)
    for offer in imported.offers:
        assert offer.hourly_price > 0
        assert offer.accelerator_count >= 1
        assert offer.accelerator_id in ROWS
        assert build_slug(offer.id) == offer.id
    assert all(one.code and one.detail and one.pointer for one in imported.refused)


@given(TABLES)
def test_any_table_gives_sound_offers_or_reasons(rows):
    imported = skypilot(csv_of(SKYPILOT, rows))
    sound(imported)
    assert imported.rows >= len([row for row in rows if any(row)]) or not rows


@given(TABLES)
def test_every_catalog_row_is_an_offer_or_refused(rows):
    header = ["instance_name", "location", "price", "gpu_count", "gpu_name", "spot"]
    imported = read("gpuhunt", csv_of(header, rows), "cloud")
    sound(imported)
    assert len({o.pointer for o in imported.offers} | {r.pointer for r in imported.refused}) <= imported.rows


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["TPU v4", "GPU", "CPU", "instance_type", "GPU_model", "pricing", "linux", "ondemand", "us"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", ["gpuhunt_tpu", "ec2instances", "opencost_json"])
@given(document=JSONS)
def test_any_document_gives_sound_offers_or_an_error_of_ours(kind, document):
    try:
        imported = read(kind, json.dumps(document), accelerator="t4")
    except PlanningError:
        return
    sound(imported)


@given(price=st.decimals("0.000001", "100000", places=6), count=st.integers(1, 64))
def test_price_and_count_survive(price, count):
    imported = gpuhunt(f"i,us,{price},1,1,{count},L4,24,False,")
    (offer,) = imported.offers
    assert (offer.price, offer.accelerator_count) == (price, count)


@given(st.lists(st.text(max_size=60), min_size=1, max_size=5))
def test_ids_are_ids(parts):
    made = build_slug(*parts)
    assert 0 < len(made) <= 100
    assert build_slug(made) == made
