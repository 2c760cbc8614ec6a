"""Every resource of the catalog over HTTP, on both databases."""

from dataclasses import replace

import pytest

from service.app.examples import EXAMPLES
from service.catalog.registry import RESOURCES
from tests.prepared import ON_SQLITE

PATHS = {resource.path: resource for resource in RESOURCES.values()}


def example(path: str, verb: str = "create") -> dict:
    return dict(EXAMPLES[f"{verb}_{PATHS[path].kind}"])


def walk(client, address):
    """The rows of a list, page by page."""
    rows, token = [], ""
    while token is not None:
        page = client.get(f"{address}&page_token={token}").json()
        rows += page["items"]
        token = page["next_page_token"]
    return rows


def created(client, path):
    response = client.post(f"/v1/{path}", example(path))
    assert response.status_code == 201, response.text
    return response


def holds(found, sent) -> bool:
    """Whether ``found`` has all that was sent; members left out come back with their default."""
    if isinstance(sent, dict):
        return all(name in found and holds(found[name], value) for name, value in sent.items())
    if isinstance(sent, list):
        return len(found) == len(sent) and all(map(holds, found, sent))
    return found == sent


def code(response):
    return response.status_code, response.json()["code"]


@pytest.mark.parametrize("path", PATHS)
class TestLifeOfARow:
    def test_created_read_changed_deleted(self, client, path):
        before = int(client.get(f"/v1/{path}").headers["etag"].strip('"').split("-")[0])
        made = created(client, path)
        row = made.json()
        address = made.headers["location"]
        assert address == f"/v1/{path}/{row['id']}"
        assert (row["version"], row["origin"]) == (1, "tenant")
        assert row["revision"] == int(made.headers["catalog-revision"]) == before + 1
        assert client.get(address).json() == row
        assert holds(row, example(path))

        changed = client.patch(address, example(path, "update"), headers={"If-Match": made.headers["etag"]})
        assert changed.status_code == 200
        assert changed.json()["version"] == 2
        assert changed.headers["etag"] == '"2"'
        assert holds(changed.json(), example(path, "update"))
        assert changed.json()["name"] == row["name"]

        gone = client.delete(address, headers={"If-Match": '"2"'})
        assert (gone.status_code, gone.content) == (204, b"")
        assert int(gone.headers["catalog-revision"]) == before + 3
        assert code(client.get(address)) == (404, "ROW_NOT_FOUND")
        again = created(client, path)
        assert again.json()["version"] == 4

    @ON_SQLITE
    def test_a_change_needs_the_version_it_is_based_on(self, client, path):
        address = created(client, path).headers["location"]
        patch = example(path, "update")
        assert code(client.patch(address, patch)) == (428, "VERSION_REQUIRED")
        assert code(client.delete(address)) == (428, "VERSION_REQUIRED")
        stale = {"If-Match": '"7"'}
        assert code(client.patch(address, patch, headers=stale)) == (412, "VERSION_CONFLICT")
        assert code(client.delete(address, headers=stale)) == (412, "VERSION_CONFLICT")
        assert client.patch(address, patch, headers={"If-Match": "*"}).status_code == 200

    @ON_SQLITE
    def test_null_removes_a_member_that_may_be_absent(self, client, path):
        address = client.post(f"/v1/{path}", {**example(path), "note": "to go"}).headers["location"]
        changed = client.patch(address, {"note": None}, headers={"If-Match": '"1"'})
        assert changed.status_code == 200
        assert "note" not in changed.json()
        assert "note" not in client.get(address).json()
        refused = client.patch(address, {"name": None}, headers={"If-Match": "*"})
        assert refused.json()["errors"][0]["pointer"] == "/name"

    def test_an_id_is_taken_once(self, client, path):
        created(client, path)
        assert code(client.post(f"/v1/{path}", example(path))) == (409, "ROW_EXISTS")

    @ON_SQLITE
    def test_what_is_unknown_is_not_found(self, reader, path):
        headers = {"If-Match": "*"}
        assert code(reader.get(f"/v1/{path}/nothing")) == (404, "ROW_NOT_FOUND")
        patch = example(path, "update")
        assert code(reader.patch(f"/v1/{path}/nothing", patch, headers=headers)) == (404, "ROW_NOT_FOUND")
        assert code(reader.delete(f"/v1/{path}/nothing", headers=headers)) == (404, "ROW_NOT_FOUND")

    @ON_SQLITE
    def test_what_has_not_changed_is_not_sent_again(self, client, path):
        made = created(client, path)
        address, etag = made.headers["location"], made.headers["etag"]
        same = client.get(address, headers={"If-None-Match": etag})
        assert (same.status_code, same.content) == (304, b"")
        for holds, given in ((True, "*"), (True, f"W/{etag}"), (True, f'"0", {etag}'), (False, '"0"')):
            answer = client.get(address, headers={"If-None-Match": given})
            assert answer.status_code == (304 if holds else 200)
        listed = client.get(f"/v1/{path}").headers["etag"]
        assert client.get(f"/v1/{path}", headers={"If-None-Match": listed}).status_code == 304
        client.patch(address, example(path, "update"), headers={"If-Match": etag})
        assert client.get(address, headers={"If-None-Match": etag}).status_code == 200
        assert client.get(f"/v1/{path}", headers={"If-None-Match": listed}).status_code == 200

    def test_pages_walk_every_row_once(self, client, path):
        created(client, path)
        whole = [row["id"] for row in walk(client, f"/v1/{path}?page_size=500")]
        assert whole == sorted(whole)
        for order, expected in (("id", whole), ("-id", whole[::-1])):
            walked, token = [], ""
            while token is not None:
                size = min(500, max(2, len(whole) // 4))
                url = f"/v1/{path}?page_size={size}&order_by={order}&page_token={token}"
                page = client.get(url).json()
                walked += [row["id"] for row in page["items"]]
                token = page["next_page_token"]
            assert walked == expected

    @ON_SQLITE
    def test_a_token_of_another_list_is_refused(self, client, path):
        created(client, path)
        token = client.get(f"/v1/{path}?page_size=1").json()["next_page_token"]
        other = client.get(f"/v1/{path}?page_size=1&order_by=-id&page_token={token}")
        assert code(other) == (400, "BAD_REQUEST")
        assert other.json()["errors"][0]["pointer"] == "/query/page_token"
        forged = ("B" if token[0] == "A" else "A") + token[1:]
        assert code(client.get(f"/v1/{path}?page_size=1&page_token={forged}")) == (400, "BAD_REQUEST")

    @ON_SQLITE
    def test_unknown_parameters_and_members_are_refused(self, reader, path):
        query = reader.get(f"/v1/{path}?colour=red")
        assert code(query) == (422, "UNPROCESSABLE")
        assert query.json()["errors"][0]["pointer"] == "/query/colour"
        body = reader.post(f"/v1/{path}", {**example(path), "colour": "red"})
        assert code(body) == (422, "UNPROCESSABLE")
        assert body.json()["errors"][0]["pointer"] == "/colour"

    @ON_SQLITE
    def test_a_row_has_its_sources(self, reader, path):
        row = example(path)
        del row["sources"]
        response = reader.post(f"/v1/{path}", row)
        assert response.json()["errors"] == [
            {"pointer": "/sources", "code": "MISSING", "detail": "the member is required"}
        ]


class TestNamesAndReferences:
    def test_an_alias_belongs_to_one_row(self, client):
        row = {**example("accelerators"), "aliases": ["NVIDIA H100 80GB HBM3"]}
        assert code(client.post("/v1/accelerators", row)) == (409, "ROW_EXISTS")
        row = {**example("accelerators"), "aliases": ["h100-sxm"]}
        assert code(client.post("/v1/accelerators", row)) == (409, "ROW_EXISTS")

    @pytest.mark.parametrize(
        ("path", "member"),
        [
            ("offers", "accelerator_id"),
            ("sites", "grid_id"),
            ("sites", "tariff_id"),
            ("accelerators", "intra_node_link_id"),
            ("accelerators", "inter_node_link_id"),
        ],
    )
    @ON_SQLITE
    def test_a_reference_must_exist(self, client, path, member):
        response = client.post(f"/v1/{path}", {**example(path), member: "nothing"})
        assert code(response) == (422, "UNPROCESSABLE")
        assert response.json()["errors"][0]["pointer"] == f"/{member}"

    def test_a_link_of_a_system_must_exist_and_stays(self, client):
        link = created(client, "links").headers["location"]
        systems = [{"name": "one", "accelerators_per_node": 8, "intra_node_link_id": "nothing"}]
        refused = client.post("/v1/accelerators", {**example("accelerators"), "systems": systems})
        assert refused.json()["errors"][0]["pointer"] == "/systems/0/intra_node_link_id"
        systems[0]["intra_node_link_id"] = link.rpartition("/")[2]
        row = {**example("accelerators"), "systems": systems}
        assert client.post("/v1/accelerators", row).status_code == 201
        assert code(client.delete(link, headers={"If-Match": "*"})) == (409, "ROW_IN_USE")

    @ON_SQLITE
    def test_two_systems_of_one_name_are_refused(self, client):
        systems = [{"name": name, "accelerators_per_node": 8} for name in ("HGX", "hgx")]
        refused = client.post("/v1/accelerators", {**example("accelerators"), "systems": systems})
        assert refused.json()["errors"][0]["pointer"] == "/systems/1/name"

    def test_a_row_in_use_stays(self, client):
        address = created(client, "accelerators").headers["location"]
        offer = {**example("offers"), "accelerator_id": address.rpartition("/")[2]}
        assert client.post("/v1/offers", offer).status_code == 201
        assert code(client.delete(address, headers={"If-Match": "*"})) == (409, "ROW_IN_USE")

    def test_a_copy_in_use_goes_where_the_shipped_row_takes_its_place(self, client):
        assert client.post("/v1/accelerators/h100-sxm:copy", {}).status_code == 201
        assert client.delete("/v1/accelerators/h100-sxm", headers={"If-Match": "*"}).status_code == 204
        assert client.get("/v1/accelerators/h100-sxm").json()["origin"] == "shipped"

    @ON_SQLITE
    def test_an_architecture_that_contradicts_itself_is_refused(self, client):
        model = example("models")
        model["architecture"] = {**model["architecture"], "tied": ["classifier"]}
        response = client.post("/v1/models", model)
        assert response.json()["errors"][0]["pointer"] == "/architecture/tied"


class TestFilters:
    @pytest.mark.parametrize(
        ("query", "wanted"),
        [
            ("accelerators?vendor=nvidia&vendor=amd", lambda row: row["vendor"] in ("nvidia", "amd")),
            ("accelerators?generation=hopper", lambda row: row["generation"] == "hopper"),
            ("accelerators?max_power_limit_watts=100", lambda row: row["power_limit_watts"] <= 100),
            (
                "accelerators?min_memory_reported_bytes=1e11",
                lambda row: row["memory_reported_bytes"] >= 1e11,
            ),
            ("links?kind=nvlink", lambda row: row["kind"] == "nvlink"),
            ("models?min_parameter_count=1e11", lambda row: row["parameter_count"] >= 1e11),
            ("models?max_parameter_count=1e9", lambda row: row["parameter_count"] <= 1e9),
            (
                "offers?provider=crusoe&purchase_option=spot",
                lambda row: (row["provider"], row["purchase_option"]) == ("crusoe", "spot"),
            ),
            ("offers?accelerator_id=h100-sxm", lambda row: row["accelerator_id"] == "h100-sxm"),
            ("grids?kind=egrid_subregion", lambda row: row["kind"] == "egrid_subregion"),
            ("sites?grid_id=gcp-us-east4", lambda row: row["grid_id"] == "gcp-us-east4"),
            ("models?id=gpt2&id=gpt2-xl", lambda row: row["id"] in ("gpt2", "gpt2-xl")),
        ],
    )
    def test_a_filter_gives_what_it_says_and_nothing_less(self, reader, query, wanted):
        path = query.partition("?")[0]
        every = walk(reader, f"/v1/{path}?page_size=500")
        given = walk(reader, f"/v1/{query}&page_size=500")

        def matches(row):
            try:
                return wanted(row)
            except KeyError:
                return False

        assert given == [row for row in every if matches(row)]
        assert 0 < len(given) < len(every)

    @pytest.mark.parametrize(
        "query", ["page_size=0", "page_size=-1", "page_size=x", "order_by=price", "min_parameter_count=nan"]
    )
    @ON_SQLITE
    def test_bad_parameters_are_named(self, reader, query):
        response = reader.get(f"/v1/models?{query}")
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"] == f"/query/{query.partition('=')[0]}"

    @ON_SQLITE
    def test_an_overlong_page_is_cut_to_the_limit(self, reader):
        assert len(reader.get("/v1/grids?page_size=100000").json()["items"]) == 288


@ON_SQLITE
class TestImport:
    def test_a_published_configuration_becomes_a_model(self, client):
        response = client.post("/v1/models:import", EXAMPLES["import_model"])
        architecture = response.json()["model"]["architecture"]
        spelled = {**EXAMPLES["create_model"], "id": "spelled", "architecture": architecture}
        assert client.post("/v1/models", spelled).json()["architecture"] == architecture
        assert response.status_code == 201
        model = response.json()["model"]
        assert model["parameter_count"] == 1_100_048_384  # TinyLlama 1.1B
        assert response.json()["warnings"] == []
        assert client.get(response.headers["location"]).json() == model
        asked = {
            "model": {"source": "catalog", "id": model["id"]},
            "workload": {"kind": "inference"},
        }
        answer = client.post("/v1/estimates/memory", asked).json()
        assert answer["parameter_count"] == 1_100_048_384

    def test_what_the_configuration_leaves_open_is_said(self, client):
        body = {**EXAMPLES["import_model"], "config": {"model_type": "llama"}}
        warnings = client.post("/v1/models:import", body).json()["warnings"]
        assert {"CONFIG_DEFAULT_USED"} == {warning["code"] for warning in warnings}
        assert "/config/hidden_size" in {warning["pointer"] for warning in warnings}

    def test_parts_that_are_not_imported_are_said(self, client):
        config = {"model_type": "qwen2_5_omni", "thinker_config": {}, "talker_config": {}}
        warnings = client.post("/v1/models:import", {**EXAMPLES["import_model"], "config": config}).json()[
            "warnings"
        ]
        (told,) = [each for each in warnings if each["code"] == "MODEL_PART_LEFT_OUT"]
        assert told["pointer"] == "/config/talker_config"

    def test_an_import_keeps_the_quantization_that_the_configuration_states(self, client):
        quantization = {"quant_method": "fp8", "weight_block_size": [128, 128]}
        body = EXAMPLES["import_model"]
        body = {**body, "config": {**body["config"], "quantization_config": quantization}}
        imported = client.post("/v1/models:import", body).json()
        assert imported["model"]["quantization_config"] == quantization
        assert "QUANTIZATION_NOT_STORED" not in [warning["code"] for warning in imported["warnings"]]

    @pytest.mark.parametrize("quantization", ["fp8", {"quant_method": "martian"}])
    def test_an_import_says_which_quantization_it_cannot_keep(self, client, quantization):
        body = EXAMPLES["import_model"]
        body = {**body, "config": {**body["config"], "quantization_config": quantization}}
        imported = client.post("/v1/models:import", body).json()
        assert "quantization_config" not in imported["model"]
        (warned,) = [each for each in imported["warnings"] if each["code"] == "QUANTIZATION_NOT_STORED"]
        assert warned["pointer"].startswith("/config/quantization_config")

    def test_a_quantization_that_no_question_could_read_is_refused(self, client):
        refused = client.post(
            "/v1/models", {**example("models"), "quantization_config": {"quant_method": "martian"}}
        )
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/quantization_config/quant_method"

    def test_an_unknown_type_names_what_is_known(self, client):
        body = {**EXAMPLES["import_model"], "config": {"model_type": "martian"}}
        error = client.post("/v1/models:import", body).json()["errors"][0]
        assert (error["pointer"], error["code"]) == ("/config/model_type", "MODEL_TYPE_UNKNOWN")
        assert "llama" in error["detail"]


@ON_SQLITE
def test_a_price_per_device_is_the_instance_over_its_accelerators(client):
    offer = created(client, "offers").json()
    assert offer["price_per_device_hour"] == {"amount": "2.49", "currency_code": "USD"}


class TestQuota:
    @pytest.fixture
    def bounded(self, client):
        """A client of a tenant that may have two rows of a resource."""
        client.app.state.catalog = replace(client.app.state.catalog, most_rows=2)
        return client

    def create(self, client, row_id):
        return client.post("/v1/sites", {**example("sites"), "id": row_id, "aliases": []})

    def test_the_next_row_is_refused_until_one_is_deleted(self, bounded):
        assert [self.create(bounded, row_id).status_code for row_id in ("a", "b")] == [201, 201]
        assert code(self.create(bounded, "c")) == (409, "TOO_MANY_ROWS")
        assert bounded.get("/v1/sites/c").status_code == 404
        changed = bounded.patch("/v1/sites/b", {"pue": 1.3}, headers={"If-Match": "*"})
        assert changed.status_code == 200
        assert bounded.delete("/v1/sites/a", headers={"If-Match": "*"}).status_code == 204
        assert self.create(bounded, "c").status_code == 201

    def test_rows_of_another_resource_do_not_count(self, bounded):
        for row_id in ("a", "b"):
            self.create(bounded, row_id)
        assert created(bounded, "links").status_code == 201

    def test_an_import_is_stored_whole_or_not(self, bounded):
        bounded.app.state.catalog = replace(bounded.app.state.catalog, most_rows=1)
        mine = created(bounded, "offers").json()["id"]
        body = dict(EXAMPLES["import_offers"])
        assert code(bounded.post("/v1/offers:import", body)) == (409, "TOO_MANY_ROWS")
        rows = walk(bounded, "/v1/offers?page_size=500")
        assert [row["id"] for row in rows if row["origin"] == "tenant"] == [mine]
