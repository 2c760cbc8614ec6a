"""The clock of a database, and a host that has enrolled."""

import pytest

from tests.clocks import Clock, unset
from tests.nodes.hosts import Host


@pytest.fixture
def clock(database):
    clock = Clock(database)
    yield clock
    unset(database)


@pytest.fixture
def host(client):
    host = Host(client).enrol()
    assert host.heartbeat().status_code == 200
    return host
