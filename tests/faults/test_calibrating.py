"""The service is killed while it draws, withdraws and imports: what counts is what was asked for, once.

The mutations show that the checks of :mod:`tests.faults.calibrations` see what they are there for.
"""

import signal
import time
from types import SimpleNamespace

import pytest

from tests.faults.calibrations import is_drawn_or_passed_over
from tests.faults.field import PATIENCE_SECONDS, SEED, Field, Violation
from tests.faults.harness import TIMES
from tests.faults.node_service import CALIBRATING
from tests.faults.storm import Storm

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
HOSTS = 2


def test_what_counts_outlives_kills(databases, tmp_path, report):
    began = time.monotonic()
    with Field(databases.loaded(), tmp_path, hosts=HOSTS) as field:
        storm = Storm(field, tmp_path)
        storm.run((), CALIBRATING * TIMES)
        stored = field.check()
        hits = storm.hits()
    assert {point: hits[point] for point in CALIBRATING if hits[point] < TIMES} == {}
    report(
        "Service killed while it draws, withdraws and imports",
        database=databases.kind,
        seed=SEED,
        hosts=HOSTS,
        **{f"kills, {point}": hits[point] for point in CALIBRATING},
        runs_completed=stored.counts()["completed"],
        **stored.calibrations.counts(),
        minutes=f"{(time.monotonic() - began) / 60:.1f}",
    )


def draw_twice(field):
    """The service is killed when it has drawn a set and has not said so: it draws again."""
    (host,) = field.hosts
    field.service.kill()
    field.service.start(point="draw: committed, not answered")
    field.service.until_ready()
    field.ask_run()
    host.start()
    field.service.process.join(PATIENCE_SECONDS)
    assert field.service.process.exitcode == -signal.SIGKILL
    field.service.start()
    field.service.until_ready()
    field.settle()
    field.check()


def withdraw_the_first(field):
    """All that a node has measured is withdrawn, and drawn from again."""
    (host,) = field.hosts
    field.ask_run()
    host.start()
    field.withdraw()
    field.settle()
    field.check()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    ("case", "mutation"), [(draw_twice, "no set before"), (withdraw_the_first, "no withdrawals")]
)
def test_the_harness_sees_a_set_that_is_drawn_twice(one_host, kind, case, mutation):
    field = one_host(kind, service_mutation=mutation)
    with pytest.raises(Violation, match=r"is drawn twice|one set of .* counts"):
        case(field)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("case", [draw_twice, withdraw_the_first])
def test_what_was_drawn_and_withdrawn_stays_so(one_host, kind, case):
    case(one_host(kind))


@pytest.mark.parametrize(
    ("sets", "later", "holds"),
    [
        ([(3, ["one"])], [], True),
        ([(3, ["other"]), (4, ["another"])], [3.5] * 20, True),
        ([(3, ["other"]), (4, ["another"])], [3.5] * 19, False),
        ([(3, ["other"]), (4, ["another"])], [4.5] * 20, False),
        ([(1, ["other"]), (3, ["another"])], [3.5] * 5, True),
        ([(1, ["other"]), (3, ["another"])], [3.5] * 4, False),
    ],
)
def test_a_result_is_in_a_set_unless_drawings_come_late(sets, later, holds):
    """Its verdict is of second 2; a drawing reads 20 runs, and figures are of five."""
    drawn = [SimpleNamespace(created_at=time, new_result_ids=ids) for time, ids in sets]
    assert is_drawn_or_passed_over(drawn, "one", [2, *later]) == holds
