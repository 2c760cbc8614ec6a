"""A small service in this process: what nodes ask for, with faults on order."""

import base64
import hashlib
import json
import threading
import time
from datetime import UTC, datetime

import httpx

from service.protocol.leases import LeaseClaimRequest, LeaseCompletionRequest, LeaseRenewalRequest
from service.protocol.nodes import NodeEnrolmentRequest, NodeHeartbeatRequest, NodeInventory
from service.protocol.results import BenchmarkResultReport
from service.worker.ids import generate_hex_128

NODE_ID = "aaaaaaaaaaaaaaaa"
ADDRESS = "https://ironlaw.test"
API_KEY = "ironlaw_bbbbbbbbbbbbbbbb_" + "0" * 49


def secret(generation):
    return f"ironlawnode_{NODE_ID}_{generation:049}"


def problem(status, code, **headers):
    said = {"status": status, "code": code, "title": code.lower(), "detail": f"it is {code.lower()}"}
    return httpx.Response(
        status, json=said, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


class FakeService:
    """One node's service. ``faults[path]`` answers the next requests, before the service looks at them."""

    def __init__(self, suite=None):
        self._lock = threading.RLock()
        self.suite = suite
        self.faults = {}
        self.log = []
        self.generation, self.pending = 1, None
        self.is_revoked = self.is_quarantined = False
        self.state, self.rotate = "active", False
        self.inventories, self.heartbeats, self.results = {}, [], {}
        self.waiting, self.held, self.token = 0, None, 0
        self.request_ids, self.completions, self.renewals = [], [], []
        self.cancel, self.missing = False, []
        self.lease_seconds, self.renew_seconds = 90.0, 30.0
        self.clock_offset_seconds = 0.0
        self.transport = httpx.MockTransport(self.answer)

    def answer(self, request):
        path = request.url.path
        with self._lock:
            self.log.append((request.method, path, request.headers.get("authorization", "")))
            waiting = self.faults.get(path.rpartition("/")[2] if "results" not in path else "results")
            fault = waiting.pop(0) if waiting else None
        if callable(fault):
            fault = fault(request)
        if isinstance(fault, Exception):
            raise fault
        if fault is not None:
            return fault
        with self._lock:
            if path == "/v1/enrolment-tokens":
                is_known = request.headers.get("authorization") == f"Bearer {API_KEY}"
                return self._said(token="right") if is_known else problem(403, "FORBIDDEN")  # noqa: S106
            if path == "/v1/nodes:enrol":
                return self._enrol(NodeEnrolmentRequest.model_validate_json(request.content))
            if not self._is_known(request.headers.get("authorization", "").removeprefix("Bearer ")):
                return problem(401, "CREDENTIALS_REQUIRED")
            return self._route(request, path)

    def _is_known(self, presented):
        if self.is_revoked or self.is_quarantined:
            return False
        if presented == secret(self.generation):
            return True
        if self.pending and presented == secret(self.pending):
            self.generation, self.pending = self.pending, None
            return True
        if presented in map(secret, range(1, self.generation)):
            self.is_quarantined = True
        return False

    def _route(self, request, path):
        own = f"/v1/nodes/{NODE_ID}"
        routes = {
            ("POST", f"{own}:heartbeat"): (self._beat, NodeHeartbeatRequest),
            ("PUT", f"{own}/inventory"): (self._describe, NodeInventory),
            ("POST", "/v1/leases:claim"): (self._claim, LeaseClaimRequest),
            ("POST", "/v1/leases/run-1:renew"): (self._renew, LeaseRenewalRequest),
            ("POST", "/v1/leases/run-1:complete"): (self._complete, LeaseCompletionRequest),
        }
        if (request.method, path) in routes:
            route, shape = routes[request.method, path]
            return route(shape.model_validate_json(request.content))
        if (request.method, path) == ("POST", f"{own}:rotate"):
            self.pending = (self.pending or self.generation) + 1
            return self._said(credential=secret(self.pending), generation=self.pending)
        if path.startswith("/v1/benchmark-results/"):
            return self._store(request, path.rpartition("/")[2])
        return problem(404, "NOT_FOUND")

    def _said(self, **members):
        at = datetime.fromtimestamp(time.time() + self.clock_offset_seconds, UTC)
        return httpx.Response(
            200, json={**members, "server_time": at.isoformat(), "new_member": "passed over"}
        )

    def _enrol(self, enrolment):
        if enrolment.token != "right":  # noqa: S105
            return problem(401, "TOKEN_REFUSED")
        self.enrolment = enrolment
        return self._said(node_id=NODE_ID, credential=secret(1))

    def _beat(self, heartbeat):
        self.heartbeats.append(heartbeat)
        missing = [digest for digest in heartbeat.acknowledged if digest in self.missing]
        return self._said(
            state=self.state,
            rotate=self.rotate and self.pending is None and self.generation == 1,
            send_inventory=heartbeat.inventory_sha256 not in self.inventories,
            missing=missing,
            heartbeat_seconds=0.1,
        )

    def _describe(self, inventory):
        from service.protocol.canonical import compute_digest  # noqa: PLC0415

        self.inventories[compute_digest(inventory)] = inventory
        return self._said()

    def _claim(self, claim):
        self.request_ids.append(claim.request_id)
        if claim.inventory_sha256 not in self.inventories:
            return problem(409, "INVENTORY_UNKNOWN")
        if self.held and self.held[0] != claim.request_id:
            return problem(409, "NODE_BUSY", retry_after="1")
        if not self.held:
            if not self.waiting:
                return httpx.Response(204)
            self.waiting -= 1
            self.token += 1
            self.held = (claim.request_id, generate_hex_128())
        return self._said(
            id="run-1", fencing_token=self.token, nonce=self.held[1], attempt=self.token,
            lease_seconds=self.lease_seconds, renew_seconds=self.renew_seconds, runtime_seconds=3600.0,
            seed=7, suite=json.loads(self.suite.model_dump_json()),
        )  # fmt: skip

    def _renew(self, renewal):
        self.renewals.append(renewal)
        if not self.held or renewal.fencing_token != self.token:
            return problem(409, "STALE_LEASE")
        return self._said(lease_seconds=self.lease_seconds, cancel=self.cancel)

    def _complete(self, completion):
        if not self.held or completion.fencing_token != self.token:
            return problem(409, "STALE_LEASE")
        stored = {digest for digest, _ in self.results.values()}
        if any(named.content_sha256 not in stored for named in completion.results):
            return problem(409, "RESULTS_MISSING")
        self.completions.append(completion)
        self.held = None
        self.waiting += completion.outcome == "released"
        return self._said(state="waiting" if completion.outcome == "released" else completion.outcome)

    def _store(self, request, result_id):
        content = request.content
        digest = hashlib.sha256(content)
        said = request.headers["content-digest"]
        assert said == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
        result = BenchmarkResultReport.model_validate_json(content)
        assert result.result_id == result_id
        self.results[result_id] = (digest.hexdigest(), result)
        is_current = self.held is not None and result.fencing_token == self.token
        return self._said(
            result_id=result_id,
            content_sha256=digest.hexdigest(),
            lease="current" if is_current else "late",
        )
