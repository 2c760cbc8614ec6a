"""Readers of pages without a browser: they keep cookies, fill in forms and go where they are sent."""

import re
from html.parser import HTMLParser
from urllib.parse import urlencode

from service.kit.security.principals import ADMIN_SCOPES, Principal, PrincipalKind

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class _Fields(HTMLParser):
    """Hidden fields and the address of the form that decides."""

    def __init__(self, page):
        super().__init__()
        self.hidden, self.action, self.buttons = {}, "", []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "form" and given["action"] != "/logout":
            self._inside, self.action = True, given["action"]
        elif tag == "input" and self._inside and given.get("type") == "hidden":
            self.hidden[given["name"]] = given["value"]
        elif tag == "button" and self._inside:
            self.buttons.append(given["value"])

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "form"


class Reader:
    """Somebody who reads pages: signed in as ``name``, or with nothing but a link."""

    def __init__(self, client, name="", *, tenant="default", scopes=ADMIN_SCOPES):
        self.client = client
        self.name = f"token:{name}"
        self.headers = {}
        if name:
            subject = Principal(PrincipalKind.TOKEN, name, tenant, frozenset(scopes))
            cookie = client.app.state.visitors.begin_session(subject)
            self.headers["Cookie"] = cookie.partition(";")[0]

    def get(self, path):
        return self.client.get(path, headers=self.headers)

    def send(self, path, form, **headers):
        content = urlencode(form)
        return self.client.request("POST", path, content=content, headers={**self.headers, **FORM, **headers})

    def fields(self, path):
        """What the page of a decision would send."""
        page = self.get(path)
        assert page.status_code == 200, page.text
        return _Fields(page.text)

    def form_token(self):
        """What proves of a form that it is of this session."""
        return re.search('name="form_token" value="([0-9a-f]+)"', self.get("/approvals").text)[1]

    def decide(self, path, decision="approve", comment="", **changes):
        """Press a button, with these changes to what the page would send; the answer, where it leads."""
        form = self.fields(path)
        sent = {**form.hidden, "comment": comment, "decision": decision, **changes}
        answer = self.send(form.action, {name: value for name, value in sent.items() if value is not None})
        return self.get(answer.headers["location"]) if answer.status_code == 303 else answer


def refusal(answer):
    """Status and code of a problem that is told as a page."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer.status_code, re.search(r'class="quiet">([A-Z_]+)', answer.text)[1]


def heading(page):
    """What the page is about."""
    found = re.findall(r"<h1[^>]*>(.*?)</h1>", page.text, re.DOTALL)
    assert len(found) == 1
    return found[0].strip()
