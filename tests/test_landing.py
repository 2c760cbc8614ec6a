"""The landing page: a page for browsers, links for programs, and the same for everybody."""

import json
import re
import shlex

import pytest

from service.app.examples import REFERENCE_QUESTION
from service.kit.http.html import prefers_page
from tests.applications import TENANT, attach, store_quote
from tests.browsing import LOOPBACK, NARROW, overflow, served, violations
from tests.conftest import Client
from tests.prepared import ON_SQLITE

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def links(page):
    return re.findall(r'<h2><a href="([^"]+)">', page)


@pytest.mark.parametrize(
    ("accepted", "is_page"),
    [
        (BROWSER["accept"], True),
        ("text/html", True),
        ("text/html;q=0.5, application/json", False),
        ("application/json", False),
        ("text/html;q=0", False),
        ("text/html;q=x", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_a_page_is_for_those_who_name_one(accepted, is_page):
    assert prefers_page(accepted) is is_page


@ON_SQLITE
def test_a_browser_gets_the_landing_page(reader):
    answer = reader.get("/", headers=BROWSER)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert {"/ask", "/approvals", "/docs", "/openapi.json", "/readyz"} <= {*links(answer.text)}
    again = reader.get("/", headers={**BROWSER, "if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@ON_SQLITE
def test_a_program_gets_the_same_links_as_json(reader):
    answer = reader.get("/")
    assert answer.headers["content-type"] == "application/json"
    index = answer.json()
    assert [link["href"] for link in index["links"]] == links(reader.get("/", headers=BROWSER).text)
    assert len({link["rel"] for link in index["links"]}) == len(index["links"])
    for link in index["links"]:
        assert link.keys() == {"rel", "href", "title", "description"}


@ON_SQLITE
def test_every_link_leads_to_something(reader):
    """A part of a page that is linked is there."""
    for link in reader.get("/").json()["links"]:
        answer = reader.get(link["href"], headers=BROWSER)
        assert answer.status_code < 400, link
        assert answer.content, link
        _, _, part = link["href"].partition("#")
        assert not part or f'id="{part}"' in answer.text, link


@ON_SQLITE
def test_the_guide_is_linked_where_it_is_built(reader, tmp_path):
    from service.app.application import create_app  # noqa: PLC0415
    from tests.applications import OPEN  # noqa: PLC0415

    (tmp_path / "index.html").write_text("The guide")
    app = create_app(OPEN.model_copy(update={"guide_dir": tmp_path}))
    attach(app, reader.app.state.database)
    client = Client(app)
    assert client.get("/").json()["links"][-1]["href"] == "/docs/guide/"
    assert client.get("/docs/guide/").text == "The guide"
    client.close()


@ON_SQLITE
def test_its_command_asks_the_reference_question(reader):
    page = reader.get("/", headers=BROWSER).text
    command = re.search(r'id="command">(.*?)</pre>', page, re.DOTALL)[1]
    for entity, character in (("&#34;", '"'), ("&#39;", "'"), ("&amp;", "&")):
        command = command.replace(entity, character)
    words = shlex.split(command.replace("\\\n", ""))
    assert words[2].endswith("/v1/estimates/utility-bill")
    question = json.loads(words[words.index("-d") + 1])
    assert question == REFERENCE_QUESTION
    assert "authorization" not in command
    assert reader.post("/v1/estimates/utility-bill", question).status_code == 200


@ON_SQLITE
def test_it_tells_nothing_of_a_tenant(app, database):
    attach(app, database, TENANT)
    client = Client(app)
    before = client.get("/", headers=BROWSER)
    store_quote(database)
    assert before.status_code == 200
    assert client.get("/", headers={**BROWSER, "authorization": "Bearer wrong"}).text == before.text
    client.close()


@ON_SQLITE
class TestInABrowser:
    pytestmark = LOOPBACK

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_it_is_read_by_everybody(self, app, database, window, scheme):
        attach(app, database)
        with served(app) as address:
            page = window(NARROW, color_scheme=scheme)
            page.goto(address)
            assert violations(page) == []
            assert overflow(page) == 0
            page.get_by_role("link", name="Documentation").click()
            assert page.title() == "Documentation of the API - Ironlaw"
