"""Signing in by an OpenID Connect issuer: the authorization code flow with PKCE.

What has to be remembered until the issuer answers is sealed in a cookie of the browser that asked, one for
each sign-in that it has begun: two tabs that begin at once both succeed. The nonce and the verifier of PKCE
are drawn from the state, so that the cookie gives neither away.
"""

import asyncio
import base64
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus, urlencode

import httpx

from service.auth.errors import SignInFailed
from service.auth.oidc import (
    MAIL_CLAIM,
    Claims,
    Issuer,
    IssuerUnavailable,
    TokenRefused,
    TokenVerifier,
    discovery,
    endpoint,
    fetch_document,
    json_object,
)
from service.auth.sessions import CALLBACK_PATH, LOGIN_COOKIE, LOGIN_SECONDS, Sealed
from service.kit.keyring import Keyring
from service.kit.problems import Unavailable

log = logging.getLogger(__name__)

_DISCOVERY_SECONDS: Final = 300.0
_UNAVAILABLE = "The issuer that people sign in by cannot be reached"
_RETRY = {"Retry-After": "10"}
_NAMES_ITSELF: Final = "authorization_response_iss_parameter_supported"
_COOKIE_CHARACTERS: Final = 16


class Client(NamedTuple):
    """What the issuer knows this service as."""

    issuer: Issuer
    """Of ID tokens, whose audience is the client's id."""
    secret: str
    """Empty for a public client, which PKCE alone protects."""
    public_url: str
    """Where browsers reach this service."""


class Begun(NamedTuple):
    """A sign-in that was begun."""

    address: str
    """Of the issuer, for whoever signs in."""
    cookie: str
    """Name of the cookie that their browser has to keep."""
    kept: str
    """What is in it."""


class Login:
    """Sends people to the issuer, and reads what they come back with."""

    def __init__(
        self,
        client: Client,
        keyring: Keyring,
        fetch: Callable[..., bytes] = fetch_document,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._sealed = Sealed(keyring.key("signing in"), clock)
        self._key = keyring.key("nonces and verifiers")
        self._tokens = TokenVerifier(client.issuer, fetch, clock)
        self._scope = "openid email" if client.issuer.person_claim == MAIL_CLAIM else "openid"
        self._fetch = fetch
        self._clock = clock
        self._document: dict[str, Any] = {}
        self._document_ends_at = 0.0

    async def begin(self, path: str) -> Begun:
        """Begin to sign in somebody who wants to read ``path``."""
        address = endpoint(await self._discovered(), "authorization_endpoint")
        state = secrets.token_urlsafe(24)
        challenge = sha256(self._drawn("verifier", state).encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._client.issuer.audience,
            "redirect_uri": self._client.public_url + CALLBACK_PATH,
            "scope": self._scope,
            "state": state,
            "nonce": self._drawn("nonce", state),
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        joint = "&" if httpx.URL(address).query else "?"
        kept = self._sealed.seal([state, path], LOGIN_SECONDS)
        return Begun(f"{address}{joint}{urlencode(asked)}", self.cookie(state), kept)

    def cookie(self, state: str) -> str:
        """The name of the cookie of the sign-in that has this state."""
        return f"{LOGIN_COOKIE}{self._drawn('cookie', state)[:_COOKIE_CHARACTERS]}"

    async def finish(self, answer: Mapping[str, str], kept: str) -> tuple[Claims, str]:
        """Who the issuer says has signed in, and what they wanted to read; ``kept`` is of the cookie."""
        begun = self._sealed.opened(kept)
        if begun is None:
            raise SignInFailed("It was begun in another browser or too long ago: begin again")
        state, path = begun
        if not hmac.compare_digest(state.encode(), answer.get("state", "").encode()):
            raise SignInFailed("The answer is of another sign-in: begin again")
        await self._check_issuer(answer)
        if not answer.get("code"):
            raise SignInFailed("The issuer has refused it")
        claims = await self._verified(await self._exchanged(answer["code"], state))
        if not hmac.compare_digest(self._drawn("nonce", state).encode(), claims.nonce.encode()):
            raise SignInFailed("The token of the issuer is of another sign-in")
        if claims.authorized_party != self._client.issuer.audience:
            raise SignInFailed("The token of the issuer was made for another client")
        return claims, path

    async def _check_issuer(self, answer: Mapping[str, str]) -> None:
        """Refuse an answer of another issuer (RFC 9207): this one may say that it always names itself."""
        issuer = self._client.issuer.issuer
        given = answer.get("iss")
        if given is None and (await self._discovered()).get(_NAMES_ITSELF) is not True:
            return
        if given != issuer:
            raise SignInFailed("The answer is of another issuer")

    def _drawn(self, purpose: str, state: str) -> str:
        """A value of 64 characters for one sign-in."""
        return hmac.digest(self._key, f"{purpose} {state}".encode(), "sha256").hex()

    async def _discovered(self) -> dict[str, Any]:
        """What the issuer says of itself, as of five minutes ago at most."""
        if not self._document_ends_at - _DISCOVERY_SECONDS <= self._clock() < self._document_ends_at:
            try:
                document = await asyncio.to_thread(discovery, self._client.issuer, self._fetch)
                for name in ("authorization_endpoint", "token_endpoint"):
                    endpoint(document, name)
            except (httpx.HTTPError, OSError, ValueError) as error:
                log.warning("the issuer cannot be asked about itself: %s: %s", type(error).__name__, error)
                raise Unavailable(_UNAVAILABLE, headers=_RETRY) from None
            self._document, self._document_ends_at = document, self._clock() + _DISCOVERY_SECONDS
        return self._document

    async def _exchanged(self, code: str, state: str) -> str:
        """The ID token for a code."""
        client_id, secret = self._client.issuer.audience, self._client.secret
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._client.public_url + CALLBACK_PATH,
            "code_verifier": self._drawn("verifier", state),
        }
        address = endpoint(await self._discovered(), "token_endpoint")
        if secret:
            credentials = (quote_plus(client_id), quote_plus(secret))
        else:
            credentials, form = None, {**form, "client_id": client_id}
        try:
            answer = json_object(await asyncio.to_thread(self._fetch, address, form, credentials))
        except (httpx.HTTPError, OSError, ValueError) as error:
            log.warning("the issuer gives no token for a code: %s: %s", type(error).__name__, error)
            raise SignInFailed("The issuer gave no token for it") from None
        if not isinstance(answer.get("id_token"), str):
            raise SignInFailed("The issuer gave no ID token for it")
        return str(answer["id_token"])

    async def _verified(self, token: str) -> Claims:
        try:
            return await self._tokens.verify(token)
        except TokenRefused as error:
            raise SignInFailed(f"The token of the issuer is refused: {error.detail}") from None
        except IssuerUnavailable:
            raise Unavailable(_UNAVAILABLE, headers=_RETRY) from None
