"""Browser sessions: a signed cookie identifies the person, and forms carry a token of the session.

No session is stored unless it is ended early. A session ends by itself after an hour; a person who is still
signed in at the issuer then gets the next one without interaction.
"""

import base64
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import quote

from fastapi import Depends, Request, Response
from starlette.types import Scope

from service.auth.errors import FormRefused, SignInFailed, SignInRequired, SignInUnavailable
from service.auth.session_revocation import SESSION_SECONDS, SessionRevocations
from service.kit.clock import now
from service.kit.http.admission import Admission
from service.kit.http.html import Form, FormFields, PageRoute, build_redirect, render_problem_page
from service.kit.http.problems import Problem
from service.kit.security.keyring import Keyring
from service.kit.security.principals import LOCAL, Permission, Principal, PrincipalKind

MOST_COOKIE_CHARACTERS: Final = 4000
"""Characters of a cookie that every browser stores, with its name and attributes."""
FORM_TOKEN: Final = "form_token"  # noqa: S105  # the name of a field
LOGIN_PATH: Final = "/login"
CALLBACK_PATH: Final = "/login/callback"
SIGNED_OUT_PATH: Final = "/signed-out"
LOGIN_COOKIE: Final = "login-"
"""Prefix of the cookies of sign-ins in progress."""
MOST_LOGINS: Final = 4
"""Concurrent sign-ins of one browser. With a session they fit the 8 KB that proxies allow for a header."""
LOGIN_SECONDS: Final = 600
"""Time that a person may take at the issuer."""
_CLOCK_SKEW_SECONDS: Final = 60.0
"""Difference of the clocks of two processes of the service."""
_FORM_TOKEN_CHARACTERS = 32
_SESSION = "session"
# A path of this service that no browser takes for another host, with the query of an address that was shared.
_OWN_PATH = re.compile(r"(?=.{1,501}\Z)/(?![/\\])[A-Za-z0-9/._~-]*(\?[A-Za-z0-9._~%&=+-]*)?")


def is_own_path(path: str) -> bool:
    """Returns true if a path may be visited after sign-in."""
    return _OWN_PATH.fullmatch(path) is not None


class SealedValues:
    """Values that travel through a browser unchanged, until they expire after ``seconds``.

    A value that expires further ahead was sealed before the clock was set back, and has expired too.
    """

    def __init__(self, key: bytes, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._seconds = seconds
        self._clock = clock

    def seal_value(self, value: object) -> str:
        """Returns a text that seals ``value``."""
        content = _encode_base64(
            json.dumps([int(self._clock() + self._seconds), value], separators=(",", ":")).encode()
        )
        return f"{content}.{self._compute_mac(content)}"

    def unseal_value(self, text: str) -> Any:  # noqa: ANN401
        """Returns the value of a sealed text. None if it was not sealed here, was changed, or has expired."""
        content, _, mac = text.partition(".")
        if not hmac.compare_digest(self._compute_mac(content).encode(), mac.encode()):
            return None
        ends_at, value = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
        return value if 0 < ends_at - self._clock() <= self._seconds + _CLOCK_SKEW_SECONDS else None

    def _compute_mac(self, content: str) -> str:
        return _encode_base64(hmac.digest(self._key, content.encode(), "sha256"))


def _encode_base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


class HostCookies:
    """Cookies of this host only, not readable by scripts. They need TLS, unless served on loopback."""

    def __init__(self, *, is_secure: bool) -> None:
        self._prefix = "__Host-ironlaw-" if is_secure else "ironlaw-"
        self._secure = "; Secure" if is_secure else ""

    def get_value(self, scope: Scope, name: str) -> str:
        """Returns the value of a cookie. Empty if there is none, or more than one."""
        values = [value for found, value in self._list_pairs(scope) if found == name]
        return values[0] if len(values) == 1 else ""

    def list_names(self, scope: Scope, beginning: str) -> list[str]:
        """Returns the names of the cookies that begin with ``beginning``. Browsers send the oldest first."""
        return [name for name, _ in self._list_pairs(scope) if name.startswith(beginning)]

    def _list_pairs(self, scope: Scope) -> Iterator[tuple[str, str]]:
        """Yields name and value of the cookies of this host."""
        for header, sent in scope["headers"]:
            for pair in sent.decode("latin-1").split(";") if header == b"cookie" else ():
                name, _, value = pair.strip().partition("=")
                if name.startswith(self._prefix):
                    yield name.removeprefix(self._prefix), value

    def build_header(self, name: str, value: str, seconds: int) -> str:
        """Returns the header that sets a cookie. With 0 seconds it removes the cookie."""
        return (
            f"{self._prefix}{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{self._secure}"
        )


class PageVisitor(NamedTuple):
    """Visitor of a page."""

    subject: Principal
    form_token: str
    """Token that proves that a form was read in the session that sends it."""
    session_id: str = ""

    @property
    def is_signed_in(self) -> bool:
        """Returns true if there is a session that can be ended."""
        return self.subject.kind is PrincipalKind.TOKEN


class PageAuthenticator:
    """Admits visitors of pages: everybody in open mode, else people who have signed in."""

    def __init__(
        self,
        admission: Admission,
        keyring: Keyring,
        *,
        is_open: bool,
        has_login: bool,
        is_secure: bool,
        has_tenant: Callable[[str], bool],
        endings: SessionRevocations,
    ) -> None:
        self._admission = admission
        self._sealed = SealedValues(keyring.derive_key("browser sessions"), SESSION_SECONDS)
        self._forms_key = keyring.derive_key("forms")
        self._is_open = is_open
        self._has_login = has_login
        self._has_tenant = has_tenant
        self._endings = endings
        self.cookies = HostCookies(is_secure=is_secure)

    def admit(self, scope: Scope, needed: Permission | None) -> None:
        """Stores the visitor in ``scope``. Raises a problem if there is none."""
        visitor = self.find_visitor(scope)
        if visitor is None:
            raise SignInRequired if self._has_login else SignInUnavailable
        self._admission.admit_subject(scope, visitor.subject, needed)
        scope["state"]["visitor"] = visitor

    def find_visitor(self, scope: Scope) -> PageVisitor | None:
        """Returns the visitor, if known."""
        if self._is_open:
            return PageVisitor(LOCAL, self._compute_form_token(LOCAL.id))
        session = self._sealed.unseal_value(self.cookies.get_value(scope, _SESSION))
        if session is None:
            return None
        # The version before generations reads the time at which a session began.
        session_id, _, subject_id, tenant_id, scopes, *rest = session
        # Sessions that began before identities were known have none.
        person, *generations = rest or [""]
        subject = Principal(PrincipalKind.TOKEN, subject_id, tenant_id, frozenset(scopes), person)
        if not self._has_tenant(tenant_id) or self._endings.has_ended(subject, session_id, generations):
            return None
        return PageVisitor(subject, self._compute_form_token(session_id), session_id)

    def check_may_begin(self, subject: Principal) -> None:
        """Refuses to sign in a disabled person, or a person of an unknown or disabled tenant."""
        if not self._has_tenant(subject.tenant_id):
            raise SignInFailed("Your tenant is not known here, or disabled")
        if self._endings.is_disabled(subject):
            raise SignInFailed("You are disabled here")

    def begin_session(self, subject: Principal) -> str:
        """Returns the cookie header of a new session for a person who has just signed in."""
        began_at, scopes = now().timestamp(), sorted(subject.scopes)
        known = [secrets.token_hex(16), began_at, subject.id, subject.tenant_id, scopes, subject.person]
        session = [*known, *self._endings.list_generations(subject)]
        return self.cookies.build_header(_SESSION, self._sealed.seal_value(session), SESSION_SECONDS)

    def build_removal_cookie(self) -> str:
        """Returns the header that removes the session cookie from one browser. Copies are unaffected."""
        return self.cookies.build_header(_SESSION, "", 0)

    def _compute_form_token(self, session_id: str) -> str:
        return hmac.digest(self._forms_key, session_id.encode(), "sha256").hex()[:_FORM_TOKEN_CHARACTERS]


def _render_problem(problem: Problem, scope: Scope) -> Response:
    """Returns a problem as a page. A visitor who has to sign in is redirected, and returns afterwards."""
    if isinstance(problem, SignInRequired) and scope["method"] == "GET":
        asked = f"{scope['path']}?{scope['query_string'].decode('latin-1')}".removesuffix("?")
        target = asked if is_own_path(asked) else scope["path"]
        return build_redirect(f"{LOGIN_PATH}?next={quote(target, safe='')}")
    visitor = scope["state"].get("visitor")
    return render_problem_page(problem, scope, "auth/pages/problem.html", visitor=visitor)


class AuthenticatedPageRoute(PageRoute):
    """A route of pages for people who have signed in, if sign-in is required."""

    problem_page = staticmethod(_render_problem)

    async def let_in(self, scope: Scope) -> None:
        """Refuses visitors who may not read the page."""
        visitors: PageAuthenticator = scope["app"].state.visitors
        visitors.admit(scope, self.permission)


def _get_visitor(request: Request) -> PageVisitor:
    visitor: PageVisitor = request.scope["state"]["visitor"]
    return visitor


VisitorDependency = Annotated[PageVisitor, Depends(_get_visitor)]
"""Visitor of the page."""


def check_form(visitor: PageVisitor, form: Mapping[str, str]) -> None:
    """Refuses a form that was not read in the session that sends it."""
    if not hmac.compare_digest(visitor.form_token.encode(), form.get(FORM_TOKEN, "").encode()):
        raise FormRefused


def _check_own_form(visitor: VisitorDependency, form: FormFields) -> Form:
    check_form(visitor, form)
    return {name: value for name, value in form.items() if name != FORM_TOKEN}


SameSessionForm = Annotated[Form, Depends(_check_own_form)]
"""Fields of a form that the visitor has read in this session."""
