"""The landing page: what this is, and where everything is; as a page for browsers, as JSON for programs."""

import json
from typing import Final, NamedTuple

from fastapi import FastAPI, Request, Response
from pydantic_core import to_json

from service import __version__
from service.app.guide import is_site_built
from service.app.reference_question import REFERENCE_QUESTION
from service.app.settings import Settings
from service.kit.http.html import PublicPageRoute, page_headers, page_router, prefers_page, render_template
from service.kit.http.packed import PackedContent
from service.kit.http.web import add_routes

_SUMMARY: Final = "Capacity planning for machine learning: does it fit, how fast is it, what does it cost?"
_VARIES: Final = {"Vary": "Accept, Accept-Encoding"}


class Link(NamedTuple):
    """A link of the landing page."""

    rel: str
    href: str
    title: str
    description: str


_LINKS: Final = (
    Link("ask", "/ask", "Ask", "A form for one question: memory, speed, cost or utility bill."),
    Link("plans", "/plans", "Plans", "Search for the best configuration within a budget and a deadline."),
    Link("quotes", "/quotes", "Quotes", "Answers that are frozen with their prices, to submit and to print."),
    Link("approvals", "/approvals", "Approvals", "Quotes that wait for your decision, and your own."),
    Link("budgets", "/budgets", "Budgets", "What cost centres may spend, have committed and have paid."),
    Link(
        "fleet",
        "/fleet",
        "Fleet",
        "GPU nodes: what they measure, what became worse, and what estimates learn from it.",
    ),
    Link("service-doc", "/docs", "Documentation", "Every operation, with examples to send."),
    Link("service-desc", "/openapi.json", "OpenAPI document", "All operations, to generate clients from."),
    Link("problems", "/docs/problems", "Problems", "Every error code and its meaning."),
    Link("status", "/readyz", "Health", "Readiness of the service to answer."),
)
_GUIDE: Final = Link(
    "help", "/docs/guide/", "Guide", "How to run and use the service, and how its estimates are made."
)


def add_landing(app: FastAPI, settings: Settings) -> None:
    """Adds the landing page. It is the same for everybody, and tells nothing of a tenant."""
    router = page_router(tag="landing", route_class=PublicPageRoute)

    @router.get("/")
    def landing_page(request: Request) -> Response:
        """Shows what the service is and where everything is."""
        links = [*_LINKS, _GUIDE] if is_site_built(settings.guide_dir) else [*_LINKS]
        if not prefers_page(request.headers.get("accept", "")):
            return _build_index(links).respond(request, _VARIES)
        address = settings.public_url or str(request.base_url).rstrip("/")
        page = render_template(
            "app/landing.html",
            summary=_SUMMARY,
            links=links,
            command=_write_command(address, needs_key=settings.mode == "tenant"),
        )
        packed = PackedContent(page.encode(), "text/html; charset=utf-8")
        return packed.respond(request, {**page_headers(), **_VARIES})

    add_routes(app, router)


def _build_index(links: list[Link]) -> PackedContent:
    index = {
        "title": "Ironlaw",
        "description": _SUMMARY,
        "version": __version__,
        "links": [link._asdict() for link in links],
    }
    return PackedContent(to_json(index), "application/json")


def _write_command(address: str, *, needs_key: bool) -> str:
    """Returns the reference question as a command."""
    key = '  -H "authorization: Bearer $IRONLAW_API_KEY" \\\n' if needs_key else ""
    return (
        f"curl -s {address}/v1/estimates/utility-bill -H 'content-type: application/json' \\\n"
        f"{key}  -d '{json.dumps(REFERENCE_QUESTION)}'"
    )
