"""Heartbeats: what they tell, what they are told, and how little of them is written."""

from datetime import timedelta

import pytest
from sqlalchemy import event, select

from service.app.application import attach_database as attach_to
from service.nodes.heartbeats import BEATS_A_WRITE, SILENCE, SILENCE_ELSEWHERE
from service.nodes.router import heartbeat_node
from service.nodes.tables import NodeRow
from service.protocol.canonical import compute_digest
from service.protocol.nodes import NodeHeartbeatRequest, NodeSoftware, NodeSpoolState
from tests.applications import KEYRING, OPEN, attach
from tests.nodes.fleet import add_node
from tests.nodes.hosts import BOOT, INVENTORY, INVENTORY_SHA256, Host, code
from tests.prepared import ON_SQLITE

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def written(database):
    """Row writes to the table of nodes, as they happen."""
    counted = []

    def count(*executed):
        _, _, statement, parameters, _, executemany = executed
        if statement.lstrip().upper().startswith("UPDATE NODES"):
            counted.extend(parameters if executemany else [parameters])

    event.listen(database.engine, "before_cursor_execute", count)
    yield counted
    event.remove(database.engine, "before_cursor_execute", count)


@pytest.fixture
def commits(database):
    """Transactions that were committed, as they are."""
    counted = []

    def count(connection):
        counted.append(connection)

    event.listen(database.engine, "commit", count)
    yield counted
    event.remove(database.engine, "commit", count)


BEAT = NodeHeartbeatRequest(
    boot_id_sha256=BOOT,
    worker_version="1.0",
    inventory_sha256=INVENTORY_SHA256,
    activity="idle",
    spool=NodeSpoolState(waiting_count=0, waiting_bytes=0),
)


class Fleet:
    """Nodes that speak to one process, every half minute."""

    def __init__(self, state, database, clock):
        self.state, self._database, self._clock = state, database, clock

    def nodes(self, count):
        return [add_node(self._database, f"node-{number}") for number in range(count)]

    def say(self, node):
        state = self.state
        return heartbeat_node(
            transactions=state.transactions,
            heartbeats=state.heartbeats,
            missing_results=state.missing_results,
            node=node,
            id=node.id,
            body=BEAT,
        )

    def beat(self, nodes, rounds):
        """For some rounds; the process writes what is due every five seconds."""
        for _ in range(rounds):
            for node in nodes:
                assert self.say(node).status_code == 200
            for _ in range(6):
                self.state.heartbeats.write()
            self._clock.move(seconds=30)


@pytest.fixture
def fleet(app, database, clock):
    attach(app, database)
    return Fleet(app.state, database, clock)


class TestWrites:
    @pytest.mark.parametrize(("count", "rounds"), [(1, 120), (40, 24)])
    @ON_SQLITE
    def test_a_heartbeat_costs_less_than_a_tenth_of_a_write(self, fleet, written, count, rounds):
        fleet.beat(fleet.nodes(count), rounds)  # from the first on, whose boot is news
        print(f"{len(written)} row writes in {rounds * count} heartbeats of {count} nodes")
        assert 0.05 < len(written) / (rounds * count) <= 0.1

    def test_what_is_due_is_written_in_one_transaction(self, fleet, commits, written):
        nodes = fleet.nodes(20)
        fleet.beat(nodes, 1)
        for _ in range(BEATS_A_WRITE):
            for node in nodes:
                fleet.say(node)
        commits.clear()
        written.clear()
        assert fleet.state.heartbeats.write() == 20
        assert (len(commits), len(written)) == (1, 20)
        assert fleet.state.heartbeats.write() == 0

    def test_a_stop_writes_down_what_was_heard(self, client, host, clock, database):
        clock.move(seconds=30)
        host.heartbeat(activity="measuring")
        client.app.state.heartbeats.write(1)
        with database.open_reader() as session:
            row = session.scalars(select(NodeRow)).one()
        assert (row.last_seen_at, row.activity) == (clock.at, "measuring")

    def test_a_heartbeat_that_says_nothing_new_commits_nothing(self, host, commits):
        commits.clear()
        host.heartbeat()
        assert commits == []

    def test_a_new_version_is_written_at_once(self, host, database):
        host.heartbeat(worker_version="1.1")
        with database.open_reader() as session:
            assert session.scalars(select(NodeRow)).one().worker_version == "1.1"


class TestWhatIsShown:
    def test_what_the_node_said_last(self, client, host, clock):
        clock.move(seconds=30)
        spool = {
            "waiting_count": 3,
            "waiting_bytes": 4096,
            "rejected_count": 1,
            "free_bytes": 10**9,
            "is_full": False,
        }
        host.heartbeat(activity="measuring", spool=spool)
        shown = client.get(host.url).json()
        assert shown["reachable"] is True
        assert shown["activity"] == "measuring"
        assert shown["spool"] == spool
        assert shown["last_seen_at"] == clock.at.isoformat().replace("+00:00", "Z")
        listed = client.get("/v1/nodes").json()["items"]
        assert listed == [{key: value for key, value in shown.items() if key != "inventory"}]

    def test_a_silent_node_is_unreachable(self, client, host, clock):
        clock.move(seconds=SILENCE.total_seconds())
        assert client.get(host.url).json()["reachable"] is True
        clock.move(seconds=1)
        assert client.get(host.url).json()["reachable"] is False
        host.heartbeat()
        assert client.get(host.url).json()["reachable"] is True

    @ON_SQLITE
    def test_a_node_that_never_spoke_is_not_reachable(self, client):
        shown = client.get(Host(client).enrol().url).json()
        assert shown["reachable"] is False
        assert "last_seen_at" not in shown

    def test_another_process_knows_what_was_written(self, client, host, clock, app, database):
        heard = client.get(host.url).json()
        attach(app, database)
        app.state.held_keys.refresh()
        assert client.get(host.url).json() == heard
        clock.move(seconds=SILENCE_ELSEWHERE.total_seconds())
        assert client.get(host.url).json()["reachable"] is True
        clock.at += timedelta(seconds=1)
        clock.set(clock.at)
        assert client.get(host.url).json()["reachable"] is False

    def test_filters(self, client, host):
        drained = Host(client).enrol()
        client.post(f"{drained.url}:drain")

        def ids(query):
            return {item["id"] for item in client.get(f"/v1/nodes?{query}").json()["items"]}

        assert ids("state=draining") == {drained.id}
        assert ids("state=active&state=draining") == {host.id, drained.id}
        assert ids("device=cuda") == set()
        page = client.get("/v1/nodes?page_size=1").json()
        rest = client.get(f"/v1/nodes?page_size=1&page_token={page['next_page_token']}").json()
        assert {item["id"] for item in page["items"] + rest["items"]} == {host.id, drained.id}
        assert rest["next_page_token"] is None


class TestInventory:
    def test_it_is_asked_for_until_it_is_there(self, client, host):
        assert host.heartbeat().json()["send_inventory"] is True
        assert host.send_inventory().json() == {"inventory_sha256": INVENTORY_SHA256}
        assert host.heartbeat().json()["send_inventory"] is False
        shown = client.get(host.url).json()
        assert shown["inventory_sha256"] == INVENTORY_SHA256
        assert shown["inventory"] == INVENTORY.model_dump(mode="json")

    def test_sent_again_it_is_the_same(self, host):
        assert host.send_inventory().json() == host.send_inventory().json()

    @ON_SQLITE
    def test_what_holds_now_is_what_the_node_says(self, client, host):
        host.send_inventory()
        changed = INVENTORY.model_copy(update={"software": []})
        host.send_inventory(changed)
        assert client.get(host.url).json()["inventory_sha256"] == compute_digest(changed)
        host.heartbeat()  # with the first
        assert client.get(host.url).json()["inventory_sha256"] == INVENTORY_SHA256
        assert client.get(host.url).json()["inventory"] == INVENTORY.model_dump(mode="json")

    def test_a_claim_names_it(self, host):
        assert code(host.claim()) == (409, "INVENTORY_UNKNOWN")
        host.send_inventory()
        assert host.claim().status_code == 204
        assert host.claim(inventory_sha256="0" * 64).status_code == 409


class TestQuotaOfInventories:
    """Every inventory that a node ever named is kept, so a day has an end to them."""

    @staticmethod
    def allow(client, **quota):
        state = client.app.state
        state.node_quota = state.node_quota._replace(**quota)

    @staticmethod
    def inventories(number):
        softwares = [[NodeSoftware(name="numpy", version=f"2.{count}")] for count in range(number)]
        return [INVENTORY.model_copy(update={"software": software}) for software in softwares]

    def test_so_many_a_day_and_again_the_next(self, client, host, clock):
        self.allow(client, inventories=2)
        first, second, third = self.inventories(3)
        assert [host.send_inventory(one).status_code for one in (first, second)] == [200, 200]
        refused = host.send_inventory(third)
        assert code(refused) == (429, "NODE_QUOTA_SPENT")
        assert client.get(host.url).json()["inventory_sha256"] == compute_digest(second)
        assert host.send_inventory(first).status_code == 200
        clock.move(seconds=int(refused.headers["retry-after"]))
        assert host.send_inventory(third).status_code == 200

    @ON_SQLITE
    def test_so_many_bytes(self, client, host):
        first, second = self.inventories(2)
        self.allow(client, inventory_bytes=2 * len(first.model_dump_json()) - 1)
        assert host.send_inventory(first).status_code == 200
        assert code(host.send_inventory(second)) == (429, "NODE_QUOTA_SPENT")

    def test_a_node_that_enrols_again_has_no_other_day(self, client, host):
        self.allow(client, inventories=1)
        first, second = self.inventories(2)
        assert host.send_inventory(first).status_code == 200
        host.enrol()
        assert code(host.send_inventory(second)) == (429, "NODE_QUOTA_SPENT")

    @ON_SQLITE
    def test_settings_say_how_many(self, app, database):
        few = OPEN.model_copy(
            update={
                "node_results_per_day": 1,
                "node_result_bytes_per_day": 2,
                "node_inventories_per_day": 3,
                "node_inventory_bytes_per_day": 4,
            }
        )
        attach_to(app, database, few, KEYRING)
        assert app.state.node_quota == (1, 2, 3, 4)


def test_results_that_are_not_stored_are_asked_for_again(host):
    held = ["a" * 64, "b" * 64]
    assert host.heartbeat(acknowledged=held).json()["missing"] == held
