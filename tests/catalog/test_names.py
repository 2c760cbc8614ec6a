"""Names of rows and the search for them over HTTP, on both databases."""

import pytest

from service.app.examples import EXAMPLES
from service.catalog.registry import RESOURCES

PATHS = {resource.path: resource for resource in RESOURCES.values()}


def example(path, **members):
    return {**EXAMPLES[f"create_{PATHS[path].kind}"], **members}


def found(client, path, **query):
    answer = client.get(f"/v1/{path}", params={"page_size": 500, **query})
    assert answer.status_code == 200, answer.text
    return {row["id"] for row in answer.json()["items"]}


def taken(response):
    assert response.status_code == 409, response.text
    return response.json()["code"], [error["code"] for error in response.json()["errors"]]


TAKEN = ("ROW_EXISTS", ["TAKEN"])


class TestUniqueNames:
    @pytest.mark.parametrize(
        "alias", ["nvidia h100 80gb hbm3", "NVIDIA-H100-80GB-HBM3", "H100-SXM", "h100_sxm"]
    )
    def test_an_alias_of_another_row_is_taken_in_any_spelling(self, client, alias):
        assert taken(client.post("/v1/accelerators", example("accelerators", aliases=[alias]))) == TAKEN

    def test_an_id_of_another_row_is_taken_in_any_spelling(self, client):
        assert taken(client.post("/v1/accelerators", example("accelerators", id="h100sxm"))) == TAKEN

    def test_so_is_a_name_that_a_change_adds(self, client):
        client.post("/v1/accelerators", example("accelerators"))
        address, headers = f"/v1/accelerators/{example('accelerators')['id']}", {"If-Match": "*"}
        assert taken(client.patch(address, {"aliases": ["nvidia h200"]}, headers=headers)) == TAKEN
        kept = client.patch(address, {"aliases": ["Ours", "ours-2"]}, headers=headers)
        assert kept.json()["aliases"] == ["Ours", "ours-2"]
        assert client.patch(address, {"note": "kept"}, headers=headers).status_code == 200

    def test_the_copy_of_a_shipped_row_keeps_its_names(self, client):
        copy = client.post("/v1/accelerators/h100-sxm:copy", {})
        assert "NVIDIA H100 80GB HBM3" in copy.json()["aliases"]

    def test_digits_keep_apart_what_a_hyphen_parts(self, client):
        for row_id in ("example-1-11", "example-11-1", "example-111"):
            assert client.post("/v1/accelerators", example("accelerators", id=row_id)).status_code == 201


def test_an_address_and_a_filter_take_an_id_in_any_case(reader):
    assert reader.get("/v1/accelerators/H100-SXM").json()["id"] == "h100-sxm"
    assert found(reader, "accelerators", id="H100-SXM") == {"h100-sxm"}
    assert found(reader, "offers", accelerator_id="TRAINIUM1") == found(
        reader, "offers", accelerator_id="trainium1"
    )


def test_a_reference_to_no_row_is_refused_with_the_nearest(reader):
    offer = example("offers", accelerator_id="h100-sxm5")
    (error,) = reader.post("/v1/offers", offer).json()["errors"]
    assert (error["pointer"], error["code"]) == ("/accelerator_id", "UNKNOWN_REFERENCE")
    assert error["detail"].endswith("did you mean h100-sxm?")


class TestSearch:
    @pytest.mark.parametrize(
        ("path", "query", "row_id", "other"),
        [
            ("accelerators", "NVL h100", "h100-nvl", "h100-sxm"),
            ("accelerators", "hbm3 80gb", "h100-sxm", "h100-pcie"),
            ("accelerators", "amd mi300", "mi300x", "mi250x"),
            ("accelerators", "P5.48xlarge", "h100-sxm", "h200-sxm"),
            ("accelerators", "nvl72", "gb200", "b200-sxm"),
            ("accelerators", "mi300 standard_nd96isr", "mi300x", "mi325x"),
            ("models", "META-LLAMA/llama-3.3", "llama-3.3-70b", "llama-3.1-70b"),
            ("models", "405b instruct", "llama-3.1-405b", "llama-3.1-70b"),
            ("links", "PCIe-5-x16", "pcie-5-x16", "pcie-4-x16"),
            ("grids", "rfce egrid", "egrid-us-rfce", "egrid-us-rfcw"),
        ],
    )
    def test_every_word_is_part_of_a_name(self, reader, path, query, row_id, other):
        matching = found(reader, path, q=query)
        assert row_id in matching
        assert other in found(reader, path) - matching

    @pytest.mark.parametrize(
        ("path", "member"),
        [
            ("offers", "instance_type"),
            ("offers", "provider"),
            ("offers", "region"),
            ("models", "hub_id"),
            ("token-prices", "provider"),
            ("tariffs", "utility"),
            ("exchange-rates", "from_currency_code"),
            ("sites", "time_zone"),
        ],
    )
    def test_so_is_one_of_what_a_row_is_looked_for_by(self, client, path, member):
        client.post(f"/v1/{path}", example(path))
        rows = client.get(f"/v1/{path}", params={"page_size": 500}).json()["items"]
        word = next(row[member].split()[0] for row in rows if member in row)
        having = {row["id"] for row in rows if word.lower() in row.get(member, "").lower()}
        assert having <= found(client, path, q=word.swapcase())

    @pytest.mark.parametrize("path", PATHS)
    def test_every_list_has_it(self, reader, path):
        everything = found(reader, path)
        assert found(reader, path, q="") == found(reader, path, q="  ") == everything
        assert found(reader, path, q="no-row-is-called-this") == set()
        one = min(everything)
        assert one in found(reader, path, q=one.upper())

    @pytest.mark.parametrize("query", ["%", "_", "h100%", "\\", "/", "'", '"', "[", "]", ","])
    def test_wildcards_and_marks_are_letters(self, reader, query):
        rows = reader.get("/v1/accelerators", params={"page_size": 500}).json()["items"]
        texts = {
            row["id"]: " ".join(
                (
                    *(row["id"], row["name"], *row["aliases"], row["vendor"], row.get("form_factor", "")),
                    *(system["name"] for system in row.get("systems", ())),
                )
            )
            for row in rows
        }
        assert found(reader, "accelerators", q=query) == {
            row_id for row_id, text in texts.items() if query in text.lower()
        }

    def test_letters_beside_a_to_z_are_found_as_they_are_written(self, client):
        client.post("/v1/sites", example("sites", id="munich", name="MÜNCHEN"))
        assert found(client, "sites", q="mÜnchen") == {"munich"}
        assert found(client, "sites", q="münchen") == set()

    def test_its_pages_are_walked_like_those_of_the_whole_list(self, reader):
        whole = sorted(found(reader, "models", q="qwen"))
        walked, token = [], ""
        while token is not None:
            page = reader.get("/v1/models", params={"q": "qwen", "page_size": 3, "page_token": token}).json()
            walked += [row["id"] for row in page["items"]]
            token = page["next_page_token"]
        assert walked == whole
        assert len(whole) > 10
        first = reader.get("/v1/models", params={"q": "qwen", "page_size": 3}).json()["next_page_token"]
        other = reader.get("/v1/models", params={"q": "llama", "page_size": 3, "page_token": first})
        assert other.json()["errors"][0]["code"] == "PAGE_TOKEN"

    @pytest.mark.parametrize("query", ["accelerators_per_node", "ethernet-100g", "intra_node_link_id"])
    def test_of_a_system_its_name_is_searched_alone(self, reader, query):
        assert found(reader, "accelerators", q=query) == set()

    def test_the_systems_of_a_row_of_a_tenant_are_searched(self, client):
        systems = [{"name": f'Our "{word}" box', "accelerators_per_node": 2} for word in ("first", "last")]
        client.post("/v1/accelerators", example("accelerators", id="ours", systems=systems))
        assert found(client, "accelerators", q='"LAST" our') == {"ours"}
        client.patch("/v1/accelerators/ours", {"systems": None}, headers={"If-Match": "*"})
        assert found(client, "accelerators", q='"LAST" our') == set()
        assert "ours" in found(client, "accelerators", q="ours")

    def test_it_joins_the_other_filters(self, reader):
        assert found(reader, "accelerators", q="80gb", vendor="amd") == set()
        assert found(reader, "accelerators", q="h100", min_memory_reported_bytes=9e10) == {"h100-nvl"}

    def test_a_tenant_finds_its_row_and_not_the_one_behind_it(self, client):
        client.post("/v1/accelerators/h100-nvl:copy", {})
        client.patch("/v1/accelerators/h100-nvl", {"name": "Ours", "aliases": []}, headers={"If-Match": "*"})
        assert found(client, "accelerators", q="ours") == {"h100-nvl"}
        assert found(client, "accelerators", q="94gb") == set()

    def test_a_long_query_is_refused(self, reader):
        answer = reader.get("/v1/models", params={"q": "x" * 101})
        (error,) = answer.json()["errors"]
        assert (error["pointer"], error["code"]) == ("/query/q", "STRING_TOO_LONG")
