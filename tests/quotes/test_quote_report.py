"""The report of a stored quote over HTTP."""

from tests.quotes.asking import OWNED, quoted
from tests.quotes.reading import Page


def test_each_version_has_a_report(client):
    quote = quoted(client, OWNED, name="a run & more")
    response = client.get(f"/v1/quotes/{quote['id']}/report")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script" not in response.headers["Content-Security-Policy"]
    assert quote["content_digest"] in response.text
    page = Page(response.text)
    assert page.tables["Headlines"][1][1].startswith(f"{float(quote['headlines']['total']['amount']):,.2f}")
    assert client.get(f"/v1/quotes/{quote['id']}/report?version=2").status_code == 404
