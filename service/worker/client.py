"""The service as a node sees it: each call sends one message and understands one answer.

Requests go by HTTPS alone, except to loopback, and the certificate is always verified. No error text holds
a credential, because none holds a header.
"""

import base64
import hashlib
import ipaddress
import ssl
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from service import __version__
from service.protocol.base import Reply
from service.protocol.leases import Claim, Completed, Completion, Lease, Renewal, Renewed
from service.protocol.nodes import (
    Enrolled,
    Enrolment,
    Heartbeat,
    HeartbeatAnswer,
    Inventory,
    NewCredential,
    NodeCredential,
)
from service.protocol.results import Receipt
from service.worker.clock import Offset, ticks
from service.worker.credential import Credentials
from service.worker.errors import WorkerError
from service.worker.redaction import one_line

ANSWER_SECONDS = 15.0
UPLOAD_SECONDS = 60.0
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 2.0
"""How long an idle connection is used again: the service closes it after five seconds, and what is sent to it
in that moment is lost."""
LONGEST_RETRY_AFTER_SECONDS = 3600.0
_TRY_AGAIN = frozenset({408, 425, 429})
"""Statuses below 500 that say: later."""

Answer = TypeVar("Answer", bound=BaseModel)


class Unanswered(Exception):
    """There was no answer, or none that settles anything: try again later, with the same request."""

    def __init__(self, message: str, retry_after_seconds: float = 0.0, *, is_reached: bool = True) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.is_reached = is_reached


class Unauthorized(Exception):
    """The service does not take the credential of this node."""


class Refused(Exception):
    """The service understood the request and says no; the same request would be refused again."""

    def __init__(self, status: int, code: str, detail: str, retry_after_seconds: float = 0.0) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.retry_after_seconds = retry_after_seconds


class _Problem(Reply):
    """What is read of a problem document (RFC 9457)."""

    code: str = ""
    title: str = ""
    detail: str = ""


class _NewToken(Reply):
    """What is read of a new enrolment token."""

    token: NodeCredential


class Client:
    """One node's connection to its service; safe to use from several threads."""

    def __init__(
        self,
        address: str,
        *,
        ca_file: Path | None = None,
        credentials: Credentials | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Nothing is sent yet.

        Raises:
            WorkerError: the address is neither https nor loopback, or the certificates cannot be read.
        """
        self.address = checked_address(address)
        self.offset = Offset()
        self._credentials = credentials
        url = httpx.URL(self.address)
        self._client = httpx.Client(
            base_url=self.address,
            verify=_trusted(ca_file),
            # A proxy of the environment is for what lies beyond this host.
            trust_env=not is_loopback(url.host),
            follow_redirects=False,
            limits=httpx.Limits(keepalive_expiry=IDLE_SECONDS),
            transport=transport,
            headers={"User-Agent": f"ironlaw-worker/{__version__}"},
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def make_token(self, api_key: str) -> str:
        """A single-use enrolment token, by an API key of `enrolment-tokens:write` and what nodes may do."""
        request = self._request("POST", "/v1/enrolment-tokens", b"{}", api_key)
        return self._understood(self._sent(request, ANSWER_SECONDS), _NewToken).token

    def enrol(self, enrolment: Enrolment) -> Enrolled:
        """Join; repeated with the same installation id, it is the same node."""
        request = self._request("POST", "/v1/nodes:enrol", enrolment, None)
        return self._understood(self._sent(request, ANSWER_SECONDS), Enrolled)

    def heartbeat(self, node_id: str, heartbeat: Heartbeat) -> HeartbeatAnswer:
        """Say that the node is alive, and hear what the service wants of it."""
        sent_at = time.time()
        answer = self._ask("POST", f"/v1/nodes/{node_id}:heartbeat", heartbeat, HeartbeatAnswer)
        self.offset.note(answer.server_time, sent_at, time.time())
        return answer

    def send_inventory(self, node_id: str, inventory: Inventory) -> None:
        """Say what the node is made of."""
        self._ask("PUT", f"/v1/nodes/{node_id}/inventory", inventory, Reply)

    def rotate(self, node_id: str) -> None:
        """Get the next credential, keep it, and carry it from the next request on.

        No other request is under way meanwhile. A lost answer costs nothing: the next rotation replaces it.
        """
        if self._credentials is None:
            raise RuntimeError("there is nothing to rotate before a node is enrolled")
        with self._credentials.changing() as secret:
            request = self._request("POST", f"/v1/nodes/{node_id}:rotate", None, secret)
            response = self._sent(request, ANSWER_SECONDS)
            self._credentials.stage(self._understood(response, NewCredential).credential)

    def claim(self, claim: Claim) -> tuple[Lease, float] | None:
        """Ask for work, with patience: the lease, and when it was asked for by ``ticks``; or None."""
        sent_at = ticks()
        response = self._authorized("POST", "/v1/leases:claim", claim, claim.wait_seconds + ANSWER_SECONDS)
        if response.status_code == httpx.codes.NO_CONTENT:
            return None
        return self._understood(response, Lease), sent_at

    def renew(self, lease_id: str, renewal: Renewal) -> tuple[Renewed, float]:
        """Hold on to a lease: the answer, and when it was asked for by ``ticks``."""
        sent_at = ticks()
        return self._ask("POST", f"/v1/leases/{lease_id}:renew", renewal, Renewed), sent_at

    def complete(self, lease_id: str, completion: Completion) -> Completed:
        """Give a lease back."""
        return self._ask("POST", f"/v1/leases/{lease_id}:complete", completion, Completed)

    def upload(self, result_id: str, content: bytes) -> Receipt:
        """Hand over a result with its digest (RFC 9530)."""
        response = self._authorized("PUT", f"/v1/benchmark-results/{result_id}", content, UPLOAD_SECONDS)
        return self._understood(response, Receipt)

    def _ask(self, method: str, path: str, message: BaseModel, answer: type[Answer]) -> Answer:
        return self._understood(self._authorized(method, path, message, ANSWER_SECONDS), answer)

    def _authorized(
        self, method: str, path: str, content: BaseModel | bytes, seconds: float
    ) -> httpx.Response:
        """The answer to a request of the node, with its other credential where one is refused.

        Raises:
            Unauthorized: the service takes no credential that there is.
            Unanswered: there was no answer that settles anything.
            Refused: the service says no.
        """
        if self._credentials is None:
            raise RuntimeError("a node that is not enrolled can only enrol")
        while True:
            with self._credentials.carried() as secret:
                try:
                    response = self._sent(self._request(method, path, content, secret), seconds)
                except Unauthorized:
                    if self._credentials.refused(secret):
                        continue
                    raise
                self._credentials.accepted(secret)
                return response

    def _request(
        self, method: str, path: str, content: BaseModel | bytes | None, secret: str | None
    ) -> httpx.Request:
        body = content.model_dump_json().encode() if isinstance(content, BaseModel) else content
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if isinstance(content, bytes):
            digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
            headers["Content-Digest"] = f"sha-256=:{digest}:"
        if secret is not None:
            headers["Authorization"] = f"Bearer {secret}"
        return self._client.build_request(method, path, content=body, headers=headers)

    def _sent(self, request: httpx.Request, seconds: float) -> httpx.Response:
        """The answer, if it is one of success."""
        timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)
        request.extensions["timeout"] = timeout.as_dict()
        try:
            response = self._client.send(request)
        except httpx.ConnectError as error:
            raise Unanswered(
                f"{self.address} is not reached: {one_line(str(error))}", is_reached=False
            ) from None
        except httpx.HTTPError as error:
            # The request may have left this host, and arrive yet.
            if self._credentials is not None:
                self._credentials.note_given_up()
            raise Unanswered(
                f"{self.address} does not answer: {type(error).__name__}", is_reached=False
            ) from None
        _raise_unless_ok(response)
        return response

    @staticmethod
    def _understood(response: httpx.Response, answer: type[Answer]) -> Answer:
        try:
            return answer.model_validate_json(response.content)
        except ValidationError:
            raise Unanswered(f"the answer is no {answer.__name__} of this protocol") from None


def _raise_unless_ok(response: httpx.Response) -> None:
    status = response.status_code
    if httpx.codes.is_success(status):
        return
    problem = _problem(response)
    detail = one_line(problem.detail or problem.title or response.reason_phrase)
    retry_after_seconds = _retry_after_seconds(response)
    if status == httpx.codes.UNAUTHORIZED:
        raise Unauthorized(detail)
    if status in _TRY_AGAIN or not httpx.codes.is_client_error(status):
        raise Unanswered(f"the service answers {status}: {detail}", retry_after_seconds)
    raise Refused(status, one_line(problem.code, 64), detail, retry_after_seconds)


def _problem(response: httpx.Response) -> _Problem:
    try:
        return _Problem.model_validate_json(response.content)
    except ValidationError:
        return _Problem()


def _retry_after_seconds(response: httpx.Response) -> float:
    """Seconds that the service asks to wait, in either of the two forms (RFC 9110, 10.2.3)."""
    text = response.headers.get("Retry-After", "")
    if text.isascii() and text.isdigit():
        seconds = float(text)
    else:
        try:
            due = parsedate_to_datetime(text)
        except ValueError:
            return 0.0
        seconds = (due.replace(tzinfo=due.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_SECONDS)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this host's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def checked_address(address: str) -> str:
    """The address of a service as it is used.

    Raises:
        WorkerError: it is no address, or neither https nor loopback.
    """
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        raise WorkerError("the address of the service is none: write https://HOST") from None
    if not url.host or url.userinfo or url.query or url.fragment:
        raise WorkerError("the address of the service is https://HOST, with a port and a path at most")
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
        raise WorkerError("credentials go by https alone: write https://HOST (http is for this host itself)")
    return str(url).rstrip("/")


def _trusted(ca_file: Path | None) -> ssl.SSLContext | bool:
    """Whose certificates are believed: those of ``ca_file`` alone, or those of the public authorities."""
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise WorkerError(f"{ca_file} holds no certificates: {error.strerror or 'not PEM'}") from None
