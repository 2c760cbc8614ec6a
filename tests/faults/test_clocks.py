"""The clock of a served process is set ahead and back: what must hold is in docs/guides/operations.md.

The host's clock stays as it is; `libfaketime`, a package of Debian, stands between it and the process.
"""

import os
import subprocess
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from service.auth.sessions import SESSION_SECONDS, SealedValues
from service.kit.jobs.tables import DONE, JobRow
from service.nodes.tables import LeaseGrantRow, LeaseRow
from tests.applications import KEYRING, TENANT, Callers, attach, bearing
from tests.approvals.deciding import Actor
from tests.approvals.test_links import CAROL, SITE, RequestedApproval
from tests.conftest import Client
from tests.faults.harness import rows
from tests.nodes.hosts import Host, token
from tests.serving import IRONLAW, environment, served
from tests.waiting import until

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
HOUR, DAY = 3600, 86_400
MOST_HELD_SECONDS = 120.0
SOON_SECONDS = 5.0
"""Time in which a process has noticed a step back, which it looks for every second."""
pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed: no clock is set"),
]


class Steps:
    """A service whose clock can be set, and what was made before."""

    def __init__(self, app, database, folder):
        self._offset = folder / "offset"
        self.set(0)
        self.database, self._folder = database, folder
        attach(app, database, TENANT.model_copy(update={"public_url": SITE}))
        callers = Callers(app, database)
        callers.client = Client(app)
        asked = RequestedApproval(Actor(callers))
        made = Actor(callers, "approval-links:write").post(f"{asked.path}:link", {"approver": CAROL}).json()
        self._approval, self._link_ends_at = asked.path, made["link"]["expires_at"]
        self.admin = bearing(callers.key("*:*"))
        callers.client.close()

    @contextmanager
    def serves(self):
        own = environment(
            self._folder,
            IRONLAW_DATABASE_URL=self.database.url.render_as_string(hide_password=False),
            IRONLAW_MODE="tenant",
            IRONLAW_PORT="0",
            IRONLAW_SECRET_KEY="a secret of the tests, nowhere else",  # noqa: S106  # that of KEYRING
            LD_PRELOAD=str(LIBRARY),
            FAKETIME_TIMESTAMP_FILE=str(self._offset),
            FAKETIME_NO_CACHE="1",
            FAKETIME_DONT_FAKE_MONOTONIC="1",
        )
        command = [str(IRONLAW), "serve"]
        with served(subprocess.Popen(command, env=own, stderr=subprocess.PIPE, text=True)) as server:
            # A connection that is used again may be one that the service is closing.
            limits = httpx.Limits(max_keepalive_connections=0)
            with httpx.Client(base_url=server.address, trust_env=False, timeout=60, limits=limits) as client:
                self._client = client
                yield

    def set(self, seconds):
        """Set the clock of the process this far ahead of the host's."""
        part = self._offset.with_suffix(".new")
        part.write_text(f"{seconds:+d}\n")
        part.replace(self._offset)
        self.seconds = seconds

    @property
    def now(self):
        return datetime.now(UTC) + timedelta(seconds=self.seconds)

    def request(self, method, path, *, json=None, headers=None):
        return self._client.request(method, path, json=json, headers=headers or self.admin)

    def post(self, path, body=None, headers=None):
        return self.request("POST", path, json=body, headers=headers)

    def ask(self, path, body=None):
        answer = self.post(path, body)
        assert answer.is_success, answer.text
        return answer.json()

    def sign_in(self, generation=0):
        """The cookie of a session that begins now by the clock of the process."""
        sealed = SealedValues(KEYRING.derive_key("browser sessions"), SESSION_SECONDS, self.now.timestamp)
        session = [os.urandom(16).hex(), 0.0, "ada", "default", ["*:*"], "", generation]
        return {"Cookie": f"ironlaw-session={sealed.seal_value(session)}"}

    def reads(self, cookie):
        """Whether a session opens pages."""
        status = self.request("GET", "/approvals", headers=cookie).status_code
        assert status in (200, 401)
        return status == 200

    def link_state(self):
        """What becomes of a link by which somebody decides, whose end nobody moves."""
        found = self.request("GET", f"{self._approval}/links").json()["items"]
        assert {one["expires_at"] for one in found} <= {self._link_ends_at}
        return found[0]["state"] if found else "deleted"

    def running(self):
        """Node and token of each lease in force."""
        leases = (LeaseRow.node_id, LeaseRow.fencing_token)
        return rows(self.database, select(*leases).where(LeaseRow.state == "running"))

    def granted(self):
        """Node and token of each grant that has not ended."""
        grants = (LeaseGrantRow.node_id, LeaseGrantRow.fencing_token)
        return rows(self.database, select(*grants).where(LeaseGrantRow.outcome.is_(None)))

    def count_ticks(self):
        ticks = select(func.count()).select_from(JobRow).where(JobRow.kind == "leases.settle")
        return rows(self.database, ticks)[0][0]

    def is_on_time(self):
        """Whether no schedule and no lease is held back for longer than its span."""
        held = [(LeaseRow.due_at, LeaseRow.state == "running", MOST_HELD_SECONDS)]
        held += [(JobRow.due_at, JobRow.kind == f"schedule.{name}", most) for name, most in EVERY.items()]
        for column, condition, most in held:
            for (due_at,) in rows(self.database, select(column).where(condition)):
                if not due_at - self.now < timedelta(seconds=most + SOON_SECONDS):
                    return False
        return True

    def is_validated(self, run_id):
        state = select(JobRow.state).where(
            JobRow.kind == VALIDATE, JobRow.effect_key.startswith(f"{run_id} ")
        )
        return {row.state for row in rows(self.database, state)} == {DONE}


RENEWED_AND_CLAIMED = {HOUR: (409, 200), 400 * DAY: (401, 401)}
"""How the holder's renewal and another node's claim are answered after a step ahead: the lease has lapsed
and is the other's, or the credentials of both have expired. After a step back it is held, by its holder.
"""
EVERY = {"leases.settle": 60, "approvals.sweep": 60, "ended-sessions.expire": HOUR, "events.expire": DAY}
VALIDATE = "benchmarks.validate"


@pytest.fixture
def steps(app, databases_of, tmp_path):
    maker = databases_of("sqlite")
    made = Steps(app, maker.loaded(), tmp_path)
    with made.serves():
        yield made
    maker.dispose()


@pytest.mark.parametrize("seconds", [HOUR, -HOUR, 400 * DAY, -400 * DAY])
def test_the_clock_is_set_and_set_right_again(steps, seconds, report):
    holder, other = Host(steps).enrol(), Host(steps).enrol()
    for host in (holder, other):
        assert host.send_inventory().is_success
    unused, link = token(steps), "deleted" if seconds == 400 * DAY else "open"
    run_id = steps.ask("/v1/benchmark-runs", {"suite_id": "cpu-quick"})["id"]
    lease = holder.claim().json()
    before, ticks = steps.sign_in(), steps.count_ticks()
    assert steps.reads(before)
    until(lambda: read_limit(steps)[1] > SOON_SECONDS)
    left = read_limit(steps)[0]

    steps.set(seconds)
    assert read_limit(steps)[0] < left, "a limit of a minute is counted on"
    assert not steps.reads(before), "an hour is over, or the session begins in the future"
    assert steps.reads(steps.sign_in())
    check_sessions(steps, generation=0)
    statuses = (holder.renew(lease).status_code, other.claim().status_code)
    assert statuses == RENEWED_AND_CLAIMED.get(seconds, (200, 204))
    assert Host(steps).try_to_enrol(unused).status_code == (401 if seconds > 0 else 200)
    if seconds == 400 * DAY:
        until(lambda: not steps.running())
    until(lambda: steps.link_state() == link)
    until(steps.is_on_time)
    until(lambda: steps.count_ticks() > ticks)
    assert steps.count_ticks() <= ticks + 2, "what was missed is one tick"

    steps.set(0)
    assert steps.link_state() == link, "what retention has deleted does not come back"
    check_sessions(steps, generation=1)
    until(steps.is_on_time)
    assert holder.renew(lease).status_code == 409
    if seconds == 400 * DAY:
        assert steps.request("GET", f"/v1/benchmark-runs/{run_id}").json()["state"] == "failed"
    else:
        complete_by(steps, other, lease, is_held=seconds > 0)
    assert steps.request("GET", "/v1/audit-events:verify").json()["valid"]
    report(
        "A clock that is set and set right again, sqlite",
        step=f"{seconds / HOUR:+.0f} h",
        leases_granted_twice=0,
        sessions_that_outlived_their_end=0,
        link=link,
        audit="whole",
    )


def complete_by(steps, node, earlier, *, is_held):
    """Let the one node that can hold the run end it. To set a clock right that was back is a step ahead."""
    if not is_held:
        assert node.claim().status_code == 200, "the lease has lapsed"
    (held,) = steps.running()
    assert (held.node_id, held.fencing_token > earlier["fencing_token"]) == (node.id, True)
    assert steps.granted() == [held]
    done = {"fencing_token": held.fencing_token, "outcome": "failed", "reason": "DEVICE_NOT_USABLE"}
    assert node.ask("POST", f"/v1/leases/{earlier['id']}:complete", done).is_success
    until(lambda: steps.is_validated(earlier["id"]))


def read_limit(steps):
    """How many requests are left in this minute, and the seconds until it ends."""
    said = steps.request("GET", "/v1/nodes").headers["ratelimit"].split(";")
    return [int(part.rpartition("=")[2]) for part in said[1:]]


def check_sessions(steps, generation):
    """A session ends with its person, whatever the clock says, and the next one opens pages."""
    session = steps.sign_in(generation)
    assert steps.reads(session)
    steps.ask("/v1/sessions:end", {"subject_id": "ada"})
    assert not steps.reads(session)
    assert steps.reads(steps.sign_in(generation + 1))
