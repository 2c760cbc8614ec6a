"""Security events of the issuer: a person signed out there, was disabled, or is gone.

The issuer pushes signed event tokens: a logout token (OpenID Connect Back-Channel Logout 1.0) or a security
event token (RFC 8417, pushed as in RFC 8935) of RISC and CAEP. Both go to one address. A repeated event
changes nothing, so that a token which is sent again is accepted again.
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
    """Part of a person's access that an event ends."""

    SESSIONS = "end_sessions"
    """Sessions and tokens. The person has signed out, and their keys still work."""
    PERSON = "end_person"
    """Sessions, tokens and keys. Somebody else may be acting in the person's name."""
    DISABLED = "disable_person"
    """Everything, permanently. Only an operator of the tenant admits the person again."""


EVENTS: Final[Mapping[str, RevocationScope]] = {
    "http://schemas.openid.net/event/backchannel-logout": RevocationScope.SESSIONS,
    f"{_CAEP}session-revoked": RevocationScope.PERSON,
    f"{_RISC}sessions-revoked": RevocationScope.PERSON,
    f"{_RISC}account-credential-change-required": RevocationScope.PERSON,
    f"{_RISC}credential-compromise": RevocationScope.PERSON,
    f"{_RISC}account-disabled": RevocationScope.DISABLED,
    f"{_RISC}account-purged": RevocationScope.DISABLED,
}
"""Events that end access. All others are accepted and change nothing."""


class SecurityEvents(NamedTuple):
    """Handler of events of one issuer. It ends access in every tenant that an event may concern."""

    tokens: TokenVerifier
    endings: SessionRevocations
    keys: LiveKeys
    writes: Writes

    async def apply_event(self, token: str, request_id: str) -> None:
        """Applies a token. Raises BadEvent if the token is not from the issuer."""
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
            # Each tenant has a transaction of its own, so that none waits for the locks of another.
            self.writes.run(call, None, partial(self._apply_ending, tenant_id, event, ending))
        self.keys.refresh()

    def _apply_ending(
        self, tenant_id: str, event: EventToken, ending: RevocationScope, session: Writer
    ) -> WriteOutcome:
        if ending is RevocationScope.SESSIONS:
            return self.endings.end_sessions(session, tenant_id, event.subject_id)
        disabled = True if ending is RevocationScope.DISABLED else None
        return self.endings.end_person(session, tenant_id, event.subject_id, disabled=disabled)
