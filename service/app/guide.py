"""The documentation site, built from docs/ by `make site` and served as files."""

from pathlib import Path

from fastapi import FastAPI, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from service.kit.http.html import build_redirect, page_headers
from service.kit.http.problems import NotFound

_PATH = "/docs/guide"
# The scripts search and highlight matches; all of them are files of the site.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def is_site_built(folder: Path) -> bool:
    """Returns true if the folder contains a site."""
    return (folder / "index.html").is_file()


class Guide(StaticFiles):
    """Files of the documentation site; browsers cache them and revalidate."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True, check_dir=False)
        self._folder = folder

    def check_site(self) -> None:
        """Raises :class:`NotFound` if the folder contains no site."""
        if not is_site_built(self._folder):
            raise NotFound("The documentation site is not built; `make site` builds it")

    async def check_config(self) -> None:
        """Checks the folder for Starlette before the first file, and again until it passes."""
        self.check_site()

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Returns a file with the headers of pages."""
        answer = await super().get_response(path, scope)
        own = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
        answer.headers.update({**page_headers(), **own})
        return answer


def add_guide(app: FastAPI, folder: Path) -> None:
    """Serves the site in ``folder``, which may be built later."""
    guide = Guide(folder)

    @app.get(_PATH, include_in_schema=False)
    def guide_index() -> Response:
        guide.check_site()
        return build_redirect(f"{_PATH}/")

    app.mount(_PATH, guide, name="guide")
