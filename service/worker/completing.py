"""The end of a run at the service: completion of its lease, also by the process after the one that ran it."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from service.protocol.base import Code
from service.protocol.leases import AcknowledgedBenchmarkResult, BenchmarkLease, LeaseCompletionRequest
from service.worker.client import NoAnswer, RequestRefused, Unauthorized
from service.worker.redaction import to_one_line
from service.worker.retrying import Backoff
from service.worker.shared import WorkerParts
from service.worker.spool import SpoolEntry
from service.worker.state_directory import ClaimRequest, FinishedRun, HeldLease
from service.worker.uploader import ResultUploader

WORKER_RESTARTED = "WORKER_RESTARTED"
RESULTS_MISSING = "RESULTS_MISSING"
"""Problem code of the service for a completion that names results which it lacks."""
RESULTS_WAIT = "results of the last run are not uploaded yet; nothing new is measured until it is completed"
_MOST_NAMED = 1000
"""Most results that a completion can name."""
_logger = logging.getLogger(__name__)

KeptResults: TypeAlias = Sequence[SpoolEntry] | Sequence[AcknowledgedBenchmarkResult]


class RunEnding(NamedTuple):
    """Outcome of a run, as reported to the service."""

    outcome: Literal["completed", "failed", "released", "cancelled"]
    reason: Code | None = None
    detail: str = ""


class RunCompletion:
    """Completes leases and forgets them once they have ended."""

    def __init__(
        self, shared: WorkerParts, uploader: ResultUploader, handle_settled: Callable[[str], None]
    ) -> None:
        """Calls ``handle_settled`` with the outcome of each lease that has ended."""
        self._home = shared.home
        self._client = shared.client
        self._spool = shared.spool
        self._board = shared.board
        self._gate = shared.gate
        self._uploader = uploader
        self._handle_settled = handle_settled

    def settle_earlier_lease(self) -> str | None:
        """Ends the lease of an earlier process, or one that could not be ended in time.

        A run whose suite was finished is completed, once the service has its results; any other run is
        released. Returns the reason why the lease is still held, or None.

        Raises:
            NoAnswer: The service does not answer.
            Unauthorized: The service refuses the credential.
        """
        held = self._home.load_state(HeldLease)
        if held is None or not self._gate.is_open:
            return None
        completion = self._load_completion(held)
        if self.has_waiting_results(completion.results):
            self._uploader.wake()
            return RESULTS_WAIT
        try:
            answer = self._client.complete_lease(held.id, self._name_acknowledged(completion))
        except RequestRefused as error:
            if error.code == RESULTS_MISSING:
                self._requeue_results(completion.results)
                return RESULTS_WAIT
            _logger.info("the earlier lease has ended: %s", error)
            self.forget_lease("released")
        else:
            _logger.info("earlier run %s: %s, now %s", held.id, completion.outcome, answer.state)
            self.forget_lease(completion.outcome)
        self._home.delete_state(ClaimRequest)
        return None

    def complete_run(
        self, lease: BenchmarkLease, ending: RunEnding, kept: Sequence[SpoolEntry], backoff: Backoff
    ) -> float | None:
        """Completes a lease; returns None once settled, or the seconds until a new attempt.

        Raises:
            RequestRefused: The lease has ended otherwise.
        """
        completion = self._name_acknowledged(self._build_completion(lease, ending, kept))
        try:
            answer = self._client.complete_lease(lease.id, completion)
        except RequestRefused as error:
            if error.code != RESULTS_MISSING:
                raise
            self._requeue_results(kept)
            return backoff.compute_wait_seconds(error.retry_after_seconds)
        except Unauthorized as error:
            self._gate.shut(str(error))
            return backoff.compute_wait_seconds()
        except NoAnswer as error:
            _logger.warning("the run could not be completed yet: %s", error)
            return backoff.compute_wait_seconds(error.retry_after_seconds)
        _logger.info("run %s: %s, now %s", lease.id, ending.outcome, answer.state)
        self.forget_lease(ending.outcome)
        return None

    def save_ending(self, lease: BenchmarkLease, ending: RunEnding, kept: Sequence[SpoolEntry]) -> None:
        """Saves how a finished suite ended. Without room for it, a restarted worker releases the run."""
        if ending.outcome in ("completed", "failed"):
            completion = self._build_completion(lease, ending, kept)
            with contextlib.suppress(OSError):
                self._home.save_state(FinishedRun(id=lease.id, completion=completion))

    def forget_lease(self, outcome: str) -> None:
        """Deletes the state of a lease that has ended."""
        self._home.delete_state(HeldLease)
        self._home.delete_state(FinishedRun)
        self._handle_settled(outcome)

    def has_waiting_results(self, kept: KeptResults) -> bool:
        """Returns true if a result is neither accepted nor rejected yet."""
        return any(self._spool.find_state(result.result_id) == "waiting" for result in kept)

    def _load_completion(self, held: HeldLease) -> LeaseCompletionRequest:
        """Returns the completion of a finished run, or one that releases the lease.

        A full spool does not wait for its results to be uploaded: the node says so instead.
        """
        finished = self._home.load_state(FinishedRun)
        is_of_lease = finished is not None and (
            (finished.id, finished.completion.fencing_token) == (held.id, held.fencing_token)
        )
        if finished is not None and is_of_lease and not self._spool.compute_state().is_full:
            return finished.completion
        return LeaseCompletionRequest(
            fencing_token=held.fencing_token, outcome="released", reason=WORKER_RESTARTED
        )

    def _build_completion(
        self, lease: BenchmarkLease, ending: RunEnding, kept: Sequence[SpoolEntry]
    ) -> LeaseCompletionRequest:
        optional: dict[str, Any] = {}
        if ending.reason is not None:
            optional["reason"] = ending.reason
        if ending.detail:
            optional["detail"] = to_one_line(ending.detail)
        return LeaseCompletionRequest(
            fencing_token=lease.fencing_token,
            outcome=ending.outcome,
            results=[
                AcknowledgedBenchmarkResult(result_id=entry.result_id, content_sha256=entry.content_sha256)
                for entry in kept[:_MOST_NAMED]
            ],
            progress=self._board.progress,
            **optional,
        )

    def _name_acknowledged(self, completion: LeaseCompletionRequest) -> LeaseCompletionRequest:
        """Returns the completion with only the results that the service has acknowledged."""
        stored = [
            result
            for result in completion.results
            if self._spool.find_state(result.result_id) == "acknowledged"
        ]
        return completion.model_copy(update={"results": stored})

    def _requeue_results(self, kept: KeptResults) -> None:
        self._spool.requeue_results([result.content_sha256 for result in kept])
        self._uploader.wake()
