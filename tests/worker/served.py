"""`ironlaw`, with a suite for tests beside those that ship, and a second for requests to arrive."""

from service.protocol.suites import shipped_suites
from service.worker import credential
from tests import forking
from tests.worker.records import suite


def ironlaw(*words):
    """The command, in a process that has imported it."""
    credential.SETTLED_SECONDS = 0.0
    shipped_suites()["tiny"] = suite(benchmarks=2, repeats=2)
    return forking.ironlaw(*words)
