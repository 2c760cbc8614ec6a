"""What every thread of a worker works with."""

from dataclasses import dataclass

from service.worker.board import Board
from service.worker.client import Client
from service.worker.credential import Credentials
from service.worker.gate import Gate
from service.worker.home import Home, Node
from service.worker.spool import Spool


@dataclass(frozen=True, slots=True)
class Shared:
    """The parts of one worker; each is safe to use from several threads."""

    node: Node
    home: Home
    client: Client
    credentials: Credentials
    spool: Spool
    board: Board
    gate: Gate
