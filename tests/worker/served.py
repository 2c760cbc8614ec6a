"""`ironlaw`, with a suite for tests beside those that ship."""

from service.cli import main
from service.protocol.suites import shipped_suites
from tests.worker.records import suite

if __name__ == "__main__":
    shipped_suites()["tiny"] = suite(benchmarks=2, repeats=2)
    main()
