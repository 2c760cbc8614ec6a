"""A worker as `ironlaw worker run` starts it, in a process with named points and a disk that loses power.

Its times are shorter than those of the product, so that a case takes seconds. Started by the crew of
:mod:`tests.faults.field` out of a process that has imported all of it already.
"""

import errno
import functools
import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import httpx

from service.worker import agent, cli, client, credential, enrolment, heartbeat, process, retrying, uploader
from service.worker.errors import WorkerError
from service.worker.spool import ResultSpool
from service.worker.state_directory import (
    ClaimRequest,
    FinishedRun,
    HeldLease,
    Installation,
    Node,
    StateDirectory,
    lock_host,
)
from tests.faults.disk import Disk
from tests.faults.node_child import SECONDS
from tests.faults.points import Ledger, Points, around

ENROLMENT = (
    "enrol: installation kept",
    "enrol: sent",
    "enrol: answered",
    "enrol: credential kept",
    "enrol: node kept",
)
JOINING = (*ENROLMENT, "inventory: sent")
"""Reached on a host that is new."""
CLAIMING = (
    "claim: request kept",
    "claim: sent",
    "claim: granted",
    "lease: before fsync",
    "lease: kept",
)
MEASURING = ("child: started", "child: ended")
SPOOLING = (
    "spool: before fsync",
    "spool: after fsync, before rename",
    "spool: after rename, before folder fsync",
    "spool: kept",
)
UPLOADING = (
    "upload: before",
    "upload: sent",
    "upload: receipt read",
    "receipt: after rename, before folder fsync",
    "receipt: between folder fsyncs",
    "receipt: settled",
)
COMPLETING = (
    "run: finish kept",
    "complete: before",
    "complete: sent",
    "complete: answered",
    "lease: forgotten",
)
RELEASING = ("release: before", "release: sent", "release: answered")
"""Reached by a worker that starts with a lease of the one before."""
RENEWING = ("renew: sent", "renew: answered")
ROTATING = (
    "rotation: sent",
    "rotation: answered",
    "rotation: before fsync",
    "rotation: after fsync, before rename",
    "rotation: after rename, before folder fsync",
    "rotation: kept",
    "rotation: used",
    "rotation: settled",
)
"""Reached once an operator has asked for a rotation."""
KILLS = (
    *JOINING, *CLAIMING, *MEASURING, *SPOOLING, *UPLOADING, *COMPLETING, *RELEASING, *RENEWING, *ROTATING,
    "heartbeat: sent",
)  # fmt: skip
"""Where a worker is killed and its host loses power."""
FULL = ("full disk: lease", "full disk: result", "full disk: credential")
"""Where fsync says for a while that there is no room."""
FULL_CALLS = 3
OTHERS = {"child: killed": "kill the child", "worker: frozen past its lease": "freeze"}
"""Points with another action than to kill the worker."""

SHORTER = 0.05
"""Of every wait before something is tried again."""


def run(options):
    """Work as `ironlaw worker run` does. ``options``: see :class:`tests.faults.field.Host`."""
    _begin(options)
    home = Path(options["home"])
    cli.run(
        folder=home,
        spool_bytes=options["spool_bytes"],
        free_bytes=0,
        grace_seconds=2.0,
        accelerator=0,
        lock_file=Path(options["lock_file"]),
    )


def enrol(options):
    """Join as `ironlaw worker enrol` does."""
    _begin(options)
    enrolment.enrol_node(
        StateDirectory(Path(options["home"])),
        options["address"],
        options["token"],
        device="cpu",
        name=options["name"],
        ca_file=None,
        again=False,
    )


def is_busy(home, lock_file):
    """Whether a process of a worker is left: a child may outlive its worker for a moment."""
    for path in (Path(lock_file), Path(home) / "lock"):
        try:
            if path.exists():
                os.close(lock_host(path))
        except WorkerError:
            return True
    return False


def _begin(options):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65_536)), hard))
    log = os.open(options["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ[SECONDS] = str(options["child_seconds"])
    os.environ["PYTHONPATH"] = options["python_path"]
    ledger = Ledger(options["ledger"])
    points = Points(options["hits"], **options["armed"])
    _shorten()
    os.fsync = Disk(options["disk"], options["notes"]).watched(os.fsync)
    _mutate(options["mutation"])
    _watch_disk(points)
    _watch_requests(points)
    _watch_steps(points, ledger)


def _shorten():
    waited = retrying.Backoff.compute_wait_seconds
    retrying.Backoff.compute_wait_seconds = lambda self, after=0.0: SHORTER * waited(self, after)
    agent.LOOK_SECONDS = uploader.LOOK_SECONDS = 0.2
    agent._SHORTEST_POLL_SECONDS = 0.1
    heartbeat.SHORTEST_SECONDS, heartbeat.HOLD_SECONDS = 0.1, 0.5
    client.ANSWER_SECONDS, client.UPLOAD_SECONDS, client.CONNECT_SECONDS = 3.0, 3.0, 2.0
    credential.SETTLED_SECONDS = 2.0
    process.ChildProcesses = functools.partial(process.ChildProcesses, module="tests.faults.node_child")


_doing = threading.local()
"""What a thread is about, for what reaches the disk."""
MUTATIONS = {
    "no fsync of results": lambda path: not path.is_dir(),
    "no fsync of their folder": Path.is_dir,
}
"""What the harness must miss: the paths that are not brought to the disk while a result is spooled."""


def _mutate(mutation):
    fsync, is_left_out = os.fsync, MUTATIONS.get(mutation)

    def lazy(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if getattr(_doing, "what", None) != "spool" or not is_left_out(path):
            fsync(descriptor)

    if is_left_out is not None:
        os.fsync = lazy


def _watch_disk(points):
    fsync = os.fsync

    def watched(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        about = _about(path)
        full = {
            "lease": "full disk: lease",
            "spool": "full disk: result",
            "rotation": "full disk: credential",
        }
        if about in full and not path.is_dir() and points.is_reached(full[about], FULL_CALLS):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if about in ("spool", "rotation", "receipt"):
            if path.is_dir():
                points.reached(f"{about}: {_folder_step(about, path)}")
            else:
                points.reached(f"{about}: before fsync")
        elif about == "lease" and not path.is_dir():
            points.reached("lease: before fsync")
        fsync(descriptor)
        if about in ("spool", "rotation") and not path.is_dir():
            points.reached(f"{about}: after fsync, before rename")

    os.fsync = watched


def _folder_step(about, path):
    if about == "receipt" and path.name == "waiting":
        return "between folder fsyncs"
    return "after rename, before folder fsync"


def _about(path):
    doing = getattr(_doing, "what", None)
    if doing == "keep" and "heldlease" in path.name:
        return "lease"
    return doing


def _while(owner, name, what):
    """Note what a thread is about while it is in a function."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def doing(*args, **options):
        _doing.what = what
        try:
            return original(*args, **options)
        finally:
            _doing.what = None

    setattr(owner, name, doing)


def _watch_requests(points):
    """A point for each request once it has left, and before its answer is read."""

    def trace(point, event, _):
        if event == "http11.receive_response_headers.started":
            points.reached(point)

    def before(_, request, **__):
        point = f"{operation_of(request)}: sent"
        request.extensions["trace"] = functools.partial(trace, point)

    around(httpx.Client, "send", before=before)


def operation_of(request):
    path = request.url.path
    if "/benchmark-results/" in path:
        return "upload"
    if path.endswith("/inventory"):
        return "inventory"
    verb = path.rpartition(":")[2]
    if verb == "complete" and json.loads(request.content)["outcome"] == "released":
        return "release"
    return {"rotate": "rotation"}.get(verb, verb)


def _watch_steps(points, ledger):
    reached = points.reached

    def kept(_, __, message):
        named = {
            ClaimRequest: "claim: request kept",
            FinishedRun: "run: finish kept",
            HeldLease: "lease: kept",
            Installation: "enrol: installation kept",
            Node: "enrol: node kept",
        }
        reached(named[type(message)])

    def forgotten(_, __, shape):
        if shape is HeldLease:
            reached("lease: forgotten")

    _while(StateDirectory, "save_state", "keep")
    around(StateDirectory, "save_state", after=kept)
    around(StateDirectory, "delete_state", after=forgotten)
    around(client.ServiceClient, "enrol_node", after=lambda *_: reached("enrol: answered"))
    around(enrolment.WorkerCredentials, "store", after=lambda *_: reached("enrol: credential kept"))
    _watch_spool(reached, ledger)
    _watch_leases(reached, ledger)
    _watch_credential(reached)
    _watch_children(reached)


def _watch_spool(reached, ledger):
    def added(entry, _, result_id, content):
        ledger.note("kept", result=result_id, digest=entry.content_sha256, content=content.decode())
        reached("spool: kept")

    def receipt(answer, *_):
        ledger.note("receipt", result=answer.result_id, digest=answer.content_sha256, lease=answer.lease)
        reached("upload: receipt read")

    _while(ResultSpool, "add", "spool")
    _while(ResultSpool, "acknowledge", "receipt")
    around(ResultSpool, "add", before=lambda *_: reached("child: ended"), after=added)
    around(ResultSpool, "acknowledge", after=lambda *_: reached("receipt: settled"))
    around(client.ServiceClient, "upload_result", before=lambda *_: reached("upload: before"), after=receipt)


def _watch_leases(reached, ledger):
    def claimed(answer, *_):
        if answer is not None:
            ledger.note("granted", run=answer[0].id, token=answer[0].fencing_token)
            reached("claim: granted")

    def renewed(_, __, run, renewal):
        ledger.note("renewed", run=run, token=renewal.fencing_token)
        reached("renew: answered")

    def completing(_, __, completion):
        reached(f"{_ending(completion)}: before")

    def completed(answer, _, run, completion):
        said = {"outcome": completion.outcome, "state": answer.state}
        ledger.note("completed", run=run, token=completion.fencing_token, **said)
        reached(f"{_ending(completion)}: answered")

    around(client.ServiceClient, "claim_lease", after=claimed)
    around(client.ServiceClient, "renew_lease", after=renewed)
    around(client.ServiceClient, "complete_lease", before=completing, after=completed)


def _ending(completion):
    return "release" if completion.outcome == "released" else "complete"


def _watch_credential(reached):
    def is_rotating(self):
        return isinstance(self._stored.pending, str)

    def accepting(self, _):
        self.was_rotating = is_rotating(self)
        if self.was_rotating:
            reached("rotation: used")

    def accepted(_, self, __):
        if self.was_rotating:
            reached("rotation: settled")

    _while(credential.WorkerCredentials, "stage", "rotation")
    around(
        credential.WorkerCredentials, "stage",
        before=lambda *_: reached("rotation: answered"), after=lambda *_: reached("rotation: kept"),
    )  # fmt: skip
    around(credential.WorkerCredentials, "record_acceptance", before=accepting, after=accepted)


def _watch_children(reached):
    class Popen(subprocess.Popen):
        def __init__(self, command, **options):
            super().__init__(command, **options)
            if "measure" in command:
                reached("child: started", child=self)
                reached("child: killed", child=self)
                reached("worker: frozen past its lease", child=self)

    class Subprocess:
        def __getattr__(self, name):
            return getattr(subprocess, name)

    Subprocess.Popen = Popen
    process.subprocess = Subprocess()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
