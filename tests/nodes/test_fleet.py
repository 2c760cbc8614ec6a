"""A fleet over real HTTP, ten times as fast as the clock: what `make fleet` does in real time."""

import pytest

from bench import fleet, fleet_service
from bench.fleet import NOTHING, FleetScenario, HeartbeatCounts, run
from tests import forked

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

PLAN = FleetScenario(nodes=20, seconds=90.0, speed=10.0, run_every_seconds=6.0)


def start(environment, data_dir, speed):
    """As the one of the fleet, in a process that has imported the service."""
    return forked.Process(fleet_service.serve, speed, environment=environment, folder=data_dir)


@pytest.mark.parametrize("databases", ["sqlite", "postgresql"], indirect=True)
def test_a_fleet_loses_nothing(databases, tmp_path, monkeypatch):
    monkeypatch.setattr(fleet, "start", start)
    url = databases.loaded().url.render_as_string(hide_password=False)
    outcome = run(databases.kind, url, tmp_path, PLAN)
    assert outcome.faults == []
    stored, tally = outcome.stored, outcome.world.tally
    assert stored["acknowledged"] >= 1
    assert all(stored[name] == 0 for name in NOTHING)
    assert stored["runs asked for"] >= 5
    assert stored["verdicts"].keys() <= {"accepted", "evidence_only"}  # late ones are of nodes that were away
    assert tally.answers["claim_lease", "200"] >= 2
    assert tally.lost.total() >= 5
    assert tally.cut >= 1
    assert tally.restarts.total() == 4
    assert outcome.counts["requests"]["heartbeat_node"] > 2 * PLAN.nodes
    # A process that is killed with its first heartbeat under way leaves one more that is news to the next.
    assert HeartbeatCounts.of(outcome).news <= PLAN.nodes + tally.restarts.total()
    assert outcome.waiting > PLAN.nodes / 2
    assert outcome.held < outcome.waiting / 2  # heartbeats and the look for all of them; no claim that waits
