"""A process that works on searches as `ironlaw worker background` does, with named points around them."""

import os
import threading
from dataclasses import replace
from datetime import timedelta

from service.app.background.plans import FLEET_SCHEDULING, FLEET_SEARCHING, RANKING, SEARCHING
from service.kit.database.engine import Database
from service.kit.jobs.runner import JobRunner
from service.plans import stored
from tests.faults.points import Points, around

LEASE = timedelta(seconds=1)
STEPS = ("claimed", "before commit", "committed, not done")
POINTS = (*(f"search: {step}" for step in STEPS), *(f"rank: {step}" for step in STEPS))
"""Where a process is killed."""


def run(url, hits, armed, log):
    """Work until killed; ``armed`` names a point, and what happens there."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    points = Points(hits, **armed)
    around(stored, "record_outcome", after=lambda *_: points.reached("search: before commit"))
    around(stored, "record_answer", after=lambda *_: points.reached("rank: before commit"))
    named = (
        (SEARCHING, "search"),
        (FLEET_SEARCHING, "search"),
        (RANKING, "rank"),
        (FLEET_SCHEDULING, "rank"),
    )
    kinds = [_pointed(kind, name, points) for kind, name in named]
    JobRunner(Database(url), kinds, threads=1).start()
    threading.Event().wait()


def _pointed(kind, name, points):
    def run_kind(job):
        points.reached(f"{name}: claimed")
        done = kind.run(job)
        points.reached(f"{name}: committed, not done")
        return done

    return replace(kind, run=run_kind, lease=LEASE, backoff=timedelta(milliseconds=100))
