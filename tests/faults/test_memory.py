"""A served process that is sent more than it has memory for: it sheds, lives, and takes long work again."""

import json
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from service.app.examples import EXAMPLES
from tests.faults.harness import LONG
from tests.serving import serving

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.skipif(not LONG, reason="make faults asks for it"),
]

LIMIT_BYTES = 420_000_000
"""Some 200 MB above what a process takes after its start; the bodies below are 320 MB."""
CALLERS = 40
LOAD_SECONDS = 12.0
PATIENCE_SECONDS = 60.0
LARGE = {**EXAMPLES["import_offers"], "content": "x" * 8_000_000}


def peak_bytes(server):
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


class LargeCallers:
    """Callers that send large imports until they are told to stop, and what they were answered."""

    def __init__(self, address):
        self.answers = Counter()
        self._address, self._stop = address, threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(CALLERS)]

    def _send(self):
        raw, headers = json.dumps(LARGE), {"content-type": "application/json"}
        with httpx.Client(base_url=self._address, trust_env=False, timeout=PATIENCE_SECONDS) as client:
            while not self._stop.is_set():
                try:
                    answer = client.post("/v1/offers:import", content=raw, headers=headers)
                except httpx.TransportError:  # refused before the whole body was sent
                    self.answers["closed"] += 1
                    continue
                code = answer.json()["code"] if answer.is_error else ""
                self.answers[f"{answer.status_code} {code}"] += 1
                time.sleep(0.05)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


def test_a_process_near_its_limit_sheds_and_lives(tmp_path):
    with serving(tmp_path, IRONLAW_MEMORY_LIMIT_BYTES=str(LIMIT_BYTES), IRONLAW_ANSWER_SECONDS="5") as server:
        client, small = server.client, Counter()
        with LargeCallers(server.address) as callers:
            end = time.monotonic() + LOAD_SECONDS
            while time.monotonic() < end:
                small[client.post("/v1/estimates/memory", json=EXAMPLES["estimate_memory"]).status_code] += 1
                small[client.get("/v1/sites").status_code] += 1
                small[client.get("/readyz").status_code] += 1
        assert callers.answers["503 MEMORY_PRESSURE"]
        assert small.keys() == {200}
        assert peak_bytes(server) < LIMIT_BYTES
        deadline = time.monotonic() + PATIENCE_SECONDS
        while client.post("/v1/offers:import", json=LARGE).status_code == httpx.codes.SERVICE_UNAVAILABLE:
            assert time.monotonic() < deadline
            time.sleep(0.25)
        assert client.get("/readyz").text == "ready\n"
