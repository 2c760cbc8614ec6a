"""`ironlaw`, with a suite for tests beside those that ship, and a second for requests to arrive."""

from service.cli.main import main
from service.protocol.suites import shipped_suites
from service.worker import credential
from tests.worker.records import suite

if __name__ == "__main__":
    credential.SETTLED_SECONDS = 0.0
    shipped_suites()["tiny"] = suite(benchmarks=2, repeats=2)
    main()
