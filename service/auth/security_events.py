"""What the issuer says of people by itself: that somebody signed out there, was disabled or is gone.

It pushes signed tokens of events: a logout token (OpenID Connect Back-Channel Logout 1.0) or a security event
token (RFC 8417, pushed as RFC 8935 says) of RISC and CAEP. Both are taken at one address. To be told twice
changes nothing, so that a token which is sent again is simply taken again.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

from fastapi.concurrency import run_in_threadpool

from service.audit.service import WriteContext, WriteOutcome, Writes
from service.auth.errors import BadEvent
from service.auth.oidc import EventToken, IssuerUnavailable, TokenRefused, TokenVerifier
from service.auth.service import LiveKeys
from service.auth.session_revocation import SessionRevocations
from service.kit.database.engine import Writer
from service.kit.http.problems import Unavailable
from service.kit.security.principals import build_service_subject

EVENTS_PATH: Final = "/login/events"
_RISC: Final = "https://schemas.openid.net/secevent/risc/event-type/"
_CAEP: Final = "https://schemas.openid.net/secevent/caep/event-type/"
_RETRY: Final = {"Retry-After": "10"}


class RevocationScope(StrEnum):
    """What an event ends of a person."""

    SESSIONS = "end_sessions"
    """Sessions and tokens: they have signed out, and their keys work on."""
    PERSON = "end_person"
    """Keys too: somebody else may act in their name."""
    DISABLED = "disable_person"
    """For good: only an operator of the tenant lets them in again."""


EVENTS: Final[Mapping[str, RevocationScope]] = {
    "http://schemas.openid.net/event/backchannel-logout": RevocationScope.SESSIONS,
    f"{_CAEP}session-revoked": RevocationScope.PERSON,
    f"{_RISC}sessions-revoked": RevocationScope.PERSON,
    f"{_RISC}account-credential-change-required": RevocationScope.PERSON,
    f"{_RISC}credential-compromise": RevocationScope.PERSON,
    f"{_RISC}account-disabled": RevocationScope.DISABLED,
    f"{_RISC}account-purged": RevocationScope.DISABLED,
}
"""Events that end something; all others are taken and change nothing."""


class SecurityEvents(NamedTuple):
    """Takes events of one issuer, and ends what they are about in every tenant that they may concern."""

    tokens: TokenVerifier
    endings: SessionRevocations
    keys: LiveKeys
    writes: Writes

    async def apply_event(self, token: str, request_id: str) -> None:
        """Do what a token asks for; BadEvent for one that is not the issuer's."""
        try:
            event = await self.tokens.verify_event(token)
        except TokenRefused as error:
            raise BadEvent(f"The token is refused: {error.detail}") from None
        except IssuerUnavailable:
            raise Unavailable("The keys of the issuer cannot be fetched", headers=_RETRY) from None
        wanted = {EVENTS[name] for name in event.events if name in EVENTS}
        if wanted:
            await run_in_threadpool(
                self._end_sessions, event, max(wanted, key=list(RevocationScope).index), request_id
            )

    def _end_sessions(self, event: EventToken, ending: RevocationScope, request_id: str) -> None:
        for tenant_id in [event.tenant_id] if event.tenant_id else self.keys.list_tenant_ids():
            call = WriteContext(build_service_subject(tenant_id), ending, EVENTS_PATH, request_id)
            # Each tenant by itself: none waits for the locks of another.
            self.writes.run(call, None, partial(self._apply_ending, tenant_id, event, ending))
        self.keys.refresh()

    def _apply_ending(
        self, tenant_id: str, event: EventToken, ending: RevocationScope, session: Writer
    ) -> WriteOutcome:
        if ending is RevocationScope.SESSIONS:
            return self.endings.end_sessions(session, tenant_id, event.subject_id)
        disabled = True if ending is RevocationScope.DISABLED else None
        return self.endings.end_person(session, tenant_id, event.subject_id, disabled=disabled)
