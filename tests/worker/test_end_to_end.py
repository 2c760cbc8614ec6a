"""Service and worker as processes, over HTTP: a node joins, measures, loses its network, is killed."""

import contextlib
import functools
import json
import re

import httpx
import pytest

from service.app.storage import migrate_database
from service.protocol.results import BenchmarkResultReport
from tests import forked, waiting
from tests.faults.node_worker import is_busy
from tests.serving import environment
from tests.worker import served
from tests.worker.base import ROOT
from tests.worker.cut import Network
from tests.worker.records import suite

until = functools.partial(waiting.until, every=0.2)
SERVING = re.compile(r"serving on http://127\.0\.0\.1:(\d+)")


@contextlib.contextmanager
def started(folder, *words, **own):
    """A command whose output and errors are in a folder, and which is killed in the end."""
    folder.mkdir(exist_ok=True)
    process = forked.Process(served.ironlaw, *words, environment=own, folder=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Fleet:
    """A service, and one host that can become a node of it."""

    def __init__(self, database, tmp_path):
        self.own = environment(
            tmp_path / "data",
            IRONLAW_DATABASE_URL=database.url.render_as_string(hide_password=False),
            IRONLAW_PORT="0",
            IRONLAW_WORKER_DIR=str(tmp_path / "worker"),
            IRONLAW_WORKER_LOCK_FILE=str(tmp_path / "lock"),
            PYTHONPATH=str(ROOT),
            PYTHONUNBUFFERED="1",
        )
        self.folder, self.worker_dir = tmp_path, tmp_path / "worker"

    @contextlib.contextmanager
    def serves(self):
        log = self.folder / "service" / "err"
        with started(log.parent, "serve", **self.own) as process:
            said = until(lambda: process.poll() is not None or SERVING.search(log.read_text()))
            assert process.poll() is None, log.read_text()
            port = int(said[1])
            self.network = Network(port)
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=10
            ) as self.client:
                until(lambda: self.client.get("/readyz").is_success)
                yield
            self.network.close()

    def enrol(self):
        token = self.asked("POST", "/v1/enrolment-tokens", {"node_name": "rack-1"})["token"]
        words = ("worker", "enrol", "--service", self.network.address, "--device", "cpu")
        own = {**self.own, "IRONLAW_ENROLMENT_TOKEN": token}
        with started(self.folder / "enrolment", *words, **own) as process:
            assert process.wait(timeout=60) == 0, (self.folder / "enrolment" / "err").read_text()
        (self.node,) = self.asked("GET", "/v1/nodes")["items"]

    def works(self):
        # What a worker that was killed has started ends a moment later.
        until(lambda: not is_busy(self.worker_dir, self.own["IRONLAW_WORKER_LOCK_FILE"]))
        return started(self.folder / "working", "worker", "run", **self.own)

    def asked(self, method, path, body=None):
        answer = self.client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def asks_for_a_run(self):
        body = {"suite_id": "tiny", "node_id": self.node["id"]}
        return self.asked("POST", "/v1/benchmark-runs", body)["id"]

    def run(self, run_id):
        return self.asked("GET", f"/v1/benchmark-runs/{run_id}")

    def results(self, run_id):
        return self.asked("GET", f"/v1/benchmark-results?run_id={run_id}&page_size=100")["items"]

    def spooled(self, folder):
        return list((self.worker_dir / "spool" / folder).glob("*.json"))

    def node_now(self):
        return self.asked("GET", f"/v1/nodes/{self.node['id']}")

    def credential(self):
        return json.loads((self.worker_dir / "credential.json").read_text())


# What a database promises to nodes is shown on both by the tests of leases, of results and of fleets.
@pytest.fixture
def fleet(databases, tmp_path):
    database = databases.loaded()
    migrate_database(database)
    fleet = Fleet(database, tmp_path)
    with fleet.serves():
        yield fleet


EVERYTHING = [(b.name, repeat) for b in suite(benchmarks=2).benchmarks for repeat in (1, 2)]


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
class TestNode:
    @pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
    def test_its_network_is_cut_while_it_measures_and_nothing_is_lost(self, fleet):
        fleet.enrol()
        with fleet.works() as worker:
            run_id = fleet.asks_for_a_run()
            until(lambda: fleet.results(run_id))
            fleet.network.cut()
            before = len(fleet.results(run_id))
            until(
                lambda: len(fleet.spooled("waiting")) + len(fleet.spooled("acknowledged")) == len(EVERYTHING)
            )
            assert fleet.spooled("waiting")
            assert fleet.network.refused
            assert len(fleet.results(run_id)) == before
            assert fleet.run(run_id)["state"] == "running"
            fleet.network.mend()
            run = until(lambda: (found := fleet.run(run_id))["state"] == "completed" and found)
            worker.terminate()
            assert worker.wait(timeout=60) == 0
        results = fleet.results(run_id)
        assert sorted((result["benchmark"], result["repeat"]) for result in results) == EVERYTHING
        assert {(r["status"], r["lease"], r["is_counted"]) for r in results} == {("ok", "current", True)}
        assert [figure["repeats"] for figure in run["figures"]] == [2, 2]
        assert len(fleet.spooled("acknowledged")) == len(EVERYTHING)
        self._holds(fleet, results)

    def _holds(self, fleet, results):
        """What is stored is what the node wrote, and the service computes the same figure from it."""
        node = fleet.node_now()
        for result in results:
            stored = fleet.asked("GET", f"/v1/benchmark-results/{result['id']}")
            (kept,) = [path for path in fleet.spooled("acknowledged") if path.name.startswith(result["id"])]
            record = BenchmarkResultReport.model_validate_json(kept.read_bytes())
            assert json.loads(kept.read_bytes()) == stored["record"]
            assert record.node_id == node["id"]
            assert record.inventory_sha256 == node["inventory_sha256"]
            assert abs(record.clock_offset_seconds) < 5
            figure = record.benchmark.compute_figure(
                record.measurement.values, inner_iterations=record.measurement.inner_iterations
            )
            assert result["figure"] == pytest.approx(figure, rel=1e-12)

    @pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
    def test_it_is_killed_while_it_measures_and_starts_again_with_a_new_credential(self, fleet):
        fleet.enrol()
        with fleet.works() as worker:
            killed_run = fleet.asks_for_a_run()
            until(lambda: fleet.results(killed_run))
            worker.kill()
            worker.wait(timeout=60)
        assert fleet.run(killed_run)["state"] == "running"
        old = fleet.credential()["current"]
        fleet.asked("POST", f"/v1/nodes/{fleet.node['id']}:request-rotation")
        with fleet.works() as worker:
            # Given back by the process that came after, so it waits, long before the lease would have ended.
            until(lambda: fleet.run(killed_run)["state"] == "waiting")
            until(lambda: set(fleet.credential()) == {"current"} and fleet.credential()["current"] != old)
            fleet.asked("POST", f"/v1/benchmark-runs/{killed_run}:cancel")
            run_id = fleet.asks_for_a_run()
            until(lambda: fleet.run(run_id)["state"] == "completed")
            assert fleet.node_now()["state"] == "active"
            worker.terminate()
            assert worker.wait(timeout=60) == 0
        assert len([r for r in fleet.results(run_id) if r["is_counted"]]) == len(EVERYTHING)
        assert fleet.spooled("waiting") == []
        # Whoever uses the old credential now is somebody else.
        theft = fleet.client.post("/v1/leases:claim", json={}, headers={"Authorization": f"Bearer {old}"})
        assert theft.status_code == 401
        assert fleet.node_now()["state"] == "quarantined"
