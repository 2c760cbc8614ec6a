"""Have versions of the service store data, each by its own code from the history, for tests of upgrades.

``python -m tests.migrations.storing [REVISION ...]`` writes ``tests/data/stored/REVISION.json.gz``: an
embedded database without the rows that ship, what was shown over HTTP, and the secret.
"""

import argparse
import contextlib
import gzip
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from pathlib import Path
from uuid import uuid4

import httpx

from service.kit.security.principals import SHIPPED_TENANT
from tests.faults.served import free_port, site
from tests.nodes.hosts import BOOT, INVENTORY, INVENTORY_SHA256

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "data" / "stored"
GIT = shutil.which("git")
COMMITS = {
    "0026": "8428dc2b",
    "0028": "ef04686e",
    "0029": "ac744cab",
    "0030": "5297ff3d",
    "0031": "b6b8aa7f",
    "0032": "b918950a",
}
"""The last commit of each schema since 0.1.0, which has 0026; before it migrations were still rewritten."""
COPIED = (
    "models",
    "accelerators",
    "links",
    "offers",
    "token-prices",
    "tariffs",
    "exchange-rates",
    "grids",
    "sites",
)
"""Collections of the catalog; a row of each is copied, where the version has the collection."""
QUESTION = {
    "model": {"source": "parameter_count", "parameter_count": 1_000_000_000},
    "workload": {"kind": "training", "sequence_length": 2048, "total_tokens": 10_000_000_000},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 8},
    "efficiency": {"source": "assumed", "utilization": 0.4},
    "rental": {"price_per_device_hour": {"amount": "2.5", "currency_code": "USD"}},
}
WRITES = (
    ("/v1/sites", site("kept-site", "of an older version")),
    ("/v1/api-keys", {"name": "kept", "scopes": ["models:read"]}),
    ("/v1/cost-centers", {"id": "kept-center", "name": "Who pays"}),
    (
        "/v1/budgets",
        {
            "id": "kept-budget",
            "name": "A budget",
            "cost_center_id": "kept-center",
            "starts_on": "2026-01-01",
            "ends_on": "2027-12-31",
            "amount": {"amount": "5000", "currency_code": "USD"},
        },
    ),
    (
        "/v1/approval-policies",
        {"id": "kept-policy", "name": "A policy", "conditions": {}, "steps": [], "automatic": True},
    ),
    (
        "/v1/quotes",
        {"operation": "cost", "name": "a run", "cost_center_id": "kept-center", "request": QUESTION},
    ),
    ("/v1/webhooks", {"url": "https://example.com/hook"}),
    ("/v1/enrolment-tokens", {}),
)
"""What is written, as far as a version takes it."""


class Written:
    """What a version answered to those who wrote, and what it shows of it."""

    def __init__(self, client):
        self._client = client
        self.shown = {}

    def write(self, path, body):
        """The body of an answer that says yes, else None."""
        answer = self._client.post(path, json=body, headers={"Idempotency-Key": uuid4().hex})
        return answer.json() if answer.is_success else None

    def show(self, path):
        answer = self._client.get(path)
        if answer.is_success:
            self.shown[path] = answer.json()

    def write_all(self):
        for name in COPIED:
            listed = self._client.get(f"/v1/{name}", params={"page_size": 1})
            if listed.is_success and self.write(
                f"/v1/{name}/{listed.json()['items'][0]['id']}:copy", {"id": "kept"}
            ):
                self.show(f"/v1/{name}/kept")
        for path, body in WRITES:
            made = self.write(path, body)
            if made is not None:
                holders = [made, *(one for one in made.values() if isinstance(one, dict))]
                self.show(f"{path}/{next(one['id'] for one in holders if 'id' in one)}")
                self._follow(path, made)

    def _follow(self, path, made):
        if path == "/v1/quotes":
            approval = self.write(f"{path}/{made['id']}:submit", {"content_digest": made["content_digest"]})
            if approval is not None:
                self.show(f"/v1/approvals/{approval['id']}")
                self.show(f"{path}/{made['id']}")
                self.show("/v1/budgets/kept-budget")
        if path == "/v1/enrolment-tokens":
            self._enrol(made["token"])

    def _enrol(self, token):
        about = {"device": "cpu", "worker_version": "1.0", "name": "rack-7", "installation_id": uuid4().hex}
        node = self.write("/v1/nodes:enrol", {"token": token, **about})
        if node is None:
            return
        own, path = {"Authorization": f"Bearer {node['credential']}"}, f"/v1/nodes/{node['node_id']}"
        self._client.put(f"{path}/inventory", json=INVENTORY.model_dump(mode="json"), headers=own)
        beat = {"boot_id_sha256": BOOT, "worker_version": "1.0", "inventory_sha256": INVENTORY_SHA256}
        beat |= {"activity": "idle", "spool": {"waiting_count": 0, "waiting_bytes": 0}}
        self._client.post(f"{path}:heartbeat", json=beat, headers=own)
        suites = self._client.get("/v1/benchmark-suites").json()["items"]
        suite = next(one["id"] for one in suites if one["device"] == "cpu")
        run = self.write("/v1/benchmark-runs", {"suite_id": suite})
        claim = {"request_id": uuid4().hex, "wait_seconds": 0, "inventory_sha256": INVENTORY_SHA256}
        self._client.post("/v1/leases:claim", json=claim, headers=own)
        self.show(path)
        if run is not None:
            self.show(f"/v1/benchmark-runs/{run['id']}")


def build_command(source):
    """The ``ironlaw`` command of a version, to be run with its source as ``PYTHONPATH``."""
    script = tomllib.loads((source / "pyproject.toml").read_text())["project"]["scripts"]["ironlaw"]
    module, _, function = script.partition(":")
    program = f"import sys; sys.argv[0] = 'ironlaw'; from {module} import {function}; sys.exit({function}())"
    return [sys.executable, "-c", program]


@contextlib.contextmanager
def served(source, data_dir):
    """A client of a version that is served from its source."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("IRONLAW_")}
    port = free_port()
    own |= {"PYTHONPATH": str(source), "IRONLAW_DATA_DIR": str(data_dir), "IRONLAW_PORT": str(port)}
    process = subprocess.Popen(
        [*build_command(source), "serve"], cwd=source, env=own, stderr=subprocess.DEVNULL
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
            for _ in range(1200):
                with contextlib.suppress(httpx.TransportError):
                    if client.get("/readyz").is_success:
                        break
                assert process.poll() is None
                time.sleep(0.1)
            yield client
    finally:
        process.terminate()
        process.wait(60)


def extract(commit, folder):
    """The source of a commit."""
    archive = subprocess.run([GIT, "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")


def dump(path):
    """A database as statements, without the rows that ship."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        owned = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall()
            if any(column[1] == "tenant_id" for column in connection.execute(f"PRAGMA table_info({name})"))
        ]
        for name in owned:
            connection.execute(f"DELETE FROM {name} WHERE tenant_id = ?", (SHIPPED_TENANT,))
        return "\n".join(connection.iterdump())


def store(revision):
    """Write the data of one version."""
    with tempfile.TemporaryDirectory() as name:
        source, data_dir = Path(name, "source"), Path(name, "data")
        source.mkdir()
        extract(COMMITS[revision], source)
        with served(source, data_dir) as client:
            written = Written(client)
            written.write_all()
        secret = data_dir / "secret.key"
        stored = {
            "shown": written.shown,
            "secret": secret.read_text() if secret.exists() else "",
            "dump": dump(data_dir / "ironlaw.db"),
        }
    assert f"INSERT INTO \"alembic_version\" VALUES('{revision}')" in stored["dump"]
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(stored, sort_keys=True).encode()
    (FOLDER / f"{revision}.json.gz").write_bytes(gzip.compress(text, mtime=0))
    print(revision, len(written.shown), "things shown")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revisions", nargs="*", default=list(COMMITS))
    for one in parser.parse_args().revisions:
        store(one)
