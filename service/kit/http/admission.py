"""Admission of requests: credentials, permissions and limits per minute."""

import time
from collections.abc import Awaitable, Callable

from starlette.types import Scope

from service.kit.http.problems import Forbidden, TooManyRequests, Unauthorized
from service.kit.security.credentials import NODE
from service.kit.security.principals import LOCAL, Permission, Principal

Authenticator = Callable[[str], Awaitable[Principal]]
"""Returns the subject of a bearer credential, or raises :class:`Unauthorized`."""

REFUSALS_PER_MINUTE = 300
"""Wrong credentials that one address may present in a minute before it is refused with 429."""
SIGN_INS_PER_MINUTE = 300
"""Steps of a sign-in that one address may take in a minute; a sign-in has two."""
_WINDOW_SECONDS = 60
_NODE = f"{NODE}_".encode()
SLOW_DOWN = "There were too many requests from this caller in this minute"


class RateLimit:
    """Requests of each caller in windows of one minute, counted by this process on a clock that is never set.

    This is own code because the library that was tried starts a thread to forget old windows, three quarters
    of the time of an estimate in a profile. Here all windows end together, and their counts are dropped at
    once.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._policy = (b"ratelimit-policy", f'"default";q={per_minute};w={_WINDOW_SECONDS}'.encode())
        self._window = 0
        self._counts: dict[tuple[str, ...], int] = {}

    def count_request(self, *caller: str) -> list[tuple[bytes, bytes]]:
        """Counts a request and returns its rate limit headers, or raises :class:`TooManyRequests`."""
        window, passed = divmod(int(time.monotonic()), _WINDOW_SECONDS)
        if window != self._window:
            self._window, self._counts = window, {}
        used = self._counts[caller] = self._counts.get(caller, 0) + 1
        left, seconds = max(0, self._per_minute - used), _WINDOW_SECONDS - passed
        fields = [self._policy, (b"ratelimit", b'"default";r=%d;t=%d' % (left, seconds))]
        if used > self._per_minute:
            headers = {name.decode(): value.decode() for name, value in fields}
            raise TooManyRequests(SLOW_DOWN, headers={**headers, "Retry-After": str(seconds)})
        return fields


class Admission:
    """Admits requests. Without ``authenticate`` every caller except a node is the local subject."""

    def __init__(
        self,
        authenticate: Authenticator | None,
        *,
        authenticate_node: Authenticator | None = None,
        requests_per_minute: int,
    ) -> None:
        self._authenticate = authenticate
        self._authenticate_node = authenticate_node
        self._requests = RateLimit(requests_per_minute) if requests_per_minute else None
        self._refusals = RateLimit(REFUSALS_PER_MINUTE)
        self._sign_ins = RateLimit(SIGN_INS_PER_MINUTE)

    async def admit(self, scope: Scope, needed: Permission) -> None:
        """Stores the subject of the request in ``scope``, or refuses the request."""
        self.admit_subject(scope, await self._authenticate_subject(scope), needed)

    def admit_subject(self, scope: Scope, subject: Principal, needed: Permission | None) -> None:
        """Stores ``subject`` as the subject of the request in ``scope``, or refuses the request."""
        state = scope["state"]
        state["subject"] = subject
        if self._requests is not None:
            state["headers"] = self._requests.count_request(subject.tenant_id, subject.kind, subject.id)
        if needed is not None and not subject.has_permission(needed):
            challenge = f'Bearer error="insufficient_scope", scope="{needed.scope}"'
            detail = f"The credentials do not grant {needed.scope}"
            raise Forbidden(detail, headers={"WWW-Authenticate": challenge})

    def count_refusal(self, scope: Scope) -> None:
        """Counts wrong credentials, and refuses an address that presents too many of them."""
        self._refusals.count_request(_get_client_address(scope))

    def count_sign_in(self, scope: Scope) -> None:
        """Counts a step of a sign-in, and refuses an address that takes too many."""
        self._sign_ins.count_request(_get_client_address(scope))

    async def _authenticate_subject(self, scope: Scope) -> Principal:
        authenticate = self._authenticate
        if self._authenticate_node is not None and _is_node_credential(scope):
            authenticate = self._authenticate_node
        if authenticate is None:
            return LOCAL
        try:
            return await authenticate(_read_bearer(scope))
        except Unauthorized:
            self.count_refusal(scope)
            raise


def _get_client_address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _is_node_credential(scope: Scope) -> bool:
    return any(
        name == b"authorization" and value.partition(b" ")[2].lstrip().startswith(_NODE)
        for name, value in scope["headers"]
    )


def _read_bearer(scope: Scope) -> str:
    """Returns the credential of the single Authorization header."""
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    if not values:
        raise Unauthorized(headers={"WWW-Authenticate": "Bearer"})
    kind, _, credential = values[0].partition(b" ")
    if len(values) > 1 or kind.lower() != b"bearer" or not credential.isascii():
        raise build_unauthorized()
    text: str = credential.decode("ascii")
    return text.strip()


def build_unauthorized(detail: str = "The credentials are not valid") -> Unauthorized:
    """Returns the same error for every invalid credential, whatever is wrong with it."""
    return Unauthorized(detail, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
