"""A process that works on the jobs of the fault tests until it is killed: `python -m tests.faults.crew URL`.

A walk takes some steps. Each is logged when it begins, so that repetitions are counted, and leaves its effect
together with its progress; the last asks for another job, with its own effect.
"""

import argparse
import os
import random
import signal
import threading
import time
from datetime import timedelta

from pydantic import BaseModel
from sqlalchemy import BigInteger, Column, Float, MetaData, String, Table, insert

from service.kit.database.engine import Database
from service.kit.jobs.kinds import CompletedJob, ContinueJob, RunnableJobType
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.runner import JobRunner
from service.kit.jobs.schedules import JobSchedule, NoArguments

METADATA = MetaData()
STEPS = Table(
    "steps", METADATA, Column("key", String(200)), Column("process", BigInteger), Column("at", Float)
)
EFFECTS = Table("effects", METADATA, Column("key", String(200)))
ORDERS = Table("orders", METADATA, Column("key", String(200)))


class Walk(BaseModel):
    name: str
    steps: int


class Echo(BaseModel):
    name: str


def log(job, key):
    with job.database.open_writer() as session:
        session.execute(insert(STEPS).values(key=key, process=os.getpid(), at=time.time()))


def walk(job):
    step = job.progress.get("step", 0)
    if step == job.arguments.steps:  # killed between the last step and its answer
        return CompletedJob()
    key = f"{job.arguments.name}/{step}"
    log(job, key)
    time.sleep(random.uniform(0, 0.03))  # noqa: S311
    is_last = step + 1 == job.arguments.steps
    with job.open_writer({"step": step + 1}) as session:
        session.execute(insert(EFFECTS).values(key=key))
        if is_last:
            name = f"{job.arguments.name}/echo"
            enqueue_job(session, ECHO, Echo(name=name), tenant_id=job.tenant_id, effect_key=name)
    return CompletedJob() if is_last else ContinueJob({"step": step + 1})


def echo(job):
    if "echoed" not in job.progress:
        log(job, job.arguments.name)
        time.sleep(random.uniform(0, 0.03))  # noqa: S311
        with job.open_writer({"echoed": True}) as session:
            session.execute(insert(EFFECTS).values(key=job.arguments.name))
    return CompletedJob()


def tick(job):
    if "ticked" not in job.progress:  # else killed between the effect and its answer
        with job.open_writer({"ticked": True}) as session:
            session.execute(insert(EFFECTS).values(key=f"tick {job.id}"))
    return CompletedJob()


OPTIONS = {"lease": timedelta(seconds=1), "attempts": 1000, "backoff": timedelta(milliseconds=100)}
WALK = RunnableJobType(name="walk", arguments=Walk, run=walk, **OPTIONS)
ECHO = RunnableJobType(name="echo", arguments=Echo, run=echo, concurrency=2, **OPTIONS)
TICK = RunnableJobType(name="tick", arguments=NoArguments, run=tick, **OPTIONS)
KINDS = {kind.name: kind for kind in (WALK, ECHO, TICK)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--kinds", nargs="*", default=["walk", "echo"])
    parser.add_argument("--every", type=float, help="seconds between the ticks of a schedule")
    given = parser.parse_args()
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    schedules = []
    if given.every:
        schedules.append(JobSchedule(name="ticks", every=timedelta(seconds=given.every), job=TICK))
    runner = JobRunner(Database(given.url), [KINDS[name] for name in given.kinds], schedules, threads=2)
    runner.start()
    print("working", flush=True)
    asked.wait()
    runner.stop(5.0)


if __name__ == "__main__":
    main()
