"""The site of the documentation, built from docs/ by `make site`, served as files."""

from pathlib import Path

from fastapi import FastAPI, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from service.kit.http.html import build_redirect, page_headers
from service.kit.http.problems import NotFound

_PATH = "/docs/guide"
# Its scripts search and mark what was searched for; all of them are files of the site.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class Guide(StaticFiles):
    """Files of the site; browsers keep them and ask whether they have changed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True, check_dir=False)
        self._index = folder / "index.html"

    def check_site(self) -> None:
        """Refuse to answer for a folder without a site."""
        if not self._index.is_file():
            raise NotFound("This service has no site of the documentation; `make site` builds it")

    async def check_config(self) -> None:
        """Starlette's hook: asked before the first file, and again until it passes."""
        self.check_site()

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Starlette's hook: a file, with the headers of pages."""
        answer = await super().get_response(path, scope)
        own = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
        answer.headers.update({**page_headers(), **own})
        return answer


def add_guide(app: FastAPI, folder: Path) -> None:
    """Serve the site in ``folder``; it may be built later."""
    guide = Guide(folder)

    @app.get(_PATH, include_in_schema=False)
    def guide_index() -> Response:
        guide.check_site()
        return build_redirect(f"{_PATH}/")

    app.mount(_PATH, guide, name="guide")
