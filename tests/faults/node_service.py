"""The service as `ironlaw serve` starts it, in a process with named points around its transactions."""

import contextlib
import json
import os
import sys
from dataclasses import replace
from datetime import timedelta

from service.app import application as app
from service.app.background import service as background
from service.benchmarks import service as results
from service.benchmarks.validation import service as validation
from service.calibrations import service as calibrations
from service.calibrations.repository import WithdrawnResults
from service.cli import main as cli
from service.evidence.imports import service as imports
from service.kit.database.engine import Database
from service.kit.jobs import leases as kit_leases
from service.nodes import credentials, leases
from service.nodes import service as nodes
from service.protocol.suites import BenchmarkSuite
from tests.faults.points import Points, around

LEASE_SECONDS, GRACE_SECONDS, RENEW_SECONDS = 2.0, 0.5, 0.4
JOB_LEASE = timedelta(seconds=2)


def _around_commits(*writes):
    return tuple(
        f"{write}: {step}" for write in writes for step in ("before commit", "committed, not answered")
    )


CALIBRATING = _around_commits("draw", "withdraw", "import")
"""What the service commits of measurements that count; a job is not answered but done."""
KILLS = _around_commits(
    "ask", "enrol", "inventory", "news", "claim", "renew", "result", "complete", "rotate", "confirm", "lose",
    "validate",
)  # fmt: skip
"""What the service commits for nodes and their runs."""
DRAWN = "host_stream"
"""The benchmark whose results are accepted and make a figure; nobody checks what an FFT computed."""
_FFT = {"kind": "fft", "dtype": "fp32", "points": 64, "batch": 1}
_COPY = {"kind": "host_stream", "pattern": "copy", "array_bytes": 2**20}
_BENCHMARKS = (
    ("fft", _FFT, "flops_per_second", "5 n log2 n", 2),
    (DRAWN, _COPY, "bytes_per_second", "2 array", 1),
)
SUITE = BenchmarkSuite.model_validate(
    {
        "id": "tiny",
        "version": 1,
        "title": "A suite for tests of faults",
        "device": "cpu",
        "benchmarks": [
            {
                "name": name,
                "work": work,
                "metric": metric,
                "direction": "higher",
                "formula": formula,
                "repeats": repeats,
                "timeout_seconds": 20.0,
            }
            for name, work, metric, formula, repeats in _BENCHMARKS
        ],
    }
)
REPEATS = [(benchmark.name, n + 1) for benchmark in SUITE.benchmarks for n in range(benchmark.repeats)]
"""What a whole run has a result of."""


def run(options):
    """Serve as `ironlaw serve` does. ``options``: see :class:`tests.faults.field.Service`."""
    log = os.open(options["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(options["environment"])
    points = Points(options["hits"], **options["armed"])
    app.shipped_suites = lambda: {SUITE.id: SUITE}
    _shorten()
    MUTATIONS[options["mutation"]]()
    _watch(points)
    cli.serve(ask=False)


def _shorten():
    leases.LEASE_SECONDS, leases.RENEW_SECONDS = LEASE_SECONDS, RENEW_SECONDS
    leases._HELD_SECONDS = LEASE_SECONDS + GRACE_SECONDS
    leases.RELEASED_SECONDS = 0.1
    nodes.HEARTBEAT_SECONDS = 0.5
    # A job whose process was killed is somebody else's once its lease has ended.
    kinds = background.list_kinds
    background.list_kinds = lambda means: tuple(replace(kind, lease=JOB_LEASE) for kind in kinds(means))
    # Claims settle what has lapsed; the schedules have tests of their own.
    background.list_schedules = lambda *_: ()


def _without_fencing():
    """Every holder's token is taken for the one that holds."""
    checked = kit_leases.write_row

    def write(session, table, lease, *conditions, **values):
        row = session.get(table, lease.id, populate_existing=True)
        held = lease if row is None else row.lease
        return checked(session, table, held, *conditions, **values)

    kit_leases.write_row = write


def _without_lateness():
    """Every result is taken as one of the lease that holds."""
    results.nodes.resolve_receipt_state = lambda *_, **__: "current"
    results.repository.set_aside_attempts = results.repository.count_attempt = lambda *_: None


def _without_the_set_before():
    """A drawing does not see what counts already."""
    calibrations.repository.get_current = lambda *_: None


def _without_withdrawals():
    """A drawing does not know whose results were withdrawn."""
    calibrations.repository.get_withdrawn_results = lambda *_: WithdrawnResults(frozenset(), None)


MUTATIONS = {
    "": lambda: None,
    "no fencing": _without_fencing,
    "no lateness": _without_lateness,
    "no set before": _without_the_set_before,
    "no withdrawals": _without_withdrawals,
}


def _watch(points):
    """A point before and after the commit of each transaction, named by what was done in it."""

    def named(name):
        def after(result, *args, **_):
            session = next((one for one in args if hasattr(one, "info")), None)
            if result is not None and session is not None:
                session.info.setdefault("write", name)

        return after

    writing = Database.open_writer

    @contextlib.contextmanager
    def watched(self, **options):
        done = ""
        with writing(self, **options) as session:
            yield session
            session.flush()
            done = session.info.get("write", "")
            points.reached(f"{done}: before commit")
        points.reached(f"{done}: committed, not answered")

    Database.open_writer = watched
    around(results, "create_run", after=named("ask"))
    around(results, "keep", after=named("result"))
    around(results, "complete_lease", after=named("complete"))
    around(leases, "claim_lease", after=named("claim"))
    around(leases, "renew_lease", after=named("renew"))
    around(leases, "_mark_lost", after=lambda _, session, *__: session.info.update(write="lose"))
    around(validation, "store_examined", after=lambda _, session, *__: session.info.update(write="validate"))
    drew = lambda new, session, *__: new.ids and session.info.update(write="draw")  # noqa: E731
    around(calibrations, "store_calibrations", after=drew)
    around(calibrations, "withdraw_calibration", after=named("withdraw"))
    around(imports, "store_evidence", after=named("import"))
    around(nodes.EnrolmentService, "enrol_node", after=named("enrol"))
    around(nodes.EnrolmentService, "rotate_credential", after=named("rotate"))
    around(nodes, "store_inventory", after=named("inventory"))
    around(nodes, "apply_heartbeat", after=named("news"))
    around(
        credentials.NodeAuthenticator, "_confirm_credential",
        after=lambda _, __, session, *___: session.info.update(write="confirm"),
    )  # fmt: skip


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
