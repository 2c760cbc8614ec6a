"""Signing in to the pages, against an issuer on loopback, and every way to be somebody else."""

import asyncio
import itertools
import re
import string
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from fastapi import Response

from service.app.application import create_app
from service.app.settings import Settings
from service.auth import login as auth_login
from service.auth.errors import SignInFailed
from service.auth.login import SignIn
from service.auth.oidc import Issuer
from service.auth.sessions import (
    MOST_LOGINS,
    SESSION_SECONDS,
    AuthenticatedPageRoute,
    SealedValues,
    VisitorDependency,
    is_own_path,
)
from service.kit.http.admission import RateLimit
from service.kit.http.calling import run_in_thread
from service.kit.http.html import page_response, page_router, render_template
from service.kit.http.problems import Unavailable
from service.kit.http.web import add_routes
from tests.applications import KEYRING, OPEN, TENANT, Callers, attach
from tests.auth.issuing import Provider, SigningIn, on_loopback
from tests.conftest import Client

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

SITE = "https://plan.example"
SESSION, LOGIN = "__Host-ironlaw-session", "__Host-ironlaw-login-"


probe = page_router(tag="probes", route_class=AuthenticatedPageRoute)


@probe.get("/signed-in")
def signed_in(visitor: VisitorDependency) -> Response:
    return page_response(
        render_template("auth/pages/signed_out.html", visitor=visitor, everywhere=False, at_issuer=None)
    )


@pytest.fixture(scope="module")
def app():
    """The application, with a page for those who have signed in and may read probes."""
    made = create_app(OPEN)
    add_routes(made, probe)
    return made


@pytest.fixture(scope="module")
def provider():
    with on_loopback(SigningIn(now=int(time.time()))) as issuing:
        yield issuing


@pytest.fixture(scope="module")
def people(app, databases_of, provider, tmp_path_factory):
    """An application that people sign in to; nothing of a session is stored, so one database will do."""
    maker = databases_of("sqlite")
    database = maker.loaded()
    secret = tmp_path_factory.mktemp("client") / "secret"
    secret.write_text(provider.secret + "\n")
    settings = {
        "oidc_issuer": provider.issuer,
        "oidc_audience": "ironlaw",
        "oidc_client_id": provider.client_id,
        "oidc_client_secret_file": secret,
        "public_url": SITE,
    }
    attach(app, database, TENANT.model_copy(update=settings))
    people = Callers(app, database)
    people.client = Client(app)
    yield people
    people.client.close()
    maker.dispose()


class Browser:
    """Keeps cookies as browsers do, and goes where it is sent."""

    def __init__(self, people, provider):
        self.client = people.client
        self.provider = provider
        self.cookies = {}

    def request(self, method, path, **options):
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookies} if cookies else {}
        answer = self.client.request(
            method, path, headers={**headers, **options.pop("headers", {})}, **options
        )
        for value in answer.headers.get_list("set-cookie"):
            name, _, rest = value.partition("=")
            content, *attributes = rest.split("; ")
            self.cookies[name] = content
            if "Max-Age=0" in attributes:
                del self.cookies[name]
        return answer

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, **form):
        return self.request(
            "POST",
            path,
            content=urlencode(form),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )

    def answer_of_issuer(self, path="/approvals"):
        """Begin to sign in; the path that the issuer sends the browser back to."""
        begun = self.get(f"/login?next={path}")
        assert begun.status_code == 303, begun.text
        address = self.provider.authorize(dict(parse_qsl(urlsplit(begun.headers["location"]).query)))
        assert address.startswith(SITE)
        return address.removeprefix(SITE)

    def sign_in(self, path="/approvals"):
        return self.get(self.answer_of_issuer(path))

    def begun(self):
        """Names of the cookies of sign-ins that have begun."""
        return [name for name in self.cookies if name.startswith(LOGIN)]

    def form_token(self):
        return re.search('name="form_token" value="([0-9a-f]+)"', self.get("/signed-in").text)[1]


@pytest.fixture
def browser(people, provider):
    provider.who = {"sub": "ada", "tenant": "default", "scope": "*:*"}
    provider.token_of_a_code = provider.id_token
    return Browser(people, provider)


def refusal(answer):
    """Status and code of a problem that is told as a page."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer.status_code, re.search(r'class="quiet">([A-Z_]+)', answer.text)[1]


class TestSigningIn:
    def test_leads_to_the_page_alone_where_its_address_is_long(self, browser):
        sent = browser.get("/ask?model=" + "x" * 600)
        assert sent.headers["location"] == "/login?next=%2Fask"

    def test_leads_to_the_page_that_was_wanted(self, browser):
        sent = browser.get("/signed-in")
        assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Fsigned-in")
        back = browser.sign_in("/signed-in")
        assert (back.status_code, back.headers["location"]) == (303, "/signed-in")
        page = browser.get("/signed-in")
        assert page.status_code == 200
        assert '<span class="quiet">ada</span>' in page.text

    def test_its_cookies_are_of_this_host_alone_and_no_script_reads_them(self, browser):
        begun = browser.get("/login")
        back = browser.get(browser.answer_of_issuer())
        cookies = [*begun.headers.get_list("set-cookie"), *back.headers.get_list("set-cookie")]
        names = [cookie.partition("=")[0] for cookie in cookies]
        assert [re.sub("-[0-9a-f]{16}$", "-", name) for name in names] == [LOGIN, SESSION, LOGIN]
        for cookie in cookies:
            assert {"Path=/", "HttpOnly", "Secure", "SameSite=Lax"} <= set(cookie.split("; "))
            assert "Domain" not in cookie

    def test_works_for_a_public_client(self, app, provider, browser, monkeypatch):
        monkeypatch.setattr(provider, "secret", "")
        client = app.state.login._client
        monkeypatch.setattr(app.state.login, "_client", client._replace(secret=""))
        assert browser.sign_in().status_code == 303

    def test_asks_with_the_challenge_of_a_verifier_that_the_cookie_does_not_give_away(self, browser):
        begun = browser.get("/login")
        query = dict(parse_qsl(urlsplit(begun.headers["location"]).query))
        assert (query["scope"], query["code_challenge_method"]) == ("openid email", "S256")
        assert len(query["code_challenge"]) == 43
        (name,) = browser.begun()
        assert query["nonce"] not in name + browser.cookies[name]

    def test_two_tabs_that_begin_at_once_both_succeed(self, browser):
        first, second = browser.answer_of_issuer("/signed-in"), browser.answer_of_issuer("/approvals")
        assert len(browser.begun()) == 2
        for answer, path in ((first, "/signed-in"), (second, "/approvals")):
            back = browser.get(answer)
            assert (back.status_code, back.headers["location"]) == (303, path)
        assert browser.begun() == []

    def test_leads_back_to_an_address_that_was_shared(self, browser):
        sent = browser.get("/ask?model=gpt2&accelerator_count=2")
        wanted = sent.headers["location"].removeprefix("/login?next=")
        back = browser.sign_in(wanted)
        assert back.headers["location"] == "/ask?model=gpt2&accelerator_count=2"

    def test_a_browser_keeps_the_newest_few_that_it_has_begun(self, browser):
        answers = [browser.answer_of_issuer() for _ in range(MOST_LOGINS + 2)]
        assert len(browser.begun()) == MOST_LOGINS
        statuses = [browser.get(answer).status_code for answer in answers]
        assert statuses == [400] * 2 + [303] * MOST_LOGINS

    def test_gives_what_the_scopes_of_the_token_say_and_no_more(self, browser, provider):
        provider.who["scope"] = "quotes:read tenants:*"
        browser.sign_in()
        assert refusal(browser.get("/signed-in")) == (403, "SCOPE_REQUIRED")

    @pytest.mark.parametrize(
        "path",
        [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "/%5cevil",
            "javascript:1",
            "",
            "/a\r\nb",
        ],
    )
    def test_leads_to_no_other_site(self, browser, path):
        assert not is_own_path(path)
        assert refusal(browser.get(f"/login?{urlencode({'next': path})}")) == (400, "BAD_REQUEST")

    def test_says_when_the_issuer_cannot_be_reached(self, people, app, monkeypatch):
        def fetch(*_):
            raise OSError

        monkeypatch.setattr(app.state.login, "_fetch", fetch)
        monkeypatch.setattr(app.state.login, "_document_ends_at", 0.0)
        refused = people.client.get("/login")
        assert (*refusal(refused), refused.headers["retry-after"]) == (503, "UNAVAILABLE", "10")


class TestSomebodyElse:
    """Every case signs in as it should, but for one thing."""

    def failed(self, browser, answer):
        assert refusal(answer) == (400, "SIGN_IN_FAILED")
        assert SESSION not in browser.cookies
        assert browser.get("/signed-in").status_code == 303

    def test_an_answer_that_this_browser_did_not_ask_for(self, browser, people, provider):
        """Signing the victim in as the attacker: the attacker's answer, opened in another browser."""
        answer = Browser(people, provider).answer_of_issuer()
        self.failed(browser, browser.get(answer))
        browser.get("/login")
        self.failed(browser, browser.get(answer))

    def test_an_answer_that_was_used(self, browser):
        answer = browser.answer_of_issuer()
        kept = dict(browser.cookies)
        assert browser.get(answer).status_code == 303
        browser.cookies = kept
        self.failed(browser, browser.get(answer))

    def test_an_answer_that_came_too_late(self, browser, app, monkeypatch):
        answer = browser.answer_of_issuer()
        monkeypatch.setattr(app.state.login._sealed, "_clock", lambda: time.time() + 601)
        self.failed(browser, browser.get(answer))

    def test_an_answer_without_a_code(self, browser):
        answer = browser.answer_of_issuer()
        refused = browser.get(re.sub("code=[^&]+", "error=access_denied&error_description=<b>no", answer))
        self.failed(browser, refused)
        assert "<b>" not in refused.text

    def test_a_parameter_that_comes_twice(self, browser):
        answer = browser.answer_of_issuer()
        self.failed(browser, browser.get(f"{answer}&code=other"))
        answer = browser.answer_of_issuer()
        self.failed(browser, browser.get(f"{answer}&iss=https://evil.example"))

    def test_an_answer_of_another_issuer(self, browser):
        answer = browser.answer_of_issuer().partition("&iss=")[0]
        self.failed(browser, browser.get(f"{answer}&iss=https://evil.example"))

    def test_an_answer_that_names_no_issuer_where_it_says_that_it_does(self, browser, app, monkeypatch):
        answer = browser.answer_of_issuer().partition("&iss=")[0]
        kept = dict(browser.cookies)
        announced = {**app.state.login._document, "authorization_response_iss_parameter_supported": True}
        monkeypatch.setattr(app.state.login, "_document", announced)
        self.failed(browser, browser.get(answer))
        monkeypatch.undo()
        browser.cookies = kept
        assert browser.get(answer).status_code == 303

    def test_a_code_of_another_sign_in(self, browser, people, provider):
        """PKCE: a code that was caught elsewhere is worth nothing in this browser."""
        caught = dict(parse_qsl(urlsplit(Browser(people, provider).answer_of_issuer()).query))["code"]
        answer = re.sub("code=[^&]+", f"code={caught}", browser.answer_of_issuer())
        self.failed(browser, browser.get(answer))

    @pytest.mark.parametrize(
        "claims",
        [
            {"nonce": "another"},
            {"nonce": None},
            {"aud": "ironlaw"},
            {"aud": ["ironlaw-pages", "ironlaw"]},
            {"aud": ["ironlaw-pages", "ironlaw"], "azp": "ironlaw"},
            {"aud": ["ironlaw-pages", "ironlaw"], "azp": ["ironlaw-pages"]},
            {"azp": "ironlaw"},
            {"iss": "https://evil.example"},
            {"exp": 1},
            {"sub": None},
            {"tenant": None},
            {"tenant": "nobody"},
            {"tenant": "shipped"},
        ],
    )
    def test_a_token_that_says_something_else(self, browser, provider, claims):
        provider.token_of_a_code = lambda query: provider.id_token(query, **claims)
        self.failed(browser, browser.sign_in())

    def test_nobody_else_but_this_client_among_several_audiences(self, browser, provider):
        claims = {"aud": ["ironlaw", "ironlaw-pages"], "azp": "ironlaw-pages"}
        provider.token_of_a_code = lambda query: provider.id_token(query, **claims)
        assert browser.sign_in().status_code == 303

    @pytest.mark.parametrize("token", ["", "a.b.c", None, 7])
    def test_no_token(self, browser, provider, token):
        provider.token_of_a_code = lambda _: token
        self.failed(browser, browser.sign_in())

    def test_a_token_signed_by_somebody_else(self, browser, provider):
        provider.token_of_a_code = lambda query: provider.id_token(query)[:-8] + "AAAAAAAA"
        self.failed(browser, browser.sign_in())

    def test_more_scopes_than_a_browser_keeps(self, browser, provider):
        names = (f"s{first}{second}{'x' * 60}" for first in "abcdefgh" for second in "abcdefgh")
        provider.who["scope"] = " ".join(f"{name}:read" for name in names)
        self.failed(browser, browser.sign_in())


def other(letter):
    return "A" if letter != "A" else "B"


class TestSession:
    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text[:-1] + other(text[-1]),
            lambda text: other(text[0]) + text[1:],
            lambda text: text + "=",
            lambda _: "x.y",
            lambda _: ".",
        ],
    )
    def test_a_cookie_that_was_changed_opens_nothing(self, browser, change):
        browser.sign_in()
        browser.cookies[SESSION] = change(browser.cookies[SESSION])
        assert browser.get("/signed-in").status_code == 303

    def test_a_cookie_made_for_another_purpose_opens_nothing(self, browser):
        browser.get("/login")
        (name,) = browser.begun()
        browser.cookies[SESSION] = browser.cookies.pop(name)
        assert browser.get("/signed-in").status_code == 303

    def test_a_cookie_that_was_planted_beside_it_opens_nothing(self, browser):
        browser.sign_in()
        own = browser.cookies[SESSION]
        browser.cookies[SESSION] = f"{own}; {SESSION}={own}"
        assert browser.get("/signed-in").status_code == 303

    def test_a_cookie_without_the_prefix_of_this_host_opens_nothing(self, browser):
        browser.sign_in()
        browser.cookies["ironlaw-session"] = browser.cookies.pop(SESSION)
        assert browser.get("/signed-in").status_code == 303

    def test_signing_in_begins_another_one(self, browser):
        """What an attacker has planted before is not what the victim goes on with."""
        browser.sign_in()
        planted = browser.cookies[SESSION]
        browser.sign_in()
        assert browser.cookies[SESSION] != planted

    def test_ends_after_an_hour(self, browser, app, monkeypatch):
        browser.sign_in()
        sealed = app.state.visitors._sealed
        monkeypatch.setattr(sealed, "_clock", lambda: time.time() + SESSION_SECONDS - 5)
        assert browser.get("/signed-in").status_code == 200
        monkeypatch.setattr(sealed, "_clock", lambda: time.time() + SESSION_SECONDS + 5)
        assert browser.get("/signed-in").status_code == 303

    def test_ends_with_its_tenant(self, browser, people, provider):
        provider.who["tenant"] = people.tenant("other")
        browser.sign_in()
        assert browser.get("/signed-in").status_code == 200
        operator = {"Authorization": f"Bearer {people.key('tenants:*')}"}
        people.client.post("/v1/tenants/other:disable", headers=operator)
        assert browser.get("/signed-in").status_code == 303

    def test_ends_by_signing_out(self, browser):
        browser.sign_in()
        out = browser.post("/logout", form_token=browser.form_token())
        assert out.status_code == 200
        assert SESSION not in browser.cookies
        assert browser.get("/signed-in").status_code == 303

    def test_signed_out_opens_nothing_for_any_copy_of_its_cookie(self, browser, people, provider):
        browser.sign_in()
        copied = Browser(people, provider)
        copied.cookies = dict(browser.cookies)
        another = Browser(people, provider)
        another.sign_in()
        browser.post("/logout", form_token=browser.form_token())
        assert copied.get("/signed-in").status_code == 303
        assert another.get("/signed-in").status_code == 200

    def test_signed_out_in_every_browser_another_begins_anew(self, browser, people, provider):
        browser.sign_in()
        another, others = Browser(people, provider), Browser(people, provider)
        another.sign_in()
        provider.who["sub"] = "bob"
        others.sign_in()
        out = browser.post("/logout", form_token=browser.form_token(), everywhere="yes")
        assert "All your sessions" in out.text
        assert another.get("/signed-in").status_code == 303
        assert others.get("/signed-in").status_code == 200
        provider.who["sub"] = "ada"
        another.sign_in()
        assert another.get("/signed-in").status_code == 200

    def test_signing_out_offers_to_end_the_session_of_the_issuer(self, browser, provider):
        browser.sign_in()
        out = browser.post("/logout", form_token=browser.form_token())
        offered = urlsplit(unescape(re.search('href="([^"]+)">Sign out at your issuer', out.text)[1]))
        assert f"{offered.scheme}://{offered.netloc}" == provider.issuer
        back = provider.end_session(dict(parse_qsl(offered.query)))
        assert back == f"{SITE}/signed-out"
        assert "signed out at your issuer" in browser.get(f"{back.removeprefix(SITE)}?state=x").text

    @pytest.mark.parametrize("named", [None, 7, "http://elsewhere.example/end", "https://xn--/"])
    def test_an_issuer_without_a_safe_page_for_it_is_not_offered(self, browser, app, monkeypatch, named):
        browser.sign_in()
        token = browser.form_token()
        document = {**app.state.login._document, "end_session_endpoint": named}
        monkeypatch.setattr(app.state.login, "_document", document)
        out = browser.post("/logout", form_token=token)
        assert (out.status_code, "Sign out at your issuer" in out.text) == (200, False)

    def test_is_nothing_to_the_api(self, browser):
        browser.sign_in()
        assert browser.get("/v1/models").status_code == 401

    def test_is_not_begun_by_a_key_or_a_token(self, people, provider):
        for credential in (people.key("*:*"), provider.token(scope="*:*", tenant="default")):
            answer = people.client.get("/signed-in", headers={"Authorization": f"Bearer {credential}"})
            assert answer.status_code == 303


class TestForms:
    @pytest.mark.parametrize("token", ["", "0" * 32, "é"])
    def test_one_without_the_token_of_the_session_is_refused(self, browser, token):
        browser.sign_in()
        assert refusal(browser.post("/logout", form_token=token)) == (403, "FORM_REFUSED")
        assert browser.get("/signed-in").status_code == 200

    def test_one_of_another_session_is_refused(self, browser, people, provider):
        other = Browser(people, provider)
        other.sign_in()
        browser.sign_in()
        assert refusal(browser.post("/logout", form_token=other.form_token())) == (403, "FORM_REFUSED")

    def test_one_of_another_site_is_refused(self, browser):
        browser.sign_in()
        form = urlencode({"form_token": browser.form_token()})
        for origin in ("https://evil.example", "null"):
            headers = {"Origin": origin, "Content-Type": "application/x-www-form-urlencoded"}
            refused = browser.request("POST", "/logout", content=form, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "ORIGIN_NOT_ALLOWED")

    def test_one_without_a_session_is_told_to_sign_in(self, browser):
        assert refusal(browser.post("/logout")) == (401, "SIGN_IN_REQUIRED")

    def test_one_with_a_bearer_token_only_is_nobodys(self, people):
        headers = {
            "Authorization": f"Bearer {people.key('*:*')}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        assert refusal(people.client.request("POST", "/logout", content="", headers=headers))[0] == 401


def test_nobody_signs_in_where_no_issuer_is_set(people, app, monkeypatch):
    monkeypatch.setitem(app.state._state, "login", None)
    monkeypatch.setattr(app.state.visitors, "_has_login", False)
    for path in ("/login", "/login/callback", "/signed-in"):
        assert refusal(people.client.get(path)) == (401, "SIGN_IN_UNAVAILABLE")


def test_in_open_mode_everybody_reads_pages(people, app, monkeypatch):
    monkeypatch.setattr(app.state.visitors, "_is_open", True)
    page = people.client.get("/signed-in")
    assert page.status_code == 200
    assert "Sign out" not in page.text


class TestACrowd:
    """Anybody may begin to sign in: however many do, they take one fetch and no shared thread."""

    @pytest.fixture
    def issuer(self):
        return Hanging()

    @pytest.fixture
    def login(self, issuer):
        made = Issuer(
            issuer=issuer.issuer,
            audience="pages",
            algorithms=("ES256",),
            tenant="default",
            tenant_claim="",
            scope_claim="scope",
        )
        return SignIn(auth_login.OidcClient(made, "", SITE), KEYRING, issuer.fetch, lambda: issuer.now)

    def test_shares_one_fetch_that_takes_no_shared_thread(self, login, issuer):
        async def crowd():
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            waiting = [asyncio.create_task(login.begin_sign_in("/approvals")) for _ in range(300)]
            await run_in_thread(issuer.begun.acquire)
            # What lets everybody else read a revocation, while the issuer hangs.
            assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 30) == "free"
            assert issuer.under_way == 1
            at_once, _ = await asyncio.wait(waiting, timeout=0)
            issuer.answers.set()
            return len(at_once), await asyncio.gather(*waiting, return_exceptions=True)

        at_once, found = asyncio.run(crowd())
        refused = [each for each in found if isinstance(each, Unavailable)]
        assert (at_once, len(refused)) == (200, 200)
        assert {each.headers["Retry-After"] for each in refused} == {"10"}
        assert all(each.address.startswith(issuer.issuer) for each in found if each not in refused)
        assert len(issuer.fetched) == 1

    def test_does_not_ask_again_for_some_seconds_after_a_failure(self, login, issuer):
        issuer.answers.set()
        issuer.failure = OSError("no")

        async def begin():
            with pytest.raises(Unavailable) as refused:
                await login.begin_sign_in("/approvals")
            return refused.value.headers["Retry-After"]

        assert [asyncio.run(begin()) for _ in range(3)] == ["10"] * 3
        issuer.now += 9.9
        asyncio.run(begin())
        assert len(issuer.fetched) == 1
        issuer.now += 0.1
        asyncio.run(begin())
        assert len(issuer.fetched) == 2
        issuer.failure = None
        issuer.now += 10
        assert asyncio.run(login.begin_sign_in("/approvals")).address.startswith(issuer.issuer)

    def test_that_waits_too_long_is_told_to_come_again(self, login, monkeypatch, issuer):
        monkeypatch.setattr(auth_login, "_WAIT_SECONDS", 0.01)

        async def begin():
            with pytest.raises(Unavailable):
                await login.begin_sign_in("/approvals")

        asyncio.run(begin())
        assert issuer.under_way == 1
        issuer.answers.set()

    def test_has_few_codes_exchanged_at_a_time(self, login, issuer):
        async def answered():
            begun = await login.begin_sign_in("/approvals")
            state = dict(parse_qsl(urlsplit(begun.address).query))["state"]
            return {"state": state, "code": "caught"}, begun.kept

        async def crowd():
            issuer.answers.set()
            answers = [await answered() for _ in range(150)]
            issuer.answers.clear()
            issuer.begun = threading.Semaphore(0)
            waiting = [asyncio.create_task(login.finish_sign_in(*answer)) for answer in answers]
            for _ in range(auth_login._MOST_EXCHANGES):
                await run_in_thread(issuer.begun.acquire)
            issuer.answers.set()
            return await asyncio.gather(*waiting, return_exceptions=True)

        found = asyncio.run(crowd())
        assert issuer.most_under_way == auth_login._MOST_EXCHANGES
        kinds = Counter(type(each) for each in found)
        assert kinds[Unavailable] >= 150 - auth_login._MOST_WAITING - auth_login._MOST_EXCHANGES
        assert kinds[Unavailable] + kinds[SignInFailed] == 150
        assert kinds[SignInFailed] >= auth_login._MOST_EXCHANGES

    def test_from_one_address_is_limited(self, people, app, monkeypatch):
        monkeypatch.setattr("service.kit.http.admission.time.monotonic", lambda: 1_000_000.0)
        monkeypatch.setattr(app.state.admission, "_sign_ins", RateLimit(3))
        statuses = [people.client.get(path) for path in ("/login", "/login/callback", "/signed-out")]
        assert [each.status_code for each in statuses] == [303, 400, 200]
        for path in ("/login", "/login/callback"):
            refused = people.client.get(path)
            assert refusal(refused) == (429, "TOO_MANY_REQUESTS")
            assert 0 < int(refused.headers["retry-after"]) <= 60


class Hanging(Provider):
    """Answers once it may, and counts who waits for that."""

    def __init__(self):
        super().__init__()
        self.answers = threading.Event()
        self.begun = threading.Semaphore(0)
        self.under_way = self.most_under_way = 0
        self._lock = threading.Lock()

    def fetch(self, address, form=None, credentials=None):
        del credentials
        with self._lock:
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        self.begun.release()
        try:
            assert self.answers.wait(60)
            return b"{}" if form else super().fetch(address)
        finally:
            with self._lock:
                self.under_way -= 1


def test_sealed_values_are_of_one_key_and_time():
    now = 1000.0
    sealed = SealedValues(KEYRING.derive_key("one"), 10, lambda: now)
    text = sealed.seal_value(["a", {"b": 1}])
    assert sealed.unseal_value(text) == ["a", {"b": 1}]
    letters = string.ascii_letters + string.digits + "-_.="
    for place, letter in itertools.product(range(len(text)), letters):
        if letter != text[place]:
            assert sealed.unseal_value(text[:place] + letter + text[place + 1 :]) is None
    assert SealedValues(KEYRING.derive_key("two"), 10, lambda: now).unseal_value(text) is None
    now = 1010.0
    assert sealed.unseal_value(text) is None
    now = 939.0
    assert sealed.unseal_value(text) is None, "the clock was set back by more than clocks differ"
    now = 940.0
    assert sealed.unseal_value(text)
    for wrong in ("", ".", "a", "é.é", f"{text}=", f"{text}."):
        assert sealed.unseal_value(wrong) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"oidc_client_id": "x", "public_url": SITE},
        {"oidc_client_id": "x", "oidc_issuer": "https://i.example", "oidc_audience": "a"},
        {"public_url": "http://plan.example"},
        {"public_url": "https://plan.example/"},
        {"public_url": "https://plan.example/path"},
        {"public_url": "https://user@plan.example"},
        {"public_url": "plan.example"},
        {"oidc_client_secret_file": "secret"},
    ],
)
def test_settings_that_would_not_be_safe_are_refused(settings):
    with pytest.raises(ValueError, match="IRONLAW_"):
        Settings(**settings)


@pytest.mark.parametrize(
    "address", ["https://plan.example", "https://plan.example:8443", "http://127.0.0.1:8000"]
)
def test_addresses_of_the_service(address):
    assert Settings(public_url=address).public_url == address
