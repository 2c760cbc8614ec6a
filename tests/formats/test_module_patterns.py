"""Patterns of module names match what Python's do, in steps that the name alone decides."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.module_patterns import (
    LONGEST_EXPRESSION,
    MOST_ELEMENTS,
    PatternError,
    PatternSet,
    count_elements,
    parse_expression,
    parse_glob,
)
from service.formats.quantization import read_checkpoint_format
from service.planning.errors import PlanningError
from service.planning.hardware.storage import MatrixPath, ModelFacts

NAMES = [
    *(
        f"model.layers.{layer}.{module}"
        for layer in (0, 2, 10, 21)
        for module in ("mlp.gate", "self_attn.q_proj")
    ),
    *("model.layers.3.mlp.experts.0.w1", "lm_head", "3.mlp.x", "12.self_attn", "aaa", ""),
]
ATOMS = [
    *(
        "a",
        "m",
        "l",
        "o",
        "s",
        "p",
        "_",
        "1",
        r"\.",
        ".",
        "[a-m]",
        "[^a]",
        "[0-9_]",
        r"[\d.]",
        r"\d",
        r"\w",
        r"\S",
    ),
    *("(mlp|self_attn)", "(?:q|k)", "(a|b|m)", "(?:.*layers)", "layers", "model"),
]
QUANTIFIERS = ["", "", "", "*", "+", "?", "*?", "{1,2}", "{2}", "{0,3}", "{,2}", "{1,}"]
expressions = st.builds(
    lambda start, parts, end: start + "".join(parts) + end,
    st.sampled_from(["", "^", ".*", "a|"]),
    st.lists(st.builds(str.__add__, st.sampled_from(ATOMS), st.sampled_from(QUANTIFIERS)), max_size=6),
    st.sampled_from(["", "$", ".*", "|lm_head"]),
)
globs = st.lists(
    st.sampled_from(
        ["*", "*", "?", "[a-m]", "[!a]", "[]a]", "[", "]", "m", "l", ".", "layers", "mlp", "1", "3"]
    ),
    max_size=6,
).map("".join)


def matches(patterns, name):
    return patterns.is_match(patterns.advance_state(patterns.start, name))


@given(expressions)
def test_an_expression_matches_what_that_of_python_does(text):
    try:
        patterns = PatternSet(parse_expression(text))
    except PatternError:
        return
    assert [name for name in NAMES if matches(patterns, name)] == [
        name for name in NAMES if re.match(text, name)
    ]


@given(globs)
def test_a_glob_matches_a_module_and_what_is_below_it(text):
    patterns = PatternSet(parse_glob(text))
    assert [name for name in NAMES if matches(patterns, name)] == [
        name for name in NAMES if fnmatchcase(name, text) or fnmatchcase(name, f"{text}.*")
    ]


@given(st.lists(st.sampled_from(["a.*", "m.*p$", "lm_head", ".*q_proj$"]), max_size=4))
def test_patterns_of_a_list_run_side_by_side(texts):
    patterns = PatternSet([one for text in texts for one in parse_expression(text)])
    for name in NAMES:
        assert matches(patterns, name) == any(re.match(text, name) for text in texts)


class Counting(PatternSet):
    """Counts the steps of matching."""

    steps = 0

    def _skip_optional(self, state):
        self.steps += 1
        return super()._skip_optional(state)


@pytest.mark.parametrize(
    "texts", [[".?" * 18 + "!"], [".*.*.*.*!"], ["(a|b)?" * 8 + "c"], [f".*{n}.*!" for n in range(300)]]
)
def test_a_name_is_read_once_whatever_the_patterns(texts):
    patterns = Counting([one for text in texts for one in parse_expression(text)])
    name = "model.layers.3.mlp.experts.0.w1" * 10
    patterns.steps = 0
    assert not matches(patterns, name)
    assert patterns.steps <= len(name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(?!a)b", "a group that is none of alternatives"),
        ("(?=a)b", "a group that is none of alternatives"),
        ("(?i)b", "a group that is none of alternatives"),
        (r"(a)\1", "an escape"),
        (r"\bfoo", "an escape"),
        ("(ab)+", "repeats a group"),
        ("(a+)+b", "repeats a group"),
        ("a**", "repeats what"),
        ("a++", "repeats what"),
        ("*a", "repeats nothing"),
        ("a{x}", "a brace"),
        ("a^b", "elsewhere than at an end"),
        ("a$b", "elsewhere than at an end"),
        ("(", "does not close"),
        (")", "not open"),
        ("[a", "ends too early"),
        ("a\\", "ends too early"),
        ("(" * 40 + ")" * 40, "nests more"),
        ("(a|b)" * 40, "too many alternatives"),
        ("(a{999}|b){9}", "repeats a group"),
        ("a{999}" * 9, "too many alternatives"),
        ("a" * (LONGEST_EXPRESSION + 1), "is longer"),
    ],
)
def test_what_is_not_read_is_refused_in_words(text, said):
    with pytest.raises(PatternError, match=said):
        parse_expression(text)


def quantized(ignore, layers=1):
    weights = {"num_bits": 8, "type": "float", "strategy": "channel"}
    fields = {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ignore,
    }
    return read_checkpoint_format({"quantization_config": fields}, layers)


@pytest.mark.parametrize(
    "ignore",
    [
        ["re:" + ".?" * 18 + "!"],
        ["re:.*.*.*.*!"],
        [f"*{number}*mlp*" for number in range(300)],
    ],
)
def test_dear_patterns_of_a_configuration_are_answered(ignore):
    weight_format = quantized(ignore, 61)
    facts = ModelFacts(1.0, 0, 61, tied=False)
    schemes = {
        weight_format.scheme_of(MatrixPath("attention.query", layer, 61, 64), facts).element_bits
        for layer in range(61)
    }
    assert schemes == {8}


@pytest.mark.parametrize(
    ("ignore", "layers", "pointer"),
    [
        (["*" + "a" * MOST_ELEMENTS], 1, "/quantization_config/ignore"),
        (["re:" + "(a|b)" * 9 + str(number) for number in range(9)], 1, "/quantization_config/ignore"),
        ([f"*{number}*mlp*" for number in range(300)], 126, "/quantization_config"),
        (["re:.*mlp.*"], 2000, "/quantization_config"),
    ],
)
def test_what_would_take_long_is_refused_before_it_is_asked(ignore, layers, pointer):
    with pytest.raises(PlanningError) as refused:
        quantized(ignore, layers)
    assert (refused.value.code, refused.value.pointer) == ("CONFIG_FIELD_INVALID", pointer)


def test_the_cost_of_a_list_is_what_is_written_out():
    assert count_elements(parse_expression("a(b|cd)e")) == 4 + 5
    assert count_elements(parse_glob("a*[bc]?")) == 5
