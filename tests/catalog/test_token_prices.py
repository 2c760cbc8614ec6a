"""Token prices over HTTP, on both databases; what every noun does is tested in test_operations."""

import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import event, insert

from service.app.examples import EXAMPLES
from service.catalog import imports, repository, transactions
from service.catalog import service as catalog
from service.catalog.errors import RowInUse
from service.catalog.registry import RESOURCES, TOKEN_PRICES
from service.catalog.shipped import list_shipped_documents
from service.kit.security.principals import DEFAULT_TENANT
from tests.prepared import ON_SQLITE

IMPORT = EXAMPLES["import_token_prices"]


def imported(client, **members):
    return client.post("/v1/token-prices:import", {**IMPORT, **members})


def test_prices_of_a_list(client):
    told = imported(client).json()
    assert told["created"] == ["example-decoder-large"]
    assert [(row["pointer"], row["code"]) for row in told["refused"]] == [("/example~1painter", "NOT_TOKENS")]
    row = client.get("/v1/token-prices/example-decoder-large").json()
    assert row["input_price_per_million_tokens"] == {"amount": "0.59", "currency_code": "USD"}
    assert row["as_of"] == "2026-11-20"
    assert imported(client).json()["unchanged"] == told["created"]
    older = imported(client, as_of="2025").json()["refused_reasons"]
    assert {reason["code"] for reason in older} == {"NOT_TOKENS", "OLDER_THAN_CATALOG"}


def test_a_model_of_the_catalog_is_found_by_its_published_name(client):
    entry = {
        "litellm_provider": "host",
        "mode": "chat",
        "input_cost_per_token": 1e-07,
        "output_cost_per_token": 1e-06,
    }
    (made,) = imported(client, content=json.dumps({"host/meta-llama/Llama-3.1-8B": entry})).json()["created"]
    assert client.get(f"/v1/token-prices/{made}").json()["model_id"] == "llama-3.1-8b"
    listed = client.get("/v1/token-prices?model_id=llama-3.1-8b").json()["items"]
    assert made in [row["id"] for row in listed]


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"input_price_per_million_tokens": {"amount": "0.00", "currency_code": "USD"}}, "", "PRICE_ZERO"),
        (
            {"cached_input_price_per_million_tokens": {"amount": "1", "currency_code": "EUR"}},
            "/",
            "CURRENCY_MISMATCH",
        ),
        ({"as_of": "2026-00"}, "/as_of", "DATE_INVALID"),
        ({"model_id": "no-such-model"}, "/model_id", "UNKNOWN_REFERENCE"),
    ],
)
@ON_SQLITE
def test_what_contradicts_itself_is_refused(reader, members, pointer, code):
    answer = reader.post("/v1/token-prices", {**EXAMPLES["create_token_price"], **members})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["code"] == code
    assert pointer in error["pointer"]


def test_what_ships_has_a_public_source(snapshot):
    rows = list_shipped_documents()["token_prices"]
    assert len({row["provider"] for row in rows}) >= 10
    assert all("url" in source for row in rows for source in row["sources"])
    known = snapshot.token_prices["groq-llama-3-3-70b-versatile"]
    assert (str(known.input_per_million), known.model_id) == ("0.59", "llama-3.3-70b")


def import_models(client, count):
    entry = {
        "litellm_provider": "host",
        "mode": "chat",
        "input_cost_per_token": 1e-07,
        "output_cost_per_token": 1e-06,
    }
    content = {f"host/m{number:03d}": entry for number in range(count)}
    return imported(client, content=json.dumps(content))


class TestAnImportInPieces:
    @pytest.fixture(autouse=True)
    def small_pieces(self, monkeypatch):
        monkeypatch.setattr(imports, "_ROWS_OF_A_PIECE", 3)

    def test_has_one_revision(self, client):
        before = import_models(client, 1).headers["Catalog-Revision"]
        answer = import_models(client, 8)
        assert len(answer.json()["created"]) == 7
        assert len(answer.json()["unchanged"]) == 1
        assert int(answer.headers["Catalog-Revision"]) == int(before) + 1
        rows = client.get("/v1/token-prices?provider=host").json()["items"]
        assert sorted(row["revision"] - int(before) for row in rows) == [0] + [1] * 7
        assert import_models(client, 8).headers["Catalog-Revision"] == answer.headers["Catalog-Revision"]

    def test_stores_nothing_where_a_later_piece_is_refused(self, client, monkeypatch):
        def refuse_last(_session, _resource, _tenant_id, documents):
            if any(row["id"] == "host-m007" for row in documents):
                raise RowInUse("a row is refused")

        monkeypatch.setattr(imports, "check_targets", refuse_last)
        assert import_models(client, 8).status_code == RowInUse.status
        assert client.get("/v1/token-prices?provider=host").json()["items"] == []

    def test_lets_others_write_while_it_compares(self, client, database, monkeypatch):
        """And compares again with what they wrote. The other write would wait ten seconds for a lock."""
        other = EXAMPLES["create_token_price"] | {"id": "host-m004"}
        written = []

        def write_beside(*compared):
            if not written:
                with database.open_writer() as session:
                    written.append(catalog.create_row(session, TOKEN_PRICES, DEFAULT_TENANT, other).revision)
            check_targets(*compared)

        check_targets = imports.check_targets
        monkeypatch.setattr(imports, "check_targets", write_beside)
        answer = import_models(client, 8)
        assert int(answer.headers["Catalog-Revision"]) == written[0] + 1
        assert (len(answer.json()["created"]), answer.json()["changed"]) == (7, ["host-m004"])

    def test_prepares_all_that_needs_no_lock_before_it_takes_it(self, client, monkeypatch):
        """Other writers waited 4 s for 70,000 prices, of which the insert itself takes half a second."""
        done = []

        def note(module, function):
            def noted(*given):
                done.append(function.__name__)
                return function(*given)

            monkeypatch.setattr(module, function.__name__, noted)

        note(repository, repository.prepare_versions)
        note(transactions, transactions.store_import)
        import_models(client, 8)
        assert done == ["prepare_versions"] * 3 + ["store_import"]


@pytest.mark.parametrize("name", RESOURCES)
def test_prepared_versions_are_stored_as_others(databases, name, monkeypatch):
    database, resource, table = databases.loaded(), RESOURCES[name], RESOURCES[name].table.__table__
    monkeypatch.setattr(repository, "now", lambda: datetime(2026, 11, 20, 12, 0, 0, 123, tzinfo=UTC))
    blank = dict.fromkeys(table.columns.keys()) | {"created_at": repository.now()}
    documents = list_shipped_documents()[name][:50]
    versions = [
        {"aliases": [], **row, **catalog.derive_members(resource, row), "version": 1, "revision": 7}
        for row in documents
    ]
    with database.open_writer() as session:
        repository.insert_versions(session, resource, [{**row, "tenant_id": "prepared"} for row in versions])
        own = [{**blank, "deleted": False, "tenant_id": "others", **row} for row in versions]
        session.execute(insert(table), [{each: row[each] for each in blank} for row in own])
        statement = f"SELECT * FROM {table.name} WHERE tenant_id = '%s' ORDER BY id"
        one, other = (
            [
                {each: value for each, value in row.items() if each != "tenant_id"}
                for row in session.connection().exec_driver_sql(statement % tenant).mappings()
            ]
            for tenant in ("prepared", "others")
        )
    assert one == other
    assert len(one) == len(documents) > 0


def test_a_new_name_reads_the_rows_that_may_have_it(client, database):
    import_models(client, 40)
    assert (
        client.post("/v1/token-prices", {**EXAMPLES["create_token_price"], "id": "host-m.0.0-7"}).status_code
        == 201
    )
    with database.open_reader() as session:
        read = list(repository.list_similar_names(session, TOKEN_PRICES, DEFAULT_TENANT, {"hostm007"}))
    assert {row_id for row_id, aliases in read if not aliases} == {"host-m.0.0-7", "host-m007"}


@ON_SQLITE
def test_a_write_finds_its_rows_by_indexes(database):
    """Its cost does not grow with the rows of its tenant."""
    statements = []

    def note(_connection, _cursor, statement, parameters, *_):
        statements.append((statement, parameters))

    with database.open_reader() as session:
        event.listen(database.engine, "before_cursor_execute", note)
        list(repository.list_similar_names(session, TOKEN_PRICES, DEFAULT_TENANT, {"hostm007"}))
        repository.list_changed_rows(session, TOKEN_PRICES, DEFAULT_TENANT, 1)
        event.remove(database.engine, "before_cursor_execute", note)
        connection = session.connection()
        plans = [connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {one}", given) for one, given in statements]
        found = [plan.first().detail.split()[:5] for plan in plans]
    assert [words[-1].removeprefix("ix_token_prices_") for words in found] == [
        "letters",
        "aliased",
        "changed",
    ]
