"""A served tenant and the keys of two people, of whom one approves what the other asks for."""

import contextlib
import threading
import time

import httpx

from service.kit.security.credentials import parse_id
from tests.serving import run, serving


class Tenant:
    """A server in tenant mode, and the keys of two people."""

    def __init__(self, server, key, approver):
        self.address, self.key, self.approver = server.address, key, approver
        self.client = server.client
        self.client.headers["authorization"] = f"Bearer {key}"


@contextlib.contextmanager
def tenant(data):
    """A tenant whose webhooks may reach this machine."""
    variables = {"IRONLAW_MODE": "tenant", "IRONLAW_WEBHOOK_NETWORKS": "127.0.0.0/8"}
    with serving(data, **variables) as server:
        keys = [_made_key(data) for _ in range(2)]
        deadline = time.monotonic() + 60
        while not all(_is_known(server.client, key) for key in keys):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield Tenant(server, *keys)


def _made_key(data):
    key, errors, status = run("keys", "create", "--scope", "*:*", data_dir=data)
    assert status == 0, errors
    return key.strip()


def _is_known(client, key):
    return client.get("/v1/quotes", headers={"authorization": f"Bearer {key}"}).status_code == 200


@contextlib.contextmanager
def approving(service):
    """A policy that asks for somebody, who approves as soon as they are asked; their name."""
    name = f"api_key:{parse_id(service.approver)}"
    step = {"name": "Head of research", "approvers": [name]}
    policy = {"id": "everything", "name": "Everything", "conditions": {}, "steps": [step]}
    # Whoever asks does not write the policy that they ask under.
    headers = {"authorization": f"Bearer {service.approver}", "if-match": "*"}
    at_once = {"change_delay_seconds": 0}
    service.client.patch("/v1/approval-settings", json=at_once, headers=headers).raise_for_status()
    service.client.post("/v1/approval-policies", json=policy, headers=headers).raise_for_status()
    stop = threading.Event()
    thread = threading.Thread(target=_approve, args=(service, stop), daemon=True)
    thread.start()
    try:
        yield name
    finally:
        stop.set()
        thread.join(10)
        service.client.delete("/v1/approval-policies/everything", headers=headers).raise_for_status()


def _approve(service, stop):
    headers = {"authorization": f"Bearer {service.approver}"}
    with httpx.Client(base_url=service.address, headers=headers, trust_env=False) as client:
        while not stop.wait(0.05):
            waiting = client.get("/v1/approvals", params={"approver": "me"}).json()["items"]
            for approval in waiting:
                body = {"content_digest": approval["content_digest"]}
                client.post(f"/v1/approvals/{approval['id']}:approve", json=body).raise_for_status()
