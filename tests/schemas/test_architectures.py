"""The shapes of the architecture language become planning's classes, and come back."""

from typing import Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.catalog.shipped import list_shipped_documents
from service.planning.errors import PlanningError
from service.planning.models import architecture as planning
from service.planning.models.profile import build_profile
from service.schemas import architectures as shapes
from service.schemas.architectures import Architecture, to_document, to_planning

SHAPES = {
    shape.model_fields["kind"].annotation.__args__[0]: shape
    for shape in (*shapes._simple_layers, shapes._block)
}


def test_every_kind_has_a_shape():
    assert list(SHAPES) == [layer.kind for layer in planning.LAYER_KINDS]


def values(shape):
    """Any document of a shape, small enough to check quickly."""
    members = {}
    for name, info in shape.model_fields.items():
        annotation = info.annotation
        if name == "layers":
            members[name] = st.lists(simple_layers, min_size=1, max_size=3)
        elif name in ("over", "reads", "joins"):
            continue
        elif name == "tied":
            members[name] = st.just([])
        elif annotation is bool:
            members[name] = st.booleans()
        elif get_origin(annotation) is Literal:
            members[name] = st.sampled_from(get_args(annotation))
        elif annotation is str:
            members[name] = st.sampled_from(["input", "image"])
        elif annotation is float:
            members[name] = st.floats(0.25, 4.0)
        else:
            members[name] = st.integers(1, 64)
    required = {name: value for name, value in members.items() if shape.model_fields[name].is_required()}
    optional = {name: value for name, value in members.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


simple_layers = st.one_of([values(shape) for kind, shape in SHAPES.items() if kind != "block"])
layers = simple_layers | values(SHAPES["block"])
architectures = st.fixed_dictionaries(
    {"layers": st.lists(layers, min_size=1, max_size=4)},
    optional={
        "inputs": st.lists(
            values(shapes._input), min_size=1, max_size=2, unique_by=lambda item: item["name"]
        ),
        "embeddings": values(shapes._embeddings),
        "heads": st.lists(values(shapes._head), max_size=2),
    },
)


@given(architectures)
def test_there_and_back(document):
    planned = to_planning(Architecture.model_validate(document))
    again = to_document(planned)
    assert to_planning(Architecture.model_validate(again)) == planned
    assert to_document(to_planning(Architecture.model_validate(again))) == again


TOWERS = {
    "inputs": [{"name": "image", "kind": "image", "channels": 3}, {"name": "text", "kind": "tokens"}],
    "layers": [
        {
            "kind": "block",
            "over": ["text", "image"],
            "reads": ["image"],
            "joins": ["text"],
            "reused": True,
            "layers": [{"kind": "learned_vectors", "purpose": "class_tokens", "size": 8}],
        }
    ],
}


def test_blocks_name_their_inputs():
    planned = to_planning(Architecture.model_validate(TOWERS))
    assert planned.layers[0].over == ("text", "image")
    assert to_document(planned) == TOWERS


@pytest.mark.parametrize("member", ["over", "reads", "joins"])
def test_an_input_that_is_not_there_is_refused(member):
    block = {**TOWERS["layers"][0], member: ["text", "sound"]}
    with pytest.raises(PlanningError) as caught:
        to_planning(Architecture.model_validate({**TOWERS, "layers": [block]}))
    assert (caught.value.code, caught.value.pointer) == ("INPUT_NAME", f"/layers/0/{member}/1")


def test_shipped_models_come_back_as_they_are():
    for row in list_shipped_documents()["models"]:
        planned = to_planning(Architecture.model_validate(row["architecture"]))
        assert to_planning(Architecture.model_validate(to_document(planned))) == planned


def test_depth_is_that_of_the_blocks():
    """A head's transform and norms outside blocks are no depth; blocks of matrices alone are."""
    rows = {row["id"]: row["architecture"] for row in list_shipped_documents()["models"]}
    depth = {
        name: build_profile(to_planning(Architecture.model_validate(rows[name]))).block_count
        for name in ("bert-base", "bert-large", "llama-3.1-8b", "gpt2-xl")
    }
    assert depth == {"bert-base": 12, "bert-large": 24, "llama-3.1-8b": 32, "gpt2-xl": 48}
    matrices = [{"kind": "linear", "input_size": 8, "output_size": 8}]
    plain = {"layers": [{"kind": "block", "count": 3, "layers": matrices}]}
    assert build_profile(to_planning(Architecture.model_validate(plain))).block_count == 3
