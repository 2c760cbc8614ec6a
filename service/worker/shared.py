"""Parts that every thread of a worker shares."""

from dataclasses import dataclass

from service.worker.client import ServiceClient
from service.worker.credential import WorkerCredentials
from service.worker.gate import RequestGate
from service.worker.spool import ResultSpool
from service.worker.state_directory import Node, StateDirectory
from service.worker.status import WorkerStatus


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """The parts of one worker; each is safe to use from several threads."""

    node: Node
    home: StateDirectory
    client: ServiceClient
    credentials: WorkerCredentials
    spool: ResultSpool
    board: WorkerStatus
    gate: RequestGate
