"""What renting costs on each kind of terms: lines of what is used, and of what is paid beside it."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.cost.prices import CommitmentTerm
from tests.asking import ask, codes, gaps, question, refusal, shipped, usd
from tests.catalog_rows import with_rows

MODEL = {"source": "parameter_count", "parameter_count": 7_000_000_000}
ASSUMED = {"source": "assumed", "utilization": 0.5}
RESERVED, BLOCK = "crusoe-h100-sxm-80gb-on-demand", "aws-p5-48xlarge-us-east-1-capacity-block"
WORK = 1000 * 3600 * 989e12 * 0.5 / (6 * 7e9)
"""Tokens of a thousand hours of one H100 at half its rate."""


def run(rental, devices=8, hours=1000.0, **members):
    """A run that lasts ``hours`` on ``devices`` H100."""
    tokens = round(WORK / 1000 * hours * devices)
    asked = question(MODEL, "h100-sxm", devices, total_tokens=tokens, **members.pop("workload", {}))
    return {**asked, "efficiency": ASSUMED, "rental": rental, **members}


def priced(price="3", **terms):
    return {"price_per_device_hour": usd(price), **terms}


def lines(answer):
    return {line["name"]: line["quantity"] for line in answer["lines"]}


def filled(answer):
    return {default["pointer"]: default["value"] for default in answer["defaults"]}


def total(answer):
    return float(answer["total"]["amount"])


class TestInstances:
    def test_devices_that_are_paid_and_not_used_are_a_line(self, snapshot):
        answer = ask(snapshot, "cost", run(priced(devices_per_instance=8), devices=5))
        assert lines(answer) == pytest.approx({"rental": 5000.0, "unused_devices": 3000.0})
        assert total(answer) == pytest.approx(24_000.0, abs=0.01)
        rent = answer["rent"]
        assert (rent["instances"], rent["devices_per_instance"]) == (1, 8)
        assert rent["paid_device_hours"]["value"] == pytest.approx(8000.0)
        assert answer["device_hours"]["value"] == pytest.approx(5000.0)

    def test_an_offer_rents_its_whole_instance(self, snapshot):
        """A p5.48xlarge has eight H100."""
        asked = run({"offer_id": "aws-p5-48xlarge-us-east-1-on-demand"}, devices=1)
        found = lines(ask(snapshot, "cost", asked))
        assert found.pop("billing_rounding") < 8 / 3600  # by the second
        assert found == pytest.approx({"rental": 1000.0, "unused_devices": 7000.0})

    def test_full_instances_leave_none(self, snapshot):
        answer = ask(snapshot, "cost", run(priced(devices_per_instance=8), devices=16))
        assert lines(answer) == pytest.approx({"rental": 16_000.0})


class TestTime:
    @pytest.mark.parametrize(
        ("billing", "hours", "billed"),
        [
            ({"increment_seconds": 3600.0}, 10.25, 11.0),
            ({"increment_seconds": 60.0}, 10.25, 10.25),
            ({"minimum_seconds": 86_400.0}, 10.25, 24.0),
            ({"increment_seconds": 3600.0, "minimum_seconds": 60.0}, 0.001, 1.0),
        ],
    )
    def test_increments_and_a_minimum(self, snapshot, billing, hours, billed):
        answer = ask(snapshot, "cost", run(priced(billing=billing), hours=hours))
        assert answer["rent"]["paid_device_hours"]["value"] == pytest.approx(8 * billed)
        assert total(answer) == pytest.approx(24 * billed, abs=0.02)
        assert sum(lines(answer).values()) == pytest.approx(8 * billed)


class TestSpot:
    CHECKPOINTED = {"checkpointing": {"interval_seconds": 1800.0, "stall_seconds": 20.0}}

    def spot(self, rate, workload=None, **terms):
        return run(priced("1.6", devices_per_instance=8, spot={"interruptions_per_hour": rate, **terms}),
                   workload=self.CHECKPOINTED if workload is None else workload)  # fmt: skip

    def test_without_interruptions_it_costs_its_hours(self, snapshot):
        plain = ask(snapshot, "cost", run(priced("1.6", devices_per_instance=8), workload=self.CHECKPOINTED))
        answer = ask(snapshot, "cost", self.spot(0.0))
        assert answer["lines"] == plain["lines"]
        assert answer["total"] == plain["total"]
        assert answer["rent"]["interruptions"]["expected_interruptions"] == 0.0

    def test_lost_work_and_restarts_are_a_line(self, snapshot):
        """Once in 20 hours for 1,000 hours and a bit: about 51 times half an interval and a restart."""
        answer = ask(snapshot, "cost", self.spot(0.05, restart_seconds=600.0))
        found = answer["rent"]["interruptions"]
        assert found["mean_time_between_interruptions_seconds"] == 72_000.0
        assert found["expected_interruptions"] == pytest.approx(1000 * 1.011 / 20, rel=0.03)
        lost = found["expected_interruptions"] * ((1800 + 20) / 2 + 600) / 3600 * 8
        assert found["extra_device_hours"]["value"] == pytest.approx(lost, rel=0.02)
        assert lines(answer)["spot_interruptions"] == pytest.approx(found["extra_device_hours"]["value"])
        plain = ask(snapshot, "cost", run(priced("1.6", devices_per_instance=8), workload=self.CHECKPOINTED))
        assert found["duration_seconds"] == answer["duration_seconds"]
        longer = answer["duration_seconds"]["value"] - plain["duration_seconds"]["value"]
        assert longer * 8 / 3600 == pytest.approx(found["extra_device_hours"]["value"])

    def test_without_a_checkpoint_each_starts_the_run_anew(self, snapshot):
        """M e^(R / M) (e^(T / M) - 1) for 100 hours struck every 50: 320.5 with ten minutes to restart."""
        terms = {"spot": {"interruptions_per_hour": 0.02, "restart_seconds": 600.0}}
        workload = {"checkpointing": {"mode": "none"}}
        asked = run(priced("1.6", devices_per_instance=8, **terms), hours=100.0, workload=workload)
        answer = ask(snapshot, "cost", asked)
        lasting = answer["rent"]["interruptions"]["duration_seconds"]["value"] / 3600
        assert lasting == pytest.approx(50 * 2.718281828 ** (1 / 300) * (2.718281828**2 - 1), rel=1e-6)
        assert "RESTARTED_FROM_BEGINNING" in codes(answer["warnings"])
        assert "/workload/checkpointing/interval_seconds" not in filled(answer)

    def test_checkpoints_that_are_left_open_are_as_often_as_is_best(self, snapshot):
        """Llama 3.1 70B on 64 devices: 14 bytes a parameter at 64 x 0.12 GB/s stop training for 128.6 s.

        Eight instances that are each taken back every 20 hours are interrupted every 9,000 s:
        sqrt(2 x 128.6 x 9000) (1 + x / 3 + x^2 / 9) - 128.6 = 1,437 s with x = sqrt(128.6 / 18000).
        """
        asked = {
            **question("llama-3.1-70b", "h100-sxm", 64, sequence_length=8192, global_batch_size=256),
            "rental": priced("1.5", devices_per_instance=8, spot={"interruptions_per_hour": 0.05}),
        }
        asked["workload"]["total_tokens"] = 10**11
        answer = ask(snapshot, "cost", asked)
        chosen = filled(answer)
        assert float(chosen["/workload/checkpointing/interval_seconds"]) == pytest.approx(1437, abs=1)
        rate = chosen["/workload/checkpointing/storage_bandwidth_bytes_per_second"]
        assert float(rate) == pytest.approx(64 * 1.2e8)
        asked["workload"]["checkpointing"] = {"storage_bandwidth_bytes_per_second": float(rate)}
        stated = ask(snapshot, "cost", asked)
        assert stated["total"] == answer["total"]
        assert stated["rent"]["interruptions"] == answer["rent"]["interruptions"]

    def test_a_run_that_saves_nothing_has_no_setting_of_checkpoints(self, snapshot):
        asked = self.spot(0.05, workload={"checkpointing": {"mode": "none", "interval_seconds": 60.0}})
        where = ("NOT_APPLICABLE", "/workload/checkpointing/interval_seconds")
        assert refusal(snapshot, "cost", asked) == where

    def test_a_run_that_never_ends_is_refused(self, snapshot):
        where = "/rental/spot/interruptions_per_hour"
        assert refusal(snapshot, "cost", self.spot(1e6)) == ("NO_PROGRESS", where)
        nothing = {"checkpointing": {"mode": "none"}}
        assert refusal(snapshot, "cost", self.spot(0.5, workload=nothing)) == ("NO_PROGRESS", where)
        assert total(ask(snapshot, "cost", self.spot(0.5, workload={}))) > 0.0

    def test_what_a_checkpoint_stops_must_be_known(self, snapshot):
        asked = self.spot(0.05, workload={"checkpointing": {"interval_seconds": 1800.0}})
        assert refusal(snapshot, "cost", asked)[0] == "CHECKPOINT_UNKNOWN"

    def test_the_restart_is_that_of_published_runs(self, snapshot):
        answer = ask(snapshot, "cost", self.spot(0.05))
        assert answer["total"]["basis"] == "reference"
        assert float(answer["total"]["low"]) < total(answer) < float(answer["total"]["high"])

    @given(st.floats(0.0, 0.2), st.floats(1.0, 2000.0), st.integers(1, 64), st.booleans(), st.booleans())
    def test_any_rate_has_an_answer(self, rate, hours, devices, fails, chosen):
        checkpointing = {"stall_seconds": 20.0, **({"interval_seconds": 1800.0} if chosen else {})}
        workload = {"checkpointing": checkpointing, **({"reliability": {}} if fails else {})}
        rental = priced("1.6", devices_per_instance=8, spot={"interruptions_per_hour": rate})
        answer = ask(shipped(), "cost", run(rental, devices, hours, workload=workload))
        plain = run(priced("1.6", devices_per_instance=8), devices, hours, workload=workload)
        assert total(answer) >= total(ask(shipped(), "cost", plain)) - 0.011

    def test_a_server_is_replaced(self, snapshot):
        """A day, taken back once in 20 hours for ten minutes: 24 x 0.05 x 600 / 3600 = 0.2 hours."""
        asked = {
            **question("llama-3.1-8b", "h100-sxm"),
            "workload": {"kind": "inference", "concurrency": 8, "horizon": {"duration_seconds": 86_400.0}},
            "rental": priced(spot={"interruptions_per_hour": 0.05, "restart_seconds": 600.0}),
        }
        assert lines(ask(snapshot, "cost", asked)) == pytest.approx(
            {"rental": 24.0, "spot_interruptions": 0.2}
        )

    def test_an_offer_without_a_rate_says_so(self, snapshot):
        answer = ask(snapshot, "cost", run({"offer_id": "crusoe-h100-sxm-80gb-spot"}))
        assert "INTERRUPTIONS_NOT_COUNTED" in codes(answer["warnings"])


class TestCommitments:
    def test_at_full_use_it_costs_its_price_list(self, snapshot):
        """Eight devices for a term of 1,000 hours: 8,000 hours at 2 USD and 8 x 1,000 USD upfront."""
        terms = {"term_hours": 1000.0 * (1 - 1e-12), "upfront_per_device": usd("1000")}
        answer = ask(snapshot, "cost", run(priced("2", commitment=terms), hours=1000.0))
        assert answer["total"]["amount"] == "24000.00"
        assert answer["rent"]["due_at_start"] == usd("8000.00")
        assert lines(answer)["idle_commitment"] == pytest.approx(0.0, abs=1e-3)

    def test_what_is_not_used_is_a_line(self, snapshot):
        answer = ask(snapshot, "cost", run(priced("2", commitment={"term_hours": 8766.0})))
        assert lines(answer) == pytest.approx({"rental": 8000.0, "idle_commitment": 8 * 7766.0})
        assert total(answer) == pytest.approx(8 * 8766 * 2)

    def test_other_use_bears_its_part(self, snapshot):
        terms = {"term_hours": 8766.0, "idle_share": 0.2, "upfront_per_device": usd("8766")}
        answer = ask(snapshot, "cost", run(priced("2", commitment=terms)))
        assert lines(answer)["idle_commitment"] == pytest.approx(2000.0)
        assert lines(answer)["upfront"] == pytest.approx(8 * 1250 / 8766)
        assert total(answer) == pytest.approx(10_000 * (2 + 1), abs=0.01)

    def test_the_terms_of_an_offer(self, snapshot):
        """A year of an instance at 87,600 USD upfront and 8 USD an hour."""
        offer = replace(
            snapshot.offers[RESERVED],
            purchase_option="reserved",
            accelerator_count=8,
            price_per_instance_hour=Decimal(18),
            price_per_device_hour=Decimal("2.25"),
            term=CommitmentTerm(days=365, upfront=Decimal(87_600), hourly=Decimal(8)),
        )
        catalog = _offering(snapshot, offer)
        answer = ask(catalog, "cost", run({"offer_id": "offered"}))
        assert total(answer) == pytest.approx(8760 * 18)
        assert answer["rent"]["due_at_start"]["amount"] == "87600.00"
        at_least = offer.term._replace(minimum_instances=2, minimum_spend_per_hour=Decimal(20))
        answer = ask(_offering(snapshot, replace(offer, term=at_least)), "cost", run({"offer_id": "offered"}))
        assert answer["rent"]["instances"] == 2
        assert lines(answer)["unused_devices"] == pytest.approx(8000.0)
        assert lines(answer)["minimum_spend"] == pytest.approx(8760.0)
        assert total(answer) == pytest.approx(8760 * (2 * 18 + 4))

    def test_a_commitment_of_unknown_length_says_so(self, snapshot):
        asked = run(priced(purchase_option="reserved"))
        assert "COMMITMENT_NOT_COUNTED" in codes(ask(snapshot, "cost", asked)["warnings"])


def _offering(snapshot, offer):
    """The catalog with one more offer."""
    return replace(snapshot, offers=with_rows(snapshot.offers, {"offered": offer}))


class TestBlocks:
    def test_whole_blocks_are_paid_before_they_start(self, snapshot):
        """100 hours are five days."""
        answer = ask(snapshot, "cost", run(priced("2", capacity_block={"block_hours": 24.0}), hours=100.0))
        assert lines(answer) == pytest.approx({"rental": 800.0, "unused_block": 160.0})
        assert answer["rent"]["due_at_start"] == usd("1920.00")
        assert answer["total"]["amount"] == "1920.00"

    def test_an_offer_of_blocks_needs_their_length(self, snapshot):
        answer = ask(snapshot, "cost", run({"offer_id": BLOCK}))
        assert "BLOCK_NOT_COUNTED" in codes(answer["warnings"])
        answer = ask(snapshot, "cost", run({"offer_id": BLOCK, "capacity_block": {"block_hours": 24.0}}))
        assert lines(answer)["unused_block"] == pytest.approx(8 * 8.0)
        assert "BLOCK_NOT_COUNTED" not in codes(answer["warnings"])


class TestLosses:
    def test_time_that_makes_no_progress_has_lines_of_its_own(self, snapshot):
        workload = {"checkpointing": {"interval_seconds": 1800.0, "stall_seconds": 20.0}, "reliability": {}}
        answer = ask(snapshot, "cost", run(priced(), devices=64, workload=workload))
        found = lines(answer)
        assert list(found) == ["rental", "checkpoints", "lost_work", "restarts"]
        assert found["rental"] == pytest.approx(64_000.0)
        assert found["checkpoints"] == pytest.approx(64_000 * 20 / 1800)
        assert sum(found.values()) == pytest.approx(answer["device_hours"]["value"])
        assert sum(float(line["amount"]["amount"]) for line in answer["lines"]) == pytest.approx(
            total(answer)
        )

    def test_waiting_for_data_has_one(self, snapshot):
        pipeline = {
            "stored_bytes_per_sample": 1e6,
            "storage_bandwidth_bytes_per_second": 1e6,
            "access_factor": 1.0,
        }
        workload = {"sequence_length": 2048, "global_batch_size": 64, "data_pipeline": pipeline}
        answer = ask(snapshot, "cost", run(priced(), hours=10.0, workload=workload))
        found = lines(answer)
        assert found["rental"] == pytest.approx(80.0)
        assert found["data_waiting"] == pytest.approx(answer["device_hours"]["value"] - 80.0)


class TestRanges:
    def test_a_range_of_prices_widens_the_total(self, snapshot):
        answer = ask(snapshot, "cost", run(priced("3", price_range={"low": "2", "high": "4.5"})))
        ends = [float(answer["total"][name]) for name in ("low", "amount", "high")]
        assert ends == pytest.approx([16_000, 24_000, 36_000], abs=0.01)

    def test_a_price_outside_its_range_is_refused(self, snapshot):
        asked = run(priced("5", price_range={"low": "2", "high": "4.5"}))
        assert refusal(snapshot, "cost", asked) == ("PRICE_RANGE", "/rental/price_range")


@pytest.mark.parametrize(
    ("rental", "code", "pointer"),
    [
        (
            priced(spot={"interruptions_per_hour": 0.0}, capacity_block={"block_hours": 24.0}),
            "RENTAL_TERMS",
            "/rental/capacity_block",
        ),
        (
            {"offer_id": "crusoe-h100-sxm-80gb-on-demand", "spot": {"interruptions_per_hour": 0.1}},
            "OFFER_MISMATCH",
            "/rental/spot",
        ),
        (
            priced(commitment={"term_hours": 100.0, "upfront_per_device": usd("1", "EUR")}),
            "CURRENCY_MISMATCH",
            "/rental/commitment/upfront_per_device/currency_code",
        ),
    ],
)
def test_terms_that_contradict_each_other_are_refused(snapshot, rental, code, pointer):
    assert refusal(snapshot, "cost", run(rental)) == (code, pointer)


TERMS = st.fixed_dictionaries(
    {},
    optional={
        "devices_per_instance": st.sampled_from([1, 4, 8]),
        "billing": st.fixed_dictionaries({"increment_seconds": st.sampled_from([1.0, 60.0, 3600.0])}),
    },
) | st.one_of(
    st.fixed_dictionaries({"capacity_block": st.fixed_dictionaries({"block_hours": st.floats(1.0, 200.0)})}),
    st.fixed_dictionaries(
        {
            "commitment": st.fixed_dictionaries(
                {"term_hours": st.floats(1.0, 9000.0)},
                optional={"idle_share": st.floats(0.0, 0.9), "upfront_per_device": st.just(usd("999.99"))},
            )
        }
    ),
)


@given(TERMS, st.integers(1, 100), st.floats(0.01, 5000.0), st.sampled_from(["USD", "JPY", "KWD"]))
def test_lines_sum_to_the_total(terms, devices, hours, currency):
    if "upfront_per_device" in terms.get("commitment", {}):
        terms = {"commitment": {**terms["commitment"], "upfront_per_device": usd("999.99", currency)}}
    rental = {"price_per_device_hour": usd("2.4979", currency), **terms}
    answer = ask(shipped(), "cost", run(rental, devices, hours))
    assert sum(Decimal(line["amount"]["amount"]) for line in answer["lines"]) == Decimal(
        answer["total"]["amount"]
    )
    assert answer["rent"]["total"] == answer["total"]
    assert answer["rent"]["paid_device_hours"]["value"] >= answer["device_hours"]["value"] * (1 - 1e-9)
    assert gaps(answer) == {}


@given(TERMS, st.integers(1, 100), st.floats(0.01, 5000.0), st.floats(0.01, 5000.0))
def test_more_hours_are_never_cheaper(terms, devices, one, other):
    """On any of these terms, but for the rounding of each line."""
    less, more = (
        total(ask(shipped(), "cost", run(priced("2.4979", **terms), devices, hours)))
        for hours in sorted((one, other))
    )
    assert less <= more + 0.02
