"""Pages by which people sign in and out."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qsl

from fastapi import Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.types import Scope

from service.audit.service import TransactionSource, WriteContext, WriteRequest
from service.auth.errors import SignInFailed, SignInUnavailable
from service.auth.router import SessionEndings
from service.auth.session_revocation import SessionRevocations
from service.auth.sessions import (
    CALLBACK_PATH,
    LOGIN_COOKIE,
    LOGIN_PATH,
    LOGIN_SECONDS,
    MOST_COOKIE_CHARACTERS,
    MOST_LOGINS,
    SIGNED_OUT_PATH,
    AuthenticatedPageRoute,
    PageAuthenticator,
    SameSessionForm,
    VisitorDependency,
    is_own_path,
)
from service.kit.http.admission import Admission
from service.kit.http.html import PageRoute, build_redirect, page_response, page_router, render_template
from service.kit.http.problems import BadRequest
from service.kit.http.web import from_state
from service.kit.security.principals import Principal, PrincipalKind

if TYPE_CHECKING:
    from service.auth.login import SignIn
    from service.auth.oidc import TokenClaims


class SignInRoute(PageRoute):
    """A route for visitors who are not signed in yet. Query parameters that an issuer adds are ignored."""

    is_public = True

    async def admit(self, scope: Scope) -> None:
        """Admits every visitor within the rate limit, if sign-in is configured."""
        state = scope["app"].state
        if state.login is None:
            raise SignInUnavailable
        admission: Admission = state.admission
        admission.count_sign_in(scope)


class SessionRoute(AuthenticatedPageRoute):
    """A route for every visitor with a session, whatever their scopes."""

    async def let_in(self, scope: Scope) -> None:
        """Refuses visitors without a session."""
        visitors: PageAuthenticator = scope["app"].state.visitors
        visitors.admit(scope, None)


AuthTransactions = Annotated[TransactionSource, from_state("auth_transactions")]
signing_in = page_router(tag="sessions", route_class=SignInRoute)
signing_out = page_router(tag="sessions", route_class=SessionRoute)


@signing_in.get(LOGIN_PATH)
async def login(request: Request, path: Annotated[str, Query(alias="next")] = "/approvals") -> Response:
    """Redirects to the issuer."""
    if not is_own_path(path):
        raise BadRequest("The address to go to afterwards is not of this service")
    login: SignIn = request.app.state.login
    visitors: PageAuthenticator = request.app.state.visitors
    begun = await login.begin_sign_in(path)
    response, cookies = build_redirect(begun.address), visitors.cookies
    response.headers.append("Set-Cookie", cookies.build_header(begun.cookie, begun.kept, LOGIN_SECONDS))
    for name in cookies.list_names(request.scope, LOGIN_COOKIE)[: 1 - MOST_LOGINS]:
        response.headers.append("Set-Cookie", cookies.build_header(name, "", 0))
    return response


def _answer(request: Request) -> dict[str, str]:
    """Returns the parameters of the issuer's answer. A parameter that comes twice is empty."""
    pairs = parse_qsl(request.scope["query_string"].decode("latin-1"))
    times = Counter(name for name, _ in pairs)
    return {name: value if times[name] == 1 else "" for name, value in pairs}


def _subject_of(claims: "TokenClaims") -> Principal:
    return Principal(PrincipalKind.TOKEN, claims.subject_id, claims.tenant_id, claims.scopes, claims.person)


@signing_in.get(CALLBACK_PATH)
async def login_callback(request: Request) -> Response:
    """Finishes a sign-in after the return from the issuer."""
    state = request.app.state
    login: SignIn = state.login
    visitors: PageAuthenticator = state.visitors
    answer = _answer(request)
    kept_in = login.get_cookie_name(answer.get("state", ""))
    try:
        claims, path = await login.finish_sign_in(answer, visitors.cookies.get_value(request.scope, kept_in))
        subject = _subject_of(claims)
        visitors.check_may_begin(subject)
    except SignInFailed:
        admission: Admission = state.admission
        admission.count_refusal(request.scope)
        raise
    cookie = visitors.begin_session(subject)
    if len(cookie) > MOST_COOKIE_CHARACTERS:
        raise SignInFailed("The token of the issuer lists more scopes than a browser keeps")
    response = build_redirect(path)
    response.headers.append("Set-Cookie", cookie)
    response.headers.append("Set-Cookie", visitors.cookies.build_header(kept_in, "", 0))
    return response


@signing_in.get(SIGNED_OUT_PATH)
async def signed_out() -> Response:
    """Shows that the session at the issuer has ended."""
    return page_response(render_template("auth/pages/signed_out_at_issuer.html", visitor=None))


@signing_out.post("/logout")
async def logout(
    request: Request,
    transactions: AuthTransactions,
    endings: SessionEndings,
    visitor: VisitorDependency,
    form: SameSessionForm,
) -> Response:
    """Ends the session of this browser, or all of the visitor's, and offers to end the issuer's own."""
    everywhere = form.get("everywhere") == "yes"
    at_issuer = None
    if visitor.is_signed_in:
        operation, session_id = ("end_sessions", None) if everywhere else ("end_session", visitor.session_id)
        scope = request.scope
        call = WriteContext(visitor.subject, operation, scope["path"], scope["state"]["request_id"])
        await run_in_threadpool(_end, WriteRequest(transactions, call), endings, session_id)
        login: SignIn | None = request.app.state.login
        at_issuer = await login.get_end_address() if login is not None else None
    visitors: PageAuthenticator = request.app.state.visitors
    page = render_template(
        "auth/pages/signed_out.html", visitor=None, everywhere=everywhere, at_issuer=at_issuer
    )
    return page_response(page, headers={"Set-Cookie": visitors.build_removal_cookie()})


def _end(request: WriteRequest, endings: SessionRevocations, session_id: str | None) -> None:
    """Ends one session of the visitor, or everything by which the visitor can act."""
    own = request.subject
    if session_id is None:
        request.run(own.id, lambda session: endings.end_sessions(session, own.tenant_id, own.id))
    else:
        request.run(None, lambda session: endings.end_session(session, own.tenant_id, session_id))
