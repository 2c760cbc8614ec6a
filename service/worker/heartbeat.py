"""Heartbeats of the node, and the execution of the instructions that the service returns."""

import logging
import random
import threading

from service import __version__
from service.protocol.canonical import compute_digest
from service.protocol.nodes import NodeHeartbeatRequest, NodeInstructions, NodeInventory
from service.worker.client import NoAnswer, RequestRefused, Unauthorized
from service.worker.retrying import Backoff
from service.worker.shared import WorkerParts
from service.worker.status import Activity
from service.worker.uploader import ResultUploader

HOLD_SECONDS = 300.0
"""Seconds between heartbeats while the credential is refused."""
SHORTEST_SECONDS = 1.0
_MOST_WAIT_SECONDS = 30.0
_AT_ONCE = 1000
"""Most digests in one heartbeat."""
_logger = logging.getLogger(__name__)


class HeartbeatSender(threading.Thread):
    """Sends heartbeats at the interval of the service, in a thread of its own."""

    def __init__(
        self, shared: WorkerParts, uploader: ResultUploader, inventory: NodeInventory, *, boot_id_sha256: str
    ) -> None:
        super().__init__(name="heart", daemon=True)
        self._shared = shared
        self._uploader = uploader
        self._boot_id_sha256 = boot_id_sha256
        self._due = threading.Event()
        self._backoff = Backoff(most_seconds=_MOST_WAIT_SECONDS)
        self._offered: list[str] | None = None
        self.inventory = inventory
        self.state = "active"
        """Last state from the service: active, draining or quarantined."""

    def run(self) -> None:
        """Sends heartbeats until the worker ends."""
        while not self._shared.gate.ended.is_set():
            self._due.clear()
            try:
                seconds = self._send_heartbeat()
            except Exception:  # whatever the error, the node is alive
                _logger.exception("the heartbeat failed and continues")
                seconds = self._backoff.compute_wait_seconds()
            self._due.wait(seconds)

    def trigger_heartbeat(self) -> None:
        """Sends the next heartbeat at once."""
        self._due.set()

    def _send_heartbeat(self) -> float:
        """Sends one heartbeat, and returns the seconds until the next."""
        try:
            answer = self._shared.client.send_heartbeat(self._shared.node.node_id, self._build_heartbeat())
            self._shared.gate.open()
            self._apply_answer(answer)
        except Unauthorized as error:
            self._shared.gate.shut(str(error))
            return HOLD_SECONDS + random.uniform(0.0, HOLD_SECONDS / 10)  # noqa: S311  # spreads load
        except (NoAnswer, RequestRefused) as error:
            _logger.warning("no heartbeat: %s", error)
            self._shared.board.update_status(service=str(error))
            self._offered = None  # after a reconnect the service may be a different one
            return self._backoff.compute_wait_seconds(error.retry_after_seconds)
        self._backoff.reset_failures()
        if self._offered:
            return 0.0
        return max(answer.heartbeat_seconds, SHORTEST_SECONDS) * random.uniform(0.9, 1.0)  # noqa: S311

    def _build_heartbeat(self) -> NodeHeartbeatRequest:
        if self._offered is None:
            self._offered = self._shared.spool.list_acknowledged()
        state = self._shared.spool.compute_state()
        self._shared.board.update_status(
            spool=_format_spool(state.waiting_count, state.rejected_count, is_full=state.is_full)
        )
        return NodeHeartbeatRequest(
            boot_id_sha256=self._boot_id_sha256,
            worker_version=__version__,
            inventory_sha256=compute_digest(self.inventory),
            activity=self._resolve_activity(),
            spool=state,
            acknowledged=self._offered[:_AT_ONCE],
        )

    def _resolve_activity(self) -> Activity:
        activity = self._shared.board.view.activity
        return "draining" if activity == "measuring" and self.state == "draining" else activity

    def _apply_answer(self, answer: NodeInstructions) -> None:
        """Executes the instructions of the service."""
        self._offered = (self._offered or [])[_AT_ONCE:]
        if answer.state != self.state:
            _logger.warning("the service says that this node is %s", answer.state)
        self.state = answer.state
        self._shared.board.update_status(service=f"{self._shared.client.address}: {answer.state}")
        if answer.missing:
            count = self._shared.spool.requeue_results(answer.missing)
            _logger.warning(
                "the service lacks %d results that it had acknowledged; they are sent again", count
            )
            self._uploader.wake()
        if answer.send_inventory:
            self._send_inventory()
        if answer.rotate and self._shared.credentials.is_settled:
            self._shared.client.rotate_credential(self._shared.node.node_id)
            _logger.info("the credential is rotated")
            self._due.set()  # the next heartbeat is the first use of the new one

    def _send_inventory(self) -> None:
        """Sends the inventory; a refusal does not stop the heartbeats."""
        try:
            self._shared.client.send_inventory(self._shared.node.node_id, self.inventory)
        except (NoAnswer, RequestRefused) as error:
            _logger.warning("the inventory was refused, the next heartbeat asks again: %s", error)


def _format_spool(waiting: int, rejected: int, *, is_full: bool) -> str:
    text = f"{waiting} waiting"
    text += f", {rejected} rejected" if rejected else ""
    return f"{text}, FULL: nothing new is measured" if is_full else text
