"""Pages of HTML: templates with escaping, one stylesheet, scripts on no page but those that ask, and forms.

Every template of the service extends ``kit/http/page.html``. A room's templates lie beside its code and are
named from the service's folder: ``quotes/report/page.html``.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Depends, Request, Response
from markupsafe import Markup, escape
from starlette.types import Receive, Scope, Send

from service.kit.http.bodies import read_body
from service.kit.http.packed import read_weights
from service.kit.http.problems import (
    BadRequest,
    FieldError,
    PayloadTooLarge,
    Problem,
    UnsupportedMediaType,
    build_pointer,
    list_problems,
)
from service.kit.http.web import JsonRoute
from service.kit.locales import format_count, format_date, localize_number, select_style, use_style

if TYPE_CHECKING:
    from jinja2 import Environment

Form = Mapping[str, str]
"""Fields of a form by name, as they were typed; lines end with one line feed."""

FORM_BYTES = 64 * 1024
FORM_FIELDS = 200
_WHOLE_FROM = 1000
_NUMBER_EXAMPLE = "1,234.56"
_FORM = b"application/x-www-form-urlencoded"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Controls, marks that change the direction of text, zero-width and private-use characters, tags and variation
# selectors. Left out are line ends, and visible signs of Arabic and of Kaithi.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\U000f0000-\U0010ffff]"
)
_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@cache
def read_stylesheet() -> str:
    """The stylesheet that every page carries within itself."""
    return (files("service.kit.http") / "page.css").read_text(encoding="utf-8")


@cache
def _content_security_policy(*, has_scripts: bool) -> str:
    digest = base64.b64encode(hashlib.sha256(read_stylesheet().encode()).digest()).decode()
    scripts = "script-src 'self'; connect-src 'self'; " if has_scripts else ""
    return (
        f"default-src 'none'; {scripts}style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


def format_money(amount: str | Decimal, currency_code: str) -> str:
    """An amount with separators of thousands: 1,415,571.28 USD."""
    return f"{localize_number(f'{Decimal(amount):,f}')}\N{NO-BREAK SPACE}{currency_code}"


def format_moment(value: datetime | str) -> Markup:
    """A time of UTC to the minute, readable by machines to the second."""
    time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    time = time.astimezone(UTC)
    shown = f"{format_date(time)}, {time:%H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(f"{time:%Y-%m-%dT%H:%M:%SZ}", shown)


def format_day(value: str) -> str:
    """A day of the calendar: 1 October 2026."""
    return format_date(date.fromisoformat(value))


def format_plain(value: object) -> str:
    """A value that has no unit of its own: numbers to four digits, with separators of thousands."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return localize_number(f"{value:,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:.4g}")
    return format_count(value) if isinstance(value, int) else str(value)


def escape_invisible(text: str) -> str:
    """Writes out invisible characters, such as ``[U+202E]``, which would reverse an amount.

    People sign what others wrote. Every template does this to the values that it shows.
    """
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def _finalize_value(value: object) -> object:
    return escape_invisible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def build_environment() -> "Environment":
    """Returns the environment of the service's templates.

    Values are escaped and made visible; a missing value is an error. The filter ``typed`` leaves a text as it
    is, so that a form returns exactly what was typed.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # slow to import

    made = Environment(
        loader=PackageLoader("service", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["stylesheet"] = Markup(read_stylesheet())  # noqa: S704  # a file of ours
    made.globals["money"] = format_money
    made.globals["number_example"] = lambda: localize_number(_NUMBER_EXAMPLE)
    made.filters.update(
        count=format_count,
        day=format_day,
        moment=format_moment,
        number=localize_number,
        plain=format_plain,
        seen=escape_invisible,
        typed=escape,
    )
    return made


def render_template(template: str, **values: Any) -> str:  # noqa: ANN401
    """Renders a template of the service."""
    return build_environment().get_template(template).render(**values)


def render_fragment(template: str, **values: Any) -> Markup:  # noqa: ANN401
    """Renders a part of a page, to be inserted into another template without escaping."""
    return Markup(render_template(template, **values))  # noqa: S704  # escaped by its own template


def page_headers(*, has_scripts: bool = False) -> dict[str, str]:
    """Returns the headers of a page beyond those of every answer. Redirects and problems are pages too.

    A page that ``has_scripts`` may load files of this host as scripts, and they may ask this host.
    """
    return {
        "Content-Security-Policy": _content_security_policy(has_scripts=has_scripts),
        # No other site learns the address. Under `no-referrer` a browser would send forms of our own pages
        # with an unknown origin, and those could not be told from forms of other sites.
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "X-Frame-Options": "DENY",
    }


def page_response(
    page: str, *, status: int = 200, headers: Mapping[str, str] | None = None, has_scripts: bool = False
) -> Response:
    """Returns a page as a response that cannot load, run or be framed by anything else.

    A page that ``has_scripts`` runs files of this service only.
    """
    own = {**page_headers(has_scripts=has_scripts), **(headers or {})}
    return Response(page, status, headers=own, media_type="text/html; charset=utf-8")


def build_redirect(address: str) -> Response:
    """Returns a redirect with status 303 (See Other), to be read with GET."""
    return Response(status_code=303, headers={"Location": address, **page_headers()})


def render_problem_page(
    problem: Problem,
    scope: Scope,
    template: str = "kit/http/problem.html",
    **values: Any,  # noqa: ANN401
) -> Response:
    """Renders a problem as a page for people."""
    request_id = scope["state"].get("request_id", "")
    page = render_template(template, problem=problem, request_id=request_id, **values)
    return page_response(page, status=problem.status, headers=problem.headers)


def render_problems_page() -> str:
    """Renders the page that documents every problem."""
    return render_template("kit/http/problems.html", problems=list_problems())


def _as_page(problem: Problem, scope: Scope) -> Response:
    return render_problem_page(problem, scope)


class PageRoute(JsonRoute):
    """A route of pages, whose problems are pages too."""

    problem_page = staticmethod(_as_page)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with numbers and dates in the style of the reader."""
        accepted = b",".join(value for name, value in scope["headers"] if name == b"accept-language")
        with use_style(select_style(accepted.decode("latin-1"))):
            await super().handle(scope, receive, send)


class PublicPageRoute(PageRoute):
    """A route of pages for everybody, with or without credentials."""

    is_public = True


def prefers_page(accepted: str) -> bool:
    """Returns true if a value of Accept names HTML, as browsers do, and prefers nothing of JSON to it."""
    weights = read_weights(accepted)
    page = weights.get("text/html", 0.0)
    return page > 0 and page >= weights.get("application/json", 0.0)


def page_router(*, tag: str, route_class: type[PageRoute] = PageRoute) -> APIRouter:
    """A router of pages, which are not part of the API that clients are generated from."""
    return APIRouter(tags=[tag], route_class=route_class, include_in_schema=False)


async def read_form(scope: Scope, receive: Receive) -> Form:
    """Returns the fields of a form that a browser has sent."""
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != _FORM:
        raise UnsupportedMediaType("The body must be a form")
    raw = await read_body(scope, receive)
    if len(raw) > FORM_BYTES or raw.count(b"&") >= FORM_FIELDS:
        raise PayloadTooLarge("The form is too large")
    return _parse_fields(raw)


def _parse_fields(raw: bytes) -> Form:
    fields: dict[str, str] = {}
    for part in raw.split(b"&"):
        if not part:
            continue
        name, _, value = part.partition(b"=")
        decoded = _decode_text(name)
        if decoded in fields:
            field = FieldError(build_pointer([decoded]), "REPEATED", "the field may be given only once")
            raise BadRequest("A field of the form is given twice", field)
        fields[decoded] = _decode_text(value)
    return fields


def _decode_text(coded: bytes) -> str:
    """Decodes a name or value of a form; refuses what no browser sends."""
    if _PERCENT.search(coded):
        raise BadRequest("The form is not URL-encoded")
    try:
        text = unquote_to_bytes(coded.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise BadRequest("The form is not encoded in UTF-8") from None
    text = text.replace("\r\n", "\n")
    if _CONTROL.search(text):
        raise BadRequest("The form contains control characters")
    return text


async def _read_form(request: Request) -> Form:
    return await read_form(request.scope, request.receive)


FormFields = Annotated[Form, Depends(_read_form)]
"""Dependency that reads the fields of the form that was sent."""


def group_errors_by_field(problem: Problem, names: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Returns the error of each field of a form by its name, and the errors that belong to no field.

    ``names`` maps JSON pointers, or their beginnings, to names of fields.
    """
    by_field: dict[str, str] = {}
    others: list[str] = []
    for error in problem.errors:
        name = _find_nearest_field(error.pointer, names)
        if name is None or name in by_field:
            others.append(f"{error.detail} ({error.pointer})" if error.pointer else error.detail)
        else:
            by_field[name] = error.detail
    return by_field, others


def _find_nearest_field(wanted: str, names: Mapping[str, str]) -> str | None:
    parts = wanted.split("/")
    beginnings: Iterable[str] = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((names[beginning] for beginning in beginnings if beginning in names), None)
