"""Processes are killed while many agree to a change of a policy, or try one link: it counts once."""

import signal
import time
from collections import Counter
from functools import partial

import pytest

from service.approvals.links.schemas import ApprovalLinkRequest
from service.approvals.links.service import Links
from service.approvals.links.service import list_link_states as links_of
from service.policies import service as policies
from service.policies.changes import service as changes
from tests import forked
from tests.applications import KEYRING
from tests.approvals.test_model import TENANT, subject
from tests.approvals.test_races import DECIDERS, Scene
from tests.faults import authority_worker
from tests.faults.harness import LONG, TIMES
from tests.faults.points import read_ledger

PROCESSES_AT_ONCE = 2
QUORUM = 3
PERSON = "person:approver@example.com"


class Change:
    """A change of a policy that waits for its quorum."""

    kind = "change"
    names = DECIDERS[:10]

    def __init__(self, database):
        self.scene = Scene(database, quorum=QUORUM)
        admin = subject("token:admin")
        patch = {"patch": {"change_delay_seconds": 86_400}, "if_match": "*"}
        self.scene.run(admin.name, partial(changes.change_settings, subject=admin, **patch))
        emptied = {"policy_id": "policy", "patch": {"steps": [], "automatic": True}, "if_match": "*"}
        made = self.scene.run(admin.name, partial(policies.change_policy, subject=admin, **emptied))
        self.asked = {"id": made["id"]}

    def check(self, answers):
        with self.scene.database.open_reader() as session:
            change = changes.get_change(session, TENANT, self.asked["id"])
            policy = policies.get_policy(session, TENANT, "policy")
        assert (change["state"], policy["steps"], policy["version"]) == ("effective", [], 2)
        agreed = [made["decided_by"] for made in change["approvals"]]
        assert len(agreed) == len(set(agreed)) == QUORUM
        told = {line["name"] for line in answers if line["status"] == 200}
        assert told == set(agreed)
        assert {line["status"] for line in answers} <= {200, "POLICY_CHANGE_ENDED"}


class Link:
    """A link for one person, which many have."""

    kind = "link"
    names = [PERSON] * 10

    def __init__(self, database):
        self.scene = Scene(database, approvers=[PERSON])
        makes = Links(KEYRING, public_url="https://ironlaw.example.com", has_tenant=lambda _: True)
        body = ApprovalLinkRequest(approver=PERSON)
        maker, approval = subject("token:maker"), self.scene.approval
        made = self.scene.run(maker.name, lambda session: makes.create(session, maker, approval["id"], body))
        digest = self.scene.quote["content_digest"]
        self.asked = {"id": made["link"]["id"], "content_digest": digest}

    def check(self, answers):
        shown = self.scene.shown()
        (decision,) = shown["steps"][0]["decisions"]
        assert (shown["state"], decision["linked_by"]) == ("approved", "token:maker")
        with self.scene.database.open_reader() as session:
            assert [each["state"] for each in links_of(session, TENANT, shown["id"])] == ["used"]
        # Whoever was killed between commit and answer is told so by the next try.
        assert len({line["place"] for line in answers if line["status"] == 200}) == 1
        assert {line["status"] for line in answers} - {200} <= {"APPROVAL_LINK_USED", "APPROVAL_LINK_EXPIRED"}


def attempts(tried, folder, point=None):
    """How the processes end in which everybody tries, each half of them."""
    url = tried.scene.database.url.render_as_string(hide_password=False)
    names = list(enumerate(tried.names))
    hits, answers = str(folder / "hits.jsonl"), str(folder / "answers.jsonl")
    processes = [
        forked.Process(
            authority_worker.run,
            url,
            hits,
            {"point": point},
            answers,
            {**tried.asked, "kind": tried.kind, "names": names[half::PROCESSES_AT_ONCE]},
        )
        for half in range(PROCESSES_AT_ONCE)
    ]
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


@pytest.mark.skipif(
    not LONG, reason="make faults kills them; here tests/approvals/test_authority.py tries them"
)
@pytest.mark.parametrize("tried", [Change, Link], ids=["change", "link"])
def test_killed_processes_make_a_change_or_use_a_link_once(databases, tmp_path, report, tried):
    began, hits = time.monotonic(), Counter()
    points = authority_worker.POINTS[tried.kind]
    for turn in range(TIMES):
        for point in points:
            folder = tmp_path / f"{turn} {point}"
            folder.mkdir()
            one = tried(databases.loaded())
            assert -signal.SIGKILL in attempts(one, folder, point)
            assert attempts(one, folder) == [0] * PROCESSES_AT_ONCE
            hits += Counter(line["point"] for line in read_ledger(folder / "hits.jsonl"))
            one.check([line for line in read_ledger(folder / "answers.jsonl") if line["what"] == "answer"])
            assert one.scene.faults() == set()
            one.scene.database.dispose()
    assert {point: hits[point] for point in points if hits[point] < TIMES} == {}
    report(
        "Processes killed while many agree to a change of a policy, or use one link",
        database=databases.kind,
        tried=tried.kind,
        processes=PROCESSES_AT_ONCE,
        **{f"kills, {point.partition(': ')[2]}": hits[point] for point in points},
        second_effects=0,
        unrecorded_changes=0,
        minutes=f"{(time.monotonic() - began) / 60:.1f}",
    )
