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
from service.protocol.base import ProtocolReply
from service.protocol.leases import (
    BenchmarkLease,
    LeaseClaimRequest,
    LeaseCompletion,
    LeaseCompletionRequest,
    LeaseRenewal,
    LeaseRenewalRequest,
)
from service.protocol.nodes import (
    IssuedNodeCredential,
    NodeCredential,
    NodeEnrolment,
    NodeEnrolmentRequest,
    NodeHeartbeatRequest,
    NodeInstructions,
    NodeInventory,
)
from service.protocol.results import BenchmarkResultReceipt
from service.worker.clock import ClockOffset, read_ticks
from service.worker.credential import WorkerCredentials
from service.worker.errors import WorkerError
from service.worker.redaction import to_one_line

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


class NoAnswer(Exception):
    """There was no answer, or none that settles anything: try again later, with the same request."""

    def __init__(self, message: str, retry_after_seconds: float = 0.0, *, is_reached: bool = True) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.is_reached = is_reached


class Unauthorized(Exception):
    """The service does not take the credential of this node."""


class RequestRefused(Exception):
    """The service understood the request and says no; the same request would be refused again."""

    def __init__(self, status: int, code: str, detail: str, retry_after_seconds: float = 0.0) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.retry_after_seconds = retry_after_seconds


class _Problem(ProtocolReply):
    """What is read of a problem document (RFC 9457)."""

    code: str = ""
    title: str = ""
    detail: str = ""


class _NewToken(ProtocolReply):
    """What is read of a new enrolment token."""

    token: NodeCredential


class ServiceClient:
    """One node's connection to its service; safe to use from several threads."""

    def __init__(
        self,
        address: str,
        *,
        ca_file: Path | None = None,
        credentials: WorkerCredentials | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Nothing is sent yet.

        Raises:
            WorkerError: the address is neither https nor loopback, or the certificates cannot be read.
        """
        self.address = validate_address(address)
        self.offset = ClockOffset()
        self._credentials = credentials
        url = httpx.URL(self.address)
        self._client = httpx.Client(
            base_url=self.address,
            verify=_load_trust(ca_file),
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

    def create_token(self, api_key: str) -> str:
        """A single-use enrolment token, by an API key of `enrolment-tokens:write` and what nodes may do."""
        request = self._build_request("POST", "/v1/enrolment-tokens", b"{}", api_key)
        return self._parse_answer(self._send_request(request, ANSWER_SECONDS), _NewToken).token

    def enrol_node(self, enrolment: NodeEnrolmentRequest) -> NodeEnrolment:
        """Join; repeated with the same installation id, it is the same node."""
        request = self._build_request("POST", "/v1/nodes:enrol", enrolment, None)
        return self._parse_answer(self._send_request(request, ANSWER_SECONDS), NodeEnrolment)

    def send_heartbeat(self, node_id: str, heartbeat: NodeHeartbeatRequest) -> NodeInstructions:
        """Say that the node is alive, and hear what the service wants of it."""
        sent_at = time.time()
        answer = self._call_service("POST", f"/v1/nodes/{node_id}:heartbeat", heartbeat, NodeInstructions)
        self.offset.record_answer(answer.server_time, sent_at, time.time())
        return answer

    def send_inventory(self, node_id: str, inventory: NodeInventory) -> None:
        """Say what the node is made of."""
        self._call_service("PUT", f"/v1/nodes/{node_id}/inventory", inventory, ProtocolReply)

    def rotate_credential(self, node_id: str) -> None:
        """Get the next credential, keep it, and carry it from the next request on.

        No other request is under way meanwhile. A lost answer costs nothing: the next rotation replaces it.
        """
        if self._credentials is None:
            raise RuntimeError("there is nothing to rotate before a node is enrolled")
        with self._credentials.lock_for_rotation() as secret:
            request = self._build_request("POST", f"/v1/nodes/{node_id}:rotate", None, secret)
            response = self._send_request(request, ANSWER_SECONDS)
            self._credentials.stage(self._parse_answer(response, IssuedNodeCredential).credential)

    def claim_lease(self, claim: LeaseClaimRequest) -> tuple[BenchmarkLease, float] | None:
        """Ask for work, with patience: the lease, and when it was asked for by ``read_ticks``; or None."""
        sent_at = read_ticks()
        response = self._send_authorized(
            "POST", "/v1/leases:claim", claim, claim.wait_seconds + ANSWER_SECONDS
        )
        if response.status_code == httpx.codes.NO_CONTENT:
            return None
        return self._parse_answer(response, BenchmarkLease), sent_at

    def renew_lease(self, lease_id: str, renewal: LeaseRenewalRequest) -> tuple[LeaseRenewal, float]:
        """Hold on to a lease: the answer, and when it was asked for by ``read_ticks``."""
        sent_at = read_ticks()
        return self._call_service("POST", f"/v1/leases/{lease_id}:renew", renewal, LeaseRenewal), sent_at

    def complete_lease(self, lease_id: str, completion: LeaseCompletionRequest) -> LeaseCompletion:
        """Give a lease back."""
        return self._call_service("POST", f"/v1/leases/{lease_id}:complete", completion, LeaseCompletion)

    def upload_result(self, result_id: str, content: bytes) -> BenchmarkResultReceipt:
        """Hand over a result with its digest (RFC 9530)."""
        response = self._send_authorized("PUT", f"/v1/benchmark-results/{result_id}", content, UPLOAD_SECONDS)
        return self._parse_answer(response, BenchmarkResultReceipt)

    def _call_service(self, method: str, path: str, message: BaseModel, answer: type[Answer]) -> Answer:
        return self._parse_answer(self._send_authorized(method, path, message, ANSWER_SECONDS), answer)

    def _send_authorized(
        self, method: str, path: str, content: BaseModel | bytes, seconds: float
    ) -> httpx.Response:
        """The answer to a request of the node, with its other credential where one is refused.

        Raises:
            Unauthorized: the service takes no credential that there is.
            NoAnswer: there was no answer that settles anything.
            RequestRefused: the service says no.
        """
        if self._credentials is None:
            raise RuntimeError("a node that is not enrolled can only enrol")
        while True:
            with self._credentials.acquire_credential() as secret:
                try:
                    response = self._send_request(self._build_request(method, path, content, secret), seconds)
                except Unauthorized:
                    if self._credentials.record_refusal(secret):
                        continue
                    raise
                self._credentials.record_acceptance(secret)
                return response

    def _build_request(
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

    def _send_request(self, request: httpx.Request, seconds: float) -> httpx.Response:
        """The answer, if it is one of success."""
        timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)
        request.extensions["timeout"] = timeout.as_dict()
        try:
            response = self._client.send(request)
        except httpx.ConnectError as error:
            raise NoAnswer(
                f"{self.address} is not reached: {to_one_line(str(error))}", is_reached=False
            ) from None
        except httpx.HTTPError as error:
            # The request may have left this host, and arrive yet.
            if self._credentials is not None:
                self._credentials.record_abandoned_request()
            raise NoAnswer(
                f"{self.address} does not answer: {type(error).__name__}", is_reached=False
            ) from None
        _raise_unless_ok(response)
        return response

    @staticmethod
    def _parse_answer(response: httpx.Response, answer: type[Answer]) -> Answer:
        try:
            return answer.model_validate_json(response.content)
        except ValidationError:
            raise NoAnswer(f"the answer is no {answer.__name__} of this protocol") from None


def _raise_unless_ok(response: httpx.Response) -> None:
    status = response.status_code
    if httpx.codes.is_success(status):
        return
    problem = _parse_problem(response)
    detail = to_one_line(problem.detail or problem.title or response.reason_phrase)
    retry_after_seconds = _parse_retry_after(response)
    if status == httpx.codes.UNAUTHORIZED:
        raise Unauthorized(detail)
    if status in _TRY_AGAIN or not httpx.codes.is_client_error(status):
        raise NoAnswer(f"the service answers {status}: {detail}", retry_after_seconds)
    raise RequestRefused(status, to_one_line(problem.code, 64), detail, retry_after_seconds)


def _parse_problem(response: httpx.Response) -> _Problem:
    try:
        return _Problem.model_validate_json(response.content)
    except ValidationError:
        return _Problem()


def _parse_retry_after(response: httpx.Response) -> float:
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


def validate_address(address: str) -> str:
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


def _load_trust(ca_file: Path | None) -> ssl.SSLContext | bool:
    """Whose certificates are believed: those of ``ca_file`` alone, or those of the public authorities."""
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise WorkerError(f"{ca_file} holds no certificates: {error.strerror or 'not PEM'}") from None
