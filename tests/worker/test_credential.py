"""The credential: a crash at any step of a rotation leaves one that works, the old one is not used again."""

import threading
import time
from itertools import pairwise

import pytest

from service.worker import files
from service.worker.credential import WorkerCredentials
from service.worker.errors import WorkerError

OLD, NEW, NEWER = (f"ironlawnode_aaaaaaaaaaaaaaaa_{letter * 49}" for letter in "abc")


@pytest.fixture
def path(tmp_path):
    path = files.create_private_folder(tmp_path / "worker") / "credential.json"
    WorkerCredentials.store(path, OLD)
    return path


def carried(credentials):
    with credentials.acquire_credential() as secret:
        return secret


def used(credentials):
    with credentials.acquire_credential() as secret:
        credentials.record_acceptance(secret)
        return secret


def test_the_pending_one_is_carried_from_when_it_is_on_the_disk(path):
    credentials = WorkerCredentials(path)
    with credentials.lock_for_rotation() as secret:
        assert secret == OLD
        credentials.stage(NEW)
        assert NEW in path.read_text()
    assert carried(credentials) == NEW


@pytest.mark.parametrize("is_used", [False, True])
def test_after_a_crash_the_pending_one_is_tried_first_and_the_old_one_is_still_there(path, is_used):
    before = WorkerCredentials(path)
    with before.lock_for_rotation():
        before.stage(NEW)
    again = WorkerCredentials(path)
    assert carried(again) == NEW
    if is_used:
        assert used(again) == NEW
        assert OLD not in path.read_text()
        assert carried(WorkerCredentials(path)) == NEW
    else:
        assert again.record_refusal(NEW)
        assert used(again) == OLD
        assert NEW not in path.read_text()
        assert not again.record_refusal(OLD)


def test_both_refused_both_stay(path):
    credentials = WorkerCredentials(path)
    with credentials.lock_for_rotation():
        credentials.stage(NEW)
    assert credentials.record_refusal(NEW)
    assert not credentials.record_refusal(OLD)
    assert OLD in path.read_text()
    assert NEW in path.read_text()
    assert carried(WorkerCredentials(path)) == NEW


def test_asked_again_the_pending_one_is_replaced(path):
    credentials = WorkerCredentials(path)
    for secret in (NEW, NEWER):
        with credentials.lock_for_rotation():
            credentials.stage(secret)
    assert used(credentials) == NEWER


def test_a_crash_while_the_file_is_written_changes_nothing(path, monkeypatch):
    credentials = WorkerCredentials(path)

    def killed(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt), credentials.lock_for_rotation():
        credentials.stage(NEW)
    assert carried(credentials) == OLD
    assert carried(WorkerCredentials(path)) == OLD


def test_a_full_disk_keeps_both_and_carries_the_new_one(path, monkeypatch):
    credentials = WorkerCredentials(path)
    with credentials.lock_for_rotation():
        credentials.stage(NEW)

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files.os, "fsync", full)
        assert used(credentials) == NEW
    assert carried(credentials) == NEW
    assert OLD in path.read_text()
    assert used(credentials) == NEW
    assert OLD not in path.read_text()


def test_nothing_is_under_way_with_the_old_one_when_it_is_changed(path):
    """However many threads send, none carries the old credential after the first has carried the new one."""
    credentials = WorkerCredentials(path)
    sent, stop = [], threading.Event()

    def send():
        while not stop.is_set():
            with credentials.acquire_credential() as secret:
                began = time.monotonic()
                time.sleep(0.001)
                sent.append((began, time.monotonic(), secret))
                credentials.record_acceptance(secret)

    senders = [threading.Thread(target=send) for _ in range(8)]
    for sender in senders:
        sender.start()
    secrets = [OLD]
    for number in range(20):
        time.sleep(0.005)
        with credentials.lock_for_rotation() as secret:
            assert secret == secrets[-1]
            secrets.append(f"ironlawnode_aaaaaaaaaaaaaaaa_{number:049}")
            credentials.stage(secrets[-1])
    stop.set()
    for sender in senders:
        sender.join()
    for old, new in pairwise(secrets):
        last = max((ended for _, ended, secret in sent if secret == old), default=0.0)
        first = min((began for began, _, secret in sent if secret == new), default=float("inf"))
        assert last <= first
    assert len({secret for _, _, secret in sent}) > 10


def test_a_request_that_was_given_up_may_still_arrive(path, monkeypatch):
    credentials = WorkerCredentials(path)
    assert not credentials.is_settled, "one of the process before"
    monkeypatch.setattr("service.worker.credential.SETTLED_SECONDS", 0.05)
    time.sleep(0.05)
    assert credentials.is_settled
    credentials.record_abandoned_request()
    assert not credentials.is_settled
    time.sleep(0.05)
    assert credentials.is_settled


def test_a_host_that_is_not_enrolled_says_what_to_do(tmp_path):
    with pytest.raises(WorkerError, match="ironlaw worker enrol"):
        WorkerCredentials(tmp_path / "credential.json")


def test_a_file_that_is_none_is_named_and_not_shown(path):
    path.write_text('{"current": "a b"}')
    with pytest.raises(WorkerError) as raised:
        WorkerCredentials(path)
    assert "a b" not in str(raised.value)
