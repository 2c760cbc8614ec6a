"""Names as tools, node labels, clouds, the hub and people write them."""

import csv
import time
from pathlib import Path

import pytest

from service.planning.errors import PlanningError
from service.resolve.accelerator_names import AcceleratorRows
from service.resolve.hardware import find_links, get_accelerators_per_node
from service.resolve.names import MOST_CANDIDATES, NamedRows
from service.resolve.row_layers import build_named_row
from service.schemas.references import ClusterInput
from tests.asking import ask, codes, question, shipped

NAMES = Path(__file__).parents[1] / "data" / "names.csv"
LISTED = list(csv.DictReader(NAMES.read_text().splitlines()))


def refusal(rows, name):
    with pytest.raises(PlanningError) as caught:
        rows.find(name)
    return caught.value


def describe(row):
    """What a found row says beyond its id: its instance or slice, or the storage of its weights."""
    if hasattr(row, "architecture"):
        return (row.quantization_config or {}).get("quant_method", "16 bits")
    return f"{row.instance_type or ''}*{row.named_count}" if row.instance_type or row.named_count > 1 else ""


def test_the_list_has_200_names_of_every_kind():
    assert (
        len({(each["resource"], each["printed_by"], each["name"]) for each in LISTED}) == len(LISTED) >= 200
    )
    kinds = {each["printed_by"] for each in LISTED}
    assert kinds >= {"nvidia-smi", "rocm-smi", "torch", "nvidia.com/gpu.product", "hub", "people"}
    assert kinds >= {"aws", "azure", "gcp", "oci", "ibm"}


@pytest.mark.parametrize("listed", LISTED, ids=lambda each: f"{each['printed_by']}:{each['name']}")
def test_a_name_is_found_or_refused_with_what_it_may_mean(listed):
    rows, ids = getattr(shipped(), listed["resource"]), listed["ids"].split()
    if listed["outcome"] == "found":
        found = rows.find(listed["name"])
        said = [describe(found.row), found.remark.code if found.remark else ""]
        assert (found.id, " ".join(filter(None, said))) == (ids[0], listed["remark_or_format"])
        return
    error = refusal(rows, listed["name"])
    assert error.code == listed["outcome"]
    if error.code == "AMBIGUOUS_REFERENCE":
        assert all(row_id in error.detail for row_id in ids)
    elif ids:
        assert "did you mean" in error.detail
        assert any(row_id in error.detail for row_id in ids)


@pytest.mark.parametrize(
    ("name", "grid_id"),
    [
        *(("Northern Virginia", "egrid-us-srvc"), ("texas", "egrid-us-erct"), ("Frankfurt", "ember-deu")),
        *(("us-west-1", "egrid-us-camx"), ("us-west1", "gcp-us-west1"), ("eu-west-1", "ember-irl")),
        *(("swedencentral", "ember-swe"), ("Stockholm", "zone-se3"), ("me-central1", "gcp-me-cenrtal1")),
    ],
)
def test_a_grid_is_found_by_states_countries_cities_and_regions_of_clouds(name, grid_id):
    assert shipped().grids.find(name).id == grid_id


def test_a_place_of_two_grids_is_refused_with_both():
    for name, ids in (("georgia", ("egrid-us-srso", "ember-geo")), ("us west 1", ("gcp-us-west1",))):
        assert all(row_id in refusal(shipped().grids, name).detail for row_id in ids)


def test_a_slice_has_the_nodes_and_links_of_its_generation():
    cluster = ClusterInput.model_validate(
        {"accelerator": {"source": "catalog", "id": "v5p-128"}, "accelerator_count": 64}
    )
    plain = cluster.model_copy(
        update={"accelerator": cluster.accelerator.model_copy(update={"id": "tpu-v5p"})}
    )
    assert get_accelerators_per_node(cluster, shipped()) == get_accelerators_per_node(plain, shipped()) == 4
    assert find_links(cluster, shipped()) == find_links(plain, shipped())


@pytest.mark.parametrize("name", ["v4-8192", "v4-8", "v2-512", "v3-2048", "tpu7x-18432", "v5p-17920"])
def test_the_largest_and_the_smallest_slice_of_tensorcores_are_found(name):
    assert shipped().accelerators.find(name).row.named_count == int(name.rpartition("-")[2]) // 2


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("v4-8200", "TensorCores, a multiple of 8 up to 8192"),
        ("v4-4", "TensorCores, a multiple of 8 up to 8192"),
        ("v4-9", "TensorCores, a multiple of 8 up to 8192"),
        ("v4-0", "TensorCores, a multiple of 8 up to 8192"),
        ("v6e-512", "chips: 1, 4, 8, 16, 32, 64, 128, 256"),
    ],
)
def test_a_slice_that_does_not_exist_is_refused_with_those_that_do(name, counted):
    assert refusal(shipped().accelerators, name).detail.endswith(counted)


def test_no_two_shipped_rows_share_a_name_in_any_spelling():
    view = shipped()
    # Regions of AWS and of Google differ by a hyphen: each is found as it is written.
    shared = {"useast1", "uswest1", "uswest2", "mecentral1"}
    for rows in (view.models, view.accelerators, view.links, view.offers, view.grids, view.tariffs):
        owners: dict[str, set[str]] = {}
        for entry in rows.entries.values():
            for name in entry.normal_names:
                owners.setdefault(name, set()).add(entry.id)
        assert {name for name, ids in owners.items() if len(ids) > 1} == (
            shared if rows is view.grids else set()
        )


def parts(*rows):
    return AcceleratorRows([build_named_row(*row) for row in rows], list_instances=dict)


class TestIncompleteNames:
    ONE = ("x200-sxm", ["NVIDIA X200"], "sxm", "NVIDIA X200 SXM6 96GB", ["SXM6", "96GB"])
    OTHER = ("x200-pcie", [], "pcie", "NVIDIA X200 PCIe 96GB", ["PCIe", "96GB"])

    def test_the_only_part_of_a_family_is_meant_by_its_name(self):
        found = parts(self.ONE).find("x200")
        assert (found.id, found.remark) == ("x200-sxm", None)

    def test_what_a_tool_prints_is_that_part_also_beside_others(self):
        rows = parts(self.ONE, self.OTHER)
        assert {rows.find(name).id for name in ("NVIDIA X200", "nvidia x200", "NVIDIA-X200")} == {"x200-sxm"}

    @pytest.mark.parametrize("name", ["X200", "x200 96GB", "X200-96GB", "NVIDIA X200 96GB", "X200 GPU"])
    def test_less_than_that_is_ambiguous_beside_others(self, name):
        error = refusal(parts(self.ONE, self.OTHER), name)
        assert (error.code, error.detail) == (
            "AMBIGUOUS_REFERENCE",
            "the name fits several rows: x200-pcie, x200-sxm",
        )

    def test_words_that_only_one_part_has_are_read_with_a_remark(self):
        rows = parts(
            ("z100-sxm2-16gb", ["Tesla Z100-SXM2-16GB"], 16, "", ["SXM2", "16GB"]),
            ("z100-sxm2-32gb", ["Tesla Z100-SXM2-32GB"], 32, "", ["SXM2", "32GB"]),
        )
        found = rows.find("Z100 32GB")
        assert (found.id, found.remark.code) == ("z100-sxm2-32gb", "NAME_COMPLETED")
        assert rows.find("Z100 SXM2 32GB").remark is None

    def test_a_size_alone_names_no_part(self):
        assert refusal(parts(self.ONE), "96GB").code == "UNKNOWN_REFERENCE"

    def test_the_beginning_of_a_name_is_not_a_name(self):
        rows = parts(("y300x", [], "x", "AMD Y300X", []))
        error = refusal(rows, "Y300")
        assert (error.code, error.detail.endswith("did you mean y300x?")) == ("UNKNOWN_REFERENCE", True)
        rows = parts(("y300x", [], "x", "AMD Y300X", []), ("y300a", [], "a", "AMD Y300A", []))
        assert refusal(rows, "Y300").code == "AMBIGUOUS_REFERENCE"


class TestRowsOfATenant:
    SHIPPED = [build_named_row("one", ["Number One"], "shipped"), build_named_row("two", [], "shipped")]

    def test_its_row_replaces_the_shipped_one_with_all_its_names(self):
        rows = NamedRows(self.SHIPPED, [build_named_row("one", ["uno"], "own")])
        assert (rows["ONE"], rows["Uno"], dict(rows)) == ("own", "own", {"one": "own", "two": "shipped"})
        assert refusal(rows, "Number One").code == "UNKNOWN_REFERENCE"

    def test_its_alias_comes_before_that_of_a_shipped_row(self):
        rows = NamedRows(self.SHIPPED, [build_named_row("mine", ["NUMBER ONE"], "own")])
        assert rows["number one"] == rows["Number_One"] == "own"
        assert rows["Number One"] == "shipped"

    def test_two_names_that_differ_in_case_are_told_apart_as_written(self):
        rows = NamedRows([], [build_named_row("a", ["Thing"], "A"), build_named_row("b", ["thing"], "B")])
        assert (rows["Thing"], rows["thing"]) == ("A", "B")
        assert refusal(rows, "THING").code == "AMBIGUOUS_REFERENCE"


def test_a_long_list_of_candidates_is_cut():
    rows = NamedRows([build_named_row(f"family-{n}", [], n) for n in range(30)])
    detail = refusal(rows, "family").detail
    assert detail.count("family-") == MOST_CANDIDATES
    assert detail.endswith(f" and {30 - MOST_CANDIDATES} more")


def test_a_name_like_no_other_is_refused_without_a_guess():
    assert "did you mean" not in refusal(shipped().accelerators, "zzzzzz").detail


def test_a_refusal_repeats_nothing_that_was_sent():
    assert "secret" not in refusal(shipped().models, "secret/Llama-3.1-8B").detail


def test_a_name_among_twenty_thousand_rows_is_refused_in_a_moment():
    rows = NamedRows([build_named_row(f"offer-{n}-region-{n % 40}", [], n) for n in range(20_000)])
    begun = time.process_time()
    assert "did you mean" in refusal(rows, "offer-12345-regoin-").detail
    assert time.process_time() - begun < 2.0


def served(model, accelerator="b200-sxm", count=1):
    return ask(shipped(), "memory", question(model, accelerator, count, kind="inference"))


def weigh(answer):
    (weights,) = (each for each in answer["per_device"]["components"] if each["name"] == "weights")
    return weights["bytes"]


class TestQuantisedSiblings:
    @pytest.mark.parametrize(
        ("name", "size", "tolerance"),
        [
            # The index of its files states 42,709,045,632 bytes.
            ("nvidia/Llama-3.3-70B-Instruct-NVFP4", 42_709_045_632, 0),
            # Its file has 610.06 MiB.
            ("Qwen/Qwen2.5-0.5B-Instruct-GPTQ-Int8", 610.06 * 2**20, 0.01e9),
            # MLX packs all 8,030 million parameters, tables too, in 4.5 bits.
            ("mlx-community/Meta-Llama-3.1-8B-Instruct-4bit", 8.03e9 * 4.5 / 8, 0.01e9),
        ],
    )
    def test_its_weights_are_those_of_its_files(self, name, size, tolerance):
        answer = served(name)
        assert abs(weigh(answer) - size) <= tolerance
        assert codes(answer["warnings"]) == {"FORMAT_FROM_NAME"}

    def test_a_tag_of_ollama_is_a_name_of_the_wire(self):
        # 8.03 billion parameters of 8.5 bits, without the table of tokens, which stays on the host.
        expected = (8.03e9 - 128_256 * 4096) * 8.5 / 8
        assert abs(weigh(served("llama3.1:8b-instruct-q8_0")) - expected) < 0.01e9

    def test_it_shares_the_profile_of_its_row(self):
        model, base = shipped().models["Qwen/Qwen3-8B-FP8"], shipped().models["qwen3-8b"]
        assert model.profile is base.profile
        assert (base.stored, model.stored.name) == (None, "fp8")

    def test_a_checkpoint_of_16_bits_is_not_stored_as_its_row(self):
        assert weigh(served("unsloth/gpt-oss-20b-BF16")) > 2.5 * weigh(served("openai/gpt-oss-20b"))

    def test_one_whose_format_is_not_known_is_never_answered(self):
        with pytest.raises(PlanningError) as caught:
            served("TheBloke/Llama-2-70B-GPTQ")
        assert (caught.value.code, caught.value.pointer) == ("UNKNOWN_REFERENCE", "/model/id")
        assert "workload.weight_format" in caught.value.detail

    @pytest.mark.parametrize(
        ("name", "row", "stored"),
        [
            ("bartowski/Llama-3.3-70B-Instruct-GGUF", "llama-3.3-70b", "gguf_q4_k_m"),
            ("bartowski/Llama-3.3-70B-Instruct-GGUF:IQ4_XS", "llama-3.3-70b", "gguf_iq4_xs"),
            ("llama-2-7b-chat.Q5_K_M.gguf", "llama-2-7b", "gguf_q5_k_m"),
            ("llama3.1:8b-instruct-q8_0", "llama-3.1-8b", "gguf_q8_0"),
            ("ggml-org/gpt-oss-20b-GGUF", "gpt-oss-20b", "gguf_mxfp4_moe"),
            ("google/gemma-3-27b-it-qat-q4_0-gguf", "gemma-3-27b", "gguf_q4_0"),
            ("lmstudio-community/Qwen3-8B-MLX-8bit", "qwen3-8b", "mlx"),
        ],
    )
    def test_a_file_of_llama_cpp_and_one_of_mlx_are_read_by_their_names(self, name, row, stored):
        found = shipped().models[name]
        assert (found.source["id"], found.stored.name) == (row, stored)


class TestInstanceTypes:
    def test_one_brings_its_nodes_and_links_and_the_answer_says_so(self):
        answer = served("llama-3.1-8b", "p5.48xlarge", 16)
        (system,) = (each for each in answer["defaults"] if each["pointer"] == "/cluster/system")
        assert (system["value"], system["rule"]) == ("p5.48xlarge", "reference_system")
        named, usual = (find_links(asked(name, 16), shipped()) for name in ("p5.48xlarge", "h100-sxm"))
        assert named.inter_node_link_id != usual.inter_node_link_id

    def test_a_stated_system_comes_before_it(self):
        given = asked("p5.48xlarge", 16, system="DGX H100")
        assert find_links(given, shipped()) == find_links(asked("h100-sxm", 16), shipped())

    def test_a_smaller_one_has_its_own_nodes_and_no_network_of_another(self):
        assert get_accelerators_per_node(asked("g5.12xlarge", 8), shipped()) == 4
        with pytest.raises(PlanningError) as caught:
            ask(shipped(), "throughput", question("llama-3.1-8b", "a3-highgpu-2g", 4))
        assert (caught.value.code, caught.value.pointer) == ("LINK_UNKNOWN", "/cluster/inter_node_link")


def asked(accelerator, count, **members):
    cluster = question("llama-3.1-8b", accelerator, count)["cluster"]
    return ClusterInput.model_validate(cluster | members)
