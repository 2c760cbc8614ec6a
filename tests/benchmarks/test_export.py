"""Results as tables: CSV and Parquet hold the same, are written some rows at a time, and read back."""

import csv
import io
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyarrow import parquet

from service.benchmarks import export, router
from tests import forked
from tests.benchmarks.records import COPY, GEMM, POWER

READ = {
    "text": str,
    "integer": int,
    "number": float,
    "boolean": {"true": True, "false": False}.__getitem__,
    "time": datetime.fromisoformat,
}


@pytest.fixture
def measured(nodes):
    """Results of every kind."""
    nodes.node("a")
    nodes.run()
    lease = nodes.claim("a")
    for number in range(1, 8):
        nodes.reported(number, "a", lease, repeat=number, clock_hz=3.1e9)
    nodes.reported(8, "a", lease, benchmark=COPY)
    nodes.reported(9, "a", lease, benchmark=POWER, readings=[71.0, 72.0])
    nodes.reported(10, "a", lease, benchmark=COPY, status="timeout", failure={"reason": "TIMEOUT"})
    nodes.reported(11, "a", lease, benchmark=COPY, repeat=9, nonce="c" * 32)
    return nodes


def exported(nodes, **query):
    answer = nodes.call("GET", "/v1/benchmark-results:export", params=query)
    assert answer.status_code == 200, answer.text
    return answer


def read_csv(content):
    """Rows of values, each of the kind of its column."""
    names, *lines = csv.reader(io.StringIO(content.decode()))
    kinds = {column.name: column.kind for column in export.COLUMNS}
    rows = []
    for line in lines:
        cells = zip(names, line, strict=True)
        rows.append({name: READ[kinds[name]](cell) if cell else None for name, cell in cells})
    return rows


def read_parquet(content):
    return parquet.read_table(pa.BufferReader(content)).to_pylist()


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.parametrize("rows_at_a_time", [2, 500])
def test_both_formats_say_the_same(measured, monkeypatch, rows_at_a_time):
    monkeypatch.setattr(router, "_AT_A_TIME", rows_at_a_time)
    lines, table = exported(measured), exported(measured, format="parquet")
    assert lines.headers["content-type"] == "text/csv; charset=utf-8"
    assert table.headers["content-type"] == "application/vnd.apache.parquet"
    assert table.headers["content-disposition"] == 'attachment; filename="benchmark-results.parquet"'
    rows = read_parquet(table.content)
    assert read_csv(lines.content) == rows
    assert [row["id"] for row in rows] == [
        item["id"] for item in measured.get("/v1/benchmark-results", page_size=500)["items"]
    ]
    groups = parquet.ParquetFile(pa.BufferReader(table.content)).num_row_groups
    assert groups == -(-len(rows) // rows_at_a_time)


def test_rows_say_what_the_results_say(measured):
    rows = {row["id"]: row for row in read_parquet(exported(measured, format="parquet").content)}
    items = measured.get("/v1/benchmark-results")["items"]
    assert len(rows) == len(items) == 11
    for item in items:
        row = rows[item["id"]]
        assert row[f"figure_{item['metric']}"] == item.get("figure")
        others = {f"figure_{metric}" for metric in export.FIGURES} - {f"figure_{item['metric']}"}
        assert {row[name] for name in others} == {None}
        for name in ("lease", "conflicts_with", "is_counted", "node_id", "hardware", "status", "reason"):
            assert row[name] == item.get(name)
        assert row["sm_clock_hz"] == item["conditions"].get("sm_clock_hz")
        assert row["sample_median"] == item.get("summary", {}).get("median")
        assert row["received_at"].replace(tzinfo=UTC) == datetime.fromisoformat(item["received_at"])


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_filters_choose_the_rows(measured):
    rows = read_csv(exported(measured, benchmark=COPY, status="ok").content)
    assert {row["benchmark"] for row in rows} == {COPY}
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert read_csv(exported(measured, benchmark=GEMM, lease="unknown").content) == []


def test_nothing_has_columns_too(nodes):
    names = [column.name for column in export.COLUMNS]
    assert exported(nodes).text == ",".join(names) + "\r\n"
    assert parquet.read_schema(pa.BufferReader(exported(nodes, format="parquet").content)).names == names


def test_no_column_stands_twice():
    names = [column.name for column in export.COLUMNS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.parametrize("write", [export.render_csv, export.render_parquet])
def test_a_page_is_written_before_the_next_is_read(measured, write):
    """Rows come and go: what was read is sent on before more is asked for."""
    item = measured.get("/v1/benchmark-results")["items"][0]
    times = {
        name: datetime.fromisoformat(item[name]) for name in ("started_at", "finished_at", "received_at")
    }
    asked = []

    def pages():
        for number in range(3):
            asked.append(number)
            yield [{**item, **times}] * 100

    parts = write(pages())
    first = next(parts)
    assert asked == [0]
    assert first
    assert len(b"".join(parts)) > len(first)


def test_the_library_of_tables_is_loaded_when_it_is_asked_for(tmp_path):
    program = "import sys, service.app.application; print('pyarrow' in sys.modules)"
    assert forked.Process(exec, program, {}, folder=tmp_path).wait() == 0
    assert (tmp_path / "out").read_text() == "False\n"
