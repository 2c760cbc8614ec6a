"""Sign-in by an OpenID Connect issuer: the authorization code flow with PKCE.

The state of a sign-in is sealed in a cookie of the browser, one for each sign-in in progress, so that two
tabs that begin at once both succeed. The nonce and the verifier of PKCE are derived from the state, so that
the cookie reveals neither.
"""

import asyncio
import base64
import contextlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus, urlencode

import httpx

from service.auth.errors import SignInFailed
from service.auth.oidc import (
    MAIL_CLAIM,
    Issuer,
    IssuerUnavailable,
    TokenClaims,
    TokenRefused,
    TokenVerifier,
    WaitLimit,
    fetch_discovery,
    fetch_document,
    get_endpoint,
    parse_json_object,
)
from service.auth.sessions import CALLBACK_PATH, LOGIN_COOKIE, LOGIN_SECONDS, SIGNED_OUT_PATH, SealedValues
from service.kit.http import calling
from service.kit.http.problems import Unavailable
from service.kit.security.keyring import Keyring

log = logging.getLogger(__name__)

_DISCOVERY_SECONDS: Final = 300.0
_FAILURE_SECONDS: Final = 10.0
"""Seconds after a failure before the discovery document is fetched again."""
_MOST_WAITING: Final = 100
"""Most people who wait for the discovery document, and most who wait for tokens."""
_MOST_EXCHANGES: Final = 8
"""Most codes that are sent to the issuer at a time."""
_WAIT_SECONDS: Final = 5.0
"""Longest wait for the discovery document, and for the turn of a code to be sent."""
_UNAVAILABLE = "The issuer that people sign in by cannot be reached"
_RETRY = {"Retry-After": "10"}
_NAMES_ITSELF: Final = "authorization_response_iss_parameter_supported"
_COOKIE_CHARACTERS: Final = 16


class OidcClient(NamedTuple):
    """Registration of this service at the issuer."""

    issuer: Issuer
    """Issuer of the ID tokens. Their audience is the id of the client."""
    secret: str
    """Secret of the client. Empty for a public client, which only PKCE protects."""
    public_url: str
    """Address at which browsers reach this service."""


class SignInAttempt(NamedTuple):
    """A sign-in that has begun."""

    address: str
    """Address at the issuer to redirect to."""
    cookie: str
    """Name of the cookie that the browser keeps."""
    kept: str
    """Value of the cookie."""


class SignIn:
    """Sends people to the issuer, and verifies the answers that they return with."""

    def __init__(
        self,
        client: OidcClient,
        keyring: Keyring,
        fetch: Callable[..., bytes] = fetch_document,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._sealed = SealedValues(keyring.derive_key("signing in"), LOGIN_SECONDS, clock)
        self._key = keyring.derive_key("nonces and verifiers")
        self._tokens = TokenVerifier(client.issuer, fetch, clock)
        self._scope = "openid email" if client.issuer.person_claim == MAIL_CLAIM else "openid"
        self._fetch = fetch
        self._clock = clock
        self._document: dict[str, Any] = {}
        self._document_ends_at = 0.0
        self._failed_at = float("-inf")
        self._discovery: asyncio.Task[None] | None = None
        self._discovering = WaitLimit(_MOST_WAITING)
        self._exchanging = WaitLimit(_MOST_WAITING)
        self._exchanges = asyncio.Semaphore(_MOST_EXCHANGES)

    async def begin_sign_in(self, path: str) -> SignInAttempt:
        """Begins a sign-in that returns to ``path``."""
        address = get_endpoint(await self._get_discovery(), "authorization_endpoint")
        state = secrets.token_urlsafe(24)
        challenge = sha256(self._derive_value("verifier", state).encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._client.issuer.audience,
            "redirect_uri": self._client.public_url + CALLBACK_PATH,
            "scope": self._scope,
            "state": state,
            "nonce": self._derive_value("nonce", state),
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        kept = self._sealed.seal_value([state, path])
        return SignInAttempt(_add_query(address, asked), self.get_cookie_name(state), kept)

    async def get_end_address(self) -> str | None:
        """Returns the issuer's address for ending a session there (RP-Initiated Logout 1.0), if it has one.

        An old discovery document is good enough here, so that nobody who signs out waits for a refresh.
        """
        try:
            address = get_endpoint(self._document or await self._get_discovery(), "end_session_endpoint")
        except (Unavailable, ValueError):
            return None
        asked = {
            "client_id": self._client.issuer.audience,
            "post_logout_redirect_uri": self._client.public_url + SIGNED_OUT_PATH,
        }
        return _add_query(address, asked)

    def get_cookie_name(self, state: str) -> str:
        """Returns the name of the cookie of the sign-in with this state."""
        return f"{LOGIN_COOKIE}{self._derive_value('cookie', state)[:_COOKIE_CHARACTERS]}"

    async def finish_sign_in(self, answer: Mapping[str, str], kept: str) -> tuple[TokenClaims, str]:
        """Returns the claims of the person who has signed in, and the path to return to.

        ``kept`` is the value of the cookie.
        """
        begun = self._sealed.unseal_value(kept)
        if begun is None:
            raise SignInFailed("It was begun in another browser or too long ago: begin again")
        state, path = begun
        if not hmac.compare_digest(state.encode(), answer.get("state", "").encode()):
            raise SignInFailed("The answer is of another sign-in: begin again")
        await self._check_issuer(answer)
        if not answer.get("code"):
            raise SignInFailed("The issuer has refused it")
        claims = await self._verify_token(await self._exchange_code(answer["code"], state))
        if not hmac.compare_digest(self._derive_value("nonce", state).encode(), claims.nonce.encode()):
            raise SignInFailed("The token of the issuer is of another sign-in")
        if claims.authorized_party != self._client.issuer.audience:
            raise SignInFailed("The token of the issuer was made for another client")
        return claims, path

    async def _check_issuer(self, answer: Mapping[str, str]) -> None:
        """Refuses an answer of another issuer (RFC 9207). Some issuers promise to name themselves."""
        issuer = self._client.issuer.issuer
        given = answer.get("iss")
        if given is None and (await self._get_discovery()).get(_NAMES_ITSELF) is not True:
            return
        if given != issuer:
            raise SignInFailed("The answer is of another issuer")

    def _derive_value(self, purpose: str, state: str) -> str:
        """Returns a value of 64 characters for one sign-in."""
        return hmac.digest(self._key, f"{purpose} {state}".encode(), "sha256").hex()

    async def _get_discovery(self) -> dict[str, Any]:
        """Returns the discovery document of the issuer, at most five minutes old.

        All callers that wait share one fetch; a cancelled request does not cancel it.
        """
        if not self._is_issuer_known() and abs(self._clock() - self._failed_at) >= _FAILURE_SECONDS:
            if self._discovery is None or self._discovery.done():
                self._discovery = asyncio.create_task(self._fetch_discovery())
            with _translate_unavailable(), self._discovering.reserve_slot():
                await asyncio.wait({self._discovery}, timeout=_WAIT_SECONDS)
        if not self._is_issuer_known():
            raise Unavailable(_UNAVAILABLE, headers=_RETRY)
        return self._document

    def _is_issuer_known(self) -> bool:
        return self._document_ends_at - _DISCOVERY_SECONDS <= self._clock() < self._document_ends_at

    async def _fetch_discovery(self) -> None:
        """Fetches the discovery document, and stores it or the time of the failure."""
        try:
            document = await calling.run_in_thread(lambda: fetch_discovery(self._client.issuer, self._fetch))
            for name in ("authorization_endpoint", "token_endpoint"):
                get_endpoint(document, name)
        except (httpx.HTTPError, OSError, ValueError) as error:
            self._failed_at = self._clock()
            log.warning("the issuer's discovery document is unavailable: %s: %s", type(error).__name__, error)
            return
        self._document, self._document_ends_at = document, self._clock() + _DISCOVERY_SECONDS

    async def _exchange_code(self, code: str, state: str) -> str:
        """Returns the ID token for a code."""
        client_id, secret = self._client.issuer.audience, self._client.secret
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._client.public_url + CALLBACK_PATH,
            "code_verifier": self._derive_value("verifier", state),
        }
        address = get_endpoint(await self._get_discovery(), "token_endpoint")
        if secret:
            credentials = (quote_plus(client_id), quote_plus(secret))
        else:
            credentials, form = None, {**form, "client_id": client_id}
        try:
            answer = parse_json_object(await self._send_form(address, form, credentials))
        except (httpx.HTTPError, OSError, ValueError) as error:
            log.warning("the issuer gives no token for a code: %s: %s", type(error).__name__, error)
            raise SignInFailed("The issuer gave no token for it") from None
        if not isinstance(answer.get("id_token"), str):
            raise SignInFailed("The issuer gave no ID token for it")
        return str(answer["id_token"])

    async def _send_form(
        self, address: str, form: Mapping[str, str], credentials: tuple[str, str] | None
    ) -> bytes:
        """Returns the issuer's answer to a form, once there is a free slot."""
        with _translate_unavailable(), self._exchanging.reserve_slot():
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._exchanges.acquire()
        try:
            return await calling.run_in_thread(lambda: self._fetch(address, form, credentials))
        finally:
            self._exchanges.release()

    async def _verify_token(self, token: str) -> TokenClaims:
        with _translate_unavailable():
            try:
                return await self._tokens.verify(token)
            except TokenRefused as error:
                raise SignInFailed(f"The token of the issuer is refused: {error.detail}") from None


def _add_query(address: str, asked: Mapping[str, str]) -> str:
    return f"{address}{'&' if httpx.URL(address).query else '?'}{urlencode(asked)}"


@contextlib.contextmanager
def _translate_unavailable() -> Iterator[None]:
    """Raises `Unavailable` with a time to retry if waiting for the issuer fails."""
    try:
        yield
    except (IssuerUnavailable, TimeoutError):
        raise Unavailable(_UNAVAILABLE, headers=_RETRY) from None
