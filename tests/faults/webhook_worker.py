"""A process that publishes and delivers as every process of the service does, with named points around it."""

import os
import threading
from dataclasses import replace
from datetime import timedelta

from service.app.background.webhooks import PUBLISHING
from service.audit.service import Writes
from service.kit.database.engine import Database
from service.kit.http.outbound import OutboundClient, parse_networks
from service.kit.jobs.runner import JobRunner
from service.kit.security.keyring import Keyring
from service.webhooks import attempts, dispatching, service
from service.webhooks.dispatching import Dispatcher
from service.webhooks.service import Webhooks
from tests.faults.points import Points, around

LEASE_SECONDS = 1.0
SECRET = b"a secret of the tests, nowhere else"
POINTS = ("published, not committed", "claimed, not sent", "sent, not recorded", "recorded, not committed")
"""Where a process is killed."""


def webhooks():
    """The rules of the processes under test."""
    return Webhooks.from_keyring(
        Keyring(SECRET), OutboundClient(parse_networks("127.0.0.0/8"), timeout_seconds=2.0)
    )


def run(url, hits, armed, log):
    """Work until killed; ``armed`` names a point, and what happens there."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    points = Points(hits, **armed)
    published, claimed, sent, recorded = (lambda *_, name=name: points.reached(name) for name in POINTS)
    around(service, "publish_event", after=published)
    around(dispatching, "send_message", before=claimed)
    around(attempts, "record_attempt", before=sent, after=recorded)
    attempts.LEASE_SECONDS = LEASE_SECONDS
    database = Database(url)
    JobRunner(database, [replace(PUBLISHING, lease=timedelta(seconds=LEASE_SECONDS))], threads=1).start()
    Dispatcher(database, Writes(database, Keyring(SECRET)), webhooks()).start()
    threading.Event().wait()
