"""Authentication of callers with a key or with a token of the configured issuer."""

from datetime import UTC, datetime

from service.auth.oidc import Issuer, IssuerUnavailable, TokenRefused, TokenVerifier
from service.auth.service import LiveKeys
from service.auth.session_revocation import SessionRevocations
from service.kit.http.admission import build_unauthorized
from service.kit.http.problems import Unavailable
from service.kit.security.principals import Principal, PrincipalKind

_KEY_PREFIX = "ironlaw"
_RETRY = {"Retry-After": "10"}


class Authenticator:
    """Resolves a bearer credential to a subject."""

    def __init__(self, keys: LiveKeys, issuer: Issuer, endings: SessionRevocations) -> None:
        self._keys = keys
        self._endings = endings
        self._tokens = TokenVerifier(issuer)

    async def __call__(self, credential: str) -> Principal:
        """Returns the subject of ``credential``."""
        if credential.startswith(_KEY_PREFIX):
            return self._keys.check(credential)
        try:
            claims = await self._tokens.verify(credential)
        except TokenRefused as error:
            raise build_unauthorized(f"The token is refused: {error.detail}") from None
        except IssuerUnavailable:
            detail = "The keys of the token's issuer cannot be fetched"
            raise Unavailable(detail, headers=_RETRY) from None
        if not self._keys.has_tenant(claims.tenant_id):
            raise build_unauthorized("The tenant of the token is not known here, or disabled")
        subject = Principal(
            PrincipalKind.TOKEN, claims.subject_id, claims.tenant_id, claims.scopes, claims.person
        )
        if self._endings.has_ended_token(subject, datetime.fromtimestamp(claims.issued_at, UTC)):
            raise build_unauthorized("The token was ended with all sessions of its person")
        return subject
