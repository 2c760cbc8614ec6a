"""Callers with a key or with a token of the configured issuer."""

from datetime import UTC, datetime

from service.auth.ending import Endings
from service.auth.oidc import Issuer, IssuerUnavailable, TokenRefused, TokenVerifier
from service.auth.service import HeldKeys
from service.kit.http.admission import refused
from service.kit.http.problems import Unavailable
from service.kit.security.subjects import Subject, SubjectKind

_KEY_PREFIX = "ironlaw"
_RETRY = {"Retry-After": "10"}


class Authenticator:
    """From a bearer credential to a subject."""

    def __init__(self, keys: HeldKeys, issuer: Issuer, endings: Endings) -> None:
        self._keys = keys
        self._endings = endings
        self._tokens = TokenVerifier(issuer)

    async def __call__(self, credential: str) -> Subject:
        """The subject behind ``credential``."""
        if credential.startswith(_KEY_PREFIX):
            return self._keys.check(credential)
        try:
            claims = await self._tokens.verify(credential)
        except TokenRefused as error:
            raise refused(f"The token is refused: {error.detail}") from None
        except IssuerUnavailable:
            detail = "The keys of the token's issuer cannot be fetched"
            raise Unavailable(detail, headers=_RETRY) from None
        if not self._keys.has_tenant(claims.tenant_id):
            raise refused("The tenant of the token is not known here, or disabled")
        subject = Subject(
            SubjectKind.TOKEN, claims.subject_id, claims.tenant_id, claims.scopes, claims.person
        )
        if self._endings.has_ended_person(subject, datetime.fromtimestamp(claims.issued_at, UTC)):
            raise refused("The token was ended with all sessions of its person")
        return subject
