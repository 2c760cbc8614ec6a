"""Hosts that speak to the service over HTTP as a worker does."""

from uuid import uuid4

from service.protocol.canonical import compute_digest
from service.protocol.nodes import NodeInventory
from tests.applications import bearing

INVENTORY = NodeInventory.model_validate(
    {
        "device": "cpu",
        "host": {"operating_system": "Linux", "kernel": "6.8", "architecture": "x86_64", "cpu_count": 8},
        "software": [{"name": "numpy", "version": "2.3.4"}],
    }
)
INVENTORY_SHA256 = compute_digest(INVENTORY)
BOOT = "b" * 64


def token(client, headers=None, **members):
    """The secret of a fresh enrolment token."""
    made = client.post("/v1/enrolment-tokens", members, headers=headers)
    assert made.status_code == 201, made.text
    return made.json()["token"]


class Host:
    """One host: its installation, and its credential once it has enrolled."""

    def __init__(self, client, **members):
        self.client = client
        self.installation_id = uuid4().hex
        self.about = {"device": "cpu", "worker_version": "1.0", "name": "rack-7", **members}
        self.id = ""
        self.credential = ""

    def try_to_enrol(self, secret, **members):
        body = {"token": secret, "installation_id": self.installation_id, **self.about, **members}
        return self.client.post("/v1/nodes:enrol", body)

    def enrol(self, secret=None, headers=None):
        answer = self.try_to_enrol(secret or token(self.client, headers))
        assert answer.status_code == 200, answer.text
        self.id, self.credential = answer.json()["node_id"], answer.json()["credential"]
        return self

    @property
    def url(self):
        return f"/v1/nodes/{self.id}"

    def ask(self, method, url, body=None, credential=None):
        return self.client.request(method, url, json=body, headers=bearing(credential or self.credential))

    def heartbeat(self, credential=None, **members):
        beat = {
            "boot_id_sha256": BOOT,
            "worker_version": "1.0",
            "inventory_sha256": INVENTORY_SHA256,
            "activity": "idle",
            "spool": {"waiting_count": 0, "waiting_bytes": 0},
            **members,
        }
        return self.ask("POST", f"{self.url}:heartbeat", beat, credential)

    def send_inventory(self, inventory=INVENTORY):
        return self.ask("PUT", f"{self.url}/inventory", inventory.model_dump(mode="json"))

    def rotate(self, credential=None):
        return self.ask("POST", f"{self.url}:rotate", credential=credential)

    def claim(self, request_id=None, wait_seconds=0.0, **members):
        body = {
            "request_id": request_id or uuid4().hex,
            "wait_seconds": wait_seconds,
            "inventory_sha256": INVENTORY_SHA256,
            **members,
        }
        return self.ask("POST", "/v1/leases:claim", body)

    def renew(self, lease, **members):
        body = {"fencing_token": lease["fencing_token"], **members}
        return self.ask("POST", f"/v1/leases/{lease['id']}:renew", body)


def code(answer):
    return answer.status_code, answer.json()["code"]
