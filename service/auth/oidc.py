"""Verification of JSON Web Tokens of one OpenID Connect issuer, with keys that are fetched and cached.

No content of a token is trusted before its signature is verified, and none is repeated in an error.
"""

import asyncio
import base64
import contextlib
import json
import logging
import re
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import InvalidSignatureError, PyJWK, PyJWS, PyJWTError
from jwt.algorithms import AllowedPublicKeys

from service.kit.addresses import is_loopback
from service.kit.http import calling
from service.kit.security.identity import normalize_person

log = logging.getLogger(__name__)

PublicKeys = Mapping[str, Mapping[str, AllowedPublicKeys]]
"""Public keys by key id and algorithm."""

_KINDS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
_PUBLIC_MEMBERS = {"kty", "crv", "n", "e", "x", "y"}
_TYPES = {"jwt", "at+jwt", "application/at+jwt"}
_EVENT_TYPES = {"jwt", "secevent+jwt", "application/secevent+jwt", "logout+jwt", "application/logout+jwt"}
_SHIPPED = "shipped"
MAIL_CLAIM = "email"
_MAIL_IS_VERIFIED = "email_verified"

_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_SCOPE = re.compile(r"(?!tenants:)(\*|[a-z][a-z-]*):(\*|[a-z][a-z-]*)")

_TOKEN_CHARACTERS = 8192
_SUBJECT_CHARACTERS = 255
_RSA_BITS = 2048
_LATEST_TIME = 253_402_300_799  # the end of the year 9999
_LONGEST_SKEW = 300.0
_REMEMBERED_TOKENS = 10_000

_KEYS_REFRESH = 300.0
_KEYS_LIFETIME = 600.0
_KEYS_LIFETIME_OFFLINE = 86_400.0
_RETRY = 10.0
_FETCH_TIMEOUT = 5.0
_REFRESH_TIMEOUT = 15.0
_DOCUMENT_BYTES = 256 * 1024
_MOST_WAITING = 1000


class TokenRefused(Exception):
    """The token is not valid here. ``code`` is stable; ``detail`` repeats nothing of the token."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class IssuerUnavailable(Exception):
    """The keys of the issuer cannot be fetched, and none are cached."""


class WaitLimit:
    """Limit on the number of callers that wait for an issuer at a time."""

    def __init__(self, most: int) -> None:
        self._free = most

    @contextlib.contextmanager
    def reserve_slot(self) -> Iterator[None]:
        """Reserves one place while the caller waits. Raises IssuerUnavailable if there is none."""
        if not self._free:
            raise IssuerUnavailable("too many wait for the issuer")
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


class TokenClaims(NamedTuple):
    """Claims of a verified token. ``expires_at`` is in Unix seconds and includes the skew."""

    subject_id: str
    tenant_id: str
    scopes: frozenset[str]
    expires_at: float
    nonce: str = ""
    """Nonce that a sign-in sent to the issuer. Empty in tokens that come from no sign-in."""
    authorized_party: str = ""
    """Client that the token was made for. Empty if several audiences leave that open."""
    person: str = ""
    """Identity of the subject that the issuer has verified, normalized. Empty if the token has none."""
    issued_at: float = 0
    """Time of issue in Unix seconds. 0 if the token has none, which is before any revocation."""


class EventToken(NamedTuple):
    """Content of a verified event token: the person that it is about, and the names of its events."""

    subject_id: str
    """The `sub` or the mail address of the person at the issuer."""
    tenant_id: str
    """Tenant that the token names. Empty if it may concern any tenant."""
    events: frozenset[str]


class _VerifiedToken(NamedTuple):
    claims: TokenClaims
    key_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An issuer whose tokens are accepted, and its claims. Raises ValueError if it is misconfigured."""

    issuer: str
    audience: str
    algorithms: tuple[str, ...]
    event_audiences: frozenset[str] = frozenset()
    """Additional audiences that its event tokens may name."""
    jwks_url: str = ""
    """Address of the keys. Empty to take it from the discovery document."""
    tenant_claim: str
    tenant: str = ""
    """Tenant of tokens without the tenant claim. Empty to refuse them."""
    scope_claim: str
    person_claim: str = MAIL_CLAIM
    """Claim with the identity of the person, as others name them. Empty to use only `sub`."""
    skew_seconds: float = 60

    def __post_init__(self) -> None:
        if check_url(self.issuer).query:
            raise ValueError("an issuer has no query")
        if self.jwks_url:
            check_url(self.jwks_url)
        if not self.algorithms or not _KINDS.keys() >= set(self.algorithms):
            raise ValueError(f"the algorithms must be among {', '.join(_KINDS)}")
        if not (self.audience and self.scope_claim and (self.tenant_claim or self.tenant)):
            raise ValueError("an issuer needs an audience, a scope claim, and a tenant claim or a tenant")
        if self.tenant and not _is_tenant(self.tenant):
            raise ValueError("the tenant is not an id that a subject can have")
        if not 0 <= self.skew_seconds <= _LONGEST_SKEW:
            raise ValueError(f"the skew must be between 0 and {_LONGEST_SKEW:.0f} seconds")


def _is_tenant(value: object) -> bool:
    return isinstance(value, str) and bool(_TENANT.fullmatch(value)) and value != _SHIPPED


def check_url(address: str) -> httpx.URL:
    """Returns an address that credentials and keys may be sent to: over TLS, or on this machine."""
    try:
        url = httpx.URL(address)
        host = url.host
    except (httpx.InvalidURL, UnicodeError):
        raise ValueError("the address of an issuer or its keys cannot be read") from None
    safe = url.scheme == "https" or (url.scheme == "http" and is_loopback(host))
    if not (safe and host) or url.userinfo or url.fragment:
        raise ValueError("the address of an issuer or its keys must be https, without user or fragment")
    return url


def fetch_document(
    address: str, form: Mapping[str, str] | None = None, credentials: tuple[str, str] | None = None
) -> bytes:
    """Returns the body of a small document, or of the answer to a form.

    Redirects, compression and proxies of the environment are not used.
    """
    url, headers = httpx.URL(address), {"accept": "application/json"}
    if form is not None:
        headers["content-type"] = "application/x-www-form-urlencoded"
    if credentials is not None:
        headers["authorization"] = f"Basic {base64.b64encode(':'.join(credentials).encode()).decode()}"
    called = calling.send_request(
        "GET" if form is None else "POST",
        url,
        calling.resolve_addresses(url),
        headers=headers,
        content=urlencode(form or {}).encode(),
        tls=_build_tls_context(),
        limits=calling.CallLimits(_FETCH_TIMEOUT, _FETCH_TIMEOUT, _FETCH_TIMEOUT, _DOCUMENT_BYTES),
    )
    reply = asyncio.run(called)
    if reply.status != httpx.codes.OK:
        raise ValueError(f"the answer has the status {reply.status}")
    if not reply.is_whole:
        raise ValueError("the document is too large or too slow")
    return reply.body


@cache
def _build_tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


def _build_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def _refuse_constant(_: str) -> None:
    raise ValueError("a number is not finite")


def parse_json_object(content: bytes) -> dict[str, Any]:
    """Returns a JSON object. Raises ValueError for content that other parsers could read differently."""
    try:
        parsed = json.loads(
            content.decode(), object_pairs_hook=_build_members, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise ValueError("the document is too deep") from None
    if not isinstance(parsed, dict):
        raise ValueError("the document is not an object")  # noqa: TRY004
    return parsed


def _parse_key(jwk: Mapping[str, Any], algorithms: list[str]) -> dict[str, AllowedPublicKeys]:
    public = {name: value for name, value in jwk.items() if name in _PUBLIC_MEMBERS}
    try:
        key = PyJWK(public, algorithm=algorithms[0]).key
    except PyJWTError:
        log.warning("a key of the issuer cannot be read and is left out")
        return {}
    if isinstance(key, RSAPublicKey) and key.key_size < _RSA_BITS:
        log.warning("a key of the issuer has fewer than %d bits and is left out", _RSA_BITS)
        return {}
    return dict.fromkeys(algorithms, key)


def _parse_keys(document: Mapping[str, Any], allowed: tuple[str, ...]) -> PublicKeys:
    """Returns the keys of a JWK set that have an id, are for signatures and fit an allowed algorithm."""
    if not isinstance(document.get("keys"), list):
        raise ValueError("the key set has no list of keys")  # noqa: TRY004
    keys: dict[str, dict[str, AllowedPublicKeys]] = {}
    for jwk in document["keys"]:
        if not isinstance(jwk, dict) or not isinstance(jwk.get("kid"), str) or jwk.get("use", "sig") != "sig":
            continue
        kind = (jwk.get("kty"), jwk.get("crv"))
        fitting = [name for name in allowed if _KINDS[name] == kind and jwk.get("alg", name) == name]
        if fitting:
            keys.setdefault(jwk["kid"], {}).update(_parse_key(jwk, fitting))
    return {key_id: by_algorithm for key_id, by_algorithm in keys.items() if by_algorithm}


def _parse_time(claims: Mapping[str, Any], name: str) -> float:
    value = claims[name]
    if type(value) not in (int, float) or not 0 <= value <= _LATEST_TIME:
        raise TokenRefused("MALFORMED", f"{name} is not a time")
    return float(value)


def fetch_discovery(issuer: Issuer, fetch: Callable[[str], bytes]) -> dict[str, Any]:
    """Returns the discovery document of an issuer."""
    document = parse_json_object(fetch(f"{issuer.issuer.rstrip('/')}/.well-known/openid-configuration"))
    if document.get("issuer") != issuer.issuer:
        raise ValueError("the discovery document is another issuer's")
    return document


def get_endpoint(document: Mapping[str, Any], name: str) -> str:
    """Returns an address of the discovery document, with the scheme of the issuer's own."""
    address = document.get(name)
    scheme = httpx.URL(document["issuer"]).scheme
    if not isinstance(address, str) or check_url(address).scheme != scheme:
        raise ValueError(f"the discovery document has no usable {name}")
    return address


class TokenVerifier:
    """Verifies tokens of one issuer on one event loop, and caches the verified ones."""

    def __init__(
        self,
        issuer: Issuer,
        fetch: Callable[[str], bytes] = fetch_document,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._jws = PyJWS(algorithms=issuer.algorithms)
        self._verified: OrderedDict[bytes, _VerifiedToken] = OrderedDict()
        self._keys: PublicKeys = {}
        self._fetched_at = self._tried_at = self._refresh_at = float("-inf")
        self._offline = False
        self._refresh: asyncio.Task[None] | None = None
        self._room = WaitLimit(_MOST_WAITING)

    async def verify(self, token: str) -> TokenClaims:
        """Returns the claims of ``token``. Raises TokenRefused or IssuerUnavailable."""
        now = self._clock()
        if len(token) > _TOKEN_CHARACTERS or not token.isascii():
            raise TokenRefused("MALFORMED", "the token is not in the compact form")
        digest = sha256(token.encode()).digest()
        # A clock that was set back makes keys stale as well.
        if not self._fetched_at <= now < self._refresh_at:
            await self._ensure_fresh_keys(now)
        known = self._verified.get(digest)
        if known is not None and now < known.claims.expires_at:
            return known.claims
        verified = await self._verify_uncached(token)
        self._verified[digest] = verified
        if len(self._verified) > _REMEMBERED_TOKENS:
            self._verified.popitem(last=False)
        return verified.claims

    async def verify_event(self, token: str) -> EventToken:
        """Returns the content of an event token, uncached. Raises TokenRefused or IssuerUnavailable."""
        if len(token) > _TOKEN_CHARACTERS or not token.isascii():
            raise TokenRefused("MALFORMED", "the token is not in the compact form")
        now = self._clock()
        if not self._fetched_at <= now < self._refresh_at:
            await self._ensure_fresh_keys(now)
        key_id, algorithm = self._parse_header(token, _EVENT_TYPES)
        return self._parse_event(
            self._decode_payload(token, await self._resolve_signing_key(key_id, algorithm), algorithm)
        )

    async def _ensure_fresh_keys(self, now: float) -> None:
        """Refreshes the keys, in the background while the cached ones may be used."""
        age = abs(now - self._fetched_at)
        if age < (_KEYS_LIFETIME_OFFLINE if self._offline else _KEYS_LIFETIME):
            self._start_refresh()
            return
        await self._await_refresh()
        if abs(now - self._fetched_at) >= _KEYS_LIFETIME_OFFLINE:
            raise IssuerUnavailable("the keys of the issuer cannot be fetched")

    def _start_refresh(self) -> None:
        now = self._clock()
        running = self._refresh is not None and not self._refresh.done()
        if not running and abs(now - self._tried_at) >= _RETRY:
            self._tried_at = now
            self._refresh = asyncio.create_task(self._fetch_keys(now))

    async def _await_refresh(self) -> None:
        """Waits for one fetch that all requests share. A cancelled request does not cancel it."""
        self._start_refresh()
        if self._refresh is not None and not self._refresh.done():
            with self._room.reserve_slot():
                await asyncio.wait({self._refresh})

    async def _fetch_keys(self, now: float) -> None:
        try:
            async with asyncio.timeout(_REFRESH_TIMEOUT):
                keys = await calling.run_in_thread(self._load_keys)
        except (httpx.HTTPError, OSError, ValueError) as error:
            self._offline = True
            log.warning("the keys of the issuer cannot be fetched: %s: %s", type(error).__name__, error)
            return
        self._offline = False
        self._fetched_at, self._refresh_at = now, now + _KEYS_REFRESH
        self._replace_keys(keys)

    def _load_keys(self) -> PublicKeys:
        address = self._issuer.jwks_url or get_endpoint(
            fetch_discovery(self._issuer, self._fetch), "jwks_uri"
        )
        return _parse_keys(parse_json_object(self._fetch(address)), self._issuer.algorithms)

    def _replace_keys(self, keys: PublicKeys) -> None:
        """Replaces the keys, and forgets tokens whose keys are gone or changed."""
        gone = {key_id for key_id, key in self._keys.items() if keys.get(key_id) != key}
        self._keys = keys
        if gone:
            kept = ((digest, token) for digest, token in self._verified.items() if token.key_id not in gone)
            self._verified = OrderedDict(kept)

    async def _verify_uncached(self, token: str) -> _VerifiedToken:
        key_id, algorithm = self._parse_header(token, _TYPES)
        key = await self._resolve_signing_key(key_id, algorithm)
        return _VerifiedToken(self._parse_claims(self._decode_payload(token, key, algorithm)), key_id)

    async def _resolve_signing_key(self, key_id: str, algorithm: str) -> AllowedPublicKeys:
        """Returns the key of an id. An unknown key may be new, so the keys are fetched again."""
        if key_id not in self._keys:
            await self._await_refresh()
        # From here on nothing awaits, so that the key is still in use when its token is remembered.
        if key_id not in self._keys:
            raise TokenRefused("KEY_UNKNOWN", "the issuer has no such key")
        key = self._keys[key_id].get(algorithm)
        if key is None:
            raise TokenRefused("ALGORITHM", "the key is for another algorithm")
        return key

    def _parse_header(self, token: str, types: AbstractSet[str]) -> tuple[str, str]:
        """Returns key id and algorithm. Keys and addresses of keys in a token are ignored."""
        if not _TOKEN.fullmatch(token):
            raise TokenRefused("MALFORMED", "the token is not in the compact form")
        try:
            header = parse_json_object(base64.urlsafe_b64decode(token.partition(".")[0] + "=="))
        except ValueError:
            raise TokenRefused("MALFORMED", "the header is not a JSON object") from None
        if "crit" in header or str(header.get("typ", "JWT")).lower() not in types:
            raise TokenRefused("MALFORMED", "the header requires an extension or type that is not supported")
        if header.get("alg") not in self._issuer.algorithms:
            raise TokenRefused("ALGORITHM", "the algorithm is not allowed")
        if not isinstance(header.get("kid"), str):
            raise TokenRefused("MALFORMED", "the header does not name its key")
        return header["kid"], header["alg"]

    def _decode_payload(self, token: str, key: AllowedPublicKeys, algorithm: str) -> dict[str, Any]:
        try:
            return parse_json_object(self._jws.decode(token, key=key, algorithms=[algorithm]))
        except InvalidSignatureError:
            raise TokenRefused("SIGNATURE", "the signature does not hold") from None
        except (PyJWTError, ValueError):
            raise TokenRefused("MALFORMED", "the token cannot be read") from None

    def _parse_claims(self, claims: Mapping[str, Any]) -> TokenClaims:
        for name in ("iss", "aud", "exp", "sub"):
            if claims.get(name) is None:
                raise TokenRefused("CLAIM_MISSING", f"{name} is missing")
        audiences = self._check_audiences(claims, {self._issuer.audience})
        expires_at = self._check_expiry(claims)
        nonce = claims.get("nonce", "")
        return TokenClaims(
            subject_id=_parse_subject(claims),
            tenant_id=self._resolve_tenant(claims),
            scopes=self._parse_scopes(claims),
            expires_at=expires_at,
            person=self._resolve_person(claims),
            issued_at=_parse_time(claims, "iat") if "iat" in claims else 0,
            nonce=nonce if isinstance(nonce, str) else "",
            authorized_party=_check_authorized_party(claims, audiences),
        )

    def _check_audiences(self, claims: Mapping[str, Any], wanted: AbstractSet[str]) -> list[Any]:
        """Returns the audiences of a token of this issuer, at least one of which must be wanted."""
        if claims["iss"] != self._issuer.issuer:
            raise TokenRefused("ISSUER", "the token is of another issuer")
        audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if not any(isinstance(one, str) and one in wanted for one in audiences):
            raise TokenRefused("AUDIENCE", "the token is for another audience")
        return audiences

    def _parse_event(self, claims: Mapping[str, Any]) -> EventToken:
        for name in ("iss", "aud", "iat", "events"):
            if claims.get(name) is None:
                raise TokenRefused("CLAIM_MISSING", f"{name} is missing")
        self._check_audiences(claims, {self._issuer.audience, *self._issuer.event_audiences})
        if self._clock() < _parse_time(claims, "iat") - self._issuer.skew_seconds:
            raise TokenRefused("NOT_YET_VALID", "the token is not valid yet")
        events = claims["events"]
        # A logout token has no nonce, so that no ID token can stand in for one.
        if not isinstance(events, dict) or not events or "nonce" in claims:
            raise TokenRefused("MALFORMED", "the token is not an event token")
        tenant = claims.get(self._issuer.tenant_claim) if self._issuer.tenant_claim else None
        tenant_id = str(tenant) if _is_tenant(tenant) else self._issuer.tenant
        return EventToken(_parse_event_subject(claims, events), tenant_id, frozenset(events))

    def _check_expiry(self, claims: Mapping[str, Any]) -> float:
        now = self._clock()
        expires_at = _parse_time(claims, "exp") + self._issuer.skew_seconds
        if now >= expires_at:
            raise TokenRefused("EXPIRED", "the token has expired")
        for name in claims.keys() & {"nbf", "iat"}:
            if now < _parse_time(claims, name) - self._issuer.skew_seconds:
                raise TokenRefused("NOT_YET_VALID", "the token is not valid yet")
        return expires_at

    def _resolve_tenant(self, claims: Mapping[str, Any]) -> str:
        name = self._issuer.tenant_claim
        tenant = claims[name] if name and name in claims else self._issuer.tenant
        if not tenant:
            raise TokenRefused("CLAIM_MISSING", "the tenant is missing")
        if not _is_tenant(tenant):
            raise TokenRefused("TENANT", "the tenant is not a valid tenant id")
        return str(tenant)

    def _resolve_person(self, claims: Mapping[str, Any]) -> str:
        """Returns the identity of the person. A mail address counts only if the issuer has verified it."""
        name = self._issuer.person_claim
        value = claims.get(name) if name else None
        if name == MAIL_CLAIM and claims.get(_MAIL_IS_VERIFIED) not in (True, "true"):
            return ""
        is_text = isinstance(value, str) and 0 < len(value) <= _SUBJECT_CHARACTERS and value.isprintable()
        return normalize_person(value) if is_text else ""  # type: ignore[arg-type]

    def _parse_scopes(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """Returns the scopes of this service. Scopes of other services and of `tenants` are left out."""
        given = claims.get(self._issuer.scope_claim, [])
        if isinstance(given, str):
            given = given.split()
        if not isinstance(given, list):
            raise TokenRefused("MALFORMED", "the scopes are neither text nor a list")
        return frozenset(scope for scope in given if isinstance(scope, str) and _SCOPE.fullmatch(scope))


def _parse_event_subject(claims: Mapping[str, Any], events: Mapping[str, Any]) -> str:
    """Returns the subject of events: `sub`, a subject identifier (RFC 9493), or that of a RISC event."""
    if "sub" in claims:
        return _parse_subject(claims)
    details = [each.get("subject") for each in events.values() if isinstance(each, dict)]
    for found in (claims.get("sub_id"), *details):
        if isinstance(found, dict):
            named = found["user"] if isinstance(found.get("user"), dict) else found
            said = [named[name] for name in ("sub", "email", "id") if name in named]
            if said:
                return _parse_subject({"sub": said[0]})
    raise TokenRefused("CLAIM_MISSING", "the token does not say whom it is about")


def _check_authorized_party(claims: Mapping[str, Any], audiences: list[Any]) -> str:
    party = claims.get("azp", audiences[0] if len(audiences) == 1 else "")
    return party if isinstance(party, str) else ""


def _parse_subject(claims: Mapping[str, Any]) -> str:
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_CHARACTERS:
        raise TokenRefused("MALFORMED", "sub is not a text of 1 to 255 characters")
    if not subject.isprintable() or subject != subject.strip():
        raise TokenRefused("MALFORMED", "sub has characters that cannot be seen")
    return subject
