"""Bills as tables: what may be one, what is wrong with others, and what its charges come to by day."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.budgets.actuals.matching import ChargeOwner, TooManyDaysError, sum_by_day
from service.budgets.money import to_decimal
from service.formats.focus import LONGEST, read_focus, strip_apostrophe
from service.kit.http.csv_tables import neutralize_text
from service.schemas.tariffs import parse_day as calendar_day
from tests.budgets.bills import COLUMNS, bill, imported, row
from tests.prepared import ON_SQLITE

SAMPLE = Path(__file__).parents[1] / "data" / "bills" / "focus-1.0-sample.csv"
"""Rows of the sample data set of FOCUS 1.0: times without a zone, NULL for what is absent."""


class TestTable:
    def test_a_sample_of_the_specification_is_read(self):
        read = read_focus(SAMPLE.read_text())
        assert (len(read.rows), read.faults, read.has_tags) == (12, [], True)
        # 0.00000080000, the first cost of the file, to its last digit.
        assert (read.rows[0].billed, read.rows[0].line) == (Decimal("0.0000008"), 2)
        assert read.rows[0].charge_start.isoformat() == "2024-09-18T22:00:00+00:00"
        assert any(each.tags.get("application") for each in read.rows)

    @pytest.mark.parametrize(
        ("changes", "code", "place"),
        [
            ({"BilledCost": ""}, "ABSENT", "line 3, BilledCost"),
            ({"EffectiveCost": "NULL"}, "ABSENT", "line 3, EffectiveCost"),
            ({"BilledCost": "1,000"}, "NUMBER", "line 3, BilledCost"),
            ({"BilledCost": "NaN"}, "NUMBER", "line 3, BilledCost"),
            ({"BilledCost": "1e99"}, "NUMBER", "line 3, BilledCost"),
            ({"BillingCurrency": "usd"}, "CURRENCY", "line 3, BillingCurrency"),
            ({"ChargeCategory": "Refund"}, "CATEGORY", "line 3, ChargeCategory"),
            ({"ChargePeriodEnd": "2025-02-01"}, "PERIOD", "line 3, ChargePeriodEnd"),
            ({"ChargePeriodStart": "3/1/25"}, "TIME", "line 3, ChargePeriodStart"),
            ({"ChargePeriodStart": "2025-02-30"}, "TIME", "line 3, ChargePeriodStart"),
            ({"ChargePeriodStart": "2025-03-01T00:00:00+19:00"}, "TIME", "line 3, ChargePeriodStart"),
            ({"ChargePeriodStart": "2025-03-01T00:00:00 CET"}, "TIME", "line 3, ChargePeriodStart"),
            ({"Tags": "quote_id=1"}, "TAGS", "line 3, Tags"),
            ({"Tags": "[" * 50_000}, "TAGS", "line 3, Tags"),
        ],
    )
    def test_a_wrong_row_is_named_by_its_line(self, changes, code, place):
        (fault,) = read_focus(bill(row(), row(**changes))).faults
        assert (fault.code, f"line {fault.line}, {fault.column}") == (code, place)

    @ON_SQLITE
    def test_each_fault_is_told_and_nothing_is_kept(self, reader):
        content = bill(*[row()] * 3, *[row(BilledCost="=1+1")] * 30)
        refused = imported(reader, content, status=422)
        assert (refused["code"], len(refused["errors"])) == ("ACTUALS_REFUSED", 20)
        first = {"pointer": "/content", "code": "NUMBER"}
        detail = "line 5, BilledCost: it is not a decimal number"
        assert refused["errors"][0] == first | {"detail": detail}
        assert reader.get("/v1/actuals").json()["items"] == []

    @pytest.mark.parametrize(
        ("written", "read"),
        [
            ("2025-03-02", "2025-03-02T00:00:00"),
            ("2025-03-02 01:30:00", "2025-03-02T01:30:00"),
            ("2025-03-02 01:30:00 UTC", "2025-03-02T01:30:00"),
            ("2025-03-02T01:30Z", "2025-03-02T01:30:00"),
            ("2025-03-02T01:30:00.0000000Z", "2025-03-02T01:30:00"),
            ("2025-03-02T01:30:00.250-08:00", "2025-03-02T09:30:00.250000"),
            ("2025-03-02T01:30:00+05:30", "2025-03-01T20:00:00"),
        ],
    )
    def test_times_of_exports_are_read_in_utc(self, written, read):
        (found,) = read_focus(bill(row(ChargePeriodStart=written))).rows
        assert found.charge_start.isoformat() == f"{read}+00:00"

    @pytest.mark.parametrize(("written", "read"), [("1.5E+2", "150"), ("25e-1", "2.5"), ("-0.10", "-0.1")])
    def test_numbers_of_exports_are_read_exactly(self, written, read):
        assert read_focus(bill(row(written))).rows[0].billed == Decimal(read)

    def test_columns_come_in_any_order_and_optional_ones_may_be_missing(self):
        needed = [name for name in COLUMNS if name not in ("Tags", "SubAccountId")]
        columns = ["x_Ours", *reversed(needed), "ServiceProviderName"]
        (found,) = read_focus("\ufeff" + bill(row("7"), columns=columns)).rows
        assert (found.effective, found.tags, found.sub_account, found.line) == (Decimal(7), {}, None, 2)

    def test_a_cell_may_hold_line_breaks(self):
        columns = (*COLUMNS, "ChargeDescription")
        rows = [row(ChargeDescription='two\r\nlines, "quoted"'), row(BilledCost="x")]
        (fault,) = read_focus(bill(*rows, columns=columns)).faults
        assert (fault.line, fault.column) == (4, "BilledCost")

    def test_tags_of_a_part_go_before_those_of_the_whole(self):
        """FOCUS 1.3: a provider splits the charge of what several share."""
        parts = {"AllocatedTags": '{"quote_id": "part", "pod": true}'}
        split = row(tags={"quote_id": "whole", "team": "x"}, **parts)
        (found,) = read_focus(bill(split, columns=(*COLUMNS, "AllocatedTags"))).rows
        assert found.tags == {"quote_id": "part", "pod": "true", "team": "x"}

    @pytest.mark.parametrize(
        ("content", "code"),
        [
            (bill(row(), columns=[name for name in COLUMNS if name != "EffectiveCost"]), "COLUMN_MISSING"),
            (bill(row(), columns=[*COLUMNS, "Tags"]), "COLUMN_TWICE"),
            (bill(), "NO_ROWS"),
            (bill(row()) + "1,2\n", "CELLS"),
            ('BilledCost\n"1', "TABLE"),
        ],
    )
    def test_what_is_no_bill_is_refused(self, content, code):
        read = read_focus(content)
        assert (read.rows, read.faults[0].code) == ([], code)

    @given(st.text(max_size=20))
    def test_no_text_of_an_export_is_computed_by_a_spreadsheet(self, text):
        assert not neutralize_text(text).startswith(("=", "+", "-", "@", "\t", "\r"))
        assert strip_apostrophe(neutralize_text(text)) == text or text.startswith("'")


class TestDays:
    @given(
        st.lists(
            st.tuples(st.decimals(-1000, 1000, places=9), st.integers(0, 40), st.integers(0, 2_000_000)),
            min_size=1,
            max_size=8,
        )
    )
    def test_parts_of_days_add_up_to_their_charges(self, charges):
        first = read_focus(bill(row())).rows[0]
        rows = [
            first._replace(
                billed=cost,
                effective=-cost,
                charge_start=first.charge_start.replace(day=1 + days % 28),
                charge_end=first.charge_start.replace(day=1 + days % 28, microsecond=0)
                + (first.charge_end - first.charge_start) * (micros / 1_000_000),
            )
            for cost, days, micros in charges
        ]
        found = sum_by_day((each, ChargeOwner(None, "c")) for each in rows)
        whole = sum(cost for cost, _, _ in charges)
        assert abs(to_decimal(sum(each.billed for each in found.values())) - whole) <= Decimal("0.0000005")
        assert sum(each.billed for each in found.values()) == -sum(each.effective for each in found.values())
        assert all(calendar_day(key.day, "") for key in found)

    def test_charges_over_too_many_days_are_refused(self):
        first = read_focus(bill(row())).rows[0]
        long = first._replace(charge_end=first.charge_start + LONGEST)
        rows = [long._replace(charge_start=first.charge_start + timedelta(seconds=k)) for k in range(30)]
        with pytest.raises(TooManyDaysError):
            sum_by_day((each, ChargeOwner(None, "c")) for each in rows)
        assert len(sum_by_day([(long, ChargeOwner(None, "c"))] * 1000)) == LONGEST.days
