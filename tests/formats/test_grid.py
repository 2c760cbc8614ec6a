"""Series of grids as published: EPA's and eeco's tables, ENTSO-E's documents, and others refused."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from service.formats.grid import read_avert_regions, read_entsoe_prices, read_month_hours
from service.planning.errors import PlanningError

DATA = Path(__file__).parents[1] / "data" / "grid"
AVERT = (DATA / "avert-2023-co2-lb-per-kwh-168h.csv").read_text()
MONTH_HOURS = (DATA / "eeco-month-hour-emissions.csv").read_text()
HOURS = (DATA / "entsoe-a44-es-2025-09-29.xml").read_text()
QUARTERS = (DATA / "entsoe-a44-es-2025-10-01-15min.xml").read_text()


def refused(read, text):
    with pytest.raises(PlanningError) as caught:
        read(text)
    assert caught.value.pointer == "/content"
    return caught.value.code


class TestAvert:
    def test_pounds_become_kilograms(self):
        """Hour 0 of California: 1.11 lb/kWh are 503.5 g; hour 1 of Texas 1.49 lb."""
        regions = read_avert_regions(AVERT)
        assert len(regions) == 17
        assert regions["CA"][0] == pytest.approx(0.5035, abs=5e-5)
        assert regions["TE"][1] == pytest.approx(1.49 * 0.45359237)
        assert {len(values) for values in regions.values()} == {168}
        # More load may let a cleaner plant run.
        assert min(min(values) for values in regions.values()) < 0.0

    @pytest.mark.parametrize(
        "change",
        [
            ("1,1,", "1,2,"),
            ("Month,", "month,"),
            ("0.94", "x"),
            ("0.94", "inf"),
            ("0.94", "nan"),
            ("0.94,", ""),
            ("CA,CENT", "CA,CA"),
            ("1,1,", "1,one,"),
            ("1,1,", "1,²,"),
            ("1,1,", "1," + "1" * 5000 + ","),
        ],
    )
    def test_what_is_not_a_whole_series_is_refused(self, change):
        assert refused(read_avert_regions, AVERT.replace(*change, 1)) == "GRID_FILE"

    def test_nothing_and_no_hours_are_refused(self):
        for text in ("", "Month,Timestamp,CA\n", "Month,Timestamp\n1,0\n", 'Month,Timestamp,"CA\n'):
            assert refused(read_avert_regions, text) == "GRID_FILE"


class TestMonthHours:
    def test_kilograms_of_a_megawatt_hour(self):
        values = read_month_hours(MONTH_HOURS)
        assert len(values) == 288
        assert values[0] == pytest.approx(0.397800184)
        assert values[1] == pytest.approx(0.4195726)
        assert values[287] == pytest.approx(0.389181936)

    def test_any_order_of_rows(self):
        header, *rows = MONTH_HOURS.splitlines()
        assert read_month_hours("\n".join([header, *reversed(rows)])) == read_month_hours(MONTH_HOURS)

    @pytest.mark.parametrize(
        "change",
        [
            ("1,1,", "1,0,"),
            ("1,1,", "13,1,"),
            ("1,1,", "1,24,"),
            ("month,", "m,"),
            ("1,0,397.800184\n", ""),
            ("1,0,", "1,0,-"),
        ],
    )
    def test_a_hole_or_a_double_is_refused(self, change):
        assert refused(read_month_hours, MONTH_HOURS.replace(*change, 1)) == "GRID_FILE"


class TestEntsoe:
    def test_hours_of_a_day(self):
        """29 September 2025 in Spain: 24 hours from 22:00 UTC, 51.6 EUR/MWh first and 32 fourth."""
        found = read_entsoe_prices(HOURS)
        assert found.prices.start == datetime(2025, 9, 28, 22, tzinfo=UTC)
        assert (found.prices.interval_minutes, len(found.prices.values)) == (60, 24)
        assert found.prices.values[[0, 3]] == pytest.approx([0.0516, 0.032])
        assert (found.currency_code, found.zone) == ("EUR", "10YES-REE------0")

    def test_a_position_that_is_left_out_repeats_the_one_before(self):
        """Positions 12, 15 and 84 of the first day of quarters are not there."""
        values = read_entsoe_prices(QUARTERS).prices.values
        assert len(values) == 96
        assert values[0] == pytest.approx(0.1051)
        assert values[11] == values[10] == pytest.approx(0.1)
        assert values[14] == values[13]
        assert values[83] == values[82]

    def test_under_the_other_curve_a_hole_is_refused(self):
        assert refused(read_entsoe_prices, QUARTERS.replace("A03", "A01")) == "PRICE_FILE"
        assert np.array_equal(
            read_entsoe_prices(HOURS.replace("A03", "A01")).prices.values,
            read_entsoe_prices(HOURS).prices.values,
        ) == (HOURS.count("<Point>") == 24)

    def test_days_follow_each_other_in_any_order(self):
        """The same day moved by one and put in front."""
        later = HOURS.replace("2025-09-29T22:00Z", "2025-09-30T22:00Z").replace(
            "2025-09-28T22:00Z", "2025-09-29T22:00Z"
        )
        begin, end = later.index("<TimeSeries>"), later.index("</TimeSeries>") + len("</TimeSeries>")
        both = HOURS.replace("<TimeSeries>", later[begin:end] + "<TimeSeries>", 1)
        found = read_entsoe_prices(both).prices
        assert len(found.values) == 48
        assert found.start == datetime(2025, 9, 28, 22, tzinfo=UTC)
        apart = both.replace("2025-09-30T22:00Z", "2025-10-01T22:00Z").replace(
            "<start>2025-09-29T22:00Z", "<start>2025-09-30T22:00Z"
        )
        assert refused(read_entsoe_prices, apart) == "PRICE_FILE"

    def test_no_entity_is_expanded_or_fetched(self):
        bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]>'
        head, body = HOURS.split("?>", 1)
        assert refused(read_entsoe_prices, f"{head}?>{bomb}{body}") == "PRICE_FILE"
        assert refused(read_entsoe_prices, '<?xml version="1.0" encoding="none"?><x/>') == "PRICE_FILE"

    @pytest.mark.parametrize(
        "change",
        [
            ("<type>A44", "<type>A65"),
            ("PT60M", "PT7M"),
            ("MWH", "J"),
            ("A03", "A05"),
            ("<position>1<", "<position>2<"),
            ("<position>1<", "<position>99<"),
            ("<position>1<", "<position>x<"),
            (">51.6<", ">nan<"),
            (
                "2025-09-29T22:00Z</end></timeInterval><resolution>",
                "2025-09-29T22:10Z</end></timeInterval><resolution>",
            ),
            ("T22:00Z</end></timeInterval><resolution>", "</end></timeInterval><resolution>"),
            ("EUR", "euro"),
            ("Publication_MarketDocument", "Other"),
            ("</TimeSeries>", ""),
        ],
    )
    def test_other_documents_are_refused(self, change):
        text = HOURS.replace(*change) if change[0].startswith("Publication") else HOURS.replace(*change, 1)
        assert refused(read_entsoe_prices, text) == "PRICE_FILE"

    def test_a_document_without_prices_is_refused(self):
        begin, end = HOURS.index("<TimeSeries>"), HOURS.index("</TimeSeries>") + len("</TimeSeries>")
        assert refused(read_entsoe_prices, HOURS[:begin] + HOURS[end:]) == "PRICE_FILE"
        assert refused(read_entsoe_prices, "") == "PRICE_FILE"

    def test_an_interval_is_an_interval(self):
        found = read_entsoe_prices(QUARTERS).prices
        assert found.start + timedelta(minutes=15) * len(found.values) == datetime(
            2025, 10, 1, 22, tzinfo=UTC
        )
