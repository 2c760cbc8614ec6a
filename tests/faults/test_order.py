"""What concurrent callers are answered under kills, pauses and partitions is what some order explains."""

import contextlib
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.app.storage import upgrade_schema
from service.kit.database.engine import Database
from tests.faults.harness import Server
from tests.faults.histories import is_explained
from tests.faults.relay import Relay
from tests.faults.scene import KINDS, Scene, Troubles
from tests.prepared import fill_directory

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

ROUNDS = int(os.environ.get("IRONLAW_FAULTS_TIMES", "10"))
SEED = int(os.environ.get("IRONLAW_FAULTS_SEED", "1"))


@pytest.fixture
def staged(tmp_path, request):
    """Makes a scene on a database of a kind, and what stands between the two."""
    with contextlib.ExitStack() as ending:

        def stage(kind, mutation=""):
            if kind == "sqlite":
                fill_directory(tmp_path)
                url, relay, processes = f"sqlite:///{tmp_path}/ironlaw.db", None, 1
            else:
                request.getfixturevalue("postgresql")  # starting it gave the package its directory
                folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="ironlaw-"))
                server = Server(Path(folder) / "data", tcp=True)
                server.start()
                ending.callback(server.stop)
                direct = Database(server.url)
                upgrade_schema(direct)
                direct.dispose()
                relay = Relay(direct.url.query["port"])
                ending.callback(relay.close)
                url, processes = (
                    server.url.replace(f"port={direct.url.query['port']}", f"port={relay.port}"),
                    2,
                )
            scene = Scene(tmp_path, url, processes, SEED, mutation)
            ending.callback(scene.end)
            scene.begin()
            return scene, relay

        yield stage


def play(scene, kinds, rounds):
    """The histories of each kind, one after the other; kinds at the same time."""
    with ThreadPoolExecutor(len(kinds)) as pool:
        playing = {
            kind: pool.submit(lambda kind=kind: [getattr(scene, kind)() for _ in range(rounds)])
            for kind in kinds
        }
        return {kind: work.result() for kind, work in playing.items()}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_every_history_is_explained_by_calls_one_at_a_time(staged, kind, report):
    began = time.monotonic()
    scene, relay = staged(kind)
    with Troubles(scene, relay) as troubles:
        histories = play(scene, KINDS, ROUNDS)
    for name, played in histories.items():
        calls = [call for history, _ in played for call in history]
        unexplained = [history for history, model in played if not is_explained(history, model, model.step)]
        told = "\n".join(map(str, sorted(unexplained[0], key=lambda call: call.begun))) if unexplained else ""
        assert not unexplained, told
        report(
            "Histories of concurrent calls, each explained by calls one at a time",
            database=kind,
            processes=len(scene.places),
            of={"vote": "approvals", "spend": "budgets", "reprice": "quotes", "lease": "leases"}[name],
            histories=len(played),
            calls=len(calls),
            not_answered=sum(call.answered == "unknown" for call in calls),
            **{trouble: troubles.done[trouble] for trouble in ("kills", "pauses", "partitions", "cuts")},
            unexplained=0,
            minutes=f"{(time.monotonic() - began) / 60:.1f}",
        )


def test_a_history_without_fencing_is_not_explained(staged):
    scene, _ = staged("sqlite", "no fencing")
    history, model = scene.lapsed_lease()
    assert history[-1].answered == "ok"
    assert not is_explained(history, model, model.step)
