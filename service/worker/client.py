"""Client of the service for a node: each call sends one message and parses one answer.

Requests go by HTTPS alone, except to loopback, and the certificate is always verified. No error text contains
a credential, because none contains a header.
"""

import base64
import hashlib
import ssl
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from service import __version__
from service.kit.addresses import is_loopback
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
"""Time during which an idle connection is reused. The service closes it after five seconds, and a request
that is sent at that moment is lost.
"""
LONGEST_RETRY_AFTER_SECONDS = 3600.0
_TRY_AGAIN = frozenset({408, 425, 429})
"""Statuses below 500 that ask for a later retry."""

Answer = TypeVar("Answer", bound=BaseModel)


class NoAnswer(Exception):
    """No answer came, or none that settles the request: retry later with the same request."""

    def __init__(self, message: str, retry_after_seconds: float = 0.0, *, is_reached: bool = True) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.is_reached = is_reached


class Unauthorized(Exception):
    """The service does not accept the credential of this node."""


class RequestRefused(Exception):
    """The service refused the request; a retry would be refused again."""

    def __init__(self, status: int, code: str, detail: str, retry_after_seconds: float = 0.0) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.retry_after_seconds = retry_after_seconds


class _Problem(ProtocolReply):
    """Members of a problem document (RFC 9457) that are used."""

    code: str = ""
    title: str = ""
    detail: str = ""


class ImportedFigure(ProtocolReply):
    """Members of a figure of imported evidence that are used."""

    family: str
    measured: float
    estimated: float


class ImportedReport(ProtocolReply):
    """Members of imported evidence that are used."""

    calibration_id: str
    answers: list[ImportedFigure]


class _NewToken(ProtocolReply):
    """Members of a new enrolment token that are used."""

    token: NodeCredential


class ServiceClient:
    """Connection of one node to its service; safe to use from several threads."""

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
            WorkerError: The address is neither https nor loopback, or the certificates cannot be read.
        """
        self.address = validate_address(address)
        self.offset = ClockOffset()
        self._credentials = credentials
        url = httpx.URL(self.address)
        self._client = httpx.Client(
            base_url=self.address,
            verify=_load_trust(ca_file),
            # A proxy of the environment is only used for addresses beyond this host.
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
        """Returns a single-use enrolment token, by an API key with its scope and those of nodes."""
        request = self._build_request("POST", "/v1/enrolment-tokens", b"{}", api_key)
        return self._parse_answer(self._send_request(request, ANSWER_SECONDS), _NewToken).token

    def import_evidence(self, api_key: str, body: bytes) -> ImportedReport:
        """Imports a report as evidence, by an API key that may do so."""
        request = self._build_request("POST", "/v1/evidence:import", body, api_key)
        return self._parse_answer(self._send_request(request, UPLOAD_SECONDS), ImportedReport)

    def enrol_node(self, enrolment: NodeEnrolmentRequest) -> NodeEnrolment:
        """Enrols a node; repeated with the same installation id, it is the same node."""
        request = self._build_request("POST", "/v1/nodes:enrol", enrolment, None)
        return self._parse_answer(self._send_request(request, ANSWER_SECONDS), NodeEnrolment)

    def send_heartbeat(self, node_id: str, heartbeat: NodeHeartbeatRequest) -> NodeInstructions:
        """Sends a heartbeat and returns the instructions of the service."""
        sent_at = time.time()
        answer = self._call_service("POST", f"/v1/nodes/{node_id}:heartbeat", heartbeat, NodeInstructions)
        self.offset.record_answer(answer.server_time, sent_at, time.time())
        return answer

    def send_inventory(self, node_id: str, inventory: NodeInventory) -> None:
        """Sends the inventory of the node."""
        self._call_service("PUT", f"/v1/nodes/{node_id}/inventory", inventory, ProtocolReply)

    def rotate_credential(self, node_id: str) -> None:
        """Requests the next credential, stores it, and uses it from the next request on.

        No other request is under way meanwhile. A lost answer is harmless: the next rotation replaces it.
        """
        if self._credentials is None:
            raise RuntimeError("a node must be enrolled before its credential is rotated")
        with self._credentials.lock_for_rotation() as secret:
            request = self._build_request("POST", f"/v1/nodes/{node_id}:rotate", None, secret)
            response = self._send_request(request, ANSWER_SECONDS)
            self._credentials.stage(self._parse_answer(response, IssuedNodeCredential).credential)

    def claim_lease(self, claim: LeaseClaimRequest) -> tuple[BenchmarkLease, float] | None:
        """Claims a lease by a long poll; returns it with the ``read_ticks`` of the request, or None."""
        sent_at = read_ticks()
        response = self._send_authorized(
            "POST", "/v1/leases:claim", claim, claim.wait_seconds + ANSWER_SECONDS
        )
        if response.status_code == httpx.codes.NO_CONTENT:
            return None
        return self._parse_answer(response, BenchmarkLease), sent_at

    def renew_lease(self, lease_id: str, renewal: LeaseRenewalRequest) -> tuple[LeaseRenewal, float]:
        """Renews a lease; returns the answer and the ``read_ticks`` of the request."""
        sent_at = read_ticks()
        return self._call_service("POST", f"/v1/leases/{lease_id}:renew", renewal, LeaseRenewal), sent_at

    def complete_lease(self, lease_id: str, completion: LeaseCompletionRequest) -> LeaseCompletion:
        """Completes a lease."""
        return self._call_service("POST", f"/v1/leases/{lease_id}:complete", completion, LeaseCompletion)

    def upload_result(self, result_id: str, content: bytes) -> BenchmarkResultReceipt:
        """Uploads a result with its digest (RFC 9530)."""
        response = self._send_authorized("PUT", f"/v1/benchmark-results/{result_id}", content, UPLOAD_SECONDS)
        return self._parse_answer(response, BenchmarkResultReceipt)

    def _call_service(self, method: str, path: str, message: BaseModel, answer: type[Answer]) -> Answer:
        return self._parse_answer(self._send_authorized(method, path, message, ANSWER_SECONDS), answer)

    def _send_authorized(
        self, method: str, path: str, content: BaseModel | bytes, seconds: float
    ) -> httpx.Response:
        """Sends a request of the node, trying its other credential if one is refused.

        Raises:
            Unauthorized: The service accepts no credential of the node.
            NoAnswer: There was no answer that settles anything.
            RequestRefused: The service refused the request.
        """
        if self._credentials is None:
            raise RuntimeError("a node must be enrolled before it sends this request")
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
        """Returns the response if it is successful."""
        timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)
        request.extensions["timeout"] = timeout.as_dict()
        try:
            response = self._client.send(request)
        except httpx.ConnectError as error:
            raise NoAnswer(
                f"{self.address} cannot be reached: {to_one_line(str(error))}", is_reached=False
            ) from None
        except httpx.HTTPError as error:
            # The request may have left this host, and may still arrive.
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
            raise NoAnswer(f"the answer is not a valid {answer.__name__}") from None


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
    """Returns the seconds that the service asks to wait, in either form (RFC 9110, 10.2.3)."""
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


def validate_address(address: str) -> str:
    """Returns the normalized address of a service.

    Raises:
        WorkerError: It is not an address, or neither https nor loopback.
    """
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        raise WorkerError("the address of the service is not valid: write https://HOST") from None
    if not url.host or url.userinfo or url.query or url.fragment:
        raise WorkerError("the address of the service is https://HOST, with at most a port and a path")
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
        raise WorkerError("credentials require https: write https://HOST (http is for this host itself)")
    return str(url).rstrip("/")


def _load_trust(ca_file: Path | None) -> ssl.SSLContext | bool:
    """Returns the trusted certificates: those of ``ca_file`` alone, or those of the public authorities."""
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise WorkerError(f"{ca_file} contains no certificates: {error.strerror or 'not PEM'}") from None
