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

from service.audit.service import Call, Change, Writes
from service.auth.ending import Endings
from service.auth.errors import BadEvent
from service.auth.oidc import EventToken, IssuerUnavailable, TokenRefused, TokenVerifier
from service.auth.service import HeldKeys
from service.kit.database.engine import Writer
from service.kit.http.problems import Unavailable
from service.kit.security.subjects import own_subject

EVENTS_PATH: Final = "/login/events"
_RISC: Final = "https://schemas.openid.net/secevent/risc/event-type/"
_CAEP: Final = "https://schemas.openid.net/secevent/caep/event-type/"
_RETRY: Final = {"Retry-After": "10"}


class Ending(StrEnum):
    """What an event ends of a person."""

    SESSIONS = "end_sessions"
    """Sessions and tokens: they have signed out, and their keys work on."""
    PERSON = "end_person"
    """Keys too: somebody else may act in their name."""
    DISABLED = "disable_person"
    """For good: only an operator of the tenant lets them in again."""


EVENTS: Final[Mapping[str, Ending]] = {
    "http://schemas.openid.net/event/backchannel-logout": Ending.SESSIONS,
    f"{_CAEP}session-revoked": Ending.PERSON,
    f"{_RISC}sessions-revoked": Ending.PERSON,
    f"{_RISC}account-credential-change-required": Ending.PERSON,
    f"{_RISC}credential-compromise": Ending.PERSON,
    f"{_RISC}account-disabled": Ending.DISABLED,
    f"{_RISC}account-purged": Ending.DISABLED,
}
"""Events that end something; all others are taken and change nothing."""


class SecurityEvents(NamedTuple):
    """Takes events of one issuer, and ends what they are about in every tenant that they may concern."""

    tokens: TokenVerifier
    endings: Endings
    keys: HeldKeys
    writes: Writes

    async def take(self, token: str, request_id: str) -> None:
        """Do what a token asks for; BadEvent for one that is not the issuer's."""
        try:
            event = await self.tokens.verify_event(token)
        except TokenRefused as error:
            raise BadEvent(f"The token is refused: {error.detail}") from None
        except IssuerUnavailable:
            raise Unavailable("The keys of the issuer cannot be fetched", headers=_RETRY) from None
        wanted = {EVENTS[name] for name in event.events if name in EVENTS}
        if wanted:
            await run_in_threadpool(self._end, event, max(wanted, key=list(Ending).index), request_id)

    def _end(self, event: EventToken, ending: Ending, request_id: str) -> None:
        for tenant_id in [event.tenant_id] if event.tenant_id else self.keys.tenant_ids():
            call = Call(own_subject(tenant_id), ending, EVENTS_PATH, request_id)
            # Each tenant by itself: none waits for the locks of another.
            self.writes.run(call, None, partial(self._ended, tenant_id, event, ending))
        self.keys.refresh()

    def _ended(self, tenant_id: str, event: EventToken, ending: Ending, session: Writer) -> Change:
        if ending is Ending.SESSIONS:
            return self.endings.end_sessions(session, tenant_id, event.subject_id)
        disabled = True if ending is Ending.DISABLED else None
        return self.endings.end_person(session, tenant_id, event.subject_id, disabled=disabled)
