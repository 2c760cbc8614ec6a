"""The site of the documentation: it is built strictly, served as files, and needs nothing from elsewhere."""

import os
import re
import subprocess
import sys

import pytest

from service.app.application import create_app
from service.kit.http.html import page_headers
from tests.applications import OPEN, attach
from tests.browsing import LOOPBACK, NARROW, overflow, served, violations
from tests.conftest import Client
from tests.image import ROOT, steps

BUILD = "tools/site/build"
INDEX = "# Index\n\nSee [a page](guides/page.md#a-part) and [a file](../service/file.py).\n"
PAGE = "# Page\n\nBack to the [index](../README.md).\n\n## A part\n\nOf marmalade.\n"
# What a page loads, as opposed to what it leads to.
LOADED = re.compile(r"<(?:script|img|source|iframe)\b[^>]*?\bsrc=\"([^\"]*)|<link\b[^>]*?\bhref=\"([^\"]*)")
WITHIN = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>|<style|\sstyle=|\son[a-z]+=|javascript:")


def build(folder, *docs):
    own = {**os.environ, "PYTHON": sys.executable}
    return subprocess.run([ROOT / BUILD, folder, *docs], env=own, capture_output=True, text=True, check=False)


@pytest.fixture
def docs(tmp_path):
    """Documentation of two pages."""
    (tmp_path / "docs" / "guides").mkdir(parents=True)
    (tmp_path / "docs" / "README.md").write_text(INDEX)
    (tmp_path / "docs" / "guides" / "page.md").write_text(PAGE)
    return tmp_path / "docs"


@pytest.fixture
def app_with(databases_of):
    """Makes an application that serves a folder."""
    maker = databases_of("sqlite")

    def made(folder):
        settings = OPEN.model_copy(update={"guide_dir": folder})
        app = create_app(settings)
        attach(app, maker.unchanged(), settings)
        return app

    yield made
    maker.dispose()


@pytest.fixture
def client_of(app_with):
    """Makes a client of such an application."""
    clients = []

    def made(folder):
        clients.append(Client(app_with(folder)))
        return clients[-1]

    yield made
    for client in clients:
        client.close()


def test_the_documentation_is_built_and_served(tmp_path, client_of):
    client = client_of(tmp_path / "site")
    assert client.get("/docs/guide").status_code == 404
    done = build(tmp_path / "site")
    assert (done.returncode, done.stderr) == (0, "")
    assert client.get("/docs/guide").headers["location"] == "/docs/guide/"
    for path, shown in (
        ("", "<h1>Documentation"),
        ("README.html", "<h1>Documentation"),
        ("guides/plans.html", "<h1>Plans"),
        ("decisions/0074-rooms-follow-the-question.html", "<h1>74. Rooms follow"),
        ("search.html", "searchindex.js"),
        ("searchindex.js", "Search.setIndex("),
    ):
        answer = client.get(f"/docs/guide/{path}")
        assert answer.status_code == 200
        assert shown in answer.text
    pages = sorted((tmp_path / "site").rglob("*.html"))
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(tmp_path / "site").with_suffix(".md") for path in pages}
    assert {path.as_posix() for path in built - sources} == {"index.md", "search.md"}
    assert not sources - built
    for page in pages:
        text = page.read_text()
        loaded = [one or other for one, other in LOADED.findall(text)]
        assert loaded
        assert not [address for address in loaded if re.match(r"\w+:|//", address)], page
        assert not WITHIN.findall(text), page
    for style in (tmp_path / "site").rglob("*.css"):
        assert not re.findall(r"@import|url\((?!['\"]?[\w-]+\.\w+['\"]?\))", style.read_text()), style


def test_a_site_is_kept_by_browsers_and_asked_for_again(docs, tmp_path, client_of):
    assert build(tmp_path / "site", docs).returncode == 0
    client = client_of(tmp_path / "site")
    answer = client.get("/docs/guide/guides/page.html")
    assert answer.headers["cache-control"] == "no-cache"
    policy = answer.headers.pop("content-security-policy")
    assert "unsafe" not in policy
    assert "default-src 'none'; script-src 'self';" in policy
    wanted = {name.lower(): value for name, value in page_headers().items()}
    del wanted["content-security-policy"]
    assert answer.headers.items() >= wanted.items()
    again = client.get("/docs/guide/guides/page.html", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304
    assert client.post("/docs/guide/").status_code == 405
    for path in ("none.html", "guides/", "..%2f..%2fetc/passwd", "%00"):
        missing = client.get(f"/docs/guide/{path}")
        assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND")


def test_without_a_site_it_says_how_one_is_made(tmp_path, client_of):
    client = client_of(tmp_path / "none")
    for path in ("/docs/guide", "/docs/guide/", "/docs/guide/guides/plans.html"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert "`make site` builds it" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("README.md", INDEX.replace("page.md", "pages.md"), "guides/pages.md"),
        ("README.md", INDEX.replace("#a-part", "#apart"), "'apart'"),
        ("guides/page.md", PAGE.replace("../README", "README"), "README.md"),
        ("guides/other.md", "# Other\n", "document isn't included in any toctree"),
    ],
)
def test_what_leads_nowhere_fails_and_leaves_the_site_as_it_was(docs, tmp_path, name, text, told):
    (tmp_path / "site").mkdir()
    (docs / name).write_text(text)
    done = build(tmp_path / "site", docs)
    assert done.returncode != 0
    assert told in done.stderr
    assert (tmp_path / "site").is_dir()
    assert not list((tmp_path / "site").iterdir())


def test_files_outside_are_named(docs, tmp_path):
    assert build(tmp_path / "site", docs).returncode == 0
    text = (tmp_path / "site" / "index.html").read_text()
    assert re.search(r"a file \(<code[^>]*><span[^>]*>service/file.py</span></code>\)", text)


def test_the_image_builds_it_and_serves_it():
    built = [step.rest for step in steps() if step.stage == 1]
    assert f"{BUILD} /opt/guide" in built
    assert "--from=guide /opt/guide /opt/ironlaw/guide" in [step.rest for step in steps() if step.stage == 2]
    pins, of_tests = ((ROOT / f"requirements-{name}.txt").read_text() for name in ("site", "dev"))
    pinned = re.findall(r"(?m)^\S+==.*$", pins)
    assert {"sphinx", "myst-parser"} <= {line.partition("==")[0] for line in pinned}
    assert set(pinned) <= set(of_tests.splitlines())


class TestBrowser:
    pytestmark = [pytest.mark.browser, *LOOPBACK]

    def test_a_reader_searches(self, docs, tmp_path, app_with, window):
        """Complaints about the content security policy would fail it."""
        assert build(tmp_path / "site", docs).returncode == 0
        with served(app_with(tmp_path / "site")) as address:
            page = window()
            asked = []
            page.on("request", lambda request: asked.append(request.url))
            page.goto(f"{address}/docs/guide/")
            assert page.title() == "Index — Ironlaw"
            assert violations(page) == []
            page.get_by_role("searchbox").fill("marmalade")
            page.keyboard.press("Enter")
            page.locator("#search-results").get_by_role("link", name="Page").click()
            assert page.locator("mark, .highlighted").first.inner_text() == "marmalade"
            page.set_viewport_size({"width": NARROW, "height": 844})
            assert overflow(page) == 0
            assert all(url.startswith((address, "data:")) for url in asked)
