"""Pages: what is put into them is escaped, nothing runs in them, forms are read within limits."""

import asyncio
import re
import unicodedata

import pytest

from service.kit.http.html import (
    FORM_BYTES,
    FORM_FIELDS,
    escape_invisible,
    format_moment,
    format_money,
    group_errors_by_field,
    page_response,
    read_form,
    read_stylesheet,
    render_problem_page,
)
from service.kit.http.problems import BadRequest, FieldError, Problem, Unprocessable
from tests.browsing import DESKTOP, PHONE, overflow, shows, violations

HOSTILE = "</style><script>alert(1)</script>\"'&"


def form(body, content_type=b"application/x-www-form-urlencoded"):
    async def receive():
        return {"type": "http.request", "body": body}

    scope = {"headers": [(b"content-type", content_type)], "state": {}}
    return asyncio.run(read_form(scope, receive))


class TestForm:
    def test_fields_are_as_they_were_typed(self):
        assert form(b"a=1+2%263&b=&caf%C3%A9=x%0D%0Ay&&") == {"a": "1 2&3", "b": "", "café": "x\ny"}

    def test_no_fields(self):
        assert form(b"") == {}

    @pytest.mark.parametrize(
        "body",
        [b"a=1&a=2", b"a=%zz", b"a=%", b"a=%ff", b"a=\xff", b"a=%00", b"a=%1b", b"a=%ED%A0%80", b"a=x%0Dy"],
    )
    def test_what_no_browser_sends_is_refused(self, body):
        with pytest.raises(BadRequest):
            form(body)

    @pytest.mark.parametrize("kind", [b"application/json", b"multipart/form-data; boundary=x", b""])
    def test_only_forms_are_read(self, kind):
        with pytest.raises(Problem) as caught:
            form(b"a=1", kind)
        assert caught.value.status == 415

    @pytest.mark.parametrize(
        "body", [b"a=" + b"x" * FORM_BYTES, b"&".join(b"f%d=1" % n for n in range(FORM_FIELDS + 1))]
    )
    def test_limits(self, body):
        with pytest.raises(Problem) as caught:
            form(body)
        assert caught.value.status == 413


class TestPage:
    def test_what_it_is_given_is_escaped(self):
        problem = BadRequest(HOSTILE, FieldError("/a", "B", HOSTILE))
        page = render_problem_page(problem, {"state": {}}).body.decode()
        assert "<script" not in page
        assert page.count("&lt;script&gt;") == 2

    def test_only_its_own_stylesheet_applies(self, window):
        page = render_problem_page(BadRequest("It is wrong"), {"state": {}})
        smuggled = (
            "<style>h1 { color: red }</style><script>document.title = 'ran'</script><h1 style='color: red'>"
        )
        seen = window(complains=True)
        content = page.body.decode().replace("<h1>", smuggled)
        shows(seen, content, dict(page.headers))
        assert seen.title() == "The request cannot be read - Ironlaw"
        colour = "getComputedStyle(document.querySelector('h1'))"
        assert seen.evaluate(f"{colour}.color") == "rgb(27, 31, 36)"
        assert seen.evaluate(f"{colour}.fontSize") == "25.6px"

    def test_what_nobody_sees_is_written_out(self):
        field = FieldError("/a", "B", "a\ufeffb")
        problem = BadRequest("pay \u202e001\u202c and\u200b \U000e0041 \x07, \ue000", field)
        page = render_problem_page(problem, {"state": {}}).body.decode()
        assert "pay [U+202E]001[U+202C] and[U+200B] [U+E0041] [U+0007], [U+E000]." in page
        assert "<li>a[U+FEFF]b</li>" in page

    def test_its_policy_lets_nothing_in(self):
        policy = page_response("").headers["content-security-policy"]
        assert "script" not in policy
        assert re.findall(r"(\S+) 'none'", policy) == ["default-src", "base-uri", "frame-ancestors"]

    @pytest.mark.parametrize("width", [PHONE, DESKTOP])
    def test_a_problem_reads_well(self, window, width):
        field = FieldError("/a", "B", "a" * 400)
        page = window(width)
        shows(page, render_problem_page(Unprocessable("It is wrong", field), {"state": {}}).body.decode())
        assert violations(page) == []
        assert overflow(page) == 0


def test_seen_is_everything_but_what_has_a_shape_or_ends_a_line():
    shaped = {*range(0x600, 0x606), 0x6DD, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    categories = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    for code in set(range(0x110000)) - shaped - set(b"\t\n\r"):
        if unicodedata.category(chr(code)) in categories:
            assert escape_invisible(chr(code)) == f"[U+{code:04X}]"
    for code in (0x034F, 0x115F, 0x1160, 0x180B, 0x2800, 0x3164, 0xFE0F, 0xFFA0, 0xE0100):
        assert escape_invisible(chr(code)) == f"[U+{code:04X}]", (
            "these count as letters or marks, and are not seen"
        )
    written = "Köln, 東京, \u05e9\u05dc\u05d5\u05dd, e\u0301, 1\u00a0000\u202f€, \N{ROCKET}\n\tx"
    assert escape_invisible(written) == written


def test_money_and_moments():
    assert format_money("1415571.28", "USD") == "1,415,571.28\N{NO-BREAK SPACE}USD"
    assert "4 March 2026, 05:06 UTC" in format_moment("2026-03-04T05:06:07Z")
    assert "<" not in read_stylesheet()


def test_nothing_moves():
    """So nobody has to ask for less motion."""
    for word in ("animation", "transition", "scroll-behavior", "@keyframes"):
        assert word not in read_stylesheet()


def test_errors_are_told_at_the_field_that_is_behind_their_pointer():
    problem = Unprocessable(
        "",
        FieldError("/model/id", "A", "one"),
        FieldError("/cluster/accelerator/id/x", "B", "two"),
        FieldError("/workload", "C", "three"),
        FieldError("", "D", "four"),
    )
    names = {"/model": "model", "/cluster/accelerator/id": "accelerator"}
    assert group_errors_by_field(problem, names) == (
        {"model": "one", "accelerator": "two"},
        ["three (/workload)", "four"],
    )
