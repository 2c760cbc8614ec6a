"""Calibrations: drawn of what was accepted, numbered, superseded, withdrawn, and of one tenant alone."""

import pytest
from sqlalchemy import select, update

from service.app.background.calibrations import build_calibration_kind
from service.benchmarks.calibration_jobs import enqueue_calibration
from service.benchmarks.tables import BenchmarkResultRow
from service.benchmarks.validation.tables import BenchmarkValidationRow
from service.calibrations import service as calibrations
from service.evidence.service import load_reference_curves
from service.planning.hardware.calibration import OperatorQuantity, ServingQuantity
from service.planning.hardware.calibration.measured import MeasuredScope
from service.planning.precision import NumberFormat
from tests.applications import MEANS, attach
from tests.benchmarks.measured_nodes import MeasuredNodes
from tests.benchmarks.planned import SUITE, Planned, device, work
from tests.conftest import Client
from tests.working import do_all

REFERENCE = load_reference_curves().calibration
USUAL = Planned(device()).figure
SLOW = Planned(device(), stream=0.5).figure
FEW = (
    SUITE[0],
    *(one for one in SUITE if one[0] == "copy"),
    ("read", work("stream", pattern="read", array_bytes=2**32), "bytes_per_second"),
)
"""A product, a copy, and a read that no figure takes beside the copy."""
PEAK = (OperatorQuantity.MATRIX_PEAK, NumberFormat.BF16)
BANDWIDTH = (OperatorQuantity.BANDWIDTH, None)


@pytest.fixture
def fleet(database):
    return MeasuredNodes(database)


def draw(database, node="node", tenant="default"):
    with database.open_writer() as session:
        return calibrations.calibrate_node(session, tenant, node, REFERENCE)


def held(database, tenant="default"):
    with database.open_reader() as session:
        return calibrations.build_planning_values(session, tenant).calibrations


def states(database, *ids):
    with database.open_reader() as session:
        found = calibrations.get_states(session, "default", ids)
    return [found[each].state for each in ids]


def withdraw(database, calibration_id):
    with database.open_writer() as session:
        return calibrations.withdraw_calibration(session, "default", calibration_id, "too hot")


def test_a_node_as_planning_has_it_is_drawn_as_planning_has_it(fleet, database):
    fleet.node("node")
    fleet.run("node", USUAL)
    (drawn,) = draw(database)
    (found,) = held(database)
    assert (found.id, found.scope) == (drawn, MeasuredScope("cuda", "node", "h100-sxm", "hopper", 700.0, 575))
    rates = device().machine.rates
    peak, stream = found.operators[PEAK], found.operators[BANDWIDTH]
    assert peak.value / peak.limit == pytest.approx(rates.matrix_peak[NumberFormat.BF16])
    assert stream.value / stream.limit == pytest.approx(rates.bandwidth)
    assert found.serving[ServingQuantity.WEIGHT_BANDWIDTH].limit == stream.limit
    assert draw(database) == ()
    assert held(database, "other") == ()


def test_what_a_set_brought_goes_with_it(fleet, database):
    fleet.node("node")
    fleet.run("node", USUAL, benchmarks=FEW)
    (first,) = draw(database)
    before = held(database)
    fleet.run("node", SLOW, benchmarks=FEW)
    (second,) = draw(database)
    assert states(database, first, second) == ["superseded", "active"]
    assert held(database)[0].operators[BANDWIDTH].value < 0.8 * before[0].operators[BANDWIDTH].value

    withdraw(database, second)
    assert held(database) == before
    assert draw(database) == ()
    withdraw(database, first)
    assert held(database) == ()
    assert draw(database) == ()

    fleet.run("node", USUAL, benchmarks=FEW)
    (third,) = draw(database)
    assert held(database)[0].operators[BANDWIDTH].runs == 1
    with database.open_reader() as session:
        assert calibrations.get_calibration(session, "default", third)["number"] == 3


def test_a_superseded_set_that_is_withdrawn_takes_its_results_out_of_the_later_one(fleet, database):
    fleet.node("node")
    fleet.run("node", USUAL, benchmarks=FEW)
    (first,) = draw(database)
    fleet.run("node", SLOW, benchmarks=FEW)
    draw(database)
    withdraw(database, first)
    (after,) = draw(database)
    (found,) = held(database)
    half = device().machine.rates.bandwidth / 2
    stream = found.operators[BANDWIDTH]
    assert (found.id, stream.runs) == (after, 1)
    assert stream.value / stream.limit == pytest.approx(half, rel=1e-3)


def test_no_set_that_rests_on_what_was_withdrawn_counts_again(fleet, database):
    fleet.node("node")
    drawn = []
    for factors in (USUAL, SLOW, USUAL):
        fleet.run("node", factors, benchmarks=FEW)
        drawn += draw(database)
    withdraw(database, drawn[1])
    (fourth,) = draw(database)
    assert states(database, *drawn, fourth) == ["superseded", "withdrawn", "superseded", "active"]
    # The third rests on what the second brought; what it brought itself goes with the fourth.
    withdraw(database, fourth)
    assert states(database, *drawn, fourth) == ["active", "withdrawn", "superseded", "withdrawn"]
    assert draw(database) == ()


def test_what_is_withdrawn_while_it_is_drawn_again_is_not_kept(fleet, database):
    fleet.node("node")
    fleet.run("node", USUAL, benchmarks=FEW)
    (first,) = draw(database)
    fleet.run("node", SLOW, benchmarks=FEW)
    with database.open_reader() as session:
        prepared = calibrations.prepare_calibrations(session, "default", "node", REFERENCE)
    withdraw(database, first)
    with database.open_writer() as session:
        assert calibrations.store_calibrations(session, "default", prepared) == ((), ())
    assert held(database) == ()
    assert len(draw(database)) == 1


def test_what_is_no_longer_accepted_counts_no_more(fleet, database):
    fleet.node("node")
    fleet.run("node", USUAL, benchmarks=FEW)
    (drawn,) = draw(database)
    with database.open_writer() as session:
        session.execute(update(BenchmarkValidationRow).values(verdict="rejected"))
    assert draw(database) == ()
    assert (held(database), states(database, drawn)) == ((), ["superseded"])


def test_a_set_that_brought_nothing_takes_what_it_read(fleet, database):
    fleet.node("node")
    fleet.run("node", USUAL, benchmarks=FEW)
    slow = fleet.run("node", SLOW, benchmarks=FEW)
    (first,) = draw(database)
    ids = select(BenchmarkResultRow.id).where(BenchmarkResultRow.run_id == slow)
    with database.open_writer() as session:
        of_slow = BenchmarkValidationRow.result_id.in_(ids)
        session.execute(update(BenchmarkValidationRow).where(of_slow).values(verdict="rejected"))
    (second,) = draw(database)
    withdraw(database, second)
    assert draw(database) == ()
    assert (held(database), states(database, first, second)) == ((), ["superseded", "withdrawn"])


def test_only_what_was_accepted_counts(fleet, database):
    fleet.node("node")
    fleet.run("node", SLOW, benchmarks=FEW, verdict="suspect")
    assert draw(database) == ()
    kept = fleet.run("node", USUAL, benchmarks=FEW)
    (drawn,) = draw(database)
    with database.open_reader() as session:
        shown = calibrations.get_calibration(session, "default", drawn)
    assert {run for figure in shown["figures"] for run in figure["run_ids"]} == {kept}


def test_another_driver_begins_anew_and_another_limit_is_another_device(fleet, database):
    fleet.node("node")
    fleet.run("node", USUAL, benchmarks=FEW)
    (first,) = draw(database)
    fleet.node("node", driver="580.10")
    fleet.run("node", SLOW, benchmarks=FEW)
    (second,) = draw(database)
    (found,) = held(database)
    assert (found.scope.driver_major, found.operators[BANDWIDTH].runs) == (580, 1)
    fleet.node("node", driver="580.10", power=500.0)
    fleet.run("node", USUAL, benchmarks=FEW)
    (third,) = draw(database)
    assert states(database, first, second, third) == ["superseded", "active", "active"]
    assert [each.scope.power_limit_watts for each in held(database)] == [700.0, 500.0]


def test_a_processor_and_an_unknown_accelerator_have_rates_without_limits(fleet, database):
    fleet.node("cpu", device="cpu")
    fleet.run("cpu", USUAL, benchmarks=FEW)
    draw(database, "cpu")
    (found,) = held(database)
    assert found.scope == MeasuredScope("cpu", "cpu", None, None, None, None)
    assert found.operators[BANDWIDTH].limit is None
    fleet.node("new", model="NVIDIA X900")
    fleet.run("new", USUAL, benchmarks=FEW)
    draw(database, "new")
    found = held(database)[-1]
    assert found.scope == MeasuredScope("cuda", "new", None, None, 700.0, 575)
    assert found.operators[PEAK].limit is None


def test_a_node_that_proved_bad_brings_nothing_back_that_was_not_drawn_yet(fleet, database):
    fleet.node("node")
    fleet.run("node", USUAL, benchmarks=FEW)
    draw(database)
    fleet.run("node", SLOW, benchmarks=FEW)
    with database.open_writer() as session:
        calibrations.withdraw_node_calibrations(session, "default", "node", "its memory reports errors")
    assert (draw(database), held(database)) == ((), ())


@pytest.fixture
def client(app, database):
    attach(app, database)
    made = Client(app)
    yield made
    made.close()


def drawings(client):
    """What the audit says was drawn."""
    events = client.get("/v1/audit-events?page_size=500").json()["items"]
    return {event["resource"] for event in events if event["operation"] == "draw_calibration"}


def test_a_set_that_is_superseded_or_revived_is_recorded(client, fleet, database):
    fleet.node("node")
    ids = []
    for figure in (USUAL, SLOW):
        run = fleet.run("node", figure)
        with database.open_writer() as session:
            enqueue_calibration(session, "default", "node", because=run)
        do_all(database, build_calibration_kind(MEANS.writes))
        items = client.get("/v1/calibrations?state=active").json()["items"]
        ids.append(items[0]["id"])
    assert len(set(ids)) == 2
    url = f"/v1/calibrations/{ids[1]}:withdraw"
    assert client.post(url, {"reason": "too hot"}).status_code == 200
    events = client.get("/v1/audit-events?page_size=500").json()["items"]
    told = [(e["operation"], e["resource"].removeprefix("calibrations/")) for e in reversed(events)]
    assert told[1:] == [
        ("draw_calibration", ids[0]),
        ("draw_calibration", ids[0]),
        ("draw_calibration", ids[1]),
        ("withdraw_calibration", ids[0]),
        ("withdraw_calibration", ids[1]),
    ]


def test_over_http(client, fleet, database):
    for node in ("good", "bad"):
        fleet.node(node)
        run = fleet.run(node, USUAL if node == "good" else SLOW, benchmarks=FEW, sm_clock_hz=1.98e9)
        with database.open_writer() as session:
            enqueue_calibration(session, "default", node, because=run)
    assert client.get("/v1/calibrations").json()["items"] == []
    assert do_all(database, build_calibration_kind(MEANS.writes)) == 2
    listed = client.get("/v1/calibrations", params={"page_size": 1})
    rest = client.get(
        "/v1/calibrations", params={"page_size": 1, "page_token": listed.json()["next_page_token"]}
    )
    shown = {each["node_id"]: each for page in (listed, rest) for each in page.json()["items"]}
    assert shown.keys() == {"good", "bad"}
    assert drawings(client) == {f"calibrations/{each['id']}" for each in shown.values()}

    details = client.get(f"/v1/calibrations/{shown['bad']['id']}").json()
    assert {name: details[name] for name in shown["bad"]} == shown["bad"]
    (stream,) = (each for each in details["figures"] if each["name"] == "operators.bandwidth")
    assert stream["share"] == pytest.approx(stream["value"] / stream["limit"])
    assert (stream["unit"], stream["conditions"]["sm_clock_hz"]) == ("bytes_per_second", 1.98e9)
    for result_id in stream["result_ids"]:
        assert client.get(f"/v1/benchmark-results/{result_id}").json()["benchmark"] in stream["benchmarks"]

    snapshots = client.app.state.snapshots
    snapshots.refresh()
    assert len(snapshots.get_current("default").calibrations) == 2
    reason = {"node_id": "bad", "reason": "Its memory reports errors"}
    withdrawn = client.post("/v1/calibrations:withdraw", json=reason)
    assert [each["node_id"] for each in withdrawn.json()["items"]] == ["bad"]
    assert [each.scope.node_id for each in snapshots.get_current("default").calibrations] == ["good"]
    assert snapshots.get_current("default").revision == int(withdrawn.headers["Catalog-Revision"])
    again = client.post("/v1/calibrations:withdraw", json=reason)
    assert (again.status_code, again.json()["code"]) == (409, "NOTHING_TO_WITHDRAW")
    one = f"/v1/calibrations/{shown['bad']['id']}"
    assert client.get(one).json()["reason"] == reason["reason"]
    assert client.post(f"{one}:withdraw", json={"reason": "again"}).json()["code"] == "CALIBRATION_WITHDRAWN"
    active = client.get("/v1/calibrations", params={"state": "active"}).json()["items"]
    assert [each["node_id"] for each in active] == ["good"]
    event = client.get("/v1/audit-events").json()["items"][0]
    assert (event["operation"], event["resource"]) == (
        "withdraw_node_calibrations",
        "nodes/bad/calibrations",
    )
